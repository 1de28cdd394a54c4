"""Objectives whose misbehaviour depends on the trial's number, and returns that nobody should make."""

import ctypes
import fractions
import os
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import numpy as np

from nasbot.trial import FailureCause, Scored
from tests.execution import objectives
from tests.study.objectives import score


def bombing(arch):
    """Fifty children, some of which leave the group."""
    for n in range(50):
        subprocess.Popen(["/bin/sleep", "600"], start_new_session=n % 2 == 0)
    return 1.0


def exiting(arch):
    sys.exit(3)


def raising(arch):
    raise ValueError("as expected")


# How it dies, and what that is: a value, or the cause.
DEATHS = (
    (raising, FailureCause.EXCEPTION),
    (exiting, FailureCause.EXCEPTION),
    (objectives.leaving, FailureCause.CRASHED),
    (objectives.segfaulting, FailureCause.CRASHED),
    (objectives.aborting, FailureCause.CRASHED),
    (objectives.killed, FailureCause.KILLED),
    (objectives.recursing, FailureCause.EXCEPTION),
    (bombing, None),
    (objectives.closing_everything, FailureCause.CRASHED),
    (objectives.enormous, FailureCause.EXCEPTION),
    (objectives.shouting, FailureCause.EXCEPTION),
    (objectives.raising_on_deletion, None),
)


def dying(arch, trial):
    return DEATHS[trial.number % len(DEATHS)][0](arch)


class Odd:
    """Something that is not a number in one of many ways."""

    def __init__(self, error: type[BaseException] | None = None) -> None:
        self.error = error

    def __float__(self):
        if self.error is not None:
            raise self.error("no")
        return 0.5

    def __repr__(self):
        raise RuntimeError("cannot be shown")


def odd_returns():
    """Forty of them: what comes back, and the cause it must become (None: a score)."""
    exception, nan = FailureCause.EXCEPTION, FailureCause.NAN
    return (
        (None, exception),
        ("0.5", exception),
        (b"0.5", exception),
        ("", exception),
        (True, exception),
        (False, exception),
        (np.bool_(True), exception),
        ([], exception),
        ([0.5], exception),
        ((0.5, 1), exception),
        ({}, exception),
        ({"value": 0.5}, exception),
        (set(), exception),
        (0.5 + 0j, exception),
        (np.complex64(1), exception),
        (np.array([]), exception),
        (np.array([0.5]), exception),
        (np.array([[0.5]]), exception),
        (np.array("text"), exception),
        (np.datetime64("2020-01-01"), exception),
        (Odd(), exception),
        (Odd(ValueError), exception),
        (Odd(KeyboardInterrupt), exception),
        (Odd, exception),
        (raising, exception),
        (Ellipsis, exception),
        (NotImplemented, exception),
        (float("nan"), nan),
        (float("inf"), nan),
        (-float("inf"), nan),
        (np.float32("nan"), nan),
        (np.float64("-inf"), nan),
        (np.array(np.nan), nan),
        (Decimal("NaN"), nan),
        (10**400, nan),
        (Decimal("0.5"), None),
        (fractions.Fraction(1, 2), None),
        (np.float16(0.5), None),
        (np.array(0.5), None),
        (7, None),
    )


def odd(arch, trial):
    return odd_returns()[trial.number][0]


# -- hangs and hunger --------------------------------------------------------------------------------------------------


def sleeping(arch):
    time.sleep(600)


def deaf(arch):
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)


def stuck_in_native_code(arch):
    ctypes.PyDLL(None).sleep(600)  # which keeps Python's lock


def stopped(arch):
    os.kill(os.getpid(), signal.SIGSTOP)


HANGS = (sleeping, deaf, stuck_in_native_code, stopped, objectives.spinning)


def hanging(arch, trial):
    return HANGS[trial.number % len(HANGS)](arch)


class Runaway:
    """Every other trial crosses its memory limit, alone or with children, and says when it begins."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, arch, trial):
        if trial.number % 2:
            return score(arch)
        (self.folder / f"{trial.number}").write_text(str(time.monotonic()))
        return (objectives.hungry, objectives.hungry_together, sharing)[trial.number // 2 % 3](arch)


def sharing(arch):
    """Memory that no limit of a process counts: shared mappings, written to by a child as well."""
    import mmap

    held = []
    os.fork()
    while True:
        held.append(mmap.mmap(-1, 8 << 20))
        held[-1].write(b"x" * (8 << 20))


class Timed:
    """Takes 20 to 120 ms, and leaves a mark with the number of its process."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, arch, trial):
        (self.folder / f"{trial.number}-{os.getpid()}").touch()
        time.sleep(0.02 + 0.1 * (int(arch.fingerprint[:4], 16) / 2**16))
        return Scored(score(arch), {"of": trial.number})


def hungry_without_limit(arch, trial):
    """Every other one eats until the kernel ends it; its driver, which has eaten less, goes on."""
    return score(arch) if trial.number % 2 else objectives.hungry(arch)

"""Calling an objective, and making an outcome of whatever it returns or raises."""

from __future__ import annotations

import errno
import inspect
import math
import numbers
import os
import reprlib
import traceback
from collections.abc import Callable
from decimal import Decimal

import numpy as np

from nasbot._rng import Role, derived_seed, stream
from nasbot.architecture import Architecture
from nasbot.candidate import Params
from nasbot.errors import DivergedError, NasbotError, OptionError, RefusedError
from nasbot.execution._frames import FrameError, outcome_record, packed
from nasbot.execution.base import Job, Objective
from nasbot.trial import Cancelled, Failed, FailureCause, Outcome, Point, Scored, Stopped

MAX_MESSAGE = 500
CANNOT_SEE = "fidelity: the objective takes no argument named trial, so it cannot see trial.fidelity"
MAX_TRACEBACK = 4000
MAX_STEP = 2**62
# How PyTorch and CUDA say that memory ran out; neither raises MemoryError.
OUT_OF_MEMORY = ("can't allocate memory", "out of memory")
# What a machine lacks that has nothing to do with the network: descriptors, room on the disk, processes.
MACHINE_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EAGAIN})
MACHINE_SIGNS = tuple(os.strerror(number) for number in (errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT))


class TrialStopped(BaseException):
    """Raised by ``trial.report`` where a pacer's bar was missed. Not an Exception: nobody catches it by accident."""


class LiveTrial:
    """What an objective that asks for ``trial`` is given."""

    def __init__(self, job: Job, send: Callable[[Point], None], *, raises: bool = True) -> None:
        self.number = job.number
        self.arch: Architecture = job.arch
        self.fidelity = job.fidelity  # the share of a full training, in (0, 1]; more for finals
        self._params = job.candidate.params
        self._draws_as = job.number if job.draws_as is None else job.draws_as
        self.seed = derived_seed(job.seed, self._draws_as, Role.OBJECTIVE)  # for libraries that want a whole number
        self.stopped: Stopped | None = None  # once a bar was missed
        self._study_seed = job.seed
        self._send = send
        self._bars = job.bars
        self._best: float | None = None
        self._raises = raises  # else ``stopped`` alone says it

    @property
    def params(self) -> Params:
        """The objective's own copy: what it takes out of it or puts into it stays with it."""
        return dict(self._params)

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator that is the same whenever and wherever this trial runs."""
        return stream(self._study_seed, self._draws_as, Role.OBJECTIVE)

    def report(self, step: int, value: float) -> None:
        """Add a point to the trial's curve. A value that is not finite is not recorded; the trial goes on.

        Where the study has a pacer the values are those that the objective returns in the end, in the same sense, and
        TrialStopped is raised where they fall behind.
        """
        score = as_number(value)
        position = int(step)
        if self.stopped is None and score is not None and math.isfinite(score) and abs(position) <= MAX_STEP:
            self._send(Point(position, score))
            self._compare(position, score)
        if self.stopped is not None and self._raises:
            raise TrialStopped(self.stopped.reason)

    def _compare(self, step: int, value: float) -> None:
        """Hold the best so far against each bar, once."""
        if not self._bars:
            return
        turned = self._bars[0].direction.turned
        self._best = value if self._best is None else max(self._best, value, key=turned)
        passed = [bar for bar in self._bars if bar.step <= step]
        for bar in passed:
            self.stopped = self.stopped or bar.stopped(step, self._best)
        self._bars = self._bars[len(passed) :]


def evaluate(objective: Objective, live: LiveTrial) -> Outcome:
    """The outcome of one call, whatever happens in it; only KeyboardInterrupt passes."""
    try:
        outcome = within_limit(outcome_of(called(objective, live)))
    except KeyboardInterrupt:
        raise
    except TrialStopped:
        assert live.stopped is not None
        return live.stopped
    except BaseException as error:  # noqa: BLE001  an objective may raise anything, SystemExit included
        return live.stopped or failure_of(error)
    return live.stopped or outcome


def within_limit(outcome: Outcome) -> Outcome:
    """The outcome, or a failure where it is larger than any executor takes."""
    try:
        packed({"outcome": outcome_record(outcome)})
    except FrameError as error:
        return Failed(FailureCause.EXCEPTION, f"the outcome cannot be taken: {error}")
    return outcome


def called(objective: Objective, live: LiveTrial) -> object:
    """What the objective returns, given the network and whatever else it asks for."""
    given = {"trial": live, "params": live.params}
    return objective(live.arch, **{name: given[name] for name in wanted(objective)})


def wanted(objective: Objective) -> tuple[str, ...]:
    """What the objective asks for beside the network, by the names of its parameters: ``params``, ``trial``."""
    try:
        names = inspect.signature(objective).parameters
    except (TypeError, ValueError):  # builtins without a signature
        return ()
    return tuple(name for name in ("params", "trial") if name in names)


def check_objective(objective: object) -> None:
    """Raises OptionError for what cannot be called as an objective is: that no network could ever repair."""
    expected = "objective: expected a function of a network, with arguments named params and trial where it wants them"
    if not callable(objective):
        raise OptionError(f"{expected}, got {_shown(objective)} ({type(objective).__name__[:60]})")
    try:
        signature = inspect.signature(objective)
    except (TypeError, ValueError):  # builtins without a signature
        return
    try:
        signature.bind(None, **dict.fromkeys(wanted(objective)))
    except TypeError as error:
        name = getattr(objective, "__name__", type(objective).__name__)
        raise OptionError(f"{expected}, got {name}{signature}: {error}"[:MAX_MESSAGE]) from None


def sees_fidelity(objective: Objective) -> bool:
    """Whether it can know at which fidelity it is asked."""
    return "trial" in wanted(objective)


def outcome_of(returned: object) -> Outcome:
    """What an objective's return value means: a finite number is a score, all else a failure that says what came."""
    if isinstance(returned, Scored | Stopped | Failed | Cancelled):
        return returned
    value = as_number(returned)
    if value is None:
        message = f"the objective must return a finite number, got {_shown(returned)} ({type(returned).__name__[:60]})"
        return Failed(FailureCause.EXCEPTION, message)
    if not math.isfinite(value):
        return Failed(FailureCause.NAN, f"the objective must return a finite number, got {value}")
    return Scored(value)


def as_number(value: object) -> float | None:
    """A real number as a float (infinite where it is too large), None for anything else; a boolean is not a number."""
    try:
        if getattr(value, "ndim", None) == 0:  # arrays and tensors of one number
            value = value.item()  # type: ignore[attr-defined]
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | Decimal):
            return None
        return float(value)
    except OverflowError:
        return math.inf
    except Exception:  # noqa: BLE001  whatever a foreign number's own conversion raises
        return None


def failure_of(error: BaseException) -> Failed:
    """An exception as an outcome: its class and message, and the end of its traceback in the details."""
    text = "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]
    return Failed(_cause_of(error), _message_of(error), {"traceback": text})


def _cause_of(error: BaseException) -> FailureCause:
    if isinstance(error, RefusedError):
        return FailureCause.REFUSED
    if isinstance(error, DivergedError):
        return FailureCause.NAN
    if isinstance(error, MemoryError):
        return FailureCause.OOM
    if isinstance(error, RuntimeError) and any(sign in _message_of(error) for sign in OUT_OF_MEMORY):
        return FailureCause.OOM
    if is_of_machine(error) or is_of_machine(error.__context__):  # our own errors say theirs in words
        return FailureCause.ENVIRONMENT
    return FailureCause.EXCEPTION


def is_of_machine(error: BaseException | None) -> bool:
    """Whether the machine lacks what any network would need; libraries say it in a RuntimeError."""
    if isinstance(error, OSError):
        return error.errno in MACHINE_ERRORS
    return isinstance(error, RuntimeError) and any(sign in _message_of(error) for sign in MACHINE_SIGNS)


def _message_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  an exception whose own message raises
        text = "(no message: its __str__ raised)"
    text = text[:MAX_MESSAGE]
    return text if isinstance(error, NasbotError) and text else f"{type(error).__name__}: {text}".removesuffix(": ")


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)[:100]
    except Exception:  # noqa: BLE001  an object whose own repr raises
        return "an object that cannot be shown"

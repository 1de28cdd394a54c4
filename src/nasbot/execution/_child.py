"""What happens in the process of one evaluation: limits first, then the objective, then one frame with the outcome.

This module is loaded into the fork server before any evaluation, so what it imports costs each of them nothing.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal
import threading
from multiprocessing.connection import Connection

import numpy.random  # noqa: F401  numpy loads it when it is first used, which would be in every process

from nasbot.execution._frames import FrameError, outcome_record, packed
from nasbot.execution.base import Job, Limits, Objective
from nasbot.execution.evaluation import LiveTrial, evaluate
from nasbot.trial import Failed, FailureCause, Outcome, Point

PR_SET_PDEATHSIG = 1
CANNOT_SEND = 70  # exit code: the outcome is known but the pipe is gone
ROOM_TO_REPORT = 64_000_000  # bytes kept back, so that running out of memory can be told
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def main(
    objective: Objective,
    job: Job,
    limits: Limits,
    threads: int,
    results: Connection,
    output: Connection,
    lifeline: Connection,
) -> None:
    """Evaluate one job in this process and send what became of it."""
    _lead_a_group()
    _die_with_the_driver(lifeline)
    _redirect_output(output)
    for name in THREADS:
        os.environ[name] = str(threads)
    hard_limit = _limit_memory(limits.memory)
    sender = _Sender(results)
    outcome = evaluate(objective, LiveTrial(job, sender.report))
    if hard_limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (hard_limit, hard_limit))
    sender.end(outcome)


def _lead_a_group() -> None:
    """A session of its own: Ctrl-C at the terminal goes to the driver alone, and the group can be ended as one."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _die_with_the_driver(lifeline: Connection) -> None:
    """Two ways, because each has a hole.

    The driver holds the other end of the lifeline: when it is gone a thread here ends the whole group, unless native
    code keeps Python's lock. The fork server, our parent, ends with the driver: then the kernel ends this process, but
    not the ones it has started.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:  # it died before we asked
        os._exit(CANNOT_SEND)
    threading.Thread(target=_watch, args=(lifeline.fileno(), lifeline), daemon=True, name="nasbot-lifeline").start()


def _watch(lifeline: int, keep_open: Connection) -> None:
    try:
        os.read(lifeline, 1)
    except OSError:
        return  # the objective closed it: the kernel's signal is left
    os.killpg(0, signal.SIGKILL)


def _redirect_output(output: Connection) -> None:
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    output.close()
    faulthandler.enable(file=2, all_threads=False)


def _limit_memory(memory: int | None) -> int | None:
    """Let the address space grow by ``memory`` bytes; returns the limit to restore before the outcome is sent."""
    if memory is None:
        return None
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123  one read, before the limit
        pages = int(statm.read().split()[0])
    soft = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (soft, soft + ROOM_TO_REPORT))
    return soft + ROOM_TO_REPORT


class _Sender:
    """Frames into the results pipe, whole, from any thread."""

    def __init__(self, results: Connection) -> None:
        self._results = results
        self._lock = threading.Lock()

    def report(self, point: Point) -> None:
        self._send({"step": point.step, "value": point.value})

    def end(self, outcome: Outcome) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        try:
            self._send({"outcome": outcome_record(outcome), "peak_memory": peak})
        except FrameError as error:
            refused = Failed(FailureCause.EXCEPTION, f"the outcome cannot be taken: {error}")
            self._send({"outcome": outcome_record(refused), "peak_memory": peak})

    def _send(self, record: dict[str, object]) -> None:
        rest = memoryview(packed(record))
        with self._lock:
            try:
                while rest:
                    rest = rest[os.write(self._results.fileno(), rest) :]
            except OSError:
                os._exit(CANNOT_SEND)

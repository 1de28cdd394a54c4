"""What happens in the process of one evaluation: limits first, then the objective, then one frame with the outcome."""

from __future__ import annotations

import atexit
import faulthandler
import multiprocessing.util
import os
import resource
import signal
import sys
import threading
from typing import NoReturn

import numpy.random  # noqa: F401  numpy loads it when it is first used, which would be in every process

from nasbot.execution._frames import FrameSender
from nasbot.execution._supervisor import close_all_but
from nasbot.execution._tree import PAGE
from nasbot.execution.base import Job, Limits, Objective
from nasbot.execution.evaluation import LiveTrial, evaluate
from nasbot.trial import Failed, FailureCause, Outcome

ROOM_TO_REPORT = 64_000_000  # bytes kept back, so that running out of memory can be told


def run(objective: Objective, job: Job, limits: Limits, threads: int, results: int, output: int) -> NoReturn:
    """Evaluate one job in this process, send what became of it into the pipe ``results``, and end."""
    os.setsid()  # a session of its own: Ctrl-C at the terminal is not for it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _keep_only(results, output)
    faulthandler.enable(file=2, all_threads=False)
    atexit._clear()  # the fork server's own; they belong to its end
    _set_threads(threads)
    sender = FrameSender(results)
    try:
        outcome = _evaluated(objective, LiveTrial(job, sender.report), limits.memory)
        sender.end(outcome)
        _leave()
    except KeyboardInterrupt:  # somebody sent it here: end as it asks, so that this can be seen
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        os._exit(0)


def refuse(outcome: Outcome, results: int, output: int) -> NoReturn:
    """Send this outcome without evaluating anything."""
    _keep_only(results, output)
    FrameSender(results).end(outcome)
    os._exit(0)


def _evaluated(objective: Objective, live: LiveTrial, memory: int | None) -> Outcome:
    hard_limit = _limit_memory(memory)
    try:
        return evaluate(objective, live)
    except MemoryError:  # not even enough to say what failed
        return Failed(FailureCause.OOM, "MemoryError")
    finally:
        if hard_limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (hard_limit, hard_limit))


def _keep_only(results: int, output: int) -> None:
    """Of all that was inherited, only the pipes of this evaluation stay open; standard input is empty."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    close_all_but(0, 1, 2, results)


def _set_threads(threads: int) -> None:
    """The fork server was started with OMP_NUM_THREADS and its like; a torch that is loaded wants to be told again."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


def _limit_memory(memory: int | None) -> int | None:
    """Let this process allocate ``memory`` bytes more; returns the limit to restore before the outcome is sent.

    RLIMIT_DATA counts what a process can write to alone: its heap and its anonymous mappings. The data set that all
    workers map read-only costs nothing and is not counted, as it would be by RLIMIT_AS. An allocation beyond the limit
    is a MemoryError; what gets past it (shared memory, many processes) the supervisor sees.
    """
    if memory is None:
        return None
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123  one read, before the limit
        pages = int(statm.read().split()[5])
    soft = pages * PAGE + int(memory)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, soft + ROOM_TO_REPORT))
    return soft + ROOM_TO_REPORT


def _leave() -> None:
    """What a process owes at its end: its threads' work, its exit functions, its output."""
    threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter does; there is no public name for it
    multiprocessing.util._run_finalizers()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # closed by the objective
            continue

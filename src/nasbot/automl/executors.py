"""Where the networks of a search are trained: in this process, in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import math

from nasbot._system import n_cores
from nasbot.errors import OptionError
from nasbot.execution import Executor, Limits, RayExecutor, SerialExecutor, process_executor

# A trial ends itself when its time is up. One that does not (a hang, a single step that takes for ever) is ended.
HARD_FACTOR, HARD_EXTRA = 3.0, 120.0
KINDS = ("auto", "here", "local", "ray")
MAX_WORKERS = 256
# A process that has loaded PyTorch is there after a few seconds; shorter budgets are spent here.
WORTH_PROCESSES = 15.0


def executor_of(
    given: Executor | str,
    *,
    workers: int | None,
    seconds: float,
    memory_per_trial: int | None = None,
    address: str | None = None,
    cpus_per_trial: float = 1,
) -> Executor:
    """The executor itself, or the one that this word stands for, for trainings that take about ``seconds``.

    "local" trains each network in a process of its own, "ray" on the cluster at ``address``, "here" in this process;
    "auto" is local, but for one worker without a memory limit, which works here (``search`` also has very short
    budgets spent here). Without a number of workers a cluster
    is used as far as it has room.
    """
    if not isinstance(given, str):
        if workers is not None or memory_per_trial is not None:
            raise OptionError("workers and memory_per_trial: an executor that is given has its own; leave them out")
        return given
    check_place(given, memory_per_trial=memory_per_trial, address=address, cpus_per_trial=cpus_per_trial)
    n = checked_workers(workers)
    if given == "here" or (given == "auto" and n == 1 and memory_per_trial is None):
        return SerialExecutor()
    limits = Limits(HARD_FACTOR * seconds + HARD_EXTRA, memory_per_trial)
    if given != "ray":
        return process_executor(n, limits=limits, threads=1)
    return RayExecutor(address, cpus_per_trial=cpus_per_trial, slots=workers, limits=limits)


def check_place(
    given: str, *, memory_per_trial: int | None = None, address: str | None = None, cpus_per_trial: float = 1
) -> None:
    """OptionError unless these options belong together."""
    if given not in KINDS:
        raise OptionError(f"executor: expected one of {', '.join(KINDS)}, got {str(given)[:40]!r}")
    for name, is_given in (("address", address is not None), ("cpus_per_trial", cpus_per_trial != 1)):
        if given != "ray" and is_given:
            raise OptionError(f"{name}: only a Ray cluster has it; expected executor ray beside it")
    if given == "here" and memory_per_trial is not None:
        raise OptionError("memory_per_trial: networks that are trained here have none; expected executor local")
    Limits(memory=memory_per_trial)
    RayExecutor(cpus_per_trial=cpus_per_trial)  # which checks it


def is_too_short_for_processes(seconds: float | None) -> bool:
    """Whether a time budget would be over before a process of its own has trained anything."""
    return seconds is not None and seconds < WORTH_PROCESSES


def default_workers() -> int:
    """One per core, at most two: what a laptop bears while its owner works on it."""
    return max(1, min(2, n_cores()))


def checked_workers(workers: int | None) -> int:
    """The number of networks trained at a time; by default one per core, at most two."""
    if workers is None:
        return default_workers()
    if type(workers) is not int or not 1 <= workers <= MAX_WORKERS:
        raise OptionError(f"workers: expected a whole number from 1 to {MAX_WORKERS}, got {workers!r}")
    return workers


def parsed_bytes(text: str) -> int:
    """A number of bytes from "500M" or "2G" (of 1024), or a plain number."""
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    plain = text.strip().lower().removesuffix("b").removesuffix("i")
    unit = units.get(plain[-1:], 0)
    try:
        number = float(plain[:-1] if unit else plain) * (unit or 1)
    except ValueError:
        number = math.nan
    if not 1 <= number < 1 << 62:
        raise OptionError(f"memory: expected bytes, such as 500M or 2G, got {text[:40]!r}")
    return int(number)

"""Where the networks of a search are trained: in this process, in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import math

from nasbot._system import n_cores
from nasbot.automl.devices import Devices
from nasbot.errors import OptionError
from nasbot.execution import Executor, Limits, LocalExecutor, RayExecutor, SerialExecutor, process_executor

# A trial ends itself when its time is up. One that does not (a hang, a single step that takes for ever) is ended.
HARD_FACTOR, HARD_EXTRA = 3.0, 120.0
KINDS = ("auto", "here", "local", "ray")
MAX_WORKERS = 256
MOST_BY_DEFAULT = 16
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
    gpus_per_trial: float = 0,
    devices: Devices | None = None,
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
    own = devices or Devices()
    n = checked_workers(workers, own)
    if given == "here" and own.device == "cuda":
        raise OptionError("device: this process stays clear of CUDA; expected executor local beside --device cuda")
    if given == "auto" and own.cards:
        given = "local"
    if given == "here" or (given == "auto" and n == 1 and memory_per_trial is None):
        return SerialExecutor()
    limits = Limits(HARD_FACTOR * seconds + HARD_EXTRA, memory_per_trial)
    if given != "ray":
        if own.cards:  # only there has each evaluation an environment of its own
            return LocalExecutor(n, limits=limits, threads=1, devices=own.cards[:n])
        return process_executor(n, limits=limits, threads=1)
    gpus = gpus_per_trial or (1.0 if own.device == "cuda" else 0.0)
    return RayExecutor(address, cpus_per_trial=cpus_per_trial, gpus_per_trial=gpus, slots=workers, limits=limits)


def check_executor(given: object) -> None:
    """OptionError unless it is a word or an executor."""
    if not isinstance(given, str) and not all(hasattr(given, name) for name in ("slots", "submit", "wait")):
        expected = f"expected an object such as LocalExecutor(2), or one of {', '.join(KINDS)}"
        raise OptionError(f"executor: {expected}; got {str(given)[:40]!r}")


def check_place(
    given: str,
    *,
    memory_per_trial: int | None = None,
    address: str | None = None,
    cpus_per_trial: float = 1,
    gpus_per_trial: float = 0,
) -> None:
    """OptionError unless these options belong together."""
    if given not in KINDS:
        raise OptionError(f"executor: expected one of {', '.join(KINDS)}, got {str(given)[:40]!r}")
    only_there = {
        "address": address is not None,
        "cpus_per_trial": cpus_per_trial != 1,
        "gpus_per_trial": gpus_per_trial != 0,
    }
    for name, is_given in only_there.items():
        if given != "ray" and is_given:
            raise OptionError(f"{name}: only a Ray cluster has it; expected executor ray beside it")
    if given == "here" and memory_per_trial is not None:
        raise OptionError("memory_per_trial: networks that are trained here have none; expected executor local")
    Limits(memory=memory_per_trial)
    RayExecutor(cpus_per_trial=cpus_per_trial, gpus_per_trial=gpus_per_trial)  # which checks them


def is_too_short_for_processes(seconds: float | None) -> bool:
    """Whether a time budget would be over before a process of its own has trained anything."""
    return seconds is not None and seconds < WORTH_PROCESSES


def default_workers(cores: int | None = None) -> int:
    """One per core up to two, beyond that half of them, at most 16: what a machine bears beside its owner's work."""
    n = n_cores() if cores is None else cores
    return max(1, min(n, max(2, n // 2), MOST_BY_DEFAULT))


def checked_workers(workers: int | None, devices: Devices | None = None) -> int:
    """The number of networks trained at a time; by default one for each card, or a share of the cores."""
    cards = () if devices is None else devices.cards
    if workers is None:
        return len(cards) or default_workers()
    if cards and type(workers) is int and workers > len(cards):
        raise OptionError(
            f"workers: {workers} for {len(cards)} graphics card{'s' * (len(cards) > 1)}; each has its own"
        )
    if type(workers) is not int or not 1 <= workers <= MAX_WORKERS:
        raise OptionError(f"workers: expected a whole number from 1 to {MAX_WORKERS}, got {workers!r}")
    return workers


def parsed_bytes(text: str, what: str = "memory") -> int:
    """A number of bytes from "500M" or "2G" (of 1024), or a plain number."""
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    plain = text.strip().lower().removesuffix("b").removesuffix("i")
    unit = units.get(plain[-1:], 0)
    try:
        number = float(plain[:-1] if unit else plain) * (unit or 1)
    except ValueError:
        number = math.nan
    if not 1 <= number < 1 << 62:
        raise OptionError(f"{what}: expected bytes, such as 500M or 2G, got {text[:40]!r}")
    return int(number)

"""Where the networks of a search are trained: here, in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nasbot.errors import OptionError
from nasbot.execution import Executor, Limits, LocalExecutor, RayExecutor, SerialExecutor

# A trial ends itself when its time is up. One that does not (a hang, a single step that takes for ever) is ended.
HARD_FACTOR, HARD_EXTRA = 3.0, 120.0
KINDS = ("auto", "here", "local", "ray")


@dataclass(frozen=True)
class Place:
    """``local`` trains each network in processes of its own, ``ray`` on the cluster at ``address``.

    ``auto`` is local, but for one worker without a memory limit: that one works here, which needs no start and shares
    the data as they are. ``memory_per_trial`` is in bytes.
    """

    kind: str = "auto"
    memory_per_trial: int | None = None
    address: str | None = None
    cpus_per_trial: float = 1
    gpus_per_trial: float = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(f"executor: expected one of {', '.join(KINDS)}, got {str(self.kind)[:40]!r}")
        of_ray = {
            "address": self.address is not None,
            "cpus_per_trial": self.cpus_per_trial != 1,
            "gpus_per_trial": self.gpus_per_trial != 0,
        }
        if self.kind != "ray" and any(of_ray.values()):
            given = next(name for name, is_given in of_ray.items() if is_given)
            raise OptionError(f"{given}: only a Ray cluster has it; expected executor ray beside it")
        if self.kind == "here" and self.memory_per_trial is not None:
            raise OptionError("memory_per_trial: networks that are trained here have none; expected executor local")
        Limits(memory=self.memory_per_trial)
        RayExecutor(cpus_per_trial=self.cpus_per_trial, gpus_per_trial=self.gpus_per_trial)  # which checks them

    def executor(self, workers: int, seconds: float, *, all_slots: bool = False) -> Executor:
        """An executor for so many networks at a time, each of which trains itself for ``seconds``.

        ``all_slots``: on a cluster as many as there is room for.
        """
        is_alone = workers == 1 and self.memory_per_trial is None
        if self.kind == "here" or (self.kind == "auto" and is_alone):
            return SerialExecutor()
        limits = Limits(HARD_FACTOR * seconds + HARD_EXTRA, self.memory_per_trial)
        if self.kind != "ray":
            return LocalExecutor(workers, limits=limits, threads=1)
        return RayExecutor(
            self.address,
            cpus_per_trial=self.cpus_per_trial,
            gpus_per_trial=self.gpus_per_trial,
            slots=None if all_slots else workers,
            limits=limits,
        )


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

"""The seam between a study and whatever evaluates networks for it.

``nasbot.testing.executor_conformance`` checks the promises below on any implementation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from nasbot.architecture import Architecture
from nasbot.candidate import Candidate
from nasbot.errors import OptionError, StudyError
from nasbot.pacing import Bar
from nasbot.trial import Outcome, Point

# objective(arch) -> number, to be maximised (or minimised, if the study says so). One with a parameter named ``params``
# is given the candidate's; one with a parameter named ``trial`` the LiveTrial: report(step, value), the fidelity, a
# seed and a generator. It may return a Scored with details.
Objective: TypeAlias = Callable[..., object]


@dataclass(frozen=True)
class Job:
    """One evaluation to do: the trial's number, its candidate and fidelity, the study's seed, and a pacer's bars.

    ``draws_as`` is the trial whose random numbers it draws: of a promotion the first one below it; None: its own.
    """

    number: int
    candidate: Candidate
    seed: int = 0
    fidelity: float = 1.0
    bars: tuple[Bar, ...] = ()
    draws_as: int | None = None

    @property
    def arch(self) -> Architecture:
        """The candidate's network."""
        return self.candidate.arch


@dataclass(frozen=True)
class Limits:
    """How long one evaluation may take and how many bytes it may add to its process; None is no limit."""

    seconds: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("seconds", self.seconds), ("memory", self.memory)):
            if value is not None and (isinstance(value, bool) or not 0 < value < math.inf):
                raise OptionError(f"limit on {name}: expected a number > 0 or None, got {value!r}")


@dataclass(frozen=True)
class Reported:
    """A running evaluation reported a point of its curve."""

    number: int
    point: Point


@dataclass(frozen=True)
class Finished:
    """An evaluation ended, ``at`` seconds on the executor's clock."""

    number: int
    outcome: Outcome
    at: float


Event: TypeAlias = Reported | Finished


class Executor(Protocol):
    """Evaluates networks, a few at a time. Every implementation promises:

    - One end: every job that ``submit`` took leads to exactly one Finished, its Reported events come before it in the
      order they were made, and nothing comes after it.
    - Contained: however an evaluation ends (exception, limit, death of its process, nonsense returned) that is a Failed
      outcome with its cause. It raises nothing here and disturbs no other evaluation.
    - Paced: a training that reports less than its job's bars ask for ends there, as Stopped.
    - Finite: a Scored outcome holds a finite number. Reported values are finite; others are dropped.
    - Prompt: ``submit`` does not wait for the evaluation where that runs elsewhere; ``wait`` returns as soon as there
      is an event. With ``Limits``, an evaluation that crosses one is ended and fails as timeout or oom.
    - One clock: ``now`` never goes back, and ``at`` of a Finished is not later than ``now``.
    - Interruptible: where it blocks and where it runs the objective it does so inside ``interruption.allowed()``, and
      is whole if Interrupted is raised there. A wait of 0 seconds does not block.
    - Nothing left behind: after ``close`` none of its evaluations runs, and if the driver dies instead, none runs
      soon after.
    """

    @property
    def slots(self) -> int:
        """How many evaluations it runs at a time."""
        ...

    def now(self) -> float:
        """Seconds since the executor was made, on its own clock."""
        ...

    def start(self, objective: Objective) -> None:
        """Take the objective, once, before the first job; OptionError where it cannot be evaluated there."""
        ...

    def submit(self, job: Job) -> None:
        """Begin an evaluation. StudyError where all slots are taken or a job of this number is running."""
        ...

    def wait(self, timeout: float | None = None) -> Sequence[Event]:
        """The events since the last call; waits for one for up to ``timeout`` seconds of the executor's clock.

        Empty where time ran out or nothing is running. Where evaluations run in the caller's own process the wait is
        as long as the evaluation.
        """
        ...

    def cancel(self, number: int) -> None:
        """End this evaluation as Cancelled; StudyError where it is not running."""
        ...

    def close(self) -> None:
        """End everything; may be called again, nothing else may."""
        ...


def check_slots(slots: object) -> int:
    """The number of slots, if it is a whole number >= 1."""
    if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
        raise OptionError(f"workers: expected a whole number >= 1, got {slots!r}")
    return slots


def check_can_submit(job: Job, running: Sequence[int], slots: int) -> None:
    """StudyError where this job cannot begin beside those running."""
    if job.number in running:
        raise StudyError(f"trial {job.number} is running already")
    if len(running) >= slots:
        raise StudyError(f"trial {job.number}: all {slots} slots are taken")

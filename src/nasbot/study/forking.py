"""A new study that begins with what another has found, where that is still valid under the new settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.architecture.space import SearchSpace
from nasbot.study.settings import Direction
from nasbot.trial import Point, Scored, Trial, plain_json

if TYPE_CHECKING:
    from nasbot.study.view import StudyView

FORK = "fork"  # the searcher's name in the notes of the trials that were taken over


@dataclass(frozen=True)
class Fork:
    """The trials that a new study takes over, and why it takes no more of them."""

    trials: tuple[Trial, ...]
    n_completed: int  # of the old study
    reasons: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()  # that the trials had

    def __str__(self) -> str:
        why = f" ({'; '.join(self.reasons)})" if self.reasons else ""
        return f"begins with {len(self.trials)} of {self.n_completed} completed trials{why}"


def fork_of(
    old: StudyView, space: SearchSpace, *, direction: Direction, context: Mapping[str, Json], source: str
) -> Fork:
    """What a study with these settings can take over from ``old``, in the order in which it was recorded.

    A value is valid where the context, on which values depend (the data, the recipe), is the same; a network where it
    lies in the new space. Searcher, seed and pool may differ, and the direction, which only turns the sign.
    """
    completed = old.history.completed
    if old.settings.get("context") != plain_json(context):
        return Fork((), len(completed), ("the context differs, and values depend on it",))
    within = [trial for trial in completed if trial.arch in space]
    taken = tuple(_taken(trial, rank, old, direction, source) for rank, trial in enumerate(within))
    n_outside = len(completed) - len(within)
    reasons = (f"{n_outside} lie outside the new space",) if n_outside else ()
    return Fork(taken, len(completed), reasons, tuple(trial.number for trial in within))


def _taken(trial: Trial, rank: int, old: StudyView, direction: Direction, source: str) -> Trial:
    def turned(value: float) -> float:
        return direction.turned(old.outward(value))

    value = 0.0 if trial.value is None else trial.value  # completed: it has one
    details = trial.outcome.details if isinstance(trial.outcome, Scored) else {}
    return replace(
        trial,
        number=rank,
        rank=rank,
        proposed_after=rank,
        notes={"searcher": FORK, "forked_from": {"study": source, "trial": trial.number}},
        outcome=Scored(turned(value), details),
        curve=tuple(Point(point.step, turned(point.value)) for point in trial.curve),
    )


def missing_from(trials: Sequence[Trial], pool: Sequence[Architecture]) -> list[Architecture]:
    """The networks of the pool that are not among these trials'."""
    known = {trial.arch.fingerprint for trial in trials}
    return [arch for arch in pool if arch.fingerprint not in known]

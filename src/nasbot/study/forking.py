"""A new study that begins with what another has found, where that is still valid under the new settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nasbot._json import plain_json
from nasbot._typing import Json
from nasbot.candidate import Candidate
from nasbot.domain import Domain
from nasbot.trial import FORK, Provenance, Trial

if TYPE_CHECKING:
    from nasbot.study.view import StudyView


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


def fork_of(old: StudyView, domain: Domain, *, context: Mapping[str, Json], source: str) -> Fork:
    """What a study with these settings can take over from ``old``, in the order in which it was recorded.

    A value is valid where the context, on which values depend (the data, the recipe), is the same; a network where it
    lies in the new domain. Searcher, seed, pool and direction may differ.
    """
    completed = old.history.completed
    if old.settings.get("context") != plain_json(context):
        return Fork((), len(completed), ("the context differs, and values depend on it",))
    within = [trial for trial in completed if trial.candidate in domain]
    taken = tuple(_taken(trial, rank, source) for rank, trial in enumerate(within))
    n_outside = len(completed) - len(within)
    reasons = (f"{n_outside} lie outside the new domain",) if n_outside else ()
    return Fork(taken, len(completed), reasons, tuple(trial.number for trial in within))


def _taken(trial: Trial, rank: int, source: str) -> Trial:
    origin = Provenance(searcher=FORK, of_study=source, of_trial=trial.number)
    return replace(
        trial, number=rank, rank=rank, proposed_after=rank, origin=origin, forecast=None, promoted_from=None, notes={}
    )


def missing_from(trials: Sequence[Trial], pool: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of the pool that are not among these trials'."""
    known = {trial.candidate.fingerprint for trial in trials}
    return [candidate for candidate in pool if candidate.fingerprint not in known]

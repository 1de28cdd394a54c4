"""Who gets a longer training: asynchronous promotion over the rungs of a fidelity, as a pure function of the history.

A trial at a rung below the highest may be promoted once: its candidate is then trained again, at the next rung. Nothing
waits for a rung to fill, and nothing lives in a scheduler's memory, so a resume and a replay decide the same.
"""

from __future__ import annotations

import math
from enum import StrEnum

from nasbot.domain import Fidelity, share_in_words
from nasbot.searchers.again import repeat_due
from nasbot.trial import FINAL, History, Stopped, Trial


def next_rung(fidelity: Fidelity, at: float) -> float | None:
    """The rung above this one, None at the highest."""
    return next((rung for rung in fidelity.rungs if rung > at * (1 + 1e-9)), None)


def promotable(history: History, fidelity: Fidelity) -> list[Trial]:
    """Completed trials below the highest rung whose candidates are not known at the next one.

    Higher rungs come first, and within a rung better values; of equals the one recorded first.
    """
    found = []
    for trial in history.completed:
        above = next_rung(fidelity, trial.fidelity)
        if above is not None and (trial.candidate.fingerprint, above) not in history.seen_at:
            found.append(trial)
    return sorted(found, key=lambda trial: (-trial.fidelity, -history.merit(trial), trial.rank))


def standing(history: History, trial: Trial) -> tuple[int, int]:
    """How many at the rung of this completed trial have better values, and how many it has seen, stopped ones too."""
    rung = [other for other in history.evaluated.trials if math.isclose(other.fidelity, trial.fidelity)]
    completed = [other for other in rung if other.value is not None]
    return sum(history.merit(other) > history.merit(trial) for other in completed), len(rung)


def by_rank(history: History, fidelity: Fidelity) -> Trial | None:
    """The trial to promote by successive halving: among the best 1/factor of all that its rung has seen.

    None where no rung has one: a new candidate is due.
    """
    judged: set[float] = set()
    for trial in promotable(history, fidelity):
        if trial.fidelity in judged:  # a better one of its rung was not good enough
            continue
        judged.add(trial.fidelity)
        n_better, n_seen = standing(history, trial)
        if n_better < math.floor(n_seen / fidelity.factor):
            return trial
    return None


def remaining_cost(fidelity: Fidelity, at: float | None) -> float:
    """Full trainings that it takes to bring a candidate from this rung to the highest; from none for a new one."""
    return sum(rung for rung in fidelity.rungs if at is None or rung > at * (1 + 1e-9))


def mean_share(fidelity: Fidelity) -> float:
    """Of a full training, what a trial costs on average where every rung promotes its best 1/factor."""
    counts = [fidelity.factor**-i for i in range(len(fidelity.rungs))]
    return sum(n * rung for n, rung in zip(counts, fidelity.rungs, strict=True)) / sum(counts)


# -- why ---------------------------------------------------------------------------------------------------------------


class Standing(StrEnum):
    """What became of a training, as far as longer ones go."""

    PROMOTED = "promoted"  # its candidate is trained at a higher rung
    PROMOTABLE = "promotable"  # among those of its rung that successive halving would promote
    DISCARDED = "discarded"  # below them
    STOPPED = "stopped"  # by a pacer
    FULL = "full"  # there is no longer one
    FINAL = "final"


def standing_of(history: History, trial: Trial, fidelity: Fidelity) -> Standing | None:
    """Where a training with an outcome stands now; None for one without a value that was not stopped either."""
    if isinstance(trial.outcome, Stopped):
        return Standing.STOPPED
    if trial.value is None:
        return None
    if trial.origin.searcher == FINAL:
        return Standing.FINAL
    if next_rung(fidelity, trial.fidelity) is None:
        return Standing.FULL
    if promoted_as(history, trial) is not None:
        return Standing.PROMOTED
    n_better, n_seen = standing(history, trial)
    return Standing.PROMOTABLE if n_better < math.floor(n_seen / fidelity.factor) else Standing.DISCARDED


def promoted_as(history: History, trial: Trial) -> int | None:
    """The first trial of the same candidate at a higher fidelity, None where there is none."""
    return next(
        (t.number for t in history if t.fidelity > trial.fidelity * (1 + 1e-9) and t.candidate == trial.candidate), None
    )


def why(history: History, trial: Trial, fidelity: Fidelity | None) -> str:
    """Why a training was stopped, promoted, repeated, discarded or a final, in words; empty: nothing to say."""
    if isinstance(trial.outcome, Stopped):
        return trial.message
    if trial.origin.searcher == FINAL:
        return f"final: the candidate of trial {trial.origin.of_trial}, trained again with another seed"
    parts = []
    if trial.origin.was_proposed and trial.origin.of_trial is not None:
        repeat = repeat_due(history.at_proposal(trial.number))
        parts.append(f"repeats trial {trial.origin.of_trial}" if repeat is None else str(repeat))
    if trial.promoted_from is not None:
        before = history.at_proposal(trial.number)
        source = before[trial.promoted_from]
        placed = "" if source.value is None else f", where it was {_place(before, source)}"
        parts.append(f"promoted from trial {source.number} at {share_in_words(source.fidelity)}{placed}")
    if fidelity is not None and trial.value is not None and trial.fidelity < 1:
        stands = standing_of(history, trial, fidelity)
        then = f"promoted as trial {promoted_as(history, trial)}" if stands is Standing.PROMOTED else str(stands)
        n_seen = standing(history, trial)[1]
        n_cut = math.floor(n_seen / fidelity.factor)
        parts.append(f"{then}: {_place(history, trial)} at {share_in_words(trial.fidelity)}, the best {n_cut} go on")
    return "; ".join(parts)


def _place(history: History, trial: Trial) -> str:
    n_better, n_seen = standing(history, trial)
    return f"place {n_better + 1} of {n_seen}"

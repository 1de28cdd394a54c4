"""Who gets a longer training: asynchronous promotion over the rungs of a fidelity, as a pure function of the history.

A trial at a rung below the highest may be promoted once: its candidate is then trained again, at the next rung. Nothing
waits for a rung to fill, and nothing lives in a scheduler's memory, so a resume and a replay decide the same.
"""

from __future__ import annotations

import math

from nasbot.domain import Fidelity
from nasbot.trial import History, Trial


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

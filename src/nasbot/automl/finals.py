"""What the end of a budget is spent on: the best candidates once more, each with another seed.

A second training of a good candidate is a second draw of its noise, and another voice in the ensemble. The best of all
trainings is the single network that a person gets.
"""

from __future__ import annotations

import math
import statistics

from nasbot.candidate import Candidate
from nasbot.trial import FINAL, History

DISTINCT = 8  # candidates that finals go round
ENOUGH_PAIRS = 3  # candidates trained for two lengths, from which the longer one is judged


def finals_of(history: History, n: int, *, longest: float = math.inf, fidelity: float = 1.0) -> list[Candidate]:
    """The ``n`` candidates to train again, in this order: round and round the best whose trainings took no longer.

    Those that had fewer finals of this fidelity come first, and of these the better ones.
    """
    best: dict[Candidate, float] = {}
    for trial in history.ranked:
        if trial.candidate not in best and len(best) < DISTINCT:
            best[trial.candidate] = (trial.seconds or 0.0) * fidelity / trial.fidelity
    again = [t.candidate for t in history if t.origin.searcher == FINAL and t.fidelity == fidelity]
    counts = {candidate: again.count(candidate) for candidate, seconds in best.items() if seconds <= longest}
    chosen: list[Candidate] = []
    for _ in range(n if counts else 0):
        chosen.append(min(counts, key=lambda candidate: counts[candidate]))
        counts[chosen[-1]] += 1
    return chosen


def final_fidelity(history: History, stretch: float) -> float:
    """How long finals are: ``stretch`` times a full training, unless those seen so far were not worth it.

    They are judged by candidates that have been trained for both lengths, once there are ``ENOUGH_PAIRS`` of them.
    """
    values = {length: _best_costs(history, length) for length in (1.0, stretch)}
    both = values[1.0].keys() & values[stretch].keys()
    if stretch == 1.0 or len(both) < ENOUGH_PAIRS:
        return stretch
    gained = [values[1.0][candidate] - values[stretch][candidate] for candidate in both]
    return stretch if statistics.median(gained) > 0 else 1.0


def _best_costs(history: History, fidelity: float) -> dict[Candidate, float]:
    """Of each candidate with values at this fidelity the best, turned so that lower is better."""
    costs: dict[Candidate, float] = {}
    for trial in history.completed:
        if trial.fidelity == fidelity and trial.value is not None:
            cost = -history.direction.turned(trial.value)
            costs[trial.candidate] = min(cost, costs.get(trial.candidate, math.inf))
    return costs

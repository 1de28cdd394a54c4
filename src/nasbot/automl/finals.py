"""What the end of a budget is spent on: the best candidates once more, each with another seed.

A second training of a good candidate is a second draw of its noise, and another voice in the ensemble. The best of all
trainings is the single network that a person gets.
"""

from __future__ import annotations

import math

from nasbot.candidate import Candidate
from nasbot.trial import FINAL, History

DISTINCT = 8  # candidates that finals go round


def finals_of(history: History, n: int, *, longest: float = math.inf) -> list[Candidate]:
    """The ``n`` candidates to train again, in this order: round and round the best whose trainings took no longer.

    Those that had fewer finals come first, and of these the better ones.
    """
    best: dict[Candidate, float] = {}
    for trial in history.ranked:
        if trial.candidate not in best and len(best) < DISTINCT:
            best[trial.candidate] = trial.seconds or 0.0
    again = [trial.candidate for trial in history if trial.origin.searcher == FINAL]
    counts = {candidate: again.count(candidate) for candidate, seconds in best.items() if seconds <= longest}
    chosen: list[Candidate] = []
    for _ in range(n if counts else 0):
        chosen.append(min(counts, key=lambda candidate: counts[candidate]))
        counts[chosen[-1]] += 1
    return chosen

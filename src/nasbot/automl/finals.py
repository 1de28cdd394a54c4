"""What the end of a budget is spent on: the best candidates once more, each with another seed.

A second training of a good candidate is a second draw of its noise, and another voice in the ensemble. The best of all
trainings is the single network that a person gets.
"""

from __future__ import annotations

from nasbot.candidate import Candidate
from nasbot.trial import History

DISTINCT = 6  # candidates that finals go round


def finals_of(history: History, n: int) -> list[Candidate]:
    """The ``n`` candidates to train again, in this order: round and round the best that have a value."""
    best = list(dict.fromkeys(trial.candidate for trial in history.ranked))[:DISTINCT]
    return [best[i % len(best)] for i in range(n)] if best else []

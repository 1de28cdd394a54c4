"""When a good candidate is evaluated once more: where the best two differ by less than the noise lets one tell.

A pure function of the history, for any searcher. The noise is what evaluations of one candidate at full fidelity differ
by, so the first repeat is made to learn it; where that gives the same value again, evaluations are deterministic and
nothing more is repeated.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from nasbot.trial import History, Trial

LEAST = 10  # candidates evaluated at full fidelity, before which nothing is repeated
MOST_EACH = 4  # evaluations of one candidate
MOST_SHARE = 0.2  # of all evaluations at full fidelity, for repeats


@dataclass(frozen=True)
class Repeat:
    """Whose candidate to evaluate again, and what that is worth."""

    of: Trial  # the first of its candidate
    rival: Trial | None = None  # the first of the other of the best two; None: the noise is not known yet
    difference: float = 0.0  # of the means of the two
    error: float = 0.0  # its standard error
    error_after: float = 0.0  # the same after this evaluation

    def __str__(self) -> str:
        if self.rival is None:
            return f"repeats trial {self.of.number}, the best so far, to learn how much evaluations of a network differ"
        return (
            f"repeats trial {self.of.number}: the best two, it and trial {self.rival.number}, differ by "
            f"{self.difference:.3g}, within the standard error of {self.error:.3g}; this brings it to "
            f"{self.error_after:.3g}"
        )


def repeat_due(history: History) -> Repeat | None:
    """The evaluation that tells the best two candidates further apart; None where there is none worth it."""
    by_candidate: dict[str, list[Trial]] = defaultdict(list)
    for trial in history.completed:
        if trial.fidelity == 1:
            by_candidate[trial.candidate.fingerprint].append(trial)
    groups = sorted(by_candidate.values(), key=lambda trials: -_mean(history, trials))  # of equals the first recorded
    n = sum(map(len, groups))
    if len(groups) < LEAST or n - len(groups) >= MOST_SHARE * n:
        return None
    pending = {trial.candidate.fingerprint for trial in history.pending}
    first, second = groups[:2]
    if {first[0].candidate.fingerprint, second[0].candidate.fingerprint} & pending:
        return None
    variance = _noise_variance(history, groups)
    if variance is None:
        return Repeat(first[0])
    difference = _mean(history, first) - _mean(history, second)
    error = math.sqrt(variance * (1 / len(first) + 1 / len(second)))
    again, other = (second, first) if len(second) < len(first) else (first, second)
    if difference >= error or len(again) >= MOST_EACH:  # without noise the error is 0
        return None
    after = math.sqrt(variance * (1 / (len(again) + 1) + 1 / len(other)))
    return Repeat(again[0], other[0], difference, error, after)


def _mean(history: History, trials: Sequence[Trial]) -> float:
    return fmean(history.merit(trial) for trial in trials)


def _noise_variance(history: History, groups: Sequence[Sequence[Trial]]) -> float | None:
    """Pooled over the candidates that were evaluated more than once; None where none was."""
    squares = [(history.merit(t) - _mean(history, trials)) ** 2 for trials in groups for t in trials if len(trials) > 1]
    freedom = sum(len(trials) - 1 for trials in groups)
    return sum(squares) / freedom if freedom else None

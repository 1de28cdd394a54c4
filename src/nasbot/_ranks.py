"""Average ranks and Spearman's correlation; scipy.stats has both, and its import takes longer than a fit."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - 0.5 * (count - 1))[place.reshape(-1)], np.float64)


def rank_correlation(a: ArrayLike, b: ArrayLike) -> float:
    """Spearman's; NaN where one of the two does not vary."""
    ranks = [average_ranks(values) for values in (a, b)]
    x, y = (rank - rank.mean() if len(rank) else rank for rank in ranks)
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / scale if scale > 0 else math.nan

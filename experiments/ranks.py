"""Rank correlation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation; NaN where one side does not vary."""
    if len(x) < 2:
        return float("nan")
    a, b = rankdata(x), rankdata(y)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else float("nan")

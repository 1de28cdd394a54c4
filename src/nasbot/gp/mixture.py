"""An ensemble's prediction is a mixture: equal weights over the hyper-parameter samples, a normal for each.

All functions take means and variances (samples, m) and reduce over samples.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from nasbot.gp.hyperparameters import FloatArray


def mixture_moments(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (m,): the law of total variance, so disagreement between samples counts as uncertainty."""
    return mean.mean(axis=0), variance.mean(axis=0) + mean.var(axis=0)


def mixture_cdf(mean: FloatArray, variance: FloatArray, at: FloatArray) -> FloatArray:
    """Probability (m,) of a value at most ``at`` (m,)."""
    return np.asarray(ndtr((at - mean) / np.sqrt(variance)).mean(axis=0))


def mixture_log_density(mean: FloatArray, variance: FloatArray, at: FloatArray) -> FloatArray:
    """Log density (m,) at ``at`` (m,)."""
    logs = -0.5 * (np.log(2.0 * np.pi * variance) + (at - mean) ** 2 / variance)
    return np.asarray(logsumexp(logs, axis=0) - np.log(len(mean)))


def mixture_quantile(mean: FloatArray, variance: FloatArray, probability: float) -> FloatArray:
    """The value (m,) not exceeded with this probability in (0, 1), by bisection between the samples' own quantiles."""
    quantiles = mean + np.sqrt(variance) * ndtri(probability)
    low, high = quantiles.min(axis=0), quantiles.max(axis=0)
    for _ in range(60):  # 2^-60 of the bracket is below rounding
        middle = 0.5 * (low + high)
        is_low = mixture_cdf(mean, variance, middle) < probability
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return np.asarray(0.5 * (low + high))

"""Acquisition functions of Section 2.1: how much a network is worth evaluating, given what is believed about it.

All take the mean and standard deviation of the belief, arrays of any one shape, and return utilities of that shape, the
larger the better. ``averaged`` then takes the mean over hyper-parameter samples (the first axis).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr

Floats = NDArray[np.float64]

_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)
_HALF_LOG_PI_OVER_2 = 0.5 * math.log(math.pi / 2)
# Below it 1 - |z| times the Mills ratio has lost all its digits and its expansion 1/z^2 is exact to double precision.
_FAR = -1e5


def expected_improvement(mean: Floats, sd: Floats, best_value: float | Floats) -> Floats:
    """EI = sd * (φ(z) + z Φ(z)) with z = (mean - best) / sd; underflows to 0 from about z = -38."""
    z = (mean - best_value) / sd
    density = np.exp(-0.5 * z**2 - _LOG_SQRT_2_PI)
    improvement: Floats = sd * (density + z * ndtr(z))
    return improvement


def log_expected_improvement(mean: Floats, sd: Floats, best_value: float | Floats) -> Floats:
    """log EI, finite and accurate wherever z = (mean - best) / sd is: log h(z) + log sd.

    h(z) = φ(z) + z Φ(z) cancels for negative z; there h(z) = φ(z) (1 - |z| R(|z|)) with the Mills ratio R from erfcx.
    """
    z = (mean - best_value) / sd
    return _log_h(z) + np.log(sd)


def _log_h(z: Floats) -> Floats:
    near = np.maximum(z, -1.0)
    log_near = np.log(np.exp(-0.5 * near**2 - _LOG_SQRT_2_PI) + near * ndtr(near))
    below = np.clip(z, _FAR, -1.0)
    log_mills = np.log(erfcx(-below / math.sqrt(2))) + _HALF_LOG_PI_OVER_2
    log_rest = np.log(-np.expm1(np.log(-below) + log_mills))  # |z| R(|z|) is between 0.65 and 1 - 1e-10
    log_below = -0.5 * below**2 - _LOG_SQRT_2_PI + log_rest
    far = np.minimum(z, _FAR)
    log_far = -0.5 * far**2 - _LOG_SQRT_2_PI - 2 * np.log(-far)
    log_h: Floats = np.where(z > -1.0, log_near, np.where(z > _FAR, log_below, log_far))
    return log_h


def upper_confidence_bound(mean: Floats, sd: Floats, n_evaluated: int) -> Floats:
    """mean + sqrt(b) sd with b = 0.5 log(2 n + 1), a bonus that grows slowly with the number of evaluations."""
    return mean + math.sqrt(0.5 * math.log(2 * n_evaluated + 1)) * sd


def uniform(mean: Floats, *, rng: np.random.Generator) -> Floats:
    """Uniform(0, 1) whatever is believed: the fitness of RAND (App. C.1)."""
    return rng.random(mean.shape)


def averaged(utility: Floats) -> Floats:
    """The mean over hyper-parameter samples, the first axis."""
    mean: Floats = utility.mean(axis=0)
    return mean


def log_averaged(log_utility: Floats) -> Floats:
    """The logarithm of the mean over hyper-parameter samples of utilities given as logarithms."""
    mean: Floats = logsumexp(log_utility, axis=0) - math.log(log_utility.shape[0])
    return mean


def log_probability_positive(mean: Floats, sd: Floats) -> Floats:
    """log P(N(mean, sd²) > 0): feasibility from a latent belief."""
    log_probability: Floats = log_ndtr(mean / sd)
    return log_probability

"""Is the belief honest? Leave-one-out checks in closed form, at the hyper-parameters it has.

Each observation is predicted from all others, noise included. The hyper-parameters (and the warp) have seen the
observation, so the figures flatter a little when observations are few; refitting n times would not be "at any moment".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nasbot.gp.hyperparameters import FloatArray
from nasbot.gp.mixture import mixture_cdf, mixture_log_density, mixture_moments
from nasbot.gp.posterior import Posterior


@dataclass(frozen=True, eq=False)
class Calibration:
    """Leave-one-out figures of an ensemble, in standardised units."""

    mean: FloatArray  # (n,) prediction of each observation from the others
    variance: FloatArray  # (n,), noise included
    probability: FloatArray  # (n,) predicted probability of a value at most the observed: uniform when calibrated
    log_density: FloatArray  # (n,) predicted log density of the observed value
    level: float = 0.9

    @property
    def n(self) -> int:
        """How many observations were left out in turn."""
        return len(self.mean)

    @property
    def coverage(self) -> float:
        """Share of observations inside their central interval of probability ``level``; ``level`` when calibrated."""
        return float(np.mean(np.abs(self.probability - 0.5) <= 0.5 * self.level))

    @property
    def log_predictive_density(self) -> float:
        """Mean log density per observation; higher is better, -1.42 is what knowing nothing but the spread gives."""
        return float(self.log_density.mean())


def left_out(posterior: Posterior, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (s, n) of each observation's value, noise included, from all others, for each sample.

    Rasmussen and Williams, eq. 5.12: μ₋ᵢ = yᵢ - [Qy]ᵢ/Qᵢᵢ, σ²₋ᵢ = 1/Qᵢᵢ, with Q = (K + η²I)⁻¹ in full: with the
    directions that clipping took out of predictions, which noise explains. Pending points have no say.
    """
    n = len(values)
    precision, solved = (posterior.whitener[:, :n, :n] ** 2).sum(axis=1), posterior.weights[:, :n].copy()
    for s, unexplained in enumerate(posterior.unexplained):
        if unexplained is not None:
            precision[s] += (unexplained**2).sum(axis=0)
            solved[s] += unexplained.T @ (unexplained @ values)
    return values - solved / precision, 1.0 / precision


def leave_one_out(posterior: Posterior, values: FloatArray, level: float = 0.9) -> Calibration:
    """Calibration of an ensemble on its own observations, standardised values (n,)."""
    means, variances = left_out(posterior, values)
    mean, variance = mixture_moments(means, variances)
    probability = mixture_cdf(means, variances, values)
    return Calibration(mean, variance, probability, mixture_log_density(means, variances, values), level)

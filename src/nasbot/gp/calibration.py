"""Is the belief honest? Leave-one-out checks in closed form, at the hyper-parameters it has.

Each observation is predicted from all others, noise included. The hyper-parameters (and the warp) have seen the
observation, so the figures flatter a little when observations are few; refitting n times would not be "at any moment".

A search asks about networks unlike those it knows, and there intervals that cover 90 % left out cover 74 to 87 %
(docs/results/surrogates.md). So what is shown is widened by how forecasts of the same search have done (`widening`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nasbot.gp.hyperparameters import FloatArray
from nasbot.gp.mixture import mixture_cdf, mixture_log_density, mixture_moments
from nasbot.gp.posterior import Posterior

# Chosen on searches of f1, f2, f3 and the released MLP function (45 evaluations, seeds 1000 and 1001).
FIRST_WIDENING = 1.3
WIDENING_STEP = 0.3  # of its logarithm, for a forecast that missed
MOST_FORECASTS = 200  # the latest, that a searcher looks at
LEAST_WIDENING, MOST_WIDENING = 0.5, 4.0


def widening(inside: Sequence[bool], level: float = 0.9) -> float:
    """By how much to stretch an interval, after forecasts of this level that held the value or did not, in their order.

    Each miss stretches the next, each hit narrows it by so much less that the two cancel where ``level`` of them hit
    (adaptive conformal inference). Whatever the belief gets wrong, coverage then tends to ``level``.
    """
    log_widening = math.log(FIRST_WIDENING)
    for hit in inside:
        log_widening += WIDENING_STEP * ((not hit) - (1.0 - level))
        log_widening = min(max(log_widening, math.log(LEAST_WIDENING)), math.log(MOST_WIDENING))
    return math.exp(log_widening)


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

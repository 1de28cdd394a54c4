"""P(feasible): how likely a network is to be evaluated at all, learned from those that failed.

A latent function is conditioned on +1 for networks that gave a value and -1 for those that failed because of what they
are. Far from everything it is optimistic: most networks train. Most of its variance has the belief's own kernel, so
that what failures have in common is learned. That kernel is as smooth as the objective, and no smooth function passes
through one failure among many successes. What it misses is not noise, but belongs to the network and to those most
like it: a tenth of the variance has the same kernel raised to a power under which a network hardly resembles the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbot.acquisition.functions import log_probability_positive
from nasbot.gp.conditioning import conditioned, explained_variance

Floats = NDArray[np.float64]

PRIOR_MEAN = 1.0  # P(feasible) = 0.84 where nothing is known
NOISE_VARIANCE = 0.01
LOCAL_SHARE = 0.1  # of the variance
TO_THE_NEAREST = 0.2  # local correlation of a typical network with the nearest other one, at most
# Log loss (area under the curve) on 70 networks after 70 others, seeds 0 to 5, with a noise of 0.1 and no local part,
# and with these: where the largest fifth fails 0.094 (0.992), 0.107 (0.984), where a label does 0.076 (0.979), 0.082
# (0.979), where every tenth does by chance 0.580 (0.571), 0.697 (0.541). A failed network's own P: 1.000, 0.000.
# Failures among the last 15 of 30 where wide networks fail, seeds 1 to 4: 29 and 29 of 60.
SAME = 1.0 - 1e-9  # correlation from which two networks are the same one


@dataclass(frozen=True, eq=False)
class Feasibility:
    """Conditioned on outcomes; asked through correlations with the networks it knows."""

    lower: Floats
    weights: Floats
    power: float  # of the correlation, in the local part

    @classmethod
    def of(cls, correlation: Floats, succeeded: NDArray[np.bool_]) -> Feasibility:
        """From the correlation (n, n) between networks, 1 on its diagonal, and which of them gave a value."""
        power = _local_power(correlation)
        gram = _positive(_with_local(correlation, power)) + NOISE_VARIANCE * np.eye(len(correlation))
        return cls(*conditioned(gram, np.where(succeeded, 1.0, -1.0) - PRIOR_MEAN), power)

    def log_probability(self, cross_correlation: Floats) -> Floats:
        """log P(feasible) of m networks from their correlations (n, m) with the known ones."""
        cross = _with_local(cross_correlation, self.power)
        mean = PRIOR_MEAN + cross.T @ self.weights
        # No n observations can tell more than n of the very point; less comes from an indefinite kernel alone.
        least = NOISE_VARIANCE / (len(self.weights) + NOISE_VARIANCE)
        variance = np.maximum(1.0 - explained_variance(self.lower, cross), least)
        return log_probability_positive(mean, np.sqrt(variance))


def _with_local(correlation: Floats, power: float) -> Floats:
    if power == 1.0:
        return correlation
    local: Floats = (1.0 - LOCAL_SHARE) * correlation + LOCAL_SHARE * np.maximum(correlation, 0.0) ** power
    return local


def _local_power(correlation: Floats) -> float:
    """At least 1: under it the median network resembles the nearest other one by ``TO_THE_NEAREST`` at most."""
    nearest = np.where(correlation < SAME, correlation, 0.0).max(axis=1)
    typical = float(np.median(nearest[nearest > 0.0])) if np.any(nearest > 0.0) else 0.0
    return max(1.0, float(np.log(TO_THE_NEAREST) / np.log(typical))) if typical > 0.0 else 1.0


def _positive(correlation: Floats) -> Floats:
    """Without its negative eigenvalues: eq. (7) need not be positive definite."""
    eigenvalues, vectors = np.linalg.eigh(correlation)
    if eigenvalues[0] >= 0:
        return correlation
    clipped: Floats = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    return clipped

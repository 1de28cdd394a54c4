"""P(feasible): how likely a network is to be evaluated at all, learned from those that failed.

A latent function with the belief's own kernel, scaled to unit variance, is conditioned on +1 for networks that gave a
value and -1 for those that failed because of what they are. Far from everything it is optimistic: most networks train.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from nasbot.acquisition.functions import log_probability_positive

Floats = NDArray[np.float64]

PRIOR_MEAN = 1.0  # P(feasible) = 0.84 where nothing is known
NOISE_VARIANCE = 0.1


@dataclass(frozen=True, eq=False)
class Feasibility:
    """Conditioned on outcomes; asked through correlations with the networks it knows."""

    lower: Floats
    weights: Floats

    @classmethod
    def of(cls, correlation: Floats, succeeded: NDArray[np.bool_]) -> Feasibility:
        """From the correlation (n, n) between networks, 1 on its diagonal, and which of them gave a value."""
        gram = _positive(correlation) + NOISE_VARIANCE * np.eye(len(correlation))
        lower, _ = cho_factor(gram, lower=True)
        residual = np.where(succeeded, 1.0, -1.0) - PRIOR_MEAN
        return cls(np.tril(lower), cho_solve((lower, True), residual))

    def log_probability(self, cross_correlation: Floats) -> Floats:
        """log P(feasible) of m networks from their correlations (n, m) with the known ones."""
        mean = PRIOR_MEAN + cross_correlation.T @ self.weights
        whitened = solve_triangular(self.lower, cross_correlation, lower=True)
        # No n observations can tell more than n of the very point; less comes from an indefinite kernel alone.
        least = NOISE_VARIANCE / (len(self.weights) + NOISE_VARIANCE)
        variance = np.maximum(1.0 - (whitened**2).sum(axis=0), least)
        return log_probability_positive(mean, np.sqrt(variance))


def _positive(correlation: Floats) -> Floats:
    """Without its negative eigenvalues: eq. (7) need not be positive definite."""
    eigenvalues, vectors = np.linalg.eigh(correlation)
    if eigenvalues[0] >= 0:
        return correlation
    clipped: Floats = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    return clipped

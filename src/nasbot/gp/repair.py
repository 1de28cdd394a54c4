"""Positive definiteness, repaired in one place and never silently.

Eq. (7) need not be positive definite, and duplicates at distance 0 make any Gram matrix singular.
Every deviation from the textbook formulas is counted in a `Repairs`, which each belief and prediction carries.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from nasbot.gp.hyperparameters import FloatArray

# A Gram matrix counts as positive semidefinite when adding this fraction of the prior variance makes Cholesky succeed;
# rounding moves eigenvalues by about n * 2e-16, real indefiniteness of eq. (7) by 1e-3 to 0.5.
SEMIDEFINITE_TOLERANCE = 1e-8

# No posterior variance is believed below this fraction of the prior variance: k - kᵀK⁻¹k loses that many digits.
VARIANCE_FLOOR = 1e-10


@dataclass(frozen=True)
class Repairs:
    """How often something had to be mended. All zero is the textbook case; sums with ``+``."""

    rejected_draws: int = 0  # likelihoods whose Gram matrix had no Cholesky factor: density 0
    jittered_grams: int = 0  # Gram matrices given more diagonal than their own noise
    clipped_grams: int = 0  # indefinite Gram matrices whose negative eigenvalues were set to 0
    floored_variances: int = 0  # predicted variances raised to `VARIANCE_FLOOR`

    def __add__(self, other: Repairs) -> Repairs:
        return Repairs(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def __bool__(self) -> bool:
        return any(astuple(self))

    def __str__(self) -> str:
        counts = [f"{getattr(self, field.name)} {field.name.replace('_', ' ')}" for field in fields(self)]
        return ", ".join(count for count in counts if not count.startswith("0 ")) or "no repairs"


class Factor(NamedTuple):
    """What conditioning needs of K + η²I, after repair.

    whitener      A (n, n) with AᵀA = (K + η²I)⁻¹ on the range of the repaired K; rows of clipped directions are 0
    unexplained   B (n, n) with BᵀB = (K + η²I)⁻¹ on the clipped directions; None when nothing was clipped
    """

    whitener: FloatArray
    unexplained: FloatArray | None
    repairs: Repairs


def factorise(gram: FloatArray, noise_variance: float, prior_variance: float) -> Factor:
    """Factor of the Gram matrix (n, n) plus noise: plain if K is positive semidefinite, else with clipped eigenvalues.

    Clipping also projects cross-covariances on what is left (Chen et al. 2009, "Similarity-based classification",
    spectrum clip with the consistent treatment of test points). Merely adding noise until Cholesky succeeds would leave
    eigenvalues near 0 in (K + η²I), and wild predictions.
    """
    tolerance = SEMIDEFINITE_TOLERANCE * prior_variance
    if cholesky(gram, tolerance) is not None:
        lower = cholesky(gram, max(noise_variance, tolerance))
        if lower is not None:
            inverse, _ = lapack.dtrtri(lower, lower=1, overwrite_c=1)
            return Factor(inverse, None, Repairs(jittered_grams=int(noise_variance < tolerance)))
    return _clipped(gram, max(noise_variance, tolerance))


def cholesky(gram: FloatArray, diagonal: float) -> FloatArray | None:
    """Lower Cholesky factor of gram + diagonal * I, upper triangle zero; None where there is none."""
    shifted = np.array(gram, order="F")
    np.einsum("ii->i", shifted)[...] += diagonal
    lower, failed = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
    return None if failed or not np.all(np.isfinite(np.diagonal(lower))) else lower


def _clipped(gram: FloatArray, noise_variance: float) -> Factor:
    eigenvalues, vectors = np.linalg.eigh(gram)
    kept = eigenvalues > 0.0
    whitener = np.where(kept, 1.0 / np.sqrt(np.maximum(eigenvalues, 0.0) + noise_variance), 0.0)[:, None] * vectors.T
    unexplained = np.where(kept, 0.0, 1.0 / np.sqrt(noise_variance))[:, None] * vectors.T
    return Factor(whitener, unexplained, Repairs(clipped_grams=1))


def floored(variance: FloatArray, prior_variance: FloatArray) -> tuple[FloatArray, Repairs]:
    """Variances no lower than the floor, and how many had to be raised. Shapes must broadcast."""
    floor = VARIANCE_FLOOR * prior_variance
    low = variance < floor
    return np.where(low, floor, variance), Repairs(floored_variances=int(low.sum()))

"""A Gaussian process given values, for kernels that are positive definite: one factor serves mean and variance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

FloatArray = NDArray[np.float64]


def conditioned(gram: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lower Cholesky factor L of a Gram matrix (n, n) with its noise, and K^-1 values."""
    lower, _ = cho_factor(gram, lower=True)
    return np.tril(lower), cho_solve((lower, True), values)


def explained_variance(lower: FloatArray, cross: FloatArray) -> FloatArray:
    """What knowing the n values takes off the prior variance of m others, from their kernel (n, m) with the known."""
    whitened = solve_triangular(lower, cross, lower=True)
    return np.asarray((whitened**2).sum(axis=0))

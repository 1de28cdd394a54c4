"""Eq. (7), the kernel of Appendix B.1, as a function of distance arrays and of nothing else.

`otmann_kernel` is the formula as printed. `ensemble_kernel` is its fast twin, for features (``distances.py``) and
vectors: one matrix product and one exponential, for one setting of the hyper-parameters or an ensemble of them.
"""

from __future__ import annotations

import numpy as np

from nasbot.gp.hyperparameters import FloatArray, Hyperparameters, KernelForm


def otmann_kernel(
    d: FloatArray | None,
    d_bar: FloatArray | None,
    theta: Hyperparameters,
    *,
    distance_power: float = 1.0,
    normalised_power: float = 1.0,
) -> FloatArray:
    """Eq. (7): α exp(-Σ βᵢ dᵢᵖ) + ᾱ exp(-Σ β̄ᵢ d̄ᵢᵖ̄), with d and d_bar of shape (weights, n, m); gives (n, m).

    Either array may be None, which leaves its term out. Not positive definite in general: see ``repair.py``.
    """
    terms = []
    if d is not None:
        terms.append(theta.scale * np.exp(-np.einsum("w,wij->ij", theta.decay, d**distance_power)))
    if d_bar is not None:
        decay_bar = theta.normalised_decay
        terms.append(theta.normalised_scale * np.exp(-np.einsum("w,wij->ij", decay_bar, d_bar**normalised_power)))
    return np.asarray(sum(terms))


def unit_term(features: FloatArray, decay: FloatArray) -> FloatArray:
    """exp(-Σ βᵢ fᵢ) for features (w, pairs) and decays (..., w): shape (..., pairs)."""
    values: FloatArray = decay @ features
    np.negative(values, out=values)
    np.exp(values, out=values)
    return values


def ensemble_kernel(features: FloatArray, vectors: FloatArray, form: KernelForm) -> FloatArray:
    """Eq. (7) for each of several settings: features (features, n, m) and log vectors (s, h) give (s, n, m)."""
    n_features, n, m = features.shape
    flat, theta = features.reshape(n_features, n * m), np.exp(vectors)
    total = np.zeros((len(vectors), n * m))
    for term, rows in enumerate(form.term_rows):
        values = unit_term(flat[rows], form.decays(theta)[:, rows])
        values *= theta[:, term, None]
        total += values
    return total.reshape(len(vectors), n, m)

"""Eq. (7), the kernel of Appendix B.1, with a third term and a common factor, as a function of rows and nothing else.

`otmann_kernel` is the formula as printed. `ensemble_kernel` is its fast twin, for powered rows (``rows.py``) and
vectors: one matrix product and one exponential, for one setting of the hyper-parameters or an ensemble of them.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from nasbot.gp.hyperparameters import FEATURE_POWER, PARAM_POWER, FloatArray, Hyperparameters, KernelForm


class Crossed(NamedTuple):
    """Powered rows to m networks, each with every one of several settings of its params: s * m points.

    The kernel is a product, so it takes m exponentials for the networks and s for the settings, not s * m. Points
    stand in the order of the settings, then of the networks.
    """

    networks: FloatArray  # (rows without params, n, m)
    settings: FloatArray  # (params, n, s)


Powered: TypeAlias = "FloatArray | Crossed"


def otmann_kernel(
    d: FloatArray | None,
    d_bar: FloatArray | None,
    theta: Hyperparameters,
    *,
    distance_power: float = 1.0,
    normalised_power: float = 1.0,
    features: FloatArray | None = None,
    params: FloatArray | None = None,
) -> FloatArray:
    """[α exp(-Σ βᵢ dᵢᵖ) + ᾱ exp(-Σ β̄ᵢ d̄ᵢᵖ̄) + a exp(-Σ cₖ fₖ²)] exp(-Σ lⱼ δⱼ^1.5), arrays (rows, n, m); gives (n, m).

    The first two terms are eq. (7), f are ``features`` and δ ``params``. Any array may be None, which leaves its term
    or factor out. Not positive definite in general: see ``repair.py``.
    """
    terms = []
    if d is not None:
        terms.append(theta.scale * np.exp(-np.einsum("w,wij->ij", theta.decay, d**distance_power)))
    if d_bar is not None:
        decay_bar = theta.normalised_decay
        terms.append(theta.normalised_scale * np.exp(-np.einsum("w,wij->ij", decay_bar, d_bar**normalised_power)))
    if features is not None:
        decay = theta.feature_decay
        terms.append(theta.feature_scale * np.exp(-np.einsum("w,wij->ij", decay, features**FEATURE_POWER)))
    if params is None:
        return np.asarray(sum(terms))
    common = np.exp(-np.einsum("w,wij->ij", theta.param_decay, params**PARAM_POWER))
    return np.asarray((sum(terms) if terms else theta.scale) * common)


def unit_factor(powered: FloatArray, decay: FloatArray) -> FloatArray:
    """exp(-Σ βᵢ rᵢ) for powered rows (w, pairs) and decays (..., w): shape (..., pairs)."""
    values: FloatArray = decay @ powered
    np.negative(values, out=values)
    np.exp(values, out=values)
    return values


def ensemble_kernel(powered: Powered, vectors: FloatArray, form: KernelForm) -> FloatArray:
    """The kernel for each of several settings: powered rows (rows, n, m) and log vectors (s, h) give (s, n, m)."""
    theta = np.exp(vectors)
    if isinstance(powered, Crossed):
        params = form.blocks[-1]
        near = _sum_of_terms(powered.networks, theta, form, [])
        common = _factor(powered.settings, form.decays(theta)[:, params])
        n_vectors, n, m = near.shape
        return (near[:, :, None, :] * common[:, :, :, None]).reshape(n_vectors, n, common.shape[2] * m)
    return _sum_of_terms(powered, theta, form, list(form.factors[0][1:]))


def _sum_of_terms(powered: FloatArray, theta: FloatArray, form: KernelForm, shared: list[slice]) -> FloatArray:
    """Σ scale · exp(-Σ decay · row) (s, n, m) over the terms, each times the factors of the shared rows."""
    common = [_factor(powered[rows], form.decays(theta)[:, rows]) for rows in shared]
    total = np.zeros((len(theta), *powered.shape[1:]))
    for term, (rows, *_) in enumerate(form.factors):
        values = _factor(powered[rows], form.decays(theta)[:, rows])
        for factor in common:
            values *= factor
        values *= theta[:, term, None, None]
        total += values
    return total


def _factor(powered: FloatArray, decay: FloatArray) -> FloatArray:
    n_rows, n, m = powered.shape
    return unit_factor(powered.reshape(n_rows, n * m), decay).reshape(len(decay), n, m)

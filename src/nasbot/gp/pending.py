"""Hallucinated pending points (Ginsbourger et al. 2011, as the paper's Section 4 parallelises): one block update.

Told that each pending point will turn out as the posterior mean says, the mean stays as it is and the variance
falls as if they had been observed. With B = A k_P and S = κ_n(P, P) + η²I the whitener of old and pending points is

    A' = [ A           0   ]        L Lᵀ = S
         [ -L⁻¹BᵀA     L⁻¹ ]

so conditioning costs one product per proposal, not one refit per candidate. ``tests/gp/test_posterior.py`` compares it
with a full rebuild on the fantasies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nasbot.gp.hyperparameters import FloatArray
from nasbot.gp.kernel import ensemble_kernel
from nasbot.gp.posterior import Posterior
from nasbot.gp.repair import Repairs, factorise


def hallucinate(posterior: Posterior, cross_powered: FloatArray, powered: FloatArray) -> tuple[Posterior, Repairs]:
    """The posterior that also knows q pending points, from their powered rows (rows, known, q) and (rows, q, q).

    They are taken to be at full fidelity, where they say most. The result expects rows from known + q points, the
    pending ones last; it can be hallucinated on again.
    """
    known, pending = cross_powered.shape[1:]
    if pending == 0:
        return posterior, Repairs()
    samples = len(posterior.vectors)
    whitened = posterior.whitener @ ensemble_kernel(cross_powered, posterior.vectors, posterior.form)  # B
    covariance = posterior.covariance(cross_powered, powered)
    whitener = np.zeros((samples, known + pending, known + pending))
    whitener[:, :known, :known] = posterior.whitener
    repairs = Repairs()
    for s in range(samples):
        factor = factorise(covariance[s], posterior.noise_variance[s], posterior.prior_variance[s])
        repairs += factor.repairs
        whitener[s, known:, known:] = factor.whitener
        whitener[s, known:, :known] = -factor.whitener @ (whitened[s].T @ posterior.whitener[s])
    weights = np.concatenate([posterior.weights, np.zeros((samples, pending))], axis=1)
    fidelities = None if posterior.fidelities is None else np.append(posterior.fidelities, np.ones(pending))
    return replace(posterior, whitener=whitener, weights=weights, fidelities=fidelities), repairs

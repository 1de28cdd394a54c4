"""The GP posterior of Section 2.1, for an ensemble of hyper-parameter samples: condition once, predict many.

μ_n(x) = kᵀ(K + η²I)⁻¹Y,   κ_n(x, x') = κ(x, x') - kᵀ(K + η²I)⁻¹k'

With A the whitener, AᵀA = (K + η²I)⁻¹, a prediction is two matrix products and no solve, batched over samples.
Arrays have one leading axis for the s samples. "Known points" are the n observed ones, and, after ``pending.py``, the
pending ones behind them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nasbot.gp.fidelity import added_noise, remainder, with_fidelities
from nasbot.gp.hyperparameters import FloatArray, KernelForm
from nasbot.gp.kernel import Crossed, Powered, ensemble_kernel
from nasbot.gp.repair import Repairs, factorise, floored

# Kernel values in memory at once when predicting: 4 million doubles are 32 MB, whatever the number of candidates.
CHUNK = 4_000_000


class Prediction(NamedTuple):
    """What each sample believes of the latent objective at m points, in standardised units."""

    mean: FloatArray  # (s, m)
    variance: FloatArray  # (s, m), above zero
    repairs: Repairs


@dataclass(frozen=True, eq=False)
class Posterior:
    """An ensemble conditioned on observations."""

    form: KernelForm
    vectors: FloatArray  # (s, hyper-parameters), logs
    whitener: FloatArray  # (s, known, known)
    weights: FloatArray  # (s, known): (K + η²I)⁻¹Y, zero for hallucinated points
    denoised: FloatArray  # (s, n): the mean at each observation, its own value being one of those that are known
    fidelities: FloatArray | None  # (known,) where some are below 1
    unexplained: tuple[FloatArray | None, ...]  # of each sample, where clipping took directions out (``repair.py``)

    @property
    def n_known(self) -> int:
        """Rows that cross distances must have: observed points, then pending ones."""
        return int(self.weights.shape[1])

    @property
    def prior_variance(self) -> FloatArray:
        """κ(x, x) (s,) of each sample: the sum of its scales."""
        return np.asarray(np.exp(self.form.scales(self.vectors)).sum(axis=1))

    @property
    def noise_variance(self) -> FloatArray:
        """η² (s,) of each sample, at full fidelity."""
        return np.asarray(np.exp(self.vectors[:, -1]))

    def predict(self, cross_powered: Powered, fidelities: FloatArray | None = None) -> Prediction:
        """Mean and variance at m points, from their powered rows (rows, known, m); at fidelity 1 unless given (m,)."""
        m = _n_points(cross_powered)
        mean, variance = np.empty((len(self.vectors), m)), np.empty((len(self.vectors), m))
        prior = np.broadcast_to(self.prior_variance[:, None], mean.shape)
        if fidelities is not None and self.fidelities is not None:
            kappa, offset, g, _ = np.moveaxis(np.exp(self.form.fidelity(self.vectors)), -1, 0)
            weight = remainder(fidelities, g) ** 2
            prior = prior * (1.0 + kappa[:, None] * weight) + offset[:, None] * weight
        for part, rows in _parts(cross_powered, CHUNK // max(1, len(self.vectors) * self.n_known)):
            cross_gram = ensemble_kernel(rows, self.vectors, self.form)
            if fidelities is not None and self.fidelities is not None:
                right = fidelities[part]
                cross_gram = with_fidelities(cross_gram, self.vectors, self.form, self.fidelities, right)
            mean[:, part] = (self.weights[:, None, :] @ cross_gram)[:, 0, :]
            whitened = self.whitener @ cross_gram
            variance[:, part] = prior[:, part] - np.einsum("skm,skm->sm", whitened, whitened)
        variance, repairs = floored(variance, self.prior_variance[:, None])
        return Prediction(mean, variance, repairs)

    def covariance(self, cross_powered: Powered, powered: FloatArray) -> FloatArray:
        """Posterior covariance (s, m, m) at m points, from powered rows (rows, known, m) and (rows, m, m).

        As the formula gives it: where the kernel is indefinite it need not be positive semidefinite.
        """
        whitened = self.whitener @ ensemble_kernel(cross_powered, self.vectors, self.form)
        prior = ensemble_kernel(powered, self.vectors, self.form)
        return np.asarray(prior - whitened.transpose(0, 2, 1) @ whitened)


def _n_points(powered: Powered) -> int:
    if isinstance(powered, Crossed):
        return int(powered.settings.shape[2] * powered.networks.shape[2])
    return int(powered.shape[2])


def _parts(powered: Powered, most: int) -> Iterator[tuple[slice, Powered]]:
    """The points in parts of about ``most`` at once, each with the columns that it is."""
    if isinstance(powered, Crossed):
        networks, settings = powered
        m, n = networks.shape[2], settings.shape[2]
        step = max(1, most // max(1, m))
        for start in range(0, n, step):
            some = settings[:, :, start : start + step]
            yield slice(start * m, (start + some.shape[2]) * m), Crossed(networks, some)
        return
    step = max(1, most)
    for start in range(0, powered.shape[2], step):
        yield slice(start, start + step), powered[:, :, start : start + step]


def condition(
    powered: FloatArray,
    values: FloatArray,
    vectors: FloatArray,
    form: KernelForm,
    fidelities: FloatArray | None = None,
) -> tuple[Posterior, Repairs]:
    """The ensemble with log vectors (s, h) given values (n,) at points with powered rows (rows, n, n)."""
    samples, n = len(vectors), len(values)
    whitener, weights = np.empty((samples, n, n)), np.empty((samples, n))
    denoised = np.empty((samples, n))
    repairs, unexplained = Repairs(), []
    for s, vector in enumerate(vectors):
        theta = np.exp(vector)
        gram = ensemble_kernel(powered, vector[None], form)[0]
        observed = gram
        if fidelities is not None:
            observed = with_fidelities(gram[None], vector[None], form, fidelities, fidelities)[0]
            observed[np.diag_indices(n)] += added_noise(vector[None], form, fidelities)[0]
        factor = factorise(observed, theta[-1], form.scales(theta).sum())
        whitener[s], repairs = factor.whitener, repairs + factor.repairs
        weights[s] = factor.whitener.T @ (factor.whitener @ values)
        denoised[s] = gram @ weights[s]
        unexplained.append(factor.unexplained)
    return Posterior(form, vectors, whitener, weights, denoised, fidelities, tuple(unexplained)), repairs

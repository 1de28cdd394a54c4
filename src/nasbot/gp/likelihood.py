"""The log posterior of the hyper-parameters: log marginal likelihood plus log prior, in log space.

log p(y|θ) = -½ yᵀ(K + η²I)⁻¹y - ½ log|K + η²I| - (n/2) log 2π      (Rasmussen and Williams, eq. 5.8)

This is the inner loop of fitting, so it works on the strict lower triangle only: one matrix-vector product and one
exponential per term over n(n-1)/2 pairs, scattered into the buffer that LAPACK factorises in place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from nasbot.gp.fidelity import remainder, remainder_slope
from nasbot.gp.hyperparameters import FloatArray, KernelForm, Prior
from nasbot.gp.kernel import unit_factor

LOG_2_PI = math.log(2.0 * math.pi)

# exp() of a log hyper-parameter beyond this is outside every prior worth having, and powers of it would overflow.
LARGEST_LOG = 230.0

SUM = -1  # the place in ``_memory`` of the sum of the terms; others are those of a first row


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """log p(θ | y) up to a constant, for the log vector of θ; -inf where K + η²I has no Cholesky factor."""

    form: KernelForm
    pairs: FloatArray  # powered rows (rows, n(n-1)/2), columns in the order of ``places``
    places: NDArray[np.intp]  # where each pair goes in a column-major (n, n) buffer
    values: FloatArray  # (n,), standardised
    prior_mean: FloatArray  # (hyper-parameters,)
    prior_spread: FloatArray  # (hyper-parameters,)
    fidelities: FloatArray | None = None  # (n,)
    # The last exponentials of each block of rows, by their decays, and the last sum of the terms without the factor of
    # params. Sampling one coordinate at a time changes one block at most, so this saves more than half of the
    # exponentials; results stay the same to the bit.
    _memory: dict[int, tuple[bytes, FloatArray]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        powered: FloatArray,
        values: FloatArray,
        form: KernelForm,
        prior: Prior,
        fidelities: FloatArray | None = None,
    ) -> LogPosterior:
        """From powered rows (rows, n, n), standardised values (n,), and fidelities (n,) where the form has them."""
        column, row = np.triu_indices(len(values), 1)
        pairs = np.ascontiguousarray(powered[:, row, column])
        return cls(form, pairs, row + len(values) * column, values, prior.mean(form), prior.spread(form), fidelities)

    def __call__(self, vector: FloatArray) -> float:
        """The log density at one log vector (hyper-parameters,)."""
        if max(vector.max(), -vector.min()) > LARGEST_LOG:
            return -math.inf
        theta = np.exp(vector)
        lower = self._factor(theta)
        if lower is None:
            return -math.inf
        whitened, _ = lapack.dtrtrs(lower, self.values, lower=1)
        return self._log_density(vector, lower, float(whitened @ whitened))

    def with_gradient(self, vector: FloatArray) -> tuple[float, FloatArray]:
        """The log density and its gradient (hyper-parameters,); (-inf, 0) where there is no Cholesky factor.

        ∂/∂θⱼ log p(y|θ) = ½ tr((aaᵀ - (K + η²I)⁻¹) ∂K/∂θⱼ), a = (K + η²I)⁻¹y   (Rasmussen and Williams, eq. 5.9);
        in log space ∂K/∂ log α is the term itself and ∂K/∂ log βᵢ is -βᵢ dᵢᵖ times the terms in which it stands.
        """
        if max(vector.max(), -vector.min()) > LARGEST_LOG:
            return -math.inf, np.zeros_like(vector)
        theta = np.exp(vector)
        lower = self._factor(theta)
        if lower is None:
            return -math.inf, np.zeros_like(vector)
        units = self._unit_terms(theta)
        solved, _ = lapack.dpotrs(lower, self.values, lower=1)
        density = self._log_density(vector, lower, float(self.values @ solved))
        inverse, _ = lapack.dpotri(lower, lower=1, overwrite_c=1)
        prior = (self.prior_mean - vector) / self.prior_spread**2
        return density, prior + self._likelihood_gradient(theta, units, solved, inverse)

    def _unit_terms(self, theta: FloatArray) -> list[FloatArray]:
        """The exponentials (pairs,) of each term, before their scale."""
        return [
            reduce(np.multiply, (self._factor_of(theta, rows) for rows in factors)) for factors in self.form.factors
        ]

    def _factor_of(self, theta: FloatArray, rows: slice) -> FloatArray:
        decay = self.form.decays(theta)[rows]
        key, remembered = decay.tobytes(), self._memory.get(rows.start)
        if remembered is None or remembered[0] != key:
            self._memory[rows.start] = remembered = key, unit_factor(self.pairs[rows], decay)
        return remembered[1]

    def _kernel(self, theta: FloatArray) -> FloatArray:
        """The kernel (pairs,): the sum of the terms, times the factor of params where there are some."""
        own = [rows for rows, *_ in self.form.factors]
        shared = self.form.factors[0][1:]
        key = theta[: self.form.n_terms + own[-1].stop].tobytes()
        remembered = self._memory.get(SUM)
        if remembered is None or remembered[0] != key:
            scales = self.form.scales(theta)
            total = self._factor_of(theta, own[0]) * scales[0]
            for rows, scale in zip(own[1:], scales[1:], strict=True):
                total += self._factor_of(theta, rows) * scale
            self._memory[SUM] = remembered = key, total
        return reduce(np.multiply, (self._factor_of(theta, rows) for rows in shared), remembered[1])

    def _factor(self, theta: FloatArray) -> FloatArray | None:
        n = len(self.values)
        gram = self._kernel(theta)
        if self.fidelities is not None:
            kappa, offset, *_ = self.form.fidelity(theta)
            weight = self._pairs_of(self._remainder(theta))
            gram = gram * (1.0 + kappa * weight) + offset * weight
        buffer = np.zeros(n * n)
        buffer[self.places] = gram
        buffer[:: n + 1] = self.prior_variance(theta) + self.noise_variance(theta)
        lower, failed = lapack.dpotrf(buffer.reshape(n, n, order="F"), lower=1, clean=0, overwrite_a=1)
        return None if failed else lower

    def prior_variance(self, theta: FloatArray) -> FloatArray:
        """The variance of the objective at each observation: () where all are equal, else (n,)."""
        variance: FloatArray = self.form.scales(theta).sum()
        if self.fidelities is None:
            return variance
        kappa, offset, *_ = self.form.fidelity(theta)
        weight = self._remainder(theta) ** 2
        return np.asarray(variance * (1.0 + kappa * weight) + offset * weight)

    def noise_variance(self, theta: FloatArray) -> FloatArray:
        """The variance of the noise of each observation: () where all are equal, else (n,)."""
        noise: FloatArray = theta[-1]
        return (
            noise if self.fidelities is None else noise * (1.0 + self.form.fidelity(theta)[3] * self._remainder(theta))
        )

    def _remainder(self, theta: FloatArray) -> FloatArray:
        assert self.fidelities is not None  # asked only where there are some
        return remainder(self.fidelities, self.form.fidelity(theta)[2])

    def _pairs_of(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """xᵢ yⱼ (pairs,), with y = x unless given, in the order of ``places``."""
        column, row = np.divmod(self.places, len(self.values))
        return np.asarray(x[row] * (x if y is None else y)[column])

    def _log_density(self, vector: FloatArray, lower: FloatArray, misfit: float) -> float:
        half_log_determinant = float(np.log(lower.diagonal()).sum())
        deviation = (vector - self.prior_mean) / self.prior_spread
        log_prior = -0.5 * float(deviation @ deviation)
        density = log_prior - 0.5 * misfit - half_log_determinant - 0.5 * len(self.values) * LOG_2_PI
        return density if math.isfinite(density) else -math.inf

    def _likelihood_gradient(
        self, theta: FloatArray, units: list[FloatArray], solved: FloatArray, inverse: FloatArray
    ) -> FloatArray:
        # Each off-diagonal pair stands for two entries of the symmetric trace, hence no factor ½ on `pairwise`.
        column, row = np.divmod(self.places, len(self.values))
        pairwise = solved[row] * solved[column] - inverse.ravel(order="F")[self.places]
        diagonal = 0.5 * (solved @ solved - np.trace(inverse))
        gradient = np.zeros_like(theta)
        gradient[-1] = diagonal * theta[-1]
        if self.fidelities is not None:
            each = 0.5 * (solved**2 - inverse.diagonal())
            gradient[-1] = each @ self.noise_variance(theta)
            self.form.fidelity(gradient)[:] = self._fidelity_gradient(theta, units, pairwise, each)
            kappa, phi = self.form.fidelity(theta)[0], self._remainder(theta)
            pairwise = pairwise * (1.0 + kappa * self._pairs_of(phi))
            diagonal = each @ (1.0 + kappa * phi**2)
        for index, (unit, factors) in enumerate(zip(units, self.form.factors, strict=True)):
            pairwise_term = pairwise * unit * theta[index]
            gradient[index] = pairwise_term.sum() + diagonal * theta[index]
            for rows in factors:
                self.form.decays(gradient)[rows] -= self.form.decays(theta)[rows] * (self.pairs[rows] @ pairwise_term)
        return gradient

    def _fidelity_gradient(
        self, theta: FloatArray, units: list[FloatArray], pairwise: FloatArray, each: FloatArray
    ) -> list[float]:
        """By log κ, log c, log g and log ω; ``each`` is what ``pairwise`` is on the diagonal."""
        assert self.fidelities is not None
        kappa, offset, g, omega = self.form.fidelity(theta)
        scales = self.form.scales(theta)
        plain = sum(unit * scale for unit, scale in zip(units, scales, strict=True))
        phi, slope = self._remainder(theta), remainder_slope(self.fidelities, float(g))
        weight, change = self._pairs_of(phi), self._pairs_of(phi, slope) + self._pairs_of(slope, phi)
        return [
            kappa * (pairwise @ (weight * plain) + each @ phi**2 * scales.sum()),
            offset * (pairwise @ weight + each @ phi**2),
            pairwise @ (change * (kappa * plain + offset))
            + 2.0 * each @ (phi * slope) * (kappa * scales.sum() + offset)
            + theta[-1] * omega * each @ slope,
            theta[-1] * omega * each @ phi,
        ]

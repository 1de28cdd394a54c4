"""Finding hyper-parameters: the posterior mode by L-BFGS, and posterior samples by slice sampling (Appendix B.1).

Both are functions of the log posterior and, for samples, of a random stream; a `Chain` is a value that can be handed
in to go on where an earlier fit stopped, and never has to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from nasbot._rounding import to_grid
from nasbot.gp.hyperparameters import FloatArray
from nasbot.gp.likelihood import LogPosterior
from nasbot.gp.slice_sampler import slice_walk

# L-BFGS needs a number where there is no Cholesky factor: so much worse than the best seen. A line search interpolates,
# and after a huge number it takes steps so short that it believes to have converged. On 20 recorded histories (20 to
# 150 networks, default kernel) the log posteriors of the modes are -197 in all after 734 evaluations; with 1e12 -281
# after 596, and with what is rounded below -545 after 292.
PENALTY, LOWEST = 100.0, -1e12

# A log posterior known to 1e-3 moves no prediction visibly: its own spread under the posterior is about k/2 = 5.
OBJECTIVE_TOLERANCE = 1e-3

# What L-BFGS sees, and where it looks, as multiples of powers of two: it makes much of a last bit, 0.1 in the mode
# after 20 steps, and last bits differ from processor to processor.
DENSITY_BITS, PLACE_BITS = 16, 30

# A chain handed in from elsewhere is brought back to where exponentials and their sums are ordinary numbers.
LARGEST_START = 30.0


@dataclass(frozen=True)
class Chain:
    """Where a hyper-parameter chain stands: a log vector in unit-free terms, so it stays meaningful as data grow."""

    position: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Log vectors (s, h) found by a step of a fit, and what finding them took."""

    vectors: FloatArray
    n_evaluations: int = 0
    n_rejected: int = 0  # evaluations without a Cholesky factor

    def __add__(self, later: Estimate) -> Estimate:
        """What the later step found, at the cost of both."""
        n_evaluations = self.n_evaluations + later.n_evaluations
        return Estimate(later.vectors, n_evaluations, self.n_rejected + later.n_rejected)


def posterior_mode(target: LogPosterior, starts: FloatArray, *, most_steps: int = 60) -> Estimate:
    """The best vector (1, h) that L-BFGS with the analytic gradient reaches from any of the starts (r, h)."""
    search = _Search(target)
    for start in starts:
        low = np.minimum(start, target.prior_mean - 6.0 * target.prior_spread)
        high = np.maximum(start, target.prior_mean + 6.0 * target.prior_spread)
        # ftol is relative to the larger of 1 and the objective itself.
        ftol = OBJECTIVE_TOLERANCE / max(1.0, abs(target(start)))
        options = {"maxiter": most_steps, "ftol": ftol, "gtol": 1e-2}
        minimize(search, start, jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)), options=options)
    return Estimate(search.best[None], search.n_evaluations, search.n_rejected)


def posterior_samples(
    target: LogPosterior,
    start: FloatArray,
    *,
    n_samples: int,
    thin: int = 1,
    burn_in: int = 0,
    rng: np.random.Generator,
) -> Estimate:
    """Vectors (n_samples, h) from a slice-sampling chain begun at ``start`` (h,)."""
    walk = slice_walk(target, start, target.prior_spread, n_draws=n_samples, thin=thin, burn_in=burn_in, rng=rng)
    return Estimate(walk.positions, walk.n_evaluations, walk.n_rejected)


def default_starts(target: LogPosterior, n: int) -> Estimate:
    """The n best of five fixed places (n, h): the prior's mode, and smoother or rougher, noisier or cleaner."""
    decay, noise = np.zeros_like(target.prior_mean), np.zeros_like(target.prior_mean)
    target.form.decays(decay)[:] = target.form.decays(target.prior_spread)
    noise[-1] = target.prior_spread[-1]
    places = target.prior_mean + np.stack([0.0 * noise, noise - decay, decay - noise, noise + decay, -noise - decay])
    starts = feasible(target, places)
    return replace(starts, vectors=starts.vectors[:n])


def feasible(target: LogPosterior, places: FloatArray) -> Estimate:
    """The places (r, h), best first, each with its noise raised tenfold until its Gram matrix has a Cholesky factor.

    Ends: no eigenvalue of K is below -n times the prior variance (Gershgorin), so noise beyond that always does.
    """
    found: list[tuple[float, FloatArray]] = []
    n_evaluations = 0
    for place in np.clip(places, -LARGEST_START, LARGEST_START):
        enough = math.log(2.0 * len(target.values) * float(np.max(target.prior_variance(np.exp(place)))))
        density, n_evaluations = target(place), n_evaluations + 1
        while density == -math.inf and place[-1] < enough:
            place[-1] = min(place[-1] + math.log(10.0), enough)
            density, n_evaluations = target(place), n_evaluations + 1
        found.append((density, place))
    found.sort(key=lambda pair: -pair[0])
    return Estimate(np.stack([place for _, place in found]), n_evaluations, n_evaluations - len(found))


class _Search:
    """The negated target for `minimize`, remembering the best vector seen: a failed line search then costs nothing."""

    def __init__(self, target: LogPosterior) -> None:
        self._target = target
        self._best_density = -np.inf
        self.best = target.prior_mean
        self.n_evaluations = 0
        self.n_rejected = 0

    def __call__(self, vector: FloatArray) -> tuple[float, FloatArray]:
        vector = to_grid(vector, PLACE_BITS)
        density, gradient = self._target.with_gradient(vector)
        self.n_evaluations += 1
        if not np.isfinite(density):
            self.n_rejected += 1
            return PENALTY - max(self._best_density, LOWEST), np.zeros_like(vector)
        density, gradient = float(to_grid(np.array(density), DENSITY_BITS)), to_grid(gradient, DENSITY_BITS)
        if density > self._best_density:
            self._best_density, self.best = density, vector
        return -density, -gradient

"""Whom to mutate next: the sampling strategy of Appendix B.2, pi(z) ~ exp(g(z) / sigma).

g     fitness of a network: the acquisition, the objective, or Uniform(0, 1)
sigma standard deviation of all fitness values so far, so that the range of g does not matter
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nasbot.errors import OptionError

Array = NDArray[np.float64]


def selection_probabilities(fitness: ArrayLike, *, temperature: float = 1.0) -> Array:
    """pi for each fitness value: proportional to exp(g / (temperature * sigma)), and summing to one.

    The authors' release has temperature 2. Exact for any finite values, however large, small or far apart. -inf (a
    network known to be useless) is never selected and has no part in sigma; where nothing else is there, or all values
    are equal, or there is one, all are equally likely. NaN and +inf raise OptionError.
    """
    g = _checked(fitness)
    if not temperature > 0:
        raise OptionError(f"temperature: expected a number > 0, got {temperature!r}")
    finite = np.isfinite(g)
    if not finite.any():
        return np.full(len(g), 1 / len(g))
    weights = np.zeros(len(g))
    weights[finite] = np.exp(_standardised(g[finite]) / temperature)
    weights /= weights.sum()
    return weights


def fitness_spread(fitness: ArrayLike) -> float:
    """sigma: the standard deviation of the finite values; 0 where there are none or all are equal."""
    g = _checked(fitness)
    g = g[np.isfinite(g)]
    if not len(g):
        return 0.0
    scale = _power_of_two_near(g)
    return float(np.std(g / scale) * scale)


def select(probabilities: Array, n: int, *, rng: np.random.Generator) -> Sequence[int]:
    """``n`` indices, drawn with replacement."""
    cumulative = np.cumsum(probabilities)
    points = rng.random(n) * cumulative[-1]
    return [int(i) for i in np.searchsorted(cumulative, points, side="right")]


def _checked(fitness: ArrayLike) -> Array:
    g = np.asarray(fitness, dtype=np.float64)
    if g.ndim != 1 or not len(g):
        raise OptionError(f"fitness: expected a list of at least one number, got shape {g.shape}")
    if (wrong := np.flatnonzero(np.isnan(g) | (g == np.inf))).size:
        raise OptionError(f"fitness: expected finite numbers or -inf, got {g[wrong[0]]} at position {wrong[0]}")
    return g


def _standardised(g: Array) -> Array:
    """(g - max g) / sigma; zeros where sigma is.

    Divided by a power of two first, which loses nothing, so that neither the difference of two values nor the square of
    one overflows or underflows.
    """
    g = g / _power_of_two_near(g)
    below_best = g - g.max()
    # From the differences, not from g: of values that differ in their last digit alone the mean is not exact.
    spread = _power_of_two_near(below_best)
    sigma = np.std(below_best / spread)
    return below_best / spread / sigma if sigma > 0 else np.zeros(len(g))


def _power_of_two_near(g: Array) -> float:
    """The power of two just above the largest magnitude; 1 where all are zero."""
    largest = float(np.abs(g).max())
    # Halved where it would not be a double itself; then values come out below 2 instead of 1.
    return float(np.ldexp(1.0, min(int(np.frexp(largest)[1]), 1023))) if largest > 0 else 1.0

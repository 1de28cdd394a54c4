"""Coordinate-wise slice sampling (Neal 2003, "Slice sampling", Figures 3 and 5: stepping out, then shrinkage).

Knows nothing of Gaussian processes: it samples from any log density over vectors. No tuning, no gradients, no
rejections, which is why Snoek et al. (2012), whom the paper follows in Appendix B.1, use it for hyper-parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nasbot.gp.hyperparameters import FloatArray

LogDensity = Callable[[FloatArray], float]

# At most this many widths in all are stepped out per coordinate; Neal's m. With widths of one prior spread the slice
# is rarely longer than four, and the limit keeps the update valid (the steps are split at random between both sides).
MOST_STEPS = 8

# Shrinking halves the interval on average, so 200 rounds reach the spacing of floating point numbers with certainty.
MOST_SHRINKS = 200


@dataclass(frozen=True, eq=False)
class Walk:
    """Where a chain has been: positions (draws, k) and what they cost."""

    positions: FloatArray
    n_evaluations: int
    n_rejected: int  # evaluations that returned -inf


class _Counted:
    """A log density that counts its calls and how many of them were -inf."""

    def __init__(self, log_density: LogDensity) -> None:
        self._log_density = log_density
        self.n_evaluations = 0
        self.n_rejected = 0

    def __call__(self, position: FloatArray) -> float:
        value = self._log_density(position)
        self.n_evaluations += 1
        self.n_rejected += value == -np.inf
        return value


def slice_walk(
    log_density: LogDensity,
    start: FloatArray,
    widths: FloatArray,
    *,
    n_draws: int,
    thin: int = 1,
    burn_in: int = 0,
    rng: np.random.Generator,
) -> Walk:
    """``n_draws`` positions, one every ``thin`` sweeps over all coordinates, after ``burn_in`` sweeps.

    The chain leaves the density invariant and its whole state is its last position, so a walk can be continued by
    starting another there. ``start`` must have finite log density.
    """
    counted = _Counted(log_density)
    position, level = np.array(start, dtype=np.float64), counted(start)
    if not np.isfinite(level):
        raise ValueError(f"a slice walk must start where the log density is finite, got {level} at {start}")
    positions = np.empty((n_draws, len(position)))
    for draw in range(n_draws):
        for _ in range(thin + (burn_in if draw == 0 else 0)):
            for axis in range(len(position)):
                position, level = _update(counted, position, level, axis, widths[axis], rng)
        positions[draw] = position
    return Walk(positions, counted.n_evaluations, counted.n_rejected)


def _update(
    log_density: LogDensity,
    position: FloatArray,
    level: float,
    axis: int,
    width: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """One coordinate: a level under the density, an interval around the slice at that level, a point on the slice."""
    height = level - rng.standard_exponential()
    left, right = _step_out(log_density, position, height, axis, width, rng)
    for _ in range(MOST_SHRINKS):
        proposal = _moved(position, axis, left + rng.random() * (right - left))
        proposed = log_density(proposal)
        if proposed > height:
            return proposal, proposed
        if proposal[axis] < position[axis]:
            left = proposal[axis]
        else:
            right = proposal[axis]
    return position, level  # the interval has shrunk onto the current point, which is on the slice


def _step_out(
    log_density: LogDensity, position: FloatArray, height: float, axis: int, width: float, rng: np.random.Generator
) -> tuple[float, float]:
    left = position[axis] - width * rng.random()
    right = left + width
    steps_left = int(rng.integers(MOST_STEPS))
    steps_right = MOST_STEPS - 1 - steps_left
    while steps_left > 0 and log_density(_moved(position, axis, left)) > height:
        left, steps_left = left - width, steps_left - 1
    while steps_right > 0 and log_density(_moved(position, axis, right)) > height:
        right, steps_right = right + width, steps_right - 1
    return left, right


def _moved(position: FloatArray, axis: int, to: float) -> FloatArray:
    moved = position.copy()
    moved[axis] = to
    return moved

"""Values before fitting: a monotone warp, then zero mean and unit variance; and the way back for reporting.

rank   normal scores of the ranks. On NAS-Bench-201 the warp alone was worth +0.14/+0.63/+0.36 points at 25
       queries: a few terrible networks no longer stretch the scale on which good ones differ.
best   the mean of these scores and of -log(how far a value falls short of a level above the best), that level as far
       above the best as half of what the best is above the median: the best differ by more than by their ranks.
       Whatever the units; the default of beliefs about networks (docs/results/surrogates.md).
log    log(y) of positive values, -log(-y) of negative ones (errors that were negated to be maximised).
none   the values themselves.

A warp is increasing, so medians, quantiles and intervals carry over exactly: ``inverse(quantile)`` is the quantile in
the original units. Means and standard deviations do not, except for ``none``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import ndtri

from nasbot._ranks import average_ranks
from nasbot.errors import NasbotError
from nasbot.gp.hyperparameters import FloatArray

LEVEL = 0.5  # of the distance from the best to the median: how far above the best the level of ``best`` is


class InvalidValuesError(NasbotError, ValueError):
    """Observed values are not finite numbers, too few, or outside the domain of the warp."""


class Warp(StrEnum):
    """How values are warped before fitting."""

    RANK = "rank"
    BEST = "best"
    LOG = "log"
    NONE = "none"


@dataclass(frozen=True, eq=False)
class WarpedValues:
    """Standardised values of the observations (n,), and the maps between original and standardised units.

    Between the knots (k,), which are increasing, both maps are straight lines; beyond the ends they go on with
    ``slope``. With one knot, as for ``log`` and ``none``, that is one line. For ``log`` knots are logarithms.
    """

    warp: Warp
    standardised: FloatArray
    knots: FloatArray
    standardised_knots: FloatArray
    slope: float  # original (or logarithmic) units per standardised unit, beyond the ends
    sign: float  # of the values; used by ``log`` only

    def forward(self, values: FloatArray) -> FloatArray:
        """Standardised units of original values of any shape; strictly increasing."""
        return _broken_line(self._to_line(values), self.knots, self.standardised_knots, 1.0 / self.slope)

    def inverse(self, standardised: FloatArray) -> FloatArray:
        """Original units of standardised values of any shape; strictly increasing, undoes `forward`."""
        line = _broken_line(np.asarray(standardised, np.float64), self.standardised_knots, self.knots, self.slope)
        if self.warp is not Warp.LOG:
            return line
        return np.asarray(self.sign * np.exp(np.clip(self.sign * line, -700.0, 700.0)))

    @property
    def is_affine(self) -> bool:
        """Whether means and standard deviations carry over, not only quantiles."""
        return self.warp is Warp.NONE

    def _to_line(self, values: FloatArray) -> FloatArray:
        values = np.asarray(values, np.float64)
        return values if self.warp is not Warp.LOG else _signed_log(values, self.sign)


def checked_values(values: object, n: int | None = None) -> FloatArray:
    """Finite values (n,) with n at least 1, or an error."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise InvalidValuesError(f"values must be numbers, got {type(values).__name__}: {cause}") from cause
    if array.ndim != 1 or not len(array) or (n is not None and len(array) != n):
        wanted = "at least one value" if n is None else f"one value for each of the {n} points of the distance array"
        raise InvalidValuesError(f"values must have shape (n,) with {wanted}, got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        bad = np.flatnonzero(~np.isfinite(array))
        raise InvalidValuesError(
            f"values must be finite, got {array[bad[0]]} at index {bad[0]} and {len(bad)} such in all; a failed "
            "evaluation is an outcome of its own, not a number: leave it out"
        )
    return array


def warp_values(values: FloatArray, warp: Warp = Warp.RANK) -> WarpedValues:
    """Warp and standardise values (n,); any n >= 1, with ties, also all equal."""
    values, warp = checked_values(values), Warp(warp)
    if warp in (Warp.RANK, Warp.BEST):
        return _ranked(values, warp)
    sign = 1.0 if values[0] > 0 else -1.0
    line = values if warp is Warp.NONE else _signed_log(values, sign)
    centre, spread = _centre_and_spread(line)
    return WarpedValues(warp, (line - centre) / spread, np.array([centre]), np.zeros(1), spread, sign)


def _ranked(values: FloatArray, warp: Warp) -> WarpedValues:
    # Average ranks: tied values are equally good, and must look equal to the Gaussian process.
    knots, first = np.unique(values, return_index=True)
    standardised = _standardised(ndtri((average_ranks(values) - 0.5) / len(values)))
    if warp is Warp.BEST and len(knots) > 1:
        standardised = _standardised(standardised + _standardised(-np.log(_shortfall(values))))
    z_knots = standardised[first]
    # The two end segments alone would be a noisy guide to what lies beyond them; the overall slope is not.
    slope = (knots[-1] - knots[0]) / (z_knots[-1] - z_knots[0]) if len(knots) > 1 else _fallback_spread(values)
    return WarpedValues(warp, standardised, knots, z_knots, float(slope), 1.0)


def _shortfall(values: FloatArray) -> FloatArray:
    """How far values fall short of the level above the best, in units of the range; they are not all equal."""
    unit = values / float(np.abs(values).max())  # their range must not overflow
    behind = (unit.max() - unit) / np.ptp(unit)
    typical = float(np.median(behind)) or 1.0  # most are the best: then it is the range
    return np.asarray(behind + LEVEL * typical)


def _standardised(line: FloatArray) -> FloatArray:
    centre, spread = _centre_and_spread(line)
    return (line - centre) / spread


def _centre_and_spread(line: FloatArray) -> tuple[float, float]:
    # Divided by the largest first, so that squares of 1e200 do not overflow nor those of 1e-200 vanish.
    largest = float(np.abs(line).max()) or 1.0
    unit = line / largest
    centre, spread = float(unit.mean()), float(unit.std())
    if np.ptp(unit) == 0.0:
        return float(line[0]), _fallback_spread(line)
    return centre * largest, spread * largest


def _fallback_spread(values: FloatArray) -> float:
    """The unit when all values are equal and say nothing of one: their own size, so that units still do not matter."""
    return float(np.abs(values).max()) or 1.0


def _signed_log(values: FloatArray, sign: float) -> FloatArray:
    if np.any(sign * values <= 0.0):
        raise InvalidValuesError(
            f"warp 'log' needs values that are all positive or all negative, got {float(values.min()):.6g} to "
            f"{float(values.max()):.6g}; use warp 'rank' or 'none'"
        )
    return np.asarray(sign * np.log(sign * values))


def _broken_line(at: FloatArray, knots: FloatArray, heights: FloatArray, slope: float) -> FloatArray:
    inside = np.interp(at, knots, heights)
    return np.asarray(inside + slope * (np.minimum(at - knots[0], 0.0) + np.maximum(at - knots[-1], 0.0)))

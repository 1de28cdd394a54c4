"""Rounding before a decision, so that it does not hang on the last bits of a sum.

Another processor, or another BLAS kernel on the same one, adds in another order; what differs is the last few of the 53
bits of a number. Two numbers that are equal after rounding lead to the same decision everywhere, unless a boundary
lies between them, which is the rarer the coarser the grid is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def to_bits(values: Floats, bits: int) -> Floats:
    """The values with so many significant bits; exact, so equal on every machine. Infinities stay."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits))


def to_grid(values: Floats, bits: int) -> Floats:
    """The values as multiples of 2^-bits; exact, too."""
    return np.asarray(np.ldexp(np.round(np.ldexp(values, bits)), -bits))

"""Sixteen numbers at a time, for the inner loops of the solver that the compiler does not turn into vector code itself.

Each function is plain Python: that is what it means, and what runs while nothing is compiled. Compiled code gets the
same as vector instructions (``lane_code.py``). Nothing asks whether an index is in range: arrays end on whole lanes,
which is the callers' promise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Hops = NDArray[np.int32]
Whole = int | np.uint64

LANES = 16
# Path lengths of a group of layers: shortest and longest ones are whole numbers, those of random walks are not.
HOPS = 4
WALKS = 2


def any_below(a: Floats, at_a: Whole, b: Floats, at_b: Whole, n: Whole, bound: float) -> bool:
    """Whether a - b < bound somewhere among n numbers, which are whole lanes."""
    return bool((a[int(at_a) : int(at_a) + int(n)] - b[int(at_b) : int(at_b) + int(n)] < bound).any())


def lanes_equal(a: Floats, at_a: Whole, b: Floats, at_b: Whole, value: float) -> np.uint64:
    """Bit k is set where a - b == value in lane k."""
    return _as_bits(_lanes(a, at_a) - _lanes(b, at_b) == value)


def least_of_lanes(a: Floats, at_a: Whole, b: Floats, at_b: Whole, n: Whole) -> float:
    """The least a - b of n numbers, which are whole lanes: one search within lanes, however many of them."""
    return float(min(a[int(at_a) : int(at_a) + int(n)] - b[int(at_b) : int(at_b) + int(n)]))


def add_to_lanes(a: Floats, at_a: Whole, bits: Whole, added: float) -> None:
    """Add to a in lane k where bit k is set."""
    for k in range(LANES):
        if (int(bits) >> k) & 1:
            _lanes(a, at_a)[k] += added


def copy_lanes(a: Floats, at_a: Whole, b: Floats, at_b: Whole) -> None:
    """a = b."""
    _lanes(a, at_a)[:] = _lanes(b, at_b)


def set_lanes(a: Floats, at_a: Whole, b: Floats, at_b: Whole, c: Floats, at_c: Whole, weight: float) -> None:
    """a = b + weight * c."""
    _lanes(a, at_a)[:] = _lanes(b, at_b) + weight * _lanes(c, at_c)


def set_structural_costs(
    a: Floats, at_a: Whole,
    hops_1: Hops, at_hops_1: Whole, hops_2: Hops, at_hops_2: Whole,
    walks_1: Floats, at_walks_1: Whole, walks_2: Floats, at_walks_2: Whole,
    apart_1: Whole, apart_2: Whole, n_groups: Whole, weight: float,
) -> None:  # fmt: skip
    """a = weight * sum of |differences| in hops + that in walks, of one layer from each of those in the lanes.

    The lengths of one layer are ``apart_1`` from each other, those of the others ``apart_2``; groups one by one.
    """
    hops, walks = np.zeros(LANES, np.int32), np.zeros(LANES)
    for k in range(HOPS * int(n_groups)):
        hops += abs(hops_1[int(at_hops_1) + k * int(apart_1)] - _lanes(hops_2, int(at_hops_2) + k * int(apart_2)))
    for k in range(0, WALKS * int(n_groups), WALKS):
        ends = (
            abs(walks_1[int(at_walks_1) + j * int(apart_1)] - _lanes(walks_2, int(at_walks_2) + j * int(apart_2)))
            for j in range(k, k + WALKS)
        )
        walks += sum(ends)
    _lanes(a, at_a)[:] = weight * hops + walks


def clear_lanes(a: Floats, at_a: Whole) -> None:
    """a = 0."""
    _lanes(a, at_a)[:] = 0.0


def first_bit(bits: Whole) -> np.uint64:
    """Number of the lowest bit that is set; one must be."""
    return np.uint64((int(bits) & -int(bits)).bit_length() - 1)


def _lanes(a: NDArray[Any], at: Whole) -> NDArray[Any]:
    return a[int(at) : int(at) + LANES]


def _as_bits(flags: NDArray[np.bool_]) -> np.uint64:
    return np.uint64(sum(1 << k for k in range(LANES) if flags[k]))

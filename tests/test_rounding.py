"""Rounding before decisions: exact, idempotent, and deaf to last bits."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nasbot._rounding import to_bits, to_grid

NUMBERS = st.floats(min_value=-1e100, max_value=1e100, allow_subnormal=False)


@given(NUMBERS, st.integers(5, 53))
def test_so_many_bits_are_kept(value, bits):
    (rounded,) = to_bits(np.array([value]), bits)
    assert abs(rounded - value) <= abs(value) * 2.0**-bits
    mantissa, _ = math.frexp(rounded)
    assert (mantissa * 2.0**bits).is_integer()
    assert to_bits(np.array([rounded]), bits)[0] == rounded


@given(st.floats(-1e6, 1e6), st.integers(0, 30))
def test_multiples_of_a_power_of_two(value, bits):
    (rounded,) = to_grid(np.array([value]), bits)
    assert abs(rounded - value) <= 2.0 ** -(bits + 1)
    assert (rounded * 2.0**bits).is_integer()


def test_the_last_bits_do_not_count():
    values = np.array([1.0 + 1e-3, -37.25, 1e-300, 12345.678])
    assert (to_bits(values * (1 + 2.0**-50), 27) == to_bits(values, 27)).all()
    assert (to_bits(values * (1 + 2.0**-20), 27) != to_bits(values, 27)).all()


def test_infinities_stay():
    assert to_bits(np.array([-np.inf, np.inf, 0.0]), 27).tolist() == [-math.inf, math.inf, 0.0]

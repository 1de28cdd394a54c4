"""Acquisition functions against numerical integration, high-precision numbers and each other."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from nasbot.acquisition.functions import (
    averaged,
    expected_improvement,
    log_averaged,
    log_expected_improvement,
    uniform,
    upper_confidence_bound,
)


@given(st.floats(-5, 5), st.floats(0.01, 10), st.floats(-5, 5))
def test_expected_improvement_is_the_integral_of_the_improvement(mean: float, sd: float, best: float) -> None:
    def improvement(y: float) -> float:
        return (y - best) * float(norm.pdf(y, mean, sd))

    top = max(best, mean) + 12 * sd
    middle = min(max(mean, best), top)
    integral = quad(improvement, best, middle)[0] + quad(improvement, middle, top)[0]
    got = expected_improvement(np.array([mean]), np.array([sd]), best)[0]
    assert got == pytest.approx(integral, rel=1e-6, abs=1e-12)


# log h(z), h(z) = φ(z) + z Φ(z), by 80-digit arithmetic (mpmath).
LOG_H = {
    -1.0: -2.4851210257126413368,
    -5.0: -16.744301162660990143,
    -20.0: -206.91783850942509785,
    -30.0: -457.72465376059800405,
    -200.0: -20011.515648259739324,
    -99999.0: -4999900024.4447694633,
    -1e6: -500000000028.54995965,
}


@pytest.mark.parametrize(("z", "expected"), LOG_H.items())
def test_log_expected_improvement_over_hundreds_of_orders_of_magnitude(z: float, expected: float) -> None:
    for sd in (1e-100, 1.0, 1e100):
        got = log_expected_improvement(np.array([z * sd]), np.array([sd]), 0.0)[0]
        assert got == pytest.approx(expected + math.log(sd), rel=1e-11)


def test_log_expected_improvement_is_increasing_and_continuous_across_its_pieces() -> None:
    z = np.concatenate([-np.logspace(8, 0, 4001), np.linspace(-1.0, 40.0, 4001)])
    values = log_expected_improvement(z, np.ones_like(z), 0.0)
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0).all()
    for seam in (-1.0, -1e5):
        left, right = log_expected_improvement(np.array([seam * (1 + 1e-12), seam * (1 - 1e-12)]), np.ones(2), 0.0)
        assert left == pytest.approx(right, rel=1e-9)


@given(st.floats(-30, 30), st.floats(1e-3, 1e3))
def test_the_logarithm_agrees_with_the_formula_where_that_is_exact(z: float, sd: float) -> None:
    mean = np.array([z * sd])
    plain = expected_improvement(mean, np.array([sd]), 0.0)[0]
    if z > -4:  # further down the plain formula cancels
        assert log_expected_improvement(mean, np.array([sd]), 0.0)[0] == pytest.approx(math.log(plain), abs=1e-8)


def test_averages_over_hyper_parameter_samples() -> None:
    utility = np.array([[1.0, 4.0], [3.0, 8.0]])
    np.testing.assert_allclose(averaged(utility), [2.0, 6.0])
    np.testing.assert_allclose(log_averaged(np.log(utility)), np.log([2.0, 6.0]))
    far = np.array([[-1e6], [-1e6 - 5]])
    assert log_averaged(far)[0] == pytest.approx(-1e6 - math.log(2) + math.log1p(math.exp(-5)))


def test_upper_confidence_bound_likes_the_uncertain_and_uniform_likes_nothing() -> None:
    bound = upper_confidence_bound(np.zeros(2), np.array([1.0, 2.0]), 10)
    assert bound[1] == pytest.approx(2 * bound[0])
    assert bound[0] == pytest.approx(math.sqrt(0.5 * math.log(21)))
    drawn = uniform(np.array([0.0, 1e9]), rng=np.random.default_rng(0))
    assert ((drawn >= 0) & (drawn < 1)).all()

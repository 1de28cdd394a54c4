import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.gp.repair import VARIANCE_FLOOR, Repairs, cholesky, factorise, floored


def _symmetric(n, seed):
    entries = np.random.default_rng(seed).normal(size=(n, n))
    return (entries + entries.T) / 2


@given(st.integers(1, 12), st.integers(0, 10**6), st.floats(1e-12, 10.0))
def test_any_symmetric_matrix_is_factorised_as_a_positive_semidefinite_one(n, seed, noise):
    gram = _symmetric(n, seed)
    factor = factorise(gram, noise, 1.0)
    precision = factor.whitener.T @ factor.whitener
    if factor.unexplained is not None:
        precision = precision + factor.unexplained.T @ factor.unexplained
    eigenvalues, vectors = np.linalg.eigh(gram)
    repaired = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T + max(noise, 1e-8) * np.eye(n)
    np.testing.assert_allclose(precision @ repaired, np.eye(n), atol=1e-5)
    assert (factor.repairs.clipped_grams == 1) == (eigenvalues.min() < -1e-8)


def test_a_definite_matrix_is_left_alone():
    gram = np.array([[2.0, 0.5], [0.5, 1.0]])
    factor = factorise(gram, 0.1, 1.5)
    assert factor.repairs == Repairs()
    assert factor.unexplained is None
    np.testing.assert_allclose(factor.whitener.T @ factor.whitener, np.linalg.inv(gram + 0.1 * np.eye(2)))


def test_a_singular_matrix_without_noise_gets_jitter_and_says_so():
    factor = factorise(np.ones((4, 4)), 0.0, 1.0)
    assert factor.repairs == Repairs(jittered_grams=1)
    assert np.all(np.isfinite(factor.whitener))


def test_clipped_directions_leave_predictions_and_are_left_to_noise():
    gram = np.diag([1.0, -0.5])
    factor = factorise(gram, 0.25, 1.0)
    np.testing.assert_allclose(factor.whitener.T @ factor.whitener, np.diag([1 / 1.25, 0.0]), atol=1e-15)
    np.testing.assert_allclose(factor.unexplained.T @ factor.unexplained, np.diag([0.0, 4.0]), atol=1e-15)


def test_cholesky_says_when_there_is_none():
    assert cholesky(np.diag([1.0, -1.0]), 0.5) is None
    assert cholesky(np.diag([1.0, np.inf]), 0.5) is None  # one root is finite
    np.testing.assert_allclose(cholesky(np.diag([1.0, -1.0]), 3.0), np.diag([2.0, np.sqrt(2.0)]))


def test_variances_are_floored_and_counted():
    variance, repairs = floored(np.array([[0.5, -3.0], [1e-30, 1.0]]), np.array([[1.0], [2.0]]))
    np.testing.assert_allclose(variance, [[0.5, VARIANCE_FLOOR], [2 * VARIANCE_FLOOR, 1.0]])
    assert repairs == Repairs(floored_variances=2)


def test_repairs_add_up_and_read_well():
    total = Repairs(rejected_draws=2) + Repairs(rejected_draws=1, clipped_grams=4)
    assert total == Repairs(rejected_draws=3, clipped_grams=4)
    assert str(total) == "3 rejected draws, 4 clipped grams"
    assert str(Repairs()) == "no repairs"
    assert total
    assert not Repairs()


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_scale_of_the_matrix_does_not_decide_what_is_repaired(noise):
    gram = _symmetric(6, 3)
    small, large = (factorise(gram * unit, noise * unit, unit) for unit in (1e-20, 1e20))
    assert small.repairs == large.repairs
    np.testing.assert_allclose(small.whitener * 1e-10, large.whitener * 1e10, rtol=1e-6, atol=1e-12)

"""P(feasible): a known answer by hand, limits, and what an indefinite kernel must not do to it."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from nasbot.acquisition.feasibility import (
    NOISE_VARIANCE,
    PRIOR_MEAN,
    TO_THE_NEAREST,
    Feasibility,
    _local_power,
    _positive,
    _with_local,
)


def probability(correlation, succeeded, cross):
    belief = Feasibility.of(np.array(correlation, dtype=float), np.array(succeeded))
    return np.exp(belief.log_probability(np.array(cross, dtype=float).reshape(len(correlation), -1)))


def test_known_answer_for_one_failure():
    """mean = 1 + rho (-1 - 1) / 1.01, variance = 1 - rho² / 1.01."""
    for rho in (0.0, 0.3, 0.8, 1.0):
        mean = PRIOR_MEAN - 2 * rho / (1 + NOISE_VARIANCE)
        sd = math.sqrt(1 - rho**2 / (1 + NOISE_VARIANCE))
        assert probability([[1.0]], [False], [rho]) == pytest.approx(norm.cdf(mean / sd))


def test_known_answer_for_a_failure_and_a_success():
    """Two independent networks; the one asked about resembles both."""
    got = probability(np.eye(2), [True, False], [0.5, 0.6])
    mean = PRIOR_MEAN + 0.5 * 0.0 / 1.01 + 0.6 * -2.0 / 1.01
    sd = math.sqrt(1 - (0.25 + 0.36) / 1.01)
    assert got == pytest.approx(norm.cdf(mean / sd))


def test_far_from_everything_most_networks_work():
    assert probability([[1.0]], [False], [0.0]) == pytest.approx(norm.cdf(PRIOR_MEAN))


def test_falls_towards_failures_and_rises_towards_successes():
    rho = np.linspace(0, 1, 20)
    failing, working = (probability([[1.0]], [succeeded], rho) for succeeded in (False, True))
    assert (np.diff(failing) < 0).all()
    assert (np.diff(working) > 0).all()
    assert failing[-1] < 0.01
    assert working[-1] > 0.99


def test_no_surer_than_so_many_observations_of_the_point_itself():
    """A kernel that is not positive definite leaves less than no variance; without a floor one neighbour decides."""
    indefinite = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
    assert np.linalg.eigvalsh(indefinite)[0] < 0
    belief = Feasibility.of(indefinite, np.array([True, False, True]))
    log_p = belief.log_probability(np.array([[0.99, 0.0], [-0.99, 0.99], [0.99, 0.0]]))
    assert np.isfinite(log_p).all()
    most = NOISE_VARIANCE / (3 + NOISE_VARIANCE)
    mean = PRIOR_MEAN + np.array([[0.99, -0.99, 0.99], [0.0, 0.99, 0.0]]) @ belief.weights
    assert (log_p >= norm.logcdf(np.minimum(mean, 0) / math.sqrt(most)) - 1e-9).all()


def test_as_sure_as_n_observations_of_the_point_itself_make_it():
    n = 6
    got = probability(np.ones((n, n)), [False] * n, np.ones(n))
    mean = PRIOR_MEAN - 2 * n / (n + NOISE_VARIANCE)
    assert np.log(got) == pytest.approx(norm.logcdf(mean / math.sqrt(NOISE_VARIANCE / (n + NOISE_VARIANCE))), rel=1e-6)


def test_one_failure_among_many_alike_is_seen_where_it_is():
    """Features make a belief so smooth that all networks resemble each other: the failure must not pass for noise."""
    places = np.linspace(0.0, 1.0, 100)[:, None]
    asked = places[40] + np.array([0.0, 0.003, 0.5])
    correlation, cross = (np.exp(-0.01 * (places - others) ** 2) for others in (places.T, asked))
    at_it, beside_it, far_away = probability(correlation, np.arange(100) != 40, cross)
    assert at_it < 0.01
    assert at_it < beside_it < 0.97 < far_away


def test_what_is_negative_in_an_indefinite_kernel_is_taken_as_nothing():
    """Eigenvalues 3 and -1 along (1, 1) and (1, -1): 3 / 2 everywhere is left."""
    assert _positive(np.array([[1.0, 2.0], [2.0, 1.0]])) == pytest.approx(np.full((2, 2), 1.5))
    definite = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert _positive(definite) is definite


@pytest.mark.parametrize(
    ("nearest", "power"), [(TO_THE_NEAREST ** (1 / 3), 3.0), (TO_THE_NEAREST**0.75, 4 / 3), (0.04, 1.0), (0.0, 1.0)]
)
def test_the_local_part_makes_the_nearest_network_a_stranger(nearest, power):
    """Under it a typical network resembles the nearest by a fifth; what resembles less already stays as it is."""
    assert _local_power(np.array([[1.0, nearest], [nearest, 1.0]])) == pytest.approx(power)


def test_a_tenth_of_the_variance_is_local():
    correlation = np.array([0.5, -0.5])
    assert _with_local(correlation, 2.0) == pytest.approx([0.9 * 0.5 + 0.1 * 0.25, -0.45])
    assert _with_local(correlation, 1.0) == pytest.approx(correlation)


@pytest.mark.parametrize(("correlation", "is_same"), [(1.0, True), (1.0 - 1e-12, True), (1.0 - 1e-6, False)])
def test_a_network_that_is_there_twice_says_nothing_of_its_neighbours(correlation, is_same):
    assert (_local_power(np.array([[1.0, correlation], [correlation, 1.0]])) == 1.0) is is_same

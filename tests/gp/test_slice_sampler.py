"""The sampler against targets whose answer is known, and by simulation-based calibration (Talts et al. 2018)."""

import numpy as np
import pytest
from scipy.stats import chisquare, expon, kstest

from nasbot.gp.fit import posterior_samples
from nasbot.gp.hyperparameters import Prior
from nasbot.gp.kernel import ensemble_kernel
from nasbot.gp.likelihood import LogPosterior
from nasbot.gp.rows import Rows, RowScaling
from nasbot.gp.slice_sampler import MOST_STEPS, _step_out, slice_walk
from tests.gp.problems import distances, normalised_distances, points


def test_recovers_a_correlated_normal():
    covariance = np.array([[1.0, 0.8, 0.0], [0.8, 2.0, 0.3], [0.0, 0.3, 0.25]])
    centre, precision = np.array([1.0, -2.0, 0.5]), np.linalg.inv(covariance)
    walk = slice_walk(
        lambda x: float(-0.5 * (x - centre) @ precision @ (x - centre)),
        np.zeros(3),
        np.ones(3),
        n_draws=6000,
        burn_in=20,
        rng=np.random.default_rng(1),
    )
    np.testing.assert_allclose(walk.positions.mean(axis=0), centre, atol=0.08)
    np.testing.assert_allclose(np.cov(walk.positions.T), covariance, atol=0.12)
    assert walk.n_rejected == 0


def test_recovers_a_skewed_density_with_an_edge_and_counts_what_lies_beyond_it():
    asked = []

    def density(x):
        asked.append(float(x[0]))
        return -float(x[0]) if x[0] > 0.0 else -np.inf

    walk = slice_walk(
        density,
        np.ones(1),
        np.ones(1),
        n_draws=3000,
        thin=3,
        rng=np.random.default_rng(2),
    )
    assert kstest(walk.positions[:, 0], expon.cdf).pvalue > 0.01
    assert 0 < walk.n_rejected < walk.n_evaluations
    assert (walk.n_rejected, walk.n_evaluations) == (sum(x <= 0.0 for x in asked), len(asked))


def test_narrow_slices_are_found_by_shrinking_and_wide_ones_by_stepping_out():
    for spread in (1e-3, 4.0):
        walk = slice_walk(
            lambda x, spread=spread: float(-0.5 * (x[0] / spread) ** 2),
            np.zeros(1),
            np.ones(1),
            n_draws=4000,
            rng=np.random.default_rng(3),
        )
        assert walk.positions.std() == pytest.approx(spread, rel=0.1)
    assert MOST_STEPS < 16  # so that the wide one could not have been covered in one update


def test_a_walk_is_continued_by_starting_where_it_stopped():
    def density(x):
        return float(-0.5 * x @ x)

    rng = np.random.default_rng(4)
    whole = slice_walk(density, np.zeros(2), np.ones(2), n_draws=6, rng=np.random.default_rng(4)).positions
    first = slice_walk(density, np.zeros(2), np.ones(2), n_draws=4, rng=rng).positions
    second = slice_walk(density, first[-1], np.ones(2), n_draws=2, rng=rng).positions
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)


def test_burn_in_and_thinning_are_sweeps_left_out():
    def density(x):
        return float(-0.5 * x @ x)

    every = slice_walk(density, np.zeros(2), np.ones(2), n_draws=7, rng=np.random.default_rng(5)).positions
    some = slice_walk(density, np.zeros(2), np.ones(2), n_draws=2, thin=2, burn_in=3, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(some.positions, every[[4, 6]])


def test_a_walk_must_start_where_there_is_density():
    with pytest.raises(ValueError, match="must start where the log density is finite"):
        slice_walk(lambda x: -np.inf, np.zeros(1), np.ones(1), n_draws=1, rng=np.random.default_rng(0))


def _ranks(n_simulations, n_draws, thin, seed, spread_of_truth=1.0):
    """Rank of the true hyper-parameters, and of the true density, among posterior draws: (simulations, 12)."""
    x = points(7, seed=11)
    rows = Rows.of(distances(x, x), normalised_distances(x, x))
    form = rows.form(1.0, 1.0)
    powered = RowScaling.of(rows, form).powered(rows)
    rng = np.random.default_rng(seed)
    ranks = np.empty((n_simulations, form.n_hyperparameters + 1), dtype=int)
    for simulation in range(n_simulations):
        truth = rng.normal(Prior().mean(form), spread_of_truth * Prior().spread(form))
        gram = ensemble_kernel(powered, truth[None], form)[0] + np.exp(truth[-1]) * np.eye(7)
        target = LogPosterior.of(powered, np.linalg.cholesky(gram) @ rng.standard_normal(7), form, Prior())
        drawn = posterior_samples(target, target.prior_mean, n_samples=n_draws, thin=thin, burn_in=6, rng=rng).vectors
        ranks[simulation, :-1] = (drawn < truth).sum(axis=0)
        ranks[simulation, -1] = sum(target(vector) < target(truth) for vector in drawn)
    return ranks


def _uniformity(ranks, n_draws, n_bins):
    """p-value that all ranks are uniform: the smallest of the chi-square tests per quantity, Bonferroni corrected."""
    bins = ranks * n_bins // (n_draws + 1)
    p_values = [chisquare(np.bincount(column, minlength=n_bins)).pvalue for column in bins.T]
    return min(1.0, min(p_values) * len(p_values))


def test_simulation_based_calibration():
    assert _uniformity(_ranks(200, 7, thin=2, seed=2024), 7, n_bins=8) > 0.01


def test_simulation_based_calibration_notices_a_wrong_prior():
    assert _uniformity(_ranks(40, 7, thin=1, seed=2024, spread_of_truth=2.0), 7, n_bins=4) < 0.01


@pytest.mark.slow
def test_simulation_based_calibration_in_full():
    assert _uniformity(_ranks(300, 31, thin=2, seed=7), 31, n_bins=16) > 0.01


def test_the_interval_lies_around_the_position_at_random():
    """Without that a chain does not leave a density of several pieces as it is."""
    rng = np.random.default_rng(0)
    places = []
    for _ in range(1000):
        left, right = _step_out(lambda x: -1.0, np.array([3.0]), 0.0, 0, 2.0, rng)
        assert right - left == pytest.approx(2.0)
        places.append((3.0 - left) / 2.0)
    assert kstest(places, "uniform").pvalue > 0.01


def test_an_interval_grows_while_its_ends_lie_on_the_slice_by_so_many_steps_in_all():
    """The steps are divided at random between both sides, which keeps the density as it is."""
    rng, found = np.random.default_rng(0), set()
    for _ in range(200):
        place = np.array([0.0, 3.0])
        left, right = _step_out(lambda x: 1.0, place, 0.0, 1, 2.0, rng)
        assert right - left == pytest.approx(2.0 * MOST_STEPS)
        found.add(round((3.0 - left) // 2.0))
        left, right = _step_out(lambda x: 1.0 if x[1] < 3.0 else 0.0, place, 0.0, 1, 2.0, rng)
        assert right <= 5.0
    assert found == set(range(MOST_STEPS))

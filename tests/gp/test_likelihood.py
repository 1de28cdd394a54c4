import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, norm

from nasbot.gp.fit import default_starts, feasible, posterior_mode
from nasbot.gp.hyperparameters import Hyperparameters
from nasbot.gp.kernel import otmann_kernel
from nasbot.gp.warping import warp_values
from tests.gp.problems import log_posterior, more_rows, problem

KINDS = {"both": (True, True), "only d": (True, False), "only d_bar": (False, True)}


def _target(n, kinds="both", **kwargs):
    _, d, d_bar, values = problem(n)
    wants_d, wants_bar = KINDS[kinds]
    target, scaling = log_posterior(d if wants_d else None, d_bar if wants_bar else None, values, **kwargs)
    return target, scaling, d, d_bar, values


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("n", [1, 2, 9])
def test_log_density_is_the_multivariate_normal_times_the_prior(n, kinds):
    target, scaling, d, d_bar, values = _target(n, kinds)
    vector = target.prior_mean + np.random.default_rng(0).normal(0.0, 1.0, len(target.prior_mean))
    theta = scaling.in_distance_units(Hyperparameters.from_log(vector, target.form))
    wants_d, wants_bar = KINDS[kinds]
    gram = otmann_kernel(d if wants_d else None, d_bar if wants_bar else None, theta)
    noisy = gram + theta.noise_variance * np.eye(n)
    slow = multivariate_normal(np.zeros(n), noisy).logpdf(warp_values(values, "none").standardised)
    # The normalising constant of the prior is left out of the target.
    slow += norm(target.prior_mean, target.prior_spread).logpdf(vector).sum()
    slow += np.log(np.sqrt(2.0 * np.pi) * target.prior_spread).sum()
    assert target(vector) == pytest.approx(slow, rel=1e-9)
    assert target.with_gradient(vector)[0] == pytest.approx(slow, rel=1e-9)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("p_bar", [1.0, 1.7])
def test_gradient_is_the_slope(kinds, p_bar):
    target, *_ = _target(12, kinds, p_bar=p_bar)
    for seed in range(3):
        vector = target.prior_mean + np.random.default_rng(seed).normal(0.0, 0.7, len(target.prior_mean))
        density, gradient = target.with_gradient(vector)
        assert np.isfinite(density)
        np.testing.assert_allclose(gradient, approx_fprime(vector, target, 1e-6), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("more", [("params",), ("features", "params")])
def test_gradient_is_the_slope_where_rows_are_shared(kinds, more):
    given = {kind: rows for kind, rows in more_rows(12).items() if kind in more}
    target, *_ = _target(12, kinds, **given)
    for seed in range(3):
        vector = target.prior_mean + np.random.default_rng(seed).normal(0.0, 0.7, len(target.prior_mean))
        density, gradient = target.with_gradient(vector)
        assert density == pytest.approx(target(vector))
        np.testing.assert_allclose(gradient, approx_fprime(vector, target, 1e-6), rtol=2e-4, atol=2e-4)


def _indefinite(n=12):
    """Distances of two far groups that are all close to a hub: exp(-d²) of them is badly indefinite."""
    d = np.full((n, n), 3.0)
    d[0] = d[:, 0] = 0.2
    np.fill_diagonal(d, 0.0)
    assert np.linalg.eigvalsh(np.exp(-(d**2))).min() < -0.5
    return d[None]


def test_a_failed_factorisation_has_no_density_and_no_slope():
    target, _ = log_posterior(_indefinite(), None, np.arange(12.0), p=2.0)
    rough = target.prior_mean.copy()
    rough[-1] = -10.0
    rough[1] = np.log(0.2)
    assert target(rough) == -np.inf
    density, gradient = target.with_gradient(rough)
    assert density == -np.inf
    assert not gradient.any()
    assert np.isfinite(target(feasible(target, rough[None]).vectors[0]))


def test_absurd_vectors_have_no_density():
    target, *_ = _target(4)
    assert target(target.prior_mean + 1e4) == -np.inf
    assert target.with_gradient(target.prior_mean - 1e4)[0] == -np.inf


def test_mode_is_a_stationary_point_better_than_its_starts():
    target, *_ = _target(40)
    starts = default_starts(target, 3).vectors
    mode = posterior_mode(target, starts)
    density, gradient = target.with_gradient(mode.vectors[0])
    assert density > max(target(start) for start in starts) + 1.0
    assert np.abs(gradient).max() < 0.2  # moving by a whole unit of log gains less than the tolerance matters
    assert mode.n_rejected == 0


def test_mode_search_survives_places_without_density_and_counts_them():
    target, _ = log_posterior(_indefinite(), None, np.arange(12.0), p=2.0)
    mode = posterior_mode(target, default_starts(target, 2).vectors)
    assert np.isfinite(target(mode.vectors[0]))
    assert mode.n_evaluations > mode.n_rejected


def test_starts_are_the_mode_of_the_prior_and_four_places_around_it():
    target, *_ = _target(12)
    starts = default_starts(target, 5).vectors
    away = starts - target.prior_mean
    spread = target.prior_spread
    noise = sorted(away[:, -1] / spread[-1])
    np.testing.assert_allclose(noise, [-1, -1, 0, 1, 1], atol=1e-12)
    moved = np.array([np.abs(target.form.decays(place)).max() > 0 for place in away])
    assert moved.sum() == 4
    for place in away[moved]:
        np.testing.assert_allclose(np.abs(target.form.decays(place)), target.form.decays(spread))
        others = place.copy()
        target.form.decays(others)[:] = 0
        others[-1] = 0
        assert not others.any()
    assert {(np.sign(place[-1]), np.sign(target.form.decays(place)[0])) for place in away[moved]} == {
        (1, 1), (1, -1), (-1, 1), (-1, -1),
    }  # fmt: skip
    heights = [target(start) for start in starts]
    assert heights == sorted(heights, reverse=True)
    assert len(default_starts(target, 2).vectors) == 2


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("place", [0, -1])
def test_one_log_hyperparameter_beyond_230_on_either_side_is_enough_to_have_no_density(place, sign):
    target, *_ = _target(4)
    vector = target.prior_mean.copy()
    vector[place] = sign * 230.0
    density, gradient = target.with_gradient(vector)
    assert np.isfinite(target(vector))
    assert density == pytest.approx(target(vector))
    assert np.isfinite(gradient).all()
    assert gradient.any()
    vector[place] = sign * 230.1
    assert target(vector) == -np.inf
    density, gradient = target.with_gradient(vector)
    assert density == -np.inf
    assert gradient.shape == vector.shape
    assert not gradient.any()

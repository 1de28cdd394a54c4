"""Evaluations at less than the full effort: what they say of full ones."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from nasbot.gp import BeliefOptions, Inference, InvalidValuesError, Rows, fit_belief
from nasbot.gp.fidelity import levelled, remainder, remainder_slope
from nasbot.gp.hyperparameters import KernelForm, Prior
from nasbot.gp.kernel import otmann_kernel
from nasbot.gp.likelihood import LogPosterior
from nasbot.gp.rows import RowScaling
from tests.gp.problems import distances, normalised_distances, objective, points

MAP = BeliefOptions(inference=Inference.MAP)


def _fit(x, values, fidelities, options=MAP):
    rows = Rows.of(distances(x, x), normalised_distances(x, x))
    return fit_belief(rows, values, fidelities=fidelities, options=options, rng=np.random.default_rng(0))


def _cross(x, others):
    return Rows.of(distances(x, others), normalised_distances(x, others))


def test_the_remainder_is_0_at_full_effort_and_1_at_a_ninth():
    phi = remainder(np.array([1.0, 1 / 3, 1 / 9, 1 / 27]), np.array(0.5))
    assert phi[[0, 2]] == pytest.approx([0.0, 1.0])
    assert np.all(np.diff(phi) > 0)
    s = np.array([1.0, 0.5, 0.1])
    slope = (remainder(s, np.array(0.7 * np.e**1e-6)) - remainder(s, np.array(0.7 * np.e**-1e-6))) / 2e-6
    np.testing.assert_allclose(remainder_slope(s, 0.7), slope, atol=1e-8)


def test_full_fidelity_everywhere_is_no_fidelity():
    x = points(12)
    options = BeliefOptions(n_samples=2)
    plain, full = _fit(x, objective(x), None, options), _fit(x, objective(x), np.ones(12), options)
    np.testing.assert_array_equal(plain.posterior.vectors, full.posterior.vectors)
    others = _cross(x, points(4, seed=3))
    np.testing.assert_array_equal(plain.predict(others).mean, full.predict(others, np.ones(4)).mean)


def test_the_best_mean_is_one_at_full_fidelity_where_there_is_one():
    x = points(12)
    fidelities = np.where(np.arange(12) < 6, 1.0, 1 / 3)
    belief = _fit(x, objective(x) + 3.0 * (fidelities < 1.0), fidelities)
    assert belief.denoised.argmax() >= 6
    assert belief.best_mean == belief.denoised[:, :6].max()
    cheap = _fit(x, objective(x), np.full(12, 1 / 3))
    assert cheap.best_mean == cheap.denoised.max()


@pytest.mark.parametrize("options", [MAP, BeliefOptions(n_samples=3)])
def test_cheap_evaluations_inform_predictions_at_full_fidelity(options):
    full, cheap, others = points(8, seed=1), points(50, seed=2), points(100, seed=3)
    x = np.concatenate([full, full, cheap])
    fidelities = np.r_[np.ones(8), np.full(58, 1 / 9)]
    values = objective(x) - 2.0 * (fidelities < 1.0) + 0.05 * np.random.default_rng(4).standard_normal(len(x))
    alone, both = _fit(full, values[:8], None, options), _fit(x, values, fidelities, options)
    truth = objective(others)
    with_cheap = np.corrcoef(both.predict(_cross(x, others)).mean.mean(axis=0), truth)[0, 1]
    assert with_cheap > max(0.85, np.corrcoef(alone.predict(_cross(full, others)).mean.mean(axis=0), truth)[0, 1])
    assert both.best_value == both.values[:8].max()
    at_full, at_low = both.predict(_cross(x, cheap[:5])), both.predict(_cross(x, cheap[:5]), np.full(5, 1 / 9))
    assert np.all(at_low.variance < at_full.variance)
    kept = np.arange(20)
    rough = both.knowing_only(kept, _cross(x[kept], x[kept])).hallucinate(
        _cross(x[kept], others), _cross(others, others)
    )
    assert len(rough.posterior.fidelities) == 120


def test_offsets_of_rungs_are_removed_by_pairs_and_not_by_the_ranks_of_a_selected_lot():
    fidelities = np.array([1.0, 1.0, 1 / 3, 1 / 3, 1 / 3, 1 / 9, 1 / 9])
    values = np.array([8.0, 9.0, 4.0, 4.5, 1.0, 2.0, 0.5])  # half at a third, a quarter at a ninth
    candidate = np.array([0, 1, 0, 1, 2, 0, 2])
    found = levelled(values, fidelities, candidate)
    np.testing.assert_allclose(found, [8.0, 9.0, 8.0, 9.0, 2.0, 8.0, 2.0])
    np.testing.assert_allclose(levelled(-values, fidelities, candidate), -found)


@pytest.mark.parametrize("n_params", [0, 1])
def test_gradient_is_the_slope(n_params):
    x = points(12)
    params = {"params": np.abs(x[:, None, 0] - x[None, :, 0])} if n_params else {}
    rows = Rows.of(distances(x, x), normalised_distances(x, x), **params)
    form = KernelForm(n_params=n_params, has_fidelities=True)
    fidelities = np.resize([1.0, 1 / 3, 1 / 9], 12)
    powered = RowScaling.of(rows, form).powered(rows)
    target = LogPosterior.of(powered, objective(x), form, Prior(), fidelities)
    for seed in range(3):
        vector = target.prior_mean + np.random.default_rng(seed).normal(0.0, 0.5, form.n_hyperparameters)
        density, gradient = target.with_gradient(vector)
        assert density == pytest.approx(target(vector))
        np.testing.assert_allclose(gradient, approx_fprime(vector, target, 1e-6), rtol=5e-4, atol=5e-4)


@pytest.mark.parametrize("fidelities", [[0.5], [0.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, np.nan, 1.0]])
def test_bad_fidelities_are_refused(fidelities):
    x = points(3)
    with pytest.raises(InvalidValuesError, match="fidelities must be 3 numbers in"):
        _fit(x, objective(x), fidelities)


def test_predictions_and_density_are_those_of_the_formulas():
    """Rung by rung and entry by entry, with dense algebra: kernel, offsets and the noise of each rung."""
    x, others = points(10), points(3, seed=3)
    fidelities = np.resize([1.0, 1 / 3, 1 / 9], 10)
    belief = _fit(x, objective(x) - 0.5 * (fidelities < 1), fidelities)
    (theta,) = belief.hyperparameters
    raw = belief.scaling.in_distance_units(theta)
    kappa, c, g, omega = theta.fidelity

    def plain(left, right):
        powers = {"distance_power": MAP.distance_power, "normalised_power": MAP.normalised_power}
        return otmann_kernel(*(f(left, right) for f in (distances, normalised_distances)), raw, **powers)

    def phi(s):
        return ((1 / s) ** g - 1) / (9**g - 1)

    gram = plain(x, x)
    noise = np.empty(10)
    for i, s in enumerate(fidelities):
        for j, z in enumerate(fidelities):
            gram[i, j] += phi(s) * phi(z) * (kappa * gram[i, j] + c)
        noise[i] = theta.noise_variance * (1 + omega * phi(s))
    assert noise[2] > noise[1] > noise[0] == theta.noise_variance
    np.testing.assert_allclose(np.diag(gram)[0], belief.posterior.prior_variance[0])
    noisy = gram + np.diag(noise)
    for s in (1.0, 0.5, 1 / 9):
        cross, at = plain(x, others), np.diag(plain(others, others)).copy()
        weight = phi(fidelities) * phi(s)
        cross += weight[:, None] * (kappa * cross + c)
        at += phi(s) ** 2 * (kappa * at + c)
        found = belief.predict(_cross(x, others), np.full(3, s))
        np.testing.assert_allclose(found.mean[0], cross.T @ np.linalg.solve(noisy, belief.values), rtol=1e-6)
        np.testing.assert_allclose(
            found.variance[0], at - np.sum(cross * np.linalg.solve(noisy, cross), axis=0), rtol=1e-6
        )
    ratio = plain(x[:1], x[:1])[0, 0] / np.diag(gram)[:3]
    np.testing.assert_allclose(belief.information_gap(fidelities[:3])[0], np.sqrt(1 - ratio), atol=1e-9)
    form = belief.scaling.form
    target = LogPosterior.of(belief.scaling.powered(_cross(x, x)), belief.values, form, Prior(), fidelities)
    vector = belief.posterior.vectors[0]
    log_prior = -0.5 * np.sum(((vector - target.prior_mean) / target.prior_spread) ** 2)
    likelihood = multivariate_normal.logpdf(belief.values, np.zeros(10), noisy)
    assert target(vector) == pytest.approx(log_prior + likelihood)


@pytest.mark.parametrize("loud", [1 / 9, 1.0])
def test_the_noise_of_low_rungs_is_learned(loud):
    """Four evaluations of each of 12 candidates, half of them short: where those are noisy the belief says so."""
    x = np.repeat(points(12), 4, axis=0)
    fidelities = np.resize([1.0, 1 / 9], len(x))
    sd = np.where(fidelities == 1 / 9, 0.5 if loud < 1 else 0.02, 0.02)
    values = objective(x) + sd * np.random.default_rng(5).standard_normal(len(x))
    belief = _fit(x, values, fidelities, BeliefOptions(inference=Inference.MAP, warp="none"))
    (theta,) = belief.hyperparameters
    at_full, at_low = theta.noise_variance, theta.noise_variance * (1 + theta.fidelity[3])
    unit = np.var(values)
    if loud < 1:
        assert at_low * unit == pytest.approx(0.25, rel=0.6)
        assert at_low > 5 * at_full
    else:
        assert at_low * unit < 0.02

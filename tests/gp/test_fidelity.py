"""Evaluations at less than the full effort: what they say of full ones."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from nasbot.gp import BeliefOptions, Inference, InvalidValuesError, Rows, fit_belief
from nasbot.gp.fidelity import levelled, remainder, remainder_slope
from nasbot.gp.hyperparameters import KernelForm, Prior
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
    found = levelled(values, fidelities, candidate[:, None] == candidate)
    np.testing.assert_allclose(found, [8.0, 9.0, 8.0, 9.0, 2.0, 8.0, 2.0])
    np.testing.assert_allclose(levelled(-values, fidelities, candidate[:, None] == candidate), -found)


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

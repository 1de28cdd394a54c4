import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.gp.calibration import leave_one_out, left_out
from nasbot.gp.hyperparameters import KernelForm, Prior
from nasbot.gp.kernel import ensemble_kernel
from nasbot.gp.mixture import mixture_cdf, mixture_log_density, mixture_moments, mixture_quantile
from nasbot.gp.pending import hallucinate
from nasbot.gp.posterior import CHUNK, condition
from nasbot.gp.repair import Repairs
from nasbot.gp.rows import Rows, RowScaling
from tests.gp.problems import distances, normalised_distances, points, problem

FORM = KernelForm()


def _setting(n, n_others, *, samples=3, seed=0):
    """(powered among n + n_others points, standardised values of the first n, log vectors)."""
    x = points(n + n_others, seed)
    rows = Rows.of(distances(x, x), normalised_distances(x, x))
    powered = RowScaling.of(rows, FORM).powered(rows)
    rng = np.random.default_rng(seed + 7)
    vectors = Prior().mean(FORM) + 0.7 * rng.standard_normal((samples, FORM.n_hyperparameters))
    return powered, rng.standard_normal(n), vectors


def _textbook(powered, values, vector, known, others):
    """Eq. (5) of Section 2.1 as printed: mean and covariance at ``others``."""
    gram = ensemble_kernel(powered, vector[None], FORM)[0]
    noisy = gram[np.ix_(known, known)] + np.exp(vector[-1]) * np.eye(len(known))
    cross = gram[np.ix_(known, others)]
    mean = cross.T @ np.linalg.solve(noisy, values)
    return mean, gram[np.ix_(others, others)] - cross.T @ np.linalg.solve(noisy, cross)


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 1000))
def test_predictions_are_the_textbook_formulas(n, m, seed):
    powered, values, vectors = _setting(n, m, seed=seed)
    known, others = np.arange(n), np.arange(n, n + m)
    posterior, repairs = condition(powered[:, :n, :n], values, vectors, FORM)
    prediction = posterior.predict(powered[:, :n, n:])
    covariance = posterior.covariance(powered[:, :n, n:], powered[:, n:, n:])
    assert not repairs
    for s, vector in enumerate(vectors):
        mean, expected = _textbook(powered, values, vector, known, others)
        np.testing.assert_allclose(prediction.mean[s], mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(covariance[s], expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(prediction.variance[s], np.diag(expected), rtol=1e-6, atol=1e-8)


@given(st.integers(1, 12), st.integers(0, 1000))
def test_values_without_noise_are_predictions_of_what_was_observed(n, seed):
    powered, values, vectors = _setting(n, 2, seed=seed)
    posterior, _ = condition(powered[:, :n, :n], values, vectors, FORM)
    np.testing.assert_allclose(posterior.denoised, posterior.predict(powered[:, :n, :n]).mean, rtol=1e-6, atol=1e-8)
    pending, _ = hallucinate(posterior, powered[:, :n, n:], powered[:, n:, n:])
    assert pending.denoised is posterior.denoised


@given(st.integers(1, 12), st.integers(0, 1000))
def test_observing_never_adds_uncertainty(n, seed):
    powered, values, vectors = _setting(n, 6, seed=seed)
    fewer, _ = condition(powered[:, :n, :n], values, vectors, FORM)
    more, _ = condition(powered[:, : n + 1, : n + 1], np.append(values, 0.3), vectors, FORM)
    before = fewer.predict(powered[:, :n, n + 1 :]).variance
    after = more.predict(powered[:, : n + 1, n + 1 :]).variance
    assert np.all(before <= fewer.prior_variance[:, None] * (1.0 + 1e-12))
    assert np.all(after <= before + 1e-10)


def test_many_candidates_in_chunks_are_each_candidate_alone(monkeypatch):
    powered, values, vectors = _setting(6, 40)
    posterior, _ = condition(powered[:, :6, :6], values, vectors, FORM)
    assert CHUNK > 6 * 40 * 3
    whole = posterior.predict(powered[:, :6, 6:])
    monkeypatch.setattr("nasbot.gp.posterior.CHUNK", 6 * 3 * 7)  # chunks of 7, the last one shorter
    parts = posterior.predict(powered[:, :6, 6:])
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.variance, whole.variance, rtol=1e-12)
    assert posterior.predict(powered[:, :6, 6:6]).mean.shape == (3, 0)


@pytest.mark.parametrize("pending", [1, 4])
def test_hallucinated_posterior_is_the_full_rebuild_on_fantasies(pending):
    n, total = 9, 9 + pending
    powered, values, vectors = _setting(n, pending + 5)
    posterior, _ = condition(powered[:, :n, :n], values, vectors, FORM)
    told, repairs = hallucinate(posterior, powered[:, :n, n:total], powered[:, n:total, n:total])
    assert not repairs
    assert told.n_known == total
    prediction = told.predict(powered[:, :total, total:])
    for s, vector in enumerate(vectors):
        fantasy, _ = _textbook(powered, values, vector, np.arange(n), np.arange(n, total))
        others = np.arange(total, total + 5)
        mean, covariance = _textbook(powered, np.append(values, fantasy), vector, np.arange(total), others)
        np.testing.assert_allclose(prediction.mean[s], mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(prediction.variance[s], np.diag(covariance), rtol=1e-7, atol=1e-9)
    before = posterior.predict(powered[:, :n, total:])
    np.testing.assert_allclose(prediction.mean, before.mean, rtol=1e-9, atol=1e-12)
    assert np.all(prediction.variance < before.variance)


def test_hallucinating_twice_is_hallucinating_both_at_once():
    powered, values, vectors = _setting(7, 8)
    posterior, _ = condition(powered[:, :7, :7], values, vectors, FORM)
    first, _ = hallucinate(posterior, powered[:, :7, 7:9], powered[:, 7:9, 7:9])
    second, _ = hallucinate(first, powered[:, :9, 9:12], powered[:, 9:12, 9:12])
    both, _ = hallucinate(posterior, powered[:, :7, 7:12], powered[:, 7:12, 7:12])
    one, other = second.predict(powered[:, :12, 12:]), both.predict(powered[:, :12, 12:])
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-8)


def test_leave_one_out_is_leaving_each_one_out():
    n = 8
    powered, values, vectors = _setting(n, 0)
    posterior, _ = condition(powered, values, vectors, FORM)
    means, variances = np.empty((3, n)), np.empty((3, n))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        without, _ = condition(powered[np.ix_(np.arange(8), others, others)], values[others], vectors, FORM)
        prediction = without.predict(powered[:, others, i : i + 1])
        means[:, i] = prediction.mean[:, 0]
        variances[:, i] = prediction.variance[:, 0] + without.noise_variance
    mean, variance = left_out(posterior, values)
    np.testing.assert_allclose(mean, means, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(variance, variances, rtol=1e-7)
    calibration = leave_one_out(posterior, values)
    assert calibration.n == n
    np.testing.assert_allclose(calibration.log_density, mixture_log_density(means, variances, values), rtol=1e-6)
    inside = [
        mixture_quantile(means, variances, 0.05)[i] <= values[i] <= mixture_quantile(means, variances, 0.95)[i]
        for i in range(n)
    ]
    assert calibration.coverage == pytest.approx(np.mean(inside))
    assert calibration.log_predictive_density == pytest.approx(calibration.log_density.mean())


def test_leave_one_out_of_an_indefinite_kernel_is_that_of_the_clipped_gram():
    n = 8
    d = np.full((1, n, n), 4.0)
    d[:, 0, :] = d[:, :, 0] = 0.1
    d[:, np.arange(n), np.arange(n)] = 0.0
    form = KernelForm(n_weights=1, n_normalised_weights=0)
    vector, values = np.log([[1.0, 0.5, 0.3]]), np.random.default_rng(0).standard_normal(n)
    posterior, repairs = condition(d, values, vector, form)
    assert repairs == Repairs(clipped_grams=1)
    eigenvalues, vectors = np.linalg.eigh(np.exp(-0.5 * d[0]))
    precision = np.linalg.inv((vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T + 0.3 * np.eye(n))
    expected = values - precision @ values / np.diag(precision)
    mean, variance = left_out(posterior, values)
    np.testing.assert_allclose(mean[0], expected, rtol=1e-9)
    np.testing.assert_allclose(variance[0], 1.0 / np.diag(precision), rtol=1e-9)


def test_coverage_is_nominal_when_the_model_is_true_and_not_when_it_is_overconfident():
    powered, _, vectors = _setting(150, 0, samples=1)
    gram = ensemble_kernel(powered, vectors, FORM)[0] + np.exp(vectors[0, -1]) * np.eye(150)
    values = np.linalg.cholesky(gram) @ np.random.default_rng(5).standard_normal(150)
    honest, _ = condition(powered, values, vectors, FORM)
    assert 0.83 <= leave_one_out(honest, values).coverage <= 0.97
    overconfident, _ = condition(powered, 3.0 * values, vectors, FORM)
    assert leave_one_out(overconfident, 3.0 * values).coverage < 0.6


def test_a_lone_observation_is_left_out_to_the_prior():
    powered, values, vectors = _setting(1, 0)
    posterior, _ = condition(powered, values, vectors, FORM)
    mean, variance = left_out(posterior, values)
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    expected = posterior.prior_variance + posterior.noise_variance
    np.testing.assert_allclose(variance[:, 0], expected, rtol=1e-10)


def test_mixture_functions_agree_with_many_draws():
    mean, variance = np.array([[-1.0, 0.0], [2.0, 0.0]]), np.array([[0.5, 1.0], [0.1, 4.0]])
    rng = np.random.default_rng(0)
    which = rng.integers(2, size=(200_000, 1))
    draws = np.where(which == 0, mean[0], mean[1]) + rng.standard_normal((200_000, 2)) * np.sqrt(
        np.where(which == 0, variance[0], variance[1])
    )
    centre, spread = mixture_moments(mean, variance)
    np.testing.assert_allclose(centre, draws.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(spread, draws.var(axis=0), rtol=0.02)
    for probability in (0.05, 0.4, 0.95):
        quantile = mixture_quantile(mean, variance, probability)
        np.testing.assert_allclose(mixture_cdf(mean, variance, quantile), probability, atol=1e-12)
        np.testing.assert_allclose((draws <= quantile).mean(axis=0), probability, atol=0.005)
    grid = np.linspace(-15.0, 15.0, 3001)
    density = np.exp(mixture_log_density(np.repeat(mean[:, :1], 3001, 1), np.repeat(variance[:, :1], 3001, 1), grid))
    assert density.sum() * 0.01 == pytest.approx(1.0, abs=1e-6)
    each = np.exp(-0.5 * (grid - mean[:, :1]) ** 2 / variance[:, :1]) / np.sqrt(2 * np.pi * variance[:, :1])
    np.testing.assert_allclose(density, each.mean(axis=0), rtol=1e-9)


def test_duplicates_at_distance_zero_need_no_repair():
    _, d, d_bar, _ = problem(6)
    twice = np.array([0, 0, 1, 2, 2, 2, 3, 4, 5])
    rows = Rows.of(d, d_bar)
    powered = RowScaling.of(rows, FORM).powered(rows)[:, twice][:, :, twice]
    posterior, repairs = condition(powered, np.arange(9.0), Prior().mean(FORM)[None], FORM)
    assert not repairs
    assert posterior.predict(powered).repairs == Repairs()

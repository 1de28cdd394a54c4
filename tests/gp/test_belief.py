import numpy as np
import pytest

from nasbot.errors import OptionError
from nasbot.gp import BeliefOptions, Chain, Inference, InvalidDistancesError, InvalidValuesError, Rows, Warp, fit_belief
from nasbot.gp.mixture import mixture_moments
from tests.gp.problems import distances, normalised_distances, objective, points, problem

SAMPLE = BeliefOptions(n_samples=4)
MAP = BeliefOptions(inference=Inference.MAP)
# For limits that were set by ranks: with the best farther apart a smooth function leaves a noise of 0.026, not of 0.02.
MAP_BY_RANKS = BeliefOptions(inference=Inference.MAP, warp=Warp.RANK)


def _fit(d, d_bar, values, options=SAMPLE, seed=0, chain=None):
    return fit_belief(Rows.of(d, d_bar), values, options=options, chain=chain, rng=np.random.default_rng(seed))


def _cross(x, others):
    return Rows.of(distances(x, others), normalised_distances(x, others))


@pytest.mark.parametrize("options", [SAMPLE, MAP])
@pytest.mark.parametrize("warp", [Warp.RANK, Warp.NONE])
def test_learns_a_function_of_the_points(options, warp):
    x, d, d_bar, values = problem(60)
    others = points(200, seed=5)
    powers = {"distance_power": 1.0, "normalised_power": 1.0}  # with which this kernel is definite
    belief = _fit(d, d_bar, values, BeliefOptions(inference=options.inference, n_samples=4, warp=warp, **powers))
    prediction = belief.predict(_cross(x, others))
    assert prediction.mean.shape == prediction.variance.shape == ((4 if options is SAMPLE else 1), 200)
    lower, median, upper = belief.interval(prediction, level=0.9)
    truth = objective(others)
    assert np.corrcoef(median, truth)[0, 1] > 0.9
    assert np.all((lower < median) & (median < upper))
    assert 0.75 <= np.mean((lower <= truth) & (truth <= upper)) <= 1.0
    assert not belief.repairs
    assert belief.calibration().coverage > 0.75


def test_equal_arguments_give_equal_beliefs_and_another_stream_another():
    x, d, d_bar, values = problem(20)
    cross = _cross(x, points(5, seed=3))
    first, again, other = (_fit(d, d_bar, values, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.predict(cross).mean, again.predict(cross).mean)
    assert first.chain == again.chain
    assert np.any(first.predict(cross).mean != other.predict(cross).mean)


def test_the_mode_draws_nothing_from_the_stream():
    _, d, d_bar, values = problem(10)
    rng = np.random.default_rng(0)
    fit_belief(Rows.of(d, d_bar), values, options=MAP, rng=rng)
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("options", [SAMPLE, MAP])
def test_a_chain_goes_on_where_it_is_told(options):
    _, d, d_bar, values = problem(25)
    cold = _fit(d[:, :24, :24], d_bar[:, :24, :24], values[:24], options)
    warm = _fit(d, d_bar, values, options, chain=cold.chain)
    assert warm.chain != cold.chain
    assert warm.chain == _fit(d, d_bar, values, options, chain=cold.chain).chain
    assert warm.chain != _fit(d, d_bar, values, options).chain


def test_a_warm_start_spares_the_mode_most_of_its_steps():
    _, d, d_bar, values = problem(25)
    cold = _fit(d, d_bar, values, MAP)
    warm = _fit(d, d_bar, values, MAP, chain=cold.chain)
    assert warm.n_likelihoods <= 5 < cold.n_likelihoods
    np.testing.assert_allclose(warm.chain.position, cold.chain.position, atol=0.1)


def test_a_chain_of_another_kernel_is_refused():
    _, d, _, values = problem(5)
    with pytest.raises(ValueError, match="the chain has 3 hyper-parameters, the kernel of these distances 6"):
        _fit(d, None, values, chain=Chain((0.0, 0.0, 0.0)))


def test_a_chain_from_where_there_is_no_density_is_made_feasible():
    _, d, d_bar, values = problem(12)
    belief = _fit(d, d_bar, values, chain=Chain((1e4,) * 2 + (-1e4,) * 9))
    assert np.all(np.isfinite(belief.posterior.vectors))


@pytest.mark.parametrize("options", [SAMPLE, MAP])
@pytest.mark.parametrize("warp", list(Warp))
@pytest.mark.parametrize(("of_d", "of_y"), [(2.0**20, 1.0), (1.0, 2.0**-30), (1e-140, 1e140)])
def test_units_of_distances_and_values_do_not_matter(options, warp, of_d, of_y):
    x, d, d_bar, values = problem(15)
    values = np.exp(values)
    options = BeliefOptions(inference=options.inference, n_samples=3, warp=warp)
    others = points(6, seed=9)
    cross, scaled_cross = (
        _cross(x, others),
        Rows.of(of_d * distances(x, others), of_d * normalised_distances(x, others)),
    )
    plain = _fit(d, d_bar, values, options)
    scaled = _fit(of_d * d, of_d * d_bar, of_y * values, options)
    expected, got = plain.predict(cross), scaled.predict(scaled_cross)
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got.variance, expected.variance, rtol=1e-4)
    for end, expected_end in zip(scaled.interval(got), plain.interval(expected), strict=True):
        np.testing.assert_allclose(end, of_y * expected_end, rtol=1e-3)


def test_values_may_be_shifted():
    x, d, d_bar, values = problem(15)
    options = BeliefOptions(warp=Warp.NONE, n_samples=2)
    plain, shifted = _fit(d, d_bar, values, options), _fit(d, d_bar, values + 64.0, options)
    cross = _cross(x, points(6, seed=9))
    np.testing.assert_allclose(shifted.predict(cross).mean, plain.predict(cross).mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kinds", ["d", "d_bar"])
def test_each_kind_of_distance_alone(kinds):
    x, d, d_bar, values = problem(20)
    others = points(4, seed=2)
    if kinds == "d":
        belief = _fit(d, None, values)
        prediction = belief.predict(Rows.of(distances(x, others)))
        with pytest.raises(InvalidDistancesError, match="fitted with 4 distances d and 0 distances d_bar"):
            belief.predict(_cross(x, others))
    else:
        belief = _fit(None, d_bar, values)
        prediction = belief.predict(Rows.of(d_bar=normalised_distances(x, others)))
        assert belief.hyperparameters[0].scale == 0.0
    assert len(belief.chain.position) == 6
    assert prediction.mean.shape == (4, 4)


def test_params_tell_apart_what_networks_cannot():
    x, d, d_bar, values = problem(40)
    setting = np.random.default_rng(7).random(40)
    gaps = np.abs(setting[:, None] - setting)
    blind = _fit(d, d_bar, values + 3.0 * setting, MAP)
    belief = fit_belief(Rows.of(d, d_bar, params=gaps), values + 3.0 * setting, options=MAP, rng=None)
    assert belief.calibration().log_predictive_density > blind.calibration().log_predictive_density + 0.3
    at, others = np.array([0.1, 0.9]), np.repeat(points(1, seed=8), 2, axis=0)
    cross = Rows.of(distances(x, others), normalised_distances(x, others), params=np.abs(setting[:, None] - at))
    low, high = belief.predict(cross).mean[0]
    assert high > low + 0.5
    with pytest.raises(InvalidDistancesError, match="0 features and 1 params; pass the same kinds again, got 4 dist"):
        belief.predict(_cross(x, others))


def test_hallucinated_points_narrow_the_belief_and_leave_its_mean():
    x, d, d_bar, values = problem(12)
    pending, others = points(3, seed=4), points(30, seed=6)
    belief = _fit(d, d_bar, values)
    told = belief.hallucinate(_cross(x, pending), _cross(pending, pending))
    before = belief.predict(_cross(x, others))
    after = told.predict(_cross(np.concatenate([x, pending]), others))
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-9, atol=1e-12)
    assert np.all(after.variance < before.variance)
    assert told.calibration().coverage == belief.calibration().coverage
    with pytest.raises(InvalidDistancesError, match=r"= \(8, 15, m\), got \(8, 12, 30\)"):
        told.predict(_cross(x, others))


def test_nothing_pending_changes_nothing():
    x, d, d_bar, values = problem(5)
    belief = _fit(d, d_bar, values)
    nobody = points(0)
    told = belief.hallucinate(_cross(x, nobody), _cross(nobody, nobody))
    assert told.posterior is belief.posterior
    assert belief.predict(_cross(x, nobody)).mean.shape == (4, 0)


def test_distances_among_pending_points_must_fit_their_cross_distances():
    x, d, d_bar, values = problem(5)
    belief = _fit(d, d_bar, values)
    pending, fewer = points(3, seed=4), points(2, seed=4)
    with pytest.raises(InvalidDistancesError, match=r"rows must have shape .* = \(8, 3, m\), got \(8, 2, 2\)"):
        belief.hallucinate(_cross(x, pending), _cross(fewer, fewer))
    with pytest.raises(InvalidDistancesError, match="got 4 distances d and 0 distances d_bar"):
        belief.covariance(_cross(x, pending), Rows.of(distances(pending, pending)))


def test_many_observations_are_fitted_from_a_rough_start_to_the_same_mode(monkeypatch):
    _, d, d_bar, values = problem(60)
    whole = _fit(d, d_bar, values, MAP_BY_RANKS)
    monkeypatch.setattr("nasbot.gp.belief.ROUGH_SIZE", 20)
    rough = _fit(d, d_bar, values, MAP_BY_RANKS)
    assert rough.chain != whole.chain
    np.testing.assert_allclose(rough.chain.position, whole.chain.position, atol=0.3)


def test_samples_get_fewer_as_observations_get_many(monkeypatch):
    _, d, d_bar, values = problem(20)
    monkeypatch.setattr("nasbot.gp.belief.FULL_ENSEMBLE_UP_TO", 10)
    assert len(_fit(d, d_bar, values, BeliefOptions(n_samples=8)).hyperparameters) == 2


def test_covariance_has_the_predicted_variances_on_its_diagonal():
    x, d, d_bar, values = problem(12)
    others = points(5, seed=4)
    belief = _fit(d, d_bar, values)
    covariance = belief.covariance(_cross(x, others), _cross(others, others))
    variance = belief.predict(_cross(x, others)).variance
    np.testing.assert_allclose(np.einsum("sii->si", covariance), variance, rtol=1e-9)


def test_beyond_a_size_the_mode_alone_is_believed():
    _, d, d_bar, values = problem(12)
    options = BeliefOptions(n_samples=3, sample_up_to=11)
    assert len(_fit(d, d_bar, values, options).hyperparameters) == 1
    assert len(_fit(d[:, :11, :11], d_bar[:, :11, :11], values[:11], options).hyperparameters) == 3


def test_300_evaluations_are_sampled_and_301_are_not():
    _, d, d_bar, values = problem(301)
    asked = BeliefOptions()
    assert len(_fit(d, d_bar, values, asked).hyperparameters) == 1
    assert len(_fit(d[:, :300, :300], d_bar[:, :300, :300], values[:300], asked).hyperparameters) == 2


def test_the_incumbent_is_the_best_value_in_the_beliefs_own_units():
    _, d, d_bar, values = problem(12)
    belief = _fit(d, d_bar, values)
    assert belief.best_value == belief.values[np.argmax(values)] == belief.values.max()
    assert belief.warped.inverse(np.array([belief.best_value]))[0] == pytest.approx(values.max())


def test_noisy_values_are_believed_to_be_noisy():
    x, d, d_bar, _ = problem(80)
    quiet = _fit(d, d_bar, objective(x), MAP_BY_RANKS).hyperparameters[0]
    noise = np.random.default_rng(3).standard_normal(80)
    assert quiet.noise_variance < 0.02
    assert _fit(d, d_bar, objective(x) + 2.0 * noise, MAP_BY_RANKS).hyperparameters[0].noise_variance > 0.2


def test_an_ensemble_counts_disagreement_as_uncertainty():
    mean, variance = mixture_moments(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
    assert (mean[0], variance[0]) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("d", "values", "error", "message"),
    [
        (None, [1.0], InvalidDistancesError, "both None"),
        (np.zeros((4, 2, 2)), [1.0], InvalidValuesError, "one value for each of the 2 points"),
        (np.zeros((4, 0, 0)), [], InvalidValuesError, "values must have shape"),
    ],
)
def test_bad_input_is_refused(d, values, error, message):
    with pytest.raises(error, match=message):
        _fit(d, None, np.array(values))


def test_both_kinds_of_distance_must_be_about_the_same_points():
    _, d, d_bar, values = problem(4)
    with pytest.raises(InvalidDistancesError, match="must be about the same points"):
        _fit(d, d_bar[:, :3, :3], values)


@pytest.mark.parametrize("option", [{"n_samples": 0}, {"n_restarts": 0}, {"warp": "sqrt"}, {"inference": "vb"}])
def test_bad_options_are_refused(option):
    with pytest.raises(OptionError, match=str(next(iter(option.values())))):
        BeliefOptions(**option)

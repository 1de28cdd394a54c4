"""The tree-structured kernel: by hand, positive semidefinite, and hallucinations against a rebuild."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import approx_fprime

from nasbot.architecture import Layer, chain
from nasbot.domain import Float
from nasbot.gp.warping import Warp, warp_values
from nasbot.searchers import EvolutionSearch, TreeBO
from nasbot.searchers.tree_kernel import PRIOR_MEAN, Chains, Comparison, TreeBelief, is_chain, log_posterior
from nasbot.study import Study
from nasbot.testing.strategies import architectures
from tests.searchers.problems import follow, made, value_of

LABELS = ("relu", "elu", "tanh", "logistic")
layers = st.builds(Layer, st.sampled_from(LABELS), st.integers(8, 1024))
chains = st.builds(chain, st.just("mlp-reg"), st.lists(layers, min_size=1, max_size=8))
theta = st.lists(st.floats(-4, 4), min_size=6, max_size=6).map(np.array)


@given(architectures(min_layers=3, max_layers=7))
def test_a_chain_has_neither_branches_nor_merges(arch):
    most = max(map(len, (*arch.parents, *arch.children)))
    assert is_chain(arch) is (most == 1)


def kernel(a, b, theta=PRIOR_MEAN, typical_depth=2.0, depth=10):
    return Comparison.of(Chains.of(a, depth), Chains.of(b, depth), typical_depth).kernel(np.asarray(theta))


def mlp(*described):
    return chain("mlp-reg", [Layer(label, units) for label, units in described])


def test_known_answer():
    """amplitude 2, units_scale 4, label_disagreement 0.5, depth_amplitude 3, depth_scale 6."""
    theta = np.log([2.0, 4.0, 0.5, 3.0, 6.0, 0.1])
    a = mlp(("relu", 16), ("tanh", 64))
    b = mlp(("relu", 32), ("relu", 64), ("relu", 8))
    first = math.exp(-1 / 4)  # the same label, one doubling of units
    second = math.exp(-0.5)  # another label, the same units
    expected = (first + second) * 2.0 / 2.0 + 3.0 * math.exp(-1 / 6)
    np.testing.assert_allclose(kernel([a], [b], theta), [[expected]])
    np.testing.assert_allclose(kernel([a], [a], theta), [[2 * 2.0 / 2.0 + 3.0]])


@given(st.lists(chains, min_size=1, max_size=12), theta)
def test_it_is_positive_semidefinite(archs, theta):
    gram = kernel(archs, archs, theta)
    np.testing.assert_array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-10 * np.trace(gram)


@given(chains, chains)
def test_no_chain_is_more_like_another_than_like_itself(a, b):
    """Cauchy-Schwarz."""
    gram = kernel([a, b], [a, b])
    assert gram[0, 1] ** 2 <= gram[0, 0] * gram[1, 1] * (1 + 1e-12)


def test_strides_count_as_labels():
    one, two = (chain("cnn", [Layer("conv3", 16, stride), Layer("max-pool"), Layer("fc", 16)]) for stride in (1, 2))
    assert kernel([one], [two])[0, 0] < kernel([one], [one])[0, 0]


@pytest.fixture(scope="module")
def evaluated():
    archs = [trial.arch for trial in follow(made(TreeBO), 15)]
    return archs, warp_values(np.array([value_of(arch) for arch in archs]), Warp.RANK).standardised


def test_predictions_are_those_of_a_gaussian_process(evaluated):
    archs, values = evaluated
    belief = TreeBelief.fit(archs[:12], values[:12], 10)
    mean, sd = belief.predict(archs[12:])
    known = kernel(archs[:12], archs[:12], belief.theta, belief.typical_depth)
    factor = cho_factor(known + math.exp(belief.theta[-1]) * np.eye(12))
    cross = kernel(archs[:12], archs[12:], belief.theta, belief.typical_depth)
    prior = np.diag(kernel(archs[12:], archs[12:], belief.theta, belief.typical_depth))
    np.testing.assert_allclose(mean, cross.T @ cho_solve(factor, values[:12]), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(sd**2, prior - np.sum(cross * cho_solve(factor, cross), axis=0), rtol=1e-6)


def test_hallucinated_chains_against_a_rebuild(evaluated):
    """Told the values it expects, the belief's mean stays and its variance falls as if they had been observed."""
    archs, values = evaluated
    belief = TreeBelief.fit(archs[:10], values[:10], 10)
    asked = archs[12:]
    expected, _ = belief.predict(archs[10:12])
    both = belief.hallucinated(archs[10:12])
    mean, sd = both.predict(asked)
    np.testing.assert_allclose(mean, belief.predict(asked)[0], atol=1e-8)
    assert (sd <= belief.predict(asked)[1] + 1e-12).all()
    known = kernel(archs[:12], archs[:12], belief.theta, belief.typical_depth)
    factor = cho_factor(known + math.exp(belief.theta[-1]) * np.eye(12))
    cross = kernel(archs[:12], asked, belief.theta, belief.typical_depth)
    prior = np.diag(kernel(asked, asked, belief.theta, belief.typical_depth))
    rebuilt = cross.T @ cho_solve(factor, np.concatenate([values[:10], expected]))
    np.testing.assert_allclose(mean, rebuilt, atol=1e-7)
    np.testing.assert_allclose(sd**2, prior - np.sum(cross * cho_solve(factor, cross), axis=0), rtol=1e-6)
    assert belief.hallucinated([]) is belief


def test_hyper_parameters_are_near_the_top(evaluated):
    archs, values = evaluated
    belief = TreeBelief.fit(archs, values, 10)
    np.testing.assert_array_equal(belief.theta, TreeBelief.fit(archs, values, 10).theta)
    chains = Chains.of(archs, 10)
    comparison = Comparison.of(chains, chains, belief.typical_depth)
    heights = [log_posterior(comparison, values, theta)[0] for theta in (PRIOR_MEAN, belief.theta)]
    around = np.random.default_rng(0).normal(belief.theta, 0.5, (200, 6))
    assert heights[1] > heights[0]
    assert heights[1] > max(log_posterior(comparison, values, theta)[0] for theta in around) - 0.05


@given(theta)
def test_the_gradient_is_that_of_the_log_posterior(evaluated, theta):
    archs, values = evaluated
    chains = Chains.of(archs, 10)
    comparison = Comparison.of(chains, chains, 2.0)
    _, slope = log_posterior(comparison, values, theta)
    by_differences = approx_fprime(theta, lambda at: log_posterior(comparison, values, at)[0], 1e-6)
    np.testing.assert_allclose(slope, by_differences, rtol=1e-3, atol=1e-3 * (1 + np.abs(by_differences).max()))


def test_what_is_a_chain():
    assert is_chain(mlp(("relu", 8), ("tanh", 8)))
    branching = [trial.arch for trial in follow(made(EvolutionSearch), 40) if not is_chain(trial.arch)]
    assert branching
    assert all(max(map(len, arch.children)) > 1 for arch in branching)


# -- params ------------------------------------------------------------------------------------------------------------


def test_params_are_a_factor_of_the_kernel_and_its_gradient_is_right(evaluated):
    archs, values = evaluated
    rng = np.random.default_rng(0)
    units = rng.random((2, len(archs)))
    rows = np.abs(units[:, :, None] - units[:, None, :])
    theta = np.concatenate([PRIOR_MEAN[:-1], np.log([0.7, 2.0]), PRIOR_MEAN[-1:]])
    packed = Chains.of(archs, 10)
    comparison = Comparison.of(packed, packed, 2.0, rows)
    factor = np.exp(-0.7 * rows[0] ** 1.5 - 2.0 * rows[1] ** 1.5)
    np.testing.assert_allclose(comparison.kernel(theta), kernel(archs, archs) * factor)
    _, slope = log_posterior(comparison, values, theta)
    numeric = approx_fprime(theta, lambda at: log_posterior(comparison, values, at)[0], 1e-6)
    np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-3)


def test_every_chain_with_every_setting_is_predicted_as_one_by_one(evaluated):
    archs, values = evaluated
    units = np.random.default_rng(1).random(12)
    rows = np.abs(units[None, :, None] - units[None, None, :])
    belief = TreeBelief.fit(archs[:12], values[:12], 10, rows)
    settings = np.abs(units[None, :, None] - np.array([0.1, 0.9])[None, None, :])
    mean, sd = belief.predict(archs[12:], settings)
    assert mean.shape == sd.shape == (2, len(archs) - 12)
    for i in range(2):
        own = settings[:, :, [i] * mean.shape[1]]
        np.testing.assert_allclose(mean[i], belief.at_known(archs[12:], own))
    among = np.abs(np.append(units, 0.1)[None, :, None] - np.append(units, 0.1)[None, None, :])
    told = belief.hallucinated(archs[12:13], among)
    _, after = told.predict(archs[12:13], among[:, :, 12:])
    assert after[0, 0] < sd[0, 0]


def test_it_learns_where_a_param_is_good():
    params = {"rate": Float(0.0, 1.0), "idle": Float(0.0, 1.0)}
    searcher = made(TreeBO, params=params)
    study = Study.in_memory(searcher, seed=4)
    study.optimise(lambda arch, params: -abs(params["rate"] - 0.8), 30)
    late = [trial.candidate.params["rate"] for trial in study.history][-10:]
    assert np.mean(np.abs(np.array(late) - 0.8)) < 0.15
    assert study.recommend().candidate.params["rate"] == pytest.approx(0.8, abs=0.1)

"""Acquisitions as objects: their short-hands, their descriptions, and draws that are as spread as the belief."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from nasbot.acquisition import EI, UCB, Acquisition, LogEI, Outlook, Thompson, acquisition_of
from nasbot.acquisition.choices import ACQUISITIONS, N_DRAWS, description, improving_choices
from nasbot.errors import OptionError
from nasbot.gp.mixture import mixture_moments
from nasbot.searchers import NASBOT
from nasbot.study.rebuilding import searcher_from_settings
from tests.searchers.problems import made, mlp_pool, propose, scored

N_SAMPLES = 10


def _outlook(sample=0, correlation=0.9):
    """Two networks whose values go together, believed alike but for the mean by ten samples."""
    mean = np.stack([np.linspace(-0.3, 0.3, N_SAMPLES), np.full(N_SAMPLES, 0.2)], axis=1)
    covariance = np.broadcast_to([[1.0, correlation], [correlation, 1.0]], (N_SAMPLES, 2, 2))
    return Outlook(mean, np.ones((N_SAMPLES, 2)), 0.5, 7, sample, lambda: covariance)


def test_thompson_draws_are_as_spread_as_the_belief_and_go_together():
    """The mean over samples of independent draws has only 1 / sqrt(samples) of the spread."""
    rng = np.random.default_rng(0)
    draws = np.array([Thompson()(_outlook(sample), rng=rng) for sample in range(N_SAMPLES) for _ in range(400)])
    outlook = _outlook()
    mean, variance = mixture_moments(outlook.mean, outlook.sd**2)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.06)
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(variance), rtol=0.05)
    assert np.corrcoef(draws[:, 0], draws[:, 1])[0, 1] > 0.8


def test_thompson_draws_where_the_covariance_is_indefinite():
    draw = Thompson()(_outlook(correlation=1.5), rng=np.random.default_rng(0))
    assert np.all(np.isfinite(draw))


SDS, ADDED = np.array([[0.5, 1.0, 2.0, 0.0], [1.0, 0.1, 0.3, 3.0]]), np.array([0.0, 0.5, -0.5, 0.1])
MEANS = np.array([[0.0, 1.0, -1.0, 0.4], [0.3, -0.3, 0.7, 0.0]])


@pytest.mark.parametrize("sample", [0, 1])
def test_a_thompson_draw_is_the_mean_of_its_sample_and_what_chance_adds(sample):
    covariance = np.stack([np.diag(sd**2) for sd in SDS])
    outlook = Outlook(MEANS, SDS, 0.5, 7, sample, lambda: covariance)
    chance, order = np.random.default_rng(3).standard_normal(4), np.argsort(SDS[sample])
    expected = MEANS[sample].copy()
    expected[order] += SDS[sample][order] * chance  # eigenvectors stand in ascending order
    np.testing.assert_allclose(Thompson()(outlook, rng=np.random.default_rng(3)), expected)


@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_where_nothing_gains_each_choice_is_the_best_left_under_a_draw_of_its_own(n):
    """The twin draws as the code does; of what cannot be reached only the draws tell one from another."""
    covariance, rng = np.stack([np.diag(sd**2) for sd in SDS]), np.random.default_rng(7)
    draws = np.repeat(MEANS, N_DRAWS // 2, axis=0)
    for sample, rows in enumerate((slice(N_DRAWS // 2), slice(N_DRAWS // 2, None))):
        order = np.argsort(SDS[sample])
        draws[rows, order] += SDS[sample][order] * rng.standard_normal((N_DRAWS // 2, 4))
    left, expected = set(range(4)), []
    for draw in (draws + ADDED)[rng.permutation(N_DRAWS)][: min(n, 4)]:
        expected.append(max(left, key=lambda i, draw=draw: draw[i]))
        left.remove(expected[-1])
    assert improving_choices(MEANS, covariance, ADDED, 1e9, n, rng=np.random.default_rng(7)) == expected


@pytest.mark.parametrize("best_value", [0.5, np.array([[0.5], [-0.5]])])
def test_each_choice_adds_most_to_what_those_before_it_gain(best_value):
    """The twin draws as the code does, and asks of every candidate what the best of all would be with it."""
    covariance, rng = np.stack([np.diag(sd**2) for sd in SDS]), np.random.default_rng(7)
    draws = np.repeat(MEANS, N_DRAWS // 2, axis=0)
    for sample, rows in enumerate((slice(N_DRAWS // 2), slice(N_DRAWS // 2, None))):
        order = np.argsort(SDS[sample])
        draws[rows, order] += SDS[sample][order] * rng.standard_normal((N_DRAWS // 2, 4))
    before, left, expected = np.repeat(np.ravel(best_value) * np.ones(2), N_DRAWS // 2), set(range(4)), []
    for _ in range(3):
        gains = {i: np.exp(ADDED[i]) * np.mean([max(gain, 0.0) for gain in draws[:, i] - before]) for i in left}
        expected.append(max(gains, key=gains.get))
        assert sorted(gains.values())[-1] > sorted(gains.values())[-2] + 1e-6
        left.remove(expected[-1])
        before = np.maximum(before, draws[:, expected[-1]])
    assert improving_choices(MEANS, covariance, ADDED, best_value, 3, rng=np.random.default_rng(7)) == expected


def test_what_a_candidate_adds_counts_as_often_as_it_is_said_to():
    """Two that nobody can tell apart but for that."""
    belief = np.zeros((1, 2)), np.eye(2)[None]
    for added, first in ((-1.0, 0), (1.0, 1)):
        assert improving_choices(*belief, np.array([0.0, added]), 0.5, 1, rng=np.random.default_rng(0)) == [first]


@pytest.mark.parametrize("beta", [0, 0.25, 4.0])
def test_ucb_with_a_beta_of_its_own(beta):
    outlook = replace(_outlook(), sd=np.full((N_SAMPLES, 2), 3.0))
    bound = UCB(beta=beta)(outlook, rng=None)
    np.testing.assert_allclose(bound, outlook.mean.mean(axis=0) + 3.0 * beta**0.5)
    assert np.all((UCB()(outlook, rng=None) < bound) == (beta == 4.0))


def test_only_ei_is_multiplied_by_the_probability_of_success():
    utility, log_feasible = np.array([2.0]), np.log([0.5])
    assert EI().weighed(utility, log_feasible) == pytest.approx(1.0)
    assert LogEI().weighed(utility, log_feasible) == pytest.approx(2.0 + np.log(0.5))


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_names_are_short_hands_and_what_a_study_stores(name):
    acquisition = acquisition_of(name)
    assert acquisition == ACQUISITIONS[name]()
    assert description(acquisition) == name


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("eii", "expected one of log-ei, ei, ucb, thompson, uniform, got 'eii'"),
        (["ei"], "expected one of log-ei"),
        ({"type": "kg"}, "expected one of log-ei"),
        ({"type": "ei", "beta": 1.0}, "ei has no option beta"),
        ({"type": "ucb", "beta": -1.0}, "beta of UCB must be a finite number >= 0"),
        ({"type": "ucb", "beta": "2"}, "beta of UCB must be a finite number >= 0"),
    ],
)
def test_what_is_no_acquisition_is_refused(given, words):
    with pytest.raises(OptionError, match=f"^acquisition: {words}"):
        acquisition_of(given)


@pytest.mark.parametrize("acquisition", ["thompson", UCB(beta=2.5), UCB()])
def test_a_searcher_is_made_again_from_what_a_study_stores(acquisition):
    searcher = made(NASBOT, acquisition=acquisition)
    again = searcher_from_settings(searcher.settings(), searcher.domain, searcher.initial_pool())
    assert again.acquisition == searcher.acquisition


@dataclass(frozen=True)
class Mean(Acquisition):
    weight: float = 1.0

    def __call__(self, outlook, *, rng):
        return self.weight * outlook.mean.mean(axis=0)


def test_an_acquisition_without_a_formula_says_so():
    with pytest.raises(NotImplementedError):
        Acquisition()(_outlook(), rng=np.random.default_rng(0))


def test_a_users_own_acquisition():
    searcher = made(NASBOT, acquisition=Mean(2.0))
    assert searcher.settings()["acquisition"]["repr"] == "Mean(weight=2.0)"
    history = scored(mlp_pool())
    assert propose(searcher, history).arch.fingerprint not in history.seen

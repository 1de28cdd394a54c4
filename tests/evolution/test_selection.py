"""pi(z) ~ exp(g(z) / sigma): known answers, frequencies, and every awkward list of numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from nasbot.errors import OptionError
from nasbot.evolution import fitness_spread, selection_probabilities
from nasbot.evolution.selection import select

finite = st.floats(allow_nan=False, allow_infinity=False)


def test_known_answer():
    """Values 0 and 2: sigma = 1, so the better one is e^2 times as likely."""
    assert selection_probabilities([0.0, 2.0]) == pytest.approx([1 / (1 + np.e**2), np.e**2 / (1 + np.e**2)])


def test_the_formula():
    g = np.array([0.3, -1.2, 4.0, 0.3, 2.2])
    weights = np.exp(g / g.std())
    assert selection_probabilities(g) == pytest.approx(weights / weights.sum())
    weights = np.exp(g / (2 * g.std()))
    assert selection_probabilities(g, temperature=2) == pytest.approx(weights / weights.sum())
    assert fitness_spread(g) == pytest.approx(g.std())


def test_the_best_is_certain_at_a_temperature_near_0():
    """Exponentials are of what values fall short of the best: those of what they exceed the worst by would overflow."""
    assert selection_probabilities([1.0, 3.0, 2.0], temperature=1e-4).tolist() == [0.0, 1.0, 0.0]


def test_frequencies_are_the_probabilities():
    probabilities = selection_probabilities([0.0, 1.0, 1.5, -2.0, 3.0, 0.2])
    drawn = select(probabilities, 60_000, rng=np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=6)
    assert chisquare(counts, 60_000 * probabilities).pvalue > 0.01
    wrong = np.roll(probabilities, 1)
    assert chisquare(counts, 60_000 * wrong).pvalue < 1e-6  # the test can fail


@pytest.mark.parametrize(
    ("fitness", "expected"),
    [
        ([5.0], [1]),
        ([-np.inf], [1]),
        ([3.0, 3.0, 3.0, 3.0], [0.25] * 4),
        ([-np.inf, -np.inf], [0.5, 0.5]),
        ([-np.inf, 1.0], [0, 1]),
        ([-np.inf, 1.0, 1.0], [0, 0.5, 0.5]),
        ([0.0, 0.0], [0.5, 0.5]),
        ([1e308, -1e308], [0.880797, 0.119203]),
        ([1.7e308, 1.7e308, -1.7e308], [0.471726, 0.471726, 0.056547]),
        ([0.0, 5e-324], [0.119203, 0.880797]),
        ([1e-300, 2e-300], [0.119203, 0.880797]),
        ([1e16, 1e16 + 2], [0.119203, 0.880797]),
        ([-np.inf, 0.0, 2.0], [0, 0.119203, 0.880797]),
    ],
)
def test_awkward_values(fitness, expected):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert selection_probabilities(fitness) == pytest.approx(expected, abs=1e-4)


@given(st.lists(st.one_of(finite, st.just(-np.inf)), min_size=1, max_size=30))
def test_always_a_distribution_that_respects_the_order(fitness):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        probabilities = selection_probabilities(fitness)
    assert np.isfinite(probabilities).all()
    assert probabilities.sum() == pytest.approx(1)
    order = np.argsort(fitness, kind="stable")
    assert (np.diff(probabilities[order]) >= -1e-15).all()


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=20), st.integers(-60, 60), st.integers(-1000, 1000))
def test_shift_and_scale_of_the_fitness_do_not_matter(values, exponent, shift):
    plain = selection_probabilities(np.array(values, dtype=float))
    changed = selection_probabilities((np.array(values, dtype=float) + shift) * 2.0**exponent)
    assert changed == pytest.approx(plain)


@pytest.mark.parametrize("fitness", [[], [np.nan], [1.0, np.inf], [[1.0]], 3.0])
def test_what_is_no_fitness_is_refused(fitness):
    with pytest.raises(OptionError, match="fitness"):
        selection_probabilities(fitness)


def test_spread_of_extremes():
    assert fitness_spread([-np.inf]) == 0
    assert fitness_spread([1.0, 1.0]) == 0
    assert fitness_spread([1e308, -1e308]) == pytest.approx(1e308)
    with pytest.raises(OptionError, match="temperature"):
        selection_probabilities([1.0], temperature=0)

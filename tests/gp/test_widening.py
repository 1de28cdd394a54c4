"""Intervals that learn from their own misses."""

import numpy as np
import pytest

from nasbot.gp import BeliefOptions, Rows, fit_belief
from nasbot.gp.calibration import FIRST_WIDENING, widening
from tests.gp.problems import distances, points


@pytest.mark.parametrize("wrong_by", [0.6, 1.0, 1.5, 3.0])
def test_coverage_comes_to_the_level_whatever_the_belief_gets_wrong(wrong_by):
    errors = wrong_by * np.random.default_rng(0).standard_normal(400)
    inside: list[bool] = []
    for error in errors:
        inside.append(bool(abs(error) <= 1.645 * widening(inside[-200:])))
    assert 0.86 < np.mean(inside[50:]) < 0.94


def test_a_miss_widens_and_a_hit_narrows():
    assert widening([True]) < widening([]) == FIRST_WIDENING < widening([False])
    assert widening([False, *[True] * 9]) == pytest.approx(FIRST_WIDENING)
    assert widening([True] * 1000 + [False] * 10) > 3.0, "a long run of hits must not be a burden"
    assert widening([False] * 1000) < 5.0


@pytest.mark.parametrize("warp", ["rank", "none"])
def test_the_ends_move_away_from_the_median(warp):
    x, asked = points(30), points(5, seed=1)
    rng = np.random.default_rng(0)
    belief = fit_belief(Rows.of(distances(x, x)), x.sum(axis=1), options=BeliefOptions(warp=warp), rng=rng)
    prediction = belief.predict(Rows.of(distances(x, asked)))
    plain, wide = (belief.interval(prediction, widening=times) for times in (1.0, 2.0))
    (low, middle, high), (wide_low, wide_middle, wide_high) = (
        map(belief.warped.forward, ends) for ends in (plain, wide)
    )
    np.testing.assert_allclose(wide_middle, middle)
    np.testing.assert_allclose(wide_high - middle, 2.0 * (high - middle))
    np.testing.assert_allclose(middle - wide_low, 2.0 * (middle - low))

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from nasbot.gp.warping import InvalidValuesError, Warp, checked_values, warp_values

finite = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
value_lists = st.lists(finite, min_size=1, max_size=30).map(np.array)


@given(value_lists, st.sampled_from([Warp.RANK, Warp.BEST, Warp.NONE]))
def test_warped_values_are_standardised_ordered_and_undone_by_the_inverse(values, warp):
    warped = warp_values(values, warp)
    z = warped.standardised
    assert z.mean() == pytest.approx(0.0, abs=1e-7)
    if np.ptp(values) > 0.0:
        assert z.std() == pytest.approx(1.0)
    order = np.argsort(values)
    assert np.all(np.diff(z[order]) >= 0.0)
    same = values[:, None] == values[None, :]
    assert np.all((z[:, None] == z[None, :]) == same) or warp is Warp.NONE
    scale = np.abs(values).max() or 1.0
    np.testing.assert_allclose(warped.inverse(z), values, atol=1e-9 * scale)
    np.testing.assert_allclose(warped.forward(values), z, atol=1e-6)


@given(value_lists, st.sampled_from([Warp.RANK, Warp.BEST, Warp.NONE]))
def test_the_way_back_is_increasing_everywhere_also_beyond_the_observed(values, warp):
    assume(len(values) == 1 or np.ptp(values) > 1e-3 * np.abs(values).max())
    grid = np.linspace(-8.0, 8.0, 161)
    back = warp_values(values, warp).inverse(grid)
    assert np.all(np.diff(back) > 0.0)


def test_rank_warp_gives_normal_scores():
    warped = warp_values(np.array([5.0, -1000.0, 7.0, 6.0]))
    scores = norm.ppf(np.array([1.5, 0.5, 3.5, 2.5]) / 4)
    np.testing.assert_allclose(warped.standardised, scores / scores.std())


@given(value_lists)
def test_rank_warp_orders_as_average_ranks_do(values):
    scores = norm.ppf((rankdata(values) - 0.5) / len(values))
    scores -= scores.mean()
    np.testing.assert_allclose(warp_values(values).standardised, scores / (scores.std() or 1.0), atol=1e-9)


def test_ties_get_one_score_and_the_rest_keep_their_places():
    z = warp_values(np.array([1.0, 2.0, 2.0, 3.0])).standardised
    assert z[1] == z[2] == pytest.approx(0.0, abs=1e-12)
    assert z[0] == pytest.approx(-z[3])


def test_best_warp_is_the_mean_of_normal_scores_and_of_the_logarithm_of_the_shortfall():
    values = np.array([5.0, -1000.0, 7.0, 6.0, 7.5])
    scores, short = norm.ppf((rankdata(values) - 0.5) / 5), -np.log(7.5 + 0.5 * (7.5 - 6.0) - values)
    both = scores / scores.std() + (short - short.mean()) / short.std()
    np.testing.assert_allclose(warp_values(values, "best").standardised, both / both.std(), atol=1e-12)
    moved = warp_values(values + 300.0, "best").standardised
    np.testing.assert_allclose(moved, both / both.std(), atol=1e-9)
    mostly_the_best = np.array([1.0, 3.0, 3.0, 3.0])  # the median is the best: the range says how far the level is
    assert np.isfinite(warp_values(mostly_the_best, "best").standardised).all()


def test_best_warp_tells_the_best_apart_by_more_than_their_ranks_do():
    values = np.array([*np.linspace(0.0, 8.0, 17), 10.0, 16.0])  # the last two are far ahead
    ahead = {warp: np.diff(warp_values(values, warp).standardised[-2:])[0] for warp in ("rank", "best")}
    assert ahead["best"] > 1.5 * ahead["rank"]


@pytest.mark.parametrize("warp", list(Warp))
@pytest.mark.parametrize("values", [[0.93], [0.93] * 5, [1.0, 1.0], [-3.0] * 4])
def test_one_value_or_all_equal_values_become_zero_with_their_own_size_as_unit(warp, values):
    warped = warp_values(np.array(values), warp)
    assert not warped.standardised.any()
    assert warped.inverse(np.zeros(1))[0] == pytest.approx(values[0])
    lower, upper = warped.inverse(np.array([-1.0, 1.0]))
    assert lower < values[0] < upper


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_log_warp_is_the_logarithm_and_keeps_the_order_of_negated_errors(sign):
    values = sign * np.array([0.01, 0.1, 1.0])
    warped = warp_values(values, Warp.LOG)
    np.testing.assert_allclose(warped.standardised, sign * np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5), atol=1e-12)
    np.testing.assert_allclose(warped.inverse(warped.standardised), values)
    np.testing.assert_allclose(warped.forward(values), warped.standardised, atol=1e-12)
    assert np.all(np.diff(warped.inverse(np.linspace(-5.0, 5.0, 50))) > 0.0)


@pytest.mark.parametrize("values", [[1.0, -1.0], [0.0, 1.0], [0.0]])
def test_log_warp_refuses_values_without_one_sign(values):
    with pytest.raises(InvalidValuesError, match="use warp 'rank' or 'none'"):
        warp_values(np.array(values), Warp.LOG)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan, np.inf], r"got nan at index 1 and 2 such in all"),
        ([], "at least one value"),
        ([[1.0]], r"got shape \(1, 1\)"),
        (["a"], "must be numbers, got list"),
        (None, r"got shape \(\)"),
    ],
)
def test_bad_values_are_refused_with_their_place(values, message):
    with pytest.raises(InvalidValuesError, match=message):
        checked_values(values)


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e150, 1e200])
@pytest.mark.parametrize("warp", list(Warp))
def test_units_do_not_matter(scale, warp):
    values = np.array([1.0, 4.0, 2.0, 8.0])
    plain, scaled = warp_values(values, warp), warp_values(scale * values, warp)
    np.testing.assert_allclose(scaled.standardised, plain.standardised, rtol=1e-9, atol=1e-12)
    z = np.array([-2.0, 0.1, 3.0])
    np.testing.assert_allclose(scaled.inverse(z), scale * plain.inverse(z), rtol=1e-9)

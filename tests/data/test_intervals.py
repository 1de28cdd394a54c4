"""Intervals around predictions: the share of the truth that they promise, and no more than the rows can bear."""

import math

import numpy as np
import pytest

from nasbot.data.intervals import MOST_KEPT, Bin, Intervals
from nasbot.errors import CodecError, OptionError


def rows(n, rng):
    """Predictions with errors that are skewed and grow with what is predicted."""
    predicted = rng.uniform(1, 10, (n, 1))
    return predicted + predicted * (rng.exponential(1, (n, 1)) - 1), predicted


@pytest.mark.parametrize("n", [40, 250, 3000])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_the_truth_lies_between_as_often_as_promised(n, coverage):
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(200):
        (truth, predicted), (new, about_new) = rows(n, rng), rows(1000, rng)
        low, high = Intervals.of(truth, predicted).bounds(about_new, coverage)
        shares.append(((low <= new) & (new <= high)).mean())
    assert coverage - 0.01 < np.mean(shares) < coverage + 2 / (min(n, 600) + 1) + 0.01


def test_intervals_are_wider_where_errors_are_larger():
    truth, predicted = rows(3000, np.random.default_rng(1))
    low, high = Intervals.of(truth, predicted).bounds(np.array([[1.5], [9.5]]), 0.9)
    assert 3 * (high - low)[0] < (high - low)[1]
    assert (high - [[1.5], [9.5]] > [[1.5], [9.5]] - low).all()  # the errors are skewed


def test_the_quantiles_are_the_order_statistics_with_the_correction_for_few_rows():
    part = Bin(math.inf, 19, tuple(float(i) for i in range(1, 20)))
    assert part.quantiles(0.9) == (1.0, 19.0)
    assert part.quantiles(0.8) == (2.0, 18.0)
    with pytest.raises(OptionError, match=r"19 validation rows are too few for 0.91; expected at most 0\.9"):
        part.quantiles(0.91)


def test_of_many_rows_few_residuals_are_kept_and_none_makes_an_interval_narrower():
    rng = np.random.default_rng(2)
    truth = rng.normal(size=(4321, 2))
    intervals = Intervals.of(truth, np.zeros((4321, 2)))
    ordered = np.sort(truth, axis=0)
    for i, (part,) in enumerate(intervals.outputs):
        assert len(part.residuals) == MOST_KEPT
        for coverage in (0.5, 0.9, 0.99):
            tail = (1 - coverage) / 2
            low, high = part.quantiles(coverage)
            assert low <= ordered[math.floor(4322 * tail) - 1, i]
            assert high >= ordered[math.ceil(4322 * (1 - tail)) - 1, i]
            assert (ordered[:, i] < low).mean() == pytest.approx(tail, abs=0.003)


@pytest.mark.parametrize("coverage", [0, 1, 90, -1, math.nan])
def test_what_is_no_share_is_refused(coverage):
    with pytest.raises(OptionError, match="expected a share between 0 and 1, such as"):
        Intervals.of(*rows(50, np.random.default_rng(0))).bounds(np.ones((2, 1)), coverage)


def test_they_come_back_from_json_and_nothing_else_does():
    intervals = Intervals.of(*rows(1000, np.random.default_rng(3)))
    record = intervals.to_dict()
    assert Intervals.from_dict(record) == intervals
    assert len(record[0]) == 5
    (first, *others) = record[0]
    for odd in (
        [[*others, first]],
        [[first]],
        [[]],
        [[{**first, "residuals": first["residuals"][::-1]}, *others]],
        [[{**first, "n": 10**30}, *others]],
        {},
    ):
        with pytest.raises(CodecError):
            Intervals.from_dict(odd)

"""Limits, defaults and last cases of what reads, divides and judges data, one by one."""

import datetime
import io
import math
import re
import zipfile
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from nasbot.data import arrow_files, bounds, dates, intervals, metrics, splitting, targets, weighting
from nasbot.data.chunks import chunks
from nasbot.data.columns import CategoryColumn, DateColumn, NumberColumn
from nasbot.data.comparing import differences
from nasbot.data.dataset import dataset_of
from nasbot.data.inspecting import _is_near_copy, _target
from nasbot.data.intervals import Bin, Intervals
from nasbot.data.metrics import (
    METRICS,
    imbalance_line,
    majority_of,
    metric_for,
    metric_of,
    notices,
    tail_line,
)
from nasbot.data.preprocessing import ClassTarget, NumberTarget
from nasbot.data.splitting import (
    _counts,
    checked_indices,
    checked_shares,
    nested_rows,
    split_groups,
    split_rows,
    split_time,
)
from nasbot.errors import CodecError, DataError, FileError, OptionError, StorageError

SHARES = (0.6, 0.2, 0.2)

# -- dividing rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [(0.6, 0.4, 0.0), (0.5, 0.25, 0.25), [0.6, 0.2, 0.2000001]])
def test_shares(split):
    assert checked_shares(split) == tuple(split)


@pytest.mark.parametrize(
    "split",
    [
        (0.0, 0.5, 0.5),
        (0.5, 0.0, 0.5),
        (0.7, 0.4, -0.1),
        (0.5, 0.5),
        (0.6, 0.2, 0.1),
        (0.6, 0.2, 0.20001),
        "x",
        None,
        (1, "a", 0),
    ],
    ids=str,
)
def test_shares_that_are_none(split):
    with pytest.raises(OptionError, match="split: expected three shares that add up to 1"):
        checked_shares(split)


def test_ten_rows_are_enough():
    train, valid, test = split_rows(10, SHARES, seed=1)
    assert (len(train), len(valid), len(test)) == (6, 2, 2)
    assert sorted(np.concatenate([train, valid, test])) == list(range(10))
    with pytest.raises(DataError, match=r"^9 rows: too few"):
        split_rows(9, SHARES, seed=1)
    with pytest.raises(DataError, match=r"^1 row: too few"):
        split_rows(1, SHARES, seed=1)


@pytest.mark.parametrize(
    ("n", "expected"), [(0, [0, 0, 0]), (1, [1, 0, 0]), (2, [1, 1, 0]), (3, [2, 1, 0]), (5, [3, 1, 1]), (7, [4, 2, 1])]
)
def test_counts_of_a_class(n, expected):
    owed = np.zeros(3)
    counts = _counts(n, SHARES, owed)
    assert counts.sum() == n
    assert counts[0] >= min(n, 1)
    np.testing.assert_allclose(owed, n * np.array(SHARES) - counts)
    assert counts.tolist() == expected


def test_what_was_rounded_away_is_made_up_for():
    owed = np.zeros(3)
    total = sum(_counts(2, SHARES, owed) for _ in range(50))
    assert total.tolist() == [60, 20, 20]


@pytest.mark.parametrize("owed", [(-3.0, 1.5, 1.5), (-3.0, 2.0, 1.0), (-4.0, 2.0, 2.0)], ids=str)
def test_a_class_is_trained_on_whatever_is_owed(owed):
    """Where the others are owed as many rows as there are, or more: never less than none, and no row twice."""
    late = np.array(owed)
    assert _counts(2, SHARES, late).tolist() == [1, 0, 1]
    np.testing.assert_allclose(late, 2 * np.array(SHARES) + owed - [1, 0, 1])


def test_every_class_of_one_row_leaves_rows_to_choose_by():
    classes = np.arange(10)
    train, valid, test = split_rows(10, (0.8, 0.2, 0.0), seed=0, classes=classes)
    assert (len(train) + len(valid), len(valid), len(test)) == (10, 2, 0)


def test_nested_shares():
    few, more = nested_rows(100, 0.1), nested_rows(100, 0.25)
    assert (len(few), len(more)) == (10, 25)
    assert set(few) <= set(more)
    assert list(few) == sorted(few)
    assert len(nested_rows(100, 0.101)) == 11
    assert len(nested_rows(10, 0.01)) == 2  # at least
    classes = np.array([0] * 90 + [1] * 9 + [2])
    rows = nested_rows(100, 1 / 9, classes=classes)
    assert np.bincount(classes[rows]).tolist() == [10, 1, 1]


def test_groups_stay_together():
    groups = np.repeat(np.arange(10), [30, 5, 5, 10, 10, 10, 10, 10, 5, 5])
    parts = split_groups(groups, SHARES, seed=3)
    owners = [set(groups[part]) for part in parts]
    assert sum(map(len, owners)) == len(set.union(*owners)) == 10
    assert sum(map(len, parts)) == 100
    assert len(parts[0]) > len(parts[1])
    assert all(abs(len(part) - 100 * share) <= 25 for part, share in zip(parts, SHARES, strict=True))
    with pytest.raises(DataError, match="groups: 2 different; expected at least 3"):
        split_groups(np.array([1, 1, 2]), SHARES, seed=0)
    two = split_groups(np.array([1, 1, 2]), (0.7, 0.3, 0.0), seed=0)
    assert [len(part) for part in two[2:]] == [0]
    with pytest.raises(DataError, match="groups: 1 different; expected at least 2"):
        split_groups(np.array([1, 1, 1]), (0.7, 0.3, 0.0), seed=0)


def test_time_goes_forward():
    times = np.array([9.0, 1.0, 5.0, 3.0, 7.0, 2.0, 8.0, 4.0, 6.0, 0.0])
    train, valid, test = split_time(times, SHARES)
    assert [sorted(times[part]) for part in (train, valid, test)] == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    train, valid, test = split_time(times, (0.6, 0.4, 0.0))
    assert (sorted(times[train]), sorted(times[valid]), len(test)) == ([0, 1, 2, 3, 4, 5], [6, 7, 8, 9], 0)
    together = np.array([0.0] * 5 + [1.0] * 3 + [2.0] * 2)
    train, valid, test = split_time(together, (0.4, 0.3, 0.3))
    assert [len(part) for part in (train, valid, test)] == [5, 3, 2]
    for shares in (SHARES, (0.6, 0.4, 0.0)):
        with pytest.raises(DataError, match="too many rows have the same time"):
            split_time(np.zeros(10), shares)
    with pytest.raises(DataError, match="too many rows have the same time"):
        split_time(np.array([0.0] * 6 + [1.0] * 4), SHARES)


@pytest.mark.parametrize(
    ("parts", "ok"),
    [
        (([0, 1], [2], [3]), True),
        (([0, 1], [2], []), True),
        (([0, 1], [], [2]), False),
        (([], [1], [2]), False),
        (([0, 1], [2]), False),
        (([0, 1], [1], [2]), False),
        (([0, 4], [1], [2]), False),
        (([-1, 0], [1], [2]), False),
    ],
    ids=str,
)
def test_rows_that_somebody_chose(parts, ok):
    if ok:
        assert [len(part) for part in checked_indices(parts, 4)] == [len(part) for part in parts]
    else:
        with pytest.raises(OptionError, match="indices: expected"):
            checked_indices(parts, 4)


# -- intervals ---------------------------------------------------------------------------------------------------------


def test_residuals_at_the_ends_of_an_interval():
    bin_ = Bin(math.inf, 19, tuple(float(i) for i in range(1, 20)))
    assert bin_.quantiles(0.9) == (1.0, 19.0)  # ranks 20 * 0.05 and 20 * 0.95
    assert bin_.quantiles(0.8) == (2.0, 18.0)
    assert bin_.quantiles(0.5) == (5.0, 15.0)
    assert bin_.quantiles(0.55) == (4.0, 16.0)  # the wider neighbours
    with pytest.raises(OptionError, match=r"19 validation rows are too few for 0.91; expected at most 0.9"):
        bin_.quantiles(0.91)


def test_bins_by_how_many_rows_there_are():
    rng = np.random.default_rng(0)
    for n, n_bins in ((1, 1), (399, 1), (400, 2), (1000, 5), (5000, 5)):
        predicted = rng.permutation(n).astype(float)[:, None]
        found = Intervals.of(predicted + 1.0, predicted).outputs[0]
        assert len(found) == n_bins
        assert sum(part.n for part in found) == n
        assert all(len(part.residuals) == min(part.n, 501) for part in found)
        assert set(found[0].residuals) == {1.0}
    assert (intervals.MOST_BINS, intervals.ROWS_OF_A_BIN, intervals.MOST_KEPT) == (5, 200, 501)


def test_bounds_by_the_bin_of_a_prediction():
    predicted = np.arange(400.0)[:, None]
    residual = np.where(np.arange(400) < 200, 1.0, 5.0)[:, None]
    found = Intervals.of(predicted + residual, predicted)
    low, high = found.bounds(np.array([[0.0], [199.0], [200.0], [1000.0]]), 0.9)
    assert (low[:, 0] - [0, 199, 200, 1000]).tolist() == [1, 1, 5, 5]
    assert (high[:, 0] - [0, 199, 200, 1000]).tolist() == [1, 1, 5, 5]
    for coverage in (0, 1, -0.1, 1.5):
        with pytest.raises(OptionError, match="coverage: expected a share between 0 and 1"):
            found.bounds(predicted, coverage)
    assert Intervals.from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    "record",
    [
        [[]],
        [[{"upper": 3.0, "n": 1, "residuals": [1.0]}]],
        [[{"upper": None, "n": 1, "residuals": [1.0]}, {"upper": 3.0, "n": 1, "residuals": [1.0]}]],
        [[{"upper": None, "n": 2, "residuals": [1.0]}]],
        [[{"upper": None, "n": 2, "residuals": [2.0, 1.0]}]],
        [[{"upper": None, "n": 0, "residuals": []}]],
        [[{"upper": None, "n": 10**13, "residuals": [1.0]}]],
    ],
    ids=str,
)
def test_stored_intervals_that_are_none(record):
    with pytest.raises(CodecError):
        Intervals.from_dict(record)


# -- weights -----------------------------------------------------------------------------------------------------------

PARTS = [np.array([0, 1]), np.array([2]), np.array([], dtype=int)]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["a", 1, 1], "expected numbers, got such as 'a'"),
        ([1, np.nan, np.inf], "2 rows have a weight that is not finite"),
        ([1, -2, -1], "negative in 2 rows, such as -2"),
        ([0, 0, 1], "0 in every one of 2 training rows"),
        ([1, 0, 0], "0 in every one of 1 validation rows"),
        ([1, 1, 2e30], "between 1e-30 and 1e30"),
        ([1, 1, 1e-31], "between 1e-30 and 1e30"),
    ],
)
def test_weights_of_rows_that_are_none(values, words):
    with pytest.raises(DataError, match=words):
        weighting.sample_weights_of(pd.Series(values), PARTS)


def test_weights_of_rows():
    found = weighting.sample_weights_of(pd.Series([0, 1e30, 1e-30]), PARTS)
    assert found.dtype == np.float32
    assert found[0] == 0


TARGET = ClassTarget("y", ("a", "b", "c"))


def test_weights_of_classes():
    train = np.array([0, 0, 0, 1])
    assert weighting.class_weights_of("none", TARGET, train, None) == (1.0, 1.0, 1.0)
    assert weighting.class_weights_of("balanced", TARGET, train, None) == (pytest.approx(2 / 3), 2.0, 1.0)
    weighted = weighting.class_weights_of("balanced", TARGET, train, np.array([1.0, 1.0, 1.0, 9.0]))
    assert weighted == (2.0, pytest.approx(6 / 9), 1.0)
    assert weighting.class_weights_of({"b": 5}, TARGET, train, None) == (1.0, 5.0, 1.0)
    for given, words in (
        ("even", "expected 'balanced', 'none' or a weight"),
        ({"x": 1}, "no class 'x'"),
        ({"a": 0}, "expected a number above 0 for 'a', got 0"),
        ({"a": 1e30}, "expected a number above 0"),
        ({"a": "1"}, "expected a number above 0"),
    ):
        with pytest.raises(OptionError, match=words):
            weighting.class_weights_of(given, TARGET, train, None)
    with pytest.raises(OptionError, match="the target is a number"):
        weighting.class_weights_of("balanced", NumberTarget(("y",), (0.0,), (1.0,), ((0.0, 1.0),)), train, None)


def test_weights_of_classes_in_words():
    assert weighting.parsed_class_weight("balanced") == "balanced"
    assert weighting.parsed_class_weight("a=1,b=2.5") == {"a": 1.0, "b": 2.5}
    assert weighting.parsed_class_weight("a=b=2") == {"a=b": 2.0}
    with pytest.raises(OptionError, match="expected balanced, or weights such as"):
        weighting.parsed_class_weight("a=x")


# -- metrics -----------------------------------------------------------------------------------------------------------


def judged(name, truth, predicted, weights=None):
    weights = None if weights is None else np.array(weights)
    return METRICS[name](np.array(truth), np.array(predicted), weights)


NUMBERS = [[1.0], [2.0], [4.0], [8.0]], [[1.5], [2.0], [3.0], [10.0]]
CLASSES = [0, 0, 1, 2], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]]


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 3.0], [0.0, 1.0, 2.0, 1.0]], ids=str)
@pytest.mark.parametrize("name", ["mse", "rmse", "mae", "r2", "mape"])
def test_metrics_of_numbers_are_those_of_scikit_learn(name, weights):
    import sklearn.metrics as reference

    formula = {
        "mse": reference.mean_squared_error,
        "rmse": reference.root_mean_squared_error,
        "mae": reference.mean_absolute_error,
        "r2": reference.r2_score,
        "mape": reference.mean_absolute_percentage_error,
    }[name]
    two = [np.hstack([values, np.array(values)[::-1]]) for values in NUMBERS]
    for truth, predicted in (NUMBERS, two):
        assert judged(name, truth, predicted, weights) == pytest.approx(
            formula(truth, predicted, sample_weight=weights)
        )


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 3.0]], ids=str)
@pytest.mark.parametrize(
    "name", ["log-loss", "accuracy", "error", "balanced-accuracy", "auc", "average-precision", "f1", "f1-weighted"]
)
def test_metrics_of_classes_are_those_of_scikit_learn(name, weights):
    import sklearn.metrics as reference

    truth, predicted = np.array(CLASSES[0]), np.array(CLASSES[1])
    said = predicted.argmax(axis=1)
    one_hot = np.eye(3)[truth]
    given = {"sample_weight": weights}
    expected = {
        "log-loss": lambda: reference.log_loss(truth, predicted, **given),
        "accuracy": lambda: reference.accuracy_score(truth, said, **given),
        "error": lambda: 1 - reference.accuracy_score(truth, said, **given),
        "balanced-accuracy": lambda: reference.balanced_accuracy_score(truth, said, **given),
        "auc": lambda: np.mean([reference.roc_auc_score(one_hot[:, i], predicted[:, i], **given) for i in range(3)]),
        "average-precision": lambda: np.mean(
            [reference.average_precision_score(one_hot[:, i], predicted[:, i], **given) for i in range(3)]
        ),
        "f1": lambda: reference.f1_score(truth, said, average="macro", **given),
        "f1-weighted": lambda: reference.f1_score(truth, said, average="weighted", **given),
    }[name]()
    assert judged(name, truth, predicted, weights) == pytest.approx(expected)


def test_metrics_of_two_classes_and_ties():
    truth, predicted = [0, 1, 1, 0], [[0.5, 0.5], [0.5, 0.5], [0.2, 0.8], [0.9, 0.1]]
    assert judged("auc", truth, predicted) == pytest.approx(3.5 / 4)
    assert judged("auc", truth, predicted, [1.0, 1.0, 2.0, 1.0]) == pytest.approx(5.5 / 6)
    both = judged("average-precision", truth, predicted)
    assert both == pytest.approx((np.mean([1.0, 2 / 3]) + np.mean([1.0, 2 / 3])) / 2)


def test_metrics_at_their_ends():
    assert math.isnan(judged("r2", [[1.0]], [[1.0]]))
    assert judged("r2", [[1.0], [1.0]], [[1.0], [1.0]]) == 1.0
    assert judged("r2", [[1.0], [1.0]], [[1.0], [2.0]]) == 0.0
    assert math.isnan(judged("auc", [1, 1], [[0.1, 0.9], [0.2, 0.8]]))
    assert str(judged("log-loss", [0], [[1.0, 0.0]])) == "0.0"
    assert judged("log-loss", [1], [[1.0, 0.0]]) == pytest.approx(-math.log(np.finfo(float).tiny))
    assert METRICS["auc"].cost(math.nan) == math.inf
    assert (METRICS["auc"].cost(0.3), METRICS["mse"].cost(0.3)) == (-0.3, 0.3)
    assert (METRICS["auc"].sense, METRICS["mse"].sense) == ("higher is better", "lower is better")
    assert {name for name, metric in METRICS.items() if metric.higher_is_better} == {
        "r2", "accuracy", "balanced-accuracy", "auc", "average-precision", "f1", "f1-weighted",
    }  # fmt: skip
    assert metric_of(METRICS["mse"]) is METRICS["mse"]
    with pytest.raises(OptionError, match="did you mean accuracy"):
        metric_of("acuracy")
    with pytest.raises(OptionError, match=r"got 'zzzzzz'$"):
        metric_of("zzzzzz")


def classes_of(*counts):
    """Rows of two numbers, so many of each class."""
    y = np.concatenate([np.full(n, label) for label, n in enumerate(counts)])
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    return dataset_of(X, y, task="classification", seed=0)


def test_a_majority_is_named_from_four_fifths_on():
    data = classes_of(160, 40)
    assert data.train.y.mean() == pytest.approx(0.2)
    assert majority_of(data) is None
    assert imbalance_line(data, METRICS["accuracy"]) is None
    more = classes_of(180, 20)
    majority = majority_of(more)
    assert (majority.name, majority.share) == ("0", pytest.approx(0.9, abs=0.02))
    np.testing.assert_allclose(majority.predicted.sum(), 1.0)
    assert "--metric f1" in imbalance_line(more, METRICS["accuracy"])
    assert "--metric f1" not in imbalance_line(more, METRICS["auc"])
    assert "'0' is 90.0% of the training rows, so an accuracy of 0.900 needs no network" in imbalance_line(
        more, METRICS["log-loss"]
    )
    assert majority_of(numbers_of(np.arange(50.0))) is None


def test_a_long_tail_is_named_where_few_rows_are_half_of_it():
    y = np.random.default_rng(0).normal(size=1000)
    assert tail_line(numbers_of(y), METRICS["mse"]) is None
    outlying = numbers_of(np.where(np.arange(1000) < 5, 1000.0, y))
    line = tail_line(outlying, METRICS["mse"])
    assert re.match(r"long tail: [1-5] of 600 training rows make up half of what y varies by, so mse is that of", line)
    assert notices(outlying, METRICS["rmse"]) == [line.replace("so mse", "so rmse")]
    assert tail_line(outlying, METRICS["mae"]) is None
    assert tail_line(classes_of(180, 20), METRICS["accuracy"]) is None


def numbers_of(y, **options):
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    return dataset_of(X, y, task="regression", seed=0, **options)


def test_metrics_that_do_not_fit_the_data():
    with pytest.raises(
        OptionError, match="metric: auc is for classification, the target asks for regression; expected mse,"
    ):
        metric_for("auc", numbers_of(np.arange(50.0)))
    with pytest.raises(OptionError, match="metric: mse is for regression, the target asks for classification"):
        metric_for("mse", classes_of(30, 30))
    y = np.arange(1.0, 51.0)
    assert metric_for("mape", numbers_of(y)).name == "mape"
    y[:50:2] = 0
    with pytest.raises(
        OptionError, match=r"mape divides by the target, which is 0 in [12][0-9] training and validation"
    ):
        metric_for("mape", numbers_of(y))
    assert metrics.default_metric(classes_of(30, 30)).name == "log-loss"
    assert metrics.default_metric(numbers_of(np.arange(50.0))).name == "mse"


# -- targets -----------------------------------------------------------------------------------------------------------

ALL = np.arange(40)


def target(values, task=None, names=("y",)):
    return targets.target_of(values, np.arange(len(values)), task=task, names=names)


def test_whole_numbers_are_classes_up_to_twenty():
    assert isinstance(target(np.arange(80) % 20), ClassTarget)
    assert isinstance(target(np.arange(80) % 21), NumberTarget)
    assert isinstance(target((np.arange(80) % 2).astype(float)), ClassTarget)
    assert isinstance(target((np.arange(80) % 2) + 0.5), NumberTarget)
    assert isinstance(target(np.array(["a", "b"] * 20)), ClassTarget)
    assert isinstance(target(np.arange(80) % 2 == 0), ClassTarget)
    assert isinstance(target(np.arange(80).reshape(40, 2) % 3), NumberTarget)
    assert isinstance(target(np.arange(40)[:, None] % 2), ClassTarget)
    assert isinstance(target(np.arange(80) % 3, task="regression"), NumberTarget)


def test_limits_of_predictions():
    found = target(np.array([0.5, 10.5] * 10))
    assert found.limits == ((-0.5, 11.5),)
    assert (found.centres, found.scales) == ((5.5,), (5.0,))
    assert found.names == ("y",)
    several = target(np.column_stack([np.arange(40.0), np.arange(40.0) * 2]))
    assert several.names == ("y0", "y1")
    assert target(np.column_stack([np.arange(40.0), np.arange(40.0) * 2]), names=("a", "b")).names == ("a", "b")


@pytest.mark.parametrize(
    ("values", "task", "words"),
    [
        (np.arange(40) % 2, "ranking", "task: expected regression or classification, got 'ranking'"),
        (np.arange(80).reshape(40, 2) % 3, "classification", "2 columns; expected one column of classes"),
        (np.array([1.0, np.nan] * 20), None, "20 of 40 rows have no value"),
        (np.array([[1.0, np.nan], [2.0, 3.0]] * 20), None, "20 of 40 rows have no value"),
        (np.array([1.5, np.inf] * 20), None, "infinite values"),
        (np.array([1.5, 2.5, np.inf] * 20, dtype=object), None, "infinite values"),
        (np.zeros((4, 2, 2)), None, "expected one value for each row"),
        (np.zeros(0), None, "expected one value for each row"),
        (np.full(40, 3.5), "regression", "always 3.5 in the training rows"),
        (np.array(["a", "b"] * 20), "regression", "'a' is not a number"),
        (np.arange(40) + 0.5, "classification", "40 different numbers such as 0.5 are no classes"),
        (np.array(["a"] * 40), None, "every row is 'a'"),
        (np.array([str(i) for i in range(21)] + ["0"] * 19), None, "21 different values in 40 rows are no classes"),
        (np.array(["2020-01-01", "2020-01-02"] * 20, dtype="M8[D]"), None, "dates cannot be predicted"),
        (np.array(["2020-01-01", "2020-01-02"] * 20), None, "dates cannot be predicted"),
    ],
    ids=str,
)
def test_targets_that_are_none(values, task, words):
    with pytest.raises((DataError, OptionError), match=words):
        target(values, task)


@pytest.mark.parametrize(
    ("n_classes", "n_rows", "are_learned"), [(1000, 2000, True), (1001, 3000, False), (500, 999, False)]
)
def test_a_thousand_classes_are_learned_and_as_many_as_half_of_the_rows(n_classes, n_rows, are_learned):
    values = np.arange(n_rows) % n_classes
    if are_learned:
        assert len(targets._class_target(values, "y").classes) == n_classes
    else:
        with pytest.raises(DataError, match="are no classes to learn"):
            targets._class_target(values, "y")


def test_as_many_classes_as_half_the_rows():
    assert len(target(np.array([str(i % 20) + "x" for i in range(40)])).classes) == 20
    assert targets.MAX_CLASSES == 1000


def test_objects_that_are_numbers():
    kinds = {
        "classes": ([True, False] * 20, bool),
        "whole": (list(range(40)), np.int64),
        "reals": ([1, 2.5] * 20, np.float64),
    }
    for values, kind in kinds.values():
        assert targets.checked_target(np.array(values, dtype=object)).dtype == kind
    assert targets.checked_target(np.array([1, "a"] * 20, dtype=object)).dtype == object
    assert targets.checked_target(np.array([True, 2] * 20, dtype=object)).dtype == object
    assert targets.checked_target(np.array([b"a", b"b"])).tolist() == ["a", "b"]


def test_rows_with_a_target():
    assert targets.labelled(np.array([1.0, np.nan, 3.0])).tolist() == [0, 2]
    assert targets.labelled(pd.DataFrame({"a": [1, None], "b": [1, 2]})).tolist() == [0]
    with pytest.raises(DataError, match="none of 2 rows has a value"):
        targets.labelled(np.array([np.nan, np.nan]))


# -- dates -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "order", "expected"),
    [
        ("2021-03-04", "ymd", (2021, 3, 4, 3, 0)),
        ("2021/3/4 15:30", "ymd", (2021, 3, 4, 3, 15)),
        ("2021.03.04T23:59:59.123Z", "ymd", (2021, 3, 4, 3, 23)),
        ("03/04/2021", "mdy", (2021, 3, 4, 3, 0)),
        ("03/04/2021", "dmy", (2021, 4, 3, 5, 0)),
        ("04.03.69", "dmy", (2069, 3, 4, 0, 0)),
        ("04.03.70", "dmy", (1970, 3, 4, 2, 0)),
        ("04.03.99", "dmy", (1999, 3, 4, 3, 0)),
        ("04.03.2070", "dmy", (2070, 3, 4, 1, 0)),
        ("3/4/2021 1:05 pm", "mdy", (2021, 3, 4, 3, 13)),
        ("3/4/2021 12:05 AM", "mdy", (2021, 3, 4, 3, 0)),
        ("3/4/2021 12:05 PM", "mdy", (2021, 3, 4, 3, 12)),
        ("2021-02-30", "ymd", (np.nan,) * 5),
        ("no date", "ymd", (np.nan,) * 5),
    ],
)
def test_dates_in_parts(text, order, expected):
    found = dates.parts_of(pd.Series([text, "2020-01-01"]), order, dates.PARTS)
    np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (["2021-03-04"], "ymd"),
        (["03/04/2021", "13/04/2021"], "dmy"),
        (["12/04/2021", "12/05/2021"], "mdy"),
        (["03.04.2021", "04.13.2021"], "mdy"),
        (["03/04/2021"], "mdy"),
        (["03.04.2021"], "dmy"),
        (["12.12.2021"], "dmy"),
        ([None, 5], "ymd"),
    ],
)
def test_what_a_date_begins_with(values, order):
    assert dates.order_of(pd.Series(values, dtype=object)) == order


def test_what_is_a_column_of_dates():
    day = datetime.date(2020, 1, 1)
    assert dates.is_date(pd.Series([day] * 3))
    assert dates.is_date(pd.Series(pd.to_datetime(["2020-01-01"])))
    assert dates.is_date(pd.Series(pd.period_range("2020-01", periods=2, freq="M")))
    assert dates.is_date(pd.Series(["2020-01-01"] * 9 + ["x"]))
    assert not dates.is_date(pd.Series(["2020-01-01"] * 8 + ["x"] * 2))
    assert not dates.is_date(pd.Series([1, 2]))
    assert not dates.is_date(pd.Series([None, None], dtype=object))
    late = pd.Series(["x"] * 200 + ["2020-01-01"] * 5000)
    assert not dates.is_date(late)  # the first 200 are looked at


def test_columns_of_dates():
    days = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-03", None]))
    column = dates.date_column("when", days, np.arange(3))
    assert (column.parts, column.centres, column.has_gaps if hasattr(column, "has_gaps") else True) == (
        ("day", "weekday"), (2.0, 3.0), True,
    )  # fmt: skip
    assert column.scales == (1.0, 1.0)
    same = dates.date_column("when", days.iloc[:1], np.arange(1))
    assert same.reason == "constant"
    assert dates.date_column("when", days, np.array([2])).reason == "constant"
    with pytest.raises(DataError, match="holds durations"):
        dates.date_column("took", days - days, np.arange(3))


def test_instants():
    assert dates.instants_of(pd.Series([3, 1])).tolist() == [3.0, 1.0]
    found = dates.instants_of(pd.Series(["01.02.2020", "02.01.2020"]))
    assert found[0] > found[1]
    assert dates.instants_of(pd.Series(["2020-01-01 05:00", "2020-01-01 06:00"])).argmax() == 1
    periods = dates.instants_of(pd.Series(pd.period_range("2020-01", periods=2, freq="M")))
    assert np.diff(periods) == 31 * 86400 * 10**9
    with pytest.raises(DataError, match="1 of 20 values are no dates"):
        dates.instants_of(pd.Series(["2020-01-01"] * 19 + ["x"]))
    for wrong in (pd.Series(["a", "b"]), pd.Series(pd.to_timedelta(["1h", "2h"]))):
        with pytest.raises(DataError, match="expected a column of dates or numbers"):
            dates.instants_of(wrong)


# -- what a file may take ----------------------------------------------------------------------------------------------


def test_what_a_file_may_take_in_memory(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(1000))
    monkeypatch.setattr(bounds, "ALWAYS", 50_000)
    assert (bounds.allowance(path), bounds.allowance(path, path)) == (100_000, 200_000)
    monkeypatch.setattr(bounds, "ALWAYS", 150_000)
    assert bounds.allowance(path) == 150_000
    bounds.check_bytes(path, 150_000, "rows")
    with pytest.raises(DataError, match="rows take 150 kB in memory, from 1 kB; expected at most 150 kB"):
        bounds.check_bytes(path, 150_001, "rows")
    cells = 150_000 // bounds.BYTES_PER_CELL
    bounds.check_cells(path, cells, 1)
    with pytest.raises(DataError, match="rows of 1 columns take"):
        bounds.check_cells(path, cells + 1, 1)
    archive = tmp_path / "b.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x", bytes(100_000))
        file.writestr("y", bytes(60_000))
    with zipfile.ZipFile(archive) as file, pytest.raises(DataError, match="its unpacked contents take 160 kB"):
        bounds.check_members(archive, file)


def test_texts_that_a_parquet_file_packs_to_little_count_as_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    texts = pd.DataFrame({"text": [f"{i}" + "a" * 10_000 for i in range(200)]})
    texts.to_parquet(path, compression="zstd")
    assert bounds.RATIO * path.stat().st_size < 2_000_000
    arrow_files._check_parquet(path, 10)
    monkeypatch.setattr(bounds, "ALWAYS", 1000)
    with pytest.raises(DataError, match="200 rows of 1 columns take 2 MB in memory"):
        arrow_files._check_parquet(path, 10)
    arrow_files._check_parquet(path, 10, whole=False)  # piece by piece it fits


def test_a_reader_that_is_bounded(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(10))
    monkeypatch.setattr(bounds, "ALWAYS", 2000)
    with bounds.bounded(io.BytesIO(b"x" * 2000), path) as reader:
        assert reader.read() == b"x" * 2000
    with bounds.bounded(io.BytesIO(b"x" * 2001), path) as reader, pytest.raises(DataError, match="take more than 2 kB"):
        reader.read()
    with bounds.bounded(io.BytesIO(b"x" * 200_000), path) as reader:
        monkeypatch.setattr(reader._source, "left", 10**6)
        reader.read(1)
        reader.renew()
        assert reader._source.left == 2000
    assert (bounds._shown(999), bounds._shown(1000), bounds._shown(10**6), bounds._shown(2 * 10**9)) == (
        "999 bytes", "1 kB", "1 MB", "2 GB",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
            DataError,
            "text in an unknown encoding; save it as CSV in UTF-8",
        ),
        (pd.errors.EmptyDataError(), DataError, "empty; expected a line with the names"),
        (MemoryError(), DataError, "there is not enough memory"),
        (RecursionError(), DataError, "nested too deeply"),
        (OSError(5, "Input/output error"), FileError, "cannot be read: Input/output error"),
        (EOFError("ended"), FileError, "cannot be read: ended"),
        (ValueError("out of memory"), DataError, "there is not enough memory"),
        (ValueError("a\n b" + "c" * 300), DataError, "not CSV: a bccc"),
        (KeyError("x"), DataError, "not CSV: "),
        (DataError("ours"), DataError, "^ours$"),
    ],
    ids=repr,
)
def test_errors_of_parsers_are_ours(tmp_path, error, kind, words):
    with pytest.raises(kind, match=words) as raised, bounds.our_errors(tmp_path, "CSV"):
        raise error
    assert len(str(raised.value)) < len(str(tmp_path)) + 200


def test_what_is_there(tmp_path):
    bounds.check_is_there(tmp_path)
    with pytest.raises(FileError, match="no such file or folder"):
        bounds.check_is_there(tmp_path / "x")


# -- two data sets -----------------------------------------------------------------------------------------------------


def frame(n=60, **changes):
    rng = np.random.default_rng(1)
    columns = {"a": rng.normal(size=n), "b": rng.normal(size=n), "y": rng.normal(size=n)}
    return pd.DataFrame({**columns, **changes})


def table(given, target="y", **options):
    return dataset_of(given, target, **{"seed": 0, **options})


def test_what_differs_between_two_data_sets():
    before = table(frame())
    assert differences(before, table(frame())) == []
    assert differences(before, table(frame().rename(columns={"y": "z"}), "z")) == ["the target was 'y', now 'z'"]
    few = frame(y=np.arange(60) % 3)
    assert differences(before, table(few)) == ["it was predicted as numbers, now as classes"]
    assert differences(table(few), table(frame(y=np.arange(60) % 2))) == [
        "the classes were '0', '1', '2', now '0', '1'"
    ]
    assert differences(before, table(frame().drop(columns="a"))) == ["columns that are no longer there: 'a'"]
    assert differences(before, table(frame(c=np.random.default_rng(2).normal(size=60)))) == [
        "columns that were not there: 'c'"
    ]
    assert differences(before, table(frame(a=["x", "y"] * 30))) == ["columns taken for something else than before: 'a'"]
    assert differences(before, table(frame(80))) == ["there were 60 rows, now 80"]
    assert differences(before, table(frame(), split=(0.5, 0.25, 0.25))) == [
        "divided otherwise: 36, 12, 12 rows for training, validation and test, now 30, 15, 15"
    ]
    other = differences(before, table(frame(), seed=1))
    assert len(other) == 1
    assert "of 60 rows differ, or the same rows are divided otherwise" in other[0]


def test_weights_that_differ():
    few = frame(y=np.arange(60) % 3)
    plain, weighted = table(few), table(few, sample_weight=np.linspace(1, 2, 60))
    assert differences(plain, weighted) == ["rows had no weights"]
    assert differences(weighted, plain) == ["rows had weights"]
    classes = table(few, class_weight={"0": 2})
    assert differences(plain, classes) == ["class weights were none, now (2.0, 1.0, 1.0)"]
    assert splitting.MIN_ROWS == 10


# -- what is inside ----------------------------------------------------------------------------------------------------


def test_ten_rows_show_a_near_copy_and_fewer_none():
    truth = np.arange(10.0)
    assert _is_near_copy(pd.Series(truth * 2 + 1), truth)
    assert not _is_near_copy(pd.Series(truth[:9]), truth[:9])
    assert not _is_near_copy(pd.Series(np.ones(10)), truth)
    assert not _is_near_copy(pd.Series(truth), np.ones(10))
    assert not _is_near_copy(pd.Series([np.nan, *truth[1:]]), truth)  # nine that are known
    assert not _is_near_copy(pd.Series(truth**2), truth)
    groups = np.repeat([0.0, 1.0, 2.0], 4)
    assert _is_near_copy(pd.Series(np.repeat(["b", "c", "a"], 4)), groups[::-1])  # other names, the same groups
    assert not _is_near_copy(pd.Series(np.repeat(["b", "c"], 6)), groups)


def test_a_target_that_is_refused_or_mostly_one_class_is_inspected_in_words():
    train = np.arange(20)
    refused = _target("y", pd.Series([np.nan] * 20), train)
    assert (refused.column, refused.taken_for, refused.becomes) == ("y", "target", "refused")
    assert refused.note
    rare = _target("y", pd.Series(["a"] * 19 + ["b"]), train)
    assert rare.note.startswith("'a', 'b'; 'a' is 95.0% of the rows: imbalanced, an accuracy of 0.950 needs no network")
    assert "imbalanced" not in _target("y", pd.Series(["a"] * 16 + ["b"] * 4), train).note
    assert refused.to_dict() == asdict(refused)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("rows.doc", "a\n1\n", "expected rows to predict from as CSV"),
        ("rows.csv", "a\n", "there are no rows to predict from"),
    ],
)
def test_files_without_rows_to_predict_from(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=words):
        list(chunks(tmp_path / name))
    with pytest.raises(DataError, match="expected rows to predict from"):
        list(chunks(tmp_path))


def test_chunks_are_as_long_as_asked_and_have_every_row(tmp_path):
    pd.DataFrame({"a": range(7)}).to_csv(tmp_path / "rows.csv", index=False)
    found = list(chunks(tmp_path / "rows.csv", rows=3))
    assert [len(chunk) for chunk in found] == [3, 3, 1]
    assert pd.concat(found)["a"].tolist() == list(range(7))
    np.savez(tmp_path / "rows.npz", X=np.arange(14).reshape(7, 2))
    assert [len(chunk) for chunk in chunks(tmp_path / "rows.npz", rows=3)] == [3, 3, 1]


@pytest.mark.parametrize(
    ("centres", "scales", "kept_as"),
    [
        ((1000.0,), (1.0,), np.float32),  # single precision has steps of 0.00006 there
        ((2000.0,), (1.0,), np.float64),  # of 0.00012
        ((-2000.0,), (1.0,), np.float64),
        ((2000.0,), (2.0,), np.float32),
        ((1000.0, 2000.0), (1.0, 1.0), np.float64),  # one of several
    ],
)
def test_predictions_keep_a_ten_thousandth_of_what_a_target_varies_by(centres, scales, kept_as):
    assert NumberTarget(tuple("ab"[: len(centres)]), centres, scales).kept_as is kept_as


def test_images_are_numbers():
    with pytest.raises(DataError, match="images: expected numbers, got <U1"):
        dataset_of(np.full((12, 4, 4), "x"), np.zeros(12))
    images, labels = np.random.default_rng(0).normal(size=(40, 4, 4)), np.arange(40) % 2
    assert dataset_of(images, labels).kind == "cnn"
    for wrong in (np.nan, np.inf):
        images[7, 1, 2] = wrong
        with pytest.raises(DataError, match="images: values that are not finite"):
            dataset_of(images, labels)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda f: (f / "train_X.npy").unlink(), FileError, "train_X.npy: cannot be read: No such file"),
        (lambda f: (f / "train_X.npy").write_bytes(b"x" * 200), StorageError, "train_X.npy: not an array"),
        (lambda f: np.save(f / "valid_X.npy", np.zeros((4, 3), np.float32)), StorageError, "belong together"),
        (
            lambda f: np.save(f / "train_weights.npy", np.ones(3, np.float32)),
            *(StorageError, "the weights of train do not belong to its rows"),
        ),
        (
            lambda f: [np.save(f / f"{part}_X.npy", np.zeros((n, 3), np.float32)) for part, n in SIZES.items()],
            *(StorageError, "arrays and description do not belong together"),
        ),
        (
            lambda f: np.save(f / "test_X.npy", np.zeros((SIZES["test"], 3), np.float32)),
            *(StorageError, "arrays and description do not belong together"),
        ),
    ],
    ids=["absent", "no array", "too few", "weights", "another width", "another width of one part"],
)
def test_stored_data_that_do_not_fit(tmp_path, change, error, words):
    rng = np.random.default_rng(0)
    data = dataset_of(rng.normal(size=(20, 2)), rng.normal(size=20), sample_weight=rng.uniform(1, 2, 20))
    SIZES.update({part: len(getattr(data, part)) for part in ("train", "valid", "test")})
    data.save(tmp_path / "data")
    assert type(data).load(tmp_path / "data").fingerprint == data.fingerprint
    change(tmp_path / "data")
    with pytest.raises(error, match=words):
        type(data).load(tmp_path / "data")


SIZES: dict[str, int] = {}


def test_classes_are_restored_from_their_outputs():
    target = ClassTarget("y", ("no", "yes"))
    outputs = np.log([[0.9, 0.1], [0.2, 0.8]])
    assert target.predicted(outputs).tolist() == target.restored(outputs).tolist() == ["no", "yes"]


@pytest.mark.parametrize("marks_gaps", [False, True])
def test_a_mark_of_gaps_is_one_input_more(marks_gaps):
    number = NumberColumn("x", 0.0, 0.0, 1.0, marks_gaps)
    category = CategoryColumn("x", ("a", "b", "c"), marks_gaps)
    date = DateColumn("x", "ymd", ("year", "month"), (0.0, 0.0), (1.0, 1.0), marks_gaps)
    assert [column.width - marks_gaps for column in (number, category, date)] == [1, 3, 2]

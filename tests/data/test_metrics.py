"""Metrics: as scikit-learn computes them; which fit which data; the majority that is named."""

import warnings

import numpy as np
import pytest
from sklearn import metrics as theirs

from nasbot.data.dataset import dataset_of
from nasbot.data.metrics import METRICS, majority_of, metric_for, metric_of
from nasbot.errors import OptionError

CASES = 200
NUMBERS = {
    "mse": theirs.mean_squared_error,
    "rmse": theirs.root_mean_squared_error,
    "mae": theirs.mean_absolute_error,
    "r2": theirs.r2_score,
    "mape": theirs.mean_absolute_percentage_error,
}


def one_hot(y, n):
    return np.eye(n, dtype=int)[y]


def auc(y, p):
    return theirs.roc_auc_score(y, p[:, 1]) if p.shape[1] == 2 else theirs.roc_auc_score(y, p, multi_class="ovr")


CLASSES = {
    "log-loss": lambda y, p: theirs.log_loss(y, p, labels=range(p.shape[1])),
    "error": lambda y, p: theirs.zero_one_loss(y, p.argmax(axis=1)),
    "accuracy": lambda y, p: theirs.accuracy_score(y, p.argmax(axis=1)),
    "balanced-accuracy": lambda y, p: theirs.balanced_accuracy_score(y, p.argmax(axis=1)),
    "auc": auc,
    "average-precision": lambda y, p: theirs.average_precision_score(one_hot(y, p.shape[1]), p, average="macro"),
    "f1": lambda y, p: theirs.f1_score(y, p.argmax(axis=1), average="macro"),
    "f1-weighted": lambda y, p: theirs.f1_score(y, p.argmax(axis=1), average="weighted"),
}


def test_every_metric_is_compared():
    assert {*NUMBERS, *CLASSES} == set(METRICS)
    better_when_lower = {"mse", "rmse", "mae", "mape", "log-loss", "error"}
    assert {name for name, metric in METRICS.items() if not metric.higher_is_better} == better_when_lower


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_judged_as_scikit_learn_judges_them(name):
    rng = np.random.default_rng(1)
    for case in range(CASES):
        n, outputs = int(rng.integers(2, 60)), int(rng.integers(1, 4))
        truth = rng.normal(size=(n, outputs)) * 10.0 ** rng.integers(-2, 3)
        if case % 10 == 0:
            truth[:, 0] = 3.0  # constant
        predicted = truth + rng.normal(size=(n, outputs)) * (case % 7 > 0)
        assert METRICS[name](truth, predicted) == pytest.approx(NUMBERS[name](truth, predicted), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_judged_as_scikit_learn_judges_them(name):
    rng = np.random.default_rng(2)
    for case in range(CASES):
        classes = int(rng.integers(2, 6))
        n = int(rng.integers(classes, 80))
        truth = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
        scores = rng.integers(1, 4, size=(n, classes)) if case % 3 == 0 else rng.exponential(size=(n, classes)) + 1e-3
        predicted = scores / scores.sum(axis=1, keepdims=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, about classes that are never predicted
            expected = CLASSES[name](truth, predicted)
        assert METRICS[name](truth, predicted) == pytest.approx(expected, abs=1e-9)


def test_classes_that_no_row_has_are_left_out():
    predicted = np.full((4, 3), 1 / 3)
    assert np.isnan(METRICS["auc"](np.zeros(4, dtype=int), predicted))
    assert METRICS["auc"](np.array([0, 0, 1, 1]), predicted) == pytest.approx(0.5)
    assert METRICS["balanced-accuracy"](np.array([0, 0, 1, 1]), predicted) == pytest.approx(0.5)


def numbers(n=60, *, zero=False):
    x = np.linspace(1, 2, n)
    return dataset_of(x[:, None], np.where(x > 1.5, 0.0, x) if zero else x, task="regression")


def classes(majority=45, minority=15):
    y = np.array(["no"] * majority + ["yes"] * minority)
    return dataset_of(np.arange(len(y))[:, None] * 1.0, y)


def test_metrics_that_do_not_fit_are_refused_with_those_that_do():
    assert metric_for("mae", numbers()).name == "mae"
    with pytest.raises(
        OptionError, match="metric: auc is for classification, the target asks for regression; expected mse"
    ):
        metric_for("auc", numbers())
    with pytest.raises(OptionError, match=r"expected one of mse, .*got 'acuracy'; did you mean accuracy"):
        metric_of("acuracy")
    with pytest.raises(
        OptionError, match=r"mape divides by the target, which is 0 in \d+ training and validation rows; try mae"
    ):
        metric_for("mape", numbers(zero=True))
    alone = dataset_of(np.arange(20.0)[:, None], np.array([0] * 19 + [1]))
    with pytest.raises(OptionError, match="auc needs at least two classes among the 4 validation rows"):
        metric_for("auc", alone)


def test_a_majority_is_named_with_what_it_predicts():
    assert majority_of(numbers()) is None
    assert majority_of(classes()) is None
    found = majority_of(classes(980, 20))
    assert (found.name, found.share) == ("no", pytest.approx(0.98))
    assert found.predicted == pytest.approx([0.98, 0.02])

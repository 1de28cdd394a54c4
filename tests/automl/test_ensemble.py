"""Greedy ensembles: never worse than the best single one, guarded where rows are few, deterministic."""

import numpy as np
import pytest

from nasbot.automl.ensemble import MAX_MEMBERS, select
from nasbot.data.metrics import METRICS
from nasbot.errors import DataError


def problem(seed, *, n=2000, k=12, classes=0):
    """Networks of different quality whose errors have a part in common."""
    rng = np.random.default_rng(seed)
    if not classes:
        truth = rng.normal(size=(n, 1))
        common = rng.normal(size=(n, 1))
        sizes = rng.uniform(0.2, 0.8, size=k)
        return truth + np.stack([s * (0.5 * common + rng.normal(size=(n, 1))) for s in sizes]), truth
    truth = rng.integers(classes, size=n)
    logits = rng.normal(size=(k, n, classes)) * 1.5
    logits[:, np.arange(n), truth] += rng.uniform(0.5, 3, size=(k, 1))
    return logits - np.logaddexp.reduce(logits, axis=2, keepdims=True), truth


def mean_of(predictions, chosen):
    weights = np.array(chosen.weights)[:, None, None]
    return (weights * predictions[list(chosen.members)]).sum(axis=0)


@pytest.mark.parametrize("n", [60, 2000])
@pytest.mark.parametrize("seed", range(8))
def test_never_worse_than_the_best_single_one_on_the_rows_that_choose(seed, n):
    predictions, truth = problem(seed, n=n)
    chosen = select(predictions, truth)
    singles = np.square(predictions - truth).mean(axis=(1, 2))
    assert chosen.single_loss == pytest.approx(singles.min())
    assert np.square(mean_of(predictions, chosen) - truth).mean() <= singles.min() + 1e-12
    predictions, truth = problem(seed, n=n, classes=4)
    chosen = select(predictions, truth)
    singles = -predictions[:, np.arange(n), truth].mean(axis=1)
    mean = np.log(mean_of(np.exp(predictions), chosen))
    assert chosen.single_loss == pytest.approx(singles.min())
    assert -mean[np.arange(n), truth].mean() <= singles.min() + 1e-12


def test_it_is_better_on_rows_that_nobody_chose_by():
    for seed in range(5):
        predictions, truth = problem(seed, n=4000)
        chosen = select(predictions[:, :2000], truth[:2000])
        unseen = np.square(predictions[:, 2000:] - truth[2000:]).mean(axis=(1, 2))
        best = int(np.argmin(np.square(predictions[:, :2000] - truth[:2000]).mean(axis=(1, 2))))
        loss = np.square(mean_of(predictions[:, 2000:], chosen) - truth[2000:]).mean()
        assert loss < 0.9 * unseen[best]
        assert chosen.loss == pytest.approx(loss, rel=0.1), "what is expected is what comes"


def test_members_and_weights():
    predictions, truth = problem(3, k=40)
    chosen = select(predictions, truth)
    assert len(chosen.members) == len(set(chosen.members)) <= MAX_MEMBERS
    assert sum(chosen.weights) == pytest.approx(1)
    assert list(chosen.weights) == sorted(chosen.weights, reverse=True)
    assert chosen == select(predictions.copy(), truth.copy())


@pytest.mark.parametrize(("given", "n"), [(4, 3), (10, 5), (16, 8), (20, 8)])
def test_few_rows_choose_nothing_but_the_better_half(given, n):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(400, 1))
    predictions = truth + rng.normal(size=(given, 400, 1)) * np.linspace(1, 1.2, given)[:, None, None]
    chosen = select(predictions, truth)
    best = np.argsort(np.square(predictions - truth).mean(axis=(1, 2)))[:n]
    assert sorted(chosen.members) == sorted(best)
    assert chosen.weights == pytest.approx([1 / n] * n)


def test_of_few_rows_the_worst_are_left_out_until_the_rest_helps():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(400, 1))
    predictions = truth + rng.normal(size=(10, 400, 1)) * np.array([1.0, 1.0, *[20.0] * 8])[:, None, None]
    assert sorted(select(predictions, truth).members) == [0, 1]


@pytest.mark.parametrize("n", [100, 1000])
def test_one_good_network_stands_alone(n):
    truth = np.random.default_rng(0).normal(size=(n, 1))
    predictions = np.stack([truth + 0.01, truth + 5, truth + 9])
    assert select(predictions, truth).members == (0,)
    assert select(predictions[:1], truth) == select(predictions[:1], truth)
    assert select(predictions[:1], truth).weights == (1.0,)


def test_outputs_count_by_their_scales():
    truth = np.random.default_rng(0).normal(size=(1000, 2)) * [1, 1000]
    predictions = np.stack([truth + np.array([0.9, 0]), truth + np.array([0, 10])])
    assert select(predictions, truth).members == (0,)
    chosen = select(predictions, truth, scales=(1, 1000))
    assert chosen.members == (1,)
    assert chosen.single_loss == pytest.approx(0.01**2 / 2)


def test_mistakes():
    predictions, truth = problem(0, n=20)
    for other, target in ((predictions[0], truth), (predictions, truth[:10]), (predictions[:0], truth)):
        with pytest.raises(DataError, match="predictions: expected"):
            select(other, target)
    with pytest.raises(DataError, match="truth: expected"):
        select(predictions, np.zeros((20, 3)))
    predictions[0, 0] = np.nan
    with pytest.raises(DataError, match="not finite numbers"):
        select(predictions, truth)


@pytest.mark.parametrize("n", [60, 2000])
@pytest.mark.parametrize("name", ["auc", "f1", "mae", "r2"])
def test_a_metric_chooses_in_its_own_sense(name, n):
    metric = METRICS[name]
    predictions, truth = problem(3, n=n, classes=3 if metric.task == "classification" else 0)
    chosen = select(predictions, truth, metric=metric)
    given = np.exp(predictions) if metric.task == "classification" else predictions
    singles = [metric.cost(metric(truth, one)) for one in given]
    assert chosen.single_loss == pytest.approx(min(singles))
    assert metric.cost(metric(truth, mean_of(given, chosen))) <= min(singles) + 1e-12

"""A search by a metric: it chooses the validation step, the trial and the ensemble, and is shown by name."""

import json

import numpy as np
import pytest
import torch

import nasbot
from nasbot.architecture import Layer, chain
from nasbot.automl.summary import record_of
from nasbot.data.dataset import dataset_of
from nasbot.data.metrics import METRICS, truth_of
from nasbot.errors import OptionError, StudyError
from nasbot.training.loop import train
from nasbot.training.predictions import answers, predictions
from nasbot.training.recipes import FAST
from nasbot.trial import Direction

QUICK = {"workers": 1, "recipe": FAST.changed(n_steps=30, n_validations=6), "executor": "here"}
SMALL = chain("mlp-class", [Layer("relu", 16)])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)


@pytest.fixture(scope="module")
def rare():
    """One row in twenty is of the second class, which the inputs tell only in part."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=800) > 1.9, "yes", "no")


@pytest.mark.parametrize("name", ["auc", "f1", "error"])
def test_the_metric_chooses_the_validation_step(rare, name):
    data, metric = dataset_of(*rare), METRICS[name]
    trained = train(SMALL, data, FAST.changed(n_steps=60, n_validations=12), metric=metric)
    scores = [point.value for point in trained.curve]
    assert trained.score == min(scores, key=metric.cost)
    out = predictions(trained.network, torch.from_numpy(np.array(data.valid.X))).numpy()
    assert metric(truth_of(data, data.valid.y), answers(out, data)) == pytest.approx(trained.score, abs=1e-6)


def test_of_equal_values_the_lower_loss_is_kept(rare):
    data = dataset_of(*rare)
    course = FAST.changed(n_steps=60, n_validations=12)
    losses = {point.step: point.value for point in train(SMALL, data, course).curve}
    trained = train(SMALL, data, course, metric=METRICS["accuracy"])
    equal = [point.step for point in trained.curve if point.value == trained.score]
    assert len(equal) > 1
    assert trained.best_step == min(equal, key=losses.__getitem__)


def test_a_search_maximises_what_is_better_high_and_says_so(rare):
    study = nasbot.search(*rare, metric="auc", budget=3, name="rare", **QUICK)
    assert study.direction is Direction.MAXIMISE
    values = [trial.value for trial in study.history.completed if trial.fidelity >= 1]
    assert study.best_value == max(values)
    assert 0.5 < study.best_value <= 1
    record = record_of(study)
    assert (record["metric"], record["higher_is_better"]) == ("auc", True)
    assert record["single"]["validation"] == pytest.approx(study.best_value, abs=1e-6)
    assert record["model"]["metric"] == "auc"
    assert record["majority"]["validation"] == pytest.approx(0.5)
    json.dumps(record, allow_nan=False)
    summary = study.summary()
    assert "chosen by: auc (higher is better)" in summary
    assert "auc: validation" in summary
    assert "imbalance: 'no' is 9" in summary
    assert "  majority      auc: validation 0.5" in summary
    with pytest.raises(StudyError, match="begun with metric auc, not f1"):
        nasbot.search(*rare, metric="f1", budget=3, name="rare", **QUICK)
    with pytest.raises(StudyError, match="begun with metric auc, not validation loss"):
        nasbot.search(*rare, budget=3, name="rare", **QUICK)
    with pytest.raises(OptionError, match="mae is for regression"):
        nasbot.search(*rare, metric="mae", budget=1, name=None, **QUICK)


@pytest.mark.parametrize(
    ("metric", "asked", "expected"),
    [
        ("f1", None, True),
        ("balanced-accuracy", None, True),
        ("auc", None, False),
        (None, None, False),
        ("f1", "none", False),
        ("f1", {"yes": 2}, False),
    ],
)
def test_a_rare_class_counts_as_much_as_the_other_where_the_metric_says_so(rare, metric, asked, expected):
    with nasbot.search(*rare, metric=metric, class_weight=asked, budget=1, name=None, **QUICK) as study:
        counts = np.bincount(study.dataset.train.y)
        weights = study.dataset.class_weights
        is_balanced = weights is not None and bool(abs(weights[1] / weights[0] - counts[0] / counts[1]) < 1e-6)
        assert is_balanced is expected
        assert ("classes count 'no 0.5" in study.dataset.summary()[-1]) is expected


def test_classes_of_about_as_many_rows_are_left_alone():
    X = np.random.default_rng(0).normal(size=(200, 3))
    with nasbot.search(X, np.arange(200) % 2, metric="f1", budget=1, name=None, **QUICK) as study:
        assert study.dataset.class_weights is None


def test_a_study_that_balanced_its_classes_goes_on(rare):
    for budget in (1, 2):
        with nasbot.search(*rare, metric="f1", budget=budget, name="rare", **QUICK) as study:
            assert len(study.history.completed) == budget
            assert study.dataset.class_weights is not None


@pytest.mark.parametrize(("metric", "loss"), [("mae", "absolute"), ("mape", "absolute"), ("r2", "squared")])
def test_absolute_errors_are_trained_on_where_they_are_asked_for(metric, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    with nasbot.search(X, X[:, 0] + 9, metric=metric, budget=1, name=None, executor="here", folds=1) as study:
        assert study.recipe.vectors.loss == loss
    own = FAST.changed(n_steps=30)
    with nasbot.search(X, X[:, 0] + 9, metric=metric, budget=1, name=None, executor="here", recipe=own) as study:
        assert study.recipe == own  # as it is


def test_without_a_metric_values_are_losses(rare):
    study = nasbot.search(*rare, budget=1, name=None, **QUICK)
    assert study.direction is Direction.MINIMISE
    assert (study.has_metric, study.metric.name) == (False, "log-loss")
    assert "chosen by: validation loss (lower is better)" in study.summary()
    assert "--metric f1, average-precision or balanced-accuracy looks at the others" in study.summary()
    assert study.results().single.validation == pytest.approx(study.best_value, rel=1e-5)


def test_an_estimator_is_fitted_by_a_metric():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3))
    found = nasbot.NASBOTRegressor(budget=2, steps=20, metric="mae").fit(X, 100 * X[:, 0])
    assert found.loss_ == min(found.losses_)
    assert 1 < found.loss_ < 200  # in the target's units

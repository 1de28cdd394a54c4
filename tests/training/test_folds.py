"""Cross-validation: every row judged once by a network that has not seen it, and all folds stopped at one step."""

from dataclasses import replace

import numpy as np
import pytest

import nasbot
from nasbot.architecture import Layer, chain
from nasbot.automl.members import kept, members_of
from nasbot.automl.model import refitted_trials
from nasbot.automl.plan import FOLDS, ROWS_FOR_HOLDOUT, folds_of
from nasbot.data.dataset import Dataset, dataset_of
from nasbot.data.metrics import METRICS, truth_of
from nasbot.errors import OptionError
from nasbot.training.folds import cross_validated, fold_numbers, folded, judged_part
from nasbot.training.loop import train
from nasbot.training.predictions import people_predictions
from nasbot.training.recipes import FAST, FEW_ROWS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(121, 4))
Y = X[:, 0] * 2 + X[:, 1] * X[:, 2] + RNG.normal(size=121)
MLP, CLASSIFIER = chain("mlp-reg", [Layer("relu", 12)]), chain("mlp-class", [Layer("relu", 12)])
SHORT = FAST.changed(n_steps=40, n_validations=8, patience=None)


@pytest.fixture(scope="module")
def numbers():
    return dataset_of(X, Y, task="regression")


@pytest.fixture(scope="module")
def classes():
    return dataset_of(X, np.where(Y > 1.5, "rare", "usual"), task="classification")


def test_every_row_is_in_one_fold_and_classes_are_divided_alike(classes):
    for n in (10, 97, 500):
        counts = np.bincount(fold_numbers(n, 5))
        assert counts.sum() == n
        assert np.ptp(counts) <= 1
    together = judged_part(classes, 5)
    numbers = fold_numbers(len(together), 5, together.y)
    for label in np.unique(together.y):
        assert np.ptp(np.bincount(numbers[together.y == label], minlength=5)) <= 1


def test_no_fold_learns_from_the_rows_that_judge_it_or_from_test_rows(numbers):
    parts = folded(numbers, 4)
    judged = np.concatenate([rows for _, rows in parts])
    assert sorted(judged) == list(range(len(numbers.train) + len(numbers.valid)))
    tested = {row.tobytes() for row in numbers.test.X}
    for data, rows in parts:
        learned = {row.tobytes() for row in data.train.X}
        assert not learned & {row.tobytes() for row in data.valid.X}
        assert not learned & tested
        assert np.array_equal(data.valid.X, judged_part(numbers, 4).X[rows])
        assert len(data.train) + len(data.valid) == len(numbers.train) + len(numbers.valid)


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_the_value_is_that_of_all_rows_at_the_step_that_is_best_for_all(name, request):
    """By hand: each fold trained again up to that step, and judged by the rows that it has not seen."""
    data = request.getfixturevalue(name)
    arch = CLASSIFIER if data.is_classification else MLP
    found = cross_validated(
        data, 3, lambda part, fold, tell: train(arch, part, SHORT, seed=1, on_validation=tell), None
    )
    step = found.trained.best_step
    said = np.empty_like(found.predictions)
    for part, rows in folded(data, 3):
        network = train(arch, part, SHORT, seed=1, stop_after=step / 40).network
        said[rows] = people_predictions(network, data, part.valid)
    np.testing.assert_allclose(found.predictions, said, rtol=1e-4, atol=1e-5)
    together = judged_part(data, 3)
    truth = truth_of(data, together.y)
    if data.is_classification:
        by_hand = METRICS["log-loss"](truth, np.exp(said.astype(float)))
    else:
        scale = data.preprocessing.target.scales[0]
        by_hand = METRICS["mse"](truth / scale, said / scale)
    assert found.trained.loss == pytest.approx(by_hand, rel=1e-3)
    assert found.trained.score == min(point.value for point in found.trained.curve)
    assert [point.step for point in found.trained.curve] == list(range(5, 41, 5))


def test_a_metric_is_that_of_all_rows_too(classes):
    metric = METRICS["balanced-accuracy"]
    found = cross_validated(
        classes,
        3,
        lambda part, fold, tell: train(CLASSIFIER, part, SHORT, seed=1, metric=metric, on_validation=tell),
        metric,
    )
    truth = truth_of(classes, judged_part(classes, 3).y)
    assert found.trained.score == pytest.approx(metric(truth, np.exp(found.predictions.astype(float))))


def test_folds_that_time_ended_at_different_steps_count_as_each_was_best(numbers):
    def cut(part, fold, tell):
        return train(
            MLP, part, SHORT.changed(check_every=7 + fold), seed=1, stop_after=0.2 + 0.1 * fold, on_validation=tell
        )

    found = cross_validated(numbers, 3, cut, None)
    assert np.isfinite(found.predictions).all()
    assert np.isfinite(found.trained.loss)


# -- when --------------------------------------------------------------------------------------------------------------


def test_few_rows_that_may_be_mixed_are_cross_validated(numbers):
    assert folds_of("auto", numbers, None) == FOLDS
    assert folds_of(1, numbers, None) == 1
    assert folds_of(7, numbers, None) == 7
    assert folds_of("auto", replace(numbers, is_divided_at_random=False), None) == 1
    many = replace(numbers, train=replace(numbers.train, X=np.zeros((ROWS_FOR_HOLDOUT, 4), dtype=np.float32)))
    assert folds_of("auto", many, None) == 1
    assert folds_of("auto", numbers, {"n_steps": 3}) == 1  # a study of an older nasbot
    assert folds_of("auto", numbers, {"folds": 4}) == 4


@pytest.mark.parametrize(
    ("given", "stored", "message"),
    [
        (0, None, "folds: expected auto, or a whole number from 1 to 97 rows, got '0'"),
        ("many", None, "folds: expected auto, or a whole number from 1 to 97 rows, got 'many'"),
        (98, None, "from 1 to 97 rows, got '98'"),
        (True, None, "from 1 to 97 rows, got 'True'"),
        (3, {"folds": 4}, "folds: the study was begun with 4, not 3; use that, or choose another name"),
    ],
)
def test_folds_that_cannot_be_meant(numbers, given, stored, message):
    with pytest.raises(OptionError) as error:
        folds_of(given, numbers, stored)
    assert message in str(error.value)


def test_rows_that_belong_apart_are_not_mixed(tmp_path):
    by_group = dataset_of(X, Y, task="regression", groups=np.arange(len(X)) // 3)
    by_time = dataset_of(X, Y, task="regression", time=np.arange(len(X)))
    for data in (by_group, by_time):
        assert not data.is_divided_at_random
        with pytest.raises(OptionError, match="folds: these rows are divided by group, time or file"):
            folds_of(5, data, None)
    by_group.save(tmp_path / "data")
    assert not Dataset.load(tmp_path / "data").is_divided_at_random
    assert dataset_of(X, Y, task="regression").is_divided_at_random


# -- in a search -------------------------------------------------------------------------------------------------------


def test_a_search_of_few_rows_is_judged_by_all_of_them_and_refitted(tmp_path):
    def searched(**options):
        pool = [MLP, chain("mlp-reg", [Layer("tanh", 8)])]
        given = {"budget": 3, "workers": 1, "pool": pool, "task": "regression", "recipe": SHORT}
        return nasbot.search(X, Y, name=tmp_path / "s.sqlite", **given | options)

    with searched() as study:
        data = study.dataset
        assert study.folds == FOLDS
        n = len(data.train) + len(data.valid)
        assert len(study.judged) == n
        trial = study.history[0]
        oof = kept(study.files, trial, n)[0].astype(float)
        scale = data.preprocessing.target.scales[0]
        truth = truth_of(data, study.judged.y)
        assert trial.value == pytest.approx(np.square((oof - truth) / scale).mean(), rel=1e-3)
        assert set(refitted_trials(study)) >= set(members_of(study).trials)
        assert study.results().single.validation == pytest.approx(
            min(t.value for t in study.history.completed) * scale**2, rel=1e-3
        )
        assert study.model().predict(X[:3]).shape == (3,)
    with searched(budget=4) as longer:
        assert len(longer.history.completed) == 4
    with pytest.raises(OptionError, match="folds: the study was begun with 5, not 2"):
        searched(folds=2)


def test_few_rows_are_trained_slowly_unless_a_recipe_says_otherwise(tmp_path):
    with nasbot.search(X, Y, budget=1, pool=[MLP], workers=1, task="regression", name=None, refit=False) as study:
        for name, value in FEW_ROWS.items():
            assert getattr(study.recipe.vectors, name) == value
    with nasbot.search(
        X, Y, budget=1, pool=[MLP], workers=1, task="regression", name=None, refit=False, recipe=SHORT, folds=2
    ) as study:
        assert study.folds == 2
        assert study.recipe.vectors.dropout == 0

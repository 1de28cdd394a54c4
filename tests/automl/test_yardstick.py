"""Trees beside a search: measured in their share of the time, shown, and never part of the model."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import ExtraTreesRegressor
from threadpoolctl import threadpool_info

import nasbot
from nasbot.automl import yardstick
from nasbot.automl.removing import remove_study
from nasbot.automl.yardstick import Yardstick, measured, seconds_for
from nasbot.data.dataset import dataset_of, named_dataset
from nasbot.training.recipes import FAST


def test_how_much_of_a_budget_it_takes():
    assert seconds_for(None) is None
    assert seconds_for(19.0) is None
    assert seconds_for(100.0) == 4.0
    assert seconds_for(3600.0) == 20.0


@pytest.mark.parametrize(("numbers", "threads"), [(10_000_000, 1), (0, None)])
def test_boosting_on_small_tables_waits_for_no_other_thread(monkeypatch, numbers, threads):
    """Twenty times as long where others use the cores, for the sake of nothing."""
    monkeypatch.setattr(yardstick, "WORTH_THREADS", numbers)
    data = dataset_of(*load_diabetes(return_X_y=True))

    def used():
        return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "openmp"}

    class Watching:
        def fit(self, X, y, sample_weight):
            return used()

    assert yardstick._fitted(Watching(), data, [data.train]) == ({threads} if threads else used())


def two_targets():
    """Which ExtraTrees alone can predict."""
    X, y = load_diabetes(return_X_y=True)
    return dataset_of(X, np.stack([y, -y], axis=1), task="regression")


def test_with_no_time_the_smallest_is_grown_and_then_learns_the_validation_rows():
    data = two_targets()
    found = measured(data, seconds=0.0, seed=3)
    assert found.name == "ExtraTrees"
    X, y = (np.concatenate([getattr(part, name) for part in (data.train, data.valid)]) for name in ("X", "y"))
    trees = ExtraTreesRegressor(yardstick.FIRST_TREES, random_state=3).fit(X, y)
    np.testing.assert_allclose(found.test, data.preprocessing.predicted(trees.predict(data.test.X)), rtol=1e-5)


def test_more_time_grows_better_trees():
    data = two_targets()
    truth = data.preprocessing.restored(data.valid.y)
    few, many = (measured(data, seconds=seconds, seed=0) for seconds in (0.0, 60.0))
    errors = [np.mean((found.valid - truth) ** 2) for found in (few, many)]
    assert errors[1] < 0.95 * errors[0]


def test_the_better_by_validation_is_chosen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    steps = np.floor(2 * X[:, 0]) + 0.01 * rng.normal(size=600)
    assert measured(dataset_of(X, steps, task="regression"), seconds=0.0, seed=0).name == "ExtraTrees"
    assert measured(named_dataset("diabetes"), seconds=0.0, seed=0).name == "gradient boosting"


def test_test_rows_are_only_predicted():
    data = named_dataset("diabetes")
    poisoned = replace(data, test=replace(data.test, y=data.test.y + 100))
    ours, theirs = (measured(each, seconds=0.0, seed=0) for each in (data, poisoned))
    np.testing.assert_array_equal(ours.valid, theirs.valid)
    np.testing.assert_array_equal(ours.test, theirs.test)


def test_classes_are_probabilities_in_the_order_of_the_data_and_none_is_nothing():
    data = dataset_of(*load_wine(return_X_y=True), seed=1)
    found = measured(data, seconds=5.0, seed=0)
    np.testing.assert_allclose(np.exp(found.valid).sum(axis=1), 1, atol=1e-5)
    assert (found.valid.argmax(axis=1) == data.valid.y).mean() > 0.9
    assert np.exp(found.test).min() > 1e-4


def test_a_class_without_training_rows_gets_the_least_probability():
    data = dataset_of(*load_wine(return_X_y=True), seed=1)
    seen = data.train.y != 2
    part = replace(data.train, X=data.train.X[seen], y=data.train.y[seen])
    data = replace(data, train=part, valid=replace(part, X=part.X[:9], y=part.y[:9]))
    found = measured(data, seconds=0.0, seed=0)
    assert found.valid.shape == (9, 3)
    assert (found.valid.argmax(axis=1) < 2).all()


def test_several_targets_and_images():
    both = two_targets()
    assert measured(both, seconds=0.0, seed=0).test.shape == (len(both.test), 2)
    images = dataset_of(np.arange(40 * 64, dtype=np.uint8).reshape(40, 8, 8), np.arange(40) % 2)
    assert measured(images, seconds=0.0, seed=0) is None


def test_weights_count():
    X, y = load_diabetes(return_X_y=True)
    weights = np.where(y > np.median(y), 1.0, 1e-3)
    plain, weighted = (
        measured(dataset_of(X, y, task="regression", sample_weight=given), seconds=0.0, seed=0)
        for given in (None, weights)
    )
    assert weighted.test.mean() > plain.test.mean() + 10


def test_beside_a_search_and_gone_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(yardstick, "LEAST_BUDGET", 0.5)
    X, y = load_diabetes(return_X_y=True)
    options = {"workers": 1, "recipe": FAST.changed(n_steps=20), "folds": 1, "refit": False}
    study = nasbot.search(X, y, budget="2s", name="beside", **options)
    trees = study.results().trees
    assert trees.test is not None
    assert 0.2 < trees.details["test_r2"] < 0.7
    lines = study.summary().splitlines()
    assert any(line.startswith("  trees  ") for line in lines)
    assert json.loads(json.dumps(study.results().to_dict()))["trees"]["validation"] == trees.validation
    assert list(study.files.glob("yardstick-*"))
    assert remove_study(tmp_path / "studies" / "beside.sqlite").left == ()

    without = nasbot.search(X, y, budget="2s", name=None, yardstick=False, **options)
    assert without.results().trees is None
    assert "trees" not in without.summary()


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_a_broken_file_is_as_none(tmp_path, content):
    (tmp_path / "yardstick-ExtraTrees.predictions.npy").write_bytes(content)
    assert Yardstick.load(tmp_path, 3) is None

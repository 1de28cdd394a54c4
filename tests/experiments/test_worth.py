"""What params are worth: the values tried, what is trained, and what the table says of records."""

import numpy as np
import pytest

from experiments import worth
from experiments.worth import changes, others, run, searched, table
from nasbot.data.dataset import dataset_of
from nasbot.domain import Choice, Float, Integer


@pytest.fixture
def data(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3))
    made = dataset_of(X, np.exp(2 * X[:, 0]), name="mine", seed=0)
    monkeypatch.setattr(worth, "data_of", lambda name, folder, division: made)
    worth._data.cache_clear()
    yield made
    worth._data.cache_clear()


def test_the_values_that_are_tried():
    assert others(Float(1e-6, 1e-2, log=True, default=1e-4)) == [1e-5, 1e-3]
    assert others(Float(0.0, 0.4, default=0.0)) == [0.2]
    assert others(Integer(1, 9, default=5)) == [3, 7]
    assert others(Choice(64, 128, 256, ordered=True, default=128)) == [64, 256]
    params = {"a": Choice("x", "y"), "b": Float(0.0, 1.0)}
    assert changes(params) == [("", ""), ("a", "y"), ("b", 0.25), ("b", 0.75)]


def test_every_change_is_trained_once(data):
    params = searched(data)
    assert list(params) == list(worth.PARAMS), "of a target with a long tail the loss, too"
    assert params["loss"].default == "poisson"
    steps = {"mine": 6}
    made = list(run(["mine"], [100], [0], "", [], steps))
    assert [(record["param"], record["value"]) for record in made] == changes(params)
    assert all(record["valid"] > 0 and record["test"] > 0 for record in made)
    assert {r["param"] for r in made if r["valid"] == made[0]["valid"]} == {""}, "each change does something"
    assert list(run(["mine"], [100], [0], "", made[:5], steps)) == made[5:], "what is known is not run again"


def record(param, value, valid, test, *, name="a", seed=0):
    return {"set": name, "division": 100, "seed": seed, "param": param, "value": value, "valid": valid, "test": test}


def test_the_best_value_is_chosen_by_validation_over_all_runs():
    records = [
        record("", "", 1.0, 2.0),
        record("", "", 4.0, 4.0, seed=1),
        record("dropout", 0.1, 0.5, 2.2),
        record("dropout", 0.1, 4.0, 4.0, seed=1),
        record("dropout", 0.2, 0.9, 0.1),
        record("dropout", 0.2, 3.6, 0.1, seed=1),
        record("dropout", 0.2, 0.1, 0.1, seed=2),  # which the others do not have
        record("schedule", "constant", 1.5, 1.5),
        record("", "", 1.0, 1.0, name="b"),
        record("schedule", "constant", 0.5, 0.5, name="c"),  # without a default to compare with
    ]
    assert worth.worth(records) == {
        ("a", "dropout"): (0.1, pytest.approx(0.5**0.5), pytest.approx(1.1**0.5)),
        ("a", "schedule"): ("default", 1.0, 1.0),
    }
    assert table(records).splitlines()[2:] == ["| dropout | 0.1: -29.3%, +4.9% |", "| schedule | default |"]

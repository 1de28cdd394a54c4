"""Seconds to a validation error: where the targets come from, what counts, and the bar."""

import json
import math

import numpy as np
import pytest

import nasbot
from experiments import time_to
from experiments.protocol import read_protocol
from experiments.time_to import reached, run, table, targets
from nasbot.data.dataset import dataset_of
from nasbot.study import Budget
from nasbot.training.recipes import FAST


def searches(path, *found):
    digest = read_protocol("regression").digest
    lines = [
        {
            "protocol": protocol or digest,
            "run": {"dataset": name, "method": method, "seed": seed},
            "result": {"values": values},
        }
        for name, method, seed, protocol, values in found
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_targets_are_medians_of_the_best_of_each_search(tmp_path):
    file = searches(
        tmp_path / "r.jsonl",
        ("a", "NASBOT", 0, None, [5.0, 3.0, 4.0]),
        ("a", "NASBOT", 1, None, [9.0]),
        ("a", "NASBOT", 2, None, [1.0, 2.0]),
        ("a", "NASBOT", 3, None, [0.1]),  # another seed
        ("a", "RAND", 0, None, [0.1]),
        ("a", "NASBOT", 0, "other settings", [0.1]),
        ("b", "NASBOT", 0, None, [0.1]),
    )
    assert targets(["a"], [0, 1, 2], file) == {"a": 3.0}
    with pytest.raises(SystemExit, match=r"no search by NASBOT on b with seeds \[1\]"):
        targets(["a", "b"], [0, 1], file)


def test_the_targets_of_the_bar_are_recorded():
    found = targets(["protein", "naval", "indoor"], range(5))
    assert found == pytest.approx({"protein": 0.431284, "naval": 0.000889517, "indoor": 0.00554346})


def test_the_first_trial_that_is_as_good_counts():
    record = {"times": [2.0, 5.0, 9.0], "values": [0.5, 0.3, 0.1]}
    assert [reached(record, target) for target in (0.5, 0.31, 0.3, 0.05)] == [2.0, 5.0, 5.0, math.inf]


def test_a_toy_set_is_searched_by_the_front_door_and_timed_from_the_call(monkeypatch):
    X = np.random.default_rng(0).normal(size=(3000, 3))
    made = dataset_of(X, X[:, 0] ** 2, name="toy", seed=0)
    monkeypatch.setattr(time_to, "data_of", lambda name, folder, division: made)
    now = [1000.0]
    monkeypatch.setattr(time_to, "monotonic", lambda: now[0])
    asked = {}

    def search(data, on_change, **options):
        asked.update(options, data=data)
        now[0] += 7.0  # yardstick and calibration
        return plain(data, on_change=on_change, budget=2, name=None, recipe=FAST.changed(n_steps=5), workers=1)

    plain = nasbot.search
    monkeypatch.setattr(nasbot, "search", search)
    budget = Budget(seconds=20.0)
    (record,) = run(["toy"], [3], budget, "")
    assert asked == {"data": made, "budget": budget, "workers": 2, "seed": 3, "name": None, "progress": False}
    assert record["times"] == [7.0, 7.0]
    assert record["values"][0] > 0
    assert list(run(["toy"], [3], budget, "", [record])) == []  # it is known


def test_the_bar_is_of_medians_and_the_third_set_may_take_longer():
    def found(*seconds):
        return [
            {"set": name, "seed": seed, "budget": 60.0, "revision": "x", "times": [at], "values": [0.5]}
            for name, at in zip("abc", seconds, strict=True)
            for seed in range(2)
        ]

    wanted = dict.fromkeys("abc", 0.5)
    assert "| b | 0.5 | 59.0, 59.0 | 59.0 |" in table(found(10.0, 59.0, 33.0), wanted)
    assert "third: held" in table(found(10.0, 59.0, 33.0), wanted)
    assert "third: missed" in table(found(10.0, 59.0, 34.0), wanted)
    assert "third: missed" in table(found(10.0, 61.0, 33.0), wanted)
    assert "| c | 0.4 | never, never | never |" in table(found(1.0, 1.0, 1.0), wanted | {"c": 0.4})

"""What a person gets: the methods that are compared, and the table of their runs."""

import numpy as np
import pytest

import nasbot
from experiments.model import METHODS, run, table
from nasbot.data.dataset import dataset_of
from nasbot.study import Budget


def test_a_run_without_a_model_is_counted_and_not_averaged():
    run = {"set": "naval", "method": "nasbot", "budget": 20.0, "wall": 21.0}
    found = [{**run, "seed": seed, "loss": 2 * x, "single": x, "model": x} for seed, x in enumerate((1, 3))]
    rows = table([*found, {**run, "seed": 2, "trials": 0}, {**run, "seed": 0, "method": "trees", "model": 5}])
    assert "| naval | nasbot | 20 | 4 | 2 | 2 | 1 | 2 of 3 |" in rows
    assert "| naval | trees | 20 |  |  | 5 | nan | 1 |" in rows
    assert "| naval | tpe | 9 |  |  |  | nan | 0 of 1 |" in table([{**run, "method": "tpe", "budget": 9.0, "seed": 0}])


class Asked(Exception):
    """What a search was asked for."""


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("nasbot", {}),
        ("nasbot-no-refit", {"refit": False, "yardstick": False}),
        ("random-promotion", {"searcher": "random", "fidelity": "steps"}),
        (
            "random-promotion-no-refit",
            {"searcher": "random", "fidelity": "steps", "refit": False, "yardstick": False},
        ),
    ],
)
def test_all_searches_have_the_same_clock_and_workers(monkeypatch, method, options):
    def search(data, **given):
        raise Asked(given)

    monkeypatch.setattr(nasbot, "search", search)
    data = dataset_of(np.eye(90), np.arange(90.0))
    with pytest.raises(Asked) as asked:
        METHODS[method](data, 20.0, 5)
    assert asked.value.args[0] == {"budget": Budget(seconds=20.0), "workers": 2, "seed": 5, "name": None, **options}


def test_every_search_of_networks_is_asked_for_the_same_params(monkeypatch, shared_dir):
    asked = {name: [] for name in ("nasbot", "random-promotion-no-refit", "tpe-asha", "trees")}

    def method(name):
        return lambda data, seconds, seed, **options: asked[name].append(options) or {"model": 1.0}

    for name in asked:
        monkeypatch.setitem(METHODS, name, method(name))
    for tune in ("auto", "preparation"):
        list(run(["naval"], list(asked), "20s", [0], str(shared_dir / "data"), tune))
    chosen = [{}, {"tune": "preparation"}]
    assert asked == {**dict.fromkeys(asked, chosen), "trees": [{}, {}]}

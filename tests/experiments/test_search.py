"""One search as an experiment: it goes on where it was stopped, and its record is of what happened in the budget."""

from pathlib import Path

import numpy as np
import pytest

from experiments import search
from experiments.records import Places
from experiments.rivals import ScikitMLP, boosted, refitted
from experiments.training import recipe_from, retrained, scale_of
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate
from nasbot.data.dataset import Dataset
from nasbot.errors import OptionError
from nasbot.execution import evaluate
from nasbot.execution.base import Job
from nasbot.execution.evaluation import LiveTrial
from nasbot.trial import History, Scored
from tests.experiments.tiny import tiny


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "out", tmp_path / "work", tmp_path / "data")


def never(arch: Architecture) -> float:
    raise RuntimeError("trained again")


def test_a_search_that_was_stopped_goes_on_from_its_study(places: Places, monkeypatch: pytest.MonkeyPatch):
    protocol, run = tiny("regression"), {"seed": 0, "dataset": "diabetes", "method": "EA"}
    monkeypatch.setattr(search, "warm_up", lambda *everything: None)

    def killed(*everything: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as here:
        here.setattr(search, "_again", killed)  # after the search, before the record
        with pytest.raises(KeyboardInterrupt):
            search.do(protocol, run, places)
    monkeypatch.setattr(search, "_objective", lambda *everything: never)
    monkeypatch.setattr(search, "_again", lambda *everything: [])
    result = search.do(protocol, run, places)
    assert result["failed"] == {}
    assert len(result["values"]) == result["networks"] == protocol.settings["trials"]
    assert result["times"] == sorted(result["times"])
    assert Architecture.from_dict(result["best"]["arch"]).kind == "mlp-reg"
    assert result["proposed"]["n"] == protocol.settings["trials"] - protocol.settings["pool_size"]


def test_an_unknown_method_is_said_to_be(places: Places):
    with pytest.raises(OptionError, match="method: expected one of NASBOT"):
        search.do(tiny("regression"), {"seed": 0, "dataset": "diabetes", "method": "guessing"}, places)


@pytest.fixture
def folder(places: Places) -> Path:
    return search.prepared(tiny("regression"), "diabetes", places)[0]


def test_retraining_reports_standardised_errors_from_other_weights(folder: Path):
    data = Dataset.load(folder)
    arch = search.space_and_pool(tiny("regression"), data)[1][0]
    recipe = recipe_from({"name": "fast", "n_steps": 30})
    first, same, other = (retrained(arch, folder, recipe, seed=seed) for seed in (0, 0, 1))
    assert (first["valid"], first["test"]) == (same["valid"], same["test"])
    assert first["test"] != other["test"]
    assert 0 < first["test"] < 3  # a constant predictor has about 1
    raw = np.asarray(data.preprocessing.restored(np.asarray(data.train.y))).ravel()
    assert scale_of(data) == pytest.approx(raw.std(), rel=1e-4)


def test_scikit_learns_mlp_is_an_objective_like_any_other(folder: Path):
    objective = ScikitMLP(folder, max_steps=8, batch_size=32)
    searcher = search.METHODS[search.SCIKIT](*search.space_and_pool(tiny("regression"), Dataset.load(folder)))
    arch = searcher.propose(History(), rng=np.random.default_rng(0)).arch
    outcome = evaluate(objective, LiveTrial(Job(0, Candidate(arch), 7), lambda point: None))
    assert isinstance(outcome, Scored), outcome
    assert outcome.value == outcome.details["valid"]
    assert 1e-4 <= outcome.details["step_size"] <= 1e-2
    again = refitted(objective, arch, outcome.details, seed=1)
    assert np.isfinite(again["test"])


def test_boosting_takes_as_many_trees_as_the_validation_part_likes(folder: Path):
    found = boosted(folder, seed=0, max_iterations=12)
    assert 1 <= found["trees"] <= 12
    assert 0 < found["test"] < 2

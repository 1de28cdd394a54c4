"""Searches on data that end trainings early, end when they are settled, and say how the time was spent."""

import pytest
from sklearn.datasets import load_diabetes

import nasbot
from nasbot import Layer, MedianPacer
from nasbot.architecture import chain
from nasbot.automl.summary import record_of
from nasbot.errors import OptionError, StudyError
from nasbot.storage import open_storage
from nasbot.study import loop
from nasbot.study.settled import Outlook
from nasbot.training.recipes import FAST
from nasbot.trial import FINAL, POOL

RECIPE = FAST.changed(n_steps=60, n_validations=12)
POOLED = [chain("mlp-reg", [Layer(label, 12)]) for label in ("relu", "tanh", "elu")]
QUICK = {"workers": 1, "recipe": RECIPE, "executor": "here", "folds": 1, "refit": False, "pool": POOLED}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def test_trainings_that_fall_behind_are_stopped(diabetes):
    pacer = MedianPacer(least=3)
    study = nasbot.search(*diabetes, budget=16, name="paced", searcher="random", pacer=pacer, **QUICK)
    stopped = study.history.stopped
    assert stopped
    assert all(trial.origin.searcher not in (POOL, FINAL) for trial in stopped)
    assert all(trial.curve[-1].step < 60 for trial in stopped)
    assert f"{len(stopped)} stopped early" in study.summary()
    record = record_of(study)
    assert (record["stopped"], record["trials"]) == (len(stopped), 16)
    assert study.model().predict(diabetes[0][:3]).shape == (3,)
    with pytest.raises(StudyError, match=r"pacer: stored .*given nothing"):
        nasbot.search(*diabetes, budget=17, name="paced", searcher="random", **QUICK)


def test_the_plan_and_the_time_are_kept_with_the_study(diabetes):
    study = nasbot.search(*diabetes, budget=8, name="planned", searcher="random", **QUICK)
    assert study.status().plan.startswith("6 trials of search, then finals; a full training has")
    spent = open_storage("studies/planned.sqlite", read_only=True).tally().spent
    assert [(entry.what, entry.trials) for entry in spent] == [
        ("initial pool", 3), ("a full training", 3), ("finals", 2)
    ]  # fmt: skip
    assert all(entry.seconds > 0 for entry in spent)


def test_a_settled_search_begins_its_finals(diabetes, monkeypatch):
    def outlook(history):
        return Outlook(0.5 if len(history.completed) >= 5 else 5.0)

    monkeypatch.setattr(loop, "outlook_of", outlook)
    study = nasbot.search(*diabetes, budget=40, name=None, stop_when_settled=True, **QUICK)
    origins = [trial.origin.searcher for trial in study.history]
    assert origins[:5].count(FINAL) == 0
    assert origins[5:] == [FINAL, FINAL]  # two for the worker, though the budget has room for 35


def test_words_for_what_cannot_be(diabetes):
    with pytest.raises(OptionError, match="pacer: expected none or median, got 'hyperband'"):
        nasbot.search(*diabetes, budget=4, name=None, pacer="hyperband")
    with pytest.raises(OptionError, match="stop_when_settled: random has no beliefs"):
        nasbot.search(*diabetes, budget=4, name=None, searcher="random", stop_when_settled=True)

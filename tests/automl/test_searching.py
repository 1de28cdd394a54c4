"""``nasbot.search``: from data to a model, in memory and on disk, resumed and refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine

import nasbot
from nasbot.automl import FoundStudy, FoundTrial, plan_search
from nasbot.automl.summary import record_of
from nasbot.automl.taking import best_model
from nasbot.data.dataset import dataset_of, named_dataset
from nasbot.errors import FileError, OptionError, StudyError
from nasbot.otmann import Otmann

QUICK = {"workers": 1, "seconds_per_trial": 1.0}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


def test_from_data_to_a_model_and_on(wine, elsewhere):
    X, y = wine
    study = nasbot.search(X, y, budget=2, name="wine", **QUICK)
    assert isinstance(study, FoundStudy)
    assert len(study.history.finished) == 2
    best = study.best
    assert isinstance(best, FoundTrial)
    assert best.value == study.history.best.value
    best.draw("best.svg")
    assert (elsewhere / "best.svg").stat().st_size > 1000
    assert set(best.predict(X)) <= set(y)
    assert "best: trial" in study.summary()
    assert study.metrics()

    model = best.fit(X, y, seconds=2)
    assert isinstance(model, torch.nn.Module)
    inputs = torch.from_numpy(study.preprocessing.X(X))
    classes = study.preprocessing.restored(model(inputs).detach().numpy())
    assert (classes == y.to_numpy()).mean() > 0.5

    longer = nasbot.search(X, y, budget=3, name="wine", **QUICK)
    assert len(longer.history.finished) == 3
    assert FoundStudy.open("wine").best_value == longer.best_value
    with pytest.raises(StudyError, match="other data"):
        nasbot.search(X.iloc[::-1], y, budget=3, name="wine", **QUICK)


def test_a_search_that_keeps_nothing(wine, elsewhere):
    study = nasbot.search(*wine, budget=1, name=None, **QUICK)
    assert study.best is not None
    assert study.best.fit(seconds=1) is not None
    assert not (elsewhere / "studies").exists()


def test_what_is_recommended_is_what_is_trained_again_and_named(wine, monkeypatch):
    study = nasbot.search(*wine, budget=3, name="wine", **QUICK)
    other = next(trial for trial in study.history.completed if trial.number != study.best.number)
    monkeypatch.setattr(type(study.searcher), "recommend", lambda self, history, *, rng: history[other.number])
    assert isinstance(study.recommend(), FoundTrial)
    assert study.recommend().number == other.number
    assert f"to train again: trial {other.number}" in study.summary()
    assert best_model(study).details["trial"] == study.best.number
    assert best_model(study, retrain=True).details["trial"] == other.number
    assert record_of(study)["recommended_trial"] == other.number
    estimator = nasbot.NASBOTClassifier(budget=3, retrain=True, steps=20, random_state=0).fit(*wine)
    assert estimator.loss_ == estimator.losses_[other.number]


def test_without_its_searcher_a_study_recommends_its_best(wine, monkeypatch):
    def refused(*everything):
        raise StudyError("the searcher of this study cannot be made again")

    nasbot.search(*wine, budget=2, name="wine", **QUICK)
    monkeypatch.setattr("nasbot.study.rebuilding.searcher_of_study", refused)
    with FoundStudy.open("wine") as study:
        assert study.recommend().number == study.best.number


def test_the_same_seed_finds_the_same(wine):
    values = [nasbot.search(*wine, budget=2, name=None, workers=1, seed=5).best_value for _ in range(2)]
    assert values[0] == values[1]


def test_names_are_made_from_the_data(wine, elsewhere):
    X, y = wine
    path = plan_search(dataset_of(X, y)).path
    assert path.name.startswith("data-")
    assert plan_search(dataset_of(X, y, seed=3), seed=3).path.name.endswith("-seed3.sqlite")
    assert plan_search(named_dataset("wine")).path.name == "wine.sqlite"
    assert plan_search(named_dataset("wine"), name=None).path is None


def test_a_study_goes_on_with_the_options_it_was_begun_with_whatever_the_defaults_are_by_now(wine):
    options = {"budget": 1, "name": "old", "workers": 1, "seconds": 1.0}
    search = plan_search(dataset_of(*wine), **options)
    begun = replace(search.searcher, distance=Otmann(preset="log-mass"))
    assert begun != search.searcher
    replace(search, searcher=begun).run()
    again = plan_search(dataset_of(*wine), **options | {"budget": 2})
    assert (again.is_resumed, again.searcher) == (True, begun)
    assert len(again.run().history.finished) == 2
    other = replace(again.searcher, distance=Otmann(structural_weights=(0.3,)))
    with pytest.raises(StudyError, match=r"begun with other settings: searcher\.distance.*; resume it with its own"):
        replace(again, searcher=other).run()


def test_a_study_remembers_its_seconds_per_trial(wine):
    data = dataset_of(*wine, name="w")
    plan_search(data, budget=1, workers=1, seconds=1.5).run()
    again = plan_search(data, budget="1h", workers=1)
    assert again.is_resumed
    assert again.plan.seconds_per_trial == 1.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": "soon"}, "budget"),
        ({"workers": 0}, "workers"),
        ({"workers": True}, "workers"),
        ({"seed": -1}, "seed"),
        ({"recipe": "slow"}, "recipe"),
        ({"searcher": "luck"}, "searcher"),
        ({"seconds_per_trial": 0.0}, "seconds_per_trial"),
        ({"name": "two words"}, "a name has"),
    ],
)
def test_options_that_cannot_be_meant(wine, options, message):
    with pytest.raises(OptionError, match=message):
        nasbot.search(*wine, **options)


def test_a_dataset_needs_no_options_for_data(wine):
    with pytest.raises(OptionError, match="prepared already"):
        nasbot.search(dataset_of(*wine), task="classification")


def test_another_studys_file_is_not_taken(wine):
    nasbot.maximise(len_of, "mlp-class", name="mine", trials=1)
    with pytest.raises(StudyError, match="another objective"):
        nasbot.search(*wine, name="mine", budget=1)
    with pytest.raises(FileError, match="no such folder"):
        FoundStudy.open("mine")


def len_of(arch):
    return float(len(arch.layers))


def test_images_search_cnns():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, size=(60, 8, 8), dtype=np.uint8)
    labels = np.where(np.arange(60) % 2, "cat", "dog")
    study = nasbot.search(images, labels, budget=1, name=None, **QUICK)
    assert study.best.arch.kind == "cnn"
    assert study.best.predict(images[:3]).tolist() != []

"""What the checks of scikit-learn do not ask: quality, files, data frames, studies, pipelines, searches over them."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import nasbot
from nasbot import Layer
from nasbot.architecture.blocks import chain
from nasbot.errors import DataError, DivergedError, FileError, NasbotError, StorageError, StudyError
from nasbot.estimators import NASBOTClassifier, NASBOTRegressor

SMALL_REGRESSION = chain("mlp-reg", [Layer("relu", 32)])
SMALL_CLASSES = chain("mlp-class", [Layer("relu", 32)])


def regressor(**options):
    return NASBOTRegressor(**{"budget": 1, "start_from": [SMALL_REGRESSION], "steps": 100, **options})


def classifier(**options):
    return NASBOTClassifier(**{"budget": 1, "start_from": [SMALL_CLASSES], "steps": 100, **options})


@pytest.fixture(scope="module")
def friedman():
    return make_friedman1(240, n_features=6, noise=0.1, random_state=0)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


# -- learning ----------------------------------------------------------------------------------------------------------


def test_numbers_are_predicted(friedman):
    X, y = friedman
    fitted = regressor(budget=2, steps=300).fit(X[:180], y[:180])
    assert fitted.score(X[180:], y[180:]) > 0.8
    assert fitted.n_trials_ == 2
    assert fitted.losses_.shape == (2,)
    assert fitted.loss_ == fitted.losses_.min()
    assert isinstance(fitted.network_, nn.Module)
    assert fitted.network_.arch == fitted.architecture_


@pytest.mark.parametrize(("made", "name"), [(regressor, "friedman"), (classifier, "digits")])
def test_short_trainings_come_first_where_a_fidelity_is_given(made, name, request, tmp_path):
    X, y = request.getfixturevalue(name)
    options = {"budget": 5, "steps": 45, "pool": [], "refit": False, "folds": 1, "study": tmp_path / "study.sqlite"}
    fitted = made(**options, fidelity="steps").fit(X, y)
    with nasbot.StudyView.read(tmp_path / "study.sqlite") as view:
        steps = [(t.fidelity, t.outcome.details["steps"]) for t in view.history.completed if t.origin.was_proposed]
    assert (pytest.approx(1 / 9), 5) in steps
    assert clone(fitted).fidelity == "steps"
    with pytest.raises(StudyError, match=r"fidelity.*stored.*given nothing"):
        made(**options).fit(X, y)
    with pytest.raises(NasbotError, match="fidelity: expected none, steps, rows, boca"):
        made(fidelity="epochs").fit(X, y)


def test_classes_are_predicted(digits):
    X, y = digits
    names = np.array([f"digit {i}" for i in range(10)])
    fitted = classifier(steps=200).fit(X[:300], names[y[:300]])
    assert fitted.score(X[300:], names[y[300:]]) > 0.8
    assert fitted.classes_.tolist() == sorted(names)
    probabilities = fitted.predict_proba(X[300:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X[300:])), probabilities)
    assert (fitted.classes_[probabilities.argmax(axis=1)] == fitted.predict(X[300:])).all()


def test_several_numbers_at_once(friedman):
    X, y = friedman
    fitted = regressor().fit(X, np.stack([y, -1000 * y], axis=1))
    predicted = fitted.predict(X)
    assert predicted.shape == (len(X), 2)
    assert fitted.score(X, np.stack([y, -1000 * y], axis=1)) > 0.5


def test_images_are_classified_by_cnns():
    images, y = load_digits().images[:200], load_digits().target[:200] % 2
    fitted = classifier(start_from=[chain("cnn", [Layer("conv3", 16, 2), Layer("fc", 32)])], steps=200).fit(images, y)
    assert fitted.architecture_.kind == "cnn"
    assert fitted.score(images, y) > 0.8


def test_data_frames_keep_their_columns_kinds_and_gaps():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(50, 20, 120), "colour": rng.choice(["red", "green", "blue"], 120)})
    y = frame["size"] + 100 * (frame["colour"] == "red")
    frame.loc[::10, "size"] = np.nan
    fitted = regressor(steps=200).fit(frame, y)
    assert fitted.score(frame, y) > 0.5
    assert fitted.feature_names_in_.tolist() == ["size", "colour"]
    red, blue = fitted.predict(pd.DataFrame({"size": [50.0, 50.0], "colour": ["red", "blue"]}))
    assert red > blue + 50
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame.rename(columns={"size": "length"}))


def test_the_same_random_state_gives_the_same_network(friedman):
    X, y = friedman
    first, second, other = (regressor(random_state=seed).fit(X, y).predict(X) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 0
    for state in (None, np.random.RandomState(0)):
        regressor(random_state=state, steps=5).fit(X, y)


def test_params_and_the_pool_are_chosen_as_in_a_search(friedman):
    X, y = friedman
    fitted = regressor(tune=None, pool=[chain("mlp-reg", [Layer("elu", 8)])], start_from=(), steps=5).fit(X, y)
    assert fitted.architecture_ == chain("mlp-reg", [Layer("elu", 8)])
    for options, message in (({"tune": "speed"}, "tune: expected"), ({"pool": "large"}, "pool: expected")):
        with pytest.raises(NasbotError, match=message):
            regressor(**options).fit(X, y)


@pytest.mark.parametrize("estimator", [NASBOTRegressor, NASBOTClassifier])
def test_every_parameter_is_explained(estimator):
    explained = set(re.findall(r"^    (\w+) : ", estimator.__doc__, flags=re.MULTILINE))
    assert set(estimator().get_params()) <= explained


def test_a_pytorch_model_may_be_the_first_network(friedman):
    X, y = friedman
    model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
    assert regressor(start_from=[model], steps=20).fit(X, y).architecture_ == chain("mlp-reg", [Layer("tanh", 24)])


# -- among estimators --------------------------------------------------------------------------------------------------


def test_in_a_pipeline_and_a_grid_search(friedman):
    X, y = friedman
    pipeline = make_pipeline(StandardScaler(), regressor())
    grid = GridSearchCV(pipeline, {"nasbotregressor__steps": [1, 150]}, cv=2).fit(X, y)
    assert grid.best_params_ == {"nasbotregressor__steps": 150}
    assert grid.predict(X).shape == y.shape


def test_clones_have_equal_settings_and_nothing_learned(digits):
    fitted = classifier(steps=5).fit(*digits)
    fresh = clone(fitted)
    assert fresh.get_params()["steps"] == 5
    assert fresh.start_from == [SMALL_CLASSES]
    with pytest.raises(NotFittedError):
        fresh.predict(digits[0])


def test_joblib_can_send_fitted_estimators_to_other_processes(digits):
    """By way of pickle, whose only content of ours is the bytes of a safetensors file."""
    fitted = classifier(steps=5).fit(*digits)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301  # our own bytes
    np.testing.assert_array_equal(again.predict_proba(digits[0]), fitted.predict_proba(digits[0]))


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_regressor_comes_back_from_its_file(friedman, tmp_path):
    X, y = friedman
    fitted = regressor(random_state=7).fit(X, y)
    path = fitted.save(tmp_path / "friedman")
    assert path == tmp_path / "friedman.safetensors"
    again = NASBOTRegressor.load(path)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.get_params()["random_state"] == 7
    assert again.architecture_ == fitted.architecture_
    assert (again.loss_, again.n_trials_, again.n_features_in_) == (fitted.loss_, 1, 6)
    with pytest.raises(FileError, match="is there already"):
        fitted.save(path)


@pytest.mark.parametrize("classes", [["a", "b"], [3, 11], [False, True], [-1.0, 1.0]], ids=str)
def test_a_classifier_comes_back_with_its_classes(classes, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.array(classes)[(X[:, 0] > 0).astype(int)]
    fitted = classifier(steps=20).fit(X, y)
    again = NASBOTClassifier.load(fitted.save(tmp_path / "model"))
    assert again.classes_.dtype == fitted.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_a_frame_s_names_come_back(tmp_path):
    frame = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
    fitted = regressor(steps=5).fit(frame, frame["a"] * 2 + frame["b"])
    again = NASBOTRegressor.load(fitted.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(frame), fitted.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"a": "z"}))


def test_files_of_other_kinds_are_refused(digits, friedman, tmp_path):
    path = classifier(steps=5).fit(*digits).save(tmp_path / "classes")
    with pytest.raises(StorageError, match="expected a saved NASBOTRegressor, got 'NASBOTClassifier'"):
        NASBOTRegressor.load(path)
    (plain,) = nasbot.export(nasbot.load_model(path).network, tmp_path / "plain.safetensors")
    with pytest.raises(StorageError, match="expected a saved NASBOTClassifier, got 'None'"):
        NASBOTClassifier.load(plain)
    with pytest.raises(FileError, match=r"cannot read .*gone"):
        NASBOTClassifier.load(tmp_path / "gone.safetensors")


def test_an_estimator_exports_its_network(friedman, tmp_path):
    fitted = regressor(steps=5).fit(*friedman)
    code, weights = fitted.export(tmp_path / "net.py")
    assert (code.name, weights.name) == ("net.py", "net.weights.safetensors")
    (graph,) = fitted.export(tmp_path / "net.json")
    assert json.loads(graph.read_text())["kind"] == "mlp-reg"


# -- studies -----------------------------------------------------------------------------------------------------------


def test_a_study_on_disk_goes_on_where_it_was_left(friedman, tmp_path):
    X, y = friedman
    options = {
        "study": tmp_path / "mine.sqlite",
        "start_from": [SMALL_REGRESSION, chain("mlp-reg", [Layer("tanh", 8)])],
    }
    assert regressor(**options, budget=1).fit(X, y).n_trials_ == 1
    assert regressor(**options, budget=2).fit(X, y).n_trials_ == 2
    with nasbot.StudyView.read(tmp_path / "mine.sqlite") as view:
        assert len(view.history.finished) == 2
    with pytest.raises(StudyError, match="other data"):
        regressor(**options, budget=2).fit(X, y + 1)
    with pytest.raises(StudyError, match="steps"):
        regressor(**options, budget=2, steps=101).fit(X, y)


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": "5 minuts"}, "minuts"),
        ({"budget": 0}, "budget"),
        ({"validation_fraction": 0}, "validation_fraction"),
        ({"validation_fraction": True}, "validation_fraction"),
        ({"workers": 0}, "workers"),
        ({"recipe": "slow"}, "recipe"),
        ({"steps": 0}, "n_steps"),
        ({"searcher": "grid"}, "searcher"),
        ({"seconds_per_trial": -1}, "seconds_per_trial"),
        ({"start_from": ["a.json"]}, "expected an Architecture"),
        ({"start_from": [SMALL_CLASSES]}, "mlp-class"),
    ],
    ids=str,
)
def test_wrong_settings_are_named_in_fit_and_not_before(options, message, friedman):
    estimator = regressor(**options)
    with pytest.raises(NasbotError, match=message):
        estimator.fit(*friedman)


def test_data_that_cannot_be_learned_from_are_value_errors(friedman):
    X, y = friedman
    with pytest.raises(DataError, match="one class"):
        classifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="nothing to learn"):
        regressor().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        regressor().fit(X, y[:-1])


def test_where_no_network_can_be_trained_the_cause_is_said(friedman, monkeypatch):
    def diverges(*arguments, **options):
        raise DivergedError("the loss is nan after 3 steps")

    monkeypatch.setattr("nasbot.training.loop.train", diverges)
    with pytest.raises(StudyError, match=r"none of 1 networks could be trained: .*nan after 3 steps"):
        regressor().fit(*friedman)

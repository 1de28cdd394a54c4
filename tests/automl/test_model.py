"""What a person takes away: ensembles that are the average of their members, and what each is worth."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import nasbot
from nasbot import Layer
from nasbot.architecture import chain
from nasbot.automl import refits, summary
from nasbot.automl.files import DATA, WEIGHTS
from nasbot.automl.members import Members, chosen_members, members_of, settle
from nasbot.automl.model import Results, _gain, baseline_trial, file_name, member_of, validation_predictions
from nasbot.automl.summary import cut_by_time, record_of
from nasbot.candidate import Candidate
from nasbot.data.metrics import METRICS, truth_of
from nasbot.errors import FileError, OptionError, StudyError
from nasbot.exporting.model_file import model_from
from nasbot.training.recipes import FAST
from nasbot.training.refitting import with_all_rows

RNG = np.random.default_rng(0)
X = RNG.normal(10, 3, (200, 4))
DIFFERENT = [
    Candidate(chain("mlp-reg", [Layer("relu", 12)]), {"preparation": how}) for how in ("standard", "robust", "quantile")
]
SHORT = FAST.changed(n_steps=40)


def searched(y, task, **options):
    kind = {"regression": "mlp-reg", "classification": "mlp-class"}[task]
    pool = [chain(kind, [Layer(label, 12)]) for label in ("relu", "tanh", "elu")]
    given = {"budget": 3, "workers": 1, "name": None, "recipe": SHORT, "pool": pool, "tune": None, "task": task}
    given |= {"folds": 1, "refit": False}  # tests/automl/test_refits.py
    return nasbot.search(X, y, **given | options)


@pytest.fixture(scope="module")
def numbers():
    with searched(X[:, 0] * 2 + X[:, 1] * X[:, 2] / 5, "regression", tune="preparation", pool=DIFFERENT) as study:
        yield study


@pytest.fixture(scope="module")
def two_targets():
    with searched(np.stack([X[:, 0], -1000 * X[:, 1]], axis=1), "regression") as study:
        yield study


@pytest.fixture(scope="module")
def classes():
    noise = np.random.default_rng(1).normal(0, 3, len(X))
    y = np.array(["low", "high", "odd"])[np.digitize(X[:, 0] + X[:, 1] + noise, [18, 22])]
    with searched(y, "classification") as study:
        yield study


def test_an_ensemble_of_numbers_is_the_weighted_mean_of_its_members(numbers):
    model = numbers.model()
    trials = model.details["trials"]
    assert len(model.networks) == len(trials) > 1
    by_hand = sum(
        weight * numbers.found(number).predict(X) for weight, number in zip(model.weights, trials, strict=True)
    )
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-4, atol=1e-4)
    assert sum(model.weights) == pytest.approx(1)
    assert model.classes == ()
    with pytest.raises(OptionError, match="predict_proba: this model predicts numbers"):
        model.predict_proba(X)


def test_members_have_their_own_preparation_of_inputs(numbers):
    kinds = {trial.candidate.params["preparation"] for trial in numbers.history.completed}
    assert len(kinds) > 1
    for trial in numbers.history.completed:
        np.testing.assert_allclose(
            member_of(numbers, trial).predict(X), numbers.found(trial).predict(X), rtol=1e-4, atol=1e-4
        )


def test_several_numbers(two_targets):
    model = two_targets.model()
    assert model.predict(X).shape == (len(X), 2)


@pytest.mark.parametrize("name", ["numbers", "two_targets"])
def test_intervals_are_of_the_residuals_of_validation_rows(name, request):
    study = request.getfixturevalue(name)
    truth = truth_of(study.dataset, study.judged.y)
    for single in (True, False):
        predicted = validation_predictions(study, single=single)
        low, high = study.model(single=single).intervals.bounds(predicted.astype(float), 0.7)
        share = ((low <= truth) & (truth <= high)).mean(axis=0)
        assert (abs(share - 0.7) < 0.1).all()
    model = study.model()
    rows = np.zeros((3, 4))
    found = model.predict_interval(rows, coverage=0.7)
    assert found.shape == (*model.predict(rows).shape, 2)
    again = model_from(model.to_bytes())
    assert again.intervals == model.intervals


def test_classes_have_no_intervals(classes, numbers):
    with pytest.raises(OptionError, match="predicts classes; predict_proba says"):
        classes.model().predict_interval(np.zeros((3, 4)))
    with pytest.raises(OptionError, match="does not know how far it was off"):
        replace(numbers.model(), intervals=None).predict_interval(np.zeros((3, 4)))


def test_an_ensemble_of_classifiers_averages_probabilities_that_are_as_sure_as_they_should_be(classes):
    model, chosen = classes.model(), members_of(classes)
    assert sorted(model.classes) == ["high", "low", "odd"]
    assert chosen.sharpness != 1

    def sharpened(number):
        raised = member_of(classes, classes.history[number]).predict_proba(X) ** chosen.sharpness
        return raised / raised.sum(axis=1, keepdims=True)

    by_hand = sum(w * sharpened(number) for w, number in zip(model.weights, model.details["trials"], strict=True))
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities, by_hand, rtol=1e-4)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert (np.asarray(model.classes)[probabilities.argmax(axis=1)] == model.predict(X)).all()
    settle(classes.files, chosen, classes.history)
    assert members_of(classes) == chosen  # what is read back


def test_what_refits_learn_from_an_ensemble_is_as_sure_as_its_model(classes):
    data, teachers = classes.dataset, refits._Teachers(members_of(classes), 0.5)
    said, _ = refits._lesson(teachers, classes.history, classes.files, data, "cpu")
    rows = torch.from_numpy(np.array(with_all_rows(data).train.X))
    with torch.inference_mode():
        model = classes.model().network(rows).exp().numpy()
    np.testing.assert_allclose(said, model, rtol=1e-4, atol=1e-6)


def test_a_metric_of_ones_own_leaves_them_as_sure_as_they_are(classes):
    data, history = classes.dataset, classes.history
    assert chosen_members(history, classes.files, data, METRICS["accuracy"]).sharpness == 1


@pytest.mark.parametrize("name", ["numbers", "two_targets", "classes"])
def test_results_are_what_the_models_score(name, request):
    study = request.getfixturevalue(name)
    data, results = study.dataset, study.results()
    raw_rows = {part: _raw(data, part) for part in ("valid", "test")}
    for result, model in ((results.ensemble, study.model()), (results.single, study.model(single=True))):
        assert result.validation == pytest.approx(_loss(model, *raw_rows["valid"], data), rel=1e-4)
        assert result.test == pytest.approx(_loss(model, *raw_rows["test"], data), rel=1e-4)
    assert results.ensemble.validation <= results.single.validation * (1 + 1e-6)
    assert results.model == results.ensemble
    assert results.baseline.metric == ("log-loss" if data.is_classification else "mse")


def _raw(data, part):
    """The rows of X of a part, found by what they are prepared to."""
    rows = getattr(data, part)
    prepared = data.preprocessing.X(X)
    where = [int(np.flatnonzero((prepared == row).all(axis=1))[0]) for row in np.asarray(rows.X)]
    return X[where], rows.y


def _loss(model, rows, y, data):
    if data.is_classification:
        return -np.log(model.predict_proba(rows)[np.arange(len(y)), y]).mean()
    answers = model.predict(rows)
    return np.square(answers - np.asarray(data.preprocessing.restored(y)).reshape(answers.shape)).mean()


def test_results_as_plain_data(numbers):
    record = record_of(numbers)
    assert set(record) >= {"baseline", "single", "ensemble", "model", "trials", "seconds"}
    for part in ("baseline", "single", "ensemble", "model"):
        assert set(record[part]) >= {"validation", "test", "metric", "test_standardised_mse", "test_r2"}
    assert record["model"] == record["ensemble"]
    assert set(record["gain"]) == {"value", "noise"}
    assert record["gain"]["value"] == pytest.approx(record["baseline"]["test"] - record["model"]["test"])
    assert record["gain"]["noise"] > 0
    assert record["cut_by_time"] == 0
    names = ("baseline", "single", "ensemble", "model", "trees", "majority", "gain")
    assert Results(None, None, None).to_dict() == dict.fromkeys(names)


def test_the_summary_shows_them_beside_each_other(numbers, classes):
    for study, metric in ((numbers, "mse"), (classes, "log-loss")):
        lines = study.summary().splitlines()
        for name in ("baseline", "best network", "ensemble"):
            assert any(line.startswith(f"  {name} ") and f"{metric}: validation" in line for line in lines), lines
        assert any(line.startswith("ensemble of trials: ") for line in lines)


def test_the_noise_of_a_gain_is_its_standard_error(numbers):
    """Of a mean over rows the jackknife is the usual formula, but for groups in place of rows."""
    data = numbers.dataset
    truth = data.preprocessing.restored(data.test.y).astype(float).reshape(-1, 1)
    rng = np.random.default_rng(0)
    before, after = (truth + rng.normal(0, scale, truth.shape) for scale in (2.0, 1.0))
    gain = _gain(numbers, before, after)
    differences = ((before - truth) ** 2 - (after - truth) ** 2).ravel()
    assert gain.value == pytest.approx(differences.mean())
    assert gain.noise == pytest.approx(differences.std() / np.sqrt(len(differences)), rel=0.5)
    assert _gain(numbers, after, before).value == pytest.approx(-gain.value)


def test_the_summary_says_what_was_gained_and_what_was_cut_by_time(numbers, monkeypatch):
    lines = numbers.summary().splitlines()
    [gained] = [line for line in lines if line.startswith("gain over the baseline: mse better by ")]
    assert " ± " in gained
    assert "ended by their time" not in numbers.summary()
    monkeypatch.setattr(summary, "cut_by_time", lambda history: [numbers.best.number])
    said = f"1 of {len(numbers.history.completed)} trainings were ended by their time, before their last step, that of"
    assert said in numbers.summary()


def test_trainings_that_were_cut_by_time_are_counted(numbers):
    assert cut_by_time(numbers.history) == []
    first, *others = numbers.history.completed
    cut = replace(first, outcome=replace(first.outcome, details={**first.details, "stopped": "time"}))
    assert cut_by_time(SimpleNamespace(completed=[cut, *others])) == [first.number]


def test_the_baseline_is_the_first_of_the_pool(numbers):
    assert baseline_trial(numbers.history).number == 0
    assert isinstance(numbers.ensemble(), Members)


def test_where_predictions_are_gone_the_best_network_stands_alone(tmp_path):
    with searched(X[:, 0], "regression", name=tmp_path / "a.sqlite") as study:
        for path in (study.files / WEIGHTS).glob("*.npy"):
            path.unlink()
        assert study.ensemble() is None
        assert study.model().details["trials"] == [study.best.number]
        assert study.results() == Results(None, None, None)
        assert "best network: trial" in study.summary()
        for path in (study.files / WEIGHTS).iterdir():
            path.unlink()
        with pytest.raises(FileError, match="no weights there"):
            study.model()
        assert (study.files / DATA).is_dir()


def test_a_study_without_a_completed_trial_has_no_model(monkeypatch):
    def diverges(*arguments, **options):
        raise nasbot.DivergedError("the loss is nan after 3 steps")

    monkeypatch.setattr("nasbot.training.loop.train", diverges)
    study = searched(X[:, 0], "regression", budget=1)
    with pytest.raises(StudyError, match="no trial is completed yet"):
        study.model()
    assert study.results() == Results(None, None, None)
    assert "best: none yet" in study.summary()


@pytest.mark.parametrize(
    ("study", "name"), [("my-study.sqlite", "my_study"), ("3d.sqlite", "network_3d"), ("größe.sqlite", "gr__e")]
)
def test_names_that_python_can_import(study, name, tmp_path):
    assert file_name(tmp_path / study) == name

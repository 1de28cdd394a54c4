"""No step of a search sees rows that it must not: nothing learns from or is chosen by them, nothing is shown from them.

Two searches on data that differ in the forbidden rows alone must agree in every bit of what they learned and chose.
``LEAKS`` shows that the check would notice: each lets one choice see the test rows, and the check must fail.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

import nasbot
from nasbot import Layer
from nasbot.architecture import chain
from nasbot.automl import members
from nasbot.automl.files import WEIGHTS
from nasbot.automl.members import members_of
from nasbot.automl.model import model_of, refitted_trials
from nasbot.candidate import Candidate
from nasbot.data.dataset import Part, dataset_of
from nasbot.training import loop, refitting
from nasbot.training.folds import cross_validated, folded
from nasbot.training.loop import train
from nasbot.training.recipes import FAST

N = 240
SHORT = FAST.changed(n_steps=60, n_validations=6)
WAYS = ("standard", "robust", "quantile", "ple")


def data_of(*, classes=False, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(10, 3, (N, 3))
    y = X[:, 0] * 2 + X[:, 1] * X[:, 2] / 5 + rng.normal(size=N)
    if classes:
        y = np.where(y > np.quantile(y, 0.8), "rare", "common")
        options |= {"class_weight": "balanced"}
    return dataset_of(X, y, sample_weight=rng.uniform(0.5, 2, N), **options)


def noise(part, seed=1):
    """Other rows and other answers in the place of these."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 5, part.X.shape).astype(np.float32)
    y = rng.permutation(part.y) if part.y.dtype.kind == "i" else rng.normal(0, 5, part.y.shape).astype(np.float32)
    return Part(X, y, None if part.weights is None else rng.permutation(part.weights))


def searched(data, **options):
    kind = data.kind
    pool = [
        Candidate(chain(kind, [Layer(label, 8)]), {"preparation": way})
        for label, way in zip(("relu", "tanh", "elu", "relu"), WAYS, strict=True)
    ]
    given = {"budget": 6, "workers": 1, "executor": "here", "recipe": SHORT, "pool": pool, "name": None, **options}
    return nasbot.search(data, tune="preparation", **given)


def learned(study):
    """All that a search has learned, chosen and said before the test rows were asked: comparable with ==."""
    files = {
        path.name: path.read_bytes()
        for path in sorted((study.files / WEIGHTS).iterdir())
        if path.suffix == ".safetensors"
    }
    details = [{**trial.outcome.details, "seconds": None} for trial in study.history.completed]
    results = {name: part and part.get("validation") for name, part in study.results().to_dict().items()}
    return {
        "candidates": [trial.candidate for trial in study.history],
        "values": [trial.value for trial in study.history],
        "details": details,
        "weights": {name: torch_weights(content) for name, content in files.items()},
        "members": members_of(study),
        "refitted": refitted_trials(study),
        "results": results,
        "shown meanwhile": study.understanding(rows="validation"),
    }


def torch_weights(content):
    from safetensors.torch import load

    return {name: tensor.numpy().tobytes() for name, tensor in load(content).items()}


CASES = {
    "numbers": {},
    "numbers by mae": {"metric": "mae"},
    "classes": {"classes": True},
    "classes by f1": {"classes": True, "metric": "f1"},
    "folds": {"folds": 3},
    "folds by auc": {"folds": 3, "classes": True, "metric": "auc"},
    "groups": {"groups": np.arange(N) // 6},
    "time": {"time": np.arange(N)},
}


def check(case):
    """The test rows are poisoned: trials, steps, members, refits and what is shown are as they were."""
    options = dict(CASES[case])
    made = {name: options.pop(name) for name in ("classes", "groups", "time") if name in options}
    data = data_of(**made)
    both = (data, replace(data, test=noise(data.test)))
    found = [searched(given, **{"folds": 1, **options}) for given in both]
    with found[0] as ours, found[1] as theirs:
        mine, other = learned(ours), learned(theirs)
        assert mine["refitted"]
        for name, value in mine.items():
            assert value == other[name], name
        assert ours.results().model.test != theirs.results().model.test  # the poison is there


@pytest.mark.parametrize("case", CASES)
def test_the_test_rows_teach_nothing_and_choose_nothing(case):
    check(case)


# -- validation rows and folds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [False, True], ids=["numbers", "classes"])
@pytest.mark.parametrize("way", WAYS)
def test_a_training_learns_from_training_rows_only(way, classes):
    """Where validation chooses nothing (there is one look, at the end) its rows change no bit of a network.

    But for how sure a classifier is: of that they say one number, which is settled here.
    """
    data = data_of(classes=classes)
    arch, recipe = chain(data.kind, [Layer("relu", 8)]), SHORT.changed(n_validations=1, patience=None)
    poisoned = replace(data, valid=noise(data.valid), test=noise(data.test))
    ours, theirs = (train(arch, d.prepared_as(way), recipe, seed=0, sharpness=1.0) for d in (data, poisoned))
    assert ours.loss != theirs.loss
    by_itself = train(arch, poisoned.prepared_as(way), recipe, seed=0)
    pairs = list(zip(theirs.network.parameters(), by_itself.network.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs[:-2])
    assert all(torch.allclose(by_itself.sharpness * a, b, rtol=1e-5) for a, b in pairs[-2:])  # the decision layer
    assert (by_itself.sharpness != 1) == classes
    for a, b in zip(ours.network.parameters(), theirs.network.parameters(), strict=True):
        assert torch.equal(a, b)


def test_what_is_said_of_a_fold_was_not_learned_from_it():
    """Other answers in a fold change what is said of all other rows, and no bit of what is said of its own.

    Scales of columns and of the target are the training rows' as a whole, which folds share.
    """
    data = data_of()
    arch, recipe = chain(data.kind, [Layer("relu", 8)]), SHORT.changed(n_validations=1, patience=None)

    def said(given):
        return cross_validated(
            given,
            4,
            lambda part, fold, on_validation: train(arch, part, recipe, seed=fold, on_validation=on_validation),
            None,
        ).predictions

    before = said(data)
    for _, rows in folded(data, 4):
        other = said(with_other_answers(data, rows))
        assert np.array_equal(before[rows], other[rows])
        others = np.setdiff1d(np.arange(len(before)), rows)
        assert not np.array_equal(before[others], other[others])


def with_other_answers(data, rows):
    """The same data, but for the answers of these rows of training and validation together."""
    n = len(data.train)
    parts = {}
    for name, chosen in (("train", rows[rows < n]), ("valid", rows[rows >= n] - n)):
        y = np.array(getattr(data, name).y)
        y[chosen] += 3
        parts[name] = replace(getattr(data, name), y=y)
    return replace(data, **parts)


# -- the check itself --------------------------------------------------------------------------------------------------


def leak_into_steps(monkeypatch):
    """The best validation of a training is chosen by the test rows."""
    init = loop._Course.__init__

    def leaking(self, network, data, *others, **options):
        init(self, network, replace(data, valid=data.test), *others, **options)

    monkeypatch.setattr(loop._Course, "__init__", leaking)


def leak_into_members(monkeypatch):
    """The ensemble is chosen by the test rows."""
    plain = members.kept

    def leaking(files, trial, n):
        found = plain(files, trial, n)
        if found is None:
            return None
        valid, test = found
        mixed = valid.copy()
        mixed[: len(test)] += test[: len(valid)]
        return mixed, test

    monkeypatch.setattr(members, "kept", leaking)


def leak_into_refits(monkeypatch):
    """Networks are trained once more on the test rows, too."""
    joined = refitting.joined

    def leaking(data):
        return replace(data, train=joined(joined(data.train, data.valid), data.test))

    monkeypatch.setattr(refitting, "with_all_rows", leaking)


def leak_into_details(monkeypatch):
    """Metrics of the test rows are kept with every trial."""
    from nasbot.training import objective

    plain = objective.details_of
    monkeypatch.setattr(objective, "details_of", lambda trained: {**plain(trained), "metrics": trained.metrics})


def leak_into_what_is_shown(monkeypatch):
    """What is shown meanwhile is of the refitted model's training rows and of the test rows."""
    from nasbot.automl import understanding

    monkeypatch.setattr(understanding, "_unseen", lambda study: study.dataset.test)


LEAKS = (leak_into_steps, leak_into_members, leak_into_refits, leak_into_details, leak_into_what_is_shown)


@pytest.mark.parametrize("let_in", LEAKS)
@pytest.mark.parametrize("case", ["numbers", "classes by f1"])
def test_the_check_notices_each_leak(case, let_in, monkeypatch):
    let_in(monkeypatch)
    with pytest.raises(AssertionError):
        check(case)


def test_a_model_without_refits_is_that_of_the_search():
    data = data_of()
    with searched(data, folds=1) as study:
        ours, plain = model_of(study), model_of(study, refit=False)
        a, b = (next(iter(model.networks[0].parameters())) for model in (ours, plain))
        assert not torch.equal(a, b)

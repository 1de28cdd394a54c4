"""Options of single layers as part of a search on data: trained, exported, resumed."""

import numpy as np
import pytest

import nasbot
from nasbot import Layer, OptionError
from nasbot.architecture import chain
from nasbot.automl.tuning import attributes_of
from nasbot.errors import StudyError
from nasbot.exporting.export import READERS, export
from nasbot.searchers import RandomSearch
from nasbot.training.recipes import FAST

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=120)
POOL = (chain("mlp-reg", [Layer("relu", 16, dropout=0.1, norm="layer"), Layer("tanh", 16, norm="batch")]),)
OPTIONS = {
    "recipe": FAST.changed(n_steps=15, n_validations=3),
    "executor": "here",
    "folds": 1,
    "tune": None,
    "pool": POOL,
    "attributes": "dropout,norm",
}


def test_a_search_that_changes_them_trains_exports_and_goes_on(tmp_path):
    where = tmp_path / "study.db"
    first = nasbot.search(X, Y, budget=6, name=where, searcher="evolution", **OPTIONS)
    made = [modifier for trial in first.history for modifier in trial.origin.modifiers]
    first.close()
    study = nasbot.search(X, Y, budget=16, name=where, searcher="evolution", **OPTIONS)
    changed = [modifier for trial in study.history for modifier in trial.origin.modifiers]
    assert {"change_dropout", "change_norm"} & set(changed)
    assert "change_decay" not in changed
    assert changed[: len(made)] == made
    assert len(study.history.completed) == 16
    assert any(layer.attributes for layer in study.best.arch.layers)
    model = study.model()
    rows = np.random.default_rng(1).normal(size=(4, 3))
    prepared = study.preprocessing.X(rows)
    for to in ("code", "onnx"):
        path, *_ = export(model.network, tmp_path / "net", to=to)
        np.testing.assert_allclose(READERS[path.suffix](path, prepared), model.outputs(rows), atol=1e-5)
    study.close()


def test_a_study_keeps_to_what_it_was_begun_with(tmp_path):
    where = tmp_path / "study.db"
    nasbot.search(X, Y, budget=1, name=where, searcher="random", **OPTIONS).close()
    with pytest.raises(StudyError, match="begun with attributes dropout,norm, not none"):
        nasbot.search(X, Y, budget=2, name=where, searcher="random", **OPTIONS | {"attributes": None})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, ()),
        ("none", ()),
        ("all", ("dropout", "norm", "weight_decay")),
        ("norm, dropout", ("dropout", "norm")),
        (["weight_decay"], ("weight_decay",)),
    ],
)
def test_names(given, meant):
    assert attributes_of(given) == meant


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"attributes": "depth"},
            "^attributes: expected all, none, or some of dropout, norm, weight_decay; got 'depth'$",
        ),
        ({"searcher": "treebo"}, "^attributes: treebo does not change options of layers"),
        ({"searcher": RandomSearch(space=nasbot.SearchSpace("mlp-reg"))}, "^attributes: a searcher that is given"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(OptionError, match=message):
        nasbot.search(X, Y, budget=1, name=None, **OPTIONS | options)


def test_the_estimators_have_them():
    estimator = nasbot.NASBOTRegressor(
        budget=3, steps=10, pool=POOL, attributes="all", searcher="random", tune=None, folds=1
    )
    assert estimator.fit(X, Y).predict(X).shape == (120,)
    assert any(layer.attributes for layer in estimator.architecture_.layers)

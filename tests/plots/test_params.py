"""What is believed of params: the numbers, their plots, and why there are none."""

import json

import numpy as np
import pytest

from nasbot import Choice, Float, Integer
from nasbot.domain import Domain
from nasbot.errors import OptionError, StudyError
from nasbot.page.figures import figure_json
from nasbot.plots.params import param_beliefs
from nasbot.plots.plot import PlotOptions, figure
from nasbot.plots.snapshot import Snapshot
from nasbot.searchers import NASBOT, RandomSearch
from nasbot.searchers.param_effects import changes_of
from nasbot.study import Study
from nasbot.trial import History
from tests.searchers.problems import MLP, made, value_of

PARAMS = {
    "idle": Float(0.0, 1.0),
    "rate": Float(1e-4, 1e-1, log=True, default=1e-2),
    "schedule": Choice("cosine", "step"),
    "drops": Integer(1, 4, when=("schedule", "step")),
}


def score(arch, params):
    return value_of(arch) - 20 * abs(PARAMS["rate"].unit(params["rate"]) - 0.3) - 50 * (params["schedule"] == "step")


@pytest.fixture(scope="module")
def study():
    """Random candidates, judged by NASBOT."""
    drawn = Study.in_memory(made(RandomSearch, params=PARAMS), seed=2).optimise(score, 40).history
    known = Study.in_memory(made(NASBOT, params=PARAMS), seed=2)
    for trial in drawn:
        if trial.candidate.fingerprint not in known.history.seen:
            known.add(trial.candidate, trial.value)
    return known


def test_what_the_objective_looks_at_is_important_and_slices_show_where_it_is_best(study):
    effects = {effect.name: effect for effect in study.param_effects()}
    assert list(effects)[-1] in ("idle", "drops")
    assert effects["idle"].importance < 0.5 < effects["rate"].importance + 0.2
    for effect in effects.values():
        assert 0 <= effect.importance_low <= effect.importance <= effect.importance_high <= 1
        assert [p.unit for p in effect.points] == sorted(p.unit for p in effect.points)
        assert all(p.lower <= p.median <= p.upper for p in effect.points)
    best = max(effects["rate"].points, key=lambda point: point.median)
    assert best.unit == pytest.approx(0.3, abs=0.2)
    cosine, step = effects["schedule"].points
    assert cosine.median > step.median + 10
    assert (effects["schedule"].at, effects["drops"].at, effects["drops"].points) == ("cosine", None, ())


def test_the_same_numbers_from_what_is_stored(study):
    found = param_beliefs(study)
    assert found.message == ""
    assert found.params == study.param_effects()
    assert found.best_trial == study.best.number
    page = json.loads(figure_json("params", Snapshot.of(study)))
    assert [row[0] for row in page["params"]["rows"]] == [effect.name for effect in found.params]


def test_pictures(study):
    bars = figure(study, "importance").axes[0]
    assert [label.get_text() for label in bars.get_yticklabels()] == [e.name for e in study.param_effects()]
    line = figure(study, "slice", options=PlotOptions(param="rate")).axes[0]
    (effect,) = (e for e in study.param_effects() if e.name == "rate")
    np.testing.assert_allclose(line.lines[0].get_ydata(), [point.median for point in effect.points])
    assert line.get_xscale() == "log"
    choice = figure(study, "slice", options=PlotOptions(param="schedule")).axes[0]
    assert [label.get_text() for label in choice.get_xticklabels()] == ["cosine", "step"]
    idle = figure(study, "slice", options=PlotOptions(param="drops")).axes[0]
    assert "inactive in trial" in idle.texts[0].get_text()
    with pytest.raises(OptionError, match=r"param: expected one of .*rate.*, got 'rat'"):
        figure(study, "slice", options=PlotOptions(param="rat"))


def test_where_there_is_nothing_it_says_why():
    alone = Study.in_memory(made(NASBOT)).optimise(value_of, 3)
    assert "networks alone" in param_beliefs(alone).message
    with pytest.raises(OptionError, match="this search has no params"):
        alone.param_effects()
    chance = Study.in_memory(made(RandomSearch, params=PARAMS)).optimise(score, 3)
    assert "RAND believes nothing of params" in param_beliefs(chance).message
    with pytest.raises(StudyError, match="RAND has no beliefs about params"):
        chance.param_effects()
    fresh = Study.in_memory(made(NASBOT, params=PARAMS))
    assert "has a value yet" in param_beliefs(fresh).message
    assert "networks alone" in param_beliefs(History(())).message
    assert figure(fresh, "slice").axes[0].texts


def test_what_if_multiplies_on_a_logarithmic_scale():
    params = {**PARAMS, "size": Integer(1, 64, log=True)}
    changes = dict(changes_of(Domain(MLP, params), {"idle": 0.5, "rate": 4e-2, "schedule": "cosine", "size": 3}))
    assert [words for words in changes if words.startswith("rate")] == [
        "rate x 0.25 (0.01)",
        "rate x 0.5 (0.02)",
        "rate x 2 (0.08)",
    ]
    assert changes["rate x 0.5 (0.02)"]["rate"] == 0.02
    assert changes["size x 2 (6)"]["size"] == 6
    assert changes["schedule cosine -> step"] == {
        "idle": 0.5, "rate": 4e-2, "schedule": "step", "size": 3, "drops": params["drops"].default
    }  # fmt: skip
    assert all(value in Domain(MLP, params).params["idle"].neighbours(0.5) for words, changed in changes.items()
               if words.startswith("idle") for value in [changed["idle"]])  # fmt: skip


def test_what_if_shows_them_beside_changes_of_the_network(study):
    words = [effect.change for effect in study.what_if()]
    assert any(change.startswith("retune: rate x 0.5 (") for change in words)
    assert any(not change.startswith("retune") for change in words)

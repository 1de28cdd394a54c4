"""Limits on the recommended model: held by every network, by the ensemble as a whole and by the file; or refused."""

import numpy as np
import pytest

import nasbot
from nasbot.architecture import Layer, chain
from nasbot.architecture.resources import resources
from nasbot.automl.limits import ENDS, MARGIN, ModelLimits, measured, parsed_latency, shown_size, shown_time, smallest
from nasbot.automl.plan import fitting_baseline, space_for
from nasbot.data.dataset import dataset_of
from nasbot.errors import OptionError, StudyError
from nasbot.training.latency import latency_of
from nasbot.training.module import build
from nasbot.training.recipes import FAST

QUICK = {"workers": 1, "recipe": FAST.changed(n_steps=20, n_validations=4), "executor": "here", "tune": None}
rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
Y = X[:, 0] * X[:, 1]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NASBOT_STUDIES", raising=False)


@pytest.fixture
def machine(monkeypatch):
    """A machine that takes 10 us for each layer, 1 us for 1,000 FLOPs, and 20 us for anything."""

    def latency(network, preparation=None):
        needs = resources(network.arch, network.input_shape, network.n_outputs)
        return 2e-5 + 1e-5 * (len(network.arch.layers) - ENDS) + 1e-9 * needs.flops

    monkeypatch.setattr("nasbot.training.latency.latency_of", latency)
    return latency


def parameters(model):
    return sum(p.numel() for network in model.networks for p in network.parameters())


def test_every_network_and_the_ensemble_have_few_parameters():
    with nasbot.search(X, Y, budget=8, max_parameters=3000, name="small", **QUICK) as study:
        noted = [trial.outcome.details["parameters"] for trial in study.history.completed]
        assert noted
        assert max(noted) <= 3000
        assert parameters(study.model()) <= 3000
        free = nasbot.search(X, Y, budget=8, name=None, **QUICK)
        assert parameters(free.model()) > 3000  # the limit does something
    with pytest.raises(StudyError, match="limits"):
        nasbot.search(X, Y, budget=8, max_parameters=2000, name="small", **QUICK)


def test_an_ensemble_is_cut_until_it_holds_the_limit_as_a_whole():
    with nasbot.search(X, Y, budget=8, name=None, refit=False, **QUICK) as study:
        members = study.ensemble()
        assert len(members.trials) > 1
        each = {t.number: t.outcome.details["parameters"] for t in study.history.completed}
        total = sum(each[number] for number in members.trials)
        limits = ModelLimits(max_parameters=total - 1)
        study.settings["context"]["limits"] = limits.to_dict()
        cut = study.ensemble()
        assert sum(each[number] for number in cut.trials) < total
        assert sum(cut.weights) == pytest.approx(1.0)
        assert study.results().model is not None
        study.settings["context"]["limits"] = {"max_parameters": min(each.values())}
        assert study.ensemble().trials == (study.best.number,)


def test_the_file_is_small_enough():
    with nasbot.search(X, Y, budget=6, max_size="60kB", name=None, **QUICK) as study:
        (path,) = study.export("model", to="safetensors")
        assert path.stat().st_size <= 60 * 1024
        assert parameters(study.model()) > 2000  # and the limit is used


def test_layers():
    many = rng.normal(size=(2500, 4))  # few rows begin with small networks anyway
    with nasbot.search(many, many[:, 0] * many[:, 1], budget=5, max_layers=2, name=None, **QUICK) as study:
        depths = {len(trial.arch.processing_layers) for trial in study.history}
        assert max(depths) == 2
        assert max(layer.units or 0 for layer in study.history[0].arch.layers) >= 64
        study.model()


def test_latency_bounds_the_space_and_refuses_the_rest(machine):
    data = dataset_of(X, Y)
    baseline = fitting_baseline(data.kind, len(data.train))
    limits = measured(ModelLimits(max_latency=2e-4), data, baseline)
    assert limits.bound_layers == 7  # half of 160 us - 20 us, by 10 us a layer
    assert limits.bound_flops == pytest.approx(7e4, rel=0.02)
    space = limits.space(space_for(data.kind, (4,), 1, n_rows=90, batch_size=16), 0)
    assert space.max_layers == 7 + ENDS
    wide = limits.space(space_for(data.kind, (4,), 1, n_rows=9_000, batch_size=16), 0)
    assert wide.max_flops == limits.bound_flops
    with nasbot.search(X, Y, budget=8, max_latency="200us", name="quick", **QUICK) as study:
        noted = [trial.outcome.details["latency"] for trial in study.history.completed]
        assert noted
        assert max(noted) <= MARGIN * 2e-4
        assert sum(machine(network) for network in study.model().networks) <= 2e-4
        stored = study.context["limits"]
        assert stored["max_latency"] == pytest.approx(2e-4)
    with nasbot.search(X, Y, budget=9, max_latency="200us", name="quick", **QUICK) as study:  # not measured again
        assert study.context["limits"] == stored


def test_a_network_that_takes_too_long_is_refused_before_it_is_trained(machine, tmp_path):
    from nasbot.errors import RefusedError
    from nasbot.training.objective import TrainingObjective

    data = dataset_of(X, Y)
    data.save(tmp_path / "data")
    deep = chain("mlp-reg", [Layer("relu", 8)] * 9)
    objective = TrainingObjective(tmp_path / "data", QUICK["recipe"], max_latency=1e-4)
    with pytest.raises(RefusedError, match=r"it takes 0.11\d* ms for one row, more than 0.1 ms"):
        objective(deep)
    assert objective(smallest("mlp-reg")).details["latency"] < 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_parameters": 40}, "max_parameters: 40 cannot be reached on these data: the smallest network has 49"),
        ({"max_size": "1kB"}, r"max_size: 1 kB cannot be reached on these data: the smallest model file has about \d"),
        ({"max_latency": "1us"}, r"max_latency: 1 us cannot be reached here: the smallest network, .* takes 30\.\d us"),
        ({"max_latency": "soon"}, "max_latency: expected a time such as 2ms or 300us, got 'soon'"),
        ({"max_size": "big"}, "max_size: expected bytes, such as 500M or 2G, got 'big'"),
        ({"max_layers": 0}, "max_layers: expected a number above 0, got 0"),
        ({"max_parameters": -5}, "max_parameters: expected a number above 0, got -5"),
    ],
)
def test_limits_that_cannot_be_held_are_refused_with_what_can(machine, options, message):
    with pytest.raises(OptionError, match=message):
        nasbot.search(X, Y, budget=1, name=None, **QUICK, **options)


def test_a_latency_is_measured_and_grows_with_the_network():
    small, large = (
        latency_of(build(arch, input_shape=(4,), n_outputs=1, seed=0))
        for arch in (smallest("mlp-reg"), chain("mlp-reg", [Layer("relu", 512)] * 12))
    )
    assert 0 < small < large < 1


def test_words():
    assert [parsed_latency(text) for text in ("2ms", "300us", "0.5 s", 0.25)] == [0.002, pytest.approx(3e-4), 0.5, 0.25]
    assert [shown_time(2e-3), shown_time(3e-4)] == ["2 ms", "300 us"]
    assert [shown_size(2**20 * 5), shown_size(2048)] == ["5 MB", "2 kB"]
    assert not ModelLimits()
    assert ModelLimits.of(ModelLimits(max_layers=3).to_dict()) == ModelLimits(max_layers=3)
    assert ModelLimits.of(None) == ModelLimits()

"""How sure a classifier is: the likeliest multiple of its logits, by a plain search for it, and where it ends up."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from nasbot import Layer
from nasbot.architecture import Architecture
from nasbot.data.dataset import dataset_of
from nasbot.training.loop import train
from nasbot.training.module import build
from nasbot.training.objective import details_of
from nasbot.training.predictions import predictions
from nasbot.training.recipes import FAST, PAPER
from nasbot.training.refitting import length_of
from nasbot.training.temperature import (
    MOST,
    SPREAD,
    averaged,
    can_be_sharpened,
    shared_sharpness,
    sharpen,
    sharpened,
    sharpness_of,
)
from tests.training.test_loop import CLASSIFIER, MLP, friedman

SHORT = FAST.changed(n_steps=60, n_validations=6)
TWO_ENDS = Architecture(
    "mlp-class",
    [Layer("ip"), Layer("relu", 12), Layer("softmax"), Layer("softmax"), Layer("op")],
    [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)],
)


@pytest.fixture(scope="module")
def numbers():
    return dataset_of(*friedman(), name="friedman")


@pytest.fixture(scope="module")
def classes():
    X, y = friedman()
    return dataset_of(X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])), task="classification", name="thirds")


def said(n=400, n_classes=4, scale=1.0, seed=0):
    """Log-probabilities of a classifier that is right in its way, but ``scale`` times as sure; and the truth."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((n, n_classes))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)  # drawn by softmax(logits)
    logs = torch.log_softmax(torch.from_numpy(scale * logits), dim=1).numpy()
    return logs.astype(np.float32), y


def penalised(logs, y, weights, at):
    """The negative logarithm of likelihood and prior, by torch."""
    share = 1.0 if weights is None else weights / weights.mean()
    log_p = torch.log_softmax(np.exp(at) * torch.from_numpy(logs.astype(float)), dim=1).numpy()
    return float(-(share * log_p[np.arange(len(y)), y]).sum() + 0.5 * (at / SPREAD) ** 2)


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_likeliest_with_what_is_expected_of_it(scale, weighted):
    logs, y = said(scale=scale)
    weights = np.where(logs.argmax(axis=1) == y, 1.0, 5.0) if weighted else None  # of what is wrong
    edge = np.log(MOST)
    wanted = minimize_scalar(lambda at: penalised(logs, y, weights, at), bounds=(-edge, edge), method="bounded")
    assert np.log(sharpness_of(logs, y, weights)) == pytest.approx(wanted.x, abs=1e-3)


def test_one_that_is_too_sure_is_made_less_so_and_the_other_way_round():
    assert sharpness_of(*said(n=4000, scale=4.0)) == pytest.approx(1 / 4, rel=0.1)
    assert sharpness_of(*said(n=4000, scale=0.25)) == pytest.approx(4, rel=0.1)
    assert sharpness_of(*said(n=4000)) == pytest.approx(1, rel=0.1)


def test_few_rows_hardly_change_it_and_it_is_bounded():
    logs, _ = said(n=3, n_classes=2, scale=0.05)
    right = logs.argmax(axis=1)  # all of them: no sharpness would be too much
    assert 1 < sharpness_of(logs, right) < 2
    many = np.log(np.tile([[0.501, 0.499]], (100_000, 1)))
    assert sharpness_of(many, np.zeros(100_000, dtype=int)) <= MOST
    assert sharpness_of(np.array([[0.0, -np.inf]]), np.array([1])) < 1  # what was held for impossible


@pytest.mark.parametrize("can_be", [(True, True), (True, False)])
def test_those_that_are_averaged_are_sharpened_alike(can_be):
    """Two that know different halves of the truth: their mean is less sure than it should be."""
    rng = np.random.default_rng(2)
    logits = 2 * rng.standard_normal((2, 3000, 3))
    y = (logits.sum(axis=0) + rng.gumbel(size=logits.shape[1:])).argmax(axis=1)
    weights = rng.exponential(size=len(y))
    outs = [torch.log_softmax(torch.from_numpy(half), dim=1).numpy() for half in logits]

    def cost(sharpness):
        parts = [
            torch.softmax(torch.from_numpy(o * (sharpness if can else 1)), 1)
            for o, can in zip(outs, can_be, strict=True)
        ]
        true = (0.6 * parts[0] + 0.4 * parts[1]).numpy()[np.arange(len(y)), y]
        return -(weights / weights.mean() * np.log(true)).sum() + 0.5 * (np.log(sharpness) / SPREAD) ** 2

    found = shared_sharpness(outs, (0.6, 0.4), can_be, y, weights)
    assert found > 1.1
    assert cost(found) <= min(cost(found * factor) for factor in (0.5, 0.99, 1.0, 1.01, 2.0)) + 1e-6
    wanted = np.log(0.6 * np.exp(sharpened(outs[0], found)) + 0.4 * np.exp(outs[1]))
    assert averaged(outs, (0.6, 0.4), (True, False), found) == pytest.approx(wanted, abs=1e-5)


def test_the_weights_say_what_the_probabilities_were_made(classes):
    network = build(CLASSIFIER, input_shape=classes.input_shape, n_outputs=classes.n_outputs, seed=0).eval()
    X = torch.from_numpy(np.array(classes.test.X))
    before = predictions(network, X).numpy()
    sharpen(network, 2.5)
    assert predictions(network, X).numpy() == pytest.approx(sharpened(before, 2.5), abs=1e-5)
    assert np.exp(sharpened(before, 2.5)).sum(axis=1) == pytest.approx(1)


def test_the_network_is_as_sure_as_its_validation_rows_found_it_should_be(classes):
    trained = train(CLASSIFIER, classes, SHORT, seed=0)
    out = predictions(trained.network, torch.from_numpy(np.array(classes.valid.X))).numpy()
    log_loss = -out[np.arange(len(out)), classes.valid.y].mean()
    assert trained.sharpness != 1
    assert log_loss == pytest.approx(trained.loss, abs=1e-5)  # of the weights one gets
    assert sharpness_of(out, classes.valid.y) == pytest.approx(1, abs=0.1)
    assert details_of(trained)["sharpness"] == pytest.approx(trained.sharpness, abs=1e-4)


def test_the_best_validation_is_found_with_it(classes):
    """Long after plain likelihood has had enough: each look is compared as sure as it should be."""
    plain = train(CLASSIFIER, classes, SHORT.changed(temperature_scaling=False), seed=0)
    sure = train(CLASSIFIER, classes, SHORT, seed=0)
    assert all(a.value <= b.value for a, b in zip(sure.curve, plain.curve, strict=True))
    assert sure.loss < plain.loss


@pytest.mark.parametrize("changes", [{"temperature_scaling": False}, {"temperature_scaling": True}])
def test_numbers_know_nothing_of_it(numbers, changes):
    trained, without = (train(MLP, numbers, recipe, seed=0) for recipe in (SHORT, SHORT.changed(**changes)))
    assert trained.sharpness == 1
    assert "sharpness" not in details_of(trained)
    assert trained.curve == without.curve


def test_several_decision_layers_are_trained_as_they_were(classes):
    trained = train(TWO_ENDS, classes, SHORT, seed=0)
    before = train(TWO_ENDS, classes, SHORT.changed(temperature_scaling=False, label_smoothing=0.0), seed=0)
    assert not can_be_sharpened(TWO_ENDS)
    before_it = {name: tensor.clone() for name, tensor in trained.network.state_dict().items()}
    sharpen(trained.network, 2.0)
    assert all(torch.equal(before_it[name], tensor) for name, tensor in trained.network.state_dict().items())
    assert trained.sharpness == 1
    assert trained.curve == before.curve


def test_a_refit_is_as_sure_as_its_trial_was(classes):
    def decision(sharpness):
        trained = train(CLASSIFIER, classes, SHORT, seed=0, stop_after=0.5, sharpness=sharpness)
        assert trained.sharpness == sharpness
        [u] = CLASSIFIER.decision_layers
        return trained.network.layers[str(u)].weight.detach()

    assert torch.allclose(decision(3.0), 3 * decision(1.0))
    unscaled = train(CLASSIFIER, classes, SHORT.changed(temperature_scaling=False), seed=0, sharpness=3.0)
    assert unscaled.sharpness == 1


@pytest.mark.parametrize(("stored", "sharpness"), [({}, 1.0), ({"sharpness": 1.7}, 1.7)])
def test_a_trial_says_how_sure_it_was(numbers, stored, sharpness):
    details = {"steps": 60, "best_step": 30, "stopped": "steps", **stored}
    trial = SimpleNamespace(details=details, fidelity=1.0, arch=MLP)
    base = SimpleNamespace(recipe=FAST.changed(n_steps=60), folds=1)
    length = length_of(trial, numbers, base)
    assert (length.steps, length.stop_after, length.sharpness) == (60, 0.5, sharpness)


def test_who_has_it():
    assert (FAST.vectors.temperature_scaling, FAST.vectors.label_smoothing) == (True, 0.05)
    assert not any(each.temperature_scaling for each in (FAST.images, PAPER.vectors, PAPER.images))

"""The written-out step against autograd, its slow twin."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nasbot.architecture import Architecture, Label, Layer, initial_pool
from nasbot.architecture.activations import ACTIVATIONS
from nasbot.architecture.blocks import chain
from nasbot.testing.networks import random_architecture
from nasbot.training._dense_plan import DensePlan
from nasbot.training.loop import _dropping as dropping
from nasbot.training.losses import loss_of, training_loss
from nasbot.training.module import build
from nasbot.training.recipes import FAST, PAPER
from nasbot.training.steps import autograd_stepper, planned_stepper
from tests.training.test_module import IMAGES, own

KINDS = ("mlp-reg", "mlp-class")
BATCH, N_OUTPUTS, FEATURES = 12, 3, 7


def random_mlps(kind, n):
    for i in range(n):
        rng = np.random.default_rng([i, KINDS.index(kind), 77])
        arch = random_architecture(kind, rng=rng, n_layers=int(rng.integers(4, 40)))
        yield arch.with_units({u: 8 + layer.units % 9 for u, layer in enumerate(arch.layers) if layer.units})


def batch(kind, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.standard_normal((BATCH, FEATURES)).astype(dtype))
    if kind.startswith("mlp-reg"):
        return x, torch.from_numpy(rng.standard_normal((BATCH, N_OUTPUTS)).astype(dtype))
    return x, torch.from_numpy(rng.integers(0, N_OUTPUTS, BATCH))


def network_of(arch, dtype=torch.float64):
    return build(arch, input_shape=(FEATURES,), n_outputs=N_OUTPUTS, seed=4).to(dtype)


def plain_stepper(network, settings):
    return autograd_stepper(network, settings, rng=np.random.default_rng(0))


def check_gradients(arch, settings):
    ours, twin = network_of(arch), network_of(arch)
    x, y = batch(arch.kind)
    plan = DensePlan(ours, settings, BATCH)
    for _ in range(2):  # the second must not see what the first left in the buffers
        with torch.no_grad():
            loss = plan.step(x, y)
    wanted = training_loss(twin(x), y, settings, classifies=twin.classifies)
    (wanted * BATCH if settings.sum_loss else wanted).backward()
    assert loss == pytest.approx(float(wanted.detach()), abs=1e-12)
    for (name, p), q in zip(ours.named_parameters(), twin.parameters(), strict=True):
        near = torch.allclose(p.grad, q.grad, rtol=1e-8, atol=1e-10)
        assert near, f"{name} of {arch}: {p.grad} is not {q.grad}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [FAST.vectors, PAPER.vectors], ids=["mean", "sum"])
def test_gradients_are_those_of_autograd(kind, settings):
    for arch in random_mlps(kind, 25):
        check_gradients(arch, settings)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_autograd_for_500(kind):
    for arch in random_mlps(kind, 500):
        check_gradients(arch, FAST.vectors)


@pytest.mark.parametrize("label", [name for name in ACTIVATIONS if name])
def test_every_label_alone(label):
    check_gradients(chain("mlp-class+", [Layer(label, 9), Layer(label, 8)]), FAST.vectors)


@pytest.mark.parametrize("label", [name for name in ACTIVATIONS if name])
def test_sums_of_exactly_zero(label):
    """Where every unit before a layer is off, its sums are its biases: 0 at the beginning, the kink of a rectifier."""
    arch = chain("mlp-reg+", [Layer(label, 9), Layer("elu", 8)])
    ours, twin = network_of(arch), network_of(arch)
    x, y = torch.zeros(BATCH, FEATURES, dtype=torch.float64), batch(arch.kind)[1]
    with torch.no_grad():
        DensePlan(ours, FAST.vectors, BATCH).step(x, y)
    loss_of(twin(x), y, classifies=False).backward()
    torch.testing.assert_close(ours.layers["1"].bias.grad, twin.layers["1"].bias.grad)


def test_an_input_that_feeds_the_decision_layers_directly():
    layers = [Layer("ip"), Layer("linear"), Layer("linear"), Layer("op")]
    check_gradients(Architecture("mlp-reg", layers, [(0, 1), (0, 2), (1, 3), (2, 3)]), FAST.vectors)


@pytest.mark.parametrize("recipe", [FAST, PAPER.changed(momentum=0.5, weight_decay=0.01)], ids=["adamw", "sgd"])
@pytest.mark.parametrize("kind", KINDS)
def test_thirty_steps_lead_to_the_same_weights(recipe, kind):
    for arch in random_mlps(kind, 3):
        ours, twin = network_of(arch), network_of(arch)
        steps = planned_stepper(ours, recipe.vectors, BATCH), plain_stepper(twin, recipe.vectors)
        for i in range(30):
            x, y = batch(kind, seed=i)
            losses = [take_step(x, y, 1e-3) for take_step in steps]
            assert losses[0] == pytest.approx(losses[1], rel=1e-6)
        for p, q in zip(ours.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_who_is_served():
    assert all(DensePlan.serves(network_of(arch)) for arch in initial_pool("mlp-class"))
    relu = {"takes_units": True, "activation": "relu"}
    assert DensePlan.serves(own(Label(name="d", **relu), 4))
    assert not DensePlan.serves(own(Label(name="d", **relu, dropout=0.1), 4))
    assert not DensePlan.serves(own(Label(name="d", **relu, batch_norm=True), 4))
    assert not DensePlan.serves(own(Label(name="d", **relu, kernel_size=3, **IMAGES), 4, input_shape=(1, 4, 4)))


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_and_smoothing_lead_to_the_same_weights(kind):
    """The plan draws what is left out from torch's state in the order of the layers, as autograd's hooks do."""
    settings = FAST.changed(dropout=0.3, label_smoothing=0.1).vectors
    for arch in [*random_mlps(kind, 6), chain(f"{kind}+", [Layer(name, 9) for name in ACTIVATIONS if name])]:
        ours, twin = network_of(arch), network_of(arch)
        steps = planned_stepper(ours, settings, BATCH), plain_stepper(twin, settings)
        for i in range(20):
            x, y = batch(kind, seed=i)
            losses = []
            for take_step in steps:
                torch.manual_seed(i)
                with dropping(twin, settings.dropout):
                    losses.append(take_step(x, y, 1e-3))
            assert losses[0] == pytest.approx(losses[1], rel=1e-6)
        for p, q in zip(ours.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.05, 0.9])
def test_gradients_of_smoothed_classes(smoothing):
    settings = FAST.changed(label_smoothing=smoothing).vectors
    for arch in random_mlps("mlp-class", 15):
        ours, twin = network_of(arch), network_of(arch)
        x, y = batch(arch.kind)
        with torch.no_grad():
            loss = DensePlan(ours, settings, BATCH).step(x, y)
        wanted = training_loss(twin(x), y, settings, classifies=True)
        wanted.backward()
        assert loss == pytest.approx(float(wanted.detach()), abs=1e-12)
        for p, q in zip(ours.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_gradients_of_probabilities_in_place_of_classes(smoothing, is_weighted):
    settings = FAST.changed(label_smoothing=smoothing).vectors
    weights = torch.linspace(0.2, 2.0, BATCH, dtype=torch.float64) if is_weighted else None
    for arch in random_mlps("mlp-class", 15):
        ours, twin = network_of(arch), network_of(arch)
        x, y = batch(arch.kind)
        spread = torch.softmax(torch.sin(torch.arange(BATCH * ours.n_outputs).double()).reshape(BATCH, -1) * 3, dim=1)
        with torch.no_grad():
            loss = DensePlan(ours, settings, BATCH).step(x, spread, weights)
        wanted = training_loss(twin(x), spread, settings, classifies=True, weights=weights)
        wanted.backward()
        assert loss == pytest.approx(float(wanted.detach()), abs=1e-12)
        for p, q in zip(ours.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-8, atol=1e-10)
        certain = torch.nn.functional.one_hot(y, ours.n_outputs).double()
        losses = [float(training_loss(twin(x).detach(), true, settings, classifies=True)) for true in (y, certain)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-12)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_poisson_gradients_are_those_of_autograd(is_weighted):
    settings = replace(FAST.vectors, loss="poisson")
    weights = torch.linspace(0.2, 2.0, BATCH, dtype=torch.float64) if is_weighted else None
    for arch in random_mlps("mlp-reg", 25):
        ours, twin = (
            build(arch, input_shape=(FEATURES,), n_outputs=N_OUTPUTS, seed=4, rate_scale=(0.2, 0.7, 1.5)).double()
            for _ in range(2)
        )
        x, y = batch(arch.kind)
        y = y.abs()
        plan = DensePlan(ours, settings, BATCH)
        with torch.no_grad():
            loss = plan.step(x, y, weights)
        wanted = training_loss(twin(x), y, settings, classifies=False, weights=weights, rate_scale=twin.rate_scale)
        wanted.backward()
        assert loss == pytest.approx(float(wanted.detach()), abs=1e-10)
        for (name, p), q in zip(ours.named_parameters(), twin.parameters(), strict=True):
            assert torch.allclose(p.grad, q.grad, rtol=1e-7, atol=1e-9), name

"""Features with learned scales: the folded product against an input that is really multiplied, by torch's own AdamW."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasbot.architecture import Architecture, Layer, chain
from nasbot.architecture.attributes import Attributes
from nasbot.training.module import build
from nasbot.training.operations import Dense
from nasbot.training.optimisers import BETA1, EPSILON, groups_of
from nasbot.training.recipes import FAST, PAPER, Settings
from nasbot.training.steps import autograd_stepper, planned_stepper

SETTINGS = Settings(feature_scaling=4.0, weight_decay=0.05)
N_FEATURES, RATE = 5, 0.02


def skipping() -> Architecture:
    """The input enters the first layer, the second beside the first, and a decision layer."""
    layers = [Layer("ip"), Layer("relu", 8), Layer("tanh", 6), Layer("linear"), Layer("linear"), Layer("op")]
    return Architecture("mlp-reg", layers, [(0, 1), (0, 2), (1, 2), (2, 3), (0, 4), (3, 5), (4, 5)])


ARCHS = {"chain": chain("mlp-reg", [Layer("relu", 8), Layer("elu", 6)]), "skips": skipping()}


def batches(n=12):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(n, 16, N_FEATURES)), rng.normal(size=(n, 16, 1))
    return [
        (torch.tensor(a, dtype=torch.float32), torch.tensor(b, dtype=torch.float32)) for a, b in zip(X, y, strict=True)
    ]


def by_multiplied_input(arch, settings):
    """What the network says after these steps if its input is multiplied, and learned by torch.optim.AdamW."""
    network = build(arch, input_shape=(N_FEATURES,), n_outputs=1, seed=1)
    scales = torch.nn.Parameter(torch.ones(N_FEATURES))
    groups = [
        {"params": group.parameters, "lr": RATE * group.factor, "weight_decay": settings.weight_decay * group.decay}
        for group in groups_of(network, settings)
    ]
    groups.append({"params": [scales], "lr": RATE * settings.feature_scaling, "weight_decay": 0.0})
    optimiser = torch.optim.AdamW(groups, betas=(BETA1, settings.beta2), eps=EPSILON)
    for x, y in batches():
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(network(x * scales), y).backward()
        optimiser.step()
    assert (scales - 1).abs().min() > 0.01  # they did move
    return lambda x: network(x * scales)


@pytest.mark.parametrize("stepper", ["planned", "autograd"])
@pytest.mark.parametrize("arch", ARCHS.values(), ids=ARCHS)
def test_weights_are_those_of_an_input_that_is_multiplied(arch, stepper):
    network = build(arch, input_shape=(N_FEATURES,), n_outputs=1, seed=1)
    if stepper == "planned":
        take_step = planned_stepper(network, SETTINGS, 16)
    else:
        take_step = autograd_stepper(network, SETTINGS, rng=np.random.default_rng(0))
    for x, y in batches():
        take_step(x, y, RATE)
    x = torch.randn(40, N_FEATURES, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(network(x), by_multiplied_input(arch, SETTINGS)(x), rtol=1e-4, atol=1e-5)


def test_a_layer_with_normalisation_has_scales_before_its_weights():
    arch = chain("mlp-reg", [Layer("relu", 8, attributes=Attributes(norm="batch"))])
    plain, scaled = (build(arch, input_shape=(N_FEATURES,), n_outputs=1, seed=1) for _ in range(2))
    for network, settings in ((plain, Settings(weight_decay=0.05)), (scaled, SETTINGS)):
        take_step = autograd_stepper(network, settings, rng=np.random.default_rng(0))
        for x, y in batches():
            take_step(x, y, RATE)
    difference = (plain.layers["1"].dense.weight - scaled.layers["1"].dense.weight).abs()
    assert isinstance(plain.layers["1"].dense, Dense)
    assert difference.max() > 0.05


@pytest.mark.parametrize("changes", [{"feature_scaling": 0.0}, {"optimiser": "sgd", "learning_rate": 1e-3}])
def test_without_scales_steps_are_as_before(changes):
    arch, states = ARCHS["chain"], []
    settings = Settings(**{"feature_scaling": 4.0, **changes})
    without = Settings(**{**changes, "feature_scaling": 0.0})
    for each in (settings, without):
        network = build(arch, input_shape=(N_FEATURES,), n_outputs=1, seed=1)
        take_step = planned_stepper(network, each, 16)
        for x, y in batches():
            take_step(x, y, 1e-3)
        states.append(torch.cat([p.detach().reshape(-1) for p in network.parameters()]))
    assert torch.equal(*states)


def test_images_have_no_scales():
    arch = chain("cnn", [Layer("conv3", 4, 1)])
    x, y = torch.randn(8, 3, 6, 6), torch.arange(8) % 3
    states = []
    for scaling in (0.0, 4.0):
        network = build(arch, input_shape=(3, 6, 6), n_outputs=3, seed=1)
        autograd_stepper(network, Settings(feature_scaling=scaling), rng=np.random.default_rng(0))(x, y, RATE)
        states.append(torch.cat([p.detach().reshape(-1) for p in network.parameters()]))
    assert torch.equal(*states)


def test_which_recipes_have_them():
    assert (FAST.vectors.feature_scaling, FAST.images.feature_scaling) == (4.0, 0.0)
    assert (PAPER.vectors.feature_scaling, PAPER.images.feature_scaling) == (0.0, 0.0)

"""Weights after fifty steps as they were recorded before there were operations; costs of the newer ones by torch."""

import numpy as np
import pytest
import torch

from nasbot.architecture import Architecture, Layer, chain, resources
from nasbot.training.module import build

CNN_LAYERS = [Layer("conv3", 8, 1), Layer("res3", 12, 2), Layer("max-pool"), Layer("res5", 8, 1), Layer("fc", 9)]
RECORDED = {
    "mlp": (chain("mlp-reg", [Layer(x, 8) for x in ("relu", "crelu", "tanh", "logistic", "elu")]), (5,), 315.6102479),
    "cnn": (chain("cnn", CNN_LAYERS), (3, 9, 9), 158.8853661),
}


def trained_sum(arch, shape):
    """The sum of squares of all weights after 50 plain steps on one batch."""
    network = build(arch, input_shape=shape, n_outputs=3, seed=3).train()
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((8, *shape)).astype(np.float32))
    parameters = list(network.parameters())
    for _ in range(50):
        gradients = torch.autograd.grad(network(x).square().mean(), parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter -= 0.01 * gradient
    return sum(float(p.detach().double().square().sum()) for p in parameters)


@pytest.mark.parametrize("name", RECORDED)
def test_fifty_steps_lead_where_they_led(name):
    arch, shape, recorded = RECORDED[name]
    assert trained_sum(arch, shape) == pytest.approx(recorded, rel=1e-5)


@pytest.mark.parametrize("units", [6, 9])
def test_costs_of_a_residual_dense_layer_and_a_normalisation_are_torchs_own(units):
    arch = chain("mlp-reg+", [Layer("layer-norm"), Layer("res-dense", units), Layer("mish", 4)])
    network = build(arch, input_shape=(6,), n_outputs=2, seed=0)
    for u, part in network.layers.items():
        assert resources(arch, (6,), 2).layers[int(u)].parameters == sum(p.numel() for p in part.parameters())


def test_a_residual_dense_layer_adds_to_its_input():
    arch = chain("mlp-reg+", [Layer("res-dense", 6)])
    layer = build(arch, input_shape=(6,), n_outputs=1, seed=0).layers["1"]
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32))
    inside = torch.relu(layer.first(torch.nn.functional.layer_norm(x, (6,))))
    torch.testing.assert_close(layer(x), x + layer.second(inside))
    assert layer.projection is None


def test_sums_keep_their_spread_through_many_residual_layers():
    arch = chain("mlp-reg+", [Layer("gelu", 64), *[Layer("res-dense", 64)] * 12, Layer("silu", 64)])
    network = build(arch, input_shape=(16,), n_outputs=1, seed=1)
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((500, 16)).astype(np.float32))
    with torch.no_grad():
        for layer in list(network.layers.values())[:-2]:
            x = layer(x)
        last = network.layers["14"]
        sums = torch.nn.functional.linear(x, last.weight, last.bias)
    assert 0.6 < float(sums.std()) < 1.6


def test_the_extended_vocabularies_are_built_in_and_the_papers_are_as_they_were():
    arch = chain("mlp-class+", [Layer("gelu", 8), Layer("layer-norm"), Layer("res-dense", 8)])
    assert Architecture.from_json(arch.to_json()) == arch
    penalty = arch.vocabulary.penalties.penalty
    assert penalty("gelu", "relu") == 0.1
    assert penalty("res-dense", "relu") == pytest.approx(0.1)
    assert penalty("res-dense", "tanh") == pytest.approx(0.9 * 0.25 + 0.1)
    plain = chain("mlp-class", [Layer("relu", 8)]).vocabulary
    assert "gelu" not in plain.by_name
    assert plain.penalties.labels == tuple(plain.by_name)

"""What training makes of the attributes of layers."""

import numpy as np
import pytest
import torch
from torch import nn

from nasbot.architecture import Layer, chain
from nasbot.architecture.resources import resources
from nasbot.testing.networks import random_architecture, with_random_attributes
from nasbot.training._dense_plan import DensePlan
from nasbot.training.loop import train
from nasbot.training.module import build
from nasbot.training.optimisers import groups_of
from nasbot.training.recipes import FAST
from tests.training.test_loop import CLASSIFIER, classes  # noqa: F401  # a fixture

SHORT = FAST.changed(n_steps=20, n_validations=2)


def mlp(**own):
    return chain("mlp-class", [Layer("relu", 12, **own), Layer("crelu", 9, **own)])


def built(arch, shape=(5,)):
    return build(arch, input_shape=shape, n_outputs=3, seed=2)


@pytest.mark.parametrize(("norm", "kind"), [("batch", nn.BatchNorm1d), ("layer", nn.LayerNorm)])
def test_normalisation_is_built(norm, kind):
    network = built(mlp(norm=norm))
    assert [type(network.layers[str(u)].norm) for u in (1, 2)] == [kind, kind]
    assert not DensePlan.serves(network)


def test_convolutions_without_normalisation():
    arch = chain("cnn", [Layer("conv3", 4, 1, norm="none"), Layer("res3", 4, 1, norm="none"), Layer("fc", 4)])
    network = built(arch, (1, 6, 6))
    assert not any(isinstance(part, nn.BatchNorm2d) for part in network.modules())


def test_dropout_is_built_and_takes_the_place_of_the_recipes(classes):  # noqa: F811
    network = built(chain("mlp-class", [Layer("relu", 12, dropout=0.5), Layer("tanh", 8)]))
    assert {u: part.p for u, part in network.dropouts.items()} == {"1": 0.5}
    own = chain("mlp-class", [Layer("relu", 12, dropout=0.3), Layer("crelu", 9, dropout=0.3)])
    alone, with_recipe, again = (
        train(own, classes, recipe, seed=4).loss for recipe in (SHORT, SHORT.changed(dropout=0.1), SHORT)
    )
    assert alone == with_recipe == again
    assert alone != train(CLASSIFIER, classes, SHORT, seed=4).loss


@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
def test_weight_decay_of_one_layer(optimiser):
    arch = chain("mlp-class", [Layer("relu", 12, decay_factor=8), Layer("relu", 9)])
    network = built(arch)
    settings = FAST.changed(weight_decay=0.01, optimiser=optimiser).vectors
    decays = {id(p): group.decay for group in groups_of(network, settings) for p in group.parameters}
    by_name = {name: decays[id(p)] for name, p in network.named_parameters()}
    assert by_name == {
        "layers.1.weight": 8.0, "layers.1.bias": 0.0, "layers.2.weight": 1.0,
        "layers.2.bias": 0.0, "layers.3.weight": 1.0, "layers.3.bias": 0.0,
    }  # fmt: skip
    assert DensePlan.serves(network), "weight decay is the optimiser's, and needs no other step"


def test_weight_decay_shrinks_that_layer(classes):  # noqa: F811
    recipe = SHORT.changed(weight_decay=0.1, n_steps=60, patience=None)
    sizes = []
    for factor in (1.0, 32.0):
        arch = chain("mlp-class", [Layer("relu", 12), Layer("relu", 9, decay_factor=factor)])
        sizes.append(float(train(arch, classes, recipe, seed=1).network.layers["2"].weight.detach().norm()))
    assert sizes[1] < 0.95 * sizes[0]


@pytest.mark.parametrize("kind", ["mlp-reg", "mlp-class+", "cnn"])
def test_what_is_built_is_what_is_counted_and_it_computes(kind):
    shape = (1, 16, 16) if kind == "cnn" else (5,)
    for i in range(8):
        rng = np.random.default_rng([i, 9])
        arch = with_random_attributes(random_architecture(kind, rng=rng, n_layers=8), rng=rng)
        network = built(arch, shape)
        assert sum(p.numel() for p in network.parameters()) == resources(arch, shape, 3).parameters
        out = network.eval()(torch.from_numpy(rng.standard_normal((4, *shape)).astype(np.float32)))
        assert out.shape == (4, 3)
        assert torch.isfinite(out).all()

"""Ensembles as one module: the weighted mean, each member with its own preparation, in torch as in numpy."""

import numpy as np
import pytest
import torch

from nasbot.architecture import Layer
from nasbot.architecture.blocks import chain
from nasbot.data.dataset import dataset_of
from nasbot.data.preparations import PREPARATIONS
from nasbot.errors import OptionError
from nasbot.training.ensemble import Ensemble, prepared_by
from nasbot.training.module import build
from tests.data.test_preparations import frame


@pytest.fixture(scope="module")
def data():
    return dataset_of(frame(), "price")


def network_for(data, kind="mlp-reg", n_outputs=1, seed=0):
    arch = chain(kind, [Layer("tanh", 8)])
    return build(arch, input_shape=data.input_shape, n_outputs=n_outputs, seed=seed).eval()


@pytest.mark.parametrize("name", PREPARATIONS)
def test_torch_prepares_as_numpy_does(data, name):
    prepared = data.prepared_as(name)
    module = prepared_by(prepared.preprocessing.preparation)
    np.testing.assert_allclose(module(torch.from_numpy(data.test.X)).numpy(), prepared.test.X, atol=1e-5)
    wild = np.concatenate([data.test.X * 100, data.test.X * 0])
    step = prepared.preprocessing.preparation
    expected = wild if step is None else step.applied(wild)
    np.testing.assert_allclose(module(torch.from_numpy(wild)).numpy(), expected, atol=1e-5)
    assert not list(module.parameters())


def test_numbers_are_averaged_by_weight(data):
    parts = [data.prepared_as(name) for name in PREPARATIONS]
    networks = [network_for(part, seed=i) for i, part in enumerate(parts)]
    weights = (0.4, 0.3, 0.2, 0.1)
    ensemble = Ensemble(networks, weights, [part.preprocessing.preparation for part in parts]).eval()
    with torch.no_grad():
        said = [net(torch.from_numpy(part.test.X)) for net, part in zip(networks, parts, strict=True)]
        together = ensemble(torch.from_numpy(data.test.X))
    expected = sum(weight * out for weight, out in zip(weights, said, strict=True))
    np.testing.assert_allclose(together.numpy(), expected.numpy(), atol=1e-5)


def test_classes_are_averaged_by_probability(data):
    networks = [network_for(data, "mlp-class", 3, seed) for seed in (0, 1)]
    x = torch.from_numpy(data.test.X)
    with torch.no_grad():
        expected = (0.75 * networks[0](x).exp() + 0.25 * networks[1](x).exp()).log()
        together = Ensemble(networks, (0.75, 0.25), (None, None))(x)
    np.testing.assert_allclose(together.numpy(), expected.numpy(), atol=1e-6)


def test_mistakes(data):
    net = network_for(data)
    with pytest.raises(OptionError, match="1 networks, 2 weights and 1 preparations"):
        Ensemble([net], (0.5, 0.5), [None])
    with pytest.raises(OptionError, match="weights above 0 that add up to 1"):
        Ensemble([net, net], (0.5, 0.6), [None, None])
    with pytest.raises(OptionError, match="different outputs"):
        Ensemble([net, network_for(data, n_outputs=2)], (0.5, 0.5), [None, None])

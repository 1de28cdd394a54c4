"""Activations: against torch's own, and what the constants of the initialisation promise."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from nasbot.architecture.activations import ACTIVATIONS
from nasbot.errors import VocabularyError
from nasbot.training.activations import activate, activation_of, moments

TORCH = {
    "": lambda z: z,
    "relu": torch.relu,
    "crelu": lambda z: torch.relu(torch.cat([z, -z], dim=1)),
    "leaky-relu": functional.leaky_relu,
    "softplus": functional.softplus,
    "elu": functional.elu,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "mish": functional.mish,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_is_what_torch_calls_by_that_name(name):
    z = torch.linspace(-30, 30, 601)[:, None]
    torch.testing.assert_close(activate(name)(z.clone()), TORCH[name](z), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_moments_are_those_of_many_draws(name):
    activation = ACTIVATIONS[name]
    z = activation.spread * torch.from_numpy(np.random.default_rng(0).standard_normal((400_000, 1)))
    emitted = activate(name)(z).numpy()
    mean, power = moments(name)
    assert mean == pytest.approx(emitted.mean() if activation.centred else 0.0, abs=3e-3)
    assert power == pytest.approx(((emitted - mean) ** 2).mean(), rel=1e-2)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_neither_vanish_nor_explode(name):
    """E[f'²] of the spread, per unit, over the power of what is emitted: 1 keeps gradients, per layer, as they are."""
    activation = ACTIVATIONS[name]
    z = torch.from_numpy(np.random.default_rng(1).standard_normal((400_000, 1)) * activation.spread).requires_grad_()
    emitted = activate(name)(z.clone())
    (slopes,) = torch.autograd.grad(emitted.sum() if emitted.shape[1] == 1 else (emitted * emitted.sign()).sum(), z)
    growth = float((slopes**2).mean()) * activation.spread**2 / (moments(name).power * emitted.shape[1])
    assert 0.97 < growth < 1.1, f"{name}: a gradient grows by {growth:.3f} at each layer"


def test_an_unknown_activation_names_the_label_that_asks_for_it():
    with pytest.raises(VocabularyError, match="label gate: unknown activation 'swish'; known: crelu, elu"):
        activation_of("swish", "gate")

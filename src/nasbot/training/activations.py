"""The activations that a label can name, and how weights must begin so that deep networks of them train.

A layer begins with sums z that are normal with standard deviation ``spread``. What it emits then has a known mean and
mean square, and the layers behind it choose their weights so that their own sums have their ``spread`` again, however
deep and however mixed the network is. Where ``centred``, the biases of the layers behind take the mean out and only the
variance counts: a logistic layer emits 0.5 plus a little, and without this the little is lost after a few layers.

The spreads make every activation nearly critical, E[f'(z)²] = E[(f(z) - mean)²] / spread²: gradients neither vanish nor
explode. For tanh that needs 0.5, where it is nearly linear; the others have it at 1 (checked in the tests).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from nasbot.errors import VocabularyError

LEAKY_SLOPE = 0.01
SOFTPLUS_THRESHOLD = 20.0  # beyond it softplus(z) is z in float32

QUADRATURE_POINTS = 100


@dataclass(frozen=True)
class Activation:
    """A function of each number, the spread of the sums it likes, and whether those behind it subtract its mean.

    ``apply`` may overwrite its argument: nobody else holds the sums of a layer.
    """

    apply: Callable[[Tensor], Tensor]
    spread: float = 1.0
    centred: bool = False


class Moments(NamedTuple):
    """What is emitted at the beginning: the mean to be subtracted by those behind, and the mean square about it."""

    mean: float
    power: float


def _nothing(z: Tensor) -> Tensor:
    return z


def _concatenated_relu(z: Tensor) -> Tensor:
    return functional.relu(torch.cat((z, -z), dim=1))


ACTIVATIONS: Mapping[str, Activation] = {
    "": Activation(_nothing),
    "relu": Activation(torch.relu_),
    "crelu": Activation(_concatenated_relu),
    "leaky-relu": Activation(lambda z: functional.leaky_relu_(z, LEAKY_SLOPE)),
    "softplus": Activation(lambda z: functional.softplus(z, 1.0, SOFTPLUS_THRESHOLD), centred=True),
    "elu": Activation(functional.elu_),
    "logistic": Activation(torch.sigmoid_, centred=True),
    "tanh": Activation(torch.tanh_, spread=0.5),
}


def activation_of(name: str, label: str) -> Activation:
    """The activation of this name; VocabularyError, naming the label that asked for it, where there is none."""
    try:
        return ACTIVATIONS[name]
    except KeyError:
        known = ", ".join(sorted(ACTIVATIONS)[1:])
        raise VocabularyError(f"label {label}: unknown activation {name!r}; known: {known}") from None


@cache
def moments(name: str) -> Moments:
    """What a layer of this activation emits when its sums are normal with the activation's spread, by quadrature."""
    activation = ACTIVATIONS[name]
    z, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_POINTS)
    emitted = activation.apply(torch.from_numpy(activation.spread * z)[:, None].clone()).numpy()
    weights = weights / weights.sum()
    mean = float(weights @ emitted.mean(axis=1)) if activation.centred else 0.0
    return Moments(mean, float(weights @ ((emitted - mean) ** 2).mean(axis=1)))

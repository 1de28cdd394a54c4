"""Activations as torch computes them, and weights that begin so that deep networks of them train.

A layer begins with sums z that are normal with standard deviation ``spread``. What it emits then has a known mean and
mean square, and the layers behind it choose their weights so that their own sums have their ``spread`` again, however
deep and however mixed the network is. Where ``centred``, the biases of the layers behind take the mean out and only the
variance counts: a logistic layer emits 0.5 plus a little, and without this the little is lost after a few layers.

The spreads make every activation nearly critical, E[f'(z)²] = E[(f(z) - mean)²] / spread²: gradients neither vanish nor
explode. For tanh that needs 0.5, where it is nearly linear; the others have it at 1 (checked in the tests).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from nasbot.architecture.activations import ACTIVATIONS, LEAKY_SLOPE, Activation
from nasbot.errors import VocabularyError

SOFTPLUS_THRESHOLD = 20.0  # beyond it softplus(z) is z in float32; torch's own

QUADRATURE_POINTS = 100

aten = torch.ops.aten

# forward(sums, emitted): writes emitted. Where the two are one tensor, it is overwritten.
# backward(gradient of emitted, sums, emitted, gradient of sums): writes the last, which may be the first.
Forward = Callable[[Tensor, Tensor], object]
Backward = Callable[[Tensor, Tensor, Tensor, Tensor], object]


class Steps(NamedTuple):
    """Forward and backward in given buffers, for the written-out training step of dense networks."""

    forward: Forward
    backward: Backward
    in_place: bool = True  # sums and what is emitted share a buffer: the gradient needs only what is emitted


class Moments(NamedTuple):
    """What is emitted at the beginning: the mean to be subtracted by those behind, and the mean square about it."""

    mean: float
    power: float


def _crelu(z: Tensor, h: Tensor) -> None:
    n = z.shape[1]
    torch.clamp_min(z, 0.0, out=h[:, :n])
    torch.neg(torch.clamp_max(z, 0.0), out=h[:, n:])


def _crelu_backward(dh: Tensor, z: Tensor, h: Tensor, dz: Tensor) -> None:
    n = z.shape[1]  # a sum of exactly 0 counts for neither half, as with autograd
    aten.threshold_backward.grad_input(dh[:, :n], h[:, :n], 0, grad_input=dz)
    dz.sub_(aten.threshold_backward(dh[:, n:], h[:, n:], 0))


# By the names of activations. Networks with one that is not here are trained by autograd.
STEPS: Mapping[str, Steps] = {
    "": Steps(lambda z, h: None, lambda dh, z, h, dz: None),
    "relu": Steps(
        lambda z, h: torch.relu_(z),
        lambda dh, z, h, dz: aten.threshold_backward.grad_input(dh, h, 0, grad_input=dz),
    ),
    "crelu": Steps(_crelu, _crelu_backward, in_place=False),
    "leaky-relu": Steps(
        lambda z, h: functional.leaky_relu_(z, LEAKY_SLOPE),
        lambda dh, z, h, dz: aten.leaky_relu_backward.grad_input(dh, h, LEAKY_SLOPE, True, grad_input=dz),
    ),
    "softplus": Steps(
        lambda z, h: aten.softplus.out(z, 1, SOFTPLUS_THRESHOLD, out=h),
        lambda dh, z, h, dz: aten.softplus_backward.grad_input(dh, z, 1, SOFTPLUS_THRESHOLD, grad_input=dz),
        in_place=False,
    ),
    "elu": Steps(
        lambda z, h: functional.elu_(z),
        lambda dh, z, h, dz: aten.elu_backward.grad_input(dh, 1, 1, 1, True, h, grad_input=dz),
    ),
    "logistic": Steps(
        lambda z, h: torch.sigmoid_(z), lambda dh, z, h, dz: aten.sigmoid_backward.grad_input(dh, h, grad_input=dz)
    ),
    "tanh": Steps(
        lambda z, h: torch.tanh_(z), lambda dh, z, h, dz: aten.tanh_backward.grad_input(dh, h, grad_input=dz)
    ),
    "gelu": Steps(
        lambda z, h: aten.gelu.out(z, out=h),
        lambda dh, z, h, dz: aten.gelu_backward.grad_input(dh, z, grad_input=dz),
        in_place=False,
    ),
    "silu": Steps(
        lambda z, h: aten.silu.out(z, out=h),
        lambda dh, z, h, dz: aten.silu_backward.grad_input(dh, z, grad_input=dz),
        in_place=False,
    ),
    "mish": Steps(
        lambda z, h: aten.mish.out(z, out=h),
        lambda dh, z, h, dz: dz.copy_(aten.mish_backward(dh, z)),
        in_place=False,
    ),
}


def activation_of(name: str, label: str) -> Activation:
    """The activation of this name; VocabularyError, naming the label that asked for it, where there is none."""
    try:
        return ACTIVATIONS[name]
    except KeyError:
        known = ", ".join(sorted(ACTIVATIONS)[1:])
        raise VocabularyError(f"label {label}: unknown activation {name!r}; known: {known}") from None


@cache
def activate(name: str) -> Callable[[Tensor], Tensor]:
    """The function itself. It may overwrite its argument: nobody else holds the sums of a layer."""
    row = ACTIVATIONS[name]
    if not row.function:
        return _nothing
    _, *path, last = row.function.split(".")
    home: Any = reduce(getattr, path, torch)
    plain: Callable[[Tensor], Tensor] = getattr(home, last)
    if row.of_both_signs:
        return lambda z: plain(torch.cat((z, -z), dim=1))
    in_place: Callable[[Tensor], Tensor] = getattr(home, f"{last}_", plain)
    return in_place


def _nothing(z: Tensor) -> Tensor:
    return z


@cache
def moments(name: str) -> Moments:
    """What a layer of this activation emits when its sums are normal with the activation's spread, by quadrature."""
    activation = ACTIVATIONS[name]
    z, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_POINTS)
    emitted = activate(name)(torch.from_numpy(activation.spread * z)[:, None].clone()).numpy()
    weights = weights / weights.sum()
    mean = float(weights @ emitted.mean(axis=1)) if activation.centred else 0.0
    return Moments(mean, float(weights @ ((emitted - mean) ** 2).mean(axis=1)))

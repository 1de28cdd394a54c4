"""The activations that a label can name, each in one row: what it computes, how it is exported, traced and trained.

Weights must begin so that deep networks of them train.

A layer begins with sums z that are normal with standard deviation ``spread``. What it emits then has a known mean and
mean square, and the layers behind it choose their weights so that their own sums have their ``spread`` again, however
deep and however mixed the network is. Where ``centred``, the biases of the layers behind take the mean out and only the
variance counts: a logistic layer emits 0.5 plus a little, and without this the little is lost after a few layers.

The spreads make every activation nearly critical, E[f'(z)²] = E[(f(z) - mean)²] / spread²: gradients neither vanish nor
explode. For tanh that needs 0.5, where it is nearly linear; the others have it at 1 (checked in the tests).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

aten = torch.ops.aten

# forward(sums, emitted): writes emitted. Where the two are one tensor, it is overwritten.
# backward(gradient of emitted, sums, emitted, gradient of sums): writes the last, which may be the first.
Forward = Callable[[Tensor, Tensor], object]
Backward = Callable[[Tensor, Tensor, Tensor, Tensor], object]


class Node(NamedTuple):
    """One ONNX operation. Of its inputs "x" is the argument, a whole number an earlier node, any other a constant."""

    op: str
    inputs: tuple[str | int | float, ...] = ("x",)
    attributes: Mapping[str, float] = {}


class Steps(NamedTuple):
    """Forward and backward in given buffers, for the written-out training step of dense networks."""

    forward: Forward
    backward: Backward
    in_place: bool = True  # sums and what is emitted share a buffer: the gradient needs only what is emitted


@dataclass(frozen=True)
class Activation:
    """A function of each number, the spread of the sums it likes, and whether those behind it subtract its mean.

    ``apply`` may overwrite its argument: nobody else holds the sums of a layer.
    """

    apply: Callable[[Tensor], Tensor]
    code: str  # in exported Python, {0} being its argument
    onnx: tuple[Node, ...]  # the last gives the value
    steps: Steps | None = None  # None: networks that have it are trained by autograd
    spread: float = 1.0
    centred: bool = False
    traced: str = ""  # the name of torch's own, in lower case and without underscores
    near: tuple[str, ...] = field(default=())  # names of those that an approximate trace takes for it
    is_never_negative: bool = False  # a ReLU of what it gives changes nothing


class Moments(NamedTuple):
    """What is emitted at the beginning: the mean to be subtracted by those behind, and the mean square about it."""

    mean: float
    power: float


def _nothing(z: Tensor) -> Tensor:
    return z


def _concatenated_relu(z: Tensor) -> Tensor:
    return functional.relu(torch.cat((z, -z), dim=1))


def _crelu(z: Tensor, h: Tensor) -> None:
    n = z.shape[1]
    torch.clamp_min(z, 0.0, out=h[:, :n])
    torch.neg(torch.clamp_max(z, 0.0), out=h[:, n:])


def _crelu_backward(dh: Tensor, z: Tensor, h: Tensor, dz: Tensor) -> None:
    n = z.shape[1]  # a sum of exactly 0 counts for neither half, as with autograd
    aten.threshold_backward.grad_input(dh[:, :n], h[:, :n], 0, grad_input=dz)
    dz.sub_(aten.threshold_backward(dh[:, n:], h[:, n:], 0))


ACTIVATIONS: Mapping[str, Activation] = {
    "": Activation(_nothing, "{0}", (Node("Identity"),), Steps(lambda z, h: None, lambda dh, z, h, dz: None)),
    "relu": Activation(
        torch.relu_,
        "torch.relu({0})",
        (Node("Relu"),),
        Steps(
            lambda z, h: torch.relu_(z),
            lambda dh, z, h, dz: aten.threshold_backward.grad_input(dh, h, 0, grad_input=dz),
        ),
        traced="relu",
        near=("relu6", "gelu", "silu", "mish", "hardswish"),
        is_never_negative=True,
    ),
    "crelu": Activation(
        _concatenated_relu,
        "torch.relu(torch.cat([{0}, -{0}], dim=1))",
        (Node("Neg"), Node("Concat", ("x", 0), {"axis": 1}), Node("Relu", (1,))),
        Steps(_crelu, _crelu_backward, in_place=False),
        is_never_negative=True,
    ),
    "leaky-relu": Activation(
        lambda z: functional.leaky_relu_(z, LEAKY_SLOPE),
        f"torch.nn.functional.leaky_relu({{0}}, {LEAKY_SLOPE})",
        (Node("LeakyRelu", attributes={"alpha": LEAKY_SLOPE}),),
        Steps(
            lambda z, h: functional.leaky_relu_(z, LEAKY_SLOPE),
            lambda dh, z, h, dz: aten.leaky_relu_backward.grad_input(dh, h, LEAKY_SLOPE, True, grad_input=dz),
        ),
        traced="leakyrelu",
        near=("prelu", "rrelu"),
    ),
    "softplus": Activation(
        lambda z: functional.softplus(z, 1.0, SOFTPLUS_THRESHOLD),
        "torch.nn.functional.softplus({0})",
        (Node("Softplus"),),
        Steps(
            lambda z, h: aten.softplus.out(z, 1, SOFTPLUS_THRESHOLD, out=h),
            lambda dh, z, h, dz: aten.softplus_backward.grad_input(dh, z, 1, SOFTPLUS_THRESHOLD, grad_input=dz),
            in_place=False,
        ),
        centred=True,
        traced="softplus",
        is_never_negative=True,
    ),
    "elu": Activation(
        functional.elu_,
        "torch.nn.functional.elu({0})",
        (Node("Elu", attributes={"alpha": 1.0}),),
        Steps(
            lambda z, h: functional.elu_(z),
            lambda dh, z, h, dz: aten.elu_backward.grad_input(dh, 1, 1, 1, True, h, grad_input=dz),
        ),
        traced="elu",
        near=("selu", "celu"),
    ),
    "logistic": Activation(
        torch.sigmoid_,
        "torch.sigmoid({0})",
        (Node("Sigmoid"),),
        Steps(
            lambda z, h: torch.sigmoid_(z), lambda dh, z, h, dz: aten.sigmoid_backward.grad_input(dh, h, grad_input=dz)
        ),
        centred=True,
        traced="sigmoid",
        near=("hardsigmoid",),
        is_never_negative=True,
    ),
    "tanh": Activation(
        torch.tanh_,
        "torch.tanh({0})",
        (Node("Tanh"),),
        Steps(lambda z, h: torch.tanh_(z), lambda dh, z, h, dz: aten.tanh_backward.grad_input(dh, h, grad_input=dz)),
        spread=0.5,
        traced="tanh",
        near=("hardtanh", "softsign"),
    ),
    "gelu": Activation(
        functional.gelu,
        "torch.nn.functional.gelu({0})",
        (
            Node("Mul", ("x", 0.5**0.5)),
            Node("Erf", (0,)),
            Node("Add", (1, 1.0)),
            Node("Mul", ("x", 2)),
            Node("Mul", (3, 0.5)),
        ),
        Steps(
            lambda z, h: aten.gelu.out(z, out=h),
            lambda dh, z, h, dz: aten.gelu_backward.grad_input(dh, z, grad_input=dz),
            in_place=False,
        ),
        traced="gelu",
    ),
    "silu": Activation(
        functional.silu,
        "torch.nn.functional.silu({0})",
        (Node("Sigmoid"), Node("Mul", ("x", 0))),
        Steps(
            lambda z, h: aten.silu.out(z, out=h),
            lambda dh, z, h, dz: aten.silu_backward.grad_input(dh, z, grad_input=dz),
            in_place=False,
        ),
        traced="silu",
    ),
    "mish": Activation(
        functional.mish,
        "torch.nn.functional.mish({0})",
        (Node("Softplus"), Node("Tanh", (0,)), Node("Mul", ("x", 1))),
        Steps(
            lambda z, h: aten.mish.out(z, out=h),
            lambda dh, z, h, dz: dz.copy_(aten.mish_backward(dh, z)),
            in_place=False,
        ),
        traced="mish",
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
def moments(name: str) -> Moments:
    """What a layer of this activation emits when its sums are normal with the activation's spread, by quadrature."""
    activation = ACTIVATIONS[name]
    z, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_POINTS)
    emitted = activation.apply(torch.from_numpy(activation.spread * z)[:, None].clone()).numpy()
    weights = weights / weights.sum()
    mean = float(weights @ emitted.mean(axis=1)) if activation.centred else 0.0
    return Moments(mean, float(weights @ ((emitted - mean) ** 2).mean(axis=1)))

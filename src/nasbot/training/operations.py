"""What is built of each type of layer, how its weights begin, and how it is written for export.

The other half of ``nasbot.architecture.operations``. A part is an ``nn.Module`` and three promises:

set_weights    draws its weights, so that sums begin with the spread that the activation likes
emission       what leaves it at the beginning, channel by channel
lowered        itself as primitive steps, from which exported code and ONNX files are written
TRACED         which operations of a PyTorch model ``nasbot.tracing`` takes for it

convolution    label with ``kernel_size`` k: k x k, padded so that n pixels become ceil(n / stride), no bias; batch
               normalisation; activation. With ``n_convolutions`` 2 (res) conv-norm-activation-conv-norm, then the
               shortcut is added, then the activation (He et al. 2016). The shortcut has no weights: averaged over
               windows where there is a stride, padded with zeros where channels are missing, cut where there are
               too many
dense          label with units and without ``kernel_size``: weights and bias, then the activation
pool           label with ``pooling``: windows of 2 x 2 for a label that shrinks by 2, the last ones cut at the border
layer-norm     normalisation over the channels of each sample
res-dense      x + W2 act(W1 norm(x)); x is projected where its width is another
module         an ``nn.Module`` of one's own, made with the channels that enter and leave
decision       dense to ``n_outputs``
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from string import ascii_lowercase
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from nasbot.architecture import Label, Layer, Role, Signal
from nasbot.architecture.operations import OPERATIONS
from nasbot.errors import VocabularyError
from nasbot.training.activations import activate, activation_of, moments

# Small enough that a network begins by predicting next to nothing, large enough that what is behind learns at once.
DECISION_SPREAD = 0.3
BRANCH_SPREAD = 0.5  # of what a residual dense layer adds to its input: many of them in a row stay near their input

Array: TypeAlias = NDArray[np.float32]


class Emission(NamedTuple):
    """What a layer is expected to emit at the beginning, channel by channel: see ``activations``."""

    means: Array  # (channels,)
    powers: Array  # (channels,)

    @classmethod
    def equal(cls, n_channels: int, mean: float = 0.0, power: float = 1.0) -> Emission:
        """The same in all channels."""
        return cls(np.full(n_channels, mean, np.float32), np.full(n_channels, power, np.float32))


@dataclass(frozen=True)
class Step:
    """One primitive operation of an exported network; ``nasbot.exporting.lowering`` lists them."""

    value: str
    op: str
    inputs: tuple[str, ...]
    layer: int  # of the architecture; that of the output for the last steps
    part: str = ""
    attribute: str = ""
    module: nn.Module | None = None
    size: int = 0  # window, channels to add, channels to keep
    activation: str = ""
    factors: tuple[float, ...] = ()


Steps = Iterator[Step]


class Dense(nn.Linear):
    """A linear map whose weights are set by ``initialise``: drawing others first would touch the global state."""

    def reset_parameters(self) -> None:
        """Nothing."""


class Convolution(nn.Conv2d):
    """A convolution of which the same holds."""

    def reset_parameters(self) -> None:
        """Nothing."""


class Part(nn.Module):
    """What is built of one layer."""

    def __init__(self, label: Label) -> None:
        super().__init__()
        self._take_activation(label)

    def _take_activation(self, label: Label) -> None:
        self.name, self.activation = label.activation, activation_of(label.activation, label.name)
        self.activate = activate(self.name)

    def set_weights(self, label: Label, entering: Emission, rng: np.random.Generator) -> None:
        """Behind the first convolution of a residual layer stands its own activation."""
        for i, weighted in enumerate(m for m in self.modules() if isinstance(m, Dense | Convolution)):
            n_in = weighted.weight.shape[1]
            draw(
                weighted, entering if i == 0 else Emission.equal(n_in, *moments(self.name)), self.activation.spread, rng
            )

    def emission(self, label: Label, entering: Emission, n_channels: int) -> Emission:
        return Emission.equal(n_channels, *moments(self.name)) if OPERATIONS[label.operation].has_weights else entering

    def lowered(self, u: int, taken: str) -> Steps:
        raise NotImplementedError

    def _activated(self, u: int, taken: str) -> Step:
        return Step(f"x{u}", "activation", (taken,), u, activation=self.name)


class DenseLayer(Part, Dense):
    """Weights, bias, activation."""

    def __init__(self, entering: int, units: int, label: Label) -> None:
        Dense.__init__(self, entering, units)
        self._take_activation(label)

    def forward(self, x: Tensor) -> Tensor:
        return self.activate(functional.linear(x, self.weight, self.bias))

    def lowered(self, u: int, taken: str) -> Steps:
        yield Step(f"sum{u}", "linear", (taken,), u, f"layers.{u}", f"layer{u}", self)
        yield self._activated(u, f"sum{u}")


class DecisionLayer(Part, Dense):
    """Weights and bias; the output averages."""

    def __init__(self, entering: int, n_outputs: int) -> None:
        Dense.__init__(self, entering, n_outputs)

    def set_weights(self, label: Label, entering: Emission, rng: np.random.Generator) -> None:
        draw(self, entering, DECISION_SPREAD, rng)

    def emission(self, label: Label, entering: Emission, n_channels: int) -> Emission:
        return entering  # nobody but the output stands behind it

    def lowered(self, u: int, taken: str) -> Steps:
        yield Step(f"x{u}", "linear", (taken,), u, f"layers.{u}", f"decision{u}", self)


class WeightedLayer(Part):
    """Weights, normalisation, activation; ``layers.3.dense``, ``.conv`` and ``.norm`` name the weights."""

    def __init__(self, weighted: Dense | Convolution, label: Label) -> None:
        super().__init__(label)
        self.own, norm = ("dense", nn.BatchNorm1d) if isinstance(weighted, Dense) else ("conv", nn.BatchNorm2d)
        self.add_module(self.own, weighted)
        made: Mapping[str, Callable[[int], nn.Module]] = {"batch": norm, "layer": nn.LayerNorm}
        self.norm = made[label.norm](weighted.weight.shape[0]) if label.normalises else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.activate(self.norm(getattr(self, self.own)(x)))

    def lowered(self, u: int, taken: str) -> Steps:
        op, attribute = ("linear", f"layer{u}") if self.own == "dense" else ("conv", f"conv{u}")
        yield Step(f"sum{u}", op, (taken,), u, f"layers.{u}.{self.own}", attribute, getattr(self, self.own))
        last = yield from _normalised(self.norm, f"layers.{u}.norm", f"norm{u}", f"sum{u}", u)
        yield self._activated(u, last)


class ResidualLayer(Part):
    """Several convolutions with normalisation, activations between them, the shortcut, and a last activation."""

    def __init__(self, entering: int, units: int, stride: int, label: Label) -> None:
        super().__init__(label)
        self.entering, self.units, self.stride = entering, units, stride
        self.convs, self.norms = nn.ModuleList(), nn.ModuleList()
        for i in range(label.n_convolutions):
            self.convs.append(_convolution(units if i else entering, units, 1 if i else stride, label))
            self.norms.append(nn.BatchNorm2d(units) if label.normalises else nn.Identity())

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            y = norm(conv(self.activate(y) if i else y))
        return self.activate(y + shortcut(x, y.shape[1], self.stride))

    def lowered(self, u: int, taken: str) -> Steps:
        value = taken
        for letter, i in zip(ascii_lowercase, range(len(self.convs)), strict=False):
            if i:
                yield Step(f"y{u}{letter}", "activation", (value,), u, activation=self.name)
                value = f"y{u}{letter}"
            yield Step(
                f"sum{u}{letter}", "conv", (value,), u, f"layers.{u}.convs.{i}", f"conv{u}{letter}", self.convs[i]
            )
            names = f"layers.{u}.norms.{i}", f"norm{u}{letter}"
            value = yield from _normalised(self.norms[i], *names, f"sum{u}{letter}", u)
        short = taken
        if self.stride > 1:
            yield Step(f"small{u}", "avg_pool", (short,), u, size=self.stride)
            short = f"small{u}"
        if missing := self.units - self.entering:
            op, size = ("pad", missing) if missing > 0 else ("cut", self.units)
            yield Step(f"short{u}", op, (short,), u, size=size)
            short = f"short{u}"
        yield Step(f"added{u}", "add", (value, short), u)
        yield self._activated(u, f"added{u}")


class ResidualDenseLayer(Part):
    """x + W2 act(W1 norm(x)), x projected where its width is not the layer's."""

    def __init__(self, entering: int, units: int, label: Label) -> None:
        super().__init__(label)
        self.norm = nn.LayerNorm(entering)
        self.first, self.second = Dense(entering, units), Dense(units, units)
        self.projection = Dense(entering, units) if entering != units else None

    def forward(self, x: Tensor) -> Tensor:
        branch: Tensor = self.second(self.activate(self.first(self.norm(x))))
        return branch + (x if self.projection is None else self.projection(x))

    def set_weights(self, label: Label, entering: Emission, rng: np.random.Generator) -> None:
        draw(self.first, Emission.equal(self.first.in_features), self.activation.spread, rng)
        draw(self.second, Emission.equal(self.second.in_features, *moments(self.name)), BRANCH_SPREAD, rng)
        if self.projection is not None:
            draw(self.projection, entering, 1.0, rng)

    def emission(self, label: Label, entering: Emission, n_channels: int) -> Emission:
        short = entering if self.projection is None else Emission.equal(n_channels)
        return Emission(short.means, short.powers + np.float32(BRANCH_SPREAD**2))

    def lowered(self, u: int, taken: str) -> Steps:
        yield Step(f"norm{u}", "layer_norm", (taken,), u, f"layers.{u}.norm", f"norm{u}", self.norm)
        yield Step(f"sum{u}a", "linear", (f"norm{u}",), u, f"layers.{u}.first", f"first{u}", self.first)
        yield Step(f"y{u}", "activation", (f"sum{u}a",), u, activation=self.name)
        yield Step(f"sum{u}b", "linear", (f"y{u}",), u, f"layers.{u}.second", f"second{u}", self.second)
        short = taken
        if self.projection is not None:
            short = f"short{u}"
            yield Step(short, "linear", (taken,), u, f"layers.{u}.projection", f"projection{u}", self.projection)
        yield Step(f"x{u}", "add", (f"sum{u}b", short), u)


class NormLayer(Part, nn.LayerNorm):
    """Normalisation over the channels of each sample."""

    def __init__(self, entering: int) -> None:
        nn.LayerNorm.__init__(self, entering)

    def set_weights(self, label: Label, entering: Emission, rng: np.random.Generator) -> None:
        """Nothing is drawn."""

    def emission(self, label: Label, entering: Emission, n_channels: int) -> Emission:
        return Emission.equal(n_channels)

    def lowered(self, u: int, taken: str) -> Steps:
        yield Step(f"x{u}", "layer_norm", (taken,), u, f"layers.{u}", f"norm{u}", self)


class Pool(Part):
    """The largest or the mean of each window, those that cross the border cut there; without a window, what comes."""

    def __init__(self, window: int, label: Label) -> None:
        super().__init__(label)
        self.window, self.pooling = window, label.pooling

    def forward(self, x: Tensor) -> Tensor:
        if self.window == 1:
            return x
        pool = functional.max_pool2d if self.pooling == "max" else functional.avg_pool2d
        return pool(x, self.window, ceil_mode=True)

    def lowered(self, u: int, taken: str) -> Steps:
        if self.window > 1:
            yield Step(f"x{u}", "max_pool" if self.pooling == "max" else "avg_pool", (taken,), u, size=self.window)


class OwnLayer(Part):
    """A person's own module, made by what the label's import path names."""

    def __init__(self, make: Callable[[], object], leaving: int, label: Label) -> None:
        super().__init__(label)
        self.label, self.leaving, self._make = label.name, leaving, make
        self.module = self._made(0)

    def _made(self, seed: int) -> nn.Module:
        """Its constructor draws from torch's global state: that is set for it, and put back."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                made = self._make()
            except Exception as error:  # a person's own code
                raise VocabularyError(
                    f"label {self.label}: its module cannot be made: {type(error).__name__}: {str(error)[:160]}"
                ) from error
        if not isinstance(made, nn.Module):
            raise VocabularyError(f"label {self.label}: expected a torch.nn.Module, got {type(made).__name__}")
        return made

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.activate(self.module(x))
        if y.shape[1] != self.leaving:
            raise VocabularyError(f"label {self.label}: expected {self.leaving} channels to leave it, got {y.shape[1]}")
        return y

    def set_weights(self, label: Label, entering: Emission, rng: np.random.Generator) -> None:
        self.module.load_state_dict(self._made(int(rng.integers(2**31))).state_dict())

    def emission(self, label: Label, entering: Emission, n_channels: int) -> Emission:
        return Emission.equal(n_channels)

    def lowered(self, u: int, taken: str) -> Steps:
        yield Step(f"x{u}", "module", (taken,), u, f"layers.{u}.module", f"module{u}", self.module)


# -- from labels to parts ----------------------------------------------------------------------------------------------


def part_of(label: Label, layer: Layer, entering: int, n_outputs: int) -> tuple[Part, int]:
    """The part of one layer, and the channels that leave it; VocabularyError where the label does not say enough."""
    if label.role is Role.DECISION:
        return DecisionLayer(entering, n_outputs), n_outputs
    units, stride = layer.units or entering, layer.stride or label.shrinks
    return BUILDERS[label.operation](label, entering, units, stride), units * label.width_factor


def _dense(label: Label, entering: int, units: int, stride: int) -> Part:
    if label.emits is Signal.IMAGE:
        return WeightedLayer(Convolution(entering, units, 1, stride), label)
    return WeightedLayer(Dense(entering, units), label) if label.normalises else DenseLayer(entering, units, label)


def _convolutions(label: Label, entering: int, units: int, stride: int) -> Part:
    if label.n_convolutions > 1:
        return ResidualLayer(entering, units, stride, label)
    return WeightedLayer(_convolution(entering, units, stride, label), label)


def _convolution(entering: int, units: int, stride: int, label: Label) -> Convolution:
    k = label.kernel_size or 1
    if k % 2 == 0:
        raise VocabularyError(f"label {label.name}: only odd kernel sizes keep the size of an image, got {k}")
    return Convolution(entering, units, k, stride, padding=k // 2, bias=False)


def _pool(label: Label, entering: int, units: int, stride: int) -> Part:
    if label.activation or (label.emits is not Signal.IMAGE if label.pooling else stride > 1):
        raise VocabularyError(
            f"label {label.name}: cannot be built; a layer without units and kernel_size is a pool of images "
            "(pooling) or passes on what it gets"
        )
    return Pool(stride, label)


def own_module(label: Label) -> Any:
    """What the label's ``module`` names, imported; VocabularyError where it cannot be."""
    path, _, name = label.module.partition(":")
    try:
        found: Any = import_module(path)
        for attribute in name.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise VocabularyError(f"label {label.name}: cannot import {label.module!r}: {error}") from None
    return found


def _own(label: Label, entering: int, units: int, stride: int) -> Part:
    found = own_module(label)
    leaving = units * label.width_factor
    options = {"stride": stride} if label.strides or label.shrinks > 1 else {}
    return OwnLayer(lambda: found(entering, leaving, **options), leaving, label)


BUILDERS: Mapping[str, Callable[[Label, int, int, int], Part]] = {
    "dense": _dense,
    "convolution": _convolutions,
    "pool": _pool,
    "identity": _pool,
    "layer-norm": lambda label, entering, units, stride: NormLayer(entering),
    "res-dense": lambda label, entering, units, stride: ResidualDenseLayer(entering, units, label),
    "module": _own,
}
# By the name of the module's class or of the function, in lower case and without underscores.
TRACED: Mapping[str, tuple[str, ...]] = {
    "dense": ("linear", "lazylinear"),
    "convolution": ("conv2d", "lazyconv2d"),
    "layer-norm": ("layernorm",),
    "max": ("maxpool2d",),
    "average": ("avgpool2d",),
}


def shortcut(x: Tensor, n_channels: int, stride: int) -> Tensor:
    """What a residual layer adds: its input, averaged where it shrinks, padded with zeros or cut to ``n_channels``."""
    if stride > 1:
        x = functional.avg_pool2d(x, stride, ceil_mode=True)
    missing = n_channels - x.shape[1]
    if missing > 0:
        return functional.pad(x, (0, 0, 0, 0, 0, missing))
    return x[:, :n_channels] if missing else x


def draw(weighted: Dense | Convolution, entering: Emission, spread: float, rng: np.random.Generator) -> None:
    """Weights of which the sums have this spread, and biases that take the mean of what enters out of them."""
    weight = weighted.weight
    n_in, window = weight.shape[1], math.prod(weight.shape[2:])
    scale = spread / np.sqrt(n_in * window * entering.powers)
    drawn = rng.standard_normal(tuple(weight.shape), dtype=np.float32)
    drawn *= scale.reshape(1, -1, *[1] * (weight.ndim - 2))
    weight.copy_(torch.from_numpy(drawn))
    if weighted.bias is not None:
        sums = drawn.reshape(*drawn.shape[:2], -1).sum(axis=2)
        # Not ``sums @ means``: OpenBLAS's product in single precision also multiplies what lies on the stack behind
        # its own numbers, which changes nothing but now and then warns of an invalid value.
        weighted.bias.copy_(torch.from_numpy(-np.einsum("oi,i->o", sums, entering.means)))


def _normalised(norm: nn.Module, part: str, attribute: str, taken: str, u: int) -> Generator[Step, None, str]:
    """Yields the step of the normalisation, if there is one; returns the name of what it gives."""
    if isinstance(norm, nn.Identity):
        return taken
    op = "layer_norm" if isinstance(norm, nn.LayerNorm) else "norm"
    yield Step(attribute, op, (taken,), u, part, attribute, norm)
    return attribute

"""From an ``Architecture`` to a ``torch.nn.Module``: Section 2.2 made of weights.

Every layer becomes one part, by the fields of its label and never by its name; ``nasbot.architecture.resources``
counts exactly what is built here.

convolution    label with ``kernel_size`` k: k x k, padded so that n pixels become ceil(n / stride), no bias; batch
               normalisation; activation. With ``n_convolutions`` 2 (res) conv-norm-activation-conv-norm, then the
               shortcut is added, then the activation (He et al. 2016). The shortcut has no weights: averaged over
               windows where there is a stride, padded with zeros where channels are missing, cut where there are
               too many
dense          label with units and without ``kernel_size``: weights and bias, then the activation
pool           label with ``pooling``: windows of 2 x 2 for a label that shrinks by 2, the last ones cut at the border
decision       dense to ``n_outputs``

Parents are concatenated in ascending order. A layer that emits a vector averages each incoming image over its pixels
first. The output averages the decision layers: numbers for regression, probabilities for classification.

Parameters are named by the index of their layer in the architecture: ``layers.3.weight`` and ``layers.3.bias`` of a
dense or decision layer, ``layers.3.conv.weight`` and ``layers.3.norm.weight`` of a convolution, ``layers.3.convs.0…``
and ``layers.3.norms.0…`` where there are several, ``layers.3.dense…`` and ``layers.3.norm…`` of a dense layer with
batch normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from nasbot._rng import Role as Purpose
from nasbot._rng import stream
from nasbot.architecture import Architecture, Label, Layer, Role, Signal
from nasbot.architecture.resources import check_whole, checked_input_shape
from nasbot.errors import VocabularyError
from nasbot.training.activations import activation_of, moments

SOFTMAX = "softmax"  # the activation of decision labels that classify; "" is that of those that regress
# Small enough that a network begins by predicting next to nothing, large enough that what is behind learns at once.
DECISION_SPREAD = 0.3

Array: TypeAlias = NDArray[np.float32]


class Emission(NamedTuple):
    """What a layer is expected to emit at the beginning, channel by channel: see ``activations``."""

    means: Array  # (channels,)
    powers: Array  # (channels,)


class Network(nn.Module):
    """The module of one architecture. Takes (n, features) or (n, channels, height, width).

    Gives (n, n_outputs): for regression the mean of the decision layers; for classification the logarithm of the mean
    of their probabilities, so ``-network(x)[i, y[i]]`` is the negative log-likelihood of sample i.
    """

    def __init__(self, arch: Architecture, input_shape: tuple[int, ...], n_outputs: int) -> None:
        super().__init__()
        self.arch, self.input_shape, self.n_outputs = arch, input_shape, n_outputs
        self.classifies = _classifies(arch)
        self.layers, self.dropouts = nn.ModuleDict(), nn.ModuleDict()
        self.steps: list[Step] = []
        channels = [input_shape[0]]
        for u, layer in enumerate(arch.layers[1:-1], start=1):
            label = arch.vocabulary.by_name[layer.label]
            entering = sum(channels[p] for p in arch.parents[u])
            part, leaving = _part(label, layer, entering, n_outputs)
            self.layers[str(u)] = part
            if label.dropout and label.role is Role.PROCESSING:
                self.dropouts[str(u)] = _dropout(label)
                part = nn.Sequential(part, self.dropouts[str(u)])
            channels.append(leaving)
            self.steps.append(Step(u, arch.parents[u], part, _gatherer(arch, u), _last_uses(arch, u)))

    def forward(self, x: Tensor) -> Tensor:
        """Predictions; see the class."""
        values: list[Tensor | None] = [None] * len(self.arch.layers)
        values[0] = x
        for u, parents, part, gather, done_with in self.steps:
            values[u] = part(gather([values[p] for p in parents]))
            for p in done_with:  # where no gradient is wanted, nothing else keeps it
                values[p] = None
        decisions = [values[u] for u in self.arch.parents[-1]]
        return averaged(decisions, classifies=self.classifies)  # type: ignore[arg-type]  # none of these is done with

    @property
    def takes_images(self) -> bool:
        """Whether its input has channels, height and width."""
        return len(self.input_shape) == 3


class Step(NamedTuple):
    """One layer's work: what it takes, its part, how its parents come together, and who is not needed after it."""

    u: int
    parents: tuple[int, ...]
    part: nn.Module
    gather: Callable[[list[Tensor | None]], Tensor]
    done_with: tuple[int, ...]


def build(arch: Architecture, *, input_shape: Sequence[int], n_outputs: int, seed: int) -> Network:
    """The network of ``arch``, its weights as ``seed`` gives them: the same in any process, on any day.

    Touches no global random state. Raises VocabularyError where a label does not say what is to be built.
    """
    shape = checked_input_shape(arch.vocabulary, list(input_shape))
    check_whole("n_outputs", n_outputs)
    network = Network(arch, shape, n_outputs)
    initialise(network, seed=seed)
    return network


# -- the parts ---------------------------------------------------------------------------------------------------------


class Dense(nn.Linear):
    """A linear map whose weights are set by ``initialise``: drawing others first would touch the global state."""

    def reset_parameters(self) -> None:
        """Nothing."""


class Convolution(nn.Conv2d):
    """A convolution of which the same holds."""

    def reset_parameters(self) -> None:
        """Nothing."""


class DenseLayer(Dense):
    """Weights, bias, activation."""

    def __init__(self, entering: int, units: int, label: Label) -> None:
        super().__init__(entering, units)
        self.activation = activation_of(label.activation, label.name).apply

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(functional.linear(x, self.weight, self.bias))


class NormalisedDenseLayer(nn.Module):
    """Weights, bias, batch normalisation, activation."""

    def __init__(self, entering: int, units: int, label: Label) -> None:
        super().__init__()
        self.dense = Dense(entering, units)
        self.norm = nn.BatchNorm1d(units)
        self.activation = activation_of(label.activation, label.name).apply

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.norm(self.dense(x)))


class PixelLayer(nn.Module):
    """A dense layer at every pixel: for labels that have units and emit images, but no kernel."""

    def __init__(self, entering: int, units: int, stride: int, label: Label) -> None:
        super().__init__()
        self.conv = Convolution(entering, units, 1, stride)
        self.norm = nn.BatchNorm2d(units) if label.normalises else nn.Identity()
        self.activation = activation_of(label.activation, label.name).apply

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.norm(self.conv(x)))


class ConvolutionLayer(nn.Module):
    """Convolution, batch normalisation, activation."""

    def __init__(self, entering: int, units: int, stride: int, label: Label) -> None:
        super().__init__()
        k = _odd_kernel(label)
        self.conv = Convolution(entering, units, k, stride, padding=k // 2, bias=False)
        self.norm = nn.BatchNorm2d(units) if label.normalises else nn.Identity()
        self.activation = activation_of(label.activation, label.name).apply

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.norm(self.conv(x)))


class ResidualLayer(nn.Module):
    """Several convolutions with normalisation, activations between them, the shortcut, and a last activation."""

    def __init__(self, entering: int, units: int, stride: int, label: Label) -> None:
        super().__init__()
        k, channels, strides = _odd_kernel(label), entering, stride
        self.stride = stride
        self.convs, self.norms = nn.ModuleList(), nn.ModuleList()
        for _ in range(label.n_convolutions):
            self.convs.append(Convolution(channels, units, k, strides, padding=k // 2, bias=False))
            self.norms.append(nn.BatchNorm2d(units) if label.normalises else nn.Identity())
            channels, strides = units, 1
        self.activation = activation_of(label.activation, label.name).apply

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            y = norm(conv(self.activation(y) if i else y))
        return self.activation(y + shortcut(x, y.shape[1], self.stride))


class Pool(nn.Module):
    """The largest or the mean of each window; windows that cross the border are cut there."""

    def __init__(self, window: int, label: Label) -> None:
        super().__init__()
        self.window, self.pooling = window, label.pooling

    def forward(self, x: Tensor) -> Tensor:
        pool = functional.max_pool2d if self.pooling == "max" else functional.avg_pool2d
        return pool(x, self.window, ceil_mode=True)


def shortcut(x: Tensor, n_channels: int, stride: int) -> Tensor:
    """What a residual layer adds: its input, averaged where it shrinks, padded with zeros or cut to ``n_channels``."""
    if stride > 1:
        x = functional.avg_pool2d(x, stride, ceil_mode=True)
    missing = n_channels - x.shape[1]
    if missing > 0:
        return functional.pad(x, (0, 0, 0, 0, 0, missing))
    return x[:, :n_channels] if missing else x


def averaged(decisions: Sequence[Tensor], *, classifies: bool) -> Tensor:
    """The output: decision layers averaged, probabilities through their logarithms so that none underflows."""
    if not classifies:
        return decisions[0] if len(decisions) == 1 else torch.stack(tuple(decisions)).mean(dim=0)
    logs = [functional.log_softmax(decision, dim=1) for decision in decisions]
    if len(logs) == 1:
        return logs[0]
    return torch.logsumexp(torch.stack(logs), dim=0) - math.log(len(logs))


# -- from labels to parts ----------------------------------------------------------------------------------------------


def _part(label: Label, layer: Layer, entering: int, n_outputs: int) -> tuple[nn.Module, int]:
    """The part of one layer, and the channels that leave it."""
    if label.role is Role.DECISION:
        return Dense(entering, n_outputs), n_outputs
    units, stride = layer.units or entering, layer.stride or label.shrinks
    part: nn.Module
    if label.kernel_size is not None:
        made = ConvolutionLayer if label.n_convolutions == 1 else ResidualLayer
        part = made(entering, units, stride, label)
    elif label.takes_units:
        part = _dense_part(label, entering, units, stride)
    else:
        return _part_without_weights(label, stride), entering
    return part, units * label.width_factor


def _dropout(label: Label) -> nn.Module:
    return nn.Dropout2d(label.dropout) if label.emits is Signal.IMAGE else nn.Dropout(label.dropout)


def _dense_part(label: Label, entering: int, units: int, stride: int) -> nn.Module:
    if label.emits is Signal.IMAGE:
        return PixelLayer(entering, units, stride, label)
    return (NormalisedDenseLayer if label.normalises else DenseLayer)(entering, units, label)


def _part_without_weights(label: Label, window: int) -> nn.Module:
    if label.pooling and label.emits is Signal.IMAGE:
        return Pool(window, label) if window > 1 else nn.Identity()
    if label.pooling or window > 1 or label.activation:
        raise VocabularyError(
            f"label {label.name}: cannot be built; a layer without units and kernel_size is a pool of images "
            "(pooling) or passes on what it gets"
        )
    return nn.Identity()


def _odd_kernel(label: Label) -> int:
    k = label.kernel_size or 1
    if k % 2 == 0:
        raise VocabularyError(f"label {label.name}: only odd kernel sizes keep the size of an image, got {k}")
    return k


def _classifies(arch: Architecture) -> bool:
    """What the decision labels say; VocabularyError where they say nothing, or two things."""
    kinds = {arch.vocabulary.by_name[arch.layers[u].label].activation for u in arch.decision_layers}
    if kinds == {SOFTMAX}:
        return True
    if kinds == {""}:
        return False
    said = ", ".join(sorted(repr(kind) for kind in kinds)) or "no decision layers"
    raise VocabularyError(
        f"vocabulary {arch.kind}: a network is trained where all its decision labels have activation {SOFTMAX!r} "
        f"(classification) or '' (regression), got {said}"
    )


def _gatherer(arch: Architecture, u: int) -> Callable[[list[Tensor | None]], Tensor]:
    """How the parents of layer u come together: concatenated, and averaged over pixels where a vector comes out."""
    label = arch.vocabulary.by_name[arch.layers[u].label]
    emits = [arch.vocabulary.by_name[arch.layers[p].label].emits for p in arch.parents[u]]
    if label.emits is not Signal.IMAGE and Signal.IMAGE in emits:
        return _pooled_and_concatenated
    return _only if len(emits) == 1 else _concatenated


def _only(values: list[Tensor | None]) -> Tensor:
    value = values[0]
    assert value is not None
    return value


def _concatenated(values: list[Tensor | None]) -> Tensor:
    return torch.cat(values, dim=1)  # type: ignore[arg-type]  # parents come before their children


def _pooled_and_concatenated(values: list[Tensor | None]) -> Tensor:
    vectors = [value.mean(dim=(2, 3)) if value.ndim == 4 else value for value in values if value is not None]
    return vectors[0] if len(vectors) == 1 else torch.cat(vectors, dim=1)


def _last_uses(arch: Architecture, u: int) -> tuple[int, ...]:
    return tuple(p for p in arch.parents[u] if arch.children[p][-1] == u)


# -- how weights begin -------------------------------------------------------------------------------------------------


@torch.no_grad()
def initialise(network: Network, *, seed: int) -> None:
    """Set all weights as ``seed`` says, so that every layer's sums begin with the spread its activation likes."""
    rng = stream(seed, 0, Purpose.WEIGHTS)
    n_channels = network.input_shape[0]
    emissions = [Emission(np.zeros(n_channels, np.float32), np.ones(n_channels, np.float32))]
    arch = network.arch
    for u, layer in enumerate(arch.layers[1:-1], start=1):
        label = arch.vocabulary.by_name[layer.label]
        entering = Emission(
            np.concatenate([emissions[p].means for p in arch.parents[u]]),
            np.concatenate([emissions[p].powers for p in arch.parents[u]]),
        )
        _set_weights(network.layers[str(u)], label, entering, rng)
        emissions.append(_emission(label, layer, entering))


def _emission(label: Label, layer: Layer, entering: Emission) -> Emission:
    has_weights = label.role is Role.PROCESSING and (label.kernel_size is not None or label.takes_units)
    if not has_weights:  # it passes on what it gets, or nobody but the output stands behind it
        return entering
    n_channels = (layer.units or len(entering.means)) * label.width_factor
    mean, power = moments(label.activation)
    return Emission(np.full(n_channels, mean, np.float32), np.full(n_channels, power, np.float32))


def _set_weights(part: nn.Module, label: Label, entering: Emission, rng: np.random.Generator) -> None:
    """Weights and biases of one layer; behind the first convolution of a residual layer stands its own activation."""
    is_decision = label.role is Role.DECISION
    spread = DECISION_SPREAD if is_decision else activation_of(label.activation, label.name).spread
    for i, weighted in enumerate(m for m in part.modules() if isinstance(m, Dense | Convolution)):
        weight = weighted.weight
        n_in, window = weight.shape[1], math.prod(weight.shape[2:])
        powers = entering.powers if i == 0 else np.full(n_in, moments(label.activation).power, np.float32)
        scale = spread / np.sqrt(n_in * window * powers)
        drawn = rng.standard_normal(tuple(weight.shape), dtype=np.float32)
        drawn *= scale.reshape(1, -1, *[1] * (weight.ndim - 2))
        weight.copy_(torch.from_numpy(drawn))
        if weighted.bias is not None:
            sums = drawn.reshape(*drawn.shape[:2], -1).sum(axis=2)
            # Not ``sums @ means``: OpenBLAS's product in single precision also multiplies what lies on the stack behind
            # its own numbers, which changes nothing but now and then warns of an invalid value.
            weighted.bias.copy_(torch.from_numpy(-np.einsum("oi,i->o", sums, entering.means)))

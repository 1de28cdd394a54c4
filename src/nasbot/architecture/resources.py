"""What a network costs on given data: parameters, floating-point operations and memory, layer by layer.

Counted for the PyTorch module that ``nasbot.training`` builds from the graph, by the fields of each label and never by
its name. An image has channels * height * width elements, a vector has features; parents are concatenated, and a layer
that emits a vector (fc, decision layers) first averages each incoming image to one number per channel.

convolution    label with ``kernel_size`` k: c_in * c_out * k * k weights and no bias, then batch normalisation (2 per
               channel) and an activation. A label without units keeps the number of channels. Where
               ``n_convolutions`` is 2 (res) the first has the stride and the second goes from c_out to c_out; the
               shortcut, identity or padded with zeros, has no parameters
dense          label with units and without ``kernel_size``: (c_in + 1) * units, the 1 being the bias
               Batch normalisation stands where ``Label.normalises`` says: convolutions have it by default, dense
               layers not
decision       dense to ``n_outputs``, with bias
pool and rest  nothing to learn; as many channels leave as enter

parameters     exact: what ``sum(p.numel() for p in module.parameters())`` says. Running means and variances of batch
               normalisation are buffers, not parameters
flops          two for every multiply-add of the convolutions and dense layers, in one forward pass of one sample;
               biases, normalisation, activations, pools, shortcuts and averages are not counted
activations    bytes kept for the backward pass of one sample: 4 for each number that a convolution or a dense layer
               gives before and after its activation; 12 for each number a pool gives (8 for where the maximum was);
               4 for each number of the copy made where parents are concatenated or averaged; the sample itself and
               the outputs. An upper bound: PyTorch keeps less of some (of a ReLU only the result, of an average
               pool no index)
memory         16 bytes for each parameter (weight, gradient, two moments of an optimiser such as Adam) and the
               activations of a batch. Work space of the libraries and the interpreter come on top
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from nasbot.architecture.labels import Label, Role, Signal
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.architecture.graph import Architecture
    from nasbot.architecture.labels import Vocabulary

BYTES_PER_NUMBER = 4  # float32
BYTES_PER_INDEX = 8  # int64, where max pooling took its value from
BYTES_PER_PARAMETER = 4 * BYTES_PER_NUMBER  # the weight, its gradient and the two moments of Adam

Shape = tuple[int, ...]  # (features,) or (channels, height, width)


class LayerResources(NamedTuple):
    """One layer's part: the shape of what leaves it, and what it adds to each total."""

    shape: Shape
    parameters: int
    flops: int
    activation_bytes: int

    def memory_bytes(self, batch_size: int) -> int:
        """This layer's part of ``Resources.memory_bytes``."""
        return self.parameters * BYTES_PER_PARAMETER + self.activation_bytes * batch_size


@dataclass(frozen=True)
class Resources:
    """A network's totals; flops and activations are of one sample. ``layers`` has the parts, in the network's order."""

    parameters: int
    flops: int
    activation_bytes: int
    layers: tuple[LayerResources, ...]

    def memory_bytes(self, batch_size: int) -> int:
        """Bytes that training with batches of this size needs: weights, gradients, moments and activations."""
        return self.parameters * BYTES_PER_PARAMETER + self.activation_bytes * batch_size


def resources(arch: Architecture, input_shape: Sequence[int], n_outputs: int = 1) -> Resources:
    """Parameters, flops and activations of ``arch`` on samples of ``input_shape``; the module says how each is counted.

    ``input_shape`` is (features,) where the input emits vectors (MLPs) and (channels, height, width) where it emits
    images; ``n_outputs`` is what each decision layer has: 1 for one regression target, else the number of classes.
    """
    shape = checked_input_shape(arch.vocabulary, input_shape)
    check_whole("n_outputs", n_outputs)
    layers: list[LayerResources] = []
    for u, layer in enumerate(arch.layers):
        label = arch.vocabulary.by_name[layer.label]
        entering = [layers[p].shape for p in arch.parents[u]]
        layers.append(_layer_resources(label, layer.units, layer.stride, entering, shape, n_outputs))
    return Resources(
        sum([part.parameters for part in layers]),
        sum([part.flops for part in layers]),
        sum([part.activation_bytes for part in layers]),
        tuple(layers),
    )


def checked_input_shape(vocabulary: Vocabulary, input_shape: object) -> Shape:
    """The shape as a tuple; raises OptionError unless it is of the rank that the vocabulary's input emits."""
    takes_images = vocabulary.by_name[vocabulary.input_label].emits is Signal.IMAGE
    expected = "(channels, height, width)" if takes_images else "(features,)"
    shape = tuple(input_shape) if isinstance(input_shape, list | tuple) else ()
    if len(shape) != (3 if takes_images else 1) or not all(type(n) is int and n >= 1 for n in shape):
        raise OptionError(
            f"input_shape: expected {expected} of whole numbers >= 1 for {vocabulary.name}, got {str(input_shape)[:60]}"
        )
    return shape


def check_whole(name: str, value: object, *, at_least: int = 1) -> None:
    """Raise OptionError unless ``value`` is a whole number from ``at_least`` on."""
    if type(value) is not int or value < at_least:
        raise OptionError(f"{name}: expected a whole number >= {at_least}, got {value!r}")


def _layer_resources(
    label: Label, units: int | None, stride: int | None, entering: list[Shape], input_shape: Shape, n_outputs: int
) -> LayerResources:
    if label.role is Role.INPUT:
        return LayerResources(input_shape, 0, 0, prod(input_shape) * BYTES_PER_NUMBER)
    if label.role is Role.OUTPUT:
        return _output(label, entering)
    gathered = _gathered(label, entering)
    copied = prod(gathered) * BYTES_PER_NUMBER if [gathered] != entering else 0
    if label.role is Role.DECISION:
        part = _dense(gathered, n_outputs, 1, normalises=False)
    elif label.kernel_size is not None:
        part = _convolutions(label, gathered, units or gathered[0], stride or label.shrinks)
    elif units is not None:
        part = _dense(
            _shrunk(gathered, stride or label.shrinks), units, label.width_factor, normalises=label.normalises
        )
    else:
        part = _pool(_shrunk(gathered, stride or label.shrinks))
    return part._replace(activation_bytes=part.activation_bytes + copied) if copied else part


def _gathered(label: Label, entering: list[Shape]) -> Shape:
    """The shape of the concatenated parents: channels add up, images are averaged away where a vector comes out."""
    channels = sum([shape[0] for shape in entering])
    if label.emits is Signal.IMAGE:
        return (channels, *max(entering, key=len)[1:])
    return (channels,)


def _shrunk(shape: Shape, stride: int) -> Shape:
    """Padding makes every layer turn n pixels into ceil(n / stride)."""
    return (shape[0], *[-(-n // stride) for n in shape[1:]])


def _convolutions(label: Label, gathered: Shape, units: int, stride: int) -> LayerResources:
    """Convolution, normalisation and activation, ``n_convolutions`` times; the shortcut of a residual layer is free."""
    _, *pixels = _shrunk(gathered, stride)
    window = (label.kernel_size or 1) ** 2
    weights = window * units * (gathered[0] + (label.n_convolutions - 1) * units)
    n_pixels = prod(pixels)
    kept = label.n_convolutions * units * n_pixels + (label.n_convolutions - 1 + label.width_factor) * units * n_pixels
    return LayerResources(
        (label.width_factor * units, *pixels),
        weights + (2 * units * label.n_convolutions if label.normalises else 0),
        2 * weights * n_pixels,
        kept * BYTES_PER_NUMBER,
    )


def _dense(gathered: Shape, units: int, width_factor: int, *, normalises: bool) -> LayerResources:
    """At every pixel, for a label that emits images and has no kernel; normalisation keeps one number more of each."""
    channels, *pixels = gathered
    kept = (1 + normalises + width_factor) * units * prod(pixels)
    return LayerResources(
        (width_factor * units, *pixels),
        (channels + 1 + 2 * normalises) * units,
        2 * channels * units * prod(pixels),
        kept * BYTES_PER_NUMBER,
    )


def _pool(shape: Shape) -> LayerResources:
    return LayerResources(shape, 0, 0, prod(shape) * (BYTES_PER_NUMBER + BYTES_PER_INDEX))


def _output(label: Label, entering: list[Shape]) -> LayerResources:
    """Decision layers have equal shapes and are averaged; without decision labels the output passes on what comes."""
    shape = entering[0] if len(set(entering)) == 1 else _gathered(label, entering)
    return LayerResources(shape, 0, 0, prod(shape) * BYTES_PER_NUMBER)

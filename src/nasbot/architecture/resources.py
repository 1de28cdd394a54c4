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
from typing import TYPE_CHECKING

from nasbot.architecture.labels import Label, Role, Signal
from nasbot.architecture.operations import (
    BYTES_PER_NUMBER,
    BYTES_PER_PARAMETER,
    OPERATIONS,
    LayerResources,
    Shape,
)
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.architecture.graph import Architecture
    from nasbot.architecture.labels import Vocabulary


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
        label = arch.vocabulary.label_of(layer)
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
    gathered = _gathered(label, entering)
    operation = OPERATIONS[label.operation]
    if label.role is Role.OUTPUT:  # decision layers have equal shapes and are averaged; others pass on what comes
        return operation.resources(label, entering[0] if len(set(entering)) == 1 else gathered, 0, 1)
    units = n_outputs if label.role is Role.DECISION else units or gathered[0]
    part = operation.resources(label, gathered, units, stride or label.shrinks)
    if [gathered] == entering:
        return part
    return part._replace(activation_bytes=part.activation_bytes + prod(gathered) * BYTES_PER_NUMBER)


def _gathered(label: Label, entering: list[Shape]) -> Shape:
    """The shape of the concatenated parents: channels add up, images are averaged away where a vector comes out."""
    channels = sum([shape[0] for shape in entering])
    if label.emits is Signal.IMAGE:
        return (channels, *max(entering, key=len)[1:])
    return (channels,)

"""What each type of layer is: the labels it fits, the shape that leaves it, and what it costs.

A label names its operation; ``nasbot.training.operations`` has the other half, what is built of it. A new type of
layer is a class here, a class there, and a label in a vocabulary. ``resources.py`` says what is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from nasbot.errors import VocabularyError

if TYPE_CHECKING:
    from nasbot.architecture.labels import Label

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


class Operation:
    """One type of layer. The ends of a network are operations too, and pass on what they get."""

    has_weights: ClassVar[bool] = False  # that are drawn anew for each layer, so that what leaves has a known spread
    needs: ClassVar[Mapping[str, object]] = {}  # fields of a label and the value without which it cannot be this

    def check(self, label: Label) -> None:
        """Raise VocabularyError where the label's other fields do not fit."""
        for field, value in self.needs.items():
            if getattr(label, field) != value:
                raise VocabularyError(
                    f"label {label.name}: the operation {label.operation} needs {field}={value!s}, "
                    f"got {getattr(label, field)!s}"
                )

    def resources(self, label: Label, entering: Shape, units: int, stride: int) -> LayerResources:
        """Of a layer that takes ``entering``; ``units`` are the channels that enter where the label takes none."""
        return LayerResources(entering, 0, 0, prod(entering) * BYTES_PER_NUMBER)


class Pool(Operation):
    """Passes its channels on, over windows where there is a stride."""

    def resources(self, label: Label, entering: Shape, units: int, stride: int) -> LayerResources:
        shape = shrunk(entering, stride)
        return LayerResources(shape, 0, 0, prod(shape) * (BYTES_PER_NUMBER + BYTES_PER_INDEX))


class Dense(Operation):
    """Weights, bias, activation; at every pixel for a label that emits images and has no kernel."""

    has_weights = True

    def resources(self, label: Label, entering: Shape, units: int, stride: int) -> LayerResources:
        channels, *pixels = shrunk(entering, stride)
        n_pixels = prod(pixels)
        kept = (1 + label.normalises + label.width_factor) * units * n_pixels  # normalisation keeps one number more
        return LayerResources(
            (label.width_factor * units, *pixels),
            (channels + 1 + 2 * label.normalises) * units,
            2 * channels * units * n_pixels,
            kept * BYTES_PER_NUMBER,
        )


class Convolution(Operation):
    """Convolution, normalisation, activation, ``n_convolutions`` times; the shortcut of a residual layer is free."""

    has_weights = True

    def resources(self, label: Label, entering: Shape, units: int, stride: int) -> LayerResources:
        _, *pixels = shrunk(entering, stride)
        n, n_pixels = label.n_convolutions, prod(pixels)
        weights = (label.kernel_size or 1) ** 2 * units * (entering[0] + (n - 1) * units)
        kept = (2 * n - 1 + label.width_factor) * units * n_pixels
        return LayerResources(
            (label.width_factor * units, *pixels),
            weights + (2 * units * n if label.normalises else 0),
            2 * weights * n_pixels,
            kept * BYTES_PER_NUMBER,
        )


class LayerNorm(Operation):
    """Normalisation over the channels of each sample, with a scale and a shift for each."""

    needs: ClassVar[Mapping[str, object]] = {"takes_units": False, "takes": "vector", "emits": "vector"}

    def resources(self, label: Label, entering: Shape, units: int, stride: int) -> LayerResources:
        return LayerResources(entering, 2 * entering[0], 0, 2 * entering[0] * BYTES_PER_NUMBER)


class ResidualDense(Operation):
    """x + W2 act(W1 norm(x)); x goes through weights of its own where its width is not the layer's."""

    has_weights = True
    needs: ClassVar[Mapping[str, object]] = {
        "takes_units": True,
        "takes": "vector",
        "emits": "vector",
        "width_factor": 1,
    }

    def resources(self, label: Label, entering: Shape, units: int, stride: int) -> LayerResources:
        channels = entering[0]
        n_maps = 2 + (channels != units)
        weights = (n_maps - 1) * channels * units + units * units
        kept = 2 * channels + (n_maps + 2) * units
        return LayerResources((units,), 2 * channels + weights + n_maps * units, 2 * weights, kept * BYTES_PER_NUMBER)


class Module(Operation):
    """A person's own ``nn.Module``: counted as ``mass_factor`` dense layers, since nothing is imported to look."""

    def check(self, label: Label) -> None:
        path, _, name = label.module.partition(":")
        if not all(part.isidentifier() for part in (*path.split("."), *name.split("."))):
            raise VocabularyError(
                f"label {label.name}: module must be an import path such as 'my_layers:Gated', got {label.module!r}"
            )

    def resources(self, label: Label, entering: Shape, units: int, stride: int) -> LayerResources:
        channels, *pixels = shrunk(entering, stride)
        weights = round(label.mass_factor * channels * units)
        leaving = label.width_factor * units
        return LayerResources(
            (leaving, *pixels),
            weights + units,
            2 * weights * prod(pixels),
            (units + leaving) * prod(pixels) * BYTES_PER_NUMBER,
        )


OPERATIONS: Mapping[str, Operation] = {
    "input": Operation(),
    "output": Operation(),
    "decision": Dense(),
    "dense": Dense(),
    "convolution": Convolution(),
    "pool": Pool(),
    "identity": Pool(),
    "layer-norm": LayerNorm(),
    "res-dense": ResidualDense(),
    "module": Module(),
}


def implied_operation(label: Label) -> str:
    """The operation of a label that names none."""
    if label.role != "processing":
        return str(label.role)
    if label.module:
        return "module"
    if label.kernel_size is not None:
        return "convolution"
    return "dense" if label.takes_units else "pool" if label.pooling else "identity"


def shrunk(shape: Shape, stride: int) -> Shape:
    """Padding makes every layer turn n pixels into ceil(n / stride)."""
    return (shape[0], *[-(-n // stride) for n in shape[1:]])

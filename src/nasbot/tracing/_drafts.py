"""What ``trace`` thinks with: drafts of layers, the tensors that run between them, and tables of operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from torch import nn

from nasbot.architecture.activations import ACTIVATIONS
from nasbot.training.operations import TRACED

# By the name of the module's class or of the function, in lower case and without underscores.
EXACT = {row.traced: name for name, row in ACTIVATIONS.items() if row.traced}
NEAREST = {traced: name for name, row in ACTIVATIONS.items() for traced in row.near}
NORMALISATIONS = {
    *("batchnorm", "batchnorm1d", "batchnorm2d", "syncbatchnorm", "groupnorm", "rmsnorm"),
    *("instancenorm", "instancenorm2d", "localresponsenorm"),
}
BATCH_NORMS = {"batchnorm", "batchnorm1d", "batchnorm2d", "syncbatchnorm"}
DROPOUTS = {"dropout", "dropout1d", "dropout2d", "alphadropout", "featurealphadropout", "featuredropout"}
CONVENIENCES = {
    "stochasticdepth",
    "identity",
    "contiguous",
    "clone",
    "detach",
    "float",
    "to",
    "type",
    "pad",
    "zeropad2d",
}
FOLDED = NORMALISATIONS | DROPOUTS | CONVENIENCES
RESHAPINGS = {"flatten", "view", "reshape", "squeeze"}
SQUASHINGS = {"softmax", "logsoftmax"}
AVERAGING = {"mean", "sum", "logsumexp", "log", "exp"}
ADDITIONS = {"add", "iadd"}
SCALINGS = {"mul", "imul", "truediv", "itruediv", "div", "sub", "isub"}
WHAT_HEADS_GO_THROUGH = {
    *FOLDED,
    *TRACED["layer-norm"],
    *RESHAPINGS,
    *SQUASHINGS,
    *AVERAGING,
    *ADDITIONS,
    *SCALINGS,
    "stack",
}
POOLS = {traced: pooling for pooling in ("max", "average") for traced in TRACED[pooling]}
ADAPTIVE_POOLS = {"adaptiveavgpool2d", "adaptivemaxpool2d"}


@dataclass(eq=False)
class Draft:
    """A layer in the making; ``of`` is input, conv, pool, dense, res, norm or res-dense."""

    of: str
    name: str  # what the model calls it, for messages
    sources: tuple[Draft, ...] = ()
    label: str | None = None
    units: int | None = None
    stride: int | None = None
    kernels: tuple[int, ...] = ()
    flaws: list[str] = field(default_factory=list)  # in what the label is only the nearest one
    dropout: float | None = None  # of what it emits
    norm: str | None = None  # between its weights and its activation


@dataclass(frozen=True)
class Strand:
    """What one layer contributes to a tensor, and what has been done to it since."""

    draft: Draft
    activation: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class Flow:
    """A tensor of the model: strands side by side along the channels, or averaged heads on their way to the output."""

    strands: tuple[Strand, ...]
    is_vector: bool = False
    is_average: bool = False
    is_squashed: bool = False

    @property
    def drafts(self) -> tuple[Draft, ...]:
        return tuple(strand.draft for strand in self.strands)

    @property
    def is_bare_dense(self) -> bool:
        """Whether it could be what the model returns: dense layers without an activation."""
        return all(x.draft.of == "dense" and x.activation is None and not x.negated for x in self.strands)


@dataclass(frozen=True)
class Operation:
    """One node of the graph, whether it was written as a module, a function or a method."""

    key: str  # its name in lower case without underscores
    shown: str  # as messages say it
    module: nn.Module | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaving: tuple[int, ...] | None = None  # the shape of its tensor, where the model was run on an example

    def option(self, name: str, position: int, default: Any = None) -> Any:
        """An option of a module, or an argument of a function."""
        if self.module is not None:
            return getattr(self.module, name, default)
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[position] if position < len(self.args) else default


def key_of(name: str) -> str:
    return name.replace("_", "").lower()


def pair(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value, value)


def total_stride(strides: Iterable[int | None]) -> int:
    return prod(stride or 1 for stride in strides)


def flows_in(arguments: Iterable[Any]) -> Iterator[Flow]:
    for argument in arguments:
        if isinstance(argument, Flow):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from flows_in(argument)


def names_of(flow: Flow) -> str:
    return " and ".join(draft.name for draft in flow.drafts)


def halves_joined(strands: Iterable[Strand]) -> tuple[Strand, ...]:
    """CReLU is the ReLU of a layer beside the ReLU of its negative: together they are one strand."""
    joined: list[Strand] = []
    for strand in strands:
        half = Strand(strand.draft, strand.activation, not strand.negated)
        if strand.activation == "relu" and half in joined:
            joined[joined.index(half)] = Strand(strand.draft, "crelu")
        else:
            joined.append(strand)
    return tuple(joined)


class Window(NamedTuple):
    """What an index leaves of images: every n-th pixel, and perhaps the first channels alone."""

    stride: int = 1
    channels: int | None = None


def window_of(index: Any) -> Window | None:
    """The window that an index takes of every image; None where it takes anything else."""
    if not isinstance(index, tuple) or not 2 <= len(index) <= 4 or not all(isinstance(x, slice) for x in index):
        return None
    images, channels, *pixels = index
    strides = {x.step or 1 for x in pixels} or {1}
    whole = all(x.start in (None, 0) for x in index) and all(x.stop is None for x in (images, *pixels))
    if not whole or len(strides) > 1 or len(pixels) == 1 or {images.step or 1, channels.step or 1} != {1}:
        return None
    return Window(strides.pop(), channels.stop)


def ways_back(flow: Flow) -> Iterator[tuple[tuple[Draft, ...], tuple[Draft, ...]]]:
    """Going back from a tensor along a chain of image layers: those passed so far, and what the last of them takes."""
    passed: list[Draft] = []
    sources = flow.drafts
    yield (), sources
    while len(sources) == 1 and sources[0].of in ("conv", "pool"):
        passed.append(sources[0])
        sources = sources[0].sources
        yield tuple(passed), sources


def is_shortcut(drafts: tuple[Draft, ...]) -> bool:
    return all(draft.of == "pool" or draft.kernels == (1,) for draft in drafts)

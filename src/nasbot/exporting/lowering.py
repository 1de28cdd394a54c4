"""A built network as a list of primitive steps: what exported code and ONNX files are both written from.

Every step gives one value and names those it takes; ``x0`` is the network's input and the last step its output.

    linear, conv, norm        with weights: ``part`` is their prefix in the network's state, ``attribute`` a short name
    activation                by its name in ``nasbot.training.activations``
    max_pool, avg_pool        over windows of ``size``, those at the border cut
    pixel_mean                of each image, one number per channel
    cat, add                  of channels; of equal shapes
    pad, cut                  zeros behind the channels; the first channels alone
    log_softmax               of a decision layer
    mean, log_mean_exp        of several decision layers: numbers, and log-probabilities
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from torch import nn

from nasbot.architecture import Signal
from nasbot.errors import VocabularyError
from nasbot.training.module import (
    ConvolutionLayer,
    Dense,
    DenseLayer,
    Network,
    NormalisedDenseLayer,
    PixelLayer,
    Pool,
    ResidualLayer,
)

INPUT = "x0"


@dataclass(frozen=True)
class Step:
    """One primitive operation."""

    value: str
    op: str
    inputs: tuple[str, ...]
    layer: int  # of the architecture; that of the output for the last steps
    part: str = ""
    attribute: str = ""
    module: nn.Module | None = None
    size: int = 0  # window, channels to add, channels to keep
    activation: str = ""


def lowered(network: Network) -> list[Step]:
    """The steps of ``network``, in an order in which each finds what it takes."""
    steps: list[Step] = []
    averaged: dict[int, str] = {}
    values = [INPUT]
    for u in range(1, len(network.arch.layers) - 1):
        gathered = _gathered(network, u, values, averaged, steps)
        written = list(_part(network, u, gathered))
        steps += written
        values.append(written[-1].value if written else gathered)
    steps += _output(network, [values[u] for u in network.arch.parents[-1]])
    return steps


def _gathered(network: Network, u: int, values: Sequence[str], averaged: dict[int, str], steps: list[Step]) -> str:
    """The parents of layer u as one value: concatenated, and images averaged first where a vector is wanted."""
    arch = network.arch
    by_name = arch.vocabulary.by_name
    wants_vector = by_name[arch.layers[u].label].emits is not Signal.IMAGE
    taken = []
    for p in arch.parents[u]:
        if wants_vector and by_name[arch.layers[p].label].emits is Signal.IMAGE:
            if p not in averaged:
                averaged[p] = f"mean{p}"
                steps.append(Step(averaged[p], "pixel_mean", (values[p],), u))
            taken.append(averaged[p])
        else:
            taken.append(values[p])
    if len(taken) == 1:
        return taken[0]
    steps.append(Step(f"cat{u}", "cat", tuple(taken), u))
    return f"cat{u}"


def _part(network: Network, u: int, taken: str) -> Iterator[Step]:
    part, prefix = network.layers[str(u)], f"layers.{u}"
    activation = network.arch.vocabulary.by_name[network.arch.layers[u].label].activation
    if isinstance(part, DenseLayer):
        yield Step(f"sum{u}", "linear", (taken,), u, prefix, f"layer{u}", part)
        yield Step(f"x{u}", "activation", (f"sum{u}",), u, activation=activation)
    elif isinstance(part, Dense):
        yield Step(f"x{u}", "linear", (taken,), u, prefix, f"decision{u}", part)
    elif isinstance(part, NormalisedDenseLayer):
        yield Step(f"sum{u}", "linear", (taken,), u, f"{prefix}.dense", f"layer{u}", part.dense)
        yield from _normalised(part.norm, f"{prefix}.norm", f"norm{u}", f"sum{u}", u)
        yield Step(f"x{u}", "activation", (_last(part.norm, f"norm{u}", f"sum{u}"),), u, activation=activation)
    elif isinstance(part, ConvolutionLayer | PixelLayer):
        yield Step(f"sum{u}", "conv", (taken,), u, f"{prefix}.conv", f"conv{u}", part.conv)
        yield from _normalised(part.norm, f"{prefix}.norm", f"norm{u}", f"sum{u}", u)
        yield Step(f"x{u}", "activation", (_last(part.norm, f"norm{u}", f"sum{u}"),), u, activation=activation)
    elif isinstance(part, ResidualLayer):
        yield from _residual(part, u, taken, activation)
    elif isinstance(part, Pool):
        op = "max_pool" if part.pooling == "max" else "avg_pool"
        yield Step(f"x{u}", op, (taken,), u, size=part.window)
    elif not isinstance(part, nn.Identity):
        raise VocabularyError(f"layer {u} ({network.arch.layers[u].label}) cannot be exported: {type(part).__name__}")


def _residual(part: ResidualLayer, u: int, taken: str, activation: str) -> Iterator[Step]:
    value = taken
    for letter, i in zip(ascii_lowercase, range(len(part.convs)), strict=False):
        conv, norm = part.convs[i], part.norms[i]
        if i:
            yield Step(f"y{u}{letter}", "activation", (value,), u, activation=activation)
            value = f"y{u}{letter}"
        yield Step(f"sum{u}{letter}", "conv", (value,), u, f"layers.{u}.convs.{i}", f"conv{u}{letter}", conv)
        value = f"sum{u}{letter}"
        yield from _normalised(norm, f"layers.{u}.norms.{i}", f"norm{u}{letter}", value, u)
        value = _last(norm, f"norm{u}{letter}", value)
    short = taken
    if part.stride > 1:
        yield Step(f"small{u}", "avg_pool", (short,), u, size=part.stride)
        short = f"small{u}"
    first = part.convs[0]
    assert isinstance(first, nn.Conv2d)
    entering, leaving = first.in_channels, first.out_channels
    if entering != leaving:
        op, size = ("pad", leaving - entering) if leaving > entering else ("cut", leaving)
        yield Step(f"short{u}", op, (short,), u, size=size)
        short = f"short{u}"
    yield Step(f"added{u}", "add", (value, short), u)
    yield Step(f"x{u}", "activation", (f"added{u}",), u, activation=activation)


def _normalised(norm: nn.Module, part: str, attribute: str, taken: str, u: int) -> Iterator[Step]:
    if not isinstance(norm, nn.Identity):
        yield Step(attribute, "norm", (taken,), u, part, attribute, norm)


def _last(norm: nn.Module, normalised: str, taken: str) -> str:
    return taken if isinstance(norm, nn.Identity) else normalised


def _output(network: Network, decisions: Sequence[str]) -> Iterator[Step]:
    last = len(network.arch.layers) - 1
    if network.classifies:
        logs = tuple(f"log_{decision}" for decision in decisions)
        for log, decision in zip(logs, decisions, strict=True):
            yield Step(log, "log_softmax", (decision,), last)
        if len(logs) > 1:
            yield Step("output", "log_mean_exp", logs, last)
    elif len(decisions) > 1:
        yield Step("output", "mean", tuple(decisions), last)

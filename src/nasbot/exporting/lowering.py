"""A built network as a list of primitive steps: what exported code and ONNX files are both written from.

Every step gives one value and names those it takes; ``x0`` is the network's input and the last step its output.

    linear, conv, norm, layer_norm
                              with weights: ``part`` is their prefix in the network's state, ``attribute`` a short name
    activation                by its name in ``nasbot.architecture.activations``
    max_pool, avg_pool        over windows of ``size``, those at the border cut
    pixel_mean                of each image, one number per channel
    cat, add                  of channels; of equal shapes
    pad, cut                  zeros behind the channels; the first channels alone
    log_softmax               of a decision layer
    module                    of a person's own, for which there is no rule
    mean, log_mean_exp        of several decision layers: numbers, and log-probabilities
    scale                     by one of ``factors`` for each output
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nasbot.architecture import Signal
from nasbot.training.module import Network
from nasbot.training.operations import Part, Step

INPUT = "x0"


def lowered(network: Network) -> list[Step]:
    """The steps of ``network``, in an order in which each finds what it takes."""
    steps: list[Step] = []
    averaged: dict[int, str] = {}
    values = [INPUT]
    for u in range(1, len(network.arch.layers) - 1):
        gathered = _gathered(network, u, values, averaged, steps)
        part = network.layers[str(u)]
        assert isinstance(part, Part)
        written = list(part.lowered(u, gathered))
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


def _output(network: Network, decisions: Sequence[str]) -> Iterator[Step]:
    last = len(network.arch.layers) - 1
    if network.classifies:
        logs = tuple(f"log_{decision}" for decision in decisions)
        for log, decision in zip(logs, decisions, strict=True):
            yield Step(log, "log_softmax", (decision,), last)
        if len(logs) > 1:
            yield Step("output", "log_mean_exp", logs, last)
        return
    value = decisions[0]
    if len(decisions) > 1:
        value = "output"
        yield Step(value, "mean", tuple(decisions), last)
    if network.rate_scale is not None:
        yield Step("above_mean", "activation", (value,), last, activation="elu")
        yield Step("scaled", "scale", ("above_mean",), last, factors=tuple(network.rate_scale.tolist()))

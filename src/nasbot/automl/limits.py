"""What the recommended model may cost: parameters, layers, bytes of its file, time for one row.

Parameters and layers are limits of the space. A file's size follows from the parameters. Latency is measured: of a few
plain networks before the search, which bounds layers and FLOPs such that most networks hold it, and of every network
before it is trained; one that takes longer is refused, and the search learns from that as from every refusal. An
ensemble must hold the limits as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nasbot._typing import Json
from nasbot.architecture import Architecture, Layer, SearchSpace, chain
from nasbot.architecture.pools import narrower
from nasbot.architecture.resources import resources
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.trial import Trial

BYTES_PER_PARAMETER = 4.0
BYTES_PER_LAYER = 250  # of the graph as JSON, with the names of its arrays
MARGIN = 0.8  # of the latency that is asked for, that a network may take: the next measurement may be slower
ENDS = 3  # layers of every graph that nobody counts: input, output, decision
TINY = 8  # units of the smallest network
WIDTHS = (256, 128, 64, 32, 16, TINY)
_TIMES = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class ModelLimits:
    """Limits on the model that a search recommends; None: none."""

    max_parameters: int | None = None
    max_layers: int | None = None  # hidden ones of each network
    max_size: int | None = None  # bytes of the model file
    max_latency: float | None = None  # seconds for one row, here
    bound_layers: int | None = None  # from the latency, as measured when the study began
    bound_flops: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_parameters", "max_layers", "max_size", "max_latency"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not 0 < value < 1e18):
                raise OptionError(f"{name}: expected a number above 0, got {str(value)[:40]}")

    def __bool__(self) -> bool:
        return self != ModelLimits()

    def to_dict(self) -> dict[str, Json]:
        """What is kept with a study; only what there is."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of(cls, record: object) -> ModelLimits:
        """What ``to_dict`` wrote; no limits where there is nothing."""
        known = record if isinstance(record, Mapping) else {}
        return cls(**{name: known[name] for name in cls.__dataclass_fields__ if name in known})

    def asked(self) -> ModelLimits:
        """Without what was measured."""
        return replace(self, bound_layers=None, bound_flops=None)

    def space(self, space: SearchSpace, overhead: int) -> SearchSpace:
        """The space within the limits; ``overhead`` is the bytes of a model file beside its networks."""
        parameters = _least(space.max_parameters, self.max_parameters, self._parameters_in_file(overhead))
        layers = [n + ENDS for n in (self.max_layers, self.bound_layers) if n is not None]
        return replace(
            space,
            max_parameters=parameters,
            max_layers=max(space.min_layers, min(space.max_layers, *layers)) if layers else space.max_layers,
            max_flops=_least(space.max_flops, self.bound_flops),
        )

    def _parameters_in_file(self, overhead: int) -> float | None:
        if self.max_size is None:
            return None
        return max(1.0, (self.max_size - overhead - 20 * BYTES_PER_LAYER) / BYTES_PER_PARAMETER)

    def holds(self, trials: list[Trial], overhead: int) -> bool:
        """Whether the networks of these trials hold the limits together, by what was noted when they were trained."""
        noted = [trial.details for trial in trials]
        parameters = sum(int(details.get("parameters", 0)) for details in noted)
        layers = sum(len(trial.arch.layers) for trial in trials)
        size = overhead + BYTES_PER_PARAMETER * parameters + BYTES_PER_LAYER * layers
        latency = sum(float(details.get("latency", 0.0)) for details in noted)
        return (
            (self.max_parameters is None or parameters <= self.max_parameters)
            and (self.max_size is None or size <= self.max_size)
            and (self.max_latency is None or latency <= MARGIN * self.max_latency)
        )


def measured(limits: ModelLimits, data: Dataset, baseline: Architecture) -> ModelLimits:
    """With bounds on layers and FLOPs that follow from the latency of a few networks, here and now.

    latency = fixed + per layer * layers + per FLOP * flops, fitted to networks of several depths and widths; the time
    that is left after the fixed part is divided equally between the two.
    """
    if limits.max_latency is None:
        return limits
    deep = [baseline, *narrower(baseline, TINY)[2:4]]
    flat = [smallest(data.kind, n) for n in (1, 2)]
    rows, seconds = [], []
    for arch in (*deep, *flat):
        needs = resources(arch, data.input_shape, data.n_outputs)
        rows.append((1.0, len(arch.layers) - ENDS, needs.flops))
        seconds.append(_latency(arch, data))
    from scipy.optimize import nnls

    scale = np.asarray(rows).max(axis=0)
    (fixed, per_layer, per_flop), _ = nnls(np.asarray(rows) / scale, np.asarray(seconds))
    allowed = MARGIN * limits.max_latency
    least = seconds[len(deep)]
    if least > allowed:
        raise OptionError(
            f"max_latency: {shown_time(limits.max_latency)} cannot be reached here: the smallest network, one layer of "
            f"{TINY} units, takes {shown_time(least)}; expected at least {shown_time(least / MARGIN * 1.1)}"
        )
    half = (allowed - min(fixed, least)) / 2
    layers = half / (per_layer / scale[1]) if per_layer > 0 else np.inf
    flops = half / (per_flop / scale[2]) if per_flop > 0 else np.inf
    smallest_flops = resources(flat[0], data.input_shape, data.n_outputs).flops
    return replace(
        limits,
        bound_layers=int(max(1, min(layers + 1e-6, 1000))),
        bound_flops=float(f"{max(smallest_flops, min(flops, 1e15)):.3g}"),
    )


def _latency(arch: Architecture, data: Dataset) -> float:
    from nasbot.training.latency import latency_of
    from nasbot.training.module import build

    return latency_of(build(arch, input_shape=data.input_shape, n_outputs=data.n_outputs, seed=0))


def smallest(kind: str, n_layers: int = 1, units: int = TINY) -> Architecture:
    """The smallest network of a kind: what a limit must leave room for."""
    layer = Layer("conv3", units, 1) if kind == "cnn" else Layer("relu", units)
    return chain(kind, [layer] * n_layers)


def shallow(space: SearchSpace) -> list[Architecture]:
    """Networks of one and of two layers, each as wide as the space lets them be: what a narrow space begins with."""
    kind = space.vocabulary.name
    offered = [[smallest(kind, n, units) for units in WIDTHS] for n in (2, 1)]
    return [arch for arch in (next((a for a in some if a in space), None) for some in offered) if arch is not None]


def check_reachable(limits: ModelLimits, space: SearchSpace, data: Dataset, overhead: int) -> None:
    """OptionError, with what is reachable, where not even the smallest network holds the limits."""
    arch = smallest(data.kind)
    needs = resources(arch, data.input_shape, data.n_outputs)
    if limits.max_parameters is not None and needs.parameters > limits.max_parameters:
        raise OptionError(
            f"max_parameters: {limits.max_parameters:,} cannot be reached on these data: the smallest network has "
            f"{needs.parameters:,}"
        )
    size = overhead + BYTES_PER_PARAMETER * needs.parameters + 20 * BYTES_PER_LAYER
    if limits.max_size is not None and size > limits.max_size:
        raise OptionError(
            f"max_size: {shown_size(limits.max_size)} cannot be reached on these data: the smallest model file has "
            f"about {shown_size(size)}"
        )
    if space.kind == arch.kind and (broken := space.violations(arch)):
        raise OptionError(f"space: not even the smallest network lies in it: {broken[0]}")


def file_overhead(data: Dataset) -> int:
    """Bytes of a model file beside its networks: how the data are prepared, several times for the preparations."""
    import json

    description = len(json.dumps(data.preprocessing.to_dict()))
    numbers = len(getattr(data.preprocessing.inputs, "number_inputs", ()))
    return 2048 + description + 20 * 256 * min(numbers, 40)


# -- as people say it --------------------------------------------------------------------------------------------------


def parsed_latency(text: str | float) -> float:
    """Seconds from "2ms", "300us" or a number of seconds."""
    if not isinstance(text, str):
        return float(text)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|µs|ms|s)\s*", text.lower())
    if found is None:
        raise OptionError(f"max_latency: expected a time such as 2ms or 300us, got {text[:40]!r}")
    return float(found[1]) * _TIMES[found[2]]


def shown_time(seconds: float) -> str:
    """For people."""
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def shown_size(size: float) -> str:
    """For people."""
    return f"{size / 2**20:.3g} MB" if size >= 2**20 else f"{size / 2**10:.3g} kB"


def _least(*given: float | None) -> float | None:
    known = [value for value in given if value is not None]
    return min(known) if known else None

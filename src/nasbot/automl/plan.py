"""What a search on given data may look like: how long a trial, which networks, from which ones to begin.

All of it follows from the data, the budget and the number of workers, by rules simple enough to be said to people. A
study remembers its seconds per trial, so that one that goes on with a larger budget goes on with the same networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nasbot.architecture import Architecture, SearchSpace, initial_pool
from nasbot.architecture.resources import Resources, resources
from nasbot.errors import OptionError
from nasbot.study.budget import Budget

TRIALS_AT_LEAST = 50  # that a time budget is divided by, if every trial took its whole share
SHORTEST_TRIAL, LONGEST_TRIAL = 1.0, 300.0  # seconds of training
DEFAULT_TRIAL = 10.0  # where the budget is in trials
# A network is in the space if so many steps of training fit into a trial, at what one core of a laptop was measured to
# do on networks of this size, forward and backward: three times the forward flops of each sample.
STEPS_AT_LEAST = 300
FLOPS_PER_SECOND = 2e10
PASSES = 3
# Networks of many more parameters than there are numbers to learn from cost time and rarely win.
PARAMETERS_PER_ROW, LEAST_PARAMETERS = 1000, 200_000
ROOM = 2.0  # times the narrowest network of the pool: wide inputs and large images must not empty the space
MAX_MEMORY = 2.0 * 2**30
SHRINKING = (1.0, 0.5, 0.25, 0.125, 0.0625)


@dataclass(frozen=True)
class Plan:
    """How one search on one data set is done."""

    space: SearchSpace
    pool: tuple[Architecture, ...]
    seconds_per_trial: float


def seconds_per_trial(budget: Budget, workers: int) -> float:
    """How long a network may be trained: the budget's share, between a second and five minutes."""
    if budget.seconds is None:
        return DEFAULT_TRIAL
    share = budget.seconds * workers / TRIALS_AT_LEAST
    return round(min(max(share, SHORTEST_TRIAL), LONGEST_TRIAL), 1)


def space_for(
    kind: str, input_shape: tuple[int, ...], n_outputs: int, *, n_rows: int, seconds: float, batch_size: int
) -> SearchSpace:
    """The paper's limits, and no networks that a trial on one core could not train, or that few rows do not need."""
    within_a_trial = seconds * FLOPS_PER_SECOND / (PASSES * batch_size * STEPS_AT_LEAST)
    least = _least(kind, input_shape, n_outputs)
    flops = max(within_a_trial, ROOM * least.flops)
    parameters = max(LEAST_PARAMETERS, PARAMETERS_PER_ROW * n_rows, ROOM * least.parameters)
    return SearchSpace(
        kind,
        input_shape=input_shape,
        n_outputs=n_outputs,
        batch_size=batch_size,
        max_flops=float(f"{flops:.3g}"),
        max_parameters=float(f"{parameters:.3g}"),
        max_memory=MAX_MEMORY,
    )


def pool_for(space: SearchSpace, *, first: Sequence[Architecture] = ()) -> tuple[Architecture, ...]:
    """What to begin from: the given networks, then the initial pool, each made narrower until it fits the space."""
    pool: dict[str, Architecture] = {}
    for i, arch in enumerate(first):
        if found := space.violations(arch):
            raise OptionError(f"start_from: network {i} does not fit the search: {found[0]}")
        pool.setdefault(arch.fingerprint, arch)
    for arch in initial_pool(space.kind):
        fitting = next((narrow for narrow in _narrower(arch, space.min_units) if narrow in space), None)
        if fitting is not None:
            pool.setdefault(fitting.fingerprint, fitting)
    if not pool:
        raise OptionError(
            "budget: too short for these data: not even the narrowest network of the pool could be trained in a trial; "
            "give a longer budget, or smaller images"
        )
    return tuple(pool.values())


def _narrower(arch: Architecture, least: int) -> Iterator[Architecture]:
    """The network with fewer and fewer units in every layer."""
    for share in SHRINKING:
        layers = [
            layer if layer.units is None else replace(layer, units=max(least, round(layer.units * share)))
            for layer in arch.layers
        ]
        yield Architecture(arch.vocabulary, layers, arch.edges)


def _least(kind: str, input_shape: tuple[int, ...], n_outputs: int) -> Resources:
    """What the narrowest network of the pool needs on these data."""
    narrowest = [list(_narrower(arch, SearchSpace.min_units))[-1] for arch in initial_pool(kind)[:3]]
    return min((resources(arch, input_shape, n_outputs) for arch in narrowest), key=lambda needs: needs.flops)

"""Random networks, networks made smaller, and what can be counted in one: skips, decision layers, depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nasbot.architecture import Architecture, PathEnd, PathKind, SearchSpace, initial_pool
from nasbot.evolution import Mutation, MutationOperator

LONG_SKIP = 3  # layers that a long skip passes by, at least


class Relative(NamedTuple):
    """A random network, the place in the list of the one it was made of (None: of the pool), and in how many steps."""

    arch: Architecture
    parent: int | None
    steps: int


def random_family(
    space: SearchSpace, n: int, *, rng: np.random.Generator, pool: Sequence[Architecture] | None = None
) -> list[Relative]:
    """``n`` different networks: the pool, then mutations of one to five steps, each of any network before it."""
    operator = MutationOperator(space)
    first = initial_pool(space.kind) if pool is None else pool
    family = [Relative(arch, None, 0) for arch in first[:n]]
    seen = {relative.arch.fingerprint for relative in family}
    while len(family) < n:
        parent = int(rng.integers(len(family)))
        mutation = operator(family[parent].arch, rng=rng)
        if isinstance(mutation, Mutation) and mutation.arch.fingerprint not in seen:
            seen.add(mutation.arch.fingerprint)
            family.append(Relative(mutation.arch, parent, len(mutation.steps)))
    return family


def scaled_pool(kind: str, divisor: int, *, min_units: int = 8) -> tuple[Architecture, ...]:
    """The initial pool with units divided: for a CPU and short trainings."""
    return tuple(_scaled(arch, divisor, min_units) for arch in initial_pool(kind))


def _scaled(arch: Architecture, divisor: int, min_units: int) -> Architecture:
    units = {u: layer.units for u, layer in enumerate(arch.layers) if layer.units is not None}
    return arch.with_units({u: max(min_units, n // divisor) for u, n in units.items()})


@dataclass(frozen=True)
class Anatomy:
    """What the paper says that good networks share, as numbers."""

    layers: int  # processing layers
    depth: int  # layers on the longest path, input and output left out
    edges: int
    decision_layers: int
    skips: int  # edges that pass by at least one layer
    longest_skip: int  # most layers that one edge passes by

    @classmethod
    def of(cls, arch: Architecture) -> Anatomy:
        """Counted along longest paths: an edge (u, v) passes by as many layers as v is further than one hop from u."""
        place = arch.path_lengths.of(PathKind.LONGEST, PathEnd.FROM_INPUT)
        passed = [int(place[v] - place[u]) - 1 for u, v in arch.edges]
        return cls(
            layers=len(arch.processing_layers),
            depth=int(place[-1]) - 1,
            edges=len(arch.edges),
            decision_layers=len(arch.decision_layers),
            skips=sum(n > 0 for n in passed),
            longest_skip=max(passed),
        )

    @property
    def has_long_skip(self) -> bool:
        """Whether an edge passes by three layers or more."""
        return self.longest_skip >= LONG_SKIP

    @property
    def has_several_decisions(self) -> bool:
        """Whether the output is an average over more than one decision layer."""
        return self.decision_layers > 1

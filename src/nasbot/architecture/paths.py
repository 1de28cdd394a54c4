"""Path lengths δ of Section 3, by Algorithm 1 (Appendix A.3), in one pass over the edges each.

to_output[u]    hops from layer u to the output       δ_op
from_input[u]   hops from the input to layer u        δ_ip   (the same recursion over parents)
shortest, longest, random walk: the minimum, maximum and mean over children (parents)

Within a group (conv, pool, fc; rectifier, sigmoid) only its own layers count a hop: leaving one costs 1 on the way to
the output, entering one costs 1 on the way from the input. This is the obvious version;
``otmann/_kernels/path_pass.py`` is its compiled twin for many networks at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nasbot.architecture.graph import Architecture


class PathKind(IntEnum):
    """s of δ^s_t."""

    SHORTEST = 0
    LONGEST = 1
    RANDOM_WALK = 2


class PathEnd(IntEnum):
    """t of δ^s_t."""

    FROM_INPUT = 0
    TO_OUTPUT = 1


ALL_LAYERS = "all"
REDUCE: dict[PathKind, Callable[[list[float]], float]] = {
    PathKind.SHORTEST: min,
    PathKind.LONGEST: max,
    PathKind.RANDOM_WALK: lambda lengths: sum(lengths) / len(lengths),
}


@dataclass(frozen=True, eq=False)
class PathLengths:
    """``array[g, s, t, u]``: group g (``all`` first), kind s, end t, layer u."""

    groups: tuple[str, ...]
    array: NDArray[np.float64]

    def of(self, kind: PathKind, end: PathEnd, group: str = ALL_LAYERS) -> NDArray[np.float64]:
        """δ for every layer."""
        lengths: NDArray[np.float64] = self.array[self.groups.index(group), kind, end]
        return lengths

    @property
    def features(self) -> NDArray[np.float64]:
        """All lengths as one row per layer: (layers, 6 * groups)."""
        return self.array.reshape(-1, self.array.shape[-1]).T


def path_lengths(arch: Architecture) -> PathLengths:
    """Every δ of one network."""
    groups = (ALL_LAYERS, *arch.vocabulary.groups)
    n = len(arch.layers)
    array = np.zeros((len(groups), len(PathKind), len(PathEnd), n))
    for g, group in enumerate(groups):
        hop = [
            1.0 if group in (ALL_LAYERS, arch.vocabulary.by_name[layer.label].group) else 0.0 for layer in arch.layers
        ]
        for kind in PathKind:
            array[g, kind, PathEnd.FROM_INPUT] = _lengths(range(n), arch.parents, hop, REDUCE[kind])
            array[g, kind, PathEnd.TO_OUTPUT] = _lengths(range(n - 1, -1, -1), arch.children, hop, REDUCE[kind])
    return PathLengths(groups, array)


def _lengths(
    order: Sequence[int],
    neighbours: Sequence[tuple[int, ...]],
    hop: Sequence[float],
    reduce: Callable[[list[float]], float],
) -> list[float]:
    """Algorithm 1: each layer's own hop plus the reduction over its neighbours; 0 where the walk ends."""
    lengths = [0.0] * len(hop)
    for u in order:
        if neighbours[u]:
            lengths[u] = hop[u] + reduce([lengths[v] for v in neighbours[u]])
    return lengths

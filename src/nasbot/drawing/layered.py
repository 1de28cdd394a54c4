"""The layered graph behind a drawing: every layer of a network on a rank, and what an edge passes on its way down.

An edge that spans more than one rank passes each rank between through a *bend*, a point that takes part in ordering and
placing as a layer does, so that no box is put where the edge runs. The edges that leave one layer carry the same
signal: they share one trunk of bends and part from it where they turn off to their layer. A network of n layers thus
has at most n bends on a rank however many edges it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Edge = tuple[int, int]


@dataclass(frozen=True)
class LayeredGraph:
    """Nodes 0 … n_layers - 1 are the layers, all others bends; ``up`` and ``down`` link nodes of adjacent ranks."""

    n_layers: int
    rank: tuple[int, ...]
    up: tuple[tuple[int, ...], ...]
    down: tuple[tuple[int, ...], ...]
    bends: dict[Edge, tuple[int, ...]]  # what each edge passes, top to bottom; () where it spans one rank

    @property
    def n_ranks(self) -> int:
        """Ranks are 0 … n_ranks - 1, the input alone on the first and the output alone on the last."""
        return max(self.rank) + 1

    def is_bend(self, node: int) -> bool:
        """Whether a node is a point on an edge and not a layer."""
        return node >= self.n_layers


def ranks_of(n_layers: int, edges: Iterable[Edge]) -> list[int]:
    """A rank per layer, every edge pointing down; layers are numbered topologically, the output last.

    Longest path from the input; then layers with more edges below than above sink as far as these let them, which
    shortens edges, and layers that feed the output alone (decision layers) go to the rank above it, as in the paper.
    """
    parents, children = _neighbours(n_layers, edges)
    rank = [0] * n_layers
    for u in range(n_layers):
        rank[u] = 1 + max((rank[p] for p in parents[u]), default=-1)
    last = n_layers - 1
    for u in range(last - 1, 0, -1):
        if children[u] == [last] or len(children[u]) > len(parents[u]):
            rank[u] = min(rank[c] for c in children[u]) - 1
    return rank


def n_bends(rank: Sequence[int], edges: Iterable[Edge]) -> int:
    """How many bends the layered graph would have, known before it is built."""
    return sum(bottom - rank[u] - 1 for u, bottom in _trunk_ends(rank, edges).items())


def layered_graph(rank: Sequence[int], edges: Iterable[Edge]) -> LayeredGraph:
    """Layers on the given ranks, with a trunk of bends below each layer that feeds a rank further than the next."""
    pairs = sorted(edges)
    rank_of = list(rank)
    links: list[Edge] = []
    trunk: dict[int, list[int]] = {}
    for u, bottom in sorted(_trunk_ends(rank, pairs).items()):
        nodes = [len(rank_of) + i for i in range(bottom - rank[u] - 1)]
        rank_of += range(rank[u] + 1, bottom)
        links += zip([u, *nodes], nodes, strict=False)
        trunk[u] = nodes
    bends = {(u, v): tuple(trunk[u][: rank[v] - rank[u] - 1]) for u, v in pairs}
    links += [((u, *bends[u, v])[-1], v) for u, v in pairs]
    up, down = _neighbours(len(rank_of), links)
    return LayeredGraph(len(rank), tuple(rank_of), tuple(map(tuple, up)), tuple(map(tuple, down)), bends)


def _trunk_ends(rank: Sequence[int], edges: Iterable[Edge]) -> dict[int, int]:
    """For each layer the rank of the lowest layer that it feeds."""
    ends: dict[int, int] = {}
    for u, v in edges:
        ends[u] = max(ends.get(u, 0), rank[v])
    return ends


def _neighbours(n: int, edges: Iterable[Edge]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(n)]
    below: list[list[int]] = [[] for _ in range(n)]
    for u, v in sorted(edges):
        above[v].append(u)
        below[u].append(v)
    return above, below

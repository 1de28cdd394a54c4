"""The order of nodes on each rank, chosen so that few edges cross.

Barycentre sweeps down and up (each node to the mean place of its neighbours on the rank before) followed by swaps of
neighbours on a rank while that saves crossings; the best order met is kept. Deterministic: ties keep their order.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from nasbot.drawing.layered import LayeredGraph

MAX_SWEEPS = 24
PATIENCE = 6  # sweeps without a better order before giving up
WORK = 40_000  # nodes visited in all sweeps together: bounds the time for networks far beyond 60 layers

Order = list[list[int]]  # the nodes of each rank, left to right
Neighbours = Sequence[Sequence[int]]


def order_ranks(graph: LayeredGraph) -> Order:
    """The nodes of each rank from left to right, with few crossings between adjacent ranks."""
    n_sweeps = max(2, min(MAX_SWEEPS, WORK // len(graph.rank)))
    candidates = [_swept(graph, start, n_sweeps) for start in (_first_order(graph, False), _first_order(graph, True))]
    return min(candidates, key=lambda order: crossings(graph, order))


def crossings(graph: LayeredGraph, order: Order) -> int:
    """How many pairs of links cross."""
    place = _places(order, len(graph.rank))
    return sum(_crossings_below(nodes, place, graph.down) for nodes in order)


def _crossings_below(nodes: Sequence[int], place: Sequence[int], down: Neighbours) -> int:
    seen: list[int] = []
    count = 0
    for node in nodes:
        ends = sorted(place[below] for below in down[node])
        count += sum(len(seen) - bisect_right(seen, end) for end in ends)
        for end in ends:
            insort(seen, end)
    return count


def _first_order(graph: LayeredGraph, reverse: bool) -> Order:
    """Depth first from the input, children in one order or the other: neighbours start close together."""
    order: Order = [[] for _ in range(graph.n_ranks)]
    seen = {0}
    stack = [0]
    while stack:
        node = stack.pop()
        order[graph.rank[node]].append(node)
        for below in sorted(graph.down[node], reverse=not reverse):
            if below not in seen:
                seen.add(below)
                stack.append(below)
    return order


def _swept(graph: LayeredGraph, order: Order, n_sweeps: int) -> Order:
    place = _places(order, len(graph.rank))
    best, fewest, since = [list(nodes) for nodes in order], crossings(graph, order), 0
    for sweep in range(n_sweeps):
        downwards = sweep % 2 == 0
        for r in range(1, len(order)) if downwards else range(len(order) - 2, -1, -1):
            _sort_rank(order[r], place, graph.up if downwards else graph.down)
        _swap_neighbours(graph, order, place)
        count = crossings(graph, order)
        since += 1
        if count < fewest:
            best, fewest, since = [list(nodes) for nodes in order], count, 0
        if not fewest or since >= PATIENCE:
            break
    return best


def _sort_rank(nodes: list[int], place: list[int], neighbours: Neighbours) -> None:
    def barycentre(node: int) -> float:
        near = neighbours[node]
        return sum(place[other] for other in near) / len(near) if near else float(place[node])

    nodes.sort(key=barycentre)
    for i, node in enumerate(nodes):
        place[node] = i


def _swap_neighbours(graph: LayeredGraph, order: Order, place: list[int]) -> None:
    """Swap adjacent nodes where that saves crossings, until none does (at most four rounds: later sweeps go on)."""
    for _ in range(4):
        swapped = False
        for nodes in order:
            for i in range(len(nodes) - 1):
                a, b = nodes[i], nodes[i + 1]
                if _saved_by_swap(a, b, place, graph.up) + _saved_by_swap(a, b, place, graph.down) > 0:
                    nodes[i], nodes[i + 1] = b, a
                    place[a], place[b] = i + 1, i
                    swapped = True
        if not swapped:
            return


def _saved_by_swap(a: int, b: int, place: Sequence[int], neighbours: Neighbours) -> int:
    ends_b = sorted(place[other] for other in neighbours[b])
    saved = 0
    for other in neighbours[a]:
        end = place[other]
        saved += bisect_right(ends_b, end - 1) - (len(ends_b) - bisect_right(ends_b, end))
    return saved


def _places(order: Order, n_nodes: int) -> list[int]:
    place = [0] * n_nodes
    for nodes in order:
        for i, node in enumerate(nodes):
            place[node] = i
    return place


# -- chains -----------------------------------------------------------------------------------------------------------


def order_beside_chain(graph: LayeredGraph) -> Order | None:
    """For chains: the trunks left and right of the layers, each on one side all the way, the latest innermost.

    None where layers share a rank.
    The sweeps avoid crossings at any price. Where many skips overlap that price is a staircase, with each layer moved
    aside to let the trunks keep their order; this order keeps a column and lets trunks cross where they turn off.
    """
    if graph.rank[: graph.n_layers] != tuple(range(graph.n_layers)):
        return None
    turns: dict[int, list[int]] = {}  # by layer: the ranks at which edges turn off its trunk
    for (u, v), bends in graph.bends.items():
        if bends:
            turns.setdefault(u, []).append(v)
    sides: tuple[list[int], list[int]] = ([], [])  # the layers whose trunks run there, in the order in which they start
    for u in sorted(turns):
        crossed = [sum(u < turn < max(turns[u]) for other in side for turn in turns[other]) for side in sides]
        running = [sum(max(turns[other]) > u + 1 for other in side) for side in sides]
        better = min((1, 0), key=lambda i: (crossed[i], running[i]))
        sides[better].append(u)
    trunk = {u: max((graph.bends[u, v] for v in turns[u]), key=len) for u in turns}
    bend_at = {(u, graph.rank[bend]): bend for u in trunk for bend in trunk[u]}
    left, right = sides
    return [
        [bend_at[u, r] for u in left if (u, r) in bend_at]
        + [r]
        + [bend_at[u, r] for u in reversed(right) if (u, r) in bend_at]
        for r in range(graph.n_ranks)
    ]

"""The last touch on the places of nodes: nearly straight edges made straight, and blocks drawn to what they connect to.

Brandes and Köpf average four placings, which leaves some edges a few points off the vertical. Here blocks (nodes that
straight links hold together) slide, one at a time, to where the sum of their links' sideways reaches is least, as far
as their neighbours on the ranks let them; blocks that meet in line grow together. The sum never grows and the room
between neighbours is kept, so this can only improve a placing. Links that are still a few points off are then snapped
straight, at the cost of longer ones: a slight slant looks like a mistake, a long swing does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nasbot.drawing.layered import LayeredGraph
from nasbot.drawing.ordering import Order

MAX_ROUNDS = 12
LAYER_WEIGHT = 2.0  # a link between two layers, against one that has a bend at an end
IN_LINE = 1e-6
SLIGHT = 20.0  # slants up to this are snapped straight

Room = Callable[[int, int], float]
Beside = list[tuple[int | None, int | None]]  # for each node its neighbours on the rank


def straightened(graph: LayeredGraph, order: Order, centres: Sequence[float], room: Room) -> list[float]:
    """The centres after sliding; ``room(a, b)`` is the least distance of neighbours a and b on a rank."""
    x = list(centres)
    beside = _neighbours_on_rank(order, len(x))
    for step in range(MAX_ROUNDS):
        blocks = _blocks(graph, x)
        moves = [_slide(graph, block, x, beside, room) for block in (blocks if step % 2 == 0 else reversed(blocks))]
        if not any(moves):
            break
    _snap(graph, x, beside, room)
    return x


def _slide(graph: LayeredGraph, block: Sequence[int], x: list[float], beside: Beside, room: Room) -> bool:
    low, high = _median_range(sorted(_reaches(graph, block, x)))
    left, right = _free_room(block, x, beside, room)
    shift = min(max(min(max(0.0, low), high), left), right)
    return _shift(block, x, shift)


def _snap(graph: LayeredGraph, x: list[float], beside: Beside, room: Room) -> None:
    """Move blocks, and what stands in their way, by slight slants; only where fewer slants are left afterwards."""
    links = [(a, b) for a in range(len(x)) for b in graph.down[a]]
    slanting = _slanting(links, x)
    for a, b in list(slanting):
        if (a, b) not in slanting:
            continue
        block_of = {node: block for block in _blocks(graph, x) for node in block}
        slant = x[b] - x[a]
        for start, shift in ((a, slant), (b, -slant)):
            moving = _pushed(start, shift, x, block_of, beside, room)
            if (a in moving) != (b in moving):
                tried = list(x)
                _shift(list(moving), tried, shift)
                if len(left := _slanting(links, tried)) < len(slanting):
                    x[:], slanting = tried, left
                    break


def _slanting(links: Sequence[tuple[int, int]], x: Sequence[float]) -> dict[tuple[int, int], None]:
    """The links that slant slightly, in order."""
    return {(a, b): None for a, b in links if IN_LINE < abs(x[b] - x[a]) <= SLIGHT}


def _pushed(
    start: int, shift: float, x: Sequence[float], block_of: dict[int, list[int]], beside: Beside, room: Room
) -> set[int]:
    """The block of a node and all blocks that have to give way when it moves by ``shift``."""
    moving = set(block_of[start])
    frontier = list(moving)
    while frontier:
        node = frontier.pop()
        before, after = beside[node]
        if shift > 0 and after is not None:
            in_the_way, free = after, x[after] - x[node] - room(node, after)
        elif shift < 0 and before is not None:
            in_the_way, free = before, x[node] - x[before] - room(before, node)
        else:
            continue
        if in_the_way not in moving and free < abs(shift):
            moving.update(block_of[in_the_way])
            frontier += block_of[in_the_way]
    return moving


def _shift(block: Sequence[int], x: list[float], shift: float) -> bool:
    if abs(shift) <= IN_LINE:
        return False
    for node in block:
        x[node] += shift
    return True


def _blocks(graph: LayeredGraph, x: Sequence[float]) -> list[list[int]]:
    """Nodes joined by links that are straight already, from the top."""
    block_of: dict[int, list[int]] = {}
    blocks = []
    for node in sorted(range(len(x)), key=lambda node: (graph.rank[node], x[node])):
        above = next((other for other in graph.up[node] if abs(x[other] - x[node]) < IN_LINE), None)
        if above is None:
            blocks.append(block_of.setdefault(node, [node]))
        else:
            block_of[node] = block_of[above]
            block_of[node].append(node)
    return blocks


def _neighbours_on_rank(order: Order, n_nodes: int) -> Beside:
    beside: Beside = [(None, None)] * n_nodes
    for nodes in order:
        for left, node, right in zip([None, *nodes], nodes, [*nodes[1:], None], strict=False):
            beside[node] = (left, right)
    return beside


def _free_room(block: Sequence[int], x: Sequence[float], beside: Beside, room: Room) -> tuple[float, float]:
    """How far a block can slide to the left (not positive) and to the right (not negative)."""
    inside = set(block)
    left, right = float("-inf"), float("inf")
    for node in block:
        before, after = beside[node]
        if before is not None and before not in inside:
            left = max(left, x[before] + room(before, node) - x[node])
        if after is not None and after not in inside:
            right = min(right, x[after] - room(node, after) - x[node])
    return min(left, 0.0), max(right, 0.0)


def _reaches(graph: LayeredGraph, block: Sequence[int], x: Sequence[float]) -> Iterator[tuple[float, float]]:
    inside = set(block)
    for node in block:
        for other in (*graph.up[node], *graph.down[node]):
            if other not in inside:
                both_layers = not (graph.is_bend(node) or graph.is_bend(other))
                yield x[other] - x[node], LAYER_WEIGHT if both_layers else 1.0


def _median_range(weighted: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The shifts of least weighted sum of absolute differences: one, or all between two; nothing given: no shift."""
    half = sum(weight for _, weight in weighted) / 2
    below = 0.0
    for i, (value, weight) in enumerate(weighted):
        below += weight
        if abs(below - half) < 1e-9 and i + 1 < len(weighted):
            return value, weighted[i + 1][0]
        if below > half:
            return value, value
    return 0.0, 0.0

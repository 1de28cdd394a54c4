"""Where nodes stand on their rank: the method of Brandes and Köpf (2001), which draws long edges straight.

Nodes of adjacent ranks are aligned into vertical blocks, four times over (from above or below, leaning left or right);
each time the blocks are packed, and every node takes the mean of the two middle ones of its four places. All four keep
the order and the room between neighbours on a rank, and so therefore does their middle: boxes cannot overlap.
Trunks go first: a bend aligns with its trunk before anything else, and no other alignment may cross a trunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from nasbot.drawing.layered import LayeredGraph
from nasbot.drawing.ordering import Neighbours, Order
from nasbot.drawing.straightening import straightened

BOX_GAP = 26.0  # between boxes on one rank
BEND_GAP = 15.0  # between a box and an edge that passes it
TRUNK_GAP = 11.0  # between two edges that pass side by side

Link = tuple[int, int]


def place_nodes(graph: LayeredGraph, order: Order, breadth: Sequence[float]) -> list[float]:
    """The centre of every node along its rank, bends included; the leftmost box or bend starts at 0."""
    forbidden = _links_across_trunks(graph, order)
    placings = []
    for from_above in (True, False):
        for leaning_left in (True, False):
            ranks = [nodes if leaning_left else nodes[::-1] for nodes in (order if from_above else order[::-1])]
            near, back = (graph.up, graph.down) if from_above else (graph.down, graph.up)
            block = _aligned(graph, ranks, near, back, forbidden)
            centres = _packed(graph, ranks, block, breadth)
            placings.append(centres if leaning_left else [-x for x in centres])
    centres = _balanced(placings, breadth)
    centres = straightened(graph, order, centres, lambda a, b: _room(graph, a, b, breadth))
    start = _span(centres, breadth)[0]
    return [x - start for x in centres]


def _room(graph: LayeredGraph, a: int, b: int, breadth: Sequence[float]) -> float:
    """Least distance between the centres of neighbours on a rank."""
    n_bends = graph.is_bend(a) + graph.is_bend(b)
    return (breadth[a] + breadth[b]) / 2 + (BOX_GAP, BEND_GAP, TRUNK_GAP)[n_bends]


def _links_across_trunks(graph: LayeredGraph, order: Order) -> set[Link]:
    """The links, not themselves on a trunk, that cross one: aligning their ends would bend the trunk."""
    place = {node: i for nodes in order for i, node in enumerate(nodes)}
    forbidden: set[Link] = set()
    for nodes in order:
        links = [(a, b) for a in nodes for b in graph.down[a]]
        trunks = [(place[a], place[b]) for a, b in links if graph.is_bend(a) and graph.is_bend(b)]
        for a, b in links:
            if not (graph.is_bend(a) and graph.is_bend(b)):
                i, j = place[a], place[b]
                if any((i - p) * (j - q) < 0 for p, q in trunks):
                    forbidden |= {(a, b), (b, a)}
    return forbidden


def _aligned(graph: LayeredGraph, ranks: Order, near: Neighbours, back: Neighbours, forbidden: set[Link]) -> list[int]:
    """For each node the block it belongs to, named by its first node; blocks do not cross.

    ``near`` are a node's neighbours on the rank before its own, ``back`` those on the rank after.
    """
    place = {node: i for nodes in ranks for i, node in enumerate(nodes)}
    block = list(range(len(graph.rank)))
    for nodes in ranks:
        taken = -1  # the place on the rank before up to which nodes are spoken for
        for node in nodes:
            for other in _preferred(graph, node, near[node], back, place):
                if place[other] > taken and (node, other) not in forbidden:
                    block[node] = block[other]
                    taken = place[other]
                    break
    return block


def _preferred(
    graph: LayeredGraph, node: int, near: Sequence[int], back: Neighbours, place: dict[int, int]
) -> list[int]:
    """Whom to align with: a bend with its trunk, a layer with the median of the layers next to it.

    A layer and a bend only where neither has one of its own kind to align with: trunks start and end beside chains.
    """

    def same_kind(a: int, b: int) -> bool:
        return graph.is_bend(a) == graph.is_bend(b)

    choice = [other for other in near if same_kind(other, node)]
    if not choice:
        choice = [other for other in near if not any(same_kind(other, rival) for rival in back[other])]
    choice.sort(key=place.__getitem__)
    n = len(choice)
    return choice[(n - 1) // 2 : n // 2 + 1]


def _packed(graph: LayeredGraph, ranks: Order, block: list[int], breadth: Sequence[float]) -> list[float]:
    """Blocks pushed left as far as they go, then each pulled right as far as the blocks on its right let it."""
    room: dict[int, dict[int, float]] = {b: {} for b in block}
    for nodes in ranks:
        for left, right in pairwise(nodes):
            a, b = block[left], block[right]
            room[a][b] = max(room[a].get(b, 0.0), _room(graph, left, right, breadth))
    sequence = _left_to_right(room)
    x = dict.fromkeys(sequence, 0.0)
    for a in sequence:
        for b, distance in room[a].items():
            x[b] = max(x[b], x[a] + distance)
    for a in reversed(sequence):
        if room[a]:
            x[a] = min(x[b] - distance for b, distance in room[a].items())
    return [x[b] for b in block]


def _left_to_right(room: dict[int, dict[int, float]]) -> list[int]:
    """Blocks in an order in which every block comes after those on its left."""
    waiting = dict.fromkeys(room, 0)
    for on_right in room.values():
        for b in on_right:
            waiting[b] += 1
    sequence = [b for b in room if not waiting[b]]
    for a in sequence:  # grows while it is walked
        for b in room[a]:
            waiting[b] -= 1
            if not waiting[b]:
                sequence.append(b)
    assert len(sequence) == len(room), "blocks that do not cross have a left-to-right order"
    return sequence


def _balanced(placings: list[list[float]], breadth: Sequence[float]) -> list[float]:
    """The four placings slid over the narrowest of them, then the mean of the two middle places of each node."""
    spans = [_span(centres, breadth) for centres in placings]
    narrowest = min(range(len(spans)), key=lambda i: spans[i][1] - spans[i][0])
    low, high = spans[narrowest]
    for i, (left, right) in enumerate(spans):
        shift = low - left if i % 2 == 0 else high - right  # even: leaning left
        placings[i] = [x + shift for x in placings[i]]
    return [sum(sorted(xs)[1:3]) / 2 for xs in zip(*placings, strict=True)]


def _span(centres: Sequence[float], breadth: Sequence[float]) -> tuple[float, float]:
    left = min(x - w / 2 for x, w in zip(centres, breadth, strict=True))
    right = max(x + w / 2 for x, w in zip(centres, breadth, strict=True))
    return left, right

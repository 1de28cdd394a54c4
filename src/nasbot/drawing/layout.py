"""Where the boxes of a network stand and how its edges run: numbers only, nothing is drawn here.

``layered_layout`` puts layers on ranks, input at the top and output at the bottom. Boxes fill the bands of the ranks;
edges pass a band vertically, at a place kept free for them, and swing sideways only in the gaps between bands. So no
edge can touch a box that it does not belong to. ``column_layout`` stacks the layers in one column with the skips in
lanes at its side: it takes any size in linear time, and leaves the other side free for a second network's matching.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from nasbot.drawing.coordinates import place_nodes
from nasbot.drawing.layered import Edge, LayeredGraph, layered_graph, n_bends, ranks_of
from nasbot.drawing.ordering import order_beside_chain, order_ranks

Point = tuple[float, float]
Piece = tuple[Point, Point, Point]  # of a cubic Bézier curve: two control points and the end
Size = tuple[float, float]
Side = Literal["left", "right"]

MIN_GAP, MAX_GAP = 24.0, 72.0  # between two ranks
GAP_PER_REACH = 0.08  # a gap grows with how far its edges swing sideways, so that they do not lie flat
PORT_GAP = 13.0  # between the arrowheads on one box
ROW_GAP = 15.0  # between the boxes of a column
LANE_GAP = 8.0  # between the skips beside a column
FIRST_LANE = 14.0
CORNER = 6.0
SPRAWL = 1.3  # times the width of the plain column
# 60 layers have fewer than 1,800 bends. Beyond this, ordering would take seconds and the picture would be a carpet.
MAX_BENDS = 5_000


@dataclass(frozen=True)
class Box:
    """One layer's rectangle; x and y are its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> Point:
        """The middle of the rectangle."""
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True)
class Route:
    """One edge's way: a start on the box it leaves, then cubic pieces, the last of which ends at the box it feeds."""

    edge: Edge
    start: Point
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Layout:
    """Boxes by layer and routes by edge, all within (0, 0) … (width, height)."""

    boxes: tuple[Box, ...]
    routes: tuple[Route, ...]
    width: float
    height: float


def layout(sizes: Sequence[Size], edges: Iterable[Edge]) -> Layout:
    """The layered layout, or the column where the network is too large for one (far beyond 60 layers)."""
    pairs = sorted(edges)
    rank = ranks_of(len(sizes), pairs)
    if n_bends(rank, pairs) > MAX_BENDS:
        return column_layout(sizes, pairs)
    return layered_layout(sizes, pairs)


# -- ranks ------------------------------------------------------------------------------------------------------------


def layered_layout(sizes: Sequence[Size], edges: Iterable[Edge]) -> Layout:
    """Ranks from top to bottom (Sugiyama), for layers numbered topologically with these widths and heights."""
    pairs = sorted(edges)
    graph = layered_graph(ranks_of(len(sizes), pairs), pairs)
    x = _placed(graph, [width for width, _ in sizes])
    bands = _bands(graph, x, [height for _, height in sizes])
    boxes = tuple(
        Box(x[u] - width / 2, sum(bands[graph.rank[u]]) / 2 - height / 2, width, height)
        for u, (width, height) in enumerate(sizes)
    )
    ports = _ports(graph, x, boxes)
    routes = tuple(_route(graph, edge, x, bands, boxes, ports[edge]) for edge in pairs)
    width = max(max(box.x + box.width for box in boxes), max(x[len(sizes) :], default=0.0))
    return Layout(boxes, routes, width, bands[-1][1])


def _placed(graph: LayeredGraph, widths: Sequence[float]) -> list[float]:
    """The centres of all nodes: in the order with few crossings or, where that sprawls, a column with trunks beside."""
    breadth = [*widths, *[0.0] * (len(graph.rank) - len(widths))]
    x = place_nodes(graph, order_ranks(graph), breadth)
    if (beside := order_beside_chain(graph)) is not None:
        column = place_nodes(graph, beside, breadth)
        if max(x) > SPRAWL * max(column):
            return column
    return x


def _bands(graph: LayeredGraph, x: Sequence[float], heights: Sequence[float]) -> list[tuple[float, float]]:
    """Top and bottom of each rank."""
    tallest = [0.0] * graph.n_ranks
    reach = [0.0] * graph.n_ranks  # how far sideways the links into a rank go
    for node, r in enumerate(graph.rank):
        if not graph.is_bend(node):
            tallest[r] = max(tallest[r], heights[node])
        for above in graph.up[node]:
            reach[r] = max(reach[r], abs(x[node] - x[above]))
    bands = [(0.0, tallest[0])]
    for r in range(1, graph.n_ranks):
        top = bands[-1][1] + min(MAX_GAP, MIN_GAP + GAP_PER_REACH * reach[r])
        bands.append((top, top + tallest[r]))
    return bands


def _ports(graph: LayeredGraph, x: Sequence[float], boxes: Sequence[Box]) -> dict[Edge, float]:
    """Where along the top of its box each edge ends: side by side, in the order in which the edges come."""
    incoming: dict[int, list[tuple[float, Edge]]] = {}
    for (u, v), bends in graph.bends.items():
        incoming.setdefault(v, []).append((x[bends[-1] if bends else u], (u, v)))
    ports: dict[Edge, float] = {}
    for v, arrivals in incoming.items():
        arrivals.sort()
        gap = min(PORT_GAP, (boxes[v].width - 8) / len(arrivals))
        reach = (boxes[v].width - 8) / 2 / gap  # how many gaps from the middle of the box to its corners
        middle = _middle_place([start - x[v] for start, _ in arrivals], gap, reach)
        for i, (_, edge) in enumerate(arrivals):
            ports[edge] = x[v] + (i - middle) * gap
    return ports


def _middle_place(offsets: Sequence[float], gap: float, reach: float) -> float:
    """Which of the arriving edges, in order, ends at the middle of the box (half: none does, two end beside it).

    An edge from straight above keeps to the middle, so that chains stay straight. No port is further out than the box.
    """
    n = len(offsets)
    if n == 1:
        return 0.0
    nearest = min(range(n), key=lambda i: abs(offsets[i]))
    wanted = nearest if abs(offsets[nearest]) < gap else sum(offset < 0 for offset in offsets) - 0.5
    return min(max(wanted, n - 1 - reach), reach)


def _route(
    graph: LayeredGraph,
    edge: Edge,
    x: Sequence[float],
    bands: Sequence[tuple[float, float]],
    boxes: Sequence[Box],
    port: float,
) -> Route:
    u, v = edge
    start = (x[u], boxes[u].y + boxes[u].height)
    way: list[Point] = [start, (x[u], bands[graph.rank[u]][1])]
    for bend in graph.bends[edge]:
        way += [(x[bend], y) for y in bands[graph.rank[bend]]]
    way += [(port, bands[graph.rank[v]][0]), (port, boxes[v].y)]
    return Route(edge, start, tuple(_swing(a, b) for a, b in pairwise(_without_stops(way))))


def _without_stops(way: Sequence[Point]) -> list[Point]:
    """The same way without the steps of no length, which a band that fits its box leaves."""
    return [way[0]] + [b for a, b in pairwise(way) if max(abs(b[0] - a[0]), abs(b[1] - a[1])) > 1e-6]


def _swing(a: Point, b: Point) -> Piece:
    """A piece that leaves a and reaches b vertically; it stays between their heights."""
    half = (a[1] + b[1]) / 2
    return (a[0], half), (b[0], half), b


# -- one column -------------------------------------------------------------------------------------------------------


def column_layout(sizes: Sequence[Size], edges: Iterable[Edge], *, side: Side = "left", gap: float = ROW_GAP) -> Layout:
    """Layers in one column in their given order, skips in lanes at one side; each lane carries one layer's output."""
    pairs = sorted(edges)
    widest = max(width for width, _ in sizes)
    lanes = _lanes(pairs)
    margin = FIRST_LANE + LANE_GAP * max(lanes.values(), default=0) if lanes else 0.0
    left = margin if side == "left" else 0.0
    boxes = []
    y = 0.0
    for width, height in sizes:
        boxes.append(Box(left + (widest - width) / 2, y, width, height))
        y += height + gap
    ports = _side_ports(boxes, pairs, lanes)
    routes = []
    for u, v in pairs:
        if v == u + 1:
            routes.append(_downwards(boxes, u))
        else:
            reach = FIRST_LANE + LANE_GAP * lanes[u]
            lane_x = left - reach if side == "left" else widest + reach
            routes.append(_sideways(boxes, (u, v), lane_x, ports[u, v], side))
    return Layout(tuple(boxes), tuple(routes), widest + margin, y - gap)


def _lanes(edges: Iterable[Edge]) -> dict[int, int]:
    """A lane for each layer that feeds one further down than the next; short stretches get the inner lanes."""
    bottom: dict[int, int] = {}
    for u, v in edges:
        if v > u + 1:
            bottom[u] = max(bottom.get(u, 0), v)
    taken: list[list[Edge]] = []
    lanes: dict[int, int] = {}
    for u in sorted(bottom, key=lambda u: (bottom[u] - u, u)):
        stretch = (u, bottom[u])
        free = (i for i, lane in enumerate(taken) if all(stretch[1] <= b[0] or b[1] <= stretch[0] for b in lane))
        lanes[u] = next(free, len(taken))
        if lanes[u] == len(taken):
            taken.append([])
        taken[lanes[u]].append(stretch)
    return lanes


def _side_ports(boxes: Sequence[Box], edges: Iterable[Edge], lanes: dict[int, int]) -> dict[Edge, float]:
    """Heights at which skips enter their boxes, in the upper part (they leave in the lower), inner lanes above."""
    incoming: dict[int, list[Edge]] = {}
    for u, v in edges:
        if v > u + 1:
            incoming.setdefault(v, []).append((u, v))
    ports = {}
    for v, arrivals in incoming.items():
        arrivals.sort(key=lambda edge: lanes[edge[0]])
        step = 0.6 * boxes[v].height / (len(arrivals) + 1)
        for i, edge in enumerate(arrivals):
            ports[edge] = boxes[v].y + 0.05 * boxes[v].height + (i + 1) * step
    return ports


def _downwards(boxes: Sequence[Box], u: int) -> Route:
    above, below = boxes[u], boxes[u + 1]
    start = (above.centre[0], above.y + above.height)
    return Route((u, u + 1), start, (_straight(start, (below.centre[0], below.y)),))


def _sideways(boxes: Sequence[Box], edge: Edge, lane_x: float, port: float, side: Side) -> Route:
    """Out of the side of one box, down the lane, into the side of the other, with rounded corners."""
    above, below = boxes[edge[0]], boxes[edge[1]]
    towards_lane = -1 if side == "left" else 1
    start = (above.centre[0] + towards_lane * above.width / 2, above.y + 0.8 * above.height)
    end = (below.centre[0] + towards_lane * below.width / 2, port)
    back = CORNER * towards_lane
    upper, lower = (lane_x, start[1]), (lane_x, end[1])
    turns = [(lane_x - back, start[1]), (lane_x, start[1] + CORNER), (lane_x, end[1] - CORNER), (lane_x - back, end[1])]
    pieces = (
        _straight(start, turns[0]),
        (upper, upper, turns[1]),
        _straight(turns[1], turns[2]),
        (lower, lower, turns[3]),
        _straight(turns[3], end),
    )
    return Route(edge, start, pieces)


def _straight(a: Point, b: Point) -> Piece:
    return a, b, b

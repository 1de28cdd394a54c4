"""What the drawing tests measure with: graphs that are hard to draw, and checks on numbers that a picture must pass."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture, Label, LabelPenalties, Layer, Role, Vocabulary
from nasbot.drawing.layout import Box, Layout, Piece, Point
from nasbot.testing.networks import random_architecture

Edges = set[tuple[int, int]]
TOLERANCE = 1e-6


def chain(n: int) -> Edges:
    return {(u, u + 1) for u in range(n - 1)}


def parallel(n_branches: int) -> Edges:
    return {(0, u) for u in range(1, n_branches + 1)} | {(u, n_branches + 1) for u in range(1, n_branches + 1)}


def all_pairs(n: int) -> Edges:
    return {(u, v) for u in range(n) for v in range(u + 1, n)}


def chain_with_skips(n: int, n_edges: int, seed: int) -> Edges:
    """A chain, and random skips up to n_edges."""
    rng = np.random.default_rng(seed)
    edges = chain(n)
    while len(edges) < n_edges:
        u, v = sorted(int(i) for i in rng.integers(0, n, 2))
        if u < v:
            edges.add((u, v))
    return edges


def random_graph(n: int, n_edges: int, seed: int) -> Edges:
    """A spanning tree from the input, every dead end led to the output, and random edges up to n_edges."""
    rng = np.random.default_rng(seed)
    edges = {(int(rng.integers(max(0, v - 6), v)), v) for v in range(1, n - 1)}
    edges |= {(u, n - 1) for u in range(n - 1) if u not in {a for a, _ in edges}}
    while len(edges) < n_edges:
        u, v = sorted(int(i) for i in rng.integers(0, n, 2))
        if u < v:
            edges.add((u, v))
    return edges


GRAPHS: dict[str, tuple[int, Edges]] = {
    "the least": (3, chain(3)),
    "chain of 60": (60, chain(60)),
    "58 branches": (60, parallel(58)),
    "all pairs of 20": (20, all_pairs(20)),
    "every second skipped": (40, chain(40) | {(u, u + 2) for u in range(38)}),
    "nested skips": (40, chain(40) | {(u, 39 - u) for u in range(19)}),
    "overlapping skips": (60, chain(60) | {(u, u + 10) for u in range(50)}),
    "two long branches": (42, chain(21) | {(0, 21), *((u, u + 1) for u in range(21, 41)), (20, 41)}),
    **{f"skips 60/200 #{seed}": (60, chain_with_skips(60, 200, seed)) for seed in range(3)},
    **{
        f"random {n}/{m} #{n}": (n, random_graph(n, m, n))
        for n, m in ((8, 12), (15, 30), (30, 60), (45, 200), (60, 90))
    },
}

NETWORKS = [(kind, n) for kind in ("mlp-reg", "mlp-class", "cnn") for n in (8, 15, 24, 33, 42, 51, 60)]


def network(kind: str, n_layers: int, seed: int = 0) -> Architecture:
    return random_architecture(kind, rng=np.random.default_rng([seed, n_layers]), n_layers=n_layers)


def mlp(edges: Edges) -> Architecture:
    """An MLP of this shape, the layers that feed the last being decision layers: they must feed nothing else."""
    n = max(v for _, v in edges) + 1
    ends = {u for u, v in edges if v == n - 1}
    layers = [Layer("linear") if u in ends else Layer("relu", 64) for u in range(1, n - 1)]
    return Architecture("mlp-reg", [Layer("ip"), *layers, Layer("op")], edges)


def network_with_label(name: str) -> Architecture:
    """Input, one layer with that label, output, in a vocabulary of its own."""
    labels = (
        Label(name="in", role=Role.INPUT),
        Label(name="out", role=Role.OUTPUT),
        Label(name=name, takes_units=True, family="own"),
    )
    vocabulary = Vocabulary("own", labels, LabelPenalties.from_pairs(tuple(label.name for label in labels), {}))
    return Architecture(vocabulary, [Layer("in"), Layer(name, 1_000_000), Layer("out")], [(0, 1), (1, 2)])


def sampled(start: Point, pieces: Iterable[Piece], n: int = 16) -> NDArray[np.float64]:
    """Points along a curve, (points, 2)."""
    t = np.linspace(0, 1, n + 1)[:, None]
    weights = np.hstack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    parts = []
    at = start
    for piece in pieces:
        parts.append(weights @ np.array([at, *piece]))
        at = piece[-1]
    return np.vstack(parts)


def overlapping(boxes: Sequence[Box]) -> list[tuple[int, int]]:
    """Pairs of boxes that overlap or touch."""
    corners = np.array([(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes])
    left, top, right, bottom = corners.T
    apart = (right[:, None] <= left) | (left[:, None] >= right) | (bottom[:, None] <= top) | (top[:, None] >= bottom)
    return [(int(i), int(j)) for i, j in np.argwhere(~apart) if i < j]


def boxes_entered(points: NDArray[np.float64], boxes: Sequence[Box]) -> list[int]:
    """Boxes with a point inside them; their outlines do not count."""
    corners = np.array([(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes])
    inside = (points[:, None] > corners[:, :2] + TOLERANCE) & (points[:, None] < corners[:, 2:] - TOLERANCE)
    return np.flatnonzero(inside.all(axis=2).any(axis=0)).tolist()


def check_layout(plan: Layout, edges: Edges, *, every: int = 1) -> None:
    """All that a layout promises; of huge ones only every so many edges are followed."""
    assert overlapping(plan.boxes) == []
    for box in plan.boxes:
        assert box.x >= -TOLERANCE
        assert box.y >= -TOLERANCE
        assert box.x + box.width <= plan.width + TOLERANCE
        assert box.y + box.height <= plan.height + TOLERANCE
    assert [route.edge for route in plan.routes] == sorted(edges)
    ends = set()
    for route in plan.routes[::every]:
        points = sampled(route.start, route.pieces)
        assert boxes_entered(points, plan.boxes) == [], f"edge {route.edge} runs through a box"
        assert points.min() >= -TOLERANCE
        assert (points <= np.array([plan.width, plan.height]) + TOLERANCE).all()
        assert on_outline(points[0], plan.boxes[route.edge[0]])
        assert on_outline(points[-1], plan.boxes[route.edge[1]])
        ends.add((round(float(points[-1][0]), 3), round(float(points[-1][1]), 3)))
    assert len(ends) == len(plan.routes[::every]), "two arrowheads at one place"


def on_outline(point: NDArray[np.float64], box: Box) -> bool:
    x, y = point
    in_x = box.x - TOLERANCE <= x <= box.x + box.width + TOLERANCE
    in_y = box.y - TOLERANCE <= y <= box.y + box.height + TOLERANCE
    at_side = min(abs(x - box.x), abs(x - box.x - box.width)) < TOLERANCE
    at_end = min(abs(y - box.y), abs(y - box.y - box.height)) < TOLERANCE
    return bool((in_x and at_end) or (in_y and at_side))

"""The difference of two networks as one picture.

Both networks are laid over each other: layers and edges that both have are grey, added ones green, removed ones
orange-red, changed layers blue with what they were and are. Where matched layers stand in another order in the two, so
that there is no way to lay them over each other from top to bottom, the networks stand side by side instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

from nasbot.architecture import Architecture
from nasbot.drawing import draw
from nasbot.drawing.diff import Change, NetworkDiff
from nasbot.drawing.layout import Layout, layout
from nasbot.drawing.scene import Rectangle, Scene, Shape, Text, shifted, text_width

Edge = tuple[int, int]

BETWEEN = 60.0
# Fill, outline and edge of what became of a layer.
COLOURS: Mapping[Change, tuple[str, str]] = {
    Change.KEPT: ("#f6f7f8", "#b4bdc6"),
    Change.CHANGED: ("#d6e8f5", "#0072B2"),
    Change.ADDED: ("#d3eee5", "#009E73"),
    Change.REMOVED: ("#fadfd0", "#D55E00"),
}
SIGNS = {Change.KEPT: "", Change.CHANGED: "~", Change.ADDED: "+", Change.REMOVED: "−"}


def diff_scene(diff: NetworkDiff, *, names: tuple[str, str] = ("first", "second")) -> Scene:
    """The drawing as shapes; ``names`` are those of the two networks."""
    union = _union(diff)
    title = f"{names[0]} → {names[1]}"[: draw.MAX_TITLE]
    if union is not None:
        columns = [_column(*union)]
        headings = [title]
    else:
        columns = [_column(*_side(diff, first=True)), _column(*_side(diff, first=False))]
        headings = [names[0][: draw.MAX_TITLE], names[1][: draw.MAX_TITLE]]
    caption = _caption(diff)
    legend = _legend(diff)
    legend_width = sum(22 + text_width(text, draw.SMALL) + 14 for text, _ in legend)
    widths = [
        max(plan.width, text_width(text, draw.TITLE_SIZE)) for (plan, _), text in zip(columns, headings, strict=True)
    ]
    inner = max(sum(widths) + BETWEEN * (len(columns) - 1), text_width(caption, draw.FONT_SIZE), legend_width)
    width = ceil(inner + 2 * draw.MARGIN)
    heading = draw.TITLE_SIZE + 14
    shapes: list[Shape] = []
    x = (width - sum(widths) - BETWEEN * (len(columns) - 1)) / 2
    for (plan, paint), text, column_width in zip(columns, headings, widths, strict=True):
        shapes += paint(shifted(plan, x + (column_width - plan.width) / 2, draw.MARGIN + heading))
        shapes.append(Text(x + column_width / 2, draw.MARGIN + draw.TITLE_SIZE / 2, text, draw.TITLE_SIZE, draw.INK))
        x += column_width + BETWEEN
    bottom = draw.MARGIN + heading + max(plan.height for plan, _ in columns)
    shapes += _legend_shapes(legend, (width - legend_width) / 2, bottom + 26)
    shapes.append(Text(width / 2, bottom + 50, caption, draw.FONT_SIZE, draw.INK))
    description = f"difference of networks of {len(diff.first.layers)} and {len(diff.second.layers)} layers: {caption}"
    return Scene(width, ceil(bottom + 50 + draw.MARGIN), tuple(shapes), description)


# -- what is drawn -----------------------------------------------------------------------------------------------------


class _Painter:
    """Boxes and edges of a plan, each in the colour of its change."""

    def __init__(self, texts: Sequence[draw.LayerText], layers: Sequence[Change], edges: Mapping[Edge, Change]) -> None:
        self.texts, self.layers, self.edges = texts, layers, edges

    def __call__(self, plan: Layout) -> list[Shape]:
        shapes: list[Shape] = []
        for change in (Change.KEPT, Change.REMOVED, Change.ADDED):
            routes = tuple(route for route in plan.routes if self.edges[route.edge] is change)
            shapes += draw.edge_shapes(replace(plan, routes=routes), COLOURS[change][1])
        for box, text, change in zip(plan.boxes, self.texts, self.layers, strict=True):
            fill, stroke = COLOURS[change]
            heavy = 1.0 if change is Change.KEPT else 1.8
            shapes.append(Rectangle(box.x, box.y, box.width, box.height, fill, stroke, heavy, radius=4.0))
            ink = draw.FAINT if change is Change.KEPT else draw.INK
            shapes.append(Text(box.x + 7, box.centre[1], text.index, draw.SMALL, draw.FAINT, "start"))
            shapes.append(Text(box.centre[0], box.centre[1], text.name, draw.FONT_SIZE, ink))
        return shapes


def _column(
    texts: Sequence[draw.LayerText], layers: Sequence[Change], edges: Mapping[Edge, Change]
) -> tuple[Layout, _Painter]:
    plan = layout([(draw.box_width(texts), draw.BOX_HEIGHT)] * len(texts), edges)
    return plan, _Painter(texts, layers, edges)


def _union(diff: NetworkDiff) -> tuple[list[draw.LayerText], list[Change], dict[Edge, Change]] | None:
    """Both networks in one, layers in an order in which all edges run down; None where there is no such order."""
    match = diff.match()
    # A layer is named by the second network where it has it: ("b", v), and ("a", u) where it is removed.
    of_first = {u: ("b", match[u]) if u in match else ("a", u) for u in range(len(diff.first.layers))}
    changes = {("b", e.v) if e.v is not None else ("a", e.u): e.change for e in diff.layers}
    edges: dict[tuple[tuple[str, int | None], tuple[str, int | None]], Change] = {}
    for edge in diff.edges:
        if edge.second is not None:
            edges[("b", edge.second[0]), ("b", edge.second[1])] = edge.change
        elif edge.first is not None:
            edges[of_first[edge.first[0]], of_first[edge.first[1]]] = edge.change
    order = _top_down(list(changes), list(edges))
    if order is None:
        return None
    place = {node: i for i, node in enumerate(order)}
    texts = [_text(diff, node, match) for node in order]
    return texts, [changes[node] for node in order], {(place[a], place[b]): change for (a, b), change in edges.items()}


def _top_down(nodes: list, edges: list) -> list | None:  # type: ignore[type-arg]  # of whatever names nodes
    """Nodes such that all edges run from earlier to later ones, else as given; None where they form a cycle."""
    waits = Counter(b for _, b in edges)
    below: dict[object, list[object]] = {}
    for a, b in edges:
        below.setdefault(a, []).append(b)
    place = {node: i for i, node in enumerate(nodes)}
    ready = [node for node in nodes if not waits[node]]
    order = []
    while ready:
        node = ready.pop(0)
        order.append(node)
        for b in below.get(node, []):
            waits[b] -= 1
            if not waits[b]:
                ready.append(b)
                ready.sort(key=place.__getitem__)
    return order if len(order) == len(nodes) else None


def _text(diff: NetworkDiff, node: tuple[str, int | None], match: Mapping[int, int]) -> draw.LayerText:
    side, at = node
    assert at is not None  # a change is of a layer of the first or of the second
    if side == "a":
        return draw.LayerText(f"−{at}", _name(diff.first, at), "")
    u = next((u for u, v in match.items() if v == at), None)
    now = _name(diff.second, at)
    if u is None:
        return draw.LayerText(f"+{at}", now, "")
    before = _name(diff.first, u)
    return draw.LayerText(str(at), now if before == now else f"{before} → {now}", "")


def _name(arch: Architecture, u: int) -> str:
    return draw.layer_texts(arch, None)[u].name


def _side(diff: NetworkDiff, *, first: bool) -> tuple[list[draw.LayerText], list[Change], dict[Edge, Change]]:
    """One of the two networks by itself."""
    arch = diff.first if first else diff.second
    changes = {e.u if first else e.v: e.change for e in diff.layers}
    edges = {e.first if first else e.second: e.change for e in diff.edges}
    return (
        [replace(text, index=SIGNS[changes[u]] + text.index) for u, text in enumerate(draw.layer_texts(arch, None))],
        [changes[u] for u in range(len(arch.layers))],
        {edge: change for edge, change in edges.items() if edge is not None},
    )


# -- what stands below -------------------------------------------------------------------------------------------------


def _caption(diff: NetworkDiff) -> str:
    layers = Counter(e.change for e in diff.layers if e.change is not Change.KEPT)
    edges = Counter(e.change for e in diff.edges if e.change is not Change.KEPT)
    parts = [f"{n} {'layer' if n == 1 else 'layers'} {change}" for change, n in layers.items()]
    parts += [f"{n} {'edge' if n == 1 else 'edges'} {change}" for change, n in edges.items()]
    difference = ", ".join(parts) or "no difference"
    return f"{difference}; distance {draw.short_number(diff.d)}, normalised {diff.d_bar:.3f}"


def _legend(diff: NetworkDiff) -> list[tuple[str, Change]]:
    there = {e.change for e in diff.layers} | {e.change for e in diff.edges}
    return [(str(change), change) for change in Change if change in there]


def _legend_shapes(entries: Sequence[tuple[str, Change]], x: float, y: float) -> list[Shape]:
    shapes: list[Shape] = []
    for text, change in entries:
        fill, stroke = COLOURS[change]
        shapes.append(Rectangle(x, y - 5, 16, 10, fill, stroke, radius=2.0))
        shapes.append(Text(x + 22, y, text, draw.SMALL, draw.FAINT, "start"))
        x += 22 + text_width(text, draw.SMALL) + 14
    return shapes

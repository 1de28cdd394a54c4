"""One network drawn in the manner of the paper's figures.

A box per layer: its index, then label, units and /2 for a stride of 2, then its mass in parentheses. Input and output
are pink, decision layers green; each family of processing layers has a tint of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture, Role
from nasbot.drawing.layout import Layout, Piece, Point, Route, layout
from nasbot.drawing.render import svg, write_scene
from nasbot.drawing.scene import Path, Rectangle, Scene, Shape, Text, polygon, shifted, text_width

MARGIN = 14.0
BOX_HEIGHT = 24.0
PADDING = 7.0
FONT_SIZE = 11.0
SMALL = 9.0
TITLE_SIZE = 14.0
MAX_TITLE = 200

INK, FAINT = "#20262e", "#6b7682"
EDGE = "#51606f"
ARROW_LENGTH, ARROW_HALF_WIDTH = 6.5, 2.9
END_COLOURS = ("#fbd5e2", "#c4527e")
DECISION_COLOURS = ("#d3eecd", "#4d9950")
# Fill and outline for the families of processing layers in the order in which a vocabulary names them.
FAMILY_COLOURS = (
    ("#edf4fd", "#7090b4"),
    ("#f4eefc", "#8f7bb5"),
    ("#fdf5e0", "#b99a50"),
    ("#eef5f3", "#6f9c8f"),
    ("#f3f3f1", "#8c8c86"),
    ("#fbefe9", "#b98468"),
)


def draw(
    arch: Architecture,
    path: str | FilePath,
    *,
    title: str | None = None,
    masses: bool = True,
    scale: float = 1.0,
) -> FilePath:
    """Draw a network to a .svg, .png or .pdf file; returns the path.

    ``masses=False`` leaves the layer masses out; ``scale`` enlarges the picture. A PNG of a huge network is made
    smaller than asked for rather than exhaust memory.
    """
    return write_scene(network_scene(arch, title=title, masses=masses), path, scale=scale)


def to_svg(arch: Architecture, *, title: str | None = None, masses: bool = True) -> str:
    """The drawing as one self-contained SVG element."""
    return svg(network_scene(arch, title=title, masses=masses))


def network_scene(arch: Architecture, *, title: str | None = None, masses: bool = True) -> Scene:
    """The drawing as shapes."""
    texts = layer_texts(arch, arch.masses if masses else None)
    plan = layout([(box_width(texts), BOX_HEIGHT)] * len(texts), arch.edges)
    title = (title or "")[:MAX_TITLE]
    heading = TITLE_SIZE + 12 if title else 0.0
    width = ceil(max(plan.width, text_width(title, TITLE_SIZE)) + 2 * MARGIN)
    plan = shifted(plan, (width - plan.width) / 2, MARGIN + heading)
    shapes: list[Shape] = [*edge_shapes(plan), *box_shapes(arch, plan, texts)]
    if title:
        shapes.append(Text(width / 2, MARGIN + TITLE_SIZE / 2, title, TITLE_SIZE, INK))
    height = ceil(plan.height + heading + 2 * MARGIN)
    return Scene(width, height, tuple(shapes), title or description(arch))


def description(arch: Architecture) -> str:
    """What a screen reader or a tooltip says of the picture."""
    return f"{arch.kind} network of {len(arch.layers)} layers and {len(arch.edges)} edges"


# -- what stands in a box ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerText:
    """The three parts of a box's text, from left to right; ``mass`` may be empty."""

    index: str
    name: str
    mass: str


def layer_texts(arch: Architecture, masses: NDArray[np.float64] | None) -> list[LayerText]:
    """What each layer's box says."""
    return [
        LayerText(str(u), _name(arch, u), "" if masses is None else f"({short_number(float(masses[u]))})")
        for u in range(len(arch.layers))
    ]


def _name(arch: Architecture, u: int) -> str:
    layer = arch.layers[u]
    units = "" if layer.units is None else f" {layer.units}"
    stride = layer.stride or arch.vocabulary[layer.label].shrinks
    own = "" if layer.attributes is None else f" [{layer.attributes}]"
    return f"{layer.label}{units}" + (f" /{stride}" if stride > 1 else "") + own


def short_number(value: float) -> str:
    """A mass or a distance in few characters: 0.25, 47.5, 16,384, 1.05M."""
    for size, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= size:
            return f"{value / size:.4g}" + suffix if value < 1e15 else f"{value:.3g}"
    return f"{value:,.0f}" if value >= 999.5 or value == round(value) else f"{value:.3g}"


def box_width(texts: Sequence[LayerText]) -> float:
    """One width for all boxes of a network, in which every text has room beside the index and the mass."""
    side = max(max(text_width(text.index, SMALL), text_width(text.mass, SMALL)) for text in texts)
    names = max(text_width(text.name, FONT_SIZE) for text in texts)
    return 2 * side + names + 2 * PADDING + 12


def box_shapes(arch: Architecture, plan: Layout, texts: Sequence[LayerText]) -> list[Shape]:
    """The boxes of a network and what stands in them."""
    colours = [layer_colours(arch, u) for u in range(len(arch.layers))]
    by_colour = sorted(range(len(arch.layers)), key=lambda u: colours[u])  # keeps SVG files small
    boxes = [(plan.boxes[u], colours[u]) for u in by_colour]
    shapes: list[Shape] = [Rectangle(b.x, b.y, b.width, b.height, *colour, radius=4.0) for b, colour in boxes]
    filled = list(zip(plan.boxes, texts, strict=True))
    shapes += [Text(b.x + PADDING, b.centre[1], text.index, SMALL, FAINT, "start") for b, text in filled]
    shapes += [Text(*b.centre, text.name, FONT_SIZE, INK) for b, text in filled]
    right = [(b, b.x + b.width - PADDING, text.mass) for b, text in filled if text.mass]
    shapes += [Text(x, b.centre[1], mass, SMALL, FAINT, "end") for b, x, mass in right]
    return shapes


def layer_colours(arch: Architecture, u: int) -> tuple[str, str]:
    """Fill and outline of a layer's box."""
    role = arch.role(u)
    if role in (Role.INPUT, Role.OUTPUT):
        return END_COLOURS
    if role is Role.DECISION:
        return DECISION_COLOURS
    known = dict.fromkeys(label.family for label in arch.vocabulary.labels if label.role is Role.PROCESSING)
    place = list(known).index(arch.vocabulary[arch.layers[u].label].family)
    return FAMILY_COLOURS[place % len(FAMILY_COLOURS)]


# -- edges ------------------------------------------------------------------------------------------------------------


def edge_shapes(plan: Layout, colour: str = EDGE) -> list[Shape]:
    """The edges as lines, each stretch that edges share painted once, then their arrowheads."""
    painted: set[tuple[int, Piece]] = set()
    lines: list[Shape] = []
    for route in plan.routes:
        source, start, pieces = route.edge[0], route.start, list(_shortened(route))
        while (source, pieces[0]) in painted:
            start = pieces.pop(0)[-1]
        painted.update((source, piece) for piece in pieces)
        lines.append(Path(start, _joined(start, pieces), stroke=colour, stroke_width=1.1))
    return lines + [_arrowhead(route, colour) for route in plan.routes]


def _shortened(route: Route) -> tuple[Piece, ...]:
    """Without the last bit, which the arrowhead covers: a line's blunt end would show beside the tip."""
    control_1, control_2, end = route.pieces[-1]
    dx, dy = (ARROW_LENGTH / 2 * part for part in _direction(route))
    last = (control_1, (control_2[0] - dx, control_2[1] - dy), (end[0] - dx, end[1] - dy))
    return (*route.pieces[:-1], last)


def _joined(start: Point, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The same line with vertical pieces that follow each other made one."""
    kept: list[Piece] = []
    at = start  # where the last kept piece starts
    for piece in pieces:
        if kept and all(abs(x - at[0]) < 1e-6 for x, _ in (*kept[-1], *piece)):
            kept[-1] = (at, piece[-1], piece[-1])
        else:
            at = kept[-1][-1] if kept else start
            kept.append(piece)
    return tuple(kept)


def _arrowhead(route: Route, colour: str) -> Path:
    x, y = route.pieces[-1][-1]
    dx, dy = _direction(route)
    back_x, back_y = x - dx * ARROW_LENGTH, y - dy * ARROW_LENGTH
    half = ARROW_HALF_WIDTH
    return polygon([(x, y), (back_x - dy * half, back_y + dx * half), (back_x + dy * half, back_y - dx * half)], colour)


def _direction(route: Route) -> Point:
    """The unit vector along which the edge reaches its box."""
    points = [route.start, *(point for piece in route.pieces for point in piece)]
    x, y = points[-1]
    from_x, from_y = next(point for point in reversed(points) if point != (x, y))
    length = ((x - from_x) ** 2 + (y - from_y) ** 2) ** 0.5
    return (x - from_x) / length, (y - from_y) / length

"""A picture as a list of rectangles, paths and texts, and how wide a text may get. Both renderers read nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from nasbot.drawing.layout import Layout, Piece, Point, Route

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Rectangle:
    """An upright rectangle from its upper left corner, with rounded corners."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = "none"
    stroke_width: float = 1.0
    radius: float = 0.0


@dataclass(frozen=True)
class Path:
    """A start and cubic Bézier pieces, stroked, or filled (then closed, and perhaps translucent)."""

    start: Point
    pieces: tuple[Piece, ...]
    stroke: str = "none"
    stroke_width: float = 1.0
    fill: str = "none"
    opacity: float = 1.0


@dataclass(frozen=True)
class Text:
    """One line of text; y is its vertical middle."""

    x: float
    y: float
    content: str
    size: float
    colour: str
    anchor: Anchor = "middle"


Shape = Rectangle | Path | Text


@dataclass(frozen=True)
class Scene:
    """Shapes in the order in which they are painted, within (0, 0) … (width, height).

    Whole numbers for width and height keep the edge of the background sharp.
    """

    width: float
    height: float
    shapes: tuple[Shape, ...]
    description: str


# Widths in parts of the font size. DejaVu Sans, in which matplotlib writes, is the widest of the usual sans-serif fonts
# (Helvetica and Arial take about nine tenths), and each figure here covers its letters; tests measure that.
NARROW, ROUND, CAPITAL, WIDE, FOREIGN = 0.42, 0.65, 0.8, 1.0, 1.25
WIDTHS = (
    dict.fromkeys("fijlrtIJ!'(),-./:;[]\\| ", NARROW)
    | dict.fromkeys("mwMW@%#+<=>^~&", WIDE)
    | dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ", CAPITAL)
    | dict.fromkeys('0123456789abcdeghknopqsuvxyz"$*?_`{}', ROUND)
)


def text_width(content: str, size: float) -> float:
    """No less than the width of the text in any common sans-serif font."""
    return size * sum(WIDTHS.get(character, FOREIGN) for character in content)


def straight(points: Sequence[Point]) -> tuple[Piece, ...]:
    """The straight pieces from the first point through the others, for a Path that starts at the first."""
    return tuple((a, b, b) for a, b in pairwise(points))


def polygon(points: Sequence[Point], fill: str) -> Path:
    """A filled shape with straight sides."""
    return Path(points[0], straight(points), fill=fill)


def shifted(plan: Layout, dx: float, dy: float) -> Layout:
    """The same layout elsewhere on the canvas; width and height stay those of the layout itself."""

    def moved(point: Point) -> Point:
        return point[0] + dx, point[1] + dy

    boxes = tuple(replace(box, x=box.x + dx, y=box.y + dy) for box in plan.boxes)
    routes = tuple(
        Route(route.edge, moved(route.start), tuple((moved(a), moved(b), moved(c)) for a, b, c in route.pieces))
        for route in plan.routes
    )
    return Layout(boxes, routes, plan.width, plan.height)

"""The transport plan between two networks: both drawn in columns side by side, with the matched mass between them.

A box is as high as its layer's mass allows; from its inner side run ribbons to the layers that it is matched with, as
wide as the matched mass, blue-grey where labels agree and orange where they do not. Mass that stays unassigned ends in
a hatched stub. Below stand the three penalties, which add up to the distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture
from nasbot.drawing import draw
from nasbot.drawing.layout import ROW_GAP, Box, Layout, Point, Side, column_layout
from nasbot.drawing.render import svg, write_scene
from nasbot.drawing.scene import Path, Rectangle, Scene, Shape, Text, shifted, straight, text_width
from nasbot.otmann.matching import Matching

BETWEEN = 230.0  # between the columns
MAX_BOX_HEIGHT = 64.0  # of the layer with most mass
MAX_MASS_HEIGHT = 900.0  # of all layers of a network together, where many are large
MAX_ROW_GAP = 60.0
BOX_FILL = 0.92  # the part of a box's side that its mass takes up at most: ribbons stay clear of round corners
MIN_RIBBON = 0.8
NEGLIGIBLE = 1e-9  # of the total mass: rounding, not matching
STUB_LENGTH = 17.0

AGREES = (143, 165, 190)
DIFFERS_LITTLE, DIFFERS_MUCH = (252, 208, 148), (198, 72, 8)
MUCH = 0.5  # label penalties from here on share the deepest orange; those of the paper reach 0.37
UNASSIGNED, HATCH = "#eceff2", "#98a3ae"
RIBBON_OPACITY = 0.8
MAX_LEGEND = 4


def draw_plan(
    matching: Matching, path: str | FilePath, *, names: tuple[str, str] | None = None, scale: float = 1.0
) -> FilePath:
    """Draw a matching that is at hand; ``names`` are headings for the two networks."""
    return write_scene(matching_scene(matching, names=names), path, scale=scale)


def matching_svg(matching: Matching) -> str:
    """The drawing of a matching as SVG text."""
    return svg(matching_scene(matching))


def matching_scene(matching: Matching, *, names: tuple[str, str] | None = None) -> Scene:
    """The drawing of a matching as shapes."""
    left, right = _columns(matching, heading=draw.TITLE_SIZE + 14 if names else 0.0)
    legend, caption = _legend(matching), _caption(matching)
    texts_width = max(legend.width, *(text_width(line.content, line.size) for line in caption))
    width = ceil(max(right.end, texts_width) + 2 * draw.MARGIN)
    shift = (width - right.end) / 2
    left, right = left.moved(shift), right.moved(shift)
    shapes: list[Shape] = [*_ribbons(matching, left, right)]
    for column in (left, right):
        shapes += [
            *draw.edge_shapes(column.plan),
            *_stubs(column),
            *draw.box_shapes(column.arch, column.plan, column.texts),
        ]
    for column, name in zip((left, right), names or (), strict=False):
        heading = name[: draw.MAX_TITLE]
        shapes.append(
            Text(column.plan.boxes[0].centre[0], draw.MARGIN + draw.TITLE_SIZE / 2, heading, draw.TITLE_SIZE, draw.INK)
        )
    bottom = max(box.y + box.height for column in (left, right) for box in column.plan.boxes)
    shapes += legend.shapes((width - legend.width) / 2, bottom + 30)
    shapes += [Text(width / 2, bottom + 58 + 20 * i, x.content, x.size, x.colour) for i, x in enumerate(caption)]
    height = ceil(bottom + 58 + 20 * len(caption) - 10 + draw.MARGIN / 2)
    n_1, n_2 = len(matching.first.layers), len(matching.second.layers)
    description = f"how networks of {n_1} and {n_2} layers are matched; distance {draw.short_number(matching.distance)}"
    return Scene(width, height, tuple(shapes), description)


# -- the two columns --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """One network's boxes, and along each box's inner side the stretches that its mass takes up."""

    arch: Architecture
    plan: Layout
    texts: Sequence[draw.LayerText]
    inner_x: float
    inwards: float  # +1 for the left column, -1 for the right
    ribbon_y: dict[tuple[int, int], float]  # where each ribbon starts, by (u, v)
    stubs: dict[int, tuple[float, float]]  # by layer: top and height of what stays unassigned
    end: float  # the right end of both columns together

    def moved(self, dx: float) -> _Column:
        plan = shifted(self.plan, dx, 0)
        return replace(self, plan=plan, inner_x=self.inner_x + dx, end=self.end + dx)


def _columns(matching: Matching, heading: float) -> tuple[_Column, _Column]:
    per_mass = _height_per_mass(matching.masses_1, matching.masses_2)
    heights = [
        [max(draw.BOX_HEIGHT, mass * per_mass / BOX_FILL) for mass in masses]
        for masses in (matching.masses_1, matching.masses_2)
    ]
    tallest = max(sum(column) + ROW_GAP * (len(column) - 1) for column in heights)
    gaps = [min(MAX_ROW_GAP, (tallest - sum(column)) / (len(column) - 1)) for column in heights]
    tops = [(tallest - sum(column) - gap * (len(column) - 1)) / 2 for column, gap in zip(heights, gaps, strict=True)]
    texts = [draw.layer_texts(matching.first, matching.masses_1), draw.layer_texts(matching.second, matching.masses_2)]
    sides: tuple[Side, Side] = ("left", "right")
    plans = [
        column_layout(
            [(draw.box_width(texts[i]), height) for height in heights[i]], arch.edges, side=sides[i], gap=gaps[i]
        )
        for i, arch in enumerate((matching.first, matching.second))
    ]
    top = draw.MARGIN + heading
    plan_1 = shifted(plans[0], 0.0, top + tops[0])
    plan_2 = shifted(plans[1], plan_1.width + BETWEEN, top + tops[1])
    right_end = plan_1.width + BETWEEN + plan_2.width
    matched = np.where(matching.matched_mass > _negligible(matching), matching.matched_mass, 0.0)
    ends_1, stubs_1 = _stretches(plan_1.boxes, plan_2.boxes, matched, matching.unassigned_1, per_mass)
    ends_2, stubs_2 = _stretches(plan_2.boxes, plan_1.boxes, matched.T, matching.unassigned_2, per_mass)
    flipped = {(u, v): y for (v, u), y in ends_2.items()}
    return (
        _Column(matching.first, plan_1, texts[0], plan_1.width, 1.0, ends_1, stubs_1, right_end),
        _Column(matching.second, plan_2, texts[1], plan_1.width + BETWEEN, -1.0, flipped, stubs_2, right_end),
    )


def _height_per_mass(masses_1: NDArray[np.float64], masses_2: NDArray[np.float64]) -> float:
    largest = max(float(masses_1.max()), float(masses_2.max()))
    total = max(float(masses_1.sum()), float(masses_2.sum()))
    return BOX_FILL * min(MAX_BOX_HEIGHT / largest, MAX_MASS_HEIGHT / total) if largest > 0 else 0.0


def _negligible(matching: Matching) -> float:
    return NEGLIGIBLE * float(matching.masses_1.sum() + matching.masses_2.sum())


def _stretches(
    boxes: Sequence[Box],
    others: Sequence[Box],
    matched: NDArray[np.float64],
    unassigned: NDArray[np.float64],
    per_mass: float,
) -> tuple[dict[tuple[int, int], float], dict[int, tuple[float, float]]]:
    """Along the inner side of each box: its ribbons in the order in which they arrive, then what stays unassigned."""
    ribbon_y: dict[tuple[int, int], float] = {}
    stubs: dict[int, tuple[float, float]] = {}
    least = NEGLIGIBLE * float(matched.sum() + unassigned.sum())
    for u, box in enumerate(boxes):
        partners = sorted(np.flatnonzero(matched[u]).tolist(), key=lambda v: others[v].centre[1])
        left_over = float(unassigned[u]) if unassigned[u] > least else 0.0
        y = box.centre[1] - (float(matched[u].sum()) + left_over) * per_mass / 2
        for v in partners:
            ribbon_y[u, v] = y
            y += float(matched[u, v]) * per_mass
        if left_over:
            stubs[u] = (y, left_over * per_mass)
    return ribbon_y, stubs


# -- ribbons and stubs ------------------------------------------------------------------------------------------------


def _ribbons(matching: Matching, left: _Column, right: _Column) -> list[Shape]:
    """The widest first, so that narrow ones stay visible on top of them."""
    per_mass = _height_per_mass(matching.masses_1, matching.masses_2)
    widest_first = sorted(left.ribbon_y, key=lambda pair: (-matching.matched_mass[pair], pair))
    return [
        _ribbon(
            (left.inner_x, left.ribbon_y[pair]),
            (right.inner_x, right.ribbon_y[pair]),
            float(matching.matched_mass[pair]) * per_mass,
            mismatch_colour(float(matching.label_cost[pair])),
        )
        for pair in widest_first
    ]


def _ribbon(a: Point, b: Point, height: float, colour: str) -> Path:
    if height < MIN_RIBBON:  # still to be seen: widened about its middle
        a, b = (a[0], a[1] - (MIN_RIBBON - height) / 2), (b[0], b[1] - (MIN_RIBBON - height) / 2)
        height = MIN_RIBBON
    half = (a[0] + b[0]) / 2
    below_a, below_b = (a[0], a[1] + height), (b[0], b[1] + height)
    pieces = (
        ((half, a[1]), (half, b[1]), b),
        (b, below_b, below_b),
        ((half, below_b[1]), (half, below_a[1]), below_a),
    )
    return Path(a, pieces, fill=colour, opacity=RIBBON_OPACITY)


def mismatch_colour(penalty: float) -> str:
    """Blue-grey for equal labels, then orange, deeper with the penalty."""
    if penalty <= 0:
        return _hex(AGREES)
    depth = min(penalty / MUCH, 1.0)
    channels = zip(DIFFERS_LITTLE, DIFFERS_MUCH, strict=True)
    return _hex(tuple(round(light + depth * (deep - light)) for light, deep in channels))


def _hex(channels: Sequence[int]) -> str:
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def _stubs(column: _Column) -> list[Shape]:
    shapes: list[Shape] = []
    for top, height in column.stubs.values():
        x = column.inner_x if column.inwards > 0 else column.inner_x - STUB_LENGTH
        shapes += _hatched(x, top, STUB_LENGTH, max(height, MIN_RIBBON))
    return shapes


def _hatched(x: float, y: float, width: float, height: float) -> list[Shape]:
    """A grey rectangle with diagonal lines, as far as it is high enough to show them."""
    shapes: list[Shape] = [Rectangle(x, y, width, height, UNASSIGNED, HATCH, stroke_width=0.6)]
    spacing = 4.5
    for i in range(1, int((width + height) / spacing) + 1):
        reach = i * spacing  # the line x + y = reach, within the rectangle
        start = (x + min(reach, width), y + max(0.0, reach - width))
        end = (x + max(0.0, reach - height), y + min(reach, height))
        if start != end:
            shapes.append(Path(start, straight([start, end]), stroke=HATCH, stroke_width=0.6))
    return shapes


# -- what stands below ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Legend:
    entries: tuple[tuple[str, str | None], ...]  # text, and a colour or None for the hatching

    swatch, gap, between = 22.0, 6.0, 20.0

    @property
    def width(self) -> float:
        """From the first swatch to the end of the last text."""
        return sum(self._width(text) for text, _ in self.entries) - self.between

    def _width(self, text: str) -> float:
        return self.swatch + self.gap + text_width(text, draw.SMALL) + self.between

    def shapes(self, x: float, y: float) -> list[Shape]:
        """Swatches and texts in one row, centred on y."""
        shapes: list[Shape] = []
        for text, colour in self.entries:
            if colour is None:
                shapes += _hatched(x, y - 5, self.swatch, 10)
            else:
                corner: Point = (x, y - 5)
                outline = [corner, (x + self.swatch, y - 5), (x + self.swatch, y + 5), (x, y + 5)]
                shapes.append(Path(corner, straight(outline), fill=colour, opacity=RIBBON_OPACITY))
            shapes.append(Text(x + self.swatch + self.gap, y, text, draw.SMALL, draw.FAINT, "start"))
            x += self._width(text)
        return shapes


def _legend(matching: Matching) -> _Legend:
    costs = matching.label_cost[matching.matched_mass > _negligible(matching)]
    differing = sorted({round(float(cost), 6) for cost in costs if cost > 0})
    if len(differing) > MAX_LEGEND:
        differing = [differing[0], differing[-1]]
    entries: list[tuple[str, str | None]] = [("same label", mismatch_colour(0))]
    entries += [(f"label mismatch {cost:.3g}", mismatch_colour(cost)) for cost in differing]
    return _Legend((*entries, ("unassigned", None)))


def _caption(matching: Matching) -> list[Text]:
    parts = (
        f"label mismatch {draw.short_number(matching.label_penalty)}",
        f"unassigned mass {draw.short_number(matching.unassigned_mass)}",
        f"structure {draw.short_number(matching.structural_penalty)}",
    )
    total = f"{'  +  '.join(parts)}  =  distance {draw.short_number(matching.distance)}"
    detail = f"structural weight {matching.structural_weight:g}, normalised {matching.normalised_distance:.4f}"
    return [Text(0, 0, total, draw.FONT_SIZE, draw.INK), Text(0, 0, detail, draw.SMALL, draw.FAINT)]

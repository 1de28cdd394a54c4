"""A scene as SVG text, written here, or as a PNG, painted by matplotlib. Files are written nowhere else."""

from __future__ import annotations

import math
import re
from itertools import groupby
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from nasbot._files import file_errors
from nasbot.drawing.scene import Path, Rectangle, Scene, Shape, Text
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BACKGROUND = "#ffffff"  # explicit: a picture must not turn unreadable in a dark notebook
FONTS = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
ENDINGS = (".svg", ".png", ".pdf")
PIXELS_PER_UNIT = 2.0
MAX_PIXELS_A_SIDE = 30_000  # matplotlib refuses 2^16
MAX_PIXELS = 120_000_000  # half a gigabyte while painting
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_scene(scene: Scene, path: str | FilePath, *, scale: float = 1.0) -> FilePath:
    """Write the scene to a file whose ending says how; returns the path.

    Raises OptionError for another ending or a scale that is not positive, FileError where the file cannot be written.
    """
    path = FilePath(path)
    if path.suffix.lower() not in ENDINGS:
        raise OptionError(f"cannot draw to {path.name!r}: the name must end in {' or '.join(ENDINGS)}")
    if not 0 < scale <= 100:
        raise OptionError(f"scale must be above 0 and at most 100, got {scale}")
    with file_errors(f"cannot write {path}"):
        if path.suffix.lower() == ".svg":
            path.write_text(svg(scene, scale=scale), encoding="utf-8")
        else:
            _paint_file(scene, path, scale=scale)
    return path


# -- SVG --------------------------------------------------------------------------------------------------------------


def svg(scene: Scene, *, scale: float = 1.0) -> str:
    """The scene as one self-contained SVG element."""
    width, height = _number(scene.width), _number(scene.height)
    shown = f'width="{_number(scene.width * scale)}" height="{_number(scene.height * scale)}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {shown} role="img" '
        f'font-family="{FONTS}">',
        f"<title>{_escaped(scene.description)}</title>",
        f'<rect width="{width}" height="{height}" rx="6" fill="{BACKGROUND}"/>',
    ]
    for style, shapes in groupby(scene.shapes, key=_svg_style):  # what neighbours share is said once, in a group
        lines.append(f"<g {style}>" + "".join(_svg_shape(shape) for shape in shapes) + "</g>")
    return "\n".join([*lines, "</svg>", ""])


def _svg_style(shape: Shape) -> str:
    match shape:
        case Rectangle():
            return f'fill="{shape.fill}"{_svg_stroke(shape)}'
        case Path():
            # Of the fill, not of the group: where two ribbons cross, both are to be seen.
            opacity = f' fill-opacity="{_number(shape.opacity)}"' if shape.opacity < 1 else ""
            return f'fill="{shape.fill}"{_svg_stroke(shape)}{opacity}'
        case Text():
            anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
            return f'font-size="{_number(shape.size)}" fill="{shape.colour}"{anchor}'


def _svg_stroke(shape: Rectangle | Path) -> str:
    return "" if shape.stroke == "none" else f' stroke="{shape.stroke}" stroke-width="{_number(shape.stroke_width)}"'


def _svg_shape(shape: Shape) -> str:
    match shape:
        case Rectangle():
            corner = f' rx="{_number(shape.radius)}"' if shape.radius else ""
            size = f'width="{_number(shape.width)}" height="{_number(shape.height)}"'
            return f'<rect x="{_number(shape.x)}" y="{_number(shape.y)}" {size}{corner}/>'
        case Path():
            return f'<path d="{_svg_way(shape)}"/>'
        case Text():
            # The middle of a line of digits lies about a third of the size above its baseline.
            baseline = shape.y + 0.35 * shape.size
            return f'<text x="{_number(shape.x)}" y="{_number(baseline)}">{_escaped(shape.content)}</text>'


def _svg_way(path: Path) -> str:
    at = path.start
    way = f"M{_number(at[0])} {_number(at[1])}"
    for control_1, control_2, end in path.pieces:
        if (control_1 == at and control_2 == end) or at[0] == control_1[0] == control_2[0] == end[0]:
            way += f"L{_number(end[0])} {_number(end[1])}"
        else:
            way += "C" + " ".join(_number(value) for point in (control_1, control_2, end) for value in point)
        at = end
    return way + ("Z" if path.fill != "none" else "")


def _number(value: float) -> str:
    """Short, and the same on every machine."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")  # + 0.0 turns -0.0 into 0.0


def _escaped(content: str) -> str:
    return escape(NOT_IN_XML.sub("\ufffd", content), {'"': "&quot;"})


# -- PNG --------------------------------------------------------------------------------------------------------------


def pixels_per_unit(scene: Scene, scale: float) -> float:
    """Twice the scale (so that text is crisp), or less where the picture would otherwise have too many pixels."""
    side = max(scene.width, scene.height)
    return min(PIXELS_PER_UNIT * scale, MAX_PIXELS_A_SIDE / side, math.sqrt(MAX_PIXELS / (scene.width * scene.height)))


def _paint_file(scene: Scene, path: FilePath, *, scale: float) -> None:
    """To a PNG or PDF file, by its ending; the same scene gives the same bytes."""
    import warnings

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    dpi = 72 * pixels_per_unit(scene, scale)  # a unit is a point
    figure = Figure(figsize=(scene.width / 72, scene.height / 72), dpi=dpi, facecolor=BACKGROUND)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.axis("off")
    for shape in scene.shapes:
        _paint(axes, shape)
    with path.open("wb") as file, warnings.catch_warnings():
        # A label in a script that DejaVu Sans lacks is painted as empty boxes; the SVG shows it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        if path.suffix.lower() == ".pdf":
            FigureCanvasPdf(figure).print_pdf(file, metadata={"CreationDate": None})  # type: ignore[no-untyped-call]
        else:
            FigureCanvasAgg(figure).print_png(file)  # type: ignore[no-untyped-call]


def _paint(axes: Axes, shape: Shape) -> None:
    match shape:
        case Rectangle():
            _paint_rectangle(axes, shape)
        case Path():
            _paint_path(axes, shape)
        case Text():
            _paint_text(axes, shape)


def _paint_rectangle(axes: Axes, shape: Rectangle) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = f"round,pad=0,rounding_size={shape.radius}" if shape.radius else "square,pad=0"
    corner = (shape.x, shape.y)
    style_options: Any = {"boxstyle": style, "facecolor": shape.fill, "edgecolor": shape.stroke}
    axes.add_patch(FancyBboxPatch(corner, shape.width, shape.height, linewidth=shape.stroke_width, **style_options))


def _paint_path(axes: Axes, shape: Path) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    points = [shape.start, *(point for piece in shape.pieces for point in piece)]
    codes = [Outline.MOVETO] + [Outline.CURVE4] * (len(points) - 1)
    if shape.fill != "none":
        points.append(shape.start)
        codes.append(Outline.CLOSEPOLY)
    axes.add_patch(
        PathPatch(
            Outline(points, codes),
            facecolor=shape.fill,
            edgecolor=shape.stroke,
            linewidth=shape.stroke_width if shape.stroke != "none" else 0,
            alpha=shape.opacity,
            capstyle="butt",
        )
    )


def _paint_text(axes: Axes, shape: Text) -> None:
    alignment: Any = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
    axes.text(
        shape.x,
        shape.y + 0.35 * shape.size,
        shape.content,
        fontsize=shape.size,
        color=shape.colour,
        ha=alignment,
        va="baseline",
        family="DejaVu Sans",
        parse_math=False,  # a label may contain dollars
        usetex=False,
    )

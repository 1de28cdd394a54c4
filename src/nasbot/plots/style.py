"""How plots look: one palette that colour-blind people can read, quiet axes, and what stands where there is nothing.

The eight colours are those of Okabe and Ito (2008). Everything is drawn on ``Axes`` that are handed in, so that a plot
can stand in anybody's figure; nothing here touches pyplot or its global state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

Floats = NDArray[np.float64]

INK, FAINT, GRID = "#20262e", "#6b7682", "#e3e7eb"
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, GREY = "#56B4E9", "#CC79A7", "#9aa5b1"
SERIES = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, INK, GREY)
FAILED, BEST = VERMILLION, BLUE

TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 11.0, 9.0, 8.0
LARGEST = 1e100
OUTLYING = 4.0  # values worse than the middle by so many times the spread of the better ones lie beyond the axis

RC: Any = {  # names that matplotlib's stubs spell out one by one
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],  # the first is what text is measured in
    "font.size": TEXT_SIZE,
    "text.color": INK,
    "text.parse_math": False,  # a name may contain dollars
    "svg.fonttype": "none",  # text stays text: smaller files, and it can be searched and read aloud
    "svg.hashsalt": "nasbot",  # the same picture, the same bytes
    "path.simplify": True,
    "axes.unicode_minus": True,
}


def scores_colours() -> Colormap:
    """From pale (poor) to dark blue (good), readable in grey and with any kind of colour vision."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["YlGnBu"](np.linspace(0.25, 1.0, 256)), name="scores")


def quiet(ax: Axes, *, x: str = "", y: str = "", grid: str = "y") -> None:
    """Faint axes, a light grid behind the data."""
    ax.set_xlabel(x, color=FAINT, fontsize=TEXT_SIZE)
    ax.set_ylabel(y, color=FAINT, fontsize=TEXT_SIZE)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(colors=FAINT, labelsize=SMALL_SIZE)
    ax.set_axisbelow(True)
    if grid in ("x", "y", "both"):
        ax.grid(True, axis=grid, color=GRID, linewidth=0.8)  # type: ignore[arg-type]  # it is one of the three


def remark(ax: Axes, *parts: str) -> None:
    """A line of small print between the title and the axes."""
    text = "; ".join(part for part in parts if part)
    if text:
        ax.set_title(ax.get_title(loc="left"), loc="left", fontsize=TITLE_SIZE, color=INK, pad=20)
        ax.annotate(
            text,
            (0.0, 1.0),
            xycoords="axes fraction",
            xytext=(0, 6),
            textcoords="offset points",
            fontsize=SMALL_SIZE,
            color=FAINT,
            va="bottom",
        )


def is_empty(ax: Axes, title: str, message: str) -> bool:
    """Title to the left; instead of an empty frame, the message that says why there is nothing to see, if there is."""
    ax.set_title(title, loc="left", fontsize=TITLE_SIZE, color=INK, pad=9)
    if not message:
        return False
    ax.set_axis_off()
    wrapped = "\n".join(_wrapped(message, 60))
    ax.text(0.5, 0.5, wrapped, ha="center", va="center", color=FAINT, fontsize=TEXT_SIZE + 1, transform=ax.transAxes)
    return True


def whole_numbers(ax: Axes) -> None:
    """Ticks of the x axis at whole numbers only: there is no trial 2.5."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def readable_log(ax: Axes, axis: str = "x") -> None:
    """A logarithmic axis whose ticks are 1k, 20k, 3M."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    chosen = ax.xaxis if axis == "x" else ax.yaxis
    (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
    low, high = ax.get_xlim() if axis == "x" else ax.get_ylim()
    decades = math.log10(high / low) if low > 0 and high > low else 1.0
    if decades < 2.5:
        chosen.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    chosen.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    chosen.set_minor_formatter(NullFormatter())


def short(value: float, digits: int = 4) -> str:
    """A number in few characters: 0.0123, 3.142, 12k, 3.4M."""
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    for unit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            scale = 1e3 if suffix == "k" else unit
            return f"{value / scale:.{min(digits, 4)}g}{suffix}".replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−")


def clock(seconds: float) -> str:
    """A duration as people say it: 0.4 s, 12 s, 3.5 min, 2.1 h."""
    for unit, suffix in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {suffix}"
    return f"{seconds:.3g} s"


def counted(n: int, what: str) -> str:
    """1 trial, 2 trials."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def percent(share: float) -> str:
    """A share in percent, with two digits where it is small: 0.15 %, 3.2 %, 97 %."""
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"


def time_unit(longest: float) -> tuple[float, str]:
    """Seconds in the unit that suits an axis up to ``longest`` seconds, and its name."""
    for unit, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if longest >= 3 * unit:
            return unit, name
    return 1.0, "seconds"


def reaching_limits(values: Sequence[float], *, higher_is_better: bool) -> tuple[float, float, int]:
    """Limits of a value axis, and how many values lie beyond it.

    All of the good side; of the poor side what is not far off: one diverged network must not flatten all others.
    """
    array = drawable(values)
    better = np.sort(array if higher_is_better else -array)
    if len(better) == 0:
        return 0.0, 1.0, 0
    middle, top = float(np.median(better)), float(better[-1])
    spread = max(top - float(np.quantile(better, 0.25)), 1e-12)
    floor = max(float(better[0]), middle - OUTLYING * spread)
    n_beyond = int((better < floor).sum())
    room = 0.06 * ((top - floor) or abs(top) or 1.0)
    low, high = floor - room, top + room
    return (low, high, n_beyond) if higher_is_better else (-high, -low, n_beyond)


def drawable(values: Sequence[float]) -> Floats:
    """Numbers that an axis can hold: a loss that has exploded to 1e308 is drawn as 1e100, where it is as far away."""
    return np.clip(np.asarray(values, np.float64), -LARGEST, LARGEST)


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights moved as little as needed for neighbours to be ``gap`` apart, for labels; the order is kept."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    groups: list[list[float]] = []  # [centre, number] of runs of labels that touch
    for i in order:
        groups.append([heights[i], 1.0])
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < gap * (groups[-1][1] + groups[-2][1]) / 2:
            (c_1, n_1), (c_2, n_2) = groups[-2:]
            groups[-2:] = [[(c_1 * n_1 + c_2 * n_2) / (n_1 + n_2), n_1 + n_2]]
    placed = [0.0] * len(heights)
    at = iter(order)
    for centre, n in groups:
        for k in range(int(n)):
            placed[next(at)] = centre + (k - (n - 1) / 2) * gap
    return placed


def label_ends(ax: Axes, x: float, heights: Sequence[float], texts: Sequence[str], colours: Sequence[str]) -> None:
    """Labels to the right of where lines end, moved apart where they would overlap."""
    low, high = ax.get_ylim()
    places = apart([min(max(height, low), high) for height in heights], 0.055 * abs(high - low))
    for height, text, colour in zip(places, texts, colours, strict=True):
        ax.annotate(
            text,
            (x, height),
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            fontsize=TEXT_SIZE,
            va="center",
            annotation_clip=False,
        )


def ranked(values: Iterable[float], *, higher_is_better: bool) -> Floats:
    """Ranks as numbers in 0..1, 1 the best: colours that a single outlier cannot spoil."""
    array = np.array(list(values))
    if len(array) < 2:
        return np.ones(len(array))
    _, place = np.unique(array if higher_is_better else -array, return_inverse=True)
    return np.asarray(place / max(int(place.max()), 1), np.float64)


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines

"""Figures, drawn from numbers alone: equal numbers, equal files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Of the methods, the same in every figure; dark enough on white, and different to people who see few colours.
COLOURS = {
    "NASBOT": "#c0392b",
    "RAND": "#7f8c8d",
    "EA": "#2471a3",
    "TreeBO": "#1e8449",
    "EA leaps": "#5b2c6f",
    "Optuna TPE": "#8e44ad",
    "Optuna GP": "#d35400",
    "scikit-learn MLP": "#b7950b",
    "gradient boosting": "#17202a",
}
OTHERS = ("#2471a3", "#1e8449", "#8e44ad", "#d35400", "#17202a", "#b7950b", "#7f8c8d", "#5b2c6f", "#117864")


class Curve(NamedTuple):
    """A mean and its standard error over a common axis."""

    x: Floats
    mean: Floats
    se: Floats
    n: int


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """A method's own colour, and for the others of a figure those that are left."""
    names = tuple(names)
    taken = {COLOURS[name] for name in names if name in COLOURS}
    left = cycle([colour for colour in OTHERS if colour not in taken])
    return {name: COLOURS[name] if name in COLOURS else next(left) for name in names}


def save(figure: Figure, path: Path) -> Path:
    """As SVG without dates or random names, so that a figure changes only where its numbers do."""
    with mpl.rc_context({"svg.hashsalt": "nasbot"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    return path


def panels(n: int, *, width: float = 4.2, height: float = 3.2, columns: int = 3) -> tuple[Figure, list[Any]]:
    """A figure with n axes in rows."""
    n_columns = max(1, min(columns, n))
    n_rows = -(-n // n_columns)
    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    return figure, [figure.add_subplot(n_rows, n_columns, i + 1) for i in range(n)]


def draw_curves(axes: Any, curves: Mapping[str, Curve], *, title: str, x: str, y: str, log: bool = False) -> None:
    """Means, shaded by one standard error."""
    colours = colours_of(curves)
    for name, curve in curves.items():
        colour = colours[name]
        axes.plot(curve.x, curve.mean, color=colour, linewidth=1.6, label=f"{name} ({curve.n})")
        low, high = curve.mean - curve.se, curve.mean + curve.se
        axes.fill_between(curve.x, low, high, color=colour, alpha=0.18, linewidth=0)
    if log:
        axes.set_yscale("log")
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(fontsize=7, frameon=False)


def step_curve(times: Sequence[Floats], values: Sequence[Floats], grid: Floats) -> Curve:
    """Runs that change at moments of their own, on one axis: from where all have a value, mean and standard error.

    ``values`` are the best so far at ``times``, which ascend.
    """
    first = max((float(moments[0]) for moments in times), default=0.0)
    x = grid[grid >= first]
    rows = np.array(
        [best[np.searchsorted(moments, x, side="right") - 1] for moments, best in zip(times, values, strict=True)]
    )
    n = len(rows)
    se = rows.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(x))
    return Curve(x, rows.mean(axis=0), se, n)

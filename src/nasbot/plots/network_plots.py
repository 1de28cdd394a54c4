"""Plots of the networks of a study: their map, their descent, what modifiers brought, what layers the best have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nasbot.plots import series, style
from nasbot.plots.progress_plots import legend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

MAX_STEPS = 22  # lines of the winner's ancestry that are written out
WIDEST = 0.72  # of a digit or a sign of the house's font, bold: its width as a share of the font's size, or more


def plot_map(found: series.ArchitectureMap, ax: Axes) -> None:
    """Networks on a plane, near where OTMANN calls them near; the darker the better, with the way of the best."""
    if style.is_empty(ax, "Map of the networks", found.message):
        return
    style.quiet(ax, grid="")
    up = found.direction == "maximise"
    size = 34 if len(found.points) <= 200 else 14
    valued = [p for p in found.points if p.value is not None]
    failed = [p for p in found.points if p.state == "failed"]
    pending = [p for p in found.points if p.value is None and p.state != "failed"]
    colours = style.ranked([p.value or 0.0 for p in valued], higher_is_better=up)
    order = np.argsort(colours, kind="stable")  # the best on top
    shown = ax.scatter(
        [valued[i].x for i in order],
        [valued[i].y for i in order],
        s=size,
        c=colours[order],
        cmap=style.scores_colours(),
        vmin=0.0,
        vmax=1.0,
        edgecolors="white",
        linewidths=0.5,
        zorder=2,
    )
    ax.scatter(
        [p.x for p in failed], [p.y for p in failed], s=size, marker="x", color=style.FAILED, linewidths=1.1, zorder=2
    )
    ax.scatter(
        [p.x for p in pending], [p.y for p in pending], s=size, facecolors="none", edgecolors=style.GREY, zorder=2
    )
    _draw_path(found, ax)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.08)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(True)
        spine.set_color("#d4dae0")
    if valued:
        _value_bar(ax, shown, valued, up=up)
    failures = f"× {len(failed)} failed" if failed else ""
    style.remark(ax, "near networks are alike: distances stand for d_bar", f"stress {found.stress:.2f}", failures)


def _draw_path(found: series.ArchitectureMap, ax: Axes) -> None:
    """The way of the incumbent, and the numbers of its trials where there is room for them."""
    from matplotlib.patheffects import withStroke

    at = {point.trial: (point.x, point.y) for point in found.points}
    way = [at[trial] for trial in found.path if trial in at]
    if not way:
        return
    ax.plot([x for x, _ in way], [y for _, y in way], color=style.ORANGE, linewidth=1.3, zorder=3, alpha=0.9)
    ax.scatter([x for x, _ in way], [y for _, y in way], s=16, color=style.ORANGE, zorder=4, linewidths=0)
    ax.scatter(
        [way[-1][0]],
        [way[-1][1]],
        s=150,
        marker="*",
        color=style.ORANGE,
        edgecolors=style.INK,
        linewidths=0.8,
        zorder=5,
    )
    extent = max(np.ptp([p.x for p in found.points]), np.ptp([p.y for p in found.points]), 1e-9)
    taken: list[tuple[float, float]] = []
    last = found.path[-1]
    for trial in (last, found.path[0], *reversed(found.path[1:-1])):
        x, y = at[trial]
        if trial != last and any(abs(x - a) < 0.05 * extent and abs(y - b) < 0.04 * extent for a, b in taken):
            continue
        taken.append((x, y))
        ax.annotate(
            f"best: {trial}" if trial == last else str(trial),
            (x, y),
            xytext=(7, 6) if trial == last else (4, 4),
            textcoords="offset points",
            fontsize=style.TEXT_SIZE if trial == last else style.SMALL_SIZE,
            color=style.INK,
            weight="bold" if trial == last else "normal",
            zorder=6,
            path_effects=[withStroke(linewidth=2.0, foreground="white")],
        )


def _value_bar(ax: Axes, shown: PathCollection, valued: Sequence[series.MapPoint], *, up: bool) -> None:
    """A colour bar in the values' own numbers: colours go by rank."""
    figure = ax.figure
    bar = figure.colorbar(shown, ax=ax, shrink=0.6, pad=0.02, aspect=24)
    values = np.sort([p.value for p in valued if p.value is not None])
    places = np.linspace(0.0, 1.0, 5 if len(values) > 4 else max(len(values), 1))
    quantiles = np.quantile(values, places if up else 1.0 - places, method="nearest")
    bar.set_ticks(places.tolist(), labels=[style.short(float(q), 3) for q in quantiles])
    bar.ax.tick_params(labelsize=style.SMALL_SIZE, colors=style.FAINT, length=0)
    bar.outline.set_visible(False)
    bar.ax.set_title("value", fontsize=style.SMALL_SIZE, color=style.FAINT, loc="left")


def plot_lineage(found: series.Lineage, ax: Axes) -> None:
    """Which network was made of which, and the winner's line, step by step."""
    from matplotlib.collections import LineCollection

    if style.is_empty(ax, "Descent", found.message):
        return
    style.quiet(ax, x="generation", grid="x")
    up = found.direction == "maximise"
    nodes = {node.trial: node for node in found.nodes}
    links = [(nodes[node.parent], node) for node in found.nodes if node.parent is not None]
    for lit, colour, width, order in ((False, "#c5ccd3", 0.8, 1), (True, style.BEST, 2.2, 3)):
        paths = [_elbow(a, b) for a, b in links if (a.is_ancestor and b.is_ancestor) is lit]
        ax.add_collection(LineCollection(paths, colors=colour, linewidths=width, zorder=order))
    small = len(found.nodes) > 150
    valued = [node for node in found.nodes if node.value is not None]
    ax.scatter(
        [node.generation for node in valued],
        [node.row for node in valued],
        s=8 if small else 26,
        c=style.ranked([node.value or 0.0 for node in valued], higher_is_better=up),
        cmap=style.scores_colours(),
        vmin=0.0,
        vmax=1.0,
        edgecolors="white",
        linewidths=0.0 if small else 0.5,
        zorder=4,
    )
    others = [node for node in found.nodes if node.value is None]
    failed = [node for node in others if node.cause]
    pending = [node for node in others if not node.cause]
    ax.scatter(
        [n.generation for n in failed],
        [n.row for n in failed],
        s=8 if small else 22,
        marker="x",
        color=style.FAILED,
        linewidths=1.0,
        zorder=4,
    )
    ax.scatter(
        [n.generation for n in pending],
        [n.row for n in pending],
        s=8 if small else 22,
        facecolors="white",
        edgecolors=style.GREY,
        zorder=4,
    )
    ax.set_ylim(found.n_rows - 0.3, -0.7)
    most = max(node.generation for node in found.nodes)
    ax.set_xlim(-0.4, most + 0.6)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    style.whole_numbers(ax)
    _write_ancestry(found, ax)
    n_families = sum(node.parent is None for node in found.nodes)
    style.remark(
        ax, f"{style.counted(len(found.nodes), 'network')}, {n_families} without a parent", "darker is better, × failed"
    )


def _elbow(parent: series.LineageNode, child: series.LineageNode) -> list[tuple[float, float]]:
    """Down first, then to the right, so that siblings share a stem."""
    bend = parent.generation + 0.5
    return [(parent.generation, parent.row), (bend, parent.row), (bend, child.row), (child.generation, child.row)]


def _write_ancestry(found: series.Lineage, ax: Axes) -> None:
    """The winner's line in words, beside the tree; of a long one the middle is left out."""
    if not found.ancestry:
        return
    nodes = {node.trial: node for node in found.nodes}
    lines = []
    for trial in found.ancestry:
        node = nodes[trial]
        value = "" if node.value is None else style.short(node.value)
        origin = ", ".join(node.modifiers) if node.modifiers else "pool" if node.parent is None else ""
        origin = origin if len(origin) <= 34 else origin[:33] + "…"
        lines.append((f"{trial}", value, origin))
    if len(lines) > MAX_STEPS:
        half = MAX_STEPS // 2
        lines = [*lines[:half], ("…", "", f"{len(lines) - 2 * half} steps"), *lines[-half:]]
    table = [("trial", "value", "made by"), *lines]
    step = min(0.052, 0.95 / len(table))
    trials, values = (max(len(line[column]) for line in table) * WIDEST * style.SMALL_SIZE for column in (0, 1))
    ends = (12 + trials, 20 + trials + values, 28 + trials + values)  # points to the right of the tree
    for i, line in enumerate(table):
        for column, x in enumerate(ends):
            ax.annotate(
                line[column],
                (1, 0.97 - i * step),
                xycoords="axes fraction",
                xytext=(x, 0),
                textcoords="offset points",
                ha="left" if column == 2 else "right",
                va="center",
                fontsize=style.SMALL_SIZE,
                color=style.FAINT if i == 0 else style.INK if column == 2 else style.BEST,
                weight="bold" if i == len(lines) else "normal",
            )


def plot_ledger(found: series.ModifierLedger, ax: Axes) -> None:
    """Each modifier: how often tried, how often the network was better than its parent, and by how much."""
    if style.is_empty(ax, "What the modifiers brought", found.message):
        return
    style.quiet(ax, x="networks it took part in", grid="x")
    rows = found.rows
    places = range(len(rows))
    ax.barh(places, [row.n_tries for row in rows], height=0.62, color="#d9e6ef")
    ax.barh(places, [row.n_improved for row in rows], height=0.62, color=style.SKY)
    ax.barh(places, [row.n_records for row in rows], height=0.3, color=style.BEST)
    ax.set_yticks(list(places), [row.modifier for row in rows], fontsize=style.TEXT_SIZE, color=style.INK)
    most = max(row.n_tries for row in rows)
    for column, heading in ((1.12, "mean gain"), (1.26, "best gain"), (1.44, "winner's line")):
        ax.text(
            column,
            1.02,
            heading,
            ha="right",
            va="bottom",
            fontsize=style.SMALL_SIZE,
            color=style.FAINT,
            transform=ax.transAxes,
        )
    for i, row in enumerate(rows):
        cells = (_signed(row.mean_gain), _signed(row.best_gain), f"{row.in_ancestry} ×" if row.in_ancestry else "")
        for column, text in zip((1.12, 1.26, 1.44), cells, strict=True):
            good = column < 1.3 and not text.startswith("−")
            ax.text(
                column,
                i,
                text,
                ha="right",
                va="center",
                fontsize=style.SMALL_SIZE,
                color=style.INK if good or column > 1.3 else style.VERMILLION,
                transform=ax.get_yaxis_transform(),
            )
    ax.set_xlim(0, 1.02 * most)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    style.whole_numbers(ax)
    legend(ax, [("tried", "#d9e6ef"), ("better than its parent", style.SKY), ("the best so far", style.BEST)])


def _signed(gain: float | None) -> str:
    return "" if gain is None else ("+" if gain > 0 else "") + style.short(gain, 3)


def plot_layer_use(found: series.LayerUse, ax: Axes) -> None:
    """Shares of layer types among the best networks against all."""
    if style.is_empty(ax, "Layer types", found.message):
        return
    style.quiet(ax, x="share of the processing layers, %", grid="x")
    places = range(len(found.rows))
    for i, row in enumerate(found.rows):
        ax.plot([100 * row.share_all, 100 * row.share_best], [i, i], color="#c5ccd3", linewidth=2.5, zorder=1)
    ax.scatter([100 * row.share_all for row in found.rows], places, s=42, color=style.GREY, zorder=2)
    ax.scatter([100 * row.share_best for row in found.rows], places, s=52, color=style.BEST, zorder=3)
    ax.set_yticks(list(places), [row.label for row in found.rows], fontsize=style.TEXT_SIZE, color=style.INK)
    ax.set_ylim(len(found.rows) - 0.4, -0.6)
    ax.set_xlim(left=-1)
    ax.tick_params(axis="y", length=0)
    networks = "the best network" if found.n_best == 1 else f"the best {found.n_best} networks"
    legend(ax, [(networks, style.BEST), (f"all {found.n_all}", style.GREY)])

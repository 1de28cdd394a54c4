"""Plots of how a study went: values, workers, curves, costs, comparison, failures and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nasbot.plots import series, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LABELLED = 60  # spans of a timeline that carry their trial's number
LEGEND_BELOW = 38.0  # points, however high the axes are: room for the ticks and the label of the axis
SHOWN_MESSAGE = 62  # characters of a failure's message


def plot_history(found: series.HistorySeries, ax: Axes, *, by: str = "trials") -> None:
    """Every value, and the best so far as a line; failures are ticks at the foot."""
    if style.is_empty(ax, "Best so far", found.message):
        return
    unit, name = style.time_unit(found.points[-1].seconds) if by == "seconds" else (1.0, "")
    style.quiet(ax, x=f"{name} on the study's clock" if by == "seconds" else "finished trials", y="value")

    def place(point: series.HistoryPoint) -> float:
        return point.seconds / unit if by == "seconds" else float(point.place)

    up = found.direction == "maximise"
    known = [point for point in found.points if point.value is not None]
    values = [point.value for point in known if point.value is not None]
    low, high, n_beyond = style.reaching_limits(values, higher_is_better=up)
    ax.set_ylim(low, high)
    beyond = low if up else high
    inside = [point for point, value in zip(known, values, strict=True) if low <= value <= high]
    outside = [point for point, value in zip(known, values, strict=True) if not low <= value <= high]
    full, short_ones = ([p for p in inside if (p.fidelity >= 1) is is_full] for is_full in (True, False))
    ax.scatter([place(p) for p in full], [p.value or 0.0 for p in full], s=14, color=style.SKY, linewidths=0, zorder=2)
    ax.scatter(
        [place(p) for p in short_ones],
        [p.value or 0.0 for p in short_ones],
        s=12,
        facecolors="white",
        edgecolors=style.SKY,
        linewidths=0.8,
        zorder=2,
    )
    if outside:
        marker = "v" if up else "^"
        ax.scatter(
            [place(p) for p in outside], [beyond] * len(outside), s=16, color=style.SKY, marker=marker, clip_on=False
        )
    steps = [point for point in found.points if point.best is not None]
    ax.step(
        [place(p) for p in steps],
        [p.best or 0.0 for p in steps],
        where="post",
        color=style.BEST,
        linewidth=1.8,
        zorder=3,
    )
    records = found.records
    ax.scatter([place(p) for p in records], [p.value or 0.0 for p in records], s=22, color=style.BEST, zorder=4)
    failures = [place(point) for point in found.points if point.cause]
    # At the foot of the side on which poor values lie, where the line of the best never comes.
    ax.plot(
        failures,
        [0.02 if up else 0.98] * len(failures),
        "|",
        color=style.FAILED,
        markersize=8,
        markeredgewidth=1.4,
        transform=ax.get_xaxis_transform(),
        clip_on=False,
    )
    last = place(found.points[-1])
    best = records[-1]
    style.label_ends(
        ax, last, [best.value or 0.0], [f"{style.short(best.value or 0.0)}\ntrial {best.trial}"], [style.BEST]
    )
    notes = [f"{len(failures)} failed (ticks)"] if failures else []
    notes += [f"{n_beyond} beyond the axis (triangles)"] if n_beyond else []
    notes += [f"{len(short_ones)} shorter trainings (hollow)"] if short_ones else []
    style.remark(ax, *notes)
    if by != "seconds":
        style.whole_numbers(ax)
        if 0 < found.n_pool < len(found.points):
            ax.axvspan(0.5, found.n_pool + 0.5, color=style.GREY, alpha=0.12, linewidth=0, zorder=0)
            at = 0.985 if up else 0.015
            ax.text(
                0.7,
                at,
                "pool",
                color=style.FAINT,
                fontsize=style.SMALL_SIZE,
                va="top" if up else "bottom",
                transform=ax.get_xaxis_transform(),
            )
        ax.set_xlim(0.5, len(found.points) + 0.5)
    else:
        ax.set_xlim(0.0, last or 1.0)


def plot_timeline(found: series.Timeline, ax: Axes) -> None:
    """One row per worker, one bar per trial; failures in orange-red with their cause."""
    if style.is_empty(ax, "Who worked when", found.message):
        return
    unit, name = style.time_unit(found.elapsed)
    style.quiet(ax, x=f"{name} on the study's clock", grid="x")
    kinds = {
        "completed": (style.SKY, "completed"),
        "failed": (style.FAILED, "failed"),
        "stopped": (style.GREY, "stopped early"),
        "running": ("#f3e3b5", "running"),
    }
    kinds["cancelled"] = ("#d4dae0", "cancelled")
    shown = []
    for state, (colour, label) in kinds.items():
        spans = [span for span in found.spans if span.state == state]
        if not spans:
            continue
        shown.append((label, colour, len(spans)))
        for worker in {span.worker for span in spans}:
            bars = [
                (s.start / unit, max(s.end - s.start, found.elapsed / 2000) / unit) for s in spans if s.worker == worker
            ]
            width = 0.6 if len(found.spans) <= 200 else 0.0
            ax.broken_barh(bars, (worker - 0.38, 0.76), facecolors=colour, edgecolors="white", linewidths=width)
    if len(found.spans) <= MAX_LABELLED:
        for span in found.spans:
            wide = (span.end - span.start) / max(found.elapsed, 1e-9) > 0.012 * len(str(span.trial)) + 0.008
            if wide:
                colour = "white" if span.state == "failed" else style.INK
                ax.text(
                    (span.start + span.end) / 2 / unit,
                    span.worker,
                    str(span.trial),
                    ha="center",
                    va="center",
                    fontsize=style.SMALL_SIZE - 1,
                    color=colour,
                    clip_on=True,
                )
    ax.set_ylim(found.n_workers - 0.4, -0.6)
    ax.set_xlim(0, max(found.elapsed / unit, 1e-9))
    ticks = range(found.n_workers) if found.n_workers <= 16 else range(0, found.n_workers, 8)
    ax.set_yticks(list(ticks), [f"worker {w}" for w in ticks])
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    legend(ax, [(f"{n} {label}", colour) for label, colour, n in shown])
    causes = sorted({span.cause for span in found.spans if span.cause})
    style.remark(ax, f"workers {style.percent(found.busy)} busy", f"failures: {', '.join(causes)}" if causes else "")


def legend(ax: Axes, entries: list[tuple[str, str]]) -> None:
    """Coloured words below the axes, in one line."""
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    below = ScaledTranslation(0.0, -LEGEND_BELOW / 72, ax.figure.dpi_scale_trans)
    handles = [Patch(facecolor=colour, label=text) for text, colour in entries]
    ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        ncols=len(handles),
        frameon=False,
        fontsize=style.SMALL_SIZE,
        handlelength=1.0,
        borderaxespad=0.0,
        bbox_transform=ax.transAxes + below,
        labelcolor=style.FAINT,
    )


def plot_curves(found: series.LearningCurves, ax: Axes) -> None:
    """All learning curves, the darker the better they ended; the best one on top."""
    from matplotlib.collections import LineCollection

    if style.is_empty(ax, "Learning curves", found.message):
        return
    up = found.direction == "maximise"
    style.quiet(ax, x="step", y="value reported")
    ended = [curve for curve in found.curves if curve.value is not None]
    others = [curve for curve in found.curves if curve.value is None]
    colours = style.scores_colours()(0.9 * style.ranked([c.value or 0.0 for c in ended], higher_is_better=up))
    paths = [np.column_stack([curve.steps, curve.values]) for curve in ended]
    ax.add_collection(LineCollection(paths, colors=colours, linewidths=0.9, zorder=2))
    unfinished = [np.column_stack([curve.steps, curve.values]) for curve in others]
    ax.add_collection(LineCollection(unfinished, colors=style.ORANGE, linewidths=0.9, linestyles="dashed", zorder=2))
    single = [path[0] for path in (*paths, *unfinished) if len(path) == 1]
    if single:
        ax.scatter([p[0] for p in single], [p[1] for p in single], s=12, color=style.GREY)
    last = max(curve.steps[-1] for curve in found.curves)
    first = min(curve.steps[0] for curve in found.curves)
    ax.set_xlim(first, last if last > first else first + 1)
    # From how it stands when training ends, and where it began: not all of a steep start.
    everything = [value for curve in found.curves for value in curve.values]
    low, high, n_beyond = style.reaching_limits(everything, higher_is_better=up)
    ax.set_ylim(low, high)
    for curve in found.curves:
        if curve.is_best:
            ax.plot(curve.steps, curve.values, color=style.BEST, linewidth=2.2, zorder=4)
            style.label_ends(
                ax,
                curve.steps[-1],
                [curve.values[-1]],
                [f"{style.short(curve.values[-1])}\ntrial {curve.trial}"],
                [style.BEST],
            )
    notes = [f"{len(others)} without a value (dashed)"] if others else []
    notes += [f"{n_beyond} points beyond the axis"] if n_beyond else []
    style.remark(ax, f"{style.counted(len(found.curves), 'trial')}, the darker the better", *notes)
    style.whole_numbers(ax)


COST_LABELS = {
    "parameters": "parameters",
    "mass": "total mass (the study names no input shape to count parameters for)",
    "seconds": "seconds of the evaluation",
}


def plot_costs(found: series.Costs, ax: Axes) -> None:
    """Value against cost; the Pareto front is what nothing beats in both."""
    title = {"seconds": "Value against time"}.get(found.cost, "Value against size")
    if style.is_empty(ax, title, found.message or ("" if found.points else "no trial has a known cost")):
        return
    up = found.direction == "maximise"
    style.quiet(ax, x=COST_LABELS[found.cost], y="value", grid="both")
    low, high, n_beyond = style.reaching_limits([p.value for p in found.points], higher_is_better=up)
    ax.scatter(
        [p.cost for p in found.points], [p.value for p in found.points], s=16, color=style.SKY, linewidths=0, zorder=2
    )
    front = found.front
    ax.step([p.cost for p in front], [p.value for p in front], where="post", color=style.BEST, linewidth=1.6, zorder=3)
    ax.scatter([p.cost for p in front], [p.value for p in front], s=30, color=style.BEST, zorder=4)
    ax.set_ylim(low, high)
    if min(p.cost for p in found.points) > 0:
        style.readable_log(ax)
    _label_front(front, ax, up=up)
    beyond = f"{n_beyond} beyond the axis" if n_beyond else ""
    style.remark(
        ax,
        f"{len(front)} of {style.counted(len(found.points), 'trial')} on the Pareto front, some named by number",
        beyond,
    )


def _label_front(front: tuple[series.CostPoint, ...], ax: Axes, *, up: bool) -> None:
    """Trial numbers on the empty side of the front, those that would overlap left out."""
    taken: list[tuple[float, float]] = []
    size = ax.get_window_extent()
    for point in reversed(front):
        x, y = ax.transData.transform((point.cost, point.value))
        if any(abs(x - other) < 0.045 * size.width and abs(y - height) < 0.06 * size.height for other, height in taken):
            continue
        taken.append((x, y))
        ax.annotate(
            str(point.trial),
            (point.cost, point.value),
            xytext=(-5, 5 if up else -5),
            textcoords="offset points",
            ha="right",
            va="bottom" if up else "top",
            fontsize=style.SMALL_SIZE,
            color=style.BEST,
        )


def plot_comparison(found: series.Comparison, ax: Axes) -> None:
    """Best so far of groups of studies: mean, and one standard error to each side."""
    if style.is_empty(ax, "Best so far, studies compared", found.message):
        return
    longest = max(group.x[-1] for group in found.groups)
    unit, name = style.time_unit(longest) if found.by == "seconds" else (1.0, "")
    style.quiet(ax, x=f"{name} on the study's clock" if found.by == "seconds" else "finished trials", y="value")
    colours = [style.SERIES[i % len(style.SERIES)] for i in range(len(found.groups))]
    for group, colour in zip(found.groups, colours, strict=True):
        x, mean, error = np.array(group.x) / unit, style.drawable(group.mean), style.drawable(group.stderr)
        drawn = "default" if len(x) > 1 else "steps-post"
        ax.plot(
            x,
            mean,
            color=colour,
            linewidth=1.8,
            drawstyle="steps-post" if found.by == "trials" else drawn,
            marker="o" if len(x) == 1 else "",
            markersize=5,
        )
        if group.n_studies > 1:
            ax.fill_between(
                x,
                mean - error,
                mean + error,
                color=colour,
                alpha=0.18,
                linewidth=0,
                step="post" if found.by == "trials" else None,
            )
    ends = [float(style.drawable(group.mean)[-1]) for group in found.groups]
    texts = [group.name + (f" ({group.n_studies})" if group.n_studies > 1 else "") for group in found.groups]
    ax.margins(x=0)
    low, high = ax.get_ylim()
    for end, place, group, text, colour in zip(
        ends, style.apart(ends, 0.055 * (high - low)), found.groups, texts, colours, strict=True
    ):
        ax.annotate(
            f"{text}  {style.short(end)}",
            (group.x[-1] / unit, end),
            xytext=(1.02, place),
            textcoords=("axes fraction", "data"),
            va="center",
            fontsize=style.TEXT_SIZE,
            color=colour,
            annotation_clip=False,
        )
    if found.by == "trials":
        style.whole_numbers(ax)
    if any(group.n_studies > 1 for group in found.groups):
        style.remark(ax, "mean and standard error over studies that differ in the seed (their number in brackets)")


def plot_failures(found: series.Failures, ax: Axes) -> None:
    """Causes of failure, how often, and what the last one said."""
    if style.is_empty(ax, "Failures by cause", found.message):
        return
    style.quiet(ax, x="trials", grid="x")
    most = max(row.n for row in found.rows)
    ax.barh(range(len(found.rows)), [row.n for row in found.rows], height=0.5, color=style.FAILED)
    ax.set_yticks(range(len(found.rows)), [row.cause for row in found.rows], fontsize=style.TEXT_SIZE, color=style.INK)
    for i, row in enumerate(found.rows):
        ax.text(
            row.n + 0.015 * most,
            i,
            f"{row.n}  ({style.clock(row.seconds)})",
            va="center",
            fontsize=style.SMALL_SIZE,
            color=style.INK,
        )
        if row.example:
            text = row.example if len(row.example) <= SHOWN_MESSAGE else row.example[: SHOWN_MESSAGE - 1] + "…"
            ax.text(0.0, i + 0.28, f" {text}", va="top", fontsize=style.SMALL_SIZE - 1, color=style.FAINT)
    ax.set_xlim(0, 1.25 * most)
    ax.set_ylim(len(found.rows) - 0.3, -0.6)
    ax.tick_params(axis="y", length=0)
    style.whole_numbers(ax)
    style.remark(ax, f"{found.n_failed} of {style.counted(found.n_finished, 'finished trial')}")


TIME_PARTS = (("distances", style.BLUE), ("fitting", style.PURPLE), ("maximising", style.GREEN), ("other", style.GREY))


def plot_time_by_trial(found: series.TimeSplit, ax: Axes) -> None:
    """Seconds of each trial: evaluating its network, and choosing it."""
    if style.is_empty(ax, "Seconds per trial", found.message):
        return
    style.quiet(ax, x="trial", y="seconds")
    training = [(row.trial, row.training) for row in found.rows if row.training > 0]
    deciding = [(row.trial, row.deciding) for row in found.rows if row.deciding > 0]
    for pairs, colour in ((training, style.ORANGE), (deciding, style.BLUE)):
        if pairs:
            ax.scatter([n for n, _ in pairs], [seconds for _, seconds in pairs], s=12, color=colour, linewidths=0)
    if training or deciding:
        ax.set_yscale("log")
        style.readable_log(ax, "y")
        ends = [
            (pairs[-1][1], name, colour)
            for pairs, name, colour in ((training, "training", style.ORANGE), (deciding, "deciding", style.BLUE))
            if pairs
        ]
        low, high = (np.log10(limit) for limit in ax.get_ylim())
        heights = style.apart([float(np.log10(end)) for end, _, _ in ends], 0.06 * (high - low))
        for height, (_, name, colour) in zip(heights, ends, strict=True):
            ax.annotate(
                name,
                (1.01, 10**height),
                xycoords=("axes fraction", "data"),
                color=colour,
                va="center",
                fontsize=style.TEXT_SIZE,
                annotation_clip=False,
            )
    style.whole_numbers(ax)


def plot_time_totals(found: series.TimeSplit, ax: Axes) -> None:
    """Where the time went in all."""
    if style.is_empty(ax, "In all", found.message):
        return
    style.quiet(ax, grid="")
    parts = [(name, getattr(found.deciding, name), colour) for name, colour in TIME_PARTS]
    parts.append(("training", found.training, style.ORANGE))
    shown = [(name, seconds, colour) for name, seconds, colour in parts if seconds > 0]
    total = sum(seconds for _, seconds, _ in shown)
    longest = max((seconds for _, seconds, _ in shown), default=1.0)
    for i, (_, seconds, colour) in enumerate(shown):
        ax.barh(i, seconds, height=0.55, color=colour)
        ax.text(
            seconds + 0.02 * longest,
            i,
            f"{style.clock(seconds)}  ({style.percent(seconds / total)})",
            va="center",
            fontsize=style.SMALL_SIZE,
            color=style.INK,
        )
    ax.set_yticks(range(len(shown)), [name for name, _, _ in shown], fontsize=style.TEXT_SIZE, color=style.INK)
    ax.set_xlim(0, 1.5 * longest)
    ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    style.remark(ax, f"deciding is {style.percent(found.share_deciding)} of it")

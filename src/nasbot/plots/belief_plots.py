"""Plots of what the surrogate believed: forecasts, their coverage, their density, and the acquisition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nasbot.plots import series, style
from nasbot.plots.beliefs import BASELINE_LOG_DENSITY

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_forecasts(found: series.SurrogateHealth, ax: Axes) -> None:
    """Predicted against observed, each with its interval: on the line where the belief was right."""
    if style.is_empty(ax, "Predicted and observed", found.message):
        return
    style.quiet(ax, x="observed value", y="predicted when it was chosen", grid="both")
    up = found.direction == "maximise"
    observed = np.array([p.observed for p in found.points])
    low, high, n_beyond = style.reaching_limits(observed.tolist(), higher_is_better=up)
    for inside, colour in ((True, style.SKY), (False, style.FAILED)):
        points = [p for p in found.points if p.inside is inside]
        if points:
            ax.vlines(
                [p.observed for p in points],
                [p.lower for p in points],
                [p.upper for p in points],
                color=colour,
                linewidth=1.0,
                alpha=0.55,
                zorder=2,
            )
            ax.scatter(
                [p.observed for p in points],
                [p.median for p in points],
                s=14,
                color=style.BLUE if inside else style.FAILED,
                linewidths=0,
                zorder=3,
            )
    ax.plot([low, high], [low, high], color=style.INK, linewidth=1.0, zorder=1)
    ax.set_xlim(low, high)
    lowest, highest, _ = style.reaching_limits([p.median for p in found.points], higher_is_better=up)
    ax.set_ylim(min(low, lowest), max(high, highest))
    correlation = found.rank_correlation
    known = "" if math.isnan(correlation) else f"rank correlation {style.short(correlation, 2)}"
    style.remark(
        ax,
        known,
        f"{n_beyond} beyond the axis" if n_beyond else "",
        f"bars: {style.percent(found.level)} intervals, red where missed",
    )


def plot_coverage(found: series.SurrogateHealth, ax: Axes) -> None:
    """How many of the values so far lay inside their interval, against how many should have."""
    if style.is_empty(ax, f"Inside the {100 * found.level:.0f} % interval", found.message):
        return
    style.quiet(ax, x="predictions with a value", y="share so far")
    n = np.arange(1, len(found.points) + 1)
    spread = 2 * np.sqrt(found.level * (1 - found.level) / n)
    ax.fill_between(
        n,
        np.maximum(found.level - spread, 0.0),
        np.minimum(found.level + spread, 1.0),
        color=style.GREY,
        alpha=0.2,
        linewidth=0,
    )
    ax.axhline(found.level, color=style.FAINT, linewidth=1.0)
    ax.plot(n, found.running_coverage, color=style.BEST, linewidth=1.8, marker="o" if len(n) == 1 else "")
    ax.set_ylim(0.0, 1.03)
    ax.set_xlim(1, max(len(n), 2))
    style.remark(ax, f"{style.percent(found.coverage)} of {len(n)}", "grey: what chance allows")
    style.whole_numbers(ax)


def plot_log_density(found: series.SurrogateHealth, ax: Axes) -> None:
    """How probable the belief thought what came: each value, and the mean so far."""
    known = [(i + 1, p.log_density) for i, p in enumerate(found.points) if p.log_density is not None]
    unknown = "" if known else "the forecasts do not say mean and sd"
    if style.is_empty(ax, "Log density of what came", found.message or unknown):
        return
    style.quiet(ax, x="predictions with a value", y="log density, standardised")
    densities = [density for _, density in known]
    low, high, n_beyond = style.reaching_limits([*densities, BASELINE_LOG_DENSITY], higher_is_better=True)
    ax.set_ylim(low, high)
    ax.scatter([i for i, _ in known], densities, s=10, color=style.SKY, linewidths=0)
    ax.axhline(BASELINE_LOG_DENSITY, color=style.FAINT, linewidth=1.0)
    running = np.array(found.running_log_density)
    ax.plot(np.arange(1, len(running) + 1), running, color=style.BEST, linewidth=1.8)
    ax.set_xlim(1, max(len(running), 2))
    beyond = f"{n_beyond} beyond the axis" if n_beyond else ""
    style.remark(ax, f"mean {style.short(found.log_density, 3)}", "grey line: knowing only the spread", beyond)
    style.whole_numbers(ax)


ACQUISITIONS = {"log-ei": "log expected improvement", "ei": "expected improvement", "ucb": "upper confidence bound"}


def plot_acquisition(found: series.AcquisitionTrace, ax: Axes) -> None:
    """What each network promised when it was chosen; those that became the best are dark."""
    if style.is_empty(ax, "What the networks promised", found.message):
        return
    style.quiet(ax, x="trial", y=ACQUISITIONS.get(found.acquisition, found.acquisition or "utility"))
    utilities = [p.utility for p in found.points]
    low, high, n_beyond = style.reaching_limits(utilities, higher_is_better=True)
    ax.set_ylim(low, high)
    ax.plot([p.trial for p in found.points], utilities, color=style.GREY, linewidth=0.7, zorder=1)
    for state, colour, size in (
        ("completed", style.SKY, 18),
        ("failed", style.FAILED, 18),
        ("stopped", style.GREY, 18),
        ("running", style.GREY, 18),
    ):
        points = [p for p in found.points if p.state == state and not p.is_record]
        ax.scatter([p.trial for p in points], [p.utility for p in points], s=size, color=colour, linewidths=0, zorder=2)
    records = [p for p in found.points if p.is_record]
    ax.scatter([p.trial for p in records], [p.utility for p in records], s=34, color=style.BEST, zorder=3)
    style.whole_numbers(ax)
    failed = "red: failed" if any(p.state == "failed" for p in found.points) else ""
    beyond = f"{n_beyond} beyond the axis" if n_beyond else ""
    style.remark(ax, f"dark: the {len(records)} that became the best", failed, beyond)

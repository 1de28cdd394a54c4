"""What the surrogate believes of params: how much each matters, and slices through the best candidate; with plots.

The belief is fitted again from the trials, by the searcher that the study's settings describe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nasbot._rng import Role, checked_seed, stream
from nasbot.errors import NasbotError, OptionError
from nasbot.plots.meaning import meaning_of
from nasbot.plots.snapshot import Snapshot, Source
from nasbot.plots.style import BEST, BLUE, FAINT, GREY, SKY, is_empty, quiet, readable_log, remark, short
from nasbot.searchers.effect import ParamEffect

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class ParamBeliefs:
    """Every param of a search, the most important first, and the best value so far."""

    params: tuple[ParamEffect, ...]
    value_name: str = "value"
    best: float | None = None
    best_trial: int | None = None
    message: str = ""


def param_beliefs(source: Source) -> ParamBeliefs:
    """What is believed of the params now; ``message`` says why nothing is."""
    snapshot = Snapshot.of(source)
    best = snapshot.history.best
    if not snapshot.settings.get("params"):
        return ParamBeliefs((), message="this study searches networks alone: it has no params")
    if best is None:
        return ParamBeliefs((), message="no full training has a value yet")
    from nasbot.searchers.base import ExplainsParams
    from nasbot.study.rebuilding import searcher_of_study  # which knows all searchers, and takes its time

    try:
        searcher = searcher_of_study(snapshot.settings, snapshot.history)
        if not isinstance(searcher, ExplainsParams):
            return ParamBeliefs((), message=f"{searcher.name} believes nothing of params: NASBOT does")
        seed = checked_seed(snapshot.settings.get("seed"))
        found = searcher.param_effects(snapshot.history, rng=stream(seed, len(snapshot.history), Role.PROPOSAL))
    except NasbotError as error:
        return ParamBeliefs((), message=str(error)[:300])
    return ParamBeliefs(found, str(meaning_of(snapshot.settings)), best.value, best.number)


def plot_importance(found: ParamBeliefs, ax: Axes) -> None:
    """How much each param matters: the share of correlation lost across its range, with the spread of the samples."""
    if is_empty(ax, "Importance of params", found.message):
        return
    quiet(ax, x="correlation lost across the range", grid="x")
    places = np.arange(len(found.params))[::-1]
    middle = [effect.importance for effect in found.params]
    ax.barh(places, middle, height=0.6, color=SKY)
    ax.hlines(
        places,
        [effect.importance_low for effect in found.params],
        [effect.importance_high for effect in found.params],
        color=BLUE,
        linewidth=1.4,
    )
    ax.set_yticks(places, [effect.name for effect in found.params])
    ax.set_xlim(0.0, 1.0)
    remark(ax, "1: values at its two ends say nothing of each other", "lines: 90 % of the posterior samples")


def plot_slice(found: ParamBeliefs, ax: Axes, *, param: str | None = None) -> None:
    """The value expected of the best candidate along one param, with its interval; the most important by default."""
    if is_empty(ax, "Value along a param", found.message):
        return
    effect = _chosen(found, param)
    inactive = f"{effect.name} is inactive in trial {found.best_trial}, the best: nothing depends on it"
    if is_empty(ax, f"Value along {effect.name}", "" if effect.points else inactive):
        return
    quiet(ax, x=effect.name, y=found.value_name)
    middle, lower, upper = (
        np.array([getattr(point, name) for point in effect.points]) for name in ("median", "lower", "upper")
    )
    own = next((i for i, point in enumerate(effect.points) if point.value == effect.at), None)
    if effect.is_choice:
        places = np.arange(len(effect.points), dtype=np.float64)
        ax.vlines(places, lower, upper, color=SKY, linewidth=3.0, alpha=0.6)
        ax.scatter(places, middle, s=30, color=BLUE, zorder=3)
        ax.set_xticks(places, [str(point.value) for point in effect.points])
        at = None if own is None else float(places[own])
    else:
        places = np.array([float(point.value) for point in effect.points])
        ax.fill_between(places, lower, upper, color=SKY, alpha=0.35, linewidth=0)
        ax.plot(places, middle, color=BLUE, linewidth=1.8)
        at = None if effect.at is None else float(effect.at)
        if effect.is_log:
            readable_log(ax)
    if at is not None and found.best is not None:
        ax.axvline(at, color=GREY, linewidth=0.8, zorder=1)
        ax.scatter([at], [found.best], s=42, color=BEST, edgecolors="white", zorder=4)
    ax.margins(x=0.04)
    remark(
        ax,
        f"all else as trial {found.best_trial} has it (dot: {short(found.best or 0.0)})",
        "band: 90 % of evaluations",
        f"importance {effect.importance:.2f}",
    )
    ax.tick_params(colors=FAINT)


def _chosen(found: ParamBeliefs, name: str | None) -> ParamEffect:
    """The param of this name; without one the most important that is active in the best candidate."""
    if name is None:
        return next((effect for effect in found.params if effect.points), found.params[0])
    chosen = next((effect for effect in found.params if effect.name == name), None)
    if chosen is None:
        known = ", ".join(effect.name for effect in found.params)
        raise OptionError(f"param: expected one of {known}, got {name[:40]!r}")
    return chosen

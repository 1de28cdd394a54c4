"""Who was promoted from rung to rung, who was discarded, and where the cut was: the numbers, and their plot."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nasbot.domain import Fidelity, share_in_words
from nasbot.plots.snapshot import Snapshot, Source
from nasbot.plots.style import (
    BEST,
    FAILED,
    GREEN,
    GREY,
    SKY,
    SMALL_SIZE,
    is_empty,
    quiet,
    reaching_limits,
    remark,
    short,
)
from nasbot.searchers.promotion import Standing, standing_of, why
from nasbot.study.settings import fidelity_of_settings
from nasbot.trial import FINAL, History, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_RUNGS = "every training was a full one: the study has no rungs"
COLOURS = {
    Standing.PROMOTED: GREEN,
    Standing.PROMOTABLE: SKY,
    Standing.DISCARDED: GREY,
    Standing.STOPPED: FAILED,
    Standing.FULL: SKY,
    Standing.FINAL: BEST,
}


class RungPoint(NamedTuple):
    """One training at a rung; of a stopped one the value is the best it had reached."""

    trial: int
    rung: int  # place in ``Rungs.rungs``
    value: float
    standing: str
    promoted_from: int | None


class Rung(NamedTuple):
    """One length of training."""

    name: str
    fidelity: float
    n_trials: int
    n_promoted: int
    n_discarded: int  # below the cut, and stopped
    cut: float | None  # the worst value that successive halving promotes; None where nothing is promoted


@dataclass(frozen=True)
class Rungs:
    """All trainings by their length: the rungs, full ones, and finals."""

    direction: str
    rungs: tuple[Rung, ...]
    points: tuple[RungPoint, ...]
    message: str = ""


def rungs(source: Source) -> Rungs:
    """Every training with a value or stopped, by rung."""
    snapshot = Snapshot.of(source)
    fidelity = fidelity_of_settings(snapshot.settings) or Fidelity()
    trials = snapshot.history.evaluated.trials
    lengths = sorted({_length(trial, fidelity) for trial in trials})
    if not any(length.fidelity < 1 for length in lengths):
        return Rungs(str(snapshot.direction), (), (), NO_RUNGS)
    by_length = {length: [t for t in trials if _length(t, fidelity) == length] for length in lengths}
    points, found = [], []
    for place, (length, members) in enumerate(by_length.items()):
        standings = {trial.number: standing_of(snapshot.history, trial, fidelity) for trial in members}
        counts = Counter(standings.values())
        found.append(
            Rung(
                str(length),
                length.fidelity,
                len(members),
                counts[Standing.PROMOTED],
                counts[Standing.DISCARDED] + counts[Standing.STOPPED],
                _cut(members, fidelity, snapshot) if length.fidelity < 1 else None,
            )
        )
        points += [
            RungPoint(t.number, place, value, str(standings[t.number]), t.promoted_from)
            for t in members
            if (value := t.value if t.value is not None else getattr(t.outcome, "value", None)) is not None
        ]
    return Rungs(str(snapshot.direction), tuple(found), tuple(points))


def why_of(snapshot: Snapshot, trial: Trial) -> str:
    """Why a training was stopped, promoted, discarded or a final, in words; nothing of an excerpt of a history."""
    if type(snapshot.history) is not History:
        return ""
    return why(snapshot.history, trial, fidelity_of_settings(snapshot.settings))


class _Length(NamedTuple):
    fidelity: float
    is_final: bool

    def __str__(self) -> str:
        return "finals" if self.is_final else share_in_words(self.fidelity)


def _length(trial: Trial, fidelity: Fidelity) -> _Length:
    """The nearest rung, for BOCA may ask for any share."""
    if trial.fidelity >= 1:
        return _Length(1.0, trial.origin.searcher == FINAL)
    return _Length(min(fidelity.rungs, key=lambda rung: abs(math.log(rung / trial.fidelity))), False)


def _cut(members: Sequence[Trial], fidelity: Fidelity, snapshot: Snapshot) -> float | None:
    values = [trial.value for trial in members if trial.value is not None]
    n = math.floor(len(members) / fidelity.factor)
    ordered = sorted(values, key=lambda value: -snapshot.direction.turned(value))
    return ordered[min(n, len(ordered)) - 1] if n and ordered else None


def plot_rungs(found: Rungs, ax: Axes) -> None:
    """One column for each length of training, in the order of recording; lines join a candidate's trainings."""
    if is_empty(ax, "Who was trained longer", found.message):
        return
    quiet(ax, y="value")
    up = found.direction == "maximise"
    low, high, n_beyond = reaching_limits([point.value for point in found.points], higher_is_better=up)
    ax.set_ylim(low, high)
    at = _places(found)
    by_trial = {point.trial: point for point in found.points}
    for point in found.points:
        before = by_trial.get(-1 if point.promoted_from is None else point.promoted_from)
        if before is not None:
            ends = [(at[p.trial], min(max(p.value, low), high)) for p in (before, point)]
            ax.plot(*zip(*ends, strict=True), color=GREEN, linewidth=0.6, alpha=0.6, zorder=1)
    for standing, colour in COLOURS.items():
        points = [p for p in found.points if p.standing == standing and low <= p.value <= high]
        if points:
            full = standing in (Standing.FULL, Standing.FINAL)
            places, values = [at[p.trial] for p in points], [p.value for p in points]
            marker = "x" if standing is Standing.STOPPED else "o"
            face = {"color": colour} if full or marker == "x" else {"facecolors": "white", "edgecolors": colour}
            ax.scatter(places, values, s=20, marker=marker, linewidths=1.0, label=str(standing), zorder=2, **face)  # type: ignore[arg-type]
    for place, rung in enumerate(found.rungs):
        if rung.cut is not None and low <= rung.cut <= high:
            ax.plot([place - 0.42, place + 0.42], [rung.cut] * 2, color=BEST, linewidth=1.2, linestyle="--", zorder=3)
            ax.annotate(
                f"cut {short(rung.cut)}", (place + 0.42, rung.cut), fontsize=SMALL_SIZE, color=BEST, ha="right",
                va="bottom" if up else "top",
            )  # fmt: skip
    ax.set_xticks(range(len(found.rungs)), [f"{rung.name}\n{rung.n_trials} trained" for rung in found.rungs])
    ax.set_xlim(-0.5, len(found.rungs) - 0.5)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=6, frameon=False, fontsize=SMALL_SIZE)
    remark(ax, *([f"{n_beyond} beyond the axis"] if n_beyond else []))


def _places(found: Rungs) -> dict[int, float]:
    """Side by side within the column of its rung, the first recorded leftmost."""
    places: dict[int, float] = {}
    for rung in range(len(found.rungs)):
        members = [point.trial for point in found.points if point.rung == rung]
        for i, trial in enumerate(members):
            places[trial] = rung + 0.76 * ((i + 0.5) / len(members) - 0.5)
    return places

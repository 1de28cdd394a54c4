"""What there is to see in a study, as numbers: typed records that plots, reports and the live page draw from.

Every function takes a study, a view of one, a snapshot or a bare history, and answers for any of them: where there is
nothing to show, ``message`` says why, and it is empty otherwise. Values are in the objective's own sense.

    history           best so far, by trial or by time            surrogate   was the belief right when it chose
    timeline          who worked on what, and when                acquisition what the chosen networks promised
    curves            learning curves                             lineage     which network was made of which
    costs             value against parameters or time            ledger      what each modifier brought
    comparison        several studies, mean and standard error    layer_use   layer types among the best
    failures          by cause                                    time_split  deciding against training
    param_beliefs     how much each param matters, and slices
    architecture_map  networks on a plane, near where OTMANN says so
    network_diff      two networks, layer by layer
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean, stdev
from typing import NamedTuple

from nasbot._typing import Json
from nasbot._words import first_line
from nasbot.architecture import Architecture
from nasbot.architecture.resources import resources
from nasbot.drawing.diff import EdgeChange, LayerChange, NetworkDiff, network_diff
from nasbot.errors import NasbotError, OptionError
from nasbot.plots.beliefs import Acquired, AcquisitionTrace, Foreseen, SurrogateHealth, acquisition, surrogate
from nasbot.plots.embedding import ArchitectureMap, MapPoint, architecture_map
from nasbot.plots.lineage import LedgerRow, Lineage, LineageNode, ModifierLedger, ledger, lineage
from nasbot.plots.params import ParamBeliefs, param_beliefs
from nasbot.plots.snapshot import Snapshot, Source, number_of, plain
from nasbot.study.deciding import DecidingTime
from nasbot.trial import POOL, Trial, TrialState

__all__ = [
    "Acquired",
    "AcquisitionTrace",
    "ArchitectureMap",
    "Comparison",
    "CostPoint",
    "Costs",
    "Curve",
    "EdgeChange",
    "FailureRow",
    "Failures",
    "Foreseen",
    "GroupCurve",
    "HistoryPoint",
    "HistorySeries",
    "LayerChange",
    "LayerUse",
    "LayerUseRow",
    "LearningCurves",
    "LedgerRow",
    "Lineage",
    "LineageNode",
    "MapPoint",
    "ModifierLedger",
    "NetworkDiff",
    "ParamBeliefs",
    "Snapshot",
    "Source",
    "Span",
    "SurrogateHealth",
    "TimeSplit",
    "Timeline",
    "TrialTime",
    "acquisition",
    "architecture_map",
    "comparison",
    "costs",
    "curves",
    "failures",
    "grouped",
    "history",
    "layer_use",
    "ledger",
    "lineage",
    "network_diff",
    "param_beliefs",
    "plain",
    "surrogate",
    "time_split",
    "timeline",
]

NO_TRIALS = "no trials yet"
NO_CURVES = "no learning curves: the objective reports no points (trial.report)"
NO_VALUES = "no trial has a value yet"


def _without_values(snapshot: Snapshot) -> str:
    """Why there are no values to show; empty where there are some."""
    if snapshot.history.best is not None:
        return ""
    if snapshot.history.completed:
        return "no full training has ended yet"
    if not snapshot.history:
        return NO_TRIALS
    n_failed = len(snapshot.history.failed)
    return f"{NO_VALUES}: {n_failed} failed" if n_failed else NO_VALUES


# -- history -----------------------------------------------------------------------------------------------------------


class HistoryPoint(NamedTuple):
    """One finished trial: the ``place``-th outcome recorded (from 1), and the best value known from then on."""

    trial: int
    place: int
    seconds: float  # on the study's clock
    value: float | None  # None where it failed or was cancelled
    best: float | None  # None while nothing has a value
    is_record: bool  # better than everything before it
    cause: str  # of a failure; empty otherwise
    fidelity: float = 1.0  # the share of a full training


@dataclass(frozen=True)
class HistorySeries:
    """Finished trials in the order in which outcomes were recorded."""

    name: str
    direction: str
    points: tuple[HistoryPoint, ...]
    n_pool: int  # trials that came from the pool, not from the searcher
    message: str = ""

    @property
    def records(self) -> tuple[HistoryPoint, ...]:
        """The trials that were the best when they came."""
        return tuple(point for point in self.points if point.is_record)


def history(source: Source) -> HistorySeries:
    """Every value and the best so far."""
    snapshot = Snapshot.of(source)
    points: list[HistoryPoint] = []
    best: float | None = None
    for trial in snapshot.history.finished:
        value, place = trial.value, (trial.rank or 0) + 1
        is_record = value is not None and trial.fidelity >= 1 and (best is None or snapshot.is_better(value, best))
        best = value if is_record else best
        at, cause = trial.finished or 0.0, str(trial.cause or "")
        points.append(HistoryPoint(trial.number, place, at, value, best, is_record, cause, trial.fidelity))
    n_pool = sum(trial.origin.searcher == POOL for trial in snapshot.history)
    return HistorySeries(snapshot.name, str(snapshot.direction), tuple(points), n_pool, _without_values(snapshot))


# -- timeline ----------------------------------------------------------------------------------------------------------


class Span(NamedTuple):
    """One trial on one worker. ``deciding`` seconds before ``start`` its network was being chosen."""

    trial: int
    worker: int
    start: float
    end: float  # of a running trial the latest moment known
    state: str
    cause: str
    value: float | None
    deciding: float


@dataclass(frozen=True)
class Timeline:
    """Trials by worker. Which worker had which trial is not recorded: slots are filled from start and end times."""

    n_workers: int
    elapsed: float
    spans: tuple[Span, ...]  # by start
    busy: float  # share of the workers' time that was spent on trials
    message: str = ""


def timeline(source: Source) -> Timeline:
    """Who worked when: the fewest workers that explain the times, each trial on the first that was free."""
    snapshot = Snapshot.of(source)
    begun = [trial for trial in snapshot.history if trial.started is not None]
    elapsed = snapshot.elapsed
    spans: list[Span] = []
    free: list[int] = []
    taken: list[tuple[float, int]] = []  # a heap of (end, worker)
    n_workers = 0
    for trial in sorted(begun, key=lambda trial: (trial.started or 0.0, trial.number)):
        start = trial.started or 0.0
        while taken and taken[0][0] <= start:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if not free:
            heapq.heappush(free, n_workers)
            n_workers += 1
        worker = heapq.heappop(free)
        end = elapsed if trial.finished is None else trial.finished
        heapq.heappush(taken, (end, worker))
        deciding = trial.origin.seconds.get("deciding", 0.0)
        value = trial.value
        spans.append(Span(trial.number, worker, start, end, str(trial.state), str(trial.cause or ""), value, deciding))
    spent = sum(span.end - span.start for span in spans)
    busy = spent / (n_workers * elapsed) if n_workers and elapsed > 0 else 0.0
    message = "" if spans else "no trial has begun yet"
    return Timeline(n_workers, elapsed, tuple(spans), min(busy, 1.0), message)


# -- learning curves ---------------------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """What one trial's objective reported on its way."""

    trial: int
    steps: tuple[int, ...]
    values: tuple[float, ...]
    state: str
    value: float | None  # at the end
    is_best: bool


@dataclass(frozen=True)
class LearningCurves:
    """All trials that reported points, by number."""

    direction: str
    curves: tuple[Curve, ...]
    message: str = ""


def curves(source: Source) -> LearningCurves:
    """The learning curves of all trials that have one."""
    snapshot = Snapshot.of(source)
    best = snapshot.history.best
    found = tuple(
        Curve(
            trial.number,
            tuple(point.step for point in trial.curve),
            tuple(point.value for point in trial.curve),
            str(trial.state),
            trial.value,
            best is not None and trial.number == best.number,
        )
        for trial in snapshot.history
        if trial.curve
    )
    message = "" if found else NO_CURVES
    return LearningCurves(str(snapshot.direction), found, message if snapshot.history else NO_TRIALS)


# -- cost and value ----------------------------------------------------------------------------------------------------


class CostPoint(NamedTuple):
    """One completed trial; ``on_front`` where no other is both cheaper and better."""

    trial: int
    cost: float
    value: float
    on_front: bool


@dataclass(frozen=True)
class Costs:
    """Value against cost."""

    cost: str  # parameters, mass or seconds
    direction: str
    points: tuple[CostPoint, ...]  # by trial
    message: str = ""

    @property
    def front(self) -> tuple[CostPoint, ...]:
        """The Pareto front, the cheapest first."""
        return tuple(sorted((point for point in self.points if point.on_front), key=lambda point: point.cost))


COSTS = ("parameters", "mass", "seconds")


def costs(source: Source, cost: str = "parameters") -> Costs:
    """Value against ``cost``: parameters, mass (of OTMANN) or seconds (of the evaluation).

    Parameters are those that the objective reported, else counted for the study's input shape; where it has none,
    the mass stands in for them, and ``Costs.cost`` says so.
    """
    if cost not in COSTS:
        raise OptionError(f"cost: expected one of {', '.join(COSTS)}, got {str(cost)[:40]!r}")
    snapshot = Snapshot.of(source)
    trials = snapshot.history.completed
    found: list[float | None] = []
    if cost == "parameters":
        found = [_parameters(snapshot, trial) for trial in trials]
        if any(entry is None for entry in found):
            cost = "mass"
    if cost == "mass":
        found = [float(trial.arch.total_mass) for trial in trials]
    elif cost == "seconds":
        found = [trial.seconds for trial in trials]
    known = [(trial, entry) for trial, entry in zip(trials, found, strict=True) if entry is not None]
    front = _front([(entry, snapshot.history.merit(trial)) for trial, entry in known])
    points = [CostPoint(trial.number, entry, trial.value or 0.0, i in front) for i, (trial, entry) in enumerate(known)]
    points.sort(key=lambda point: point.trial)
    return Costs(cost, str(snapshot.direction), tuple(points), _without_values(snapshot))


def _parameters(snapshot: Snapshot, trial: Trial) -> float | None:
    reported = number_of(trial.details, "parameters")
    return reported if reported is not None else _counted(snapshot.settings.get("space"), trial.arch)


def _counted(space: Json, arch: Architecture) -> float | None:
    """Parameters on the input that the study's space names, None where it names none."""
    shape = space.get("input_shape") if isinstance(space, Mapping) else None
    if not isinstance(space, Mapping) or not isinstance(shape, list | tuple):
        return None
    try:
        whole = [int(number_of(entry) or 0) for entry in shape]
        return float(resources(arch, whole, int(number_of(space, "n_outputs") or 1)).parameters)
    except NasbotError:  # a shape that does not fit: somebody else's settings
        return None


def _front(pairs: Sequence[tuple[float, float]]) -> set[int]:
    """Indices of (cost, value to be maximised) that nothing beats in both; of equal pairs the first."""
    front: set[int] = set()
    best = -math.inf
    for i in sorted(range(len(pairs)), key=lambda i: (pairs[i][0], -pairs[i][1], i)):
        if pairs[i][1] > best:
            best = pairs[i][1]
            front.add(i)
    return front


# -- comparison --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupCurve:
    """The best so far of a group of studies: mean and standard error where all of them have a value."""

    name: str
    n_studies: int
    x: tuple[float, ...]  # finished trials, or seconds
    mean: tuple[float, ...]
    stderr: tuple[float, ...]  # 0 for a single study
    final: tuple[float, ...]  # the best value of each study at the last x


@dataclass(frozen=True)
class Comparison:
    """Several groups of studies on one axis."""

    by: str  # trials or seconds
    direction: str
    groups: tuple[GroupCurve, ...]
    message: str = ""


N_TIMES = 200  # grid points of a time axis
MOST_POINTS = 2000  # of an axis of trials


def comparison(groups: Mapping[str, Sequence[Source]], *, by: str = "trials") -> Comparison:
    """Best so far of named groups of studies, by finished ``trials`` or by ``seconds``.

    Each group is followed from where all its studies have a value to where the first of them ends: beyond it the mean
    would be of other studies than before.
    """
    if by not in ("trials", "seconds"):
        raise OptionError(f"by: expected trials or seconds, got {str(by)[:40]!r}")
    taken = {name: [Snapshot.of(source) for source in sources] for name, sources in groups.items()}
    directions = {snapshot.direction for members in taken.values() for snapshot in members}
    if len(directions) > 1:
        raise OptionError("studies that are maximised and studies that are minimised cannot be compared")
    direction = str(next(iter(directions), "maximise"))
    found = [curve for name, members in taken.items() if (curve := _group_curve(name, members, by))]
    return Comparison(by, direction, tuple(found), "" if found else "no study to compare has a value yet")


def grouped(snapshots: Sequence[Snapshot]) -> dict[str, list[Snapshot]]:
    """Studies that differ in nothing but the seed together, named by their searcher where that tells them apart."""
    by_settings: dict[str, list[Snapshot]] = {}
    for snapshot in snapshots:
        settings = {key: value for key, value in snapshot.settings.items() if key != "seed"}
        by_settings.setdefault(json.dumps(settings, sort_keys=True, default=str), []).append(snapshot)
    searchers = Counter(members[0].searcher for members in by_settings.values())
    named: dict[str, list[Snapshot]] = {}
    for members in by_settings.values():
        first = members[0]
        name = first.searcher if first.searcher and searchers[first.searcher] == 1 else first.name or first.searcher
        while name in named:
            name += " (another)"
        named[name] = members
    return named


def _group_curve(name: str, members: Sequence[Snapshot], by: str) -> GroupCurve | None:
    paths = [_best_path(history(snapshot), by) for snapshot in members]
    if not paths or not all(paths):
        return None
    start, end = max(path[0][0] for path in paths), min(path[-1][0] for path in paths)
    if end < start:
        return None
    if by == "trials":
        every = max(1, math.ceil((end - start) / MOST_POINTS))
        grid = [float(x) for x in range(int(start), int(end) + 1, every)]
        grid += [end] * (grid[-1] != end)
    elif end > start:
        grid = [start + (end - start) * i / (N_TIMES - 1) for i in range(N_TIMES)]
    else:
        grid = [start]
    rows = [_at(path, grid) for path in paths]
    columns = list(zip(*rows, strict=True))
    n = len(rows)
    errors = tuple(stdev(column) / math.sqrt(n) if n > 1 else 0.0 for column in columns)
    return GroupCurve(name, n, tuple(grid), tuple(map(fmean, columns)), errors, columns[-1])


def _best_path(series: HistorySeries, by: str) -> list[tuple[float, float]]:
    """(x, best) at every outcome from the first value on."""
    known = [point for point in series.points if point.best is not None]
    return [(float(p.place) if by == "trials" else p.seconds, p.best) for p in known if p.best is not None]


def _at(path: Sequence[tuple[float, float]], grid: Sequence[float]) -> list[float]:
    """The value of a step function at increasing places."""
    values, i = [], 0
    for x in grid:
        while i + 1 < len(path) and path[i + 1][0] <= x:
            i += 1
        values.append(path[i][1])
    return values


# -- layer types -------------------------------------------------------------------------------------------------------


class LayerUseRow(NamedTuple):
    """One label: its share of the processing layers of the best networks, and of all evaluated ones."""

    label: str
    share_best: float
    share_all: float
    n_best: int  # layers
    networks_best: int  # of the best networks, how many have it at all


@dataclass(frozen=True)
class LayerUse:
    """Layer types among the best networks against all."""

    n_best: int
    n_all: int
    rows: tuple[LayerUseRow, ...]  # in the vocabulary's order
    message: str = ""


def layer_use(source: Source, n_best: int = 10) -> LayerUse:
    """Which labels the ``n_best`` best networks use, against all that were evaluated."""
    if n_best < 1:
        raise OptionError(f"n_best: expected at least 1, got {n_best}")
    snapshot = Snapshot.of(source)
    ranked = snapshot.history.ranked
    everyone = [Counter(t.arch.layers[u].label for u in t.arch.processing_layers) for t in ranked]
    top = everyone[:n_best]
    if not everyone:
        return LayerUse(0, 0, (), _without_values(snapshot))
    among_all, among_best = sum(everyone, Counter()), sum(top, Counter())
    order = [label.name for label in ranked[0].arch.vocabulary.labels if among_all[label.name]]
    rows = [
        LayerUseRow(
            label,
            among_best[label] / max(among_best.total(), 1),
            among_all[label] / max(among_all.total(), 1),
            among_best[label],
            sum(label in counts for counts in top),
        )
        for label in order
    ]
    return LayerUse(len(top), len(everyone), tuple(rows))


# -- failures ----------------------------------------------------------------------------------------------------------


class FailureRow(NamedTuple):
    """One cause: its trials, and the first line of what the latest of them said."""

    cause: str
    n: int
    trials: tuple[int, ...]
    example: str
    seconds: float  # spent on these trials


@dataclass(frozen=True)
class Failures:
    """Failed trials by cause, the most frequent first."""

    rows: tuple[FailureRow, ...]
    n_failed: int
    n_finished: int
    message: str = ""


def failures(source: Source) -> Failures:
    """What went wrong, and how often."""
    snapshot = Snapshot.of(source)
    by_cause: dict[str, list[Trial]] = {}
    for trial in snapshot.history.failed:
        by_cause.setdefault(str(trial.cause), []).append(trial)
    rows = [
        FailureRow(
            cause,
            len(trials),
            tuple(sorted(trial.number for trial in trials)),
            first_line(trials[-1].message),
            sum(trial.seconds or 0.0 for trial in trials),
        )
        for cause, trials in by_cause.items()
    ]
    rows.sort(key=lambda row: (-row.n, row.cause))
    n_finished = len(snapshot.history.finished)
    message = "" if rows else f"no failures among {n_finished} finished trials" if n_finished else NO_TRIALS
    return Failures(tuple(rows), len(snapshot.history.failed), n_finished, message)


# -- time --------------------------------------------------------------------------------------------------------------


class TrialTime(NamedTuple):
    """Seconds that one trial took: choosing its network, by purpose, and evaluating it."""

    trial: int
    distances: float
    fitting: float
    maximising: float
    other: float  # of choosing
    training: float

    @property
    def deciding(self) -> float:
        """All of choosing."""
        return self.distances + self.fitting + self.maximising + self.other


@dataclass(frozen=True)
class TimeSplit:
    """Deciding against training, trial by trial and in all; training is summed over workers."""

    rows: tuple[TrialTime, ...]
    deciding: DecidingTime
    training: float
    cumulative_deciding: tuple[float, ...]  # along rows
    cumulative_training: tuple[float, ...]
    message: str = ""

    @property
    def share_deciding(self) -> float:
        """Of all the time spent, the part that was spent on choosing; 0 where none was."""
        total = self.deciding.total + self.training
        return self.deciding.total / total if total > 0 else 0.0


def time_split(source: Source) -> TimeSplit:
    """Where the time went."""
    snapshot = Snapshot.of(source)
    rows = tuple(_trial_time(trial) for trial in snapshot.history if trial.state is not TrialState.WAITING)
    return TimeSplit(
        rows,
        DecidingTime.of(snapshot.history),
        sum(row.training for row in rows),
        tuple(accumulate(row.deciding for row in rows)),
        tuple(accumulate(row.training for row in rows)),
        "" if rows else "no trial has begun yet",
    )


def _trial_time(trial: Trial) -> TrialTime:
    distances, fitting, maximising = (
        trial.origin.seconds.get(part, 0.0) for part in ("distances", "fitting", "maximising")
    )
    other = max(0.0, trial.origin.seconds.get("deciding", 0.0) - distances - fitting - maximising)
    return TrialTime(trial.number, distances, fitting, maximising, other, trial.seconds or 0.0)

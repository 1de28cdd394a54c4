"""Was the surrogate right? What it predicted of each network when it chose it, against what came.

Read from the trials' forecasts: nothing is fitted again, so it costs nothing and says what was believed at the time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from nasbot._ranks import rank_correlation
from nasbot.plots.snapshot import Snapshot, Source, records_of
from nasbot.trial import Forecast, Trial

LEVEL = 0.9  # of the intervals in forecasts
BASELINE_LOG_DENSITY = (
    -0.5 * math.log(2 * math.pi) - 0.5
)  # mean log density of standard normals under their own density


class Foreseen(NamedTuple):
    """One proposed and completed trial. ``inside`` is whether the value lies in the interval predicted."""

    trial: int
    observed: float
    median: float
    lower: float
    upper: float
    inside: bool
    z: float | None  # (observed - mean) / sd in the standardised units of the belief; larger is better than believed
    log_density: float | None  # of the observed value under the belief, in the same units


@dataclass(frozen=True)
class SurrogateHealth:
    """Predicted against observed, in the order in which values were recorded. Intervals include an evaluation's noise.

    Networks are chosen because they promise much, so that values somewhat below what was believed are to be expected.
    """

    direction: str
    level: float
    points: tuple[Foreseen, ...]
    running_coverage: tuple[float, ...]  # over the points so far
    running_log_density: tuple[float, ...]  # mean over the points so far; NaN before the first
    message: str = ""

    @property
    def coverage(self) -> float:
        """Share of values inside their interval; ``level`` for a belief that is right about itself. NaN of none."""
        return self.running_coverage[-1] if self.points else math.nan

    @property
    def log_density(self) -> float:
        """Mean log density; -1.42 is what knowing nothing but the spread of the values gives. NaN where unknown."""
        return self.running_log_density[-1] if self.points else math.nan

    @property
    def rank_correlation(self) -> float:
        """Spearman's correlation of predicted and observed: does it know which networks are good. NaN below 3."""
        if len(self.points) < 3:
            return math.nan
        return rank_correlation(*([getattr(p, name) for p in self.points] for name in ("median", "observed")))


def surrogate(source: Source) -> SurrogateHealth:
    """How well the belief foresaw what it chose."""
    snapshot = Snapshot.of(source)
    warp = _warp(snapshot)
    before: list[float] = []  # values known, in the order of their recording
    points: list[Foreseen] = []
    n_finished: list[int] = []  # the rank of each value in ``before``
    for trial in snapshot.history.completed:
        foreseen = _foreseen(snapshot, trial, before[: bisect_left(n_finished, trial.proposed_after)], warp)
        if foreseen is not None:
            points.append(foreseen)
        before.append(snapshot.history.merit(trial))
        n_finished.append(trial.rank or 0)
    coverage = tuple(n / i for i, n in enumerate(accumulate(int(point.inside) for point in points), start=1))
    densities = _running_mean([point.log_density for point in points])
    message = "" if points else _unpredicted(snapshot)
    return SurrogateHealth(str(snapshot.direction), LEVEL, tuple(points), coverage, densities, message)


def _foreseen(snapshot: Snapshot, trial: Trial, before: list[float], warp: str) -> Foreseen | None:
    said, observed = trial.forecast, trial.value
    if said is None or observed is None or said.median is None or said.lower is None or said.upper is None:
        return None
    z, density = _standardised(said, snapshot.history.merit(trial), before, warp)
    inside = said.lower <= observed <= said.upper
    return Foreseen(trial.number, observed, said.median, said.lower, said.upper, inside, z, density)


def _standardised(said: Forecast, value: float, before: list[float], warp: str) -> tuple[float | None, float | None]:
    """The value where the belief lives: warped as it warped the values it knew. None where that cannot be said."""
    mean, sd = said.mean, said.observed_sd or said.sd  # a searcher may not know its noise
    if mean is None or sd is None or sd <= 0 or not before:
        return None, None
    from nasbot.gp.warping import InvalidValuesError, Warp, warp_values

    try:
        at = float(warp_values(np.array(before), Warp(warp)).forward(np.array([value]))[0])
    except (InvalidValuesError, ValueError):  # a warp that does not take this value, or of another nasbot
        return None, None
    z = (at - mean) / sd
    return z, -0.5 * z * z - math.log(sd) - 0.5 * math.log(2 * math.pi)


def _warp(snapshot: Snapshot) -> str:
    """The warp of the study's belief, by its settings."""
    searcher = snapshot.settings.get("searcher")
    belief = searcher.get("belief") if isinstance(searcher, Mapping) else None
    warp = belief.get("warp") if isinstance(belief, Mapping) else None
    return warp if isinstance(warp, str) else "rank"


def _running_mean(values: list[float | None]) -> tuple[float, ...]:
    totals = accumulate(0.0 if value is None else value for value in values)
    counts = accumulate(int(value is not None) for value in values)
    return tuple(total / n if n else math.nan for total, n in zip(totals, counts, strict=True))


def _unpredicted(snapshot: Snapshot) -> str:
    if not snapshot.history:
        return "no trials yet"
    proposed = [trial for trial in snapshot.history if trial.origin.was_proposed]
    if not proposed:
        return "nothing was predicted yet: the first networks come from the pool"
    if any(trial.forecast is not None and trial.forecast.median is not None for trial in proposed):
        return "no network that was predicted has a value yet"
    return f"{snapshot.searcher or 'the searcher'} predicts nothing: searchers with a surrogate (NASBOT) do"


# -- acquisition -------------------------------------------------------------------------------------------------------


class Acquired(NamedTuple):
    """One proposal: what it promised, and how it was found."""

    trial: int
    utility: float
    by_phase: tuple[tuple[str, float], ...]  # the best utility after each phase of the maximiser
    n_utilities: int  # networks looked at
    feasible: float  # believed probability that it can be evaluated; 1 where nothing is believed
    state: str
    is_record: bool  # whether it became the best so far


@dataclass(frozen=True)
class AcquisitionTrace:
    """The utility of each network chosen, by trial. Under log EI it falls as there is less left to gain."""

    acquisition: str  # its name; empty where it is not known
    points: tuple[Acquired, ...]
    message: str = ""


def acquisition(source: Source) -> AcquisitionTrace:
    """What the networks promised when they were chosen."""
    snapshot = Snapshot.of(source)
    records = frozenset(records_of(snapshot.history))
    points = tuple(
        Acquired(
            trial.number,
            said.utility,
            tuple(said.utility_by_phase.items()),
            said.n_utilities or 0,
            1.0 if said.feasible is None else said.feasible,
            str(trial.state),
            trial.number in records,
        )
        for trial in snapshot.history
        if (said := trial.forecast) is not None and said.utility is not None
    )
    searcher = snapshot.settings.get("searcher")
    name = str(searcher.get("acquisition", "")) if isinstance(searcher, Mapping) else ""
    message = "" if points else _unpredicted(snapshot)
    if not points and "predicts nothing" in message:
        message = f"{snapshot.searcher or 'the searcher'} maximises no acquisition: searchers such as NASBOT do"
    return AcquisitionTrace(name, points, message)

"""The records that searchers, executors, storages and studies share: one evaluation, how it ended, and all of them.

Everything here is a frozen value. Values are as the objective gave them; ``History.evaluated`` turns them, once, for
beliefs, which maximise.

    waiting --> running --> completed    Scored
       ^           |   \\--> stopped      Stopped: it fell behind, and a pacer ended it
       |           |   \\--> failed       Failed, with a cause
       |           |    \\-> cancelled    Cancelled
       \\-----------/                     its worker or its driver died; it will be run again
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from nasbot import _json
from nasbot._display import display
from nasbot._growing import First, SeenBefore
from nasbot._json import plain_json, utf8
from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate
from nasbot.errors import OptionError, StudyError

# Who chose a candidate, where no searcher did.
POOL = "pool"  # the study began with it
FORK = "fork"  # taken over from another study
RETRY = "retry"  # somebody asked for it again
FINAL = "final"  # recommended, and trained longer at the end of the search
ADDED = "added"  # measured elsewhere, and told with its value
NOT_PROPOSED = (POOL, FORK, RETRY, FINAL, ADDED)


class Direction(StrEnum):
    """Whether the objective's values are better high or low."""

    MAXIMISE = "maximise"
    MINIMISE = "minimise"

    @classmethod
    def of(cls, given: str) -> Direction:
        """The direction of this name."""
        try:
            return cls(given)
        except ValueError:
            raise OptionError(f"direction: expected maximise or minimise, got {str(given)[:40]!r}") from None

    def turned(self, value: float) -> float:
        """A value such that higher is better, or such a value as the objective has it; never minus zero."""
        return (value if self is Direction.MAXIMISE else -value) + 0.0


class TrialState(StrEnum):
    """Where a trial is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether a trial in this state never changes again."""
        return self not in (TrialState.WAITING, TrialState.RUNNING)


class FailureCause(StrEnum):
    """Why an evaluation gave no value."""

    NAN = "nan"  # it returned or reached a value that is not finite
    EXCEPTION = "exception"  # it raised, or returned something that is not a number
    OOM = "oom"  # it crossed its memory limit
    TIMEOUT = "timeout"  # it crossed its time limit
    KILLED = "killed"  # somebody else ended its process
    CRASHED = "crashed"  # its process ended by itself without a result (segmentation fault, os._exit)
    REFUSED = "refused"  # it declined to start (nasbot.errors.RefusedError)
    ENVIRONMENT = "environment"  # the machine failed: no file descriptors, no room on the disk, no process


# Causes that say nothing about the candidate.
EXTERNAL_CAUSES = frozenset({FailureCause.KILLED, FailureCause.ENVIRONMENT})


# -- outcomes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scored:
    """The objective's value, a finite number; ``details`` are whatever else is worth keeping, as plain JSON."""

    value: float
    details: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _finite(self.value))
        object.__setattr__(self, "details", plain_json(self.details))


@dataclass(frozen=True)
class Failed:
    """No value, and why. Kept, shown, never fed to a surrogate as a number."""

    cause: FailureCause
    message: str = ""
    details: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cause", FailureCause(self.cause))
        object.__setattr__(self, "message", utf8(self.message))
        object.__setattr__(self, "details", plain_json(self.details))


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """A training that a pacer ended, because others had done better by then.

    It has no value, so it is neither best nor promoted; beliefs take the value expected of it.
    """

    step: int  # at which it fell behind
    value: float  # the best it had reported by then
    bar: float  # what it would have had to reach
    expected: float  # ``value``, and what others gained from there to their ends
    share: float  # of the steps of such a training, at the bar; the rest was saved
    place: int  # among those compared at that step, itself included, from 1
    among: int

    def __post_init__(self) -> None:
        for name in ("value", "bar", "expected", "share"):
            object.__setattr__(self, name, _finite(getattr(self, name)))

    @property
    def reason(self) -> str:
        """Why, in words."""
        return (
            f"discarded at step {self.step:,}, {self.share:.0%} of a training: {self.value:.4g} was place {self.place} "
            f"of {self.among} there, and the bar {self.bar:.4g}"
        )

    def to_dict(self) -> dict[str, Json]:
        """As plain data."""
        return plain_json(asdict(self))

    @classmethod
    def from_dict(cls, record: object) -> Stopped:
        """What ``to_dict`` wrote; CodecError for anything else."""
        return _json.read_as(cls, record, "stopped")


@dataclass(frozen=True)
class Cancelled:
    """Somebody no longer wanted it."""

    message: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", utf8(self.message))


Outcome: TypeAlias = Scored | Stopped | Failed | Cancelled

_FINAL_STATE: Mapping[type, TrialState] = {
    Scored: TrialState.COMPLETED,
    Stopped: TrialState.STOPPED,
    Failed: TrialState.FAILED,
    Cancelled: TrialState.CANCELLED,
}


# -- one evaluation ----------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """One point of a learning curve, as the objective reported it."""

    step: int
    value: float


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a candidate came from."""

    searcher: str = ""  # the name of what chose it, or one of NOT_PROPOSED
    parents: tuple[int, ...] = ()  # the trials of which it was made
    modifiers: tuple[str, ...] = ()  # by which it was made of them, by name
    changes: tuple[str, ...] = ()  # the same in words
    of_trial: int | None = None  # the trial that this one repeats: retry, final, fork
    of_study: str | None = None  # the study that it was taken over from: fork
    seconds: Mapping[str, float] = field(default_factory=dict)  # of deciding: "deciding" in all, and its parts

    def __post_init__(self) -> None:
        for name, kind in (("parents", int), ("modifiers", utf8), ("changes", utf8)):
            object.__setattr__(self, name, tuple(kind(item) for item in getattr(self, name)))
        object.__setattr__(self, "searcher", utf8(self.searcher))
        object.__setattr__(self, "seconds", {name: float(value) for name, value in self.seconds.items()})

    @property
    def was_proposed(self) -> bool:
        """Whether a searcher chose it."""
        return self.searcher not in ("", *NOT_PROPOSED)

    def to_dict(self) -> dict[str, Json]:
        """As plain data, without what is empty."""
        return _without_defaults(self)

    @classmethod
    def from_dict(cls, record: object) -> Provenance:
        """What ``to_dict`` wrote; CodecError for anything else."""
        return _json.read_as(cls, record, "origin", optional=True)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What its searcher believed of a candidate when it chose it. None: not said."""

    median: float | None = None  # in the objective's own sense, as are lower and upper: 90 % lie between those
    lower: float | None = None
    upper: float | None = None
    mean: float | None = None  # in standardised units, larger being better, as are the two below
    sd: float | None = None  # of the value itself
    observed_sd: float | None = None  # of what an evaluation would give: with its noise
    feasible: float | None = None  # the probability that it can be evaluated at all
    improvement: float | None = None  # expected over the best so far, in standardised units
    utility: float | None = None  # the acquisition
    n_utilities: int | None = None  # how many candidates were looked at
    utility_by_phase: Mapping[str, float] = field(default_factory=dict)  # the best after each phase of maximising
    repairs: str = ""  # what had to be mended in fitting

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, float | np.floating):  # a predicted NaN is forgotten
                object.__setattr__(self, entry.name, float(value) if math.isfinite(value) else None)
        phases = {name: float(value) for name, value in self.utility_by_phase.items() if math.isfinite(value)}
        object.__setattr__(self, "utility_by_phase", phases)

    def to_dict(self) -> dict[str, Json]:
        """As plain data, without what is not said."""
        return _without_defaults(self)

    @classmethod
    def from_dict(cls, record: object) -> Forecast:
        """What ``to_dict`` wrote; CodecError for anything else."""
        return _json.read_as(cls, record, "forecast", optional=True)


def _without_defaults(value: Provenance | Forecast) -> dict[str, Json]:
    every = {entry.name: getattr(value, entry.name) for entry in fields(value)}
    return plain_json({name: entry for name, entry in every.items() if entry not in (None, "", (), {})})


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One evaluation of one candidate. Its state follows from what is filled in, so the two cannot disagree.

    ``notes`` are the user's own, or those of a searcher of one's own, as plain JSON; nothing here reads them.
    """

    number: int
    candidate: Candidate
    fidelity: float = 1.0  # the share of a full training; more than 1 for finals
    promoted_from: int | None = None  # the trial of the same candidate at a lower fidelity
    origin: Provenance = field(default_factory=Provenance)
    forecast: Forecast | None = None
    notes: Mapping[str, Json] = field(default_factory=dict)
    proposed_after: int = 0  # how many trials were finished when this candidate was chosen
    attempts: int = 0  # how often it was started
    interruptions: int = 0  # how many of those ended because the driver did
    started: float | None = None  # seconds since the study's start, here and below
    finished: float | None = None
    rank: int | None = None  # place in the order in which outcomes were recorded, from 0
    outcome: Outcome | None = None
    curve: tuple[Point, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", plain_json(self.notes))
        if not 0 < self.fidelity < math.inf:
            raise StudyError(f"trial {self.number}: expected a fidelity above 0, got {self.fidelity}")
        if (self.outcome is None) != (self.rank is None) or (self.outcome is None) != (self.finished is None):
            raise StudyError(f"trial {self.number}: outcome, rank and finished are given together or not at all")

    def __repr__(self) -> str:
        value = "" if self.value is None else f", {self.value:.6g}"
        return f"<Trial {self.number}: {self.state}{value}, {self.arch.kind}, {self.arch.depth}>"

    @property
    def arch(self) -> Architecture:
        """The candidate's network."""
        return self.candidate.arch

    @property
    def state(self) -> TrialState:
        """Where the trial is in its life."""
        if self.outcome is not None:
            return _FINAL_STATE[type(self.outcome)]
        return TrialState.WAITING if self.started is None else TrialState.RUNNING

    @property
    def value(self) -> float | None:
        """The objective's value, None unless the trial is completed."""
        return self.outcome.value if isinstance(self.outcome, Scored) else None

    @property
    def cause(self) -> FailureCause | None:
        """Why it failed, None where it did not."""
        return self.outcome.cause if isinstance(self.outcome, Failed) else None

    @property
    def message(self) -> str:
        """What was said about its end: by an error, a pacer, or whoever cancelled it; empty where nothing was."""
        return str(getattr(self.outcome, "reason", getattr(self.outcome, "message", "")))

    @property
    def details(self) -> Mapping[str, Any]:
        """What was noted beside its value, or about its failure: plain JSON, by whoever evaluated it."""
        return getattr(self.outcome, "details", {})

    @property
    def seconds(self) -> float | None:
        """How long its last attempt took, None until it is finished or where it never started."""
        return None if self.started is None or self.finished is None else self.finished - self.started

    def begun(self, at: float) -> Trial:
        """The same trial, running since ``at``."""
        return replace(self, started=at, attempts=self.attempts + 1, curve=())

    def requeued(self, *, interrupted: bool) -> Trial:
        """The same trial, waiting to be run again; ``interrupted`` where that was the driver's end, not its own."""
        return replace(self, started=None, interruptions=self.interruptions + interrupted, curve=())

    def ended(self, outcome: Outcome, *, at: float, rank: int) -> Trial:
        """The same trial with its outcome, the ``rank``-th to be recorded."""
        return replace(self, outcome=outcome, finished=at, rank=rank)

    def _repr_html_(self) -> str:
        return str(display("trial.html")(self))

    def with_points(self, points: Sequence[Point]) -> Trial:
        """The same trial with more points at the end of its curve."""
        return replace(self, curve=(*self.curve, *points))


_FIXED = ("candidate", "fidelity", "promoted_from", "origin", "forecast", "notes", "proposed_after")

_NEXT_STATES: Mapping[TrialState, frozenset[TrialState]] = {
    TrialState.WAITING: frozenset({TrialState.RUNNING, TrialState.CANCELLED}),
    TrialState.RUNNING: frozenset(TrialState),
}


# -- all evaluations ---------------------------------------------------------------------------------------------------


class Evaluated(NamedTuple):
    """What beliefs go by: candidates and values, higher being better, in the order of their recording.

    Of a trial that was stopped the value is the one expected of it.
    """

    trials: Sequence[Trial]
    candidates: Sequence[Candidate]
    values: NDArray[np.float64]  # read-only
    fidelities: NDArray[np.float64]  # read-only


class _Ledger:
    """Finished trials in the order of their recording: shared by the histories that grew from one another.

    It only grows, and a history knows how much of it was there in its time; so a trial more costs no copy. Whoever goes
    on from an earlier history gets a ledger of their own (``after``).
    """

    def __init__(self, direction: Direction, finished: Iterable[Trial] = ()) -> None:
        self.direction = direction
        self.by_number: dict[int, Trial] = {}
        self.finished: list[Trial] = []
        self.completed: list[Trial] = []
        self.failed: list[Trial] = []
        self.valued: list[Trial] = []  # completed or stopped
        self.candidates: list[Candidate] = []  # theirs
        self.columns = np.empty((2, 64))  # their values, higher being better, and their fidelities; room behind them
        # The first outcome of each candidate that need not be proposed again; filled in where that is asked for.
        self.places: dict[str, int] = {}
        self.places_at: dict[tuple[str, float], int] = {}
        self._n_placed = 0
        for trial in finished:
            self._append(trial)

    def after(self, n: int, trial: Trial) -> _Ledger:
        """The ledger in which ``trial`` follows the first ``n``: this one unless it has gone on differently."""
        ledger = self if len(self.finished) == n else _Ledger(self.direction, self.finished[:n])
        ledger._append(trial)
        return ledger

    @property
    def lengths(self) -> tuple[int, int, int, int]:
        """How many are finished, completed, failed, and completed or stopped."""
        return len(self.finished), len(self.completed), len(self.failed), len(self.valued)

    def place_first(self, n: int) -> None:
        """Fill in ``places`` and ``places_at`` for the first ``n``."""
        for place in range(self._n_placed, n):
            trial = self.finished[place]
            if _counts_as_seen(trial):
                fingerprint = trial.candidate.fingerprint
                self.places.setdefault(fingerprint, place)
                self.places_at.setdefault((fingerprint, trial.fidelity), place)
        self._n_placed = max(self._n_placed, n)

    def _append(self, trial: Trial) -> None:
        self.by_number[trial.number] = trial
        value = trial.outcome.expected if isinstance(trial.outcome, Stopped) else trial.value
        if value is not None:
            n = len(self.valued)
            if n == self.columns.shape[1]:
                self.columns = np.concatenate([self.columns, np.empty_like(self.columns)], axis=1)
            self.columns[:, n] = self.direction.turned(value), trial.fidelity
            self.candidates.append(trial.candidate)
            self.valued.append(trial)
        if trial.value is not None:
            self.completed.append(trial)
        elif isinstance(trial.outcome, Failed):
            self.failed.append(trial)
        self.finished.append(trial)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class History(Sequence[Trial]):
    """All trials of a study; ``history[n]`` is trial n. Whatever is derived is in an order that a resume repeats.

    A value that never changes. Histories that grew from one another share what they have in common.
    """

    direction: Direction
    _n: int
    _pending: Mapping[int, Trial]  # by number, ascending
    _ledger: _Ledger
    _lengths: tuple[int, int, int, int]  # how many of those in its lists: finished, completed, failed, valued

    def __init__(self, trials: Iterable[Trial] = (), direction: Direction = Direction.MAXIMISE) -> None:
        trials = tuple(trials)
        for number, trial in enumerate(trials):
            if trial.number != number:
                raise StudyError(f"trials are numbered 0, 1, 2, …; expected {number}, got {trial.number}")
        self._hold(trials, direction)
        ranks = [trial.rank for trial in self.finished]
        if ranks != list(range(len(ranks))):
            raise StudyError(f"outcomes are ranked 0, 1, 2, … in the order of their recording; got {ranks[:20]}")

    def _hold(self, trials: Sequence[Trial], direction: Direction) -> None:
        finished = sorted((t for t in trials if t.rank is not None), key=lambda t: t.rank or 0)
        pending = {trial.number: trial for trial in trials if trial.outcome is None}
        ledger = _Ledger(direction, finished)
        self._know(direction, len(trials), pending, ledger, ledger.lengths)

    def _know(self, *values: object) -> None:
        self.__dict__.update(zip((entry.name for entry in fields(History)), values, strict=True))

    @property
    def _n_finished(self) -> int:
        return self._lengths[0]

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        places = range(self._n)[index]
        return tuple(map(self._trial, places)) if isinstance(places, range) else self._trial(places)

    def _trial(self, number: int) -> Trial:
        # Pending ones first: the ledger may know by now how one of them ended.
        return self._pending.get(number) or self._ledger.by_number[number]

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Trial]:
        return map(self._trial, range(self._n))

    @property
    def elapsed(self) -> float:
        """Seconds on the study's clock at its last record."""
        return max(
            (when for trial in self for when in (trial.started, trial.finished) if when is not None), default=0.0
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        mine, others = (self.direction, self._n, self._pending), (other.direction, other._n, other._pending)
        return mine == others and self.finished == other.finished

    def __repr__(self) -> str:
        return f"<History: {self.counted()}>"

    def counted(self) -> str:
        """Trials by state, in words."""
        n = {state: sum(trial.state is state for trial in self) for state in TrialState}
        return ", ".join(f"{count} {state}" for state, count in n.items() if count) or "no trials"

    def _repr_html_(self) -> str:
        return str(display("study.html")(self))

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """All of them, by number."""
        return tuple(self)

    @property
    def finished(self) -> Sequence[Trial]:
        """Trials with an outcome, in the order in which outcomes were recorded."""
        return First(self._ledger.finished, self._n_finished)

    @property
    def n_begun(self) -> int:
        """How many trials a budget has paid for: all but those that wait or were cancelled."""
        n_cancelled = self._n_finished - self._lengths[2] - self._lengths[3]
        return self._n - n_cancelled - sum(trial.started is None for trial in self._pending.values())

    @property
    def completed(self) -> Sequence[Trial]:
        """Trials with a value, in the order in which values were recorded."""
        return First(self._ledger.completed, self._lengths[1])

    @cached_property
    def evaluated(self) -> Evaluated:
        """Trials completed or stopped, their candidates, values turned so that higher is better, and fidelities."""
        n = self._lengths[3]
        columns = self._ledger.columns[:, :n]
        columns.setflags(write=False)
        return Evaluated(First(self._ledger.valued, n), First(self._ledger.candidates, n), *columns)

    def foreseen(self, most: int) -> tuple[bool, ...]:
        """Whether forecast intervals held the values at full fidelity of the latest ``most`` completed trials."""
        said = ((trial.forecast, trial.value) for trial in self.completed[-most:] if trial.fidelity >= 1)
        return tuple(
            forecast.lower <= value <= forecast.upper
            for forecast, value in said
            if forecast and forecast.lower is not None and forecast.upper is not None and value is not None
        )

    def merit(self, trial: Trial) -> float:
        """The value of a completed trial, turned so that higher is better."""
        assert trial.value is not None
        return self.direction.turned(trial.value)

    @cached_property
    def ranked(self) -> tuple[Trial, ...]:
        """Trials with a value at full fidelity, the best first; of equals the one recorded first."""
        trials, _, values, fidelities = self.evaluated
        order = np.argsort(-values, kind="stable")
        full = (trials[i] for i in order[fidelities[order] >= 1])
        return tuple(trial for trial in full if trial.value is not None)

    @property
    def stopped(self) -> Sequence[Trial]:
        """Trials that a pacer stopped, in the order in which that was recorded."""
        return [trial for trial in self.evaluated.trials if trial.value is None]

    @property
    def failed(self) -> Sequence[Trial]:
        """Trials that failed, in the order in which that was recorded."""
        return First(self._ledger.failed, self._lengths[2])

    @cached_property
    def pending(self) -> tuple[Trial, ...]:
        """Trials that wait or run, by number: their networks are chosen, their values unknown."""
        return tuple(self._pending.values())

    @cached_property
    def seen(self) -> Set[str]:
        """Fingerprints of all candidates but those cancelled or failed by the machine; none may be proposed anew."""
        self._ledger.place_first(self._n_finished)
        pending = frozenset(trial.candidate.fingerprint for trial in self.pending)
        return SeenBefore(self._ledger.places, self._n_finished, pending)

    @cached_property
    def seen_at(self) -> Set[tuple[str, float]]:
        """The same with the fidelities: a candidate is evaluated once at each."""
        self._ledger.place_first(self._n_finished)
        pending = frozenset((trial.candidate.fingerprint, trial.fidelity) for trial in self.pending)
        return SeenBefore(self._ledger.places_at, self._n_finished, pending)

    @cached_property
    def best(self) -> Trial | None:
        """The best trial of full fidelity, the first recorded of equal ones; None while there is none."""
        if self._lengths[1] < self._lengths[3]:  # some were stopped
            return self.ranked[0] if self.ranked else None
        trials, _, values, fidelities = self.evaluated
        full = np.flatnonzero(fidelities >= 1)
        return trials[full[values[full].argmax()]] if len(full) else None

    @property
    def best_here(self) -> Trial | None:
        """The best trial that was evaluated for this study, and so can have weights: not one that it was told of."""
        best = self.best
        if best is None or best.origin.searcher != ADDED:
            return best
        return next((trial for trial in self.ranked if trial.origin.searcher != ADDED), None)

    def with_trial(self, trial: Trial) -> History:
        """The history in which ``trial`` is the next one, or replaces its earlier self; it costs no copy of the others.

        Raises StudyError where a trial cannot have become that: it is finished, or its network or origin differ.
        """
        if not 0 <= trial.number <= self._n:
            raise StudyError(f"there is no trial {trial.number}; the study has {self._n}")
        if trial.number < self._n:
            _check_step(self[trial.number], trial)
        if trial.rank is not None and trial.rank != self._n_finished:
            raise StudyError(f"trial {trial.number}: the next outcome has rank {self._n_finished}, got {trial.rank}")
        pending, ledger = dict(self._pending), self._ledger
        lengths = self._lengths
        if trial.outcome is None:
            pending[trial.number] = trial  # a new one has the highest number
        else:
            pending.pop(trial.number, None)
            ledger = ledger.after(self._n_finished, trial)
            lengths = ledger.lengths
        after = object.__new__(History)
        after._know(self.direction, max(self._n, trial.number + 1), pending, ledger, lengths)
        return after

    def at_proposal(self, number: int) -> History:
        """What the searcher saw when it chose trial ``number``: later outcomes forgotten, later trials absent.

        Trials that were in flight then are waiting here, without curves.
        """
        known = self.trials[number].proposed_after
        trials = tuple(t if _is_known(t, known) else _as_waiting(t) for t in self.trials[:number])
        return History(trials, self.direction)


def _counts_as_seen(trial: Trial) -> bool:
    """Whether its candidate need not be proposed again: not where it was cancelled, or the machine failed."""
    outcome = trial.outcome
    is_machines = isinstance(outcome, Failed) and outcome.cause is FailureCause.ENVIRONMENT
    return not (is_machines or isinstance(outcome, Cancelled))


def _is_known(trial: Trial, n_finished: int) -> bool:
    return trial.rank is not None and trial.rank < n_finished


def _as_waiting(trial: Trial) -> Trial:
    unfinished = {"started": None, "finished": None, "rank": None, "outcome": None, "curve": ()}
    return replace(trial, **unfinished, attempts=0, interruptions=0)  # type: ignore[arg-type]


def _check_step(before: Trial, after: Trial) -> None:
    if before.state.is_final:
        raise StudyError(f"trial {before.number} is {before.state} already; an outcome is never changed")
    if after.state not in _NEXT_STATES[before.state]:
        raise StudyError(f"trial {before.number} is {before.state}; it cannot become {after.state}")
    if any(getattr(before, name) != getattr(after, name) for name in _FIXED):
        raise StudyError(f"trial {before.number}: its candidate and where it came from never change")


# -- numbers -----------------------------------------------------------------------------------------------------------


def _finite(value: object) -> float:
    try:
        if isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool):
            number = float(value) + 0.0  # no minus zero, which a minimised 0 would be and SQL cannot keep
            if math.isfinite(number):
                return number
    except OverflowError:  # a whole number of hundreds of digits
        pass
    raise OptionError(f"value: expected a finite number, got {reprlib.repr(value)}")

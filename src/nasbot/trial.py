"""The records that searchers, executors, storages and studies share: one evaluation, how it ended, and all of them.

Everything here is a frozen value, and values of the objective are always to be maximised.

    waiting --> running --> completed    Scored
       ^           |   \\--> failed       Failed, with a cause
       |           |    \\-> cancelled    Cancelled
       \\-----------/                     its worker or its driver died; it will be run again
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from nasbot._display import display
from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.errors import OptionError, StudyError

MAX_NOTE_DEPTH = 12


class TrialState(StrEnum):
    """Where a trial is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETED = "completed"
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
        object.__setattr__(self, "message", _one_string(self.message))
        object.__setattr__(self, "details", plain_json(self.details))


@dataclass(frozen=True)
class Cancelled:
    """Somebody no longer wanted it."""

    message: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", _one_string(self.message))


Outcome: TypeAlias = Scored | Failed | Cancelled

_FINAL_STATE: Mapping[type, TrialState] = {
    Scored: TrialState.COMPLETED,
    Failed: TrialState.FAILED,
    Cancelled: TrialState.CANCELLED,
}


# -- one evaluation ----------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """One point of a learning curve, as the objective reported it."""

    step: int
    value: float


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One evaluation of one network. Its state follows from what is filled in, so the two cannot disagree.

    ``notes`` say where the network came from, as plain JSON. Searchers use these keys where they apply and may add
    more: searcher (name), mean, sd, utility (predicted when proposed), parents (trial numbers), modifiers (names),
    seconds ({distances, fitting, maximising}). The study adds deciding, the seconds of the whole proposal.
    """

    number: int
    arch: Architecture
    notes: Mapping[str, Json] = field(default_factory=dict)
    proposed_after: int = 0  # how many trials were finished when this network was chosen
    attempts: int = 0  # how often it was started
    interruptions: int = 0  # how many of those ended because the driver did
    started: float | None = None  # seconds since the study's start, here and below
    finished: float | None = None
    rank: int | None = None  # place in the order in which outcomes were recorded, from 0
    outcome: Outcome | None = None
    curve: tuple[Point, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", plain_json(self.notes))
        if (self.outcome is None) != (self.rank is None) or (self.outcome is None) != (self.finished is None):
            raise StudyError(f"trial {self.number}: outcome, rank and finished are given together or not at all")

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


_NEXT_STATES: Mapping[TrialState, frozenset[TrialState]] = {
    TrialState.WAITING: frozenset({TrialState.RUNNING, TrialState.CANCELLED}),
    TrialState.RUNNING: frozenset(TrialState),
}


# -- all evaluations ---------------------------------------------------------------------------------------------------


class Evaluated(NamedTuple):
    """The networks that have values, and the values, in the order in which they were recorded."""

    networks: tuple[Architecture, ...]
    values: NDArray[np.float64]  # read-only


@dataclass(frozen=True)
class History(Sequence[Trial]):
    """All trials of a study; ``history[n]`` is trial n. Whatever is derived is in an order that a resume repeats."""

    trials: tuple[Trial, ...] = ()

    def __post_init__(self) -> None:
        for number, trial in enumerate(self.trials):
            if trial.number != number:
                raise StudyError(f"trials are numbered 0, 1, 2, …; expected {number}, got {trial.number}")
        ranks = sorted(trial.rank for trial in self.trials if trial.rank is not None)
        if ranks != list(range(len(ranks))):
            raise StudyError(f"outcomes are ranked 0, 1, 2, … in the order of their recording; got {ranks[:20]}")

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        return self.trials[index]

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __repr__(self) -> str:
        n = {state: sum(trial.state is state for trial in self.trials) for state in TrialState}
        counts = ", ".join(f"{count} {state}" for state, count in n.items() if count)
        return f"<History: {counts or 'no trials'}>"

    def _repr_html_(self) -> str:
        return str(display("study.html")(self))

    @cached_property
    def finished(self) -> tuple[Trial, ...]:
        """Trials with an outcome, in the order in which outcomes were recorded."""
        return tuple(sorted((t for t in self.trials if t.rank is not None), key=lambda t: t.rank or 0))

    @cached_property
    def completed(self) -> tuple[Trial, ...]:
        """Trials with a value, in the order in which values were recorded."""
        return tuple(trial for trial in self.finished if isinstance(trial.outcome, Scored))

    @cached_property
    def evaluated(self) -> Evaluated:
        """The networks of ``completed`` and their values."""
        values = np.array([trial.value for trial in self.completed], dtype=np.float64)
        values.setflags(write=False)
        return Evaluated(tuple(trial.arch for trial in self.completed), values)

    @cached_property
    def failed(self) -> tuple[Trial, ...]:
        """Trials that failed, in the order in which that was recorded."""
        return tuple(trial for trial in self.finished if isinstance(trial.outcome, Failed))

    @cached_property
    def pending(self) -> tuple[Trial, ...]:
        """Trials that wait or run, by number: their networks are chosen, their values unknown."""
        return tuple(trial for trial in self.trials if trial.outcome is None)

    @cached_property
    def seen(self) -> frozenset[str]:
        """Fingerprints of all networks but the cancelled ones: none of these may be proposed again."""
        return frozenset(t.arch.fingerprint for t in self.trials if not isinstance(t.outcome, Cancelled))

    @cached_property
    def best(self) -> Trial | None:
        """The trial of the highest value, the first recorded of equal ones; None while there is none."""
        return max(self.completed, key=lambda trial: (trial.value, -(trial.rank or 0)), default=None)

    def with_trial(self, trial: Trial) -> History:
        """The history in which ``trial`` is the next one, or replaces its earlier self.

        Raises StudyError where a trial cannot have become that: it is finished, or its network or origin differ.
        """
        if not 0 <= trial.number <= len(self.trials):
            raise StudyError(f"there is no trial {trial.number}; the study has {len(self.trials)}")
        if trial.number < len(self.trials):
            _check_step(self.trials[trial.number], trial)
        if trial.rank is not None and trial.rank != len(self.finished):
            raise StudyError(f"trial {trial.number}: the next outcome has rank {len(self.finished)}, got {trial.rank}")
        return self._followed_by(trial)

    def _followed_by(self, trial: Trial) -> History:
        """What ``with_trial`` promises, of a trial that was checked.

        A loop does this several times a trial, so nothing of length n is checked or sorted again, and what was derived
        of this history is carried over to the next.
        """
        after = object.__new__(History)
        before, after_it = self.trials[: trial.number], self.trials[trial.number + 1 :]
        derived: dict[str, object] = {"trials": (*before, trial, *after_it)}
        others = tuple(pending for pending in self.pending if pending.number != trial.number)
        if trial.outcome is None:
            derived["pending"] = tuple(sorted((*others, trial), key=lambda pending: pending.number))
            derived["finished"], derived["completed"] = self.finished, self.completed
        else:
            derived["pending"] = others
            derived["finished"] = (*self.finished, trial)
            derived["completed"] = (*self.completed, trial) if isinstance(trial.outcome, Scored) else self.completed
        if not isinstance(trial.outcome, Cancelled):
            is_new = trial.number == len(self.trials)
            derived["seen"] = self.seen | {trial.arch.fingerprint} if is_new else self.seen
        after.__dict__.update(derived)
        return after

    def at_proposal(self, number: int) -> History:
        """What the searcher saw when it chose trial ``number``: later outcomes forgotten, later trials absent.

        Trials that were in flight then are waiting here, without curves.
        """
        known = self.trials[number].proposed_after
        return History(tuple(t if _is_known(t, known) else _as_waiting(t) for t in self.trials[:number]))


def _is_known(trial: Trial, n_finished: int) -> bool:
    return trial.rank is not None and trial.rank < n_finished


def _as_waiting(trial: Trial) -> Trial:
    return Trial(number=trial.number, arch=trial.arch, notes=trial.notes, proposed_after=trial.proposed_after)


def _check_step(before: Trial, after: Trial) -> None:
    if before.state.is_final:
        raise StudyError(f"trial {before.number} is {before.state} already; an outcome is never changed")
    if after.state not in _NEXT_STATES[before.state]:
        raise StudyError(f"trial {before.number} is {before.state}; it cannot become {after.state}")
    same_origin = before.proposed_after == after.proposed_after and before.notes == after.notes
    if not same_origin or before.arch != after.arch:
        raise StudyError(f"trial {before.number}: its network and where it came from never change")


# -- plain data --------------------------------------------------------------------------------------------------------


def plain_json(record: Mapping[str, object]) -> dict[str, Json]:
    """A copy that JSON can carry: numpy scalars and arrays as numbers and lists, numbers that are not finite as null.

    A note must not be able to end a study, so a predicted NaN is forgotten; anything that is not data is an error.
    """
    if not isinstance(record, Mapping):
        raise OptionError(f"notes and details: expected a mapping of names to plain data, got {type(record).__name__}")
    return {_key(key): _plain(value, 1) for key, value in record.items()}


def _plain(value: object, depth: int) -> Json:
    if depth > MAX_NOTE_DEPTH:
        raise OptionError(f"notes and details: nested deeper than {MAX_NOTE_DEPTH} levels")
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return _one_string(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry, depth + 1) for entry in value]
    raise OptionError(f"notes and details: expected plain data, got {type(value).__name__}")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise OptionError(f"notes and details: names are strings, got {type(key).__name__} {str(key)[:40]!r}")
    return _one_string(key)


def _finite(value: object) -> float:
    try:
        if isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool):
            number = float(value) + 0.0  # no minus zero, which a minimised 0 would be and SQL cannot keep
            if math.isfinite(number):
                return number
    except OverflowError:  # a whole number of hundreds of digits
        pass
    raise OptionError(f"value: expected a finite number, got {reprlib.repr(value)}")


def _one_string(text: str) -> str:
    """The text as UTF-8 can carry it: lone surrogates (undecodable bytes in a message) become question marks."""
    return str(text).encode("utf-8", "replace").decode("utf-8")

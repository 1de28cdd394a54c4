"""A study in numbers, of a file that is read without rebuilding its networks: what ``nasbot status`` and the page say.

Rebuilding and checking networks is most of what reading a study costs. Counts, the best and the clock need none of it,
so a study of 20,000 trials is counted in half a second. Checksums are held against every row all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbot._typing import Json
from nasbot.domain import share_in_words
from nasbot.trial import FINAL, POOL, Direction, FailureCause, History, Trial, TrialState


class Line(NamedTuple):
    """One trial in numbers."""

    number: int
    state: str
    value: float | None
    cause: str | None
    fidelity: float
    searcher: str  # that chose it
    rank: int | None
    started: float | None
    finished: float | None

    @classmethod
    def of(cls, trial: Trial) -> Line:
        """Of a trial that is at hand."""
        cause = None if trial.cause is None else str(trial.cause)
        rest = (trial.fidelity, trial.origin.searcher, trial.rank, trial.started, trial.finished)
        return cls(trial.number, str(trial.state), trial.value, cause, *rest)


class Spent(NamedTuple):
    """What trials of one kind took of the workers' time, their last attempts."""

    what: str
    trials: int
    seconds: float


class Best(NamedTuple):
    """The best trial of full fidelity, the first recorded of equal ones."""

    trial: int
    value: float
    at: float | None  # when it was recorded


@dataclass(frozen=True, eq=False)
class Tally:
    """What can be said of a study without its networks."""

    states: Mapping[TrialState, int]
    causes: Mapping[FailureCause, int]
    seconds: float  # how far the study's own clock has come, as far as trials say
    pending: Sequence[int]  # trials that wait or run
    running: Sequence[int]
    ranked: NDArray[np.int64]  # trials with a value at full fidelity, the best first; of equals the one recorded first
    best: Best | None
    spent: Sequence[Spent] = ()  # by kind, in the order of KINDS, rungs from the lowest

    @classmethod
    def of(cls, lines: Iterable[Line], direction: Direction) -> Tally:
        """Of the lines of all trials."""
        states: Counter[str] = Counter()
        times: dict[tuple[int, float], list[float]] = {}
        causes: Counter[str] = Counter()
        pending, running, valued = [], [], []
        seconds = 0.0
        for line in lines:
            states[line.state] += 1
            if line.cause is not None:
                causes[line.cause] += 1
            if line.started is not None and line.finished is not None:
                times.setdefault(kind_of(line), []).append(line.finished - line.started)
            for at in (line.started, line.finished):
                seconds = seconds if at is None else max(seconds, at)
            if line.rank is None:
                pending.append(line.number)
                if line.started is not None:
                    running.append(line.number)
            elif line.value is not None and line.fidelity >= 1:
                valued.append(line)
        merits = np.array([direction.turned(line.value or 0.0) for line in valued])
        ranks = np.array([line.rank or 0 for line in valued])
        order = np.lexsort((ranks, -merits))
        numbers = np.array([line.number for line in valued], np.int64)
        first = valued[order[0]] if valued else None
        return cls(
            {state: states[state] for state in TrialState if states[state]},
            {cause: causes[cause] for cause in FailureCause if causes[cause]},
            seconds,
            pending,
            running,
            numbers[order],
            None if first is None else Best(first.number, first.value or 0.0, first.finished),
            [Spent(_kind_in_words(kind), len(each), sum(each)) for kind, each in sorted(times.items())],
        )

    @classmethod
    def of_history(cls, history: History) -> Tally:
        """Of trials that are at hand."""
        return cls.of(map(Line.of, history), history.direction)

    @property
    def n_trials(self) -> int:
        """How many trials there are."""
        return sum(self.states.values())

    def to_dict(self) -> dict[str, Json]:
        """How many trials are in each state and failed by each cause, and the best of them, as plain data."""
        return {
            "trials": self.n_trials,
            "states": {str(state): n for state, n in self.states.items()},
            "causes": {str(cause): n for cause, n in self.causes.items()},
            "best": None if self.best is None else self.best._asdict(),
            "spent": [entry._asdict() for entry in self.spent],
        }

    def __str__(self) -> str:
        """``12 completed, 1 failed``."""
        return ", ".join(f"{n} {state}" for state, n in self.states.items()) or "no trials"


def trials_in_words(record: Mapping[str, Any]) -> str:
    """``16 + 2 waiting``, of what ``Tally.to_dict`` gave: networks that wait are no trials that ran."""
    waiting = record["states"].get(str(TrialState.WAITING), 0)
    return f"{record['trials'] - waiting:,}" + f" + {waiting:,} waiting" * bool(waiting)


# -- where the time went -----------------------------------------------------------------------------------------------

KINDS = ("initial pool", "", "stopped early", "finals", "failed or cancelled")  # "": by the length of trainings


def kind_of(line: Line) -> tuple[int, float]:
    """What a finished trial was for: its place in KINDS, and of trainings that were searched with their length."""
    if line.state == TrialState.STOPPED:
        return 2, 0.0
    if line.state != TrialState.COMPLETED:
        return 4, 0.0
    return (0, 0.0) if line.searcher == POOL else (3, 0.0) if line.searcher == FINAL else (1, line.fidelity)


def _kind_in_words(kind: tuple[int, float]) -> str:
    return KINDS[kind[0]] or share_in_words(kind[1])


def spent_in_words(spent: Sequence[Spent], in_words: Callable[[float], str]) -> str:
    """``initial pool 12 s (9 trials), a full training 1 min (20)``, the times as ``in_words`` says them."""
    parts = [f"{entry.what} {in_words(entry.seconds)} ({entry.trials})" for entry in spent]
    return ", ".join(parts)

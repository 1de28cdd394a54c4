"""A study that is forgotten with the process: for simulations, tests and trying things out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nasbot._json import plain_json
from nasbot._typing import Json
from nasbot.errors import StudyError
from nasbot.storage.records import Answer, Presence, Request, Run, RunState
from nasbot.trial import Direction, History, Trial


class MemoryStorage:
    """The promises of ``Storage`` for as long as this object lives."""

    def __init__(self) -> None:
        self._settings: dict[str, Json] | None = None
        self._history = History()
        self._runs: tuple[Run, ...] = ()
        self._is_open = True

    def settings(self) -> Mapping[str, Json] | None:
        """What ``create`` was given; None where there is no study yet."""
        self._check_open()
        return None if self._settings is None else plain_json(self._settings)

    def create(self, settings: Mapping[str, Json], trials: Sequence[Trial] = ()) -> None:
        """Begin the study, with its first trials."""
        self._check_open()
        if self._settings is not None:
            raise StudyError("the study exists already")
        history = following(History(direction=study_direction(settings)), trials)
        self._settings, self._history = plain_json(settings), history

    def history(self) -> History:
        """Everything recorded so far."""
        self._check_open()
        return self._history

    def save(self, *trials: Trial, answers: Sequence[Answer] = ()) -> None:
        """Record these trials, all or none."""
        self._check_begun()
        self._history = following(self._history, trials)

    def runs(self) -> Sequence[Run]:
        """Every stretch of driving so far."""
        self._check_open()
        return self._runs

    def save_run(self, run: Run) -> None:
        """Record the next run, or a later state of the last one."""
        self._check_begun()
        self._runs = with_run(self._runs, run)

    def requests(self) -> Sequence[Request]:
        """Nothing: what is in this process's memory nobody else can ask anything of."""
        self._check_open()
        return ()

    def presence(self) -> Presence:
        """The driver is whoever holds this object."""
        return Presence(is_held=self._is_open, seen=None)

    def close(self) -> None:
        """Forget nothing, accept nothing more."""
        self._is_open = False

    def _check_begun(self) -> None:
        self._check_open()
        if self._settings is None:
            raise StudyError("the study does not exist yet: create it first")

    def _check_open(self) -> None:
        if not self._is_open:
            raise StudyError("the study is closed")


def study_direction(settings: Mapping[str, Json] | None) -> Direction:
    """Whether the study with these settings maximises or minimises."""
    return Direction.of(str((settings or {}).get("direction", Direction.MAXIMISE)))


def following(history: History, trials: Sequence[Trial]) -> History:
    """The history after these trials, one after the other."""
    for trial in trials:
        history = history.with_trial(trial)
    return history


def with_run(runs: Sequence[Run], run: Run) -> tuple[Run, ...]:
    """The runs with this one as the next, or in the place of its earlier self; StudyError where it can be neither."""
    last = runs[-1] if runs else None
    is_over = last is None or last.state is RunState.ENDED
    if is_over and run.number == len(runs):
        return (*runs, run)
    if not is_over and run.number == len(runs) - 1:
        return (*runs[:-1], run)
    raise StudyError(
        f"run {run.number}: runs are numbered 0, 1, 2, … and one ends before the next; there are {len(runs)}"
    )

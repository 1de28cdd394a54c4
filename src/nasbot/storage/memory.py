"""A study that is forgotten with the process: for simulations, tests and trying things out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nasbot._typing import Json
from nasbot.errors import StudyError
from nasbot.trial import History, Trial, plain_json


class MemoryStorage:
    """The promises of ``Storage`` for as long as this object lives."""

    def __init__(self) -> None:
        self._settings: dict[str, Json] | None = None
        self._history = History()
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
        history = following(History(), trials)
        self._settings, self._history = plain_json(settings), history

    def history(self) -> History:
        """Everything recorded so far."""
        self._check_open()
        return self._history

    def save(self, *trials: Trial) -> None:
        """Record these trials, all or none."""
        self._check_open()
        if self._settings is None:
            raise StudyError("the study does not exist yet: create it first")
        self._history = following(self._history, trials)

    def close(self) -> None:
        """Forget nothing, accept nothing more."""
        self._is_open = False

    def _check_open(self) -> None:
        if not self._is_open:
            raise StudyError("the study is closed")


def following(history: History, trials: Sequence[Trial]) -> History:
    """The history after these trials, one after the other."""
    for trial in trials:
        history = history.with_trial(trial)
    return history

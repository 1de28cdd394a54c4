"""Watching a study as it goes: functions of a trial for ``Study.optimise(..., on_change=...)``.

    study.optimise(objective, 100, on_change=Callbacks(TensorBoardLog("logs"), OnBest(print)))

``on_change`` is called in the study's process with every new state of a trial, after it is recorded. ``Follower`` turns
those into events, with values in the objective's own sense; the loggers are Followers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nasbot.errors import OptionError
from nasbot.trial import Direction, History, Point, Scored, Trial, TrialState

OnChange = Callable[[Trial], None]


class CallbackWarning(UserWarning):
    """A callback raised; it is not called again in this run, and the study goes on."""


class Callbacks:
    """Several callbacks as one. A log that cannot be written must not end a search of hours.

    So one that raises is reported as a CallbackWarning and not called again; ``strict`` lets its error through instead.
    """

    def __init__(self, *callbacks: OnChange, strict: bool = False) -> None:
        for callback in callbacks:
            if not callable(callback):
                raise OptionError(f"callbacks: expected functions of a trial, got {type(callback).__name__}")
        self._callbacks = list(callbacks)
        self._strict = strict

    def __call__(self, trial: Trial) -> None:
        """Tell all of them."""
        for callback in tuple(self._callbacks):
            try:
                callback(trial)
            except Exception as error:  # whatever a stranger's function raises; reported just below
                if self._strict:
                    raise
                self._callbacks.remove(callback)
                name = getattr(callback, "__name__", type(callback).__name__)
                said = f"callback {name} raised {type(error).__name__} at trial {trial.number} and is not called again"
                warnings.warn(f"{said}: {str(error)[:300]}", CallbackWarning, stacklevel=2)

    def close(self) -> None:
        """Close those that can be closed."""
        for callback in self._callbacks:
            close = getattr(callback, "close", None)
            if close is not None:
                close()


class Ended(NamedTuple):
    """How a trial ended, in the objective's own sense."""

    value: float | None  # None where it failed, was stopped or cancelled
    cause: str  # of a failure; empty otherwise
    best: float | None  # of the study so far
    is_record: bool  # whether this is it


class Follower:
    """A callback by events: override the methods that matter.

    ``direction`` is the study's; ``history`` is what a resumed study has behind it, for its best value so far.
    """

    def __init__(self, *, direction: str = Direction.MAXIMISE, history: History | None = None) -> None:
        self.direction = Direction.of(direction)
        best = None if history is None else history.best
        self._best = None if best is None else best.value
        self._n_points: dict[int, int] = {}

    def __call__(self, trial: Trial) -> None:
        """Take the new state of a trial."""
        n_known = self._n_points.get(trial.number)
        if trial.state is TrialState.WAITING:
            if self._n_points.pop(trial.number, None) is not None:
                self.interrupted(trial)
            return
        if n_known is None and trial.state is TrialState.RUNNING:
            self.began(trial)
            self._n_points[trial.number] = n_known = 0
        if len(trial.curve) > (n_known or 0):
            points = trial.curve[n_known or 0 :]
            self._n_points[trial.number] = len(trial.curve)
            self.reported(trial, points)
        if trial.outcome is not None:
            self._n_points.pop(trial.number, None)
            self.ended(trial, self._end(trial))

    def _end(self, trial: Trial) -> Ended:
        is_record = trial.value is not None and trial.fidelity >= 1 and self._is_better(trial.value)
        if is_record:
            self._best = trial.value
        cause = str(trial.cause or "")
        return Ended(trial.value, cause, self._best, is_record)

    def _is_better(self, value: float) -> bool:
        return self._best is None or self.direction.turned(value) > self.direction.turned(self._best)

    def began(self, trial: Trial) -> None:
        """An evaluation begins."""

    def reported(self, trial: Trial, points: Sequence[Point]) -> None:
        """New points of its learning curve."""

    def ended(self, trial: Trial, end: Ended) -> None:
        """An outcome is recorded."""

    def interrupted(self, trial: Trial) -> None:
        """Its worker or its driver went away; it will be run again."""

    def close(self) -> None:
        """Let go of files and connections; may be called again."""


class OnBest(Follower):
    """Calls ``function(trial, value)`` for every trial that becomes the best; the value is in the objective's sense."""

    def __init__(
        self,
        function: Callable[[Trial, float], object],
        *,
        direction: str = Direction.MAXIMISE,
        history: History | None = None,
    ) -> None:
        super().__init__(direction=direction, history=history)
        self._function = function

    def ended(self, trial: Trial, end: Ended) -> None:
        """Tell, where it is the best."""
        if end.is_record and isinstance(trial.outcome, Scored) and end.value is not None:
            self._function(trial, end.value)

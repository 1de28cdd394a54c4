"""Evaluations in the study's own process, one after the other: no isolation, no limits, any callable."""

from __future__ import annotations

import time
from collections.abc import Sequence

from nasbot.errors import StudyError
from nasbot.execution.base import Event, Finished, Job, Objective, Reported, check_can_submit
from nasbot.execution.evaluation import LiveTrial, evaluate
from nasbot.execution.interruption import allowed
from nasbot.trial import Cancelled


class SerialExecutor:
    """One slot. The evaluation happens inside ``wait``; Ctrl-C during it passes through."""

    slots = 1

    def __init__(self) -> None:
        self._origin = time.monotonic()
        self._objective: Objective | None = None
        self._job: Job | None = None
        self._events: list[Event] = []

    def now(self) -> float:
        """Seconds since this executor was made."""
        return time.monotonic() - self._origin

    def start(self, objective: Objective) -> None:
        """Take the objective; any callable will do."""
        self._objective = objective

    def submit(self, job: Job) -> None:
        """Keep the job for ``wait``."""
        if self._objective is None:
            raise StudyError("the executor has no objective: start it first, and do not use it after close")
        check_can_submit(job, [] if self._job is None else [self._job.number], self.slots)
        self._job = job

    def wait(self, timeout: float | None = None) -> Sequence[Event]:
        """Evaluate the job that is there, however long it takes."""
        if self._job is not None and self._objective is not None:
            job, events = self._job, self._events
            live = LiveTrial(job, lambda point: events.append(Reported(job.number, point)))
            try:
                with allowed():
                    outcome = evaluate(self._objective, live)
            finally:
                self._job = None
            events.append(Finished(job.number, outcome, self.now()))
        events, self._events = self._events, []
        return events

    def cancel(self, number: int) -> None:
        """Drop the job, if it has not begun."""
        if self._job is None or self._job.number != number:
            raise StudyError(f"trial {number} is not running here")
        self._job = None
        self._events.append(Finished(number, Cancelled(), self.now()))

    def close(self) -> None:
        """Forget the objective and the job."""
        self._job = self._objective = None
        self._events = []

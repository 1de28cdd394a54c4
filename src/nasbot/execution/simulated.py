"""Evaluations on a virtual clock: hours of training on many workers, simulated in the time the values take to compute.

Values are computed at once, in this process; only their arrival is spread over virtual time. Completion order is a
function of the durations alone (ties go to the lower trial number), so runs are exactly repeatable.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

from nasbot.architecture import Architecture
from nasbot.errors import OptionError, StudyError
from nasbot.execution.base import Event, Finished, Job, Limits, Objective, Reported, check_can_submit, check_slots
from nasbot.execution.evaluation import LiveTrial, as_number, called, evaluate, outcome_of
from nasbot.execution.interruption import allowed
from nasbot.trial import Cancelled, Failed, FailureCause, Outcome

Duration = Callable[[Architecture], float]


class SimulatedExecutor:
    """``slots`` workers on a virtual clock. ``duration`` gives the seconds of a network's evaluation.

    Without it the objective returns a pair (value, seconds). Evaluations longer than ``limits.seconds`` fail as
    timeouts after that time; there is no memory to limit. Points that the objective reports arrive at its end.
    """

    is_virtual = True  # waiting costs no time, so nobody outside can ask for anything meanwhile

    def __init__(self, slots: int = 1, *, duration: Duration | None = None, limits: Limits | None = None) -> None:
        self.slots = check_slots(slots)
        self.limits = limits or Limits()
        if self.limits.memory is not None:
            raise OptionError("memory limit: a simulated evaluation uses the study's own memory; expected None")
        self._duration = duration
        self._objective: Objective | None = None
        self._now = 0.0
        self._arrivals: list[tuple[float, int]] = []  # a heap of (when, trial number)
        self._events: dict[int, list[Event]] = {}

    def now(self) -> float:
        """Virtual seconds since this executor was made."""
        return self._now

    def start(self, objective: Objective) -> None:
        """Take the objective; any callable will do."""
        self._objective = objective

    def submit(self, job: Job) -> None:
        """Compute the value now, deliver it when its time has come."""
        if self._objective is None:
            raise StudyError("the executor has no objective: start it first, and do not use it after close")
        check_can_submit(job, list(self._events), self.slots)
        points: list[Event] = []
        # A training that is stopped is computed to its end all the same, for that says how long it would have taken.
        live = LiveTrial(job, lambda point: points.append(Reported(job.number, point)), raises=False)
        with allowed():
            outcome, seconds = self._timed(self._objective, live)
        if live.stopped is not None:
            outcome, seconds = live.stopped, live.stopped.share * seconds
        if self.limits.seconds is not None and seconds > self.limits.seconds:
            seconds, points = self.limits.seconds, []
            outcome = Failed(FailureCause.TIMEOUT, f"not finished within its limit of {seconds:g} s (simulated)")
        at = self._now + seconds
        self._events[job.number] = [*points, Finished(job.number, outcome, at)]
        heapq.heappush(self._arrivals, (at, job.number))

    def wait(self, timeout: float | None = None) -> Sequence[Event]:
        """The next arrival, with the clock moved there; or nothing, with the clock moved by ``timeout``."""
        if not self._arrivals:
            return ()
        at, number = self._arrivals[0]
        if timeout is not None and at > self._now + timeout:
            self._now += timeout
            return ()
        heapq.heappop(self._arrivals)
        self._now = at
        return self._events.pop(number)

    def cancel(self, number: int) -> None:
        """Its end comes now, as Cancelled."""
        if number not in self._events:
            raise StudyError(f"trial {number} is not running here")
        self._arrivals = [(at, other) for at, other in self._arrivals if other != number]
        heapq.heapify(self._arrivals)
        heapq.heappush(self._arrivals, (self._now, number))
        self._events[number] = [Finished(number, Cancelled(), self._now)]

    def close(self) -> None:
        """Forget the objective and what has not arrived."""
        self._objective = None
        self._arrivals, self._events = [], {}

    def _timed(self, objective: Objective, live: LiveTrial) -> tuple[Outcome, float]:
        if self._duration is not None:
            return evaluate(objective, live), checked_duration(self._duration(live.arch))
        paired = _Paired(objective)
        outcome = evaluate(paired, live)
        return outcome, paired.seconds


class _Paired:
    """An objective of (value, seconds) pairs as one of values, with the seconds of the last call kept."""

    def __init__(self, objective: Objective) -> None:
        self.seconds = 0.0
        self._objective = objective

    def __call__(self, arch: Architecture, trial: LiveTrial) -> Outcome:
        returned = called(self._objective, trial)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise OptionError("without a duration function the objective returns a pair (value, seconds)")
        value, seconds = returned
        self.seconds = checked_duration(seconds)
        return outcome_of(value)


def checked_duration(seconds: object) -> float:
    """A finite number of seconds >= 0."""
    number = as_number(seconds)
    if number is None or not 0 <= number < math.inf:
        raise OptionError(f"a simulated duration must be a finite number of seconds >= 0, got {str(seconds)[:60]!r}")
    return number

"""Propose, evaluate, record, again: asynchronously, so that a worker that is free gets its next network at once."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from nasbot._words import first_line
from nasbot.domain import share_in_words
from nasbot.errors import ExhaustedError, FailingError, OptionError, StudyError
from nasbot.execution import Event, Executor, Finished, Reported
from nasbot.execution.interruption import allowed
from nasbot.storage import Request, RequestKind, RunState
from nasbot.study.budget import Budget
from nasbot.study.driver import Driver
from nasbot.study.settled import outlook_of
from nasbot.trial import Cancelled, Failed, FailureCause, History, Point, Scored, Stopped, Trial, TrialState

LOG = logging.getLogger("nasbot")
OnChange = Callable[[Trial], None]
# How often a trial is tried again where its failure says nothing about the network.
RETRIES = {FailureCause.KILLED: 1, FailureCause.ENVIRONMENT: 3}
RECOVERY_SECONDS = 5.0  # for a machine without room or descriptors, times the number of tries
TURN_SECONDS = 0.05  # until another driver may have proposed
FREE_FOR_BATCH = 16  # workers without a trial, from which on these are chosen together
REQUEST_SECONDS = 0.5  # how long a request from outside may wait while trials run


class Loop:
    """One run of a study on one executor."""

    def __init__(
        self,
        driver: Driver,
        executor: Executor,
        budget: Budget,
        max_consecutive_failures: int | None,
        overtime: float | None,
        on_change: OnChange | None,
        proposes: bool = True,
    ) -> None:
        if max_consecutive_failures is not None and max_consecutive_failures < 1:
            raise OptionError(
                f"max_consecutive_failures: expected at least 1, or None for no limit, got {max_consecutive_failures}"
            )
        if overtime is not None and not overtime >= 0:
            raise OptionError(f"overtime: expected seconds >= 0, or None for no limit, got {overtime}")
        self._driver = driver
        self._executor = executor
        self._budget = budget
        self._max_failures = max_consecutive_failures
        self._overtime = overtime
        self._proposes = proposes  # whether new trials are begun beside those that wait
        self.stops_when_settled = self.is_settled = False  # whether to, and whether it has
        self._tell = on_change or (lambda trial: None)
        self._running: set[int] = set()
        self._elsewhere = {t.number for t in driver.history.pending if t.state is TrialState.RUNNING}  # asked by hand
        self._failures: list[tuple[Failed, float]] = []  # since the last success, and at which fidelities
        self._is_paused = self._rests_now = self._ends_now = False
        self._recovery = 0.0  # seconds to wait until the machine may have recovered
        self.is_stopping = False  # because somebody asked for it
        self._cancelling: dict[int, Request] = {}  # asked to end, and the end has not come yet

    def run(self) -> None:
        """Until the budget is spent and nothing runs. However it ends, no trial is left running."""
        try:
            while True:
                self._heed()
                if self._rests() or (self._recovery > 0 and not self.is_stopping):
                    with allowed():
                        time.sleep(REQUEST_SECONDS)
                    self._recovery -= REQUEST_SECONDS
                    continue
                for trial in self._driver.release_dead():
                    self._tell(trial)
                self._fill()
                if self._is_overtime() or self._ends_now:
                    break
                if self._running:
                    self._take(self._executor.wait(self._patience()))
                elif not self._waits_for_others():
                    break
        finally:
            self._abandon()
        if self._is_failing():
            raise FailingError(self._summary())

    # -- beginning trials ----------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        self._propose_ahead()
        while len(self._running) < self._executor.slots and self._may_begin():
            try:
                trial = self._driver.begin(self._has_budget, proposes=self._may_propose())
            except ExhaustedError:
                if not self._running and not self._driver.waits_for_others():
                    raise
                return  # what is running may open new ways
            if trial is None:
                return
            self._executor.submit(self._driver.job(trial))
            self._running.add(trial.number)
            self._tell(trial)

    def _propose_ahead(self) -> None:
        """Where many workers are free, let the searcher choose for all of them at once."""
        free = self._executor.slots - len(self._running)
        if free < FREE_FOR_BATCH or not self._may_propose() or not self._may_begin():
            return
        history = self._driver.history
        if self._has_budget(history):
            left = free if self._budget.trials is None else self._budget.trials - history.n_begun
            self._driver.propose_ahead(min(free, left))

    def _may_propose(self) -> bool:
        if self.stops_when_settled and not self.is_settled:
            outlook = outlook_of(self._driver.history)
            self.is_settled = outlook is not None and outlook.is_settled
        return self._proposes and not self.is_settled

    def _may_begin(self) -> bool:
        return not (self._is_paused or self.is_stopping or self._is_failing())

    def _has_budget(self, history: History) -> bool:
        return not self._budget.is_spent(trials=history.n_begun, seconds=self._driver.elapsed())

    def _waits_for_others(self) -> bool:
        """Wait a moment where other drivers keep this one here: one proposes, or runs what may come back to wait."""
        if not self._may_begin():
            return False
        if self._driver.waits_for_its_turn(self._has_budget, proposes=self._may_propose()):
            seconds = TURN_SECONDS
        elif self._driver.waits_for_others():
            seconds = REQUEST_SECONDS
        else:
            return False
        with allowed():
            time.sleep(seconds)
        return True

    # -- taking what comes ---------------------------------------------------------------------------------------------

    def _take(self, events: Sequence[Event]) -> None:
        points: dict[int, list[Point]] = {}
        for event in events:
            if isinstance(event, Reported):
                points.setdefault(event.number, []).append(event.point)
            else:
                self._extend(event.number, points.pop(event.number, []))
                self._finish(event)
        for number, reported in points.items():
            self._extend(number, reported)

    def _extend(self, number: int, points: Sequence[Point]) -> None:
        if points:
            self._tell(self._driver.extend(number, points))

    def _finish(self, event: Finished) -> None:
        self._running.discard(event.number)
        request = self._cancelling.pop(event.number, None)
        if self._deserves_retry(event):
            self._tell(self._driver.requeue(event.number, interrupted=False))
            return  # if it was to be cancelled, that is asked again and meets a trial that waits
        trial = self._driver.finish(event.number, event.outcome, at=event.at)
        if request is not None:
            self._driver.answer(request, f"trial {trial.number} is {trial.state}")
        if isinstance(event.outcome, Failed):
            self._failures.append((event.outcome, trial.fidelity))
        elif isinstance(event.outcome, Scored | Stopped):
            self._failures.clear()
        self._tell(trial)

    def _deserves_retry(self, event: Finished) -> bool:
        trial = self._driver.history[event.number]
        tries = trial.attempts - trial.interruptions
        if not isinstance(event.outcome, Failed) or tries > RETRIES.get(event.outcome.cause, 0):
            return False
        if event.outcome.cause is FailureCause.ENVIRONMENT:
            LOG.warning("trial %d waits, the machine failed it: %s", trial.number, event.outcome.message)
            self._recovery = RECOVERY_SECONDS * tries
        return True

    # -- requests from outside -----------------------------------------------------------------------------------------

    def _heed(self) -> None:
        for request in self._driver.requests():
            if request.number not in {asked.number for asked in self._cancelling.values()}:
                self._heed_one(request)

    def _heed_one(self, request: Request) -> None:
        match request.kind:
            case RequestKind.CANCEL if request.trial in self._running:
                self._cancel(request, request.trial)
            case RequestKind.CANCEL if request.trial is not None and self._driver.runs_elsewhere(request.trial):
                return  # its driver will see to it
            case RequestKind.CANCEL | RequestKind.RETRY:
                try:
                    self._tell(self._driver.heed(request))
                except StudyError as error:
                    self._driver.answer(request, f"refused: {error}")
            case _:
                self._turn(request)

    def _turn(self, request: Request) -> None:
        """Pause, resume or stop."""
        state = RunState.RUNNING
        if request.kind in (RequestKind.STOP, RequestKind.STOP_NOW):
            self.is_stopping, state = True, RunState.STOPPING
        elif self.is_stopping:
            self._driver.answer(request, "refused: the run is stopping")
            return
        elif request.kind is RequestKind.PAUSE:
            state = RunState.PAUSED
        self._is_paused = state is RunState.PAUSED
        self._driver.note_run(state)
        self._driver.answer(request, str(state))
        self._ends_now |= request.kind is RequestKind.STOP_NOW

    def _cancel(self, request: Request, number: int) -> None:
        try:
            self._executor.cancel(number)
        except StudyError as error:
            self._driver.answer(request, f"refused: {error}")
        else:
            self._cancelling[number] = request

    def _rests(self) -> bool:
        """Whether the run is paused and nothing runs any more; the study's clock stands still then."""
        rests = self._is_paused and not self._running
        if rests and not self._rests_now:
            self._driver.hold_clock()
        elif self._rests_now and not rests:
            self._driver.release_clock(self._executor.now)
        self._rests_now = rests
        return rests

    # -- ending --------------------------------------------------------------------------------------------------------

    def _is_failing(self) -> bool:
        return self._max_failures is not None and len(self._failures) >= self._max_failures

    def _patience(self) -> float | None:
        """How long to wait for an event: until overtime ends, and no longer than a request may wait."""
        left = self._time_left()
        if not self._driver.can_be_asked or getattr(self._executor, "is_virtual", False):
            return left
        return REQUEST_SECONDS if left is None else min(left, REQUEST_SECONDS)

    def _time_left(self) -> float | None:
        """Until overtime ends, None where there is no such moment."""
        if self._overtime is None or self._budget.seconds is None:
            return None
        return max(0.0, self._budget.seconds + self._overtime - self._driver.elapsed())

    def _is_overtime(self) -> bool:
        return self._time_left() == 0.0

    def _abandon(self) -> None:
        """Stop what still runs. What has just ended is recorded, the rest waits for the next run."""
        for number in sorted(self._running):
            with suppress(StudyError):  # it has ended, or was never begun
                self._executor.cancel(number)
        while events := self._executor.wait(0):
            self._take([event for event in events if not _is_cancelled(event)])
        # From the records, not from our own set: an interrupt may have come between the two.
        pending = self._driver.history.pending
        running = [t.number for t in pending if t.state is TrialState.RUNNING]
        left = [n for n in running if n not in self._elsewhere and not self._driver.runs_elsewhere(n)]
        for trial in [self._driver.requeue(number, interrupted=True) for number in left]:
            self._tell(trial)

    def _summary(self) -> str:
        counts = Counter(failure.cause for failure, _ in self._failures)
        causes = ", ".join(f"{n} {cause}" for cause, n in counts.most_common())
        last = first_line(self._failures[-1][0].message) or "no message"
        n = len(self._driver.history.completed)
        shares = {fidelity for _, fidelity in self._failures}
        where = f", all at {share_in_words(*shares)}" if len(shares) == 1 and max(shares) < 1 else ""
        return (
            f"stopped: {len(self._failures)} trials in a row failed ({causes}{where}); the last: {last}. "
            f"{n} completed trials are kept; max_consecutive_failures sets how many failures end a run"
        )


def _is_cancelled(event: Event) -> bool:
    return isinstance(event, Finished) and isinstance(event.outcome, Cancelled)

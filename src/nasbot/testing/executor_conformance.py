"""The promises of ``nasbot.execution.base.Executor`` as tests. Inherit, say how to make one, and let pytest collect it.

    class TestMyExecutor(ExecutorConformance):
        def make_executor(self, slots: int = 1) -> Executor:
            return MyExecutor(slots)

The objectives are functions of this module, so that they can be sent to any process that has nasbot.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from nasbot.architecture import Architecture, initial_pool
from nasbot.candidate import Candidate
from nasbot.errors import RefusedError, StudyError
from nasbot.execution.base import Event, Executor, Finished, Job, Objective, Reported
from nasbot.execution.evaluation import LiveTrial
from nasbot.pacing import Bar
from nasbot.testing.storage_conformance import expect
from nasbot.trial import Cancelled, Direction, Failed, FailureCause, Outcome, Point, Scored, Stopped

PATIENCE = 120.0  # seconds; a test that waits this long has failed


class ExecutorConformance:
    """Tests for any Executor; ``make_executor`` gives a new one."""

    most_slots = 1  # how many slots the tests may ask for

    def make_executor(self, slots: int = 1) -> Executor:
        """An executor that has not been started."""
        raise NotImplementedError

    # -- scores --------------------------------------------------------------------------------------------------------

    def test_a_number_is_a_score(self) -> None:
        with self.started(count_layers) as executor:
            job = sample_job(0)
            assert self.outcome(executor, job) == _about(len(job.arch.layers))
            assert self.outcome(executor, sample_job(1)) == _about(len(sample_job(1).arch.layers))

    def test_details_come_along(self) -> None:
        with self.started(with_details) as executor:
            outcome = self.outcome(executor, sample_job(0))
            assert isinstance(outcome, Scored)
            assert outcome.details["epochs"] == 7

    def test_reports_come_before_the_end_and_in_order(self) -> None:
        with self.started(reporting) as executor:
            executor.submit(sample_job(5))
            events = self.until_finished(executor, 1)
            points = [event.point for event in events if isinstance(event, Reported)]
            assert points == [Point(step, step / 2) for step in (1, 2, 3)]
            assert isinstance(events[-1], Finished)
            assert {event.number for event in events} == {5}

    def test_a_training_that_misses_a_bar_ends_there(self) -> None:
        low = Bar(step=1, value=0.5, direction=Direction.MAXIMISE, share=0.25)  # which it just reaches
        high = Bar(step=2, value=1.2, direction=Direction.MAXIMISE, share=0.5, gain=0.5, others=(1.4, 0.9, 2.0))
        missed = Stopped(step=2, value=1.0, bar=1.2, expected=1.5, share=0.5, place=3, among=4)
        for objective in (reporting, stubborn):
            with self.started(objective) as executor:
                executor.submit(replace(sample_job(3), bars=(low, high)))
                events = self.until_finished(executor, 1)
                assert isinstance(events[-1], Finished)
                assert events[-1].outcome == missed, (objective, events)
                assert [event.point.step for event in events if isinstance(event, Reported)] == [1, 2]
                assert self.outcome(executor, replace(sample_job(4), bars=(low,))) == _about(1.5)

    def test_seeds_are_the_trials_own(self) -> None:
        with self.started(seeded) as executor:
            first, second = (self.outcome(executor, sample_job(n)) for n in (0, 1))
            again = self.outcome(executor, sample_job(0))
        assert isinstance(first, Scored)
        assert isinstance(second, Scored)
        assert isinstance(again, Scored)
        assert first.value == again.value != second.value

    # -- failures ------------------------------------------------------------------------------------------------------

    def test_failures_have_causes(self) -> None:
        for objective, cause in FAILING.items():
            with self.started(objective) as executor:
                outcome = self.outcome(executor, sample_job(0))
                assert isinstance(outcome, Failed), objective
                assert outcome.cause is cause, (objective, outcome)
                assert outcome.message, objective

    def test_life_goes_on_after_a_failure(self) -> None:
        with self.started(fails_on_even) as executor:
            kinds = [type(self.outcome(executor, sample_job(n))) for n in range(4)]
            assert kinds == [Failed, Scored, Failed, Scored]

    # -- slots ---------------------------------------------------------------------------------------------------------

    def test_no_more_jobs_than_slots(self) -> None:
        with self.started(count_layers, slots=self.most_slots) as executor:
            assert executor.slots == self.most_slots
            for n in range(self.most_slots):
                executor.submit(sample_job(n))
            expect(StudyError, lambda: executor.submit(sample_job(self.most_slots)))
            events = self.until_finished(executor, self.most_slots)
            ended = sorted(event.number for event in events if isinstance(event, Finished))
            assert ended == list(range(self.most_slots))

    def test_every_job_ends_once(self) -> None:
        n_jobs = 6
        ended: list[int] = []
        with self.started(fails_on_even, slots=self.most_slots) as executor:
            waiting, running = list(range(n_jobs)), 0
            while waiting or running:
                while waiting and running < executor.slots:
                    executor.submit(sample_job(waiting.pop(0)))
                    running += 1
                finished = [event for event in executor.wait(PATIENCE) if isinstance(event, Finished)]
                assert finished, "nothing came"
                running -= len(finished)
                ended += [event.number for event in finished]
            assert not executor.wait(0)
        assert sorted(ended) == list(range(n_jobs))

    def test_a_number_runs_once_at_a_time(self) -> None:
        with self.started(count_layers, slots=self.most_slots) as executor:
            executor.submit(sample_job(0))
            expect(StudyError, lambda: executor.submit(sample_job(0)))
            self.until_finished(executor, 1)

    # -- clock, cancelling, closing ------------------------------------------------------------------------------------

    def test_one_clock(self) -> None:
        with self.started(count_layers) as executor:
            before = executor.now()
            executor.submit(sample_job(0))
            end = self.until_finished(executor, 1)[-1]
            assert isinstance(end, Finished)
            assert before <= end.at <= executor.now()

    def test_waiting_for_nothing_returns(self) -> None:
        with self.started(count_layers) as executor:
            assert not executor.wait()
            assert not executor.wait(0.01)

    def test_cancelling(self) -> None:
        with self.started(count_layers) as executor:
            executor.submit(sample_job(0))
            executor.cancel(0)
            ends = [event for event in self.until_finished(executor, 1) if isinstance(event, Finished)]
            assert [type(event.outcome) for event in ends] == [Cancelled]
            expect(StudyError, lambda: executor.cancel(0))
            assert self.outcome(executor, sample_job(0)) == _about(len(sample_job(0).arch.layers))

    def test_closed_is_closed(self) -> None:
        executor = self.make_executor()
        executor.start(count_layers)
        executor.submit(sample_job(0))
        executor.close()
        executor.close()
        expect(StudyError, lambda: executor.submit(sample_job(1)))

    # -- tools ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def started(self, objective: Objective, slots: int = 1) -> Iterator[Executor]:
        """An executor with this objective, closed at the end."""
        executor = self.make_executor(slots)
        try:
            executor.start(objective)
            yield executor
        finally:
            executor.close()

    def outcome(self, executor: Executor, job: Job) -> Outcome:
        """What becomes of this job, alone."""
        executor.submit(job)
        end = self.until_finished(executor, 1)[-1]
        assert isinstance(end, Finished)
        assert end.number == job.number
        return end.outcome

    def until_finished(self, executor: Executor, n_jobs: int) -> list[Event]:
        """All events until this many jobs have ended."""
        events: list[Event] = []
        while sum(isinstance(event, Finished) for event in events) < n_jobs:
            came = executor.wait(PATIENCE)
            assert came, "nothing came"
            events += came
        return events


def sample_job(number: int) -> Job:
    """A job with one of the pool's networks."""
    networks = initial_pool("mlp-reg")
    return Job(number, Candidate(networks[number % len(networks)]), seed=11)


class _about(Scored):
    """Equal to any score of this value, whatever its details."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scored) and other.value == self.value

    __hash__ = None  # type: ignore[assignment]


# -- objectives ------------------------------------------------------------------------------------------------------


def count_layers(arch: Architecture) -> int:
    """A score that tells networks apart."""
    return len(arch.layers)


def with_details(arch: Architecture) -> Scored:
    """A score with something beside it."""
    return Scored(1.0, {"epochs": 7})


def reporting(arch: Architecture, trial: LiveTrial) -> float:
    """Reports three points, and two that are not numbers."""
    trial.report(1, 0.5)
    trial.report(2, 1.0)
    trial.report(2, math.nan)
    trial.report(3, 1.5)
    trial.report(4, math.inf)
    return 1.5


def stubborn(arch: Architecture, trial: LiveTrial) -> float:
    """Goes on, whatever it is told."""
    for step in (1, 2, 3):
        try:
            trial.report(step, step / 2)
        except BaseException:  # noqa: BLE001  as a library's own loop might
            continue
    return 1.5


def seeded(arch: Architecture, trial: LiveTrial) -> float:
    """A draw of the trial's own generator."""
    assert trial.rng.random() == trial.rng.random()
    return float(trial.rng.random()) + (trial.seed % 1000)


def fails_on_even(arch: Architecture, trial: LiveTrial) -> float:
    """Raises for every other trial."""
    if trial.number % 2 == 0:
        raise ValueError("an even number")
    return 1.0


def raises(arch: Architecture) -> float:
    """A plain exception."""
    raise ValueError("something is wrong")


def exits(arch: Architecture) -> float:
    """An exit, which must end nothing but the evaluation."""
    sys.exit(3)


def runs_out_of_memory(arch: Architecture) -> float:
    """As an allocation does that fails."""
    raise MemoryError


def refuses(arch: Architecture) -> float:
    """Declines the network."""
    raise RefusedError("too many parameters: 3 > 2")


def returns_nan(arch: Architecture) -> float:
    """Diverged."""
    return math.nan


def returns_infinity(arch: Architecture) -> float:
    """Diverged further."""
    return -math.inf


def returns_nothing(arch: Architecture) -> None:
    """A forgotten return."""


def returns_text(arch: Architecture) -> str:
    """Not a number, though it looks like one."""
    return "0.5"


FAILING = {
    raises: FailureCause.EXCEPTION,
    exits: FailureCause.EXCEPTION,
    runs_out_of_memory: FailureCause.OOM,
    refuses: FailureCause.REFUSED,
    returns_nan: FailureCause.NAN,
    returns_infinity: FailureCause.NAN,
    returns_nothing: FailureCause.EXCEPTION,
    returns_text: FailureCause.EXCEPTION,
}

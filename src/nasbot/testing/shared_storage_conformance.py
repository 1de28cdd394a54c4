"""The promises of ``nasbot.storage.base.SharedStorage`` as tests: several drivers on one study.

class TestMySharedStorage(SharedStorageConformance):
    def make_drivers(self, n: int) -> list[SharedStorage]:
        return [MyStorage(..., shared=True) for _ in range(n)]

    def kill(self, driver: SharedStorage) -> None:
        ...  # as if its process had been killed
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from nasbot.errors import ClaimLostError, StudyError
from nasbot.storage.base import SharedStorage
from nasbot.storage.records import Run, RunState
from nasbot.testing.storage_conformance import SETTINGS, expect, sample_trial
from nasbot.trial import History, Scored, Trial, TrialState

T = TypeVar("T")
PATIENCE = 120.0  # seconds, to end a test that hangs; nothing else depends on it


class SharedStorageConformance:
    """Tests for any SharedStorage."""

    def make_drivers(self, n: int) -> list[SharedStorage]:
        """That many shared storages, all of one study that is not begun yet, another one at every call."""
        raise NotImplementedError

    def kill(self, driver: SharedStorage) -> None:
        """Let this driver be gone without a word; nothing is asked of it any more."""
        raise NotImplementedError

    def test_a_study_begins_once(self) -> None:
        first, second = self.make_drivers(2)
        first.create(SETTINGS, [sample_trial(0)])
        expect(StudyError, lambda: second.create({"seed": 4}))
        assert second.settings() == SETTINGS
        _close(first, second)

    def test_each_sees_what_the_others_did(self) -> None:
        first, second = self._begun(2)
        first.change(_begin)
        assert second.history() == first.history()
        assert [trial.state for trial in second.history().pending] == [TrialState.RUNNING]
        first.change(_end(first, 0.25))
        second.change(_begin)
        assert second.history().completed[0].value == 0.25
        assert first.history() == second.history()
        _close(first, second)

    def test_what_was_missed_is_caught_up_with(self) -> None:
        """A trial that was begun, interrupted, begun again and scored while nobody looked."""
        first, second = self._begun(2, [sample_trial(0), sample_trial(1), sample_trial(2)])
        assert len(second.history()) == 3
        for _ in range(2):
            (running,) = first.change(_begin)
            first.change(lambda history, n=running.number: [history[n].requeued(interrupted=True)])  # type: ignore[misc]
        assert second.history() == first.history()
        for _ in range(3):
            first.change(_begin)
        first.change(_end(first, 1.5, number=2))
        first.change(_end(first, 2.5, number=0))
        assert second.history() == first.history()
        assert [trial.number for trial in second.history().finished] == [2, 0]
        _close(first, second)

    def test_decisions_are_made_on_the_newest(self) -> None:
        first, second = self._begun(2)
        first.history()
        second.change(_begin)
        seen: list[int] = []

        def look(history: History) -> list[Trial]:
            seen.append(len(history))
            return []

        assert first.change(look) == ()
        assert seen[-1] == 1
        _close(first, second)

    def test_what_waits_is_claimed_once(self) -> None:
        drivers = self._begun(3, [sample_trial(n) for n in range(3)])
        claimed = [driver.change(_begin)[0].number for driver in drivers]
        assert claimed == [0, 1, 2]
        for driver, number in zip(drivers, claimed, strict=True):
            driver.history()
            assert [driver.is_ours(n) for n in range(3)] == [n == number for n in range(3)]
        _close(*drivers)

    def test_a_running_trial_is_its_drivers(self) -> None:
        first, second = self._begun(2)
        (running,) = first.change(_begin)
        expect(ClaimLostError, lambda: second.save(running.ended(Scored(1.0), at=2.0, rank=0)))
        expect(ClaimLostError, lambda: second.save(running.requeued(interrupted=True)))
        assert second.history()[0] == running
        first.save(running.ended(Scored(2.0), at=2.0, rank=0))
        assert second.history()[0].value == 2.0
        _close(first, second)

    def test_nothing_is_recorded_of_a_decision_that_fails(self) -> None:
        first, second = self._begun(2)

        def fail(history: History) -> list[Trial]:
            raise StudyError("no")

        expect(StudyError, lambda: first.change(fail))
        expect(StudyError, lambda: first.change(lambda history: [sample_trial(0), sample_trial(3)]))
        assert len(second.history()) == len(first.history()) == 0
        _close(first, second)

    def test_numbers_and_ranks_are_given_once(self) -> None:
        """Four at once, as fast as they can."""
        drivers, each = self._begun(4), 8
        failures: list[BaseException] = []

        def drive(driver: SharedStorage) -> None:
            try:
                for _ in range(each):
                    (trial,) = driver.change(_begin)
                    driver.change(_end(driver, float(trial.number), number=trial.number))
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=drive, args=(driver,)) for driver in drivers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert not failures
        history = drivers[0].history()
        assert [trial.value for trial in history] == [float(n) for n in range(len(drivers) * each)]
        assert all(driver.history() == history for driver in drivers)
        _close(*drivers)

    def test_one_proposes_at_a_time(self) -> None:
        first, second = self._begun(2)
        with first.turn() as is_first, second.turn() as is_second:
            assert (is_first, is_second) == (True, False)
        with second.turn() as is_second:
            assert is_second
        _close(first, second)

    def test_runs_stand_beside_each_other(self) -> None:
        first, second = self._begun(2)
        runs = [driver.join(Run(number=0, begun=1.0, record={"pid": 7})) for driver in (first, second)]
        assert [run.number for run in runs] == [0, 1]
        expect(StudyError, lambda: second.save_run(runs[0].now(RunState.PAUSED)))
        first.save_run(runs[0].over("finished", at=2.0))
        expect(StudyError, lambda: first.save_run(runs[0]))
        assert [run.ending for run in second.runs()] == ["finished", None]
        _close(first, second)

    def test_what_a_dead_driver_ran_waits_again(self) -> None:
        dead, alive = self._begun(2)
        dead.join(Run(number=0, begun=1.0))
        alive.join(Run(number=0, begun=1.0))
        (lost,) = dead.change(_begin)
        (kept,) = alive.change(_begin)
        self.kill(dead)
        released = list(_until(alive.release_dead))
        assert released == [lost.requeued(interrupted=True)]
        assert list(alive.history()) == [*released, kept]
        assert alive.is_ours(kept.number)
        assert [run.ending for run in alive.runs()] == ["died", None]
        (again,) = alive.change(_begin)
        assert (again.number, again.interruptions, alive.is_ours(again.number)) == (lost.number, 1, True)
        _close(alive)

    def test_nobody_waits_for_the_turn_of_a_dead_driver(self) -> None:
        dead, alive = self._begun(2)
        with dead.turn() as is_dead_ones:
            assert is_dead_ones
            self.kill(dead)

            def is_free() -> bool:
                with alive.turn() as is_ours:
                    return is_ours

            _until(is_free)
        _close(alive)

    def test_whoever_leaves_lets_its_trials_wait(self) -> None:
        first, second = self._begun(2)
        (running,) = first.change(_begin)
        first.close()
        _until(lambda: second.release_dead() or second.history()[0].state is TrialState.WAITING)
        assert second.history()[0] == running.requeued(interrupted=True)
        _close(second)

    def test_the_living_are_left_alone(self) -> None:
        first, second = self._begun(2)
        (running,) = first.change(_begin)
        for _ in range(3):
            assert second.release_dead() == ()
        assert second.history()[0] == running
        assert second.presence().is_held
        _close(first, second)

    def _begun(self, n: int, trials: list[Trial] | None = None) -> list[SharedStorage]:
        drivers = self.make_drivers(n)
        drivers[0].create(SETTINGS, trials or ())
        return drivers


def _begin(history: History) -> list[Trial]:
    """The first that waits, else a new one; running."""
    waiting = next((trial for trial in history.pending if trial.state is TrialState.WAITING), None)
    return [(waiting or sample_trial(len(history))).begun(1.0)]


def _end(driver: SharedStorage, value: float, number: int = 0) -> Callable[[History], list[Trial]]:
    return lambda history: [history[number].ended(Scored(value), at=2.0, rank=len(history.finished))]


def _until(is_so: Callable[[], T]) -> T:
    deadline = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.02)
    return found


def _close(*drivers: SharedStorage) -> None:
    for driver in drivers:
        driver.close()

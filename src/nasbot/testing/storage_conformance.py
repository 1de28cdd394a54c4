"""The promises of ``nasbot.storage.base.Storage`` as tests. Inherit, say how to make one, and let pytest collect it.

class TestMyStorage(StorageConformance):
    def make_storage(self) -> Storage:
        return MyStorage(...)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nasbot._typing import Json
from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.errors import NasbotError, StudyError
from nasbot.storage.base import Storage
from nasbot.storage.records import Run, RunState
from nasbot.trial import Cancelled, Failed, FailureCause, Forecast, History, Outcome, Point, Provenance, Scored, Trial

SETTINGS: dict[str, Json] = {
    "seed": 3,
    "space": {"kind": "mlp-reg", "max_mass": 1e8},
    "pool": ["a", "b"],
    "text": "Gödel ☃ 𝒢",
}
AWKWARD_VALUES = (0.1 + 0.2, 0.0, 5e-324, 1.7976931348623157e308, -1e-17, 12345678901234567.0)


class StorageConformance:
    """Tests for any Storage; ``make_storage`` gives a new, empty one."""

    def make_storage(self) -> Storage:
        """A storage without a study in it, different at every call."""
        raise NotImplementedError

    def reopened(self, storage: Storage) -> Storage:
        """The same study through a new storage, where studies outlive storages; the same object otherwise."""
        return storage

    # -- settings ------------------------------------------------------------------------------------------------------

    def test_a_new_storage_is_empty(self) -> None:
        storage = self.make_storage()
        assert storage.settings() is None
        assert len(storage.history()) == 0
        storage.close()

    def test_settings_come_back_exactly(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS)
        assert storage.settings() == SETTINGS
        storage = self.reopened(storage)
        assert storage.settings() == SETTINGS
        storage.close()

    def test_a_study_begins_once(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS, [sample_trial(0)])
        expect(StudyError, lambda: storage.create({"seed": 4}))
        assert storage.settings() == SETTINGS
        assert len(storage.history()) == 1
        storage.close()

    def test_nothing_is_saved_before_the_beginning(self) -> None:
        storage = self.make_storage()
        expect(StudyError, lambda: storage.save(sample_trial(0)))
        assert storage.settings() is None
        assert len(storage.history()) == 0
        storage.close()

    # -- trials --------------------------------------------------------------------------------------------------------

    def test_every_state_comes_back_exactly(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS)
        written = History(tuple(every_kind_of_trial()))
        storage.save(*(replace(trial, outcome=None, finished=None, rank=None) for trial in written))
        for trial in written.finished:
            storage.save(trial)
        assert storage.history() == written
        storage = self.reopened(storage)
        assert storage.history() == written
        assert [t.number for t in storage.history().finished] == [t.number for t in written.finished]
        storage.close()

    def test_networks_come_back_layer_by_layer(self) -> None:
        storage = self.make_storage()
        networks = initial_pool("cnn")
        storage.create(SETTINGS, [Trial(number=n, candidate=Candidate(arch)) for n, arch in enumerate(networks)])
        storage = self.reopened(storage)
        for trial, arch in zip(storage.history(), networks, strict=True):
            assert (trial.arch.layers, trial.arch.edges) == (arch.layers, arch.edges)
        storage.close()

    def test_values_come_back_to_the_last_bit(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS)
        times = [1e9 + n / 3 for n in range(len(AWKWARD_VALUES))]  # in no storage does a clock read 1.8e308
        for n, (value, at) in enumerate(zip(AWKWARD_VALUES, times, strict=True)):
            storage.save(sample_trial(n).begun(at).ended(Scored(value), at=at, rank=n))
        storage = self.reopened(storage)
        for trial, value, at in zip(storage.history(), AWKWARD_VALUES, times, strict=True):
            read = (trial.value, trial.started, trial.finished)
            assert [number.hex() for number in read if number is not None] == [value.hex(), at.hex(), at.hex()]
        storage.close()

    def test_minus_zero_is_zero(self) -> None:
        """SQL knows one zero; a minimised objective of value 0 is -0.0 inside."""
        storage = self.make_storage()
        trial = sample_trial(0).begun(-0.0).with_points([Point(0, -0.0)]).ended(Scored(-0.0), at=-0.0, rank=0)
        storage.create(SETTINGS, [trial])
        storage = self.reopened(storage)
        assert storage.history()[0] == trial
        storage.close()

    def test_a_whole_life(self) -> None:
        storage = self.make_storage()
        trial = sample_trial(0)
        storage.create(SETTINGS, [trial])
        steps: list[Callable[[Trial], Trial]] = [
            lambda t: t.begun(1.0),
            lambda t: t.with_points([Point(1, 0.5), Point(2, 0.25)]),
            lambda t: t.requeued(interrupted=True),
            lambda t: t.begun(5.0),
            lambda t: t.with_points([Point(1, 0.75)]),
            lambda t: t.with_points([Point(1, 0.75), Point(10, 0.5)]),
            lambda t: t.ended(Scored(2.5, {"epochs": 3}), at=9.0, rank=0),
        ]
        for step in steps:
            trial = step(trial)
            storage.save(trial)
            assert storage.history()[0] == trial
        storage = self.reopened(storage)
        assert storage.history()[0] == trial
        assert trial.attempts == 2
        storage.close()

    # -- runs ----------------------------------------------------------------------------------------------------------

    def test_runs_come_back_exactly(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS)
        assert list(storage.runs()) == []
        first = Run(number=0, begun=1.5, record={"pid": 7, "host": "☃", "workers": 2, "budget": {"trials": 3}})
        second = Run(number=1, begun=3.25, record={"command": "nasbot run 'a b.csv'"})
        written = [first.over("finished", at=2.5), second.over("closed", at=9.0)]
        for state in (first, first.now(RunState.PAUSED), written[0], second, written[1]):
            storage.save_run(state)
        assert list(storage.runs()) == written
        storage = self.reopened(storage)
        assert list(storage.runs()) == written
        storage.close()

    def test_one_run_at_a_time(self) -> None:
        storage = self.make_storage()
        expect(StudyError, lambda: storage.save_run(Run(number=0, begun=1.0)))
        storage.create(SETTINGS)
        expect(StudyError, lambda: storage.save_run(Run(number=1, begun=1.0)))
        open_run = Run(number=0, begun=1.0)
        storage.save_run(open_run)
        expect(StudyError, lambda: storage.save_run(Run(number=1, begun=2.0)))
        storage.save_run(open_run.over("stopped", at=2.0))
        expect(StudyError, lambda: storage.save_run(open_run))
        assert [run.ending for run in storage.runs()] == ["stopped"]
        storage.close()

    def test_nobody_has_asked_for_anything(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS)
        assert list(storage.requests()) == []
        assert storage.presence().is_held
        storage.close()

    # -- strictness ----------------------------------------------------------------------------------------------------

    def test_an_outcome_never_changes(self) -> None:
        storage = self.make_storage()
        running = sample_trial(0).begun(0.0)
        done = running.ended(Scored(1.0), at=1.0, rank=0)
        storage.create(SETTINGS, [done])
        for other in (running, running.ended(Scored(2.0), at=1.0, rank=0), done):
            expect(StudyError, lambda other=other: storage.save(other))  # type: ignore[misc]
        assert storage.history()[0] == done
        storage.close()

    def test_numbers_and_ranks_have_no_gaps(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS, [sample_trial(0).begun(0.0)])
        running = storage.history()[0]
        expect(StudyError, lambda: storage.save(sample_trial(2)))
        expect(StudyError, lambda: storage.save(running.ended(Scored(1.0), at=1.0, rank=1)))
        assert storage.history() == History((running,))
        storage.close()

    def test_all_or_nothing(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS, [sample_trial(0)])
        expect(StudyError, lambda: storage.save(sample_trial(0).begun(1.0), sample_trial(1), sample_trial(3)))
        assert storage.history() == History((sample_trial(0),))
        storage = self.reopened(storage)
        assert storage.history() == History((sample_trial(0),))
        storage.close()

    def test_histories_already_given_do_not_change(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS, [sample_trial(0)])
        before = storage.history()
        storage.save(sample_trial(1))
        assert len(before) == 1
        assert len(storage.history()) == 2
        storage.close()

    def test_closed_is_closed(self) -> None:
        storage = self.make_storage()
        storage.create(SETTINGS)
        storage.close()
        storage.close()
        expect(StudyError, storage.history)
        expect(StudyError, lambda: storage.save(sample_trial(0)))


def sample_trial(number: int) -> Trial:
    """A waiting trial with everything filled in: params, fidelity, origin, forecast, and notes of every type."""
    networks = initial_pool("mlp-reg")
    notes: dict[str, Json] = {"mine": "text", "number": 0.1, "list": [0, 1], "table": {"inner": 1e-3}, "exact": None}
    return Trial(
        number=number,
        candidate=Candidate(networks[number % len(networks)], {"learning_rate": 0.1 + 0.2, "batch": 32, "form": "a"}),
        fidelity=1 / 3,
        promoted_from=number - 1 if number else None,
        origin=Provenance(searcher="sample", parents=(0, 1), changes=("ü: more",), seconds={"fitting": 1e-3}),
        forecast=Forecast(median=0.1, lower=-0.1, upper=1e300, mean=2.0, utility=-3.5, utility_by_phase={"a": 1 / 3}),
        notes=notes,
        proposed_after=number // 2,
    )


def every_kind_of_trial() -> list[Trial]:
    """Trials in all states and with all causes of failure; ranks do not follow numbers."""
    outcomes: list[Outcome] = [
        Scored(0.5, {"test": 0.25}),
        *(Failed(cause, f"message of {cause}: ☃\nsecond line", {"exit_code": -9}) for cause in FailureCause),
        Cancelled("no longer wanted"),
    ]
    trials = [sample_trial(0), sample_trial(1).begun(0.5), sample_trial(2).begun(0.5).with_points([Point(0, -1.0)])]
    for i, outcome in enumerate(outcomes):
        trials.append(sample_trial(3 + i).begun(1.0 + i).ended(outcome, at=2.0 + i, rank=len(outcomes) - 1 - i))
    return trials


def expect(kind: type[NasbotError], action: Callable[[], object]) -> NasbotError:
    """The error of this kind that the action must raise."""
    try:
        action()
    except kind as error:
        if not str(error):
            raise AssertionError(f"a {kind.__name__} without a message") from error
        return error
    raise AssertionError(f"expected {kind.__name__}, and nothing was raised")

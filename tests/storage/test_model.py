"""Both storages against a model of thirty lines: any sequence of saves, reopenings and refusals."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nasbot.errors import StudyError
from nasbot.storage import MemoryStorage, SqliteStorage
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
from nasbot.trial import Cancelled, Failed, FailureCause, Point, Scored

FINITE = st.floats(allow_nan=False, allow_infinity=False)
OUTCOMES = st.one_of(
    st.builds(Scored, FINITE, st.dictionaries(st.text(max_size=5), FINITE, max_size=2)),
    st.builds(Failed, st.sampled_from(FailureCause), st.text(max_size=20)),
    st.builds(Cancelled, st.text(max_size=20)),
)


class StorageMachine(RuleBasedStateMachine):
    """The model is a list of trials; the storage must say the same after every step."""

    def open(self):
        raise NotImplementedError

    @initialize(n=st.integers(0, 3))
    def begin(self, n):
        self.folder = Path(tempfile.mkdtemp(prefix="nasbot-model-"))
        self.storage = self.open()
        self.model = [sample_trial(i) for i in range(n)]
        self.n_ended = 0
        self.storage.create(SETTINGS, self.model)

    def pick(self, choice, state):
        fitting = [trial for trial in self.model if trial.state == state]
        return fitting[choice % len(fitting)] if fitting else None

    def save(self, trial):
        self.storage.save(trial)
        self.model[trial.number :] = [trial, *self.model[trial.number + 1 :]]

    @rule()
    def add(self):
        self.save(sample_trial(len(self.model)))

    @rule(choice=st.integers(0, 99), at=st.floats(0, 1e9))
    def begin_one(self, choice, at):
        if trial := self.pick(choice, "waiting"):
            self.save(trial.begun(at))

    @rule(choice=st.integers(0, 99), interrupted=st.booleans())
    def requeue(self, choice, interrupted):
        if trial := self.pick(choice, "running"):
            self.save(trial.requeued(interrupted=interrupted))

    @rule(choice=st.integers(0, 99), points=st.lists(st.tuples(st.integers(-9, 10**12), FINITE), max_size=3))
    def extend(self, choice, points):
        if trial := self.pick(choice, "running"):
            self.save(trial.with_points([Point(*point) for point in points]))

    @rule(choice=st.integers(0, 99), outcome=OUTCOMES, at=st.floats(0, 1e9))
    def end(self, choice, outcome, at):
        if trial := self.pick(choice, "running"):
            self.save(trial.ended(outcome, at=at, rank=self.n_ended))
            self.n_ended += 1

    @precondition(lambda self: self.n_ended)
    @rule(choice=st.integers(0, 99), outcome=OUTCOMES)
    def refuse_a_second_outcome(self, choice, outcome):
        ended = [trial for trial in self.model if trial.rank is not None]
        trial = ended[choice % len(ended)]
        with pytest.raises(StudyError):
            self.storage.save(sample_trial(len(self.model)), replace(trial, outcome=outcome))

    @rule(gap=st.integers(1, 5))
    def refuse_a_gap(self, gap):
        with pytest.raises(StudyError):
            self.storage.save(sample_trial(len(self.model) + gap))

    @rule()
    def reopen(self):
        self.storage = self.reopened()

    def reopened(self):
        return self.storage

    @invariant()
    def agree(self):
        if hasattr(self, "storage"):
            assert list(self.storage.history()) == self.model

    def teardown(self):
        if hasattr(self, "storage"):
            self.storage.close()
            shutil.rmtree(self.folder)


class MemoryMachine(StorageMachine):
    def open(self):
        return MemoryStorage()


class SqliteMachine(StorageMachine):
    def open(self):
        return SqliteStorage(self.folder / "study.sqlite")

    def reopened(self):
        self.storage.close()
        return self.open()

    @invariant()
    def readers_agree(self):
        if hasattr(self, "storage"):
            reader = SqliteStorage(self.storage.path, read_only=True)
            assert list(reader.history()) == self.model
            reader.close()


for machine, share in ((MemoryMachine, 0.6), (SqliteMachine, 0.3)):  # of what the profile asks for
    n_examples = max(1, int(share * settings().max_examples))
    machine.TestCase.settings = settings(max_examples=n_examples, stateful_step_count=25)
TestMemoryModel = MemoryMachine.TestCase
TestSqliteModel = SqliteMachine.TestCase

"""A study in numbers, with and without its networks."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from nasbot.errors import StorageError
from nasbot.storage import SqliteStorage, Tally
from nasbot.storage.tally import trials_in_words
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
from nasbot.trial import Cancelled, Failed, FailureCause, Scored


@pytest.fixture(params=["maximise", "minimise"])
def file(request, tmp_path):
    """Values with equals among them, a low fidelity, failures, a cancelled trial, and some in flight; closed."""
    path = tmp_path / "study.sqlite"
    storage = SqliteStorage(path)
    storage.create({**SETTINGS, "direction": request.param})
    trials = [replace(sample_trial(n), fidelity=0.5 if n == 5 else 1.0) for n in range(9)]
    started = [trial.begun(n + 0.5) for n, trial in enumerate(trials[:8])]
    storage.save(*started)
    # Trial 2 is recorded before trial 0, with the same value.
    outcomes = {
        2: Scored(0.5),
        0: Scored(0.5),
        1: Scored(-3.0),
        3: Failed(FailureCause.NAN, "not finite"),
        4: Cancelled("no longer wanted"),
        5: Scored(7.25),
    }
    for rank, (n, outcome) in enumerate(outcomes.items()):
        storage.save(started[n].ended(outcome, at=20.0 + rank, rank=rank))
    storage.save(trials[8])
    storage.close()
    return path


def test_a_tally_of_a_file_is_that_of_its_history(file):
    reader = SqliteStorage(file, read_only=True)
    tally, history = reader.tally(), reader.history()
    reader.close()
    assert tally.to_dict() == Tally.of_history(history).to_dict()
    assert list(tally.ranked) == [trial.number for trial in history.ranked]
    assert set(tally.ranked) == {0, 1, 2}, "a value of a low fidelity, or none, is in no ranking"
    assert tally.best.trial == history.best.number
    assert tally.best.value == history.best.value
    assert tally.best.at == history.best.finished
    assert (list(tally.pending), list(tally.running)) == ([6, 7, 8], [6, 7])
    assert tally.seconds == 25.0
    assert str(tally) == "1 waiting, 2 running, 4 completed, 1 failed, 1 cancelled"


def test_some_trials_are_those_of_the_history(file):
    reader = SqliteStorage(file, read_only=True)
    history = reader.history()
    assert reader.some([5, 0, 8]) == [history[5], history[0], history[8]]
    with pytest.raises(StorageError, match="trial 9 is missing"):
        reader.some([9])
    reader.close()


@pytest.mark.parametrize(
    "change", ["UPDATE trials SET value = 9 WHERE number = 1", "DELETE FROM trials WHERE number = 7"]
)
def test_damage_is_said_and_never_counted(file, change):
    with closing(sqlite3.connect(file)) as db:
        db.execute(change)
        db.commit()
    reader = SqliteStorage(file, read_only=True)
    with pytest.raises(StorageError, match=r"trial 1 is damaged|trials are missing: expected 7, got 8"):
        reader.tally()
    reader.close()


@pytest.mark.parametrize(
    ("states", "words"),
    [({"completed": 16, "waiting": 2}, "16 + 2 waiting"), ({"completed": 1200}, "1,200"), ({}, "0")],
)
def test_networks_that_wait_are_no_trials_that_ran(states, words):
    assert trials_in_words({"trials": sum(states.values()), "states": states}) == words

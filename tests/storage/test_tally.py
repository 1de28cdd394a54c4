"""A study in numbers, with and without its networks."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from nasbot.errors import StorageError
from nasbot.storage import SqliteStorage, Tally
from nasbot.storage.tally import Line, trials_in_words
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
from nasbot.trial import FINAL, POOL, Cancelled, Direction, Failed, FailureCause, Scored


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


LINES = [
    Line(0, "completed", 2.0, None, 1.0, POOL, 1, 1.0, 3.5),
    Line(1, "completed", 2.0, None, 1.0, "NASBOT", 0, 1.0, 4.0),
    Line(2, "failed", None, "oom", 1.0, "NASBOT", 2, 2.0, 5.0),
    Line(3, "failed", None, "oom", 1.0, "NASBOT", 3, 4.0, 9.0),
    Line(4, "completed", 7.0, None, 0.5, "NASBOT", 4, 5.0, 6.0),
    Line(5, "completed", -1.0, None, 1.0, FINAL, 5, 6.0, 8.0),
    Line(6, "stopped", None, None, 1.0, "NASBOT", 6, 6.0, 6.5),
    Line(7, "running", None, None, 1.0, "NASBOT", None, 9.5, None),
    Line(8, "waiting", None, None, 1.0, "NASBOT", None, None, None),
]


@pytest.mark.parametrize(
    ("direction", "best", "ranked"),
    [
        (Direction.MAXIMISE, {"trial": 1, "value": 2.0, "at": 4.0}, [1, 0, 5]),
        (Direction.MINIMISE, {"trial": 5, "value": -1.0, "at": 8.0}, [5, 1, 0]),
    ],
)
def test_a_tally_by_hand(direction, best, ranked):
    tally = Tally.of(LINES, direction)
    assert tally.to_dict() == {
        "trials": 9,
        "states": {"waiting": 1, "running": 1, "completed": 4, "stopped": 1, "failed": 2},
        "causes": {"oom": 2},
        "best": best,
        "spent": [
            {"what": "initial pool", "trials": 1, "seconds": 2.5},
            {"what": "1/2 of a training", "trials": 1, "seconds": 1.0},
            {"what": "a full training", "trials": 1, "seconds": 3.0},
            {"what": "stopped early", "trials": 1, "seconds": 0.5},
            {"what": "finals", "trials": 1, "seconds": 2.0},
            {"what": "failed or cancelled", "trials": 2, "seconds": 8.0},
        ],
    }
    assert (tally.seconds, tally.pending, tally.running, list(tally.ranked)) == (9.5, [7, 8], [7], ranked)
    assert Tally.of([], direction).to_dict() == {"trials": 0, "states": {}, "causes": {}, "best": None, "spent": []}

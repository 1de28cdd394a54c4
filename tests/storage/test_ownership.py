"""A study has one driver and stays in its place; where that is broken from outside, nothing acknowledged is lost."""

import sqlite3
from contextlib import closing
from random import Random

import pytest

from nasbot.errors import FileError, StudyError
from nasbot.storage import Run, SqliteStorage, post_request, sqlite
from nasbot.storage._lock import lock_path
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
from nasbot.trial import Scored


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.sqlite"


@pytest.fixture
def driver(path):
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(0)])
    storage.save_run(Run(number=0, begun=1.0))
    yield storage
    storage.close()


def read(path):
    reader = SqliteStorage(path, read_only=True)
    try:
        return reader.history()
    finally:
        reader.close()


class Driver:
    """Evaluates one trial after the other and remembers what was acknowledged."""

    def __init__(self, path, sign):
        self.storage = SqliteStorage(path)
        self.sign = sign
        self.acknowledged = {}
        if self.storage.settings() is None:
            self.storage.create(SETTINGS)
        self.storage.save_run(Run(number=len(self.storage.runs()), begun=1.0))

    def step(self):
        history = self.storage.history()
        running = next((trial for trial in history if not trial.state.is_final), None)
        if running is None:
            self.storage.save(sample_trial(len(history)).begun(1.0))
        else:
            value = self.sign * (1.0 + running.number)
            self.storage.save(running.ended(Scored(value), at=2.0, rank=len(history.finished)))
            self.acknowledged[running.number] = value


@pytest.mark.parametrize("seed", range(10))
def test_two_drivers_cannot_overwrite_each_other(path, seed):
    """Somebody removes the lock at any instant: one of the two stops, and every acknowledged outcome is kept."""
    rng = Random(seed)
    first = Driver(path, +1)
    for _ in range(rng.randrange(20)):
        first.step()
    lock_path(path).unlink()
    second = Driver(path, -1)
    living, lost = [first, second], []
    for _ in range(30):
        one = rng.choice(living)
        try:
            one.step()
        except StudyError as error:
            living.remove(one)
            lost.append((one, str(error)))
    (winner,) = living
    values = {trial.number: trial.outcome.value for trial in read(path).completed}
    ((loser, message),) = lost
    assert "another driver has taken over" in message
    assert values == {**first.acknowledged, **second.acknowledged}
    assert not set(first.acknowledged) & set(second.acknowledged)
    assert winner.storage.history() == read(path)
    with pytest.raises(StudyError, match="another driver has taken over"):
        loser.storage.requests()
    for one in (first, second):
        one.storage.close()


def test_requests_of_others_are_no_other_driver(driver, path):
    for n in range(3):
        post_request(path, "pause")
        driver.save(sample_trial(n + 1))
    assert len(driver.requests()) == 3


@pytest.mark.parametrize("table", ["trials", "runs"])
@pytest.mark.parametrize(
    "act", [lambda storage: storage.save(sample_trial(1)), SqliteStorage.requests], ids=["save", "look"]
)
def test_one_other_row_is_another_driver(driver, path, table, act):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        for change in (1, -1):
            other.execute(f"UPDATE {table} SET crc = crc + ?", (change,))
        assert driver.requests() == ()  # somebody wrote, and all is as it was
        other.execute(f"UPDATE {table} SET crc = crc + 1")
        with pytest.raises(StudyError, match="another driver has taken over"):
            act(driver)
        other.execute(f"UPDATE {table} SET crc = crc - 1")
        with pytest.raises(StudyError, match="another driver has taken over"):
            driver.save(sample_trial(1))  # what is lost stays lost
        assert other.execute("SELECT count(*) FROM trials").fetchone() == (1,)


# -- the file itself ---------------------------------------------------------------------------------------------------


def remove(path):
    for file in path.parent.glob("study.sqlite*"):
        file.unlink()


def remove_log(path):
    path.with_name("study.sqlite-wal").unlink()


def replace(path):
    content = path.read_bytes()
    path.rename(path.with_name("old"))
    path.write_bytes(content)


@pytest.mark.parametrize("change", [remove, remove_log, replace], ids=lambda change: change.__name__)
@pytest.mark.parametrize(
    "act", [lambda storage: storage.save(sample_trial(1)), SqliteStorage.requests], ids=["save", "look"]
)
def test_a_file_that_is_gone_is_noticed_and_rescued(driver, path, change, act):
    change(path)
    with pytest.raises(StudyError, match=r"deleted, moved or replaced.* is in .*study-rescued-0\.sqlite"):
        act(driver)
    with pytest.raises(StudyError, match=r"study-rescued-0\.sqlite"):
        driver.save(sample_trial(len(driver.history())))
    rescued = read(path.with_name("study-rescued-0.sqlite"))
    assert rescued.trials[0] == sample_trial(0)
    assert len(list(path.parent.glob("*rescued*.sqlite"))) == 1


def test_a_reopened_study_is_the_same_file(path, driver):
    driver.close()
    again = SqliteStorage(path)
    again.save(sample_trial(1))
    assert again.requests() == ()
    again.close()


# -- others' transactions ----------------------------------------------------------------------------------------------


def test_a_strangers_transaction_is_waited_for_like_room(driver, path, monkeypatch, caplog):
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    driver._db.execute("PRAGMA busy_timeout = 1")
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            stranger.execute("ROLLBACK")

    monkeypatch.setattr(sqlite.time, "sleep", sleep)
    driver.save(sample_trial(1))
    stranger.close()
    assert len(waits) == 3
    assert "waiting for the other program that is writing to it" in caplog.text
    assert len(read(path)) == 2


def test_the_patience_with_a_stranger_ends(driver, path, monkeypatch):
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    driver._db.execute("PRAGMA busy_timeout = 1")
    waits = []
    monkeypatch.setattr(sqlite.time, "sleep", waits.append)
    with pytest.raises(FileError, match="database is locked"):
        driver.save(sample_trial(1))
    stranger.close()
    assert len(waits) == 100  # 600 s of one second each and five in SQLite

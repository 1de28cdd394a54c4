"""Each safeguard of the files is there: these tests fail where one is taken out."""

import os
import sqlite3
import stat

import pytest

from nasbot.storage import Run, RunState, SqliteStorage, _sqlite_file, post_request, sqlite
from nasbot.storage._lock import lock_path
from nasbot.testing.storage_conformance import SETTINGS


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "study.sqlite"


def make(path):
    storage = SqliteStorage(path)
    storage.create(SETTINGS)
    return storage


@pytest.mark.parametrize("read_only", [True, False])
def test_nothing_in_a_file_is_trusted(path, read_only):
    make(path).close()
    storage = SqliteStorage(path, read_only=read_only)
    db = storage._db
    assert db.execute("PRAGMA trusted_schema").fetchone() == (0,)
    assert db.execute("PRAGMA cell_size_check").fetchone() == (1,)
    with pytest.raises(sqlite3.DataError, match="too big"):
        db.execute(f"SELECT zeroblob({_sqlite_file.MAX_CELL_BYTES + 1})")
    storage.close()


def test_a_request_is_on_the_disk_when_it_is_acknowledged(path, monkeypatch):
    make(path).close()
    statements, original = [], _sqlite_file.connected

    def traced(*arguments):
        db = original(*arguments)
        db.set_trace_callback(statements.append)
        return db

    monkeypatch.setattr(_sqlite_file, "connected", traced)
    post_request(path, "pause")
    assert statements.index("PRAGMA synchronous = FULL") < statements.index("BEGIN IMMEDIATE")


def test_a_new_file_is_synced_in_its_folder(path, monkeypatch):
    synced, original = [], os.fsync

    def fsync(descriptor):
        state = os.fstat(descriptor)
        if stat.S_ISDIR(state.st_mode):
            synced.append(state.st_ino)
        original(descriptor)

    monkeypatch.setattr(sqlite.os, "fsync", fsync)
    make(path).close()
    assert path.parent.stat().st_ino in synced
    assert path.parent.parent.stat().st_ino in synced  # the folder was made, too


def test_an_sqlite_without_the_fix_of_its_log_is_named():
    assert "SQLite 3.40.1 is older" in _sqlite_file.sqlite_caution((3, 40, 1))
    assert _sqlite_file.sqlite_caution((3, 51, 3)) == ""


def test_a_run_that_died_ended_with_its_last_sign_of_life(path):
    driver = make(path)
    driver.save_run(Run(number=0, begun=50.0))
    driver._lock.rest()
    driver.close()  # without a word about the run
    os.utime(lock_path(path), (100.0, 100.0))
    driver = SqliteStorage(path)
    (run,) = driver.runs()
    assert (run.state, run.ended) == (RunState.ENDED, 100.0)
    driver.close()

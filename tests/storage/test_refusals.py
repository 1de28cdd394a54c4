"""What is refused or given up, in the words that a person reads; and what is kept of it."""

import gc
import inspect
import os
import shutil
import sqlite3
import threading
import weakref
from contextlib import closing
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from nasbot.errors import FileError, OptionError, StorageError, StudyError
from nasbot.storage import (
    Run,
    SqliteStorage,
    _lock,
    _sqlite_file,
    examine,
    integrity,
    open_storage,
    post_request,
    repair,
)
from nasbot.storage._lock import DriverLock
from nasbot.storage._rows import _forecast_of, _origin_of
from nasbot.storage.postgres import connecting
from nasbot.storage.postgres.storage import PostgresStorage, _Copy, packed, unpacked
from nasbot.storage.records import signed
from nasbot.testing.storage_conformance import SETTINGS, sample_trial
from nasbot.trial import Direction, Forecast, Point, Provenance, Scored
from tests.storage.make_golden import FOLDER


@pytest.fixture
def path(tmp_path):
    """A study of two trials, the first completed with a curve; nobody drives it."""
    storage = SqliteStorage(tmp_path / "study.sqlite")
    storage.create(SETTINGS, [sample_trial(0), sample_trial(1)])
    running = sample_trial(0).begun(1.0).with_points([Point(0, 0.5)])
    storage.save(running)
    storage.save(running.ended(Scored(0.75), at=2.0, rank=0))
    storage.close()
    return tmp_path / "study.sqlite"


def execute(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


# -- limits ------------------------------------------------------------------------------------------------------------

# What is refused, kept or shown depends on these: whoever chooses another changes it here too, and says why.
LIMITS = {
    "_lock": {"MAX_HOLDER_BYTES": 1000, "TRIES": 10},
    "_pages": {
        "FILE_HEADER": 100,
        "LOG_HEADER": 32,
        "FRAME_HEADER": 24,
        "LEAF": 13,
        "INTEGER_BYTES": {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8},
        "MAX_PAYLOAD": 64_000_000,
    },
    "_rows": {"LATEST": 1e15, "N_OLD": 15},
    "_schema": {"APPLICATION_ID": 0x4E415342, "WITH_RUNS": 2, "WITH_CANDIDATES": 3},
    "_sqlite_file": {"MAX_CELL_BYTES": 64_000_000, "MIN_STEPS": 200_000, "STEPS_PER_BYTE": 20, "STEPS_PER_CALL": 1000},
    "integrity": {
        "SHOWN_PROBLEMS": 20,
        "OLD_REALS": (2, 10, 11),
        "TRIAL_REALS": (2, 10, 11, 15),
        "RUN_REALS": (2, 3),
    },
    "postgres.tables": {"VERSION": 1, "MAX_CELL_BYTES": 64_000_000, "MAKING": 0x6E617362},
}


@pytest.mark.parametrize("module", LIMITS)
def test_limits_that_somebody_chose(module):
    found = import_module(f"nasbot.storage.{module}")
    assert {name: getattr(found, name) for name in LIMITS[module]} == LIMITS[module]


DEFAULTS = {
    open_storage: {"vocabulary": None, "read_only": False, "shared": False},
    SqliteStorage: {"read_only": False, "patience": 600.0},
    PostgresStorage: {"read_only": False, "shared": False, "patience": 600.0, "grace": 10.0, "silence": 60.0},
    SqliteStorage.lines: {"since": 0},
    PostgresStorage._write: {"releases": False, "is_first": False},
    _Copy: {"version": -1},
    _sqlite_file.check_file: {"any_content": False},
    integrity._Rows._collect: {"key": 0},
}


def test_what_is_meant_where_nothing_is_said():
    for function, defaults in DEFAULTS.items():
        said = inspect.signature(function).parameters
        assert {name: said[name].default for name in defaults} == defaults, function


# -- files of SQLite ---------------------------------------------------------------------------------------------------


def test_points_of_a_trial_that_is_not_there(path):
    execute(path, "INSERT INTO points VALUES (7, 0, 0, 0.0, 0)")
    with pytest.raises(StorageError, match=r"there are points of a curve of trial 7, which is not there$"):
        SqliteStorage(path, read_only=True).history()


def test_an_outcome_that_a_reader_knew_is_gone(path):
    reader = SqliteStorage(path, read_only=True)
    assert len(reader.history().finished) == 1
    execute(path, "DELETE FROM points", "DELETE FROM trials WHERE number = 0")
    with pytest.raises(StorageError, match=r"trials are missing: 1 are recorded, 2 were read$"):
        reader.history()
    reader.close()


def test_a_first_glance_looks_at_no_checksum(path):
    execute(path, "UPDATE trials SET value = 9.0 WHERE number = 0")
    reader = SqliteStorage(path, read_only=True)
    assert [line.value for line in reader.quick_lines()] == [9.0, None]
    with pytest.raises(StorageError, match="trial 0 is damaged"):
        reader.lines()
    reader.close()


def test_a_file_that_is_gone_without_room_for_a_copy(path, monkeypatch):
    driver = SqliteStorage(path)
    for file in path.parent.glob("study.sqlite*"):
        file.unlink()

    def full(*_):
        raise sqlite3.OperationalError("disk is full")

    monkeypatch.setattr(_sqlite_file, "connected", full)
    with pytest.raises(StudyError, match=r"driven; no copy of it could be saved \(disk is full\)$"):
        driver.save(sample_trial(1).begun(3.0))
    driver.close()


def test_a_holder_that_cannot_be_read_has_no_name(path, monkeypatch):
    lock = DriverLock(path)
    assert str(os.getpid()) in lock._holder()

    def gone(*_):
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr(os, "lseek", gone)
        assert lock._holder() == signed("")
    lock.release()


def n_open():
    gc.collect()  # what other tests left behind
    return len([*Path("/proc/self/fd").iterdir()])


def test_a_study_leaves_nothing_open(tmp_path):
    before = n_open()
    storage = SqliteStorage(tmp_path / "new" / "study.sqlite")
    storage.create(SETTINGS, [sample_trial(0)])
    post_request(storage.path, "pause")
    storage.save(sample_trial(0).begun(1.0))
    storage.close()
    reader = SqliteStorage(storage.path, read_only=True)
    assert len(reader.history()) == 1
    reader.close()
    assert examine(storage.path).is_intact
    assert repair(storage.path, tmp_path / "copy.sqlite").lost == ()
    assert n_open() == before


@pytest.mark.parametrize("has_flock", [True, False])
def test_a_lock_that_is_not_got_leaves_nothing_open(path, monkeypatch, has_flock):
    def broken(*_):
        raise OSError(5, "Input/output error")

    if not has_flock:
        monkeypatch.setattr("nasbot.storage._exclusive.fcntl", None)
    before = n_open()
    lock = DriverLock(path)
    held = n_open()
    with pytest.raises(StudyError, match="is being driven"):
        DriverLock(path)
    if has_flock:  # without it SQLite keeps a file open that it has locked itself
        assert n_open() == held > before
    lock.release()
    monkeypatch.setattr(_lock, "_tried", broken)
    with pytest.raises(FileError, match=r"cannot lock .*study.sqlite.lock: Input/output error$"):
        DriverLock(path)
    assert n_open() == before


def test_signs_of_life_begin_again_after_a_rest(path, monkeypatch):
    monkeypatch.setattr(_lock, "BEAT_SECONDS", 0.001)
    lock, beats = DriverLock(path), threading.Semaphore(0)
    monkeypatch.setattr(lock, "_touch", beats.release)
    for _ in range(2):
        lock.beat()
        assert all(beats.acquire(timeout=60) for _ in range(3))  # the first now, others from the thread
        thread = lock._beating
        lock.rest()
        assert not thread.is_alive()
        while beats.acquire(blocking=False):
            pass
    lock.release()


def test_settings_that_are_damaged_are_not_migrated(tmp_path):
    path = shutil.copy(FOLDER / "version-1.sqlite", tmp_path)
    execute(path, "UPDATE settings SET crc = crc + 1")
    with pytest.raises(StorageError, match=r"the settings are damaged: their checksum does not fit$"):
        SqliteStorage(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


@pytest.mark.parametrize(
    ("code", "is_damage"),
    [
        (sqlite3.SQLITE_CORRUPT, True),
        (sqlite3.SQLITE_CORRUPT_INDEX, True),
        (sqlite3.SQLITE_INTERRUPT, True),  # all steps are taken; of Ctrl-C, test_cycles.py
        (sqlite3.SQLITE_BUSY, False),
        (sqlite3.SQLITE_IOERR_READ, False),
        (None, True),  # a text that is not UTF-8
    ],
)
def test_what_is_damage_and_what_only_cannot_be_read_now(path, monkeypatch, code, is_damage):
    error = sqlite3.OperationalError("as SQLite says")
    if code is not None:
        error.sqlite_errorcode = code

    def broken(*_, **__):
        _sqlite_file._spent.at_last = True
        raise error

    monkeypatch.setattr(integrity._schema, "prepare", broken)
    if is_damage:
        assert examine(path).problems == ("SQLite cannot read on: as SQLite says",)
    else:
        with pytest.raises(FileError, match=r"study.sqlite: as SQLite says$"):
            examine(path)


def test_what_is_said_of_a_run_is_believed_where_it_is_of_the_right_type():
    said = {"pid": 7, "workers": 2, "host": "here", "command": "nasbot", "plan": "slowly", "ending": "finished"}
    run = Run(number=0, begun=1.0, record=said)
    assert {name: getattr(run, name) for name in said} == said
    for odd in ({}, dict.fromkeys(said), {name: [value] for name, value in said.items()}, dict.fromkeys(said, True)):
        assert {getattr(Run(number=0, begun=1.0, record=odd), name) for name in said} == {None}


# -- repairing ---------------------------------------------------------------------------------------------------------


class Damaged:
    """Ten rows, of which a page in the middle is damaged: from either end some can be read, one by one all but one."""

    def __init__(self, table):
        self.table, self.asked = table, []

    def execute(self, sql):
        self.asked.append(sql)
        if "WHERE" in sql:
            number = int(sql.split()[-1])
            if number == 5:
                raise sqlite3.DatabaseError("malformed")
            yield number, f"alone {number}"
            return
        for number in (9, 8, 7) if sql.endswith("DESC") else (0, 1, 2):
            yield number, f"row {number}"
        raise sqlite3.DatabaseError("malformed")


def test_what_can_be_read_of_a_table_from_both_ends_and_one_by_one(tmp_path):
    rows = integrity._Rows(tmp_path / "none.sqlite")
    rows._db = db = Damaged("trials")
    expected = {n: f"row {n}" for n in (0, 1, 2, 9, 8, 7)} | {n: f"alone {n}" for n in (3, 4, 6)}
    assert dict(rows.of("trials", "number, text")) == expected
    assert rows.cut == {"trials"}
    assert len(db.asked) == 2 + 4  # only what neither end gave is asked for alone
    assert all("SELECT number, text FROM trials" in sql for sql in db.asked)


def test_a_trial_that_is_damaged_and_the_last_is_named(path, tmp_path):
    execute(path, "UPDATE trials SET attempts = 5 WHERE number = 1")
    found = repair(path, tmp_path / "copy.sqlite")
    assert (found.n_trials, found.n_outcomes, found.lost) == (1, 1, ("trial 1",))


class Circle:
    """Trials that come again, as where pages point at each other."""

    def execute(self, sql, *_):
        rows = [(number, *[None] * 5, None) for number in (0, 1, 1, 2)] if "FROM trials ORDER" in sql else []
        return rows or SimpleNamespace(fetchall=list)


def test_trials_that_come_again_are_named_once(monkeypatch):
    monkeypatch.setattr(integrity, "_whole_trial", lambda *_: None)
    problems = []
    assert integrity._examine_trials(Circle(), 3, None, problems) == 2
    assert problems == ["trial 1 comes again after trial 1"]


def test_a_file_that_is_no_database_is_not_asked(tmp_path):
    (tmp_path / "none.sqlite").write_bytes(b"no database at all" * 100)
    assert integrity._Rows(tmp_path / "none.sqlite")._db is None


def test_nothing_is_asked_for_alone_where_neither_end_can_be_read(tmp_path, monkeypatch):
    rows = integrity._Rows(tmp_path / "none.sqlite")
    asked = []
    monkeypatch.setattr(rows, "_collect", lambda found, sql: asked.append(sql))
    assert rows.of("trials", "number, text") == []
    assert len(asked) == 2


def test_a_table_that_is_whole_is_read_once(path):
    rows = integrity._Rows(path)
    assert [row[0] for row in rows.of("trials", "number, state")] == [0, 1]
    assert rows.cut == set()
    points, is_whole = rows.points(0)
    assert ([row[:3] for row in points], is_whole) == ([(0, 0, 0)], True)
    assert rows.points(1) == ([], True)
    rows.close()
    assert rows.of("trials", "number, state") == []
    assert rows.cut == {"trials"}


# -- notes of older versions -------------------------------------------------------------------------------------------


def test_notes_become_what_a_trial_comes_from():
    notes = {
        "searcher": "NASBOT",
        "parents": [1, 2],
        "modifiers": ["skip"],
        "changes": ["a skip"],
        "retry_of": 3,
        "seconds": {"fitting": 1.0},
        "deciding": 2.0,
        "mine": 1,
    }
    seconds = {"fitting": 1.0, "deciding": 2.0}
    origin = Provenance(
        searcher="NASBOT", parents=(1, 2), modifiers=("skip",), changes=("a skip",), of_trial=3, seconds=seconds
    )
    assert _origin_of(notes) == origin
    assert notes == {"mine": 1}
    forked = {"forked_from": {"study": "old", "trial": 4}}
    assert _origin_of(forked) == Provenance(of_study="old", of_trial=4)
    assert forked == {}
    for odd in ({"searcher": 5, "deciding": 1.0}, {"parents": "no"}, {"seconds": {"fitting": "long"}}):
        kept = dict(odd)
        assert _origin_of(odd) == Provenance()
        assert odd == kept  # what is not as we wrote it stays a note
    strange = {"forked_from": {"study": "old"}}
    assert _origin_of(strange) == Provenance()


@pytest.mark.parametrize(
    ("direction", "ends"), [(Direction.MAXIMISE, (1.0, 0.5, 3.0)), (Direction.MINIMISE, (-1.0, -3.0, -0.5))]
)
def test_notes_become_what_was_expected(direction, ends):
    notes = {"mean": 0.5, "sd": 0.25, "predicted": {"median": 1.0, "lower": 0.5, "upper": 3.0}, "mine": 1}
    found = _forecast_of(notes, direction)
    assert (found.mean, found.sd, found.median, found.lower, found.upper) == (0.5, 0.25, *ends)
    assert notes == {"mine": 1}
    for odd in ({"mean": "high"}, {"predicted": {"median": "x", "lower": 0.5, "upper": 3.0}, "mean": 1.0}):
        kept = dict(odd)
        assert _forecast_of(odd, direction) == Forecast()
        assert odd == kept
    assert _forecast_of({"predicted": {"median": 1.0}, "mean": 1.0}, direction) == Forecast(mean=1.0)


# -- databases of PostgreSQL -------------------------------------------------------------------------------------------


def test_an_address_that_is_none_is_shown_without_its_password():
    with pytest.raises(OptionError, match="is not an address that PostgreSQL understands; expected") as raised:
        PostgresStorage("postgresql://me:secret@host:1/db?nonsense=1#study")
    assert "secret" not in str(raised.value)


def test_studies_that_are_not_there(database):
    storage = PostgresStorage(f"{database}#one")
    with pytest.raises(FileError, match=r"there is no such study in this database$"):
        PostgresStorage(f"{database}#another", read_only=True)
    storage.create(SETTINGS, [sample_trial(0)])
    storage.close()
    storage = PostgresStorage(f"{database}#one")
    storage._db.execute("DELETE FROM nasbot.studies")
    with pytest.raises(StorageError, match=r"the study is not there any more$"):
        storage.save(sample_trial(0).begun(1.0))
    storage.close()


@pytest.mark.parametrize("ending", [None, "finished"])
def test_a_driver_that_dies_without_an_open_run_leaves_no_run_that_died(database, ending):
    address = f"{database}#one"
    first = PostgresStorage(address, grace=0.5)
    first.create(SETTINGS, [sample_trial(0)])
    if ending is not None:
        run = Run(number=0, begun=1.0)
        first.save_run(run)
        first.save_run(run.over(ending, at=2.0))
    first._heartbeat.stop()
    first._disconnect()
    second = PostgresStorage(address, grace=0.5)
    assert [(run.ending, run.ended) for run in second.runs()] == [(ending, 2.0)] * (ending is not None)
    second.close()
    first.close()


def test_texts_that_are_not_what_was_packed():
    row = (7, "a\0b", None, "kept")
    assert unpacked(packed(row, 1, 2), 1, 2) == row
    assert packed(row, 1, 2) == (7, '"a\\u0000b"', None, "kept")
    for text in ("no JSON", "5", "[" * 100_000):
        with pytest.raises(StorageError, match=r"^a text in row 7 is damaged$"):
            unpacked((7, text), 1)


def test_a_fork_lets_go_of_its_parents_connections(monkeypatch):
    class Connection:
        def __init__(self, number):
            self.number = number

        def fileno(self):
            return self.number

    ours, theirs = os.pipe()
    connections = [Connection(10**6), Connection(ours)]  # one is closed already
    monkeypatch.setattr(connecting, "_open", weakref.WeakSet(connections))
    connecting._let_go()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(ours)
    os.close(theirs)

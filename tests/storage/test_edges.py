"""Limits, defaults and last cases of records and files, one by one."""

import json
import os
import shutil
import socket
import sqlite3
import struct
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from nasbot.errors import FileError, OptionError, StorageError, StudyError
from nasbot.execution._frames import MAX_FRAME
from nasbot.storage import (
    Request,
    RequestKind,
    Run,
    RunState,
    SqliteStorage,
    Tally,
    _pages,
    _sqlite_file,
    integrity,
    post_request,
)
from nasbot.storage import records as records_module
from nasbot.storage._lock import DriverLock, presence
from nasbot.storage._pages import _cell, _payload
from nasbot.storage._rows import (
    COLUMNS,
    OLD_COLUMNS,
    RUN_COLUMNS,
    _is_intact,
    _real,
    crc,
    decoded,
    request_of,
    request_row,
    run_of,
    run_row,
    runs_of,
    trial_of,
    trial_row,
)
from nasbot.storage._sqlite_file import check_file
from nasbot.storage.addresses import Address
from nasbot.storage.catching_up import caught_up
from nasbot.storage.integrity import _moved
from nasbot.storage.opening import is_begun, studies_in
from nasbot.storage.paths import study_files, study_path
from nasbot.storage.postgres import storage as postgres_storage
from nasbot.storage.postgres import tables as postgres_tables
from nasbot.storage.records import signature, signed, who
from nasbot.storage.tally import KINDS, Line, kind_of, spent_in_words
from nasbot.testing.storage_conformance import SETTINGS, every_kind_of_trial, sample_trial
from nasbot.trial import Direction, History, Provenance, Scored, Stopped

STOPPED = Stopped(step=2, value=1.0, bar=2.0, expected=1.5, share=0.5, place=3, among=4)


@pytest.fixture
def path(tmp_path):
    """A study of four trials: 1 was completed first, then 0; 2 was stopped, 3 waits."""
    storage = SqliteStorage(tmp_path / "study.sqlite")
    storage.create(SETTINGS, [sample_trial(n).begun(1.0) for n in range(3)] + [sample_trial(3)])
    for rank, (n, outcome) in enumerate([(1, Scored(1.5)), (0, Scored(0.5)), (2, STOPPED)]):
        storage.save(sample_trial(n).begun(1.0).ended(outcome, at=2.0 + n, rank=rank))
    storage.close()
    return tmp_path / "study.sqlite"


@pytest.fixture(params=["reader", "driver"])
def storage(request, path):
    opened = SqliteStorage(path, read_only=request.param == "reader")
    yield opened
    opened.close()


def test_trials_in_numbers(storage):
    history = storage.history()
    lines = [Line.of(trial) for trial in history]
    assert storage.n_trials() == 4
    assert storage.lines() == storage.lines(since=0) == lines
    assert storage.quick_lines() == lines
    assert [[line.number for line in storage.lines(since=n)] for n in (1, 2, 3)] == [[0, 2, 3], [2, 3], [3]]
    assert storage.lines(since=2) == lines[2:]
    assert storage.some([2, 0]) == [history[2], history[0]]
    assert storage.some([]) == []
    tally, expected = storage.tally(), Tally.of_history(history)
    assert (tally.states, tally.spent) == (expected.states, expected.spent)


def test_a_trial_that_is_not_there(path):
    reader = SqliteStorage(path, read_only=True)
    with pytest.raises(StorageError, match="trial 9 is missing"):
        reader.some([9])
    reader.close()


def test_what_was_stopped_comes_back(path):
    reader = SqliteStorage(path, read_only=True)
    assert reader.history()[2].outcome == STOPPED
    reader.close()


def test_rows_come_back():
    for trial in every_kind_of_trial():
        bare = trial_of(trial_row(trial), (), None)
        assert (bare.number, bare.outcome, bare.rank) == (trial.number, trial.outcome, trial.rank)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_cannot_be_stored(number):
    with pytest.raises(StorageError, match="times and values must be finite"):
        _real(number)
    assert (_real(None), str(_real(-0.0)), _real(3)) == (None, "0.0", 3.0)


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": NaN}', "3"])
def test_texts_that_are_no_object(text):
    with pytest.raises(StorageError, match="its notes, details or settings are not"):
        decoded("the settings", text)
    assert decoded("x", '{"a": 1}') == {"a": 1}


def test_rows_with_bytes_are_not_intact():
    assert not _is_intact((1, b"x", 3))


def run(number=0, **options):
    return Run(number=number, begun=5.0, **options)


def test_runs_that_cannot_be():
    with pytest.raises(StudyError, match="a run that has ended says when"):
        run(state=RunState.ENDED)
    with pytest.raises(StudyError, match="a run that has ended says when"):
        run(ended=6.0)
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(StudyError, match="expected finite times"):
            Run(number=0, begun=wrong)
    ended = run().over("finished", at=7.0)
    assert (ended.state, ended.ended, ended.ending) == (RunState.ENDED, 7.0, "finished")


def test_runs_come_back_in_order():
    rows = [run_row(run(n)) for n in range(3)]
    assert [each.number for each in runs_of(rows)] == [0, 1, 2]
    with pytest.raises(StorageError, match="records of runs are missing"):
        runs_of(rows[1:])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": RequestKind.CANCEL}, "cancel: expected a trial number"),
        ({"kind": RequestKind.STOP, "trial": 1}, "stop: expected no trial number"),
        ({"kind": RequestKind.STOP, "answer": "yes"}, "given together or not at all"),
        ({"kind": RequestKind.STOP, "answered": 1.0}, "given together or not at all"),
    ],
    ids=str,
)
def test_requests_that_cannot_be(options, words):
    with pytest.raises(StudyError, match=words):
        Request(number=0, made=1.0, **options)


def test_who_asks_and_who_drives(monkeypatch):
    assert who().endswith(f" on {socket.gethostname()}, process {os.getpid()}")
    monkeypatch.setattr(records_module.getpass, "getuser", lambda: (_ for _ in ()).throw(KeyError("none")))
    assert who().startswith(f"{os.getuid()} on ")
    assert signed(signature()).startswith(f"process {os.getpid()} on {socket.gethostname()} since 2")
    long = json.dumps({"pid": 3, "host": "h" * 200, "since": "s" * 200})
    assert signed(long) == f"process 3 on {'h' * 100} since {'s' * 40}"
    for forged in ("", "{}", "[]", '{"pid": "x", "host": "", "since": ""}', "[" * 100_000):
        assert signed(forged) == "another process (which has not signed the lock yet)"


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a" * 101, "ä"])
def test_names_of_no_study(name):
    with pytest.raises(OptionError, match="study: a name has 1 to 100 letters"):
        study_path(name)


def test_names_and_files_of_studies(tmp_path, monkeypatch):
    monkeypatch.setenv("NASBOT_STUDIES", str(tmp_path))
    assert study_path("a" * 100) == tmp_path / f"{'a' * 100}.sqlite"
    assert str(study_path("x.sqlite")) == "x.sqlite"
    assert str(study_path("./x")) == "x"
    for wrong, words in (("a/\0", "NUL"), ("postgresql://host/db#x", "needs a study in a file")):
        with pytest.raises(OptionError, match=words):
            study_path(wrong)
    assert not is_begun("x")
    for name in ("b.sqlite", "a.sqlite", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "d.sqlite").mkdir()
    assert study_files(tmp_path) == studies_in(str(tmp_path)) == [tmp_path / "a.sqlite", tmp_path / "b.sqlite"]
    assert is_begun("b")
    assert study_files(tmp_path / "none") == study_files(tmp_path / "c.txt") == []
    with pytest.raises(FileError, match="cannot list"):
        study_files(tmp_path / ("n" * 300))
    monkeypatch.delenv("NASBOT_STUDIES")
    assert str(study_path("x")) == "studies/x.sqlite"


def test_links_and_folders_are_no_studies(tmp_path):
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "nothing")
    with pytest.raises(FileError, match="it is a symbolic link to what does not exist"):
        SqliteStorage(tmp_path / "link.sqlite")
    (tmp_path / "folder.sqlite").mkdir()
    with pytest.raises(FileError):
        SqliteStorage(tmp_path / "folder.sqlite")


def test_what_the_time_was_spent_on(path):
    reader = SqliteStorage(path, read_only=True)
    assert [kind_of(line) for line in reader.lines()] == [(1, sample_trial(n).fidelity) for n in (0, 1)] + [
        (2, 0.0),
        (4, 0.0),
    ]
    tally = reader.tally()
    reader.close()
    said = spent_in_words(tally.spent, lambda seconds: f"{seconds:g} s")
    assert said.count(" s (") == len(tally.spent)
    assert "stopped early 3 s (1)" in said
    assert KINDS[2] == "stopped early"
    assert Direction.MAXIMISE.turned(-0.0) == 0.0


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({"of_trial": 4}, {"of_trial": 1}),
        ({"of_trial": 3}, {"of_trial": None}),  # which is lost
        ({"of_trial": 4, "of_study": "another"}, {"of_trial": 4, "of_study": "another"}),  # numbers of that study
        ({"of_study": "another"}, {"of_study": "another"}),
        ({"parents": (4, 3, 2)}, {"parents": (1, 0)}),
        ({}, {}),
    ],
    ids=str,
)
def test_repaired_trials_are_numbered_anew_with_what_they_come_from(origin, expected):
    trial = replace(
        sample_trial(5).begun(1.0).ended(Scored(1.0), at=2.0, rank=4),
        origin=Provenance(searcher="a searcher", **origin),
        promoted_from=4,
        proposed_after=3,
        notes={},
    )
    moved = _moved(trial, {2: 0, 4: 1, 5: 2}, [0, 2, 4])
    assert moved.origin == Provenance(searcher="a searcher", **expected)
    assert (moved.number, moved.promoted_from, moved.rank, moved.proposed_after) == (2, 1, 2, 2)
    assert moved.notes == {"number_before_repair": 5}
    lost = _moved(replace(trial, promoted_from=3), {5: 5}, [0, 2, 4])
    assert (lost.promoted_from, lost.notes) == (None, {})


# -- what nasbot did not write, though its checksums are right ---------------------------------------------------------


def forged(row, **cells):
    """The row of a trial with other cells, and the checksum that they have."""
    names = COLUMNS.replace("\n", " ").replace(" ", "").split(",")
    changed = tuple(cells.get(name, cell) for name, cell in zip(names, row, strict=True))[:-1]
    return (*changed, crc(changed))


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"promoted_from": 1}, "trial 1: promoted from trial 1, which is not before it"),
        ({"promoted_from": 7}, "promoted from trial 7"),
        ({"fidelity": "half"}, "trial 1 is not a trial that nasbot wrote"),
        ({"started": 1e15}, "expected a time in seconds since 1970, got 1"),
        ({"finished": -1e15}, "expected a time in seconds since 1970, got -1"),
        ({"started": None}, "trial 1: recorded as running, but its record is that of a trial that is waiting"),
        ({"params": '{"rate": true}'}, "param rate: expected a number or a text, got 'True'"),
        ({"params": '{"rate": [1]}'}, "param rate: expected a number or a text"),
    ],
    ids=str,
)
def test_trials_that_nobody_wrote(cells, words):
    row = trial_row(sample_trial(1).begun(1.0))
    assert trial_of(forged(row), (), None) == sample_trial(1).begun(1.0)
    assert trial_of(forged(row, started=9e14, promoted_from=0), (), None).started == 9e14
    with pytest.raises(StorageError, match=words):
        trial_of(forged(row, **cells), (), None)


def test_runs_and_requests_that_nobody_wrote():
    for row, place, cell, read, words in (
        (run_row(run()), 1, "lost", run_of, "run 0 is not a run that nasbot wrote"),
        (run_row(run()), 2, "long ago", run_of, "run 0 is not a run that nasbot wrote"),
        (
            request_row(Request(number=0, kind=RequestKind.STOP, made=1.0)),
            *(1, "explode", request_of, "request 0 is not a request that nasbot wrote"),
        ),
    ):
        read(row)
        cells = (*row[:place], cell, *row[place + 1 : -1])
        with pytest.raises(StorageError, match=words):
            read((*cells, crc(cells)))


def test_what_was_recorded_must_be_able_to_follow():
    begun = sample_trial(0).begun(1.0)
    done = begun.ended(Scored(1.0), at=2.0, rank=0)
    assert caught_up(History((begun,)), [done])[0] == done
    with pytest.raises(StorageError, match="what was recorded is not what can follow"):
        caught_up(History((done,)), [begun.ended(Scored(2.0), at=2.0, rank=0)])


def test_cells_end_where_their_row_does():
    """What a repair reads from pages that SQLite refuses."""
    whole = struct.pack(">d", 1.5)
    assert _cell(whole, 0, 7) == (1.5, 8)
    assert [_cell(b"\xff\x01", 0, kind) for kind in (0, 8, 9, 1, 2)] == [
        *((None, 0), (0, 0), (1, 0)),
        *((-1, 1), (-255, 2)),
    ]
    assert _cell(b"abc", 1, 13 + 2 * 2) == ("bc", 3)
    assert _cell(b"abc", 1, 12 + 2 * 2) == (b"bc", 3)
    for kind in (3, 13 + 2 * 3):
        with pytest.raises(IndexError):
            _cell(b"ab", 0, kind)
    for kind in (10, 11):
        with pytest.raises(ValueError, match="no such type"):
            _cell(b"ab", 0, kind)
    assert _cell(b"", 0, 12) == (b"", 0)


def test_what_overflows_a_page_is_taken_from_the_next_ones():
    size, length = 512, 1200
    smallest = (size - 12) * 32 // 255 - 23
    local = smallest + (length - smallest) % (size - 4)
    local = smallest if local > size - 35 else local
    content = bytes(i % 251 for i in range(length))
    rest = content[local:]
    pages = {
        2: (3).to_bytes(4, "big") + rest[: size - 4],
        3: (4).to_bytes(4, "big") + rest[size - 4 : 2 * (size - 4)].ljust(size - 4, b"x"),
        4: bytes(4) + rest[2 * (size - 4) :].ljust(size - 4, b"x"),
    }
    page = content[:local] + (2).to_bytes(4, "big") + b"y" * 100
    assert _payload(page, 0, length, pages, size) == content
    assert _payload(page, 0, 20, {}, size) == content[:20]
    with pytest.raises(ValueError, match="a page of its content is missing"):
        _payload(page, 0, length, {2: pages[2]}, size)
    with pytest.raises(ValueError, match="a page of its content is missing"):
        _payload(page, 0, length, {**pages, 3: pages[3][:-1]}, size)


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_study_without_requests_says_how_to_have_them(tmp_path):
    old = tmp_path / "old.sqlite"
    shutil.copy(Path(__file__).parent / "golden/version-1.sqlite", old)
    with pytest.raises(StorageError, match="which knows no requests; resume the study to migrate it"):
        post_request(old, RequestKind.STOP)


def test_pipes_and_journals_are_refused_before_sqlite_sees_them(path):
    pipe = path.with_name("pipe.sqlite")
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="not a regular file"):
        check_file(pipe, must_exist=True)
    path.with_name("study.sqlite-journal").write_bytes(b"")
    with pytest.raises(StorageError, match="a rollback journal, which nasbot never makes"):
        check_file(path, must_exist=True)


@pytest.mark.parametrize("has_flock", [True, False])
def test_one_driver_at_a_time_with_or_without_flock(path, monkeypatch, has_flock):
    if not has_flock:
        monkeypatch.setattr("nasbot.storage._exclusive.fcntl", None)
    before = set(path.parent.iterdir())
    assert not presence(path).is_held
    assert set(path.parent.iterdir()) == before  # looking makes no file
    lock = DriverLock(path)
    assert presence(path).is_held
    with pytest.raises(StudyError, match=rf"is being driven by .*{os.getpid()}.*; a study has one driver at a time"):
        DriverLock(path)
    lock.release()
    lock.release()
    assert not presence(path).is_held
    DriverLock(path).release()


def test_a_place_without_locks_is_named(path, monkeypatch):
    monkeypatch.setattr("nasbot.storage._exclusive.fcntl", None)
    path.with_name("study.sqlite.lock-held").mkdir()
    with pytest.raises(FileError, match=r"cannot lock .*study.sqlite.lock: unable to open"):
        DriverLock(path)
    assert presence(path).is_held  # what cannot be asked for is somebody's


def test_a_lock_that_cannot_be_signed_is_given_back(path, monkeypatch):
    def full(file, content):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(FileError, match=r"cannot write .*study.sqlite.lock: No space left on device"):
            DriverLock(path)
    DriverLock(path).release()


def test_an_address_is_shown_without_its_password_and_passed_on_with_it():
    address = Address("digits", "postgresql://me:secret@host/db")
    assert "secret" not in f"{address} {address!r}"
    assert (address.stem, address.whole) == ("digits", "postgresql://me:secret@host/db#digits")


# -- repairs -----------------------------------------------------------------------------------------------------------


def test_columns_of_real_numbers_are_those_of_the_tables(path):
    """SQLite keeps a whole number in such a column as an integer, whose checksum would be another."""
    golden = Path(__file__).parent / "golden/version-2.sqlite"
    for file, table, columns, reals in (
        (path, "trials", COLUMNS, integrity.TRIAL_REALS),
        (path, "runs", RUN_COLUMNS, integrity.RUN_REALS),
        (golden, "trials", OLD_COLUMNS, integrity.OLD_REALS),
    ):
        with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as db:
            types = {name: kind for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table})")}
        names = columns.replace("\n", " ").replace(" ", "").split(",")
        assert tuple(i for i, name in enumerate(names) if types[name] == "REAL") == reals


def test_rows_from_pages_are_as_sqlite_would_give_them():
    done = sample_trial(1).begun(1.0).ended(Scored(2.0), at=3.0, rank=0)
    row = trial_row(done)
    on_page = [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in row[1:]]
    (again,) = integrity._raw([(1, None, *on_page), (2, None, "of another table")], len(row), integrity.TRIAL_REALS)
    assert again == row
    assert trial_of(again, (), None) == done


def test_twenty_trials_are_named_and_the_others_counted():
    assert integrity._trials([3]) == "trial 3"
    assert integrity._trials(range(20)) == "trials " + ", ".join(map(str, range(20)))
    assert integrity._trials(range(22)).endswith(", 19 and 2 more")


def test_every_storage_takes_texts_of_the_same_length():
    assert _sqlite_file.MAX_CELL_BYTES == _pages.MAX_PAYLOAD == postgres_tables.MAX_CELL_BYTES
    assert _sqlite_file.MAX_CELL_BYTES >= 4 * MAX_FRAME  # any result that an executor takes


def test_the_studies_of_a_database(monkeypatch):
    """Without a server: what is made of its answers."""
    database = Address("any", "postgresql://host/db")
    monkeypatch.setattr(postgres_storage, "connected", lambda address: closing(SimpleNamespace(close=lambda: None)))
    monkeypatch.setattr(postgres_storage, "run", lambda db, sql: [("digits",), ("iris",)])
    monkeypatch.setattr(postgres_tables, "prepare", lambda db, *, may_write: None)
    assert postgres_storage.study_names(database) == ["digits", "iris"]
    assert studies_in(database.whole) == [Address(name, database.database) for name in ("digits", "iris")]

    def refuse(db, *, may_write):
        raise StorageError(words)

    monkeypatch.setattr(postgres_tables, "prepare", refuse)
    words = "no study was ever begun in it"
    assert postgres_storage.study_names(database) == []
    words = "written by a newer nasbot"
    with pytest.raises(StorageError, match=words):
        postgres_storage.study_names(database)


def test_a_request_leaves_what_is_no_study_as_it_is(tmp_path):
    """Also what its program has not yet moved from the log into the file: a connection that may write would move it."""
    theirs, copy = tmp_path / "theirs.sqlite", tmp_path / "copy.sqlite"
    with closing(sqlite3.connect(theirs, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE notes (text TEXT)")
        for end in ("", "-wal"):  # as after a power cut
            shutil.copy(f"{theirs}{end}", f"{copy}{end}")
    log = Path(f"{copy}-wal")
    before = copy.read_bytes(), log.read_bytes()
    with pytest.raises(StorageError, match="not a nasbot study"):
        post_request(copy, "pause")
    assert log.exists()
    assert (copy.read_bytes(), log.read_bytes()) == before

"""Files whose pages point at each other in circles: tables without end, told as damage and not waited for."""

import signal
import sqlite3
import struct
import time

import pytest

from nasbot.errors import FileError, StorageError
from nasbot.storage import SqliteStorage, _sqlite_file, examine, repair
from nasbot.storage._pages import rows_in
from nasbot.testing.storage_conformance import SETTINGS, sample_trial

PAGE, CELLS, LEVELS = 4096, 500, 15


def interior(child):
    """A page of a table whose 501 children are one and the same."""
    cells = b"".join(struct.pack(">IB", child, 1) for _ in range(CELLS))
    start = PAGE - len(cells)
    pointers = b"".join(struct.pack(">H", start + 5 * i) for i in range(CELLS))
    header = struct.pack(">BHHHBI", 5, 0, CELLS, start, 0, child)
    return (header + pointers).ljust(start, b"\0") + cells


def make_endless(path, table):
    """Replace the root of a table by levels of such pages, above the leaf that it was: 501 ** 15 rows in 100 kB."""
    db = sqlite3.connect(path)
    root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
    db.close()
    content = bytearray(path.read_bytes())
    n_pages = len(content) // PAGE
    leaf = content[(root - 1) * PAGE : root * PAGE]
    levels = [interior(n_pages + 2 + level) for level in range(LEVELS)]
    content[(root - 1) * PAGE : root * PAGE] = interior(n_pages + 1)
    content += b"".join(levels) + leaf
    content[28:32] = struct.pack(">I", len(content) // PAGE)
    path.write_bytes(content)


@pytest.fixture
def endless(tmp_path):
    path = tmp_path / "study.sqlite"
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(0)])
    storage.close()
    make_endless(path, "trials")
    return path


def read(path):
    reader = SqliteStorage(path, read_only=True)
    try:
        return reader.history()
    finally:
        reader.close()


@pytest.mark.parametrize("way", [read, SqliteStorage], ids=["read", "drive"])
def test_a_table_without_end_is_told_as_damage(endless, way):
    began = time.process_time()
    with pytest.raises(StorageError, match=r"more steps than its size allows|malformed"):
        way(endless)
    assert time.process_time() - began < 10


def test_it_is_examined_and_repaired_in_finite_time(endless, tmp_path):
    assert not examine(endless).is_intact
    repaired = repair(endless, tmp_path / "copy.sqlite")
    assert repaired.n_trials == 1


def test_a_payload_is_not_longer_than_its_file(endless):
    assert all(sum(len(cell) for cell in row if isinstance(cell, str)) < 10**6 for row in rows_in(endless.read_bytes()))


def test_an_honest_file_is_far_from_its_bound(tmp_path):
    path = tmp_path / "study.sqlite"
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(n) for n in range(300)])
    storage.close()
    db = _sqlite_file.connected(path, "mode=ro")
    db.execute("BEGIN")
    before = db._left
    db.execute("PRAGMA integrity_check").fetchall()
    db.execute("SELECT * FROM trials").fetchall()
    assert before - db._left < before / 4
    db.close()


# -- signals -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked_to_leave(tmp_path, monkeypatch):
    """A whole study and a way to have Ctrl-C come at the n-th step that SQLite takes in it."""
    path = tmp_path / "whole.sqlite"
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(number) for number in range(50)])
    storage.close()
    step, before = _sqlite_file._Bounded._step, signal.getsignal(signal.SIGINT)

    def at(n, handler=signal.default_int_handler):
        steps = iter(range(n + 1))

        def step_and_ask(connection):
            if next(steps, None) == n:
                signal.raise_signal(signal.SIGINT)
            return step(connection)

        signal.signal(signal.SIGINT, handler)
        monkeypatch.setattr(_sqlite_file, "STEPS_PER_CALL", 1)
        monkeypatch.setattr(_sqlite_file._Bounded, "_step", step_and_ask)
        return path

    yield at
    signal.signal(signal.SIGINT, before)


WAYS = {"read": read, "examine": examine, "repair": lambda path: repair(path, path.with_name("copy.sqlite"))}


@pytest.mark.parametrize("n", [400, 800])
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_while_a_file_is_read_is_ctrl_c_and_no_damage(asked_to_leave, way, n):
    path = asked_to_leave(n)
    with pytest.raises(KeyboardInterrupt):
        WAYS[way](path)
    assert not path.with_name("copy.sqlite").exists()


def test_a_signal_that_somebody_else_handles_is_no_damage_either(asked_to_leave):
    def raising(*_):
        raise LookupError

    with pytest.raises(FileError, match=r"whole\.sqlite: reading it was interrupted by a signal$"):
        read(asked_to_leave(400, raising))

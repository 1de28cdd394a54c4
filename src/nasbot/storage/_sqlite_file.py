"""A study's file before and below its storage: connections that trust nothing in it, and errors that name it."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nasbot._files import file_errors, unsafe
from nasbot._system import flags
from nasbot.errors import FileError, NasbotError, StorageError
from nasbot.storage import _schema

BUSY_SECONDS = 60.0  # for a writer that meets another; none holds the file for longer than one small write
NO_ROOM = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE)
MAX_CELL_BYTES = 64_000_000
MIN_STEPS, STEPS_PER_BYTE, STEPS_PER_CALL = 200_000, 20, 1000  # of SQLite's machine; a row takes 10 to 100 of them
MAGIC = b"SQLite format 3\x00"
_spent = threading.local()  # ``at_last``: whether the last transaction of this thread took all its steps


def sqlite_caution(found: tuple[int, int, int] = sqlite3.sqlite_version_info) -> str:
    """A remark about an SQLite in which, very rarely, two writers can damage a file (its WAL-reset bug)."""
    fixed = (3, 51, 3)
    return f"; SQLite {'.'.join(map(str, found))} is older than the fix of its log in 3.51.3" if found < fixed else ""


class _Bounded(sqlite3.Connection):
    """A connection whose transactions take a number of steps that is bounded by the size of the file.

    In a forged file pages can point at each other in circles, and a table of 80 kB then has no end.
    """

    _files: tuple[Path, ...] = ()
    _left = 0  # calls of ``_step`` until the end

    def bound(self, path: Path) -> None:
        self._files = (path, Path(f"{os.path.realpath(path)}-wal"))
        self._refill()
        self.set_progress_handler(self._step, STEPS_PER_CALL)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql.startswith("BEGIN"):
            self._refill()
        return super().execute(sql, *parameters)

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # of another thread; from Python 3.13 on an open one is warned of
            self.close()

    def _refill(self) -> None:
        size = sum(file.stat().st_size for file in self._files if file.exists())
        self._left = (MIN_STEPS + STEPS_PER_BYTE * size) // STEPS_PER_CALL
        _spent.at_last = False

    def _step(self) -> bool:
        self._left -= 1
        _spent.at_last = self._left < 0
        return self._left < 0


def connected(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that trusts nothing in the file."""
    address = f"file:{quote(str(path.absolute()))}?{mode}"
    db = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, factory=_Bounded)
    db.bound(path)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
    db.execute("PRAGMA trusted_schema = OFF")  # a view or trigger in a file from elsewhere may not call functions
    db.execute("PRAGMA cell_size_check = ON")
    return db


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """SQLite's errors as ours, every one with the file's name."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if code_of(error) == sqlite3.SQLITE_INTERRUPT:
            raise_interrupt(path, error)
            raise StorageError(f"{path}: damaged or forged: reading it takes more steps than its size allows") from None
        kind = StorageError if code_of(error) == sqlite3.SQLITE_CORRUPT else FileError
        raise kind(f"{path}: {error}") from None
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise StorageError(f"{path}: {error}") from None
    except NasbotError as error:
        if not str(error).startswith(str(path)):
            error.args = (f"{path}: {error}",)
        raise


def check_file(path: Path, *, must_exist: bool, any_content: bool = False) -> None:
    """Before SQLite sees it: clear words for what is no file, or no SQLite file. Makes the folder of a new study."""
    with file_errors(f"cannot open {path}", ValueError):
        _check_sidecars(path)
        if not path.exists() and not must_exist:
            if path.is_symlink():
                raise FileError(f"cannot make {path}: it is a symbolic link to what does not exist; remove it")
            path.parent.mkdir(parents=True, exist_ok=True)
            return
        with os.fdopen(os.open(path, os.O_RDONLY | flags("O_NONBLOCK", "O_CLOEXEC", "O_BINARY")), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FileError(f"cannot open {path}: not a regular file")
            beginning = file.read(len(MAGIC))
    if beginning not in (b"", MAGIC) and not any_content:
        raise StorageError(f"{path}: not a nasbot study (not an SQLite file)")


def _check_sidecars(path: Path) -> None:
    """Nothing beside the file by which SQLite would write, wait or delete elsewhere.

    A rollback journal may name another file, which SQLite removes when it has rolled back; nasbot never makes one.
    """
    real = os.path.realpath(path)
    for suffix in ("-journal", "-wal", "-shm"):
        try:
            wrong = unsafe(os.lstat(real + suffix))
        except FileNotFoundError:
            continue
        if suffix == "-journal":
            wrong = "a rollback journal, which nasbot never makes and by which SQLite could delete other files"
        if wrong:
            raise StorageError(f"{path}: there is {real}{suffix}, {wrong}; if nothing of yours made it, remove it")


def check_tables(path: Path) -> None:
    """Before a connection that may write: a file with tables must be a study. A new file has none."""
    if has_content(path):
        with closing(connected(path, "mode=ro")) as db:
            if db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                _schema.prepare(db, may_write=False)


def has_content(path: Path) -> bool:
    """Whether there is more than an empty file."""
    return path.exists() and path.stat().st_size > 0


def reading_mode(path: Path) -> str:
    """Beside a file in a folder that may not be written SQLite cannot make its index of the log."""
    has_log = path.with_name(path.name + "-wal").exists()
    return "mode=ro" if has_log or os.access(path.parent, os.W_OK) else "mode=ro&immutable=1"


def sync_folder(path: Path) -> None:
    """So that a new file is still in its folder after a power cut."""
    for place in (path.parent, path.absolute().parent.parent):  # the folder may be new as well
        with suppress(OSError):  # some file systems refuse; SQLite has synced the content
            folder = os.open(place, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def identity(path: Path) -> tuple[object, ...]:
    """Which file this is, and which its log; a file system that does not answer for a while changes nothing."""
    found: list[object] = []
    for name in (path, Path(f"{os.path.realpath(path)}-wal")):
        try:
            state = name.stat()
            found.append((state.st_dev, state.st_ino))
        except FileNotFoundError:
            found.append(None)
    return tuple(found)


def code_of(error: sqlite3.OperationalError) -> int:
    """SQLite's code; Python itself raises this without one, for a text that is not UTF-8: damage."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT))


def raise_interrupt(path: Path, error: Exception) -> None:
    """KeyboardInterrupt where Ctrl-C ended a statement: what its handler raises in ``_step``, SQLite swallows.

    Where somebody has handlers of their own they know of it; what they must not hear is that the file is damaged.
    """
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT and not _spent.at_last:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            raise KeyboardInterrupt from None
        raise FileError(f"{path}: reading it was interrupted by a signal") from None


def is_full(error: sqlite3.OperationalError) -> bool:
    """No room on the disk, or within the process's limit on the size of files."""
    code = code_of(error)
    return code & 0xFF == sqlite3.SQLITE_FULL or code in NO_ROOM

"""A hold on a file that one process has at a time and the system takes back when that process ends, however it does.

By ``flock`` where the system has it. Elsewhere (Windows) by SQLite, which locks files on every system: an exclusive
transaction, never committed, on an empty file of its own beside the lock file.
"""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# What has to be closed to give the hold back; with flock that is the lock file itself.
Hold: TypeAlias = sqlite3.Connection | None


class HeldError(Exception):
    """Somebody else has it."""


def taken(path: Path, file: int) -> Hold:
    """Take the hold on this open lock file; HeldError where somebody has it, OSError where there are no locks."""
    if fcntl is None:
        return _taken_by_sqlite(_beside(path))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise HeldError from None
    return None


def is_held(path: Path, file: int) -> bool:
    """Whether somebody has the hold on this open lock file; makes no file."""
    if fcntl is None:
        try:
            if _beside(path).exists():
                _taken_by_sqlite(_beside(path)).close()
        except (HeldError, OSError):
            return True
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # given back at once: the file is closed
    except OSError:
        return True
    return False


def _beside(path: Path) -> Path:
    return path.with_name(path.name + "-held")


def _taken_by_sqlite(path: Path) -> sqlite3.Connection:
    with ExitStack() as opened:
        try:
            db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            opened.callback(db.close)
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise HeldError from None
            raise OSError(None, str(error)) from None
        opened.pop_all()
        return db

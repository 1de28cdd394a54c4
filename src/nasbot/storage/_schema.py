"""The tables of a study's file, and how a file of an older version becomes one of this version.

``PRAGMA user_version`` is the version of the tables, ``migrations`` says when and by which nasbot each step was made.
To change the tables: append a step to MIGRATIONS, never edit one that was released.

Every row carries a CRC over its other columns, because SQLite itself does not notice a flipped bit in a number.
"""

from __future__ import annotations

import sqlite3
import time
from importlib.metadata import PackageNotFoundError, version

from nasbot.errors import StorageError

APPLICATION_ID = 0x4E415342  # "NASB"

TABLES_1 = (
    """CREATE TABLE migrations (
    version INTEGER PRIMARY KEY,
    applied TEXT NOT NULL,
    nasbot TEXT NOT NULL
) STRICT""",
    """CREATE TABLE settings (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    record TEXT NOT NULL,
    crc INTEGER NOT NULL
) STRICT""",
    """CREATE TABLE trials (
    number INTEGER PRIMARY KEY CHECK (number >= 0),
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'completed', 'failed', 'cancelled')),
    value REAL CHECK (value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    cause TEXT CHECK (cause IN ('nan', 'exception', 'oom', 'timeout', 'killed', 'crashed', 'refused')),
    message TEXT,
    details TEXT,
    rank INTEGER UNIQUE CHECK (rank >= 0),
    proposed_after INTEGER NOT NULL CHECK (proposed_after >= 0),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    interruptions INTEGER NOT NULL CHECK (interruptions >= 0),
    started REAL,
    finished REAL,
    notes TEXT NOT NULL,
    arch TEXT NOT NULL,
    crc INTEGER NOT NULL,
    CHECK ((state = 'completed') = (value IS NOT NULL)),
    CHECK ((state = 'failed') = (cause IS NOT NULL)),
    CHECK ((state IN ('completed', 'failed', 'cancelled')) = (rank IS NOT NULL)),
    CHECK ((rank IS NULL) = (finished IS NULL)),
    CHECK (state != 'running' OR started IS NOT NULL),
    CHECK (state != 'waiting' OR started IS NULL)
) STRICT""",
    """CREATE TABLE points (
    trial INTEGER NOT NULL REFERENCES trials (number),
    position INTEGER NOT NULL CHECK (position >= 0),
    step INTEGER NOT NULL,
    value REAL NOT NULL CHECK (value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    crc INTEGER NOT NULL,
    PRIMARY KEY (trial, position)
) STRICT, WITHOUT ROWID""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (TABLES_1,)
VERSION = len(MIGRATIONS)


def prepare(db: sqlite3.Connection, *, may_write: bool) -> None:
    """Leave ``db`` with the tables of this version, or raise StorageError; a new file gets them."""
    found = _version_of(db)
    if found > VERSION:
        raise StorageError(f"written by a newer nasbot (tables of version {found}; this one reads up to {VERSION})")
    if found < VERSION:
        if not may_write:
            raise StorageError(
                f"tables of version {found}, this nasbot reads {VERSION}; resume the study to migrate it"
            )
        _migrate(db, found)
    _check_tables(db)


def _version_of(db: sqlite3.Connection) -> int:
    version_found = int(db.execute("PRAGMA user_version").fetchone()[0])
    application = int(db.execute("PRAGMA application_id").fetchone()[0])
    is_empty = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if is_empty and not version_found and application in (0, APPLICATION_ID):
        return 0
    if application != APPLICATION_ID or version_found < 1:
        raise StorageError("an SQLite file, but not a nasbot study")
    return version_found


def _migrate(db: sqlite3.Connection, found: int) -> None:
    """All steps in one transaction: a file is of the old version or of the new one."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for step in range(found, VERSION):
            for statement in MIGRATIONS[step]:
                db.execute(statement)
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            db.execute("INSERT INTO migrations VALUES (?, ?, ?)", (step + 1, when, _nasbot_version()))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _check_tables(db: sqlite3.Connection) -> None:
    """Exactly our tables, no trigger, view or index of somebody else's making."""
    found = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
    expected = {statement for step in MIGRATIONS for statement in step if statement.startswith("CREATE")}
    if found != expected:
        n = len(found ^ expected)
        raise StorageError(f"its tables are not those of a nasbot study of version {VERSION} ({n} definitions differ)")


def _nasbot_version() -> str:
    try:
        return version("nasbot")
    except PackageNotFoundError:
        return "unknown"

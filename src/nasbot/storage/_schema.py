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

# Who drove when, and what others ask of the driver.
TABLES_2 = (
    """CREATE TABLE runs (
    number INTEGER PRIMARY KEY CHECK (number >= 0),
    state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'stopping', 'ended')),
    begun REAL NOT NULL,
    ended REAL,
    record TEXT NOT NULL,
    crc INTEGER NOT NULL,
    CHECK ((state = 'ended') = (ended IS NOT NULL))
) STRICT""",
    """CREATE TABLE requests (
    number INTEGER PRIMARY KEY CHECK (number >= 0),
    kind TEXT NOT NULL CHECK (kind IN ('pause', 'resume', 'stop', 'stop-now', 'cancel', 'retry')),
    trial INTEGER CHECK (trial >= 0),
    made REAL NOT NULL,
    made_by TEXT NOT NULL,
    answer TEXT,
    answered REAL,
    crc INTEGER NOT NULL,
    CHECK ((kind IN ('cancel', 'retry')) = (trial IS NOT NULL)),
    CHECK ((answer IS NULL) = (answered IS NULL))
) STRICT""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (TABLES_1, TABLES_2)
VERSION = len(MIGRATIONS)
WITH_RUNS = 2  # the first version that has the tables of runs and requests


def prepare(db: sqlite3.Connection, *, may_write: bool) -> int:
    """Check the tables of ``db`` and return their version; a writer leaves it with those of this version.

    A new file gets its tables. Raises StorageError for anything that is not a study, or one of a newer nasbot.
    """
    found = _version_of(db)
    if found > VERSION:
        raise StorageError(f"written by a newer nasbot (tables of version {found}; this one reads up to {VERSION})")
    if found == 0 and not may_write:
        raise StorageError("an empty file: no study was ever begun in it")
    if found < VERSION and may_write:
        if found:
            _check_tables(db, found)
        _migrate(db, found)
        found = VERSION
    _check_tables(db, found)
    return found


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
            db.execute("INSERT INTO migrations VALUES (?, ?, ?)", (step + 1, when, nasbot_version()))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _check_tables(db: sqlite3.Connection, of_version: int) -> None:
    """Exactly our tables, no trigger, view or index of somebody else's making."""
    found = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
    expected = {sql for step in MIGRATIONS[:of_version] for sql in step if sql.startswith("CREATE")}
    if found != expected:
        n = len(found ^ expected)
        raise StorageError(
            f"its tables are not those of a nasbot study of version {of_version} ({n} definitions differ)"
        )


def nasbot_version() -> str:
    """The version of nasbot that is installed."""
    try:
        return version("nasbot")
    except PackageNotFoundError:
        return "unknown"

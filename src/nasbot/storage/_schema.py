"""The tables of a study's file, and how a file of an older version becomes one of this version.

``PRAGMA user_version`` is the version of the tables, ``migrations`` says when and by which nasbot each step was made.
To change the tables: append a step to MIGRATIONS, never edit one that was released. A step is a list of statements, or
of functions of the connection where rows must be rewritten; what the tables of a version look like is found out by
running the steps on an empty database.

Every row carries a CRC over its other columns, because SQLite itself does not notice a flipped bit in a number.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import TypeVar

from nasbot._versions import version_of
from nasbot.errors import StorageError
from nasbot.storage._rows import COLUMNS, OLD_COLUMNS, crc, direction_of, upgraded_point, upgraded_trial

APPLICATION_ID = 0x4E415342  # "NASB"
T = TypeVar("T")
UNKNOWN_VERSION = "unknown"  # of a nasbot that is not installed

# Trials of any version: what a cause may be, and which columns came later, are filled in.
TRIALS = """CREATE TABLE {name} (
    number INTEGER PRIMARY KEY CHECK (number >= 0),
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'completed', 'failed', 'cancelled')),
    value REAL CHECK (value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    cause TEXT{causes},
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
{more}    crc INTEGER NOT NULL,
    CHECK ((state = 'completed') = (value IS NOT NULL)),
    CHECK ((state = 'failed') = (cause IS NOT NULL)),
    CHECK ((state IN ('completed', 'failed', 'cancelled')) = (rank IS NOT NULL)),
    CHECK ((rank IS NULL) = (finished IS NULL)),
    CHECK (state != 'running' OR started IS NOT NULL),
    CHECK (state != 'waiting' OR started IS NULL)
) STRICT"""

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
    TRIALS.format(
        name="trials",
        causes=" CHECK (cause IN ('nan', 'exception', 'oom', 'timeout', 'killed', 'crashed', 'refused'))",
        more="",
    ),
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

# Candidates with params and fidelities, typed origins and forecasts, values in the objective's own sense. Causes of
# failures are checked by the reader, so that a new one needs no new tables.
TRIALS_3 = TRIALS.format(
    name="trials_3",
    causes="",
    more="""    params TEXT NOT NULL,
    fidelity REAL NOT NULL CHECK (fidelity > 0),
    promoted_from INTEGER CHECK (promoted_from >= 0),
    origin TEXT NOT NULL,
    forecast TEXT,
""",
)


def _rewrite_trials(db: sqlite3.Connection) -> None:
    """Every trial and every point of a curve as version 3 has them, checked before and after."""
    settings = db.execute("SELECT id, record, crc FROM settings").fetchone()
    if settings is not None and crc(settings[:-1]) != settings[-1]:
        raise StorageError("the settings are damaged: their checksum does not fit")
    direction = direction_of(None if settings is None else settings[1])
    marks = ", ".join("?" * (COLUMNS.count(",") + 1))
    for row in db.execute(f"SELECT {OLD_COLUMNS} FROM trials ORDER BY number").fetchall():
        db.execute(f"INSERT INTO trials_3 ({COLUMNS}) VALUES ({marks})", upgraded_trial(row, direction))
    for row in db.execute("SELECT trial, position, step, value, crc FROM points").fetchall():
        db.execute(
            "UPDATE points SET value = :value, crc = :crc WHERE trial = :trial AND position = :position",
            dict(zip(("trial", "position", "step", "value", "crc"), upgraded_point(row, direction), strict=True)),
        )


Step = str | Callable[[sqlite3.Connection], None]
TABLES_3: tuple[Step, ...] = (
    TRIALS_3,
    _rewrite_trials,
    "DROP TABLE trials",
    "ALTER TABLE trials_3 RENAME TO trials",
)

MIGRATIONS: tuple[tuple[Step, ...], ...] = (TABLES_1, TABLES_2, TABLES_3)
VERSION = len(MIGRATIONS)
WITH_RUNS = 2  # the first version that has the tables of runs and requests
WITH_CANDIDATES = 3  # the first version whose trials are candidates, and whose values are the objective's own


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
    kept = db.execute("PRAGMA foreign_keys").fetchone()[0]
    db.execute("PRAGMA foreign_keys = OFF")  # a table that others refer to is made anew; cannot be changed inside

    def migrate(db: sqlite3.Connection) -> None:
        for step in range(found, VERSION):
            _take(db, MIGRATIONS[step])
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            db.execute(
                "INSERT INTO migrations VALUES (?, ?, ?)", (step + 1, when, version_of("nasbot") or UNKNOWN_VERSION)
            )
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {VERSION}")

    try:
        in_transaction(db, migrate)
    finally:
        db.execute(f"PRAGMA foreign_keys = {kept:d}")


def in_transaction(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """What ``work`` gives, committed; where it raises, nothing of it is kept."""
    db.execute("BEGIN IMMEDIATE")
    try:
        result = work(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return result


def _take(db: sqlite3.Connection, steps: tuple[Step, ...]) -> None:
    for step in steps:
        if isinstance(step, str):
            db.execute(step)
        else:
            step(db)


def _check_tables(db: sqlite3.Connection, of_version: int) -> None:
    """Exactly our tables, no trigger, view or index of somebody else's making."""
    found, expected = _definitions(db), _expected(MIGRATIONS[:of_version])
    if found != expected:
        n = len(found ^ expected)
        raise StorageError(
            f"its tables are not those of a nasbot study of version {of_version} ({n} definitions differ)"
        )


def _definitions(db: sqlite3.Connection) -> frozenset[str]:
    return frozenset(sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))


@cache
def _expected(migrations: tuple[tuple[Step, ...], ...]) -> frozenset[str]:
    """The definitions that these steps leave behind; SQLite rewrites the text of a table that is renamed."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for steps in migrations:
            _take(db, steps)
        return _definitions(db)

"""The tables of all studies of a database: in a schema of their own, without a single expression in it.

No view, trigger, rule, policy, default, check or index expression: whatever else is found there is refused, because
reading or writing it could run somebody else's code in our name. What rows say is checked by ``_rows``, as for files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from nasbot._versions import version_of
from nasbot.errors import StorageError
from nasbot.storage._rows import COLUMNS, REQUEST_COLUMNS, RUN_COLUMNS
from nasbot.storage._schema import UNKNOWN_VERSION
from nasbot.storage.postgres.connecting import Db, first, run

VERSION = 1
MAX_CELL_BYTES = 64_000_000
MAKING = 0x6E617362  # advisory lock of whoever makes the tables
_REALS = ("value", "started", "finished", "fidelity", "begun", "ended", "made", "answered")
_WHOLES = (
    "number", "rank", "proposed_after", "attempts", "interruptions", "promoted_from", "trial", "position", "step", "crc"
)  # fmt: skip


def _typed(columns: str) -> dict[str, str]:
    """Types by name; every other column is text, which is ASCII: JSON, or words of ours."""
    kinds = {**dict.fromkeys(_REALS, "double precision"), **dict.fromkeys(_WHOLES, "bigint")}
    return {name: kinds.get(name, "text") for name in columns.split(", ")}


_TIME = "timestamp with time zone"
TABLES: Mapping[str, Mapping[str, str]] = {
    "versions": {"version": "bigint", "applied": "text", "nasbot": "text"},
    # One row for each study: whoever writes to the study locks it first; ``version`` counts what was written.
    "studies": {"study": "text", "version": "bigint", "settings": "text", "crc": "bigint"},
    # ``changed``: the study's version when the row was last written; ``driver``: whose it is while it runs.
    "trials": {"study": "text", **_typed(COLUMNS), "changed": "bigint", "driver": "bigint"},
    "points": {"study": "text", **_typed("trial, position, step, value, crc")},
    "runs": {"study": "text", **_typed(RUN_COLUMNS)},
    "requests": {"study": "text", **_typed(REQUEST_COLUMNS)},
    # ``beat``: its last sign of life; ``n_written``: how often it has written, so that an answer that was lost on its
    # way from the server can be asked for again.
    "drivers": {
        "study": "text",
        "driver": "bigint",
        "is_shared": "boolean",
        "run": "bigint",
        "beat": _TIME,
        "n_written": "bigint",
        "holder": "text",
    },
}
KEYS = {
    "versions": "version",
    "studies": "study",
    "trials": "study, number",
    "points": "study, trial, position",
    "runs": "study, number",
    "requests": "study, number",
    "drivers": "study, driver",
}
INDICES = (
    "CREATE INDEX trials_changed ON nasbot.trials (study, changed)",
    "CREATE UNIQUE INDEX trials_rank ON nasbot.trials (study, rank)",
)


def prepare(db: Db, *, may_write: bool) -> None:
    """Check the tables; a driver makes them in a database that has none. StorageError where they are others."""
    if may_write and not _is_there(db):
        with db.transaction():
            run(db, "SELECT pg_advisory_xact_lock(%s)", MAKING)  # two drivers may begin at once
            if not _is_there(db):
                _make(db)
    if not _is_there(db):
        raise StorageError("no study was ever begun in this database")
    check(db)


def _is_there(db: Db) -> bool:
    return first(db, "SELECT 1 FROM pg_namespace WHERE nspname = 'nasbot'") is not None


def _make(db: Db) -> None:
    run(db, "CREATE SCHEMA nasbot")
    for table, columns in TABLES.items():
        described = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        run(db, f"CREATE TABLE nasbot.{table} ({described}, PRIMARY KEY ({KEYS[table]}))")
    for index in INDICES:
        run(db, index)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run(db, "INSERT INTO nasbot.versions VALUES (%s, %s, %s)", VERSION, when, version_of("nasbot") or UNKNOWN_VERSION)


def check(db: Db) -> None:
    """StorageError unless the schema holds exactly our tables, and nothing that computes."""
    found = run(
        db,
        """SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
            c.relkind <> 'r' OR c.relhasrules OR c.relhastriggers OR c.relrowsecurity OR c.relhassubclass
                OR c.relispartition OR a.atthasdef OR a.attisdropped OR a.attidentity <> ''
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = 'nasbot'::regnamespace AND c.relkind NOT IN ('i', 'I')""",
    ).fetchall()
    expected = {(table, name, kind) for table, columns in TABLES.items() for name, kind in columns.items()}
    expressions = first(
        db,
        """SELECT (SELECT count(*) FROM pg_constraint WHERE connamespace = 'nasbot'::regnamespace
                   AND contype NOT IN ('p', 'u', 'n'))
            + (SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
               WHERE c.relnamespace = 'nasbot'::regnamespace AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))""",
    )
    version = None
    if {(table, name, kind) for table, name, kind, _ in found} >= {("versions", "version", "bigint")}:
        version = first(db, "SELECT max(version) FROM nasbot.versions")
    if version is not None and (version[0] or 0) > VERSION:
        raise StorageError(f"written by a newer nasbot (tables of version {version[0]}; this one reads {VERSION})")
    is_odd = any(row[3] for row in found) or expressions is None or expressions[0]
    if is_odd or {tuple(row[:3]) for row in found} != expected:
        raise StorageError("the tables in its schema nasbot are not those of nasbot studies")


def check_sizes(db: Db, study: str, since: int) -> None:
    """StorageError before a cell is fetched that no trial can have."""
    texts = [name for name, kind in TABLES["trials"].items() if kind == "text"]
    longest = ", ".join(f"max(octet_length({name}))" for name in texts)
    row = first(db, f"SELECT {longest} FROM nasbot.trials WHERE study = %s AND changed > %s", study, since)
    if any((length or 0) > MAX_CELL_BYTES for length in row or ()):
        raise StorageError(f"damaged or forged: a trial has a text of more than {MAX_CELL_BYTES} bytes")

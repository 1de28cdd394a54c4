"""Connections that trust nothing in the database, and PostgreSQL's errors in our words."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict

from nasbot.errors import FileError, NasbotError, OptionError, StorageError
from nasbot.storage._rows import Row
from nasbot.storage.addresses import FORM, Address, without_password

Db: TypeAlias = "psycopg.Connection[Row]"
PASSING = (psycopg.OperationalError, psycopg.InterfaceError)  # the server is away, full or busy: worth waiting
# What libpq is told where the address says nothing: a machine that is gone is noticed in a minute, not in hours.
DEFAULTS = {
    "application_name": "nasbot",
    "connect_timeout": "10",
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
_open: weakref.WeakSet[Db] = weakref.WeakSet()


def connected(address: Address) -> Db:
    """A connection in which only PostgreSQL's own functions and operators have short names."""
    try:
        given = conninfo_to_dict(address.database)
    except psycopg.Error:  # its message may hold parts of a password
        raise OptionError(f"study: {address} is not an address that PostgreSQL understands; expected {FORM}") from None
    db: Db = psycopg.connect(**{**DEFAULTS, **given, "client_encoding": "utf8"}, autocommit=True)  # type: ignore[arg-type]
    _open.add(db)
    db.execute("SET search_path = pg_catalog")
    db.execute(
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )
    return db


def run(db: Db, sql: str, *values: object) -> psycopg.Cursor[Row]:
    """Execute a statement that is ours; whatever is anybody else's is in ``values``."""
    return db.execute(sql.encode(), values)


def first(db: Db, sql: str, *values: object) -> Row | None:
    """The first row of what it gives."""
    return run(db, sql, *values).fetchone()


@contextmanager
def explained(address: Address) -> Iterator[None]:
    """PostgreSQL's errors as ours, every one with the study's address, none with a password."""
    try:
        yield
    except psycopg.Error as error:
        is_ours = not isinstance(error, (*PASSING, psycopg.errors.InsufficientPrivilege))
        kind = StorageError if is_ours else FileError
        raise kind(f"{address}: {in_one_line(error)}") from None
    except NasbotError as error:
        if not isinstance(error, OptionError) and not str(error).startswith(str(address)):
            error.args = (f"{address}: {error}",)
        raise


def in_one_line(error: psycopg.Error) -> str:
    """What PostgreSQL says, without the address as it was given."""
    return without_password(" ".join(str(error).split()))[:300] or type(error).__name__


def _let_go() -> None:
    """In a forked child: the connection is the parent's, and must end with it."""
    for db in list(_open):
        with suppress(OSError, psycopg.Error):
            os.close(db.fileno())


os.register_at_fork(after_in_child=_let_go)

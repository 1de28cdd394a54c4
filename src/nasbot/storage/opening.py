"""From where a study is kept to its storage: the only place that knows that a study is a file, or in a database."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from nasbot.architecture import Vocabulary
from nasbot.errors import OptionError
from nasbot.storage import sqlite
from nasbot.storage.addresses import Address, is_address, place_of
from nasbot.storage.paths import study_files
from nasbot.storage.records import Request, RequestKind
from nasbot.storage.sqlite import SqliteStorage

if TYPE_CHECKING:
    from nasbot.storage.postgres.storage import PostgresStorage


def open_storage(
    where: str | Path | Address,
    *,
    vocabulary: Vocabulary | None = None,
    read_only: bool = False,
    shared: bool = False,
) -> SqliteStorage | PostgresStorage:
    """The storage of the study of this name, file or address; a driver's where not ``read_only``, and begun if new.

    A ``shared`` driver lets others that are shared work on the study beside it.
    """
    place = place_of(where)
    if isinstance(place, Address):
        storage: PostgresStorage = _postgres().PostgresStorage(
            place, vocabulary=vocabulary, read_only=read_only, shared=shared
        )
        return storage
    if shared:
        raise OptionError("shared: a study in a file has one driver at a time; expected the address of a database")
    return SqliteStorage(place, vocabulary=vocabulary, read_only=read_only)


def is_begun(where: str | Path | Address) -> bool:
    """Whether there is such a study already."""
    place = place_of(where)
    return bool(_postgres().is_begun(place)) if isinstance(place, Address) else place.exists()


def studies_in(where: str | Path) -> list[Path | Address]:
    """The studies of a folder, or of the database at this address, by name."""
    if isinstance(where, str) and is_address(where):
        database = Address("", where.rpartition("#")[0] or where)
        return [Address(name, database.database) for name in _postgres().study_names(database)]
    return list(study_files(Path(where)))


def post_request(where: str | Path | Address, kind: RequestKind | str, trial: int | None = None) -> Request:
    """Ask something of whoever drives this study, now or next; returns when the disk has it."""
    place = place_of(where)
    if isinstance(place, Address):
        request: Request = _postgres().post_request(place, kind, trial)
        return request
    return sqlite.post_request(place, kind, trial)


def _postgres() -> ModuleType:
    try:
        from nasbot.storage.postgres import storage
    except ImportError:
        raise OptionError(
            "study: a PostgreSQL database needs psycopg, which is not installed; get it with: "
            "pip install 'nasbot[postgres]'"
        ) from None
    return storage

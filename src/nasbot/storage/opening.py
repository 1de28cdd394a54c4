"""From where a study is kept to its storage: the only place that knows that a study is a file."""

from __future__ import annotations

from pathlib import Path

from nasbot.architecture import Vocabulary
from nasbot.storage.paths import study_path
from nasbot.storage.sqlite import SqliteStorage


def open_storage(where: str | Path, *, vocabulary: Vocabulary | None = None, read_only: bool = False) -> SqliteStorage:
    """The storage of the study of this name or file; a driver's where not ``read_only``, and then begun if new."""
    return SqliteStorage(study_path(where), vocabulary=vocabulary, read_only=read_only)


def is_begun(where: str | Path) -> bool:
    """Whether there is such a study already."""
    return study_path(where).exists()

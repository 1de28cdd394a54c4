"""Where studies live: a name stands for a file in the studies' folder, a path for itself."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from nasbot._files import file_errors
from nasbot.errors import OptionError

SUFFIX = ".sqlite"
FOLDER_VARIABLE = "NASBOT_STUDIES"
DEFAULT_FOLDER = "studies"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
NAME_RULE = "a name has 1 to 100 letters, digits, dots, dashes and underscores and begins with a letter or a digit"


def study_path(where: str | Path) -> Path:
    """The file of a study.

    A Path, and a string with a separator or with the ending .sqlite, is the file itself. Any other string is a name: a
    file in the folder that the variable NASBOT_STUDIES names, ``studies`` in the current folder otherwise. A name
    cannot lead out of that folder.
    """
    given: object = where
    if not isinstance(given, str | Path):
        raise OptionError(f"study: expected a name or a path, got {str(given)[:40]!r}")
    if not isinstance(where, Path) and where.startswith(("postgresql://", "postgres://")):
        raise OptionError(
            "study: this needs a study in a file, got the address of a database; status, show, list, check, serve, "
            "report, plot, export, run, pause, resume, stop, cancel and retry take one"
        )
    if isinstance(where, Path) or os.sep in where or where.endswith(SUFFIX):
        if "\0" in str(where):
            raise OptionError("study: a file's name cannot contain a NUL character")
        return Path(where)
    if not NAME.fullmatch(where):
        raise OptionError(f"study: {NAME_RULE}, got {where[:60]!r}")
    return studies_folder() / f"{where}{SUFFIX}"


def studies_folder() -> Path:
    """Where studies that have only a name live."""
    return Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)


def study_files(folder: Path) -> list[Path]:
    """The files of a folder that are named as studies are, by name; none where there is no such folder."""
    with file_errors(f"cannot list {folder}", ValueError), suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and path.is_file())
    return []

"""Folders that travel with an objective to a machine that does not have them, and files that travel back.

An objective says which of its fields are folders: ``carries`` names those it reads, ``leaves`` those it writes to. It
must be a dataclass, so that it can be made again with folders of the other machine in these fields.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nasbot._files import file_errors, write_whole
from nasbot.errors import FileError
from nasbot.execution.base import Objective

PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
Files = Mapping[str, bytes]  # by their paths below the folder, as POSIX writes them


def packed_folders(objective: Objective) -> dict[str, Files]:
    """What the objective reads, by field; FileError where a folder cannot be read."""
    return {name: _contents(Path(getattr(objective, name))) for name in _fields(objective, "carries")}


def _contents(folder: Path) -> Files:
    try:
        if not folder.is_dir():
            raise FileNotFoundError(f"no folder {folder}")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    except OSError as error:
        raise FileError(f"the objective's folder cannot be sent: {error}") from None


def _fields(objective: Objective, kind: str) -> tuple[str, ...]:
    """The fields of this kind that hold a folder."""
    names: tuple[str, ...] = getattr(objective, kind, ())
    return tuple(name for name in names if getattr(objective, name, None) is not None)


class Unpacked:
    """The objective as it is on this machine: with folders of its own, which ``remove`` takes away."""

    def __init__(self, objective: Objective, folders: Mapping[str, Files]) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="nasbot-"))
        self._written = {name: self._place / "written" / name for name in _fields(objective, "leaves")}
        try:
            for name, files in folders.items():
                self._write(self._place / "read" / name, files)
            for folder in self._written.values():
                folder.mkdir(parents=True)
        except BaseException:
            self.remove()
            raise
        changed: dict[str, Any] = {name: str(self._place / "read" / name) for name in folders}
        changed |= {name: str(folder) for name, folder in self._written.items()}
        self.objective: Objective = dataclasses.replace(objective, **changed) if changed else objective  # type: ignore[type-var]

    def _write(self, folder: Path, files: Files) -> None:
        folder.mkdir(parents=True)
        for name, content in files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def left(self) -> Iterator[tuple[str, str, bytes]]:
        """Field, name and content of each file that the objective has written; they are taken from here."""
        for field, folder in self._written.items():
            for path in sorted(folder.iterdir()):
                if path.is_file() and PLAIN_NAME.fullmatch(path.name):
                    content = path.read_bytes()
                    path.unlink()
                    yield field, path.name, content

    def remove(self) -> None:
        """Take all of it away."""
        shutil.rmtree(self._place, ignore_errors=True)


def keep(objective: Objective, field: str, name: str, content: bytes) -> None:
    """Write a file that came back to where the objective would have written it; whole, or not at all."""
    if field not in _fields(objective, "leaves") or not PLAIN_NAME.fullmatch(name):
        raise FileError(f"a file {name[:80]!r} for {field[:80]!r} came back, which the objective does not leave")
    folder = Path(getattr(objective, field))
    with file_errors(f"{folder / name}: cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, content)

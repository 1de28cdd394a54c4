"""Deleting a study: its file and what nasbot wrote beside it, and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nasbot._files import check_own_folder
from nasbot.automl.files import DATA, WEIGHTS, files_of
from nasbot.errors import FileError
from nasbot.storage import is_begun, open_storage

BEST_NETWORK, BEST_DRAWING = "best.json", "best.svg"
# What nasbot writes into a study's folder, by the folder; with a dot in front and .part behind it is not finished.
_OWN = {
    "": re.compile(r"best\.(json|svg)|(model|understanding)\.json|yardstick-[A-Za-z-]+\.predictions\.npy"),
    DATA: re.compile(r"dataset\.json|(train|valid|test)_(X|y|weights)\.npy|trees\.npy|\..*\.part"),
    WEIGHTS: re.compile(r"\.?(trial|refit)-\d+\.(safetensors|predictions\.npy)(\.\d+)?|\..*\.part"),
}


@dataclass(frozen=True)
class Removed:
    """What was deleted, and what stays in the study's folder because nasbot did not write it."""

    files: tuple[Path, ...]
    left: tuple[Path, ...]


def remove_study(path: Path) -> Removed:
    """Delete a study and its own files; a link among them is removed, not followed.

    Raises FileError where there is none or its folder is a link, StudyError while somebody drives it, StorageError for
    a file that is no study: that is somebody else's.
    """
    if not is_begun(path):
        raise FileError(f"{path}: no such study")
    folder = files_of(path)
    for place in (folder, folder / DATA, folder / WEIGHTS):
        check_own_folder(place)
    open_storage(path).close()  # which refuses what is no study, and one that somebody drives
    real = os.path.realpath(path)
    beside = [Path(f"{real}{suffix}") for suffix in ("-wal", "-shm", "-journal", ".lock")]
    removed = [file for file in (*_own_files(folder), *beside, path) if _unlink(file)]
    for place in (folder / DATA, folder / WEIGHTS, folder):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
    left = tuple(sorted(folder.rglob("*"))) if folder.is_dir() else ()
    return Removed(tuple(removed), left)


def _own_files(folder: Path) -> Iterator[Path]:
    for name, own in _OWN.items():
        place = folder / name
        if place.is_dir():
            yield from sorted(file for file in place.iterdir() if own.fullmatch(file.name) and not file.is_dir())


def _unlink(file: Path) -> bool:
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FileError(f"cannot delete {file}: {error.strerror or error}") from None
    return True

"""What a search on data leaves in the folder beside its study: the data, the members of the model, what was measured.

Everything there may be anybody's: only regular files are read, a bounded part of each, and links are not followed.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nasbot import _json
from nasbot._files import open_regular
from nasbot._json import table
from nasbot._typing import Json
from nasbot.errors import CodecError, FileError
from nasbot.storage.addresses import Address

FILES = ".files"
UNDERSTANDING, MEMBERS = "understanding.json", "model.json"
DATA, DESCRIPTION = "data", "dataset.json"
PARTS = {"train": "training", "valid": "validation", "test": "test"}
MOST_BYTES, MOST_OF_DATA, MOST_OF_HEADER = 1_000_000, 20_000_000, 10_000
MOST_NAMES = 30  # columns or classes that are named


@dataclass(frozen=True)
class Beside:
    """All of it, of one study; nothing of a study that is no search on data."""

    data: Mapping[str, Json] | None = None
    model: Mapping[str, Json] | None = None
    members: Sequence[Json] = ()

    @classmethod
    def of(cls, path: Path | Address, *, model: Mapping[str, Json] | None = None) -> Beside:
        """What is beside the study in this file; ``model`` where that was just measured."""
        if not isinstance(path, Path):
            return cls(model=model)
        return cls(data_card(path), understood(path) if model is None else model, members(path))


def understood(path: Path) -> dict[str, Json] | None:
    """What is known about the recommended model of the study in this file; None where nothing can be read."""
    return _read(path, UNDERSTANDING, most=MOST_BYTES)


def members(path: Path) -> list[Json]:
    """The trials whose networks the model averages, each with its weight; none before a search has ended."""
    record = _read(path, MEMBERS, most=MOST_BYTES) or {}
    trials, weights = record.get("trials"), record.get("weights")
    if not isinstance(trials, list) or not isinstance(weights, list) or len(trials) != len(weights):
        return []
    pairs = list(zip(trials, weights, strict=True))
    known = all(type(number) is int and isinstance(weight, int | float) for number, weight in pairs)
    return [[number, weight] for number, weight in pairs] if known else []


def files_beside(path: Path) -> tuple[Path, ...]:
    """The files whose change changes what is shown of the model."""
    folder = _folder(path)
    return folder / UNDERSTANDING, folder / MEMBERS


def data_card(path: Path) -> dict[str, Json] | None:
    """The data of a search: rows of each part, columns, target; None where there are none that can be read."""
    record = _read(path, DATA, DESCRIPTION, most=MOST_OF_DATA)
    if record is None:
        return None
    preprocessing = table(record.get("preprocessing"))
    inputs, target = table(preprocessing.get("inputs")), table(preprocessing.get("target"))
    every = [table(column) for column in _list(inputs.get("columns"))]
    columns = [column for column in every if column.get("form") != "dropped"]
    forms = Counter(str(column.get("form"))[:40] for column in columns)
    shapes = {words: _shape(path, f"{name}_X.npy") for name, words in PARTS.items()}
    names = [str(name)[:80] for name in _list(target.get("names"))] or [str(target.get("name", ""))[:80]]
    classes = [str(name)[:80] for name in _list(target.get("classes"))]
    return {
        "name": str(record.get("name", ""))[:80],
        "rows": {words: shape[0] for words, shape in shapes.items() if shape},
        "columns": [str(column.get("name", ""))[:80] for column in columns[:MOST_NAMES]],
        "n_columns": len(columns),
        "forms": dict(forms),
        "shape": list(next((shape[1:] for shape in shapes.values() if shape), ())),
        "target": [*names[:MOST_NAMES]],
        "task": "classification" if classes else "regression",
        "classes": [*classes[:MOST_NAMES]],
        "n_classes": len(classes),
    }


def _read(path: Path, *names: str, most: int) -> dict[str, Json] | None:
    """The JSON object in this file beside the study."""
    content = _content(path, *names, most=most)
    try:
        record = None if content is None else _json.parsed(content, names[-1])
    except CodecError:
        return None
    return record if isinstance(record, dict) else None


def _shape(path: Path, name: str) -> tuple[int, ...]:
    """Of an array of the data, by its header; empty where it cannot be read."""
    head = io.BytesIO(_content(path, DATA, name, most=MOST_OF_HEADER) or b"")
    try:
        version = np.lib.format.read_magic(head)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return tuple(int(n) for n in read(head)[0])
    except (ValueError, EOFError):
        return ()


def _folder(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix(path.suffix)}{FILES}")


def _content(path: Path, *names: str, most: int) -> bytes | None:
    place = _folder(path)
    for name in names:
        if place.is_symlink() or not place.is_dir():
            return None
        place = place / name
    try:
        with os.fdopen(open_regular(place, os.O_RDONLY), "rb") as file:
            return file.read(most)
    except (FileError, OSError):
        return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

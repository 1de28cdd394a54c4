"""People's files a few thousand rows at a time, for predictions: a file of any length in little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nasbot.data.arrow_files import PARQUET, parquet_chunks
from nasbot.data.bounds import check_is_there
from nasbot.data.files import ARROW, EXCEL, JSON, MAX_COLUMNS, npz_arrays, read_table
from nasbot.data.text_tables import TEXT, is_text, read_text_in_chunks
from nasbot.errors import DataError

ROWS_AT_A_TIME = 20_000


def chunks(path: Path, *, text: Sequence[str] = (), rows: int = ROWS_AT_A_TIME) -> Iterator[Any]:
    """Data frames of a table's file, or arrays from ``X`` of an NPZ file, one after the other.

    Columns named in ``text`` are read as they are written: a chunk where each category looks like a number is still one
    of categories. Raises FileError or DataError, also on the way.
    """
    kind = path.name.lower()
    if path.is_dir() or not (is_text(kind) or kind.endswith((*ARROW, *EXCEL, *JSON, ".npz"))):
        raise DataError(f"{path}: expected rows to predict from as CSV ({', '.join(TEXT[:3])}), Parquet or NPZ")
    check_is_there(path)
    found = False
    for chunk in _parts(path, kind, text, rows):
        found = found or bool(len(chunk))
        if len(chunk):
            yield chunk
    if not found:
        raise DataError(f"{path}: there are no rows to predict from")


def _parts(path: Path, kind: str, text: Sequence[str], rows: int) -> Iterator[Any]:
    if kind.endswith(".npz"):
        X = npz_arrays(path, ("X",))[0]
        yield from (X[i : i + rows] for i in range(0, len(X), rows))
    elif is_text(kind):
        yield from read_text_in_chunks(path, rows, text=text, most_columns=MAX_COLUMNS)
    elif kind.endswith(PARQUET):
        yield from parquet_chunks(path, rows, most_columns=MAX_COLUMNS)
    else:
        frame = read_table(path)
        yield from (frame.iloc[i : i + rows] for i in range(0, len(frame), rows))

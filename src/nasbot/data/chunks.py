"""People's files a few thousand rows at a time, for predictions: a file of any length in little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nasbot.data.files import MISSING_WORDS, PARQUET, TEXT, header_of, npz_arrays
from nasbot.errors import DataError, FileError

ROWS_AT_A_TIME = 20_000


def chunks(path: Path, *, text: Sequence[str] = (), rows: int = ROWS_AT_A_TIME) -> Iterator[Any]:
    """Data frames of a CSV or Parquet file, or arrays from ``X`` of an NPZ file, one after the other.

    Columns named in ``text`` are read as they are written: a chunk where each category looks like a number is still one
    of categories. Raises FileError or DataError, also on the way.
    """
    kind = path.name.lower()
    if path.is_dir() or not kind.endswith((*TEXT, *PARQUET, ".npz")):
        raise DataError(f"{path}: expected rows to predict from as CSV ({', '.join(TEXT[:3])}), Parquet or NPZ")
    if not path.exists():
        raise FileError(f"{path}: no such file")
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
    elif kind.endswith(PARQUET):
        yield from _parquet(path, rows)
    else:
        yield from _csv(path, text, rows)


def _csv(path: Path, text: Sequence[str], rows: int) -> Iterator[Any]:
    import pandas as pd

    try:
        separator, _ = header_of(path)
        options: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig", "index_col": False}
        columns = pd.read_csv(path, nrows=0, **options).columns
        kinds = {column: str for column in columns if str(column).strip() in text}
        missing = list(MISSING_WORDS)
        with pd.read_csv(path, chunksize=rows, dtype=kinds, na_values=missing, low_memory=False, **options) as reader:
            for chunk in reader:
                yield chunk.set_axis([str(column).strip() for column in chunk.columns], axis=1)
    except UnicodeDecodeError:
        raise DataError(f"{path}: not text in UTF-8; save it as CSV in UTF-8") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path}: empty; expected a line with the names of the columns, then rows") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise DataError(f"{path}: not a table: {' '.join(str(error).split())[:160]}") from None
    except (OSError, EOFError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _parquet(path: Path, rows: int) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=rows):
                yield batch.to_pandas()
    except (pyarrow.ArrowException, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not a Parquet file: {' '.join(str(error).split())[:160]}") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None

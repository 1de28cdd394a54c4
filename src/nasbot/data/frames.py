"""Records of ours as a data frame of pandas, for people who go on from there."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasbot._files import file_errors, write_whole
from nasbot.errors import FileError, OptionError

if TYPE_CHECKING:
    import pandas as pd

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which a spreadsheet's formula begins
TABLES = ("csv", "parquet")


def frame_of(records: Sequence[Mapping[str, Any]], *, index: str) -> pd.DataFrame:
    """A row for each record, a column for each key that any of them has; ``index`` names the column of row labels."""
    import pandas as pd

    columns = list(dict.fromkeys(key for record in records for key in record)) or [index]
    return pd.DataFrame.from_records([dict(record) for record in records], columns=columns).set_index(index)


def safe_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe before one that it would."""
    return f"'{text}" if text.startswith(FORMULA) else text


def write_frame(frame: pd.DataFrame, path: str | Path, *, to: str, overwrite: bool = False) -> Path:
    """The frame with its row labels as a CSV or Parquet file, whole or not at all.

    Raises:
        OptionError: for another form than csv or parquet, and for parquet without pyarrow.
        FileError: where the file is there already and not to be overwritten, or cannot be written.
    """
    path = Path(path)
    if to not in TABLES:
        raise OptionError(f"to: expected {' or '.join(TABLES)}, got {str(to)[:40]!r}")
    if path.exists() and not overwrite:
        raise FileError(f"{path} is there already; --overwrite replaces it")
    content = io.BytesIO()
    if to == "csv":
        safe = frame.map(lambda cell: safe_text(cell) if isinstance(cell, str) else cell)
        safe.to_csv(content, lineterminator="\n")
    else:
        try:
            frame.reset_index().to_parquet(content, engine="pyarrow", index=False)
        except ImportError:
            raise OptionError("to: parquet needs pyarrow: install nasbot with its extra, nasbot[parquet]") from None
    with file_errors(f"cannot write {path}"):
        write_whole(path, content.getvalue())
    return path

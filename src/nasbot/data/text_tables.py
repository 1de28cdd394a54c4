"""Tables written as text: which encoding, separator and decimal mark they have is found out, not asked.

Numbers as people write them (1.234,56 €, $1,234.56, 12 %, (300)) are read where a whole column is written so. Whether a
comma is a decimal mark is decided for the file, by values that can mean only one thing; see ``_decimal``.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from nasbot.data.bounds import BYTES_PER_CELL, allowance, bounded, check_cells, our_errors
from nasbot.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

TEXT = (".csv", ".tsv", ".txt", ".psv")
PACKED = (".gz", ".zip")
MISSING_WORDS = ("?", "-")  # beside pandas' own: "", NA, NaN, null, …
SEPARATORS = (",", ";", "\t", "|")
SAMPLE_BYTES, SAMPLE_ROWS = 65_536, 1000
MAX_LINE = 2**25  # bytes, of the first line
_MARKS = re.compile(r"[€$£¥₹%]|\b(?:EUR|USD|GBP|CHF|JPY)\b")
_SPACES = "[ \u00a0\u2009\u202f'’]"  # that stand between thousands
_NUMBER = r"[-+]?(?:\d+|[1-9]\d{0,2}(?:GROUP\d{3})+|[1-9]\d{0,2}(?:SPACE\d{3})+)?(?:MARK\d*)?(?:[eE][-+]?\d+)?"
_POINT, _COMMA = (
    re.compile(_NUMBER.replace("GROUP", group).replace("MARK", mark).replace("SPACE", _SPACES))
    for group, mark in ((",", r"\."), (r"\.", ","))
)
# What a comma (a point) can only be as a decimal mark: not before three digits, or after a 0, or after the other mark.
_CLEARLY_COMMA = re.compile(r"[-+]?(?:\d+,(?!\d{3}$)\d+|0,\d+|[\d.]+\.\d{3},\d*)")
_CLEARLY_POINT = re.compile(r"[-+]?(?:\d+\.(?!\d{3}$)\d+|0\.\d+|[\d,]+,\d{3}\.\d*)(?:[eE][-+]?\d+)?")


def is_text(name: str) -> bool:
    """Whether a file of this name holds a table as text."""
    name = name.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    return name.endswith(TEXT)


@dataclass(frozen=True)
class Dialect:
    """How a table is written."""

    encoding: str
    separator: str
    decimal: str

    @property
    def options(self) -> dict[str, Any]:
        """As pandas takes them."""
        missing = list(MISSING_WORDS)
        return {"encoding": self.encoding, "sep": self.separator, "na_values": missing, "index_col": False}


def read_text(path: Path, *, most_columns: int) -> pd.DataFrame:
    """The table as a data frame. Raises FileError or DataError."""
    import pandas as pd

    with our_errors(path, "a table"):
        dialect, _ = _dialect(path, most_columns, lines=_n_lines(path))
        with _opened(path) as file:
            frame: pd.DataFrame = pd.read_csv(file, decimal=dialect.decimal, low_memory=False, **dialect.options)
    empty = [name for name in frame.columns if str(name).startswith("Unnamed:") and frame[name].isna().all()]
    return _with_numbers(frame.drop(columns=empty), dialect)  # dropped: lines end with a separator


def read_text_in_chunks(path: Path, rows: int, *, text: Sequence[str], most_columns: int) -> Iterator[pd.DataFrame]:
    """The same, so many rows at a time; columns named in ``text`` are read as they are written."""
    import pandas as pd

    with our_errors(path, "a table"):
        dialect, width = _dialect(path, most_columns)
        with _opened(path) as file:
            columns = pd.read_csv(file, nrows=0, **dialect.options).columns
        rows = min(rows, _rows_that_fit(path, width))
        kinds = {column: str for column in columns if str(column).strip() in text}
        options = {"decimal": dialect.decimal, "dtype": kinds, "low_memory": False, **dialect.options}
        with (
            _opened(path) as file,
            bounded(file, path) as lines,
            pd.read_csv(lines, chunksize=rows, **options) as reader,
        ):
            for chunk in reader:
                yield _with_numbers(chunk, dialect, text)
                lines.renew()  # a file may have any length, and no few rows of it


def _with_numbers(frame: pd.DataFrame, dialect: Dialect, text: Sequence[str] = ()) -> pd.DataFrame:
    frame = frame.set_axis([str(column).strip() for column in frame.columns], axis=1)
    for name in frame.columns:
        if name not in text and (numbers := numbers_in_text(frame[name], dialect.decimal)) is not None:
            frame[name] = numbers
    return frame


def numbers_in_text(series: pd.Series[Any], decimal: str) -> pd.Series[Any] | None:
    """A column of numbers as people write them; None where some value is none, or all are plain already."""
    import pandas as pd

    if series.dtype.kind in "biufcmM" or isinstance(series.dtype, pd.CategoricalDtype):
        return None
    known = series.dropna()
    if not len(known) or not all(isinstance(value, str) for value in known.head(SAMPLE_ROWS)):
        return None
    texts = known.astype(str).map(_bare)
    marks = [decimal, "," if decimal == "." else "."]
    if not any(_CLEARLY_COMMA.fullmatch(text) for text in texts.head(SAMPLE_ROWS)) and decimal == ".":
        marks.pop()  # the other mark needs a reason
    for mark in marks:
        form = _POINT if mark == "." else _COMMA
        if all(form.fullmatch(text) and any(c.isdigit() for c in text) for text in texts):
            thousands = re.compile(_SPACES + ("|," if mark == "." else r"|\."))
            plain = texts.map(lambda text: float(thousands.sub("", text).replace(",", ".")))  # noqa: B023  # used at once
            return plain.reindex(series.index)
    return None


def _bare(text: str) -> str:
    """Without currency and percent signs; (300) is -300."""
    bare = _MARKS.sub("", text).strip().replace("\u2212", "-")
    if bare.startswith("(") and bare.endswith(")"):
        bare = f"-{bare[1:-1].strip()}"
    return re.sub(r"^([-+])\s+", r"\1", bare)


# -- encoding, separator, decimal mark ---------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """The bytes of the text, unpacked."""
    name = path.name.lower()
    if name.endswith(".gz"):
        with gzip.open(path, "rb") as file:
            yield file
    elif name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            inside = [n for n in archive.namelist() if is_text(n) and not Path(n).name.startswith((".", "__"))]
            inside = [n for n in inside if not n.startswith("__MACOSX")]
            if len(inside) != 1:
                found = ", ".join(archive.namelist()[:5]) or "nothing"
                raise DataError(f"{path}: expected one CSV file in the zip file, got {found}; unpack it and name one")
            with archive.open(inside[0]) as file:
                yield file
    else:
        with path.open("rb") as file:
            yield file


def _n_lines(path: Path) -> int:
    """At least as many as there are rows; DataError where the text is more than a file of its size may hold."""
    ends = {b"\n": 0, b"\r": 0}
    with _opened(path) as file, bounded(file, path) as text:
        while block := text.read(2**20):
            ends = {end: n + block.count(end) for end, n in ends.items()}
    return max(ends.values())


def _dialect(path: Path, most_columns: int, *, lines: int = 0) -> tuple[Dialect, int]:
    """How the table is written, and how many columns it has; DataError where it is too large with so many lines."""
    with _opened(path) as file:
        sample = file.readline(MAX_LINE) + file.read(SAMPLE_BYTES)
    if len(sample) > MAX_LINE:
        raise DataError(f"{path}: the first line has more than {MAX_LINE:,} bytes; expected the names of the columns")
    encoding = _encoding(path, sample)
    separator, columns = _header(path, sample, encoding)
    _check_header(path, columns, most_columns)
    check_cells(path, lines, len(columns))
    written = Dialect(encoding, separator, ".")
    rows = min(SAMPLE_ROWS, _rows_that_fit(path, len(columns)))
    return replace(written, decimal=_decimal(path, written, rows)), len(columns)


def _rows_that_fit(path: Path, width: int) -> int:
    return max(1, allowance(path) // 2 // (BYTES_PER_CELL * max(width, 1)))


def _encoding(path: Path, sample: bytes) -> str:
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" not in sample:
        return "utf-8-sig" if _is_utf8(path) else "cp1252"  # which spreadsheets of the West write
    # Text in UTF-16 without a mark: every other byte of Western text is 0.
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if sample[first::2].count(0) > 0.8 * len(sample[first::2]) and b"\0\0" not in sample:
            return encoding
    raise DataError(f"{path}: not text; save it as CSV in UTF-8")


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with _opened(path) as file:
            while block := file.read(2**20):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _header(path: Path, sample: bytes, encoding: str) -> tuple[str, list[str]]:
    """The separator, by what the first line has most of outside quotes, and the names in it."""
    lines = sample.decode(encoding, errors="replace").splitlines()
    line = next((line for line in lines if line.strip()), "")
    if any(ord(c) < 32 and c != "\t" for c in line):
        raise DataError(f"{path}: not text; save it as CSV in UTF-8")
    unquoted = re.sub(r'"[^"]*"', "", line)
    # Numbers with decimal commas where names should be: they have more commas than separators.
    numbers = (s for s in SEPARATORS[1:] if s in line and all(map(_reads_as_number, line.split(s))))
    separator = next(numbers, max(SEPARATORS, key=unquoted.count))
    return separator, [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]


def _check_header(path: Path, columns: Sequence[str], most_columns: int) -> None:
    if len(columns) > most_columns:
        raise DataError(f"{path}: {len(columns):,} columns; expected at most {most_columns:,}")
    if len(columns) > 1 and all(_reads_as_number(column) for column in columns):
        raise DataError(f"{path}: the first line holds numbers; expected the names of the columns there")
    seen: set[str] = set()
    for column in filter(None, columns):
        if column in seen:
            raise DataError(f"{path}: two columns are called {column[:60]!r}; each needs a name of its own")
        seen.add(column)


def _reads_as_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _decimal(path: Path, dialect: Dialect, rows: int) -> str:
    """The decimal mark: a comma where some column can only be read so, and none only with a point.

    Where nothing tells, 1,234 is 1.234 between semicolons, which are used because commas are taken, and 1234 elsewhere.
    """
    import pandas as pd

    with _opened(path) as file:
        sample = pd.read_csv(file, dtype=str, nrows=rows, **dialect.options)
    commas = points = unclear = 0
    for i in range(sample.shape[1]):
        texts = [_bare(str(text)) for text in sample.iloc[:, i].dropna()]
        as_comma, as_point = (bool(texts) and all(form.fullmatch(text) for text in texts) for form in (_COMMA, _POINT))
        commas += as_comma and any(_CLEARLY_COMMA.fullmatch(text) for text in texts)
        points += as_point and any(_CLEARLY_POINT.fullmatch(text) for text in texts)
        unclear += as_comma and any("," in text for text in texts)
    if points or not (commas or (unclear and dialect.separator == ";")):
        return "."
    return ","

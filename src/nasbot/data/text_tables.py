"""Tables written as text: which encoding, separator and decimal mark they have is found out, not asked.

Numbers as people write them (1.234,56 €, $1,234.56, 12 %, (300)) are read where a whole column is written so. Whether a
comma is a decimal mark is decided for the file, by values that can mean only one thing; see ``_decimal``.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from nasbot.data.bounds import BYTES_PER_CELL, allowance, bounded, check_cells, our_errors
from nasbot.data.columns import CODE
from nasbot.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

TEXT = (".csv", ".tsv", ".txt", ".psv")
PACKED = (".gz", ".zip")
MISSING_WORDS = ("?", "-")  # beside pandas' own: "", NA, NaN, null, …
SEPARATORS = (",", ";", "\t", "|")
SPACES = r"\s+"  # the separator of last resort
SAMPLE_BYTES, SAMPLE_ROWS = 65_536, 1000
MAX_LINE = 2**25  # bytes, of the first line
_MARKS = re.compile(r"[€$£¥₹%]|\b(?:EUR|USD|GBP|CHF|JPY)\b")
# What other files begin with that were given the name of a text.
_OTHER_KINDS = {
    b"\x1f\x8b": "packed by gzip; give it a name that ends in .csv.gz",
    b"PK\x03\x04": "an Excel or a zip file; give it a name that ends in .xlsx or .zip",
    b"PAR1": "a Parquet file; give it a name that ends in .parquet",
}
_EXCEL_HINT = re.compile(r'"?sep=([,;\t|])"?', re.IGNORECASE)  # a first line that is for Excel alone
_DIGITS = re.compile(r"\d+")
LONG_RUN = 4  # bytes above 127: a word in Cyrillic or Greek, two characters in Chinese or Japanese
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
    packed = name.endswith(PACKED)
    for ending in PACKED:
        name = name.removesuffix(ending)
    return name.endswith(TEXT) or (packed and "." not in name)  # a zip file says nothing about what is in it


@dataclass(frozen=True)
class Dialect:
    """How a table is written."""

    encoding: str
    separator: str
    decimal: str = "."
    skipped: int = 0  # lines before the names of the columns
    codes: tuple[str, ...] = ()  # columns of digits that begin with 0, such as postal codes: no numbers

    @property
    def options(self) -> dict[str, Any]:
        """As pandas takes them."""
        missing = list(MISSING_WORDS)
        plain = {"encoding": self.encoding, "sep": self.separator, "na_values": missing, "index_col": False}
        return {**plain, "skiprows": self.skipped} if self.skipped else plain


def read_text(path: Path, *, most_columns: int) -> pd.DataFrame:
    """The table as a data frame. Raises FileError or DataError."""
    import pandas as pd

    with our_errors(path, "a table"), _no_lost_values(path):
        dialect, _ = _dialect(path, most_columns, lines=_n_lines(path))
        options = {"decimal": dialect.decimal, "dtype": dict.fromkeys(dialect.codes, str), **dialect.options}
        with _opened(path) as file:
            frame: pd.DataFrame = pd.read_csv(file, low_memory=False, **options)
    empty = [name for name in frame.columns if str(name).startswith("Unnamed:") and frame[name].isna().all()]
    codes = [code.strip() for code in dialect.codes]
    return _with_numbers(frame.drop(columns=empty), dialect, codes)  # dropped: lines end with a separator


def read_text_in_chunks(path: Path, rows: int, *, text: Sequence[str], most_columns: int) -> Iterator[pd.DataFrame]:
    """The same, so many rows at a time; columns named in ``text`` are read as they are written."""
    import pandas as pd

    with our_errors(path, "a table"), _no_lost_values(path):
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


def clear_numbers_in_text(series: pd.Series[Any]) -> pd.Series[Any] | None:
    """The same without a file that tells the decimal mark: None also where a comma may be one or stand for thousands.

    Digits with a 0 in front are codes and no numbers.
    """
    sample = series.dropna().head(SAMPLE_ROWS)
    if any(isinstance(value, str) and CODE.fullmatch(value) for value in sample):
        return None
    if all(numbers_in_text(sample, mark) is None for mark in ".,"):
        return None
    with_point, with_comma = (numbers_in_text(series, mark) for mark in ".,")
    if with_point is None or with_comma is None or with_point.equals(with_comma):
        return with_comma if with_point is None else with_point
    return None


def _bare(text: str) -> str:
    """Without currency and percent signs; (300) is -300."""
    bare = _MARKS.sub("", text).strip().replace("\u2212", "-")
    if bare.startswith("(") and bare.endswith(")"):
        bare = f"-{bare[1:-1].strip()}"
    return re.sub(r"^([-+])\s+", r"\1", bare)


@contextmanager
def _no_lost_values(path: Path) -> Iterator[None]:
    """DataError where rows have values that no name stands above: pandas would leave them out."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            yield
        except pd.errors.ParserWarning:
            raise DataError(
                f"{path}: rows have more values than the first line has names; if it is a title remove it, else "
                "name every column"
            ) from None


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
    written, columns = _header(path, sample, encoding)
    _check_header(path, columns, most_columns)
    check_cells(path, lines, len(columns))
    import pandas as pd

    rows = min(SAMPLE_ROWS, _rows_that_fit(path, len(columns)))
    with _opened(path) as file:
        first = pd.read_csv(file, dtype=str, nrows=rows, **written.options)
    return replace(written, decimal=_decimal(first, written.separator), codes=_codes(first)), len(columns)


def _rows_that_fit(path: Path, width: int) -> int:
    return max(1, allowance(path) // 2 // (BYTES_PER_CELL * max(width, 1)))


def _encoding(path: Path, sample: bytes) -> str:
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" not in sample:
        if _is_utf8(path):
            return "utf-8-sig"
        runs = [len(run) for run in re.findall(rb"[\x80-\xff]+", sample)]
        if sum(n for n in runs if n >= LONG_RUN) > 0.5 * sum(runs):  # and no other byte is a letter there
            raise DataError(f"{path}: neither UTF-8 nor the encoding of the West (Windows-1252); save it as UTF-8")
        return "cp1252"  # which spreadsheets of the West write
    # Text in UTF-16 without a mark: every other byte of Western text is 0.
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if sample[first::2].count(0) > 0.8 * len(sample[first::2]) and b"\0\0" not in sample:
            return encoding
    raise _not_text(path, sample)


def _not_text(path: Path, sample: bytes) -> DataError:
    known = next((what for begin, what in _OTHER_KINDS.items() if sample.startswith(begin)), None)
    return DataError(f"{path}: {known or 'not text; save it as CSV in UTF-8'}")


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


def _header(path: Path, sample: bytes, encoding: str) -> tuple[Dialect, list[str]]:
    """How the first line with names is written, by what it has most of outside quotes, and the names in it."""
    lines = sample.decode(encoding, errors="replace").splitlines()
    said, skipped = _before_header(lines)
    rest = [line for line in lines[skipped:] if line.strip()]
    line = rest[0] if rest else ""
    if any(ord(c) < 32 and c != "\t" for c in line):
        raise _not_text(path, sample)
    unquoted = _unquoted(line)
    # Numbers with decimal commas where names should be: they have more commas than separators.
    numbers = (s for s in SEPARATORS[1:] if s in line and all(map(_reads_as_number, line.split(s))))
    separator = said or next(numbers, max(SEPARATORS, key=unquoted.count))
    if separator not in line and _is_spaced(rest[: SAMPLE_ROWS // 10]):
        return Dialect(encoding, SPACES, skipped=skipped), line.split()
    names = [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]
    return Dialect(encoding, separator, skipped=skipped), names


def _before_header(lines: Sequence[str]) -> tuple[str | None, int]:
    """The separator that a line for Excel names, and how many lines stand before the names: that one, comments."""
    said, skipped = None, 0
    filled = [i for i, line in enumerate(lines) if line.strip()]
    for i, following in pairwise(filled):
        if found := _EXCEL_HINT.fullmatch(lines[i].rstrip("\r\n")):
            said = found[1]
        elif not lines[i].lstrip().startswith("#") or _looks_like(lines[i], lines[following]):
            break
        skipped = following
    return said, skipped


def _looks_like(header: str, row: str) -> bool:
    """Whether "#id,size" is the names of the columns below it, and no comment."""
    counts = [[_unquoted(line).count(separator) for separator in SEPARATORS] for line in (header, row)]
    return counts[0] == counts[1] and any(counts[0])


def _is_spaced(lines: Sequence[str]) -> bool:
    """Whether spaces stand between values: as many in each line, and some column of numbers."""
    rows = [line.split() for line in (lines[:-1] if len(lines) > 2 else lines)]  # the last one may be cut
    if len(rows) < 2 or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return False
    return any(all(map(_reads_as_number, column)) for column in zip(*rows[1:], strict=True))


def _unquoted(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


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


def _codes(sample: pd.DataFrame) -> tuple[str, ...]:
    """Columns whose values are digits, some with a 0 in front: as numbers they would lose it."""
    found = []
    for i, name in enumerate(sample.columns):
        texts = [str(text).strip() for text in sample.iloc[:, i].dropna()]
        if any(map(CODE.fullmatch, texts)) and all(map(_DIGITS.fullmatch, texts)):
            found.append(str(name))
    return tuple(found)


def _decimal(sample: pd.DataFrame, separator: str) -> str:
    """The decimal mark: a comma where some column can only be read so, and none only with a point.

    Where nothing tells, 1,234 is 1.234 between semicolons, which are used because commas are taken, and 1234 elsewhere.
    """
    commas = points = unclear = 0
    for i in range(sample.shape[1]):
        texts = [_bare(str(text)) for text in sample.iloc[:, i].dropna()]
        as_comma, as_point = (bool(texts) and all(form.fullmatch(text) for text in texts) for form in (_COMMA, _POINT))
        commas += as_comma and any(_CLEARLY_COMMA.fullmatch(text) for text in texts)
        points += as_point and any(_CLEARLY_POINT.fullmatch(text) for text in texts)
        unclear += as_comma and any("," in text for text in texts)
    if points or not (commas or (unclear and separator == ";")):
        return "."
    return ","

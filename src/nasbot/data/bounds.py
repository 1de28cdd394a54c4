"""How much memory a file may take: asked of its headers, before anything of that size is made.

A file of a megabyte can unpack to gigabytes, announce a table of a billion rows, or repeat one long text in each of
them. What it would take is compared with what its own size allows; a bound of memory itself would let a small file fill
it.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import GzipFile
from pathlib import Path
from typing import IO

from nasbot.errors import DataError, FileError, NasbotError

ALWAYS = 2**27  # bytes that any file may take
RATIO = (
    100  # bytes for each byte of a larger one: people's tables and images pack to a fifth, sparse ones to a fiftieth
)
BYTES_PER_CELL = 8
# What the parsers of pandas, pyarrow and openpyxl raise on files that are not what they say; their own errors are some.
_SLIPS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    SyntaxError,  # of XML
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
)


def check_is_there(path: Path) -> None:
    """FileError where there is nothing, or what would be waited for: a pipe, a device, a socket."""
    if not path.exists():
        raise FileError(f"{path}: no such file or folder")
    if not (path.is_file() or path.is_dir()):
        raise FileError(f"{path}: cannot be read: not a file or folder, but a pipe or a device")


def allowance(*paths: Path) -> int:
    """Bytes that what is in these files may take."""
    return max(ALWAYS, RATIO * sum(path.stat().st_size for path in paths))


def check_bytes(path: Path, needed: int, what: str) -> None:
    """DataError where ``what`` is in the file would take more than its size allows."""
    if needed > (most := allowance(path)):
        raise _too_large(path, f"{what} take {_shown(needed)}", most)


def check_cells(path: Path, rows: int, columns: int) -> None:
    """The same for a table of so many rows and columns."""
    check_bytes(path, rows * columns * BYTES_PER_CELL, f"{rows:,} rows of {columns:,} columns")


def check_members(path: Path, archive: zipfile.ZipFile) -> None:
    """The same for all of a zip file; none of its members gives more bytes than are said here."""
    check_bytes(path, sum(member.file_size for member in archive.infolist()), "its unpacked contents")


@contextmanager
def bounded(file: IO[bytes] | GzipFile, path: Path) -> Iterator[Bounded]:
    """The same bytes, of which no more are read than the file's size allows. DataError where there are more."""
    with Bounded(file, path, allowance(path)) as reader:
        yield reader


class Bounded(io.BufferedReader):
    """A reader that raises DataError when more bytes were read than are allowed; ``renew`` allows as many again."""

    def __init__(self, file: IO[bytes] | GzipFile, path: Path, most: int) -> None:
        self._source = _Source(file, path, most)
        super().__init__(self._source, 2**16)

    def renew(self) -> None:
        self._source.left = self._source.most


class _Source(io.RawIOBase):
    def __init__(self, file: IO[bytes] | GzipFile, path: Path, most: int) -> None:
        self.file, self.path, self.most, self.left = file, path, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self.file.read(len(buffer))
        self.left -= len(data)
        if self.left < 0:
            raise _too_large(self.path, f"its contents take more than {_shown(self.most)}", self.most)
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def our_errors(path: Path, kind: str, *also: type[Exception]) -> Iterator[None]:
    """What can be wrong with a file of people's rows, as one line that says what to do; ``also`` is a parser's own."""
    import pandas as pd

    try:
        yield
    except NasbotError:
        raise
    except UnicodeDecodeError:
        raise DataError(f"{path}: text in an unknown encoding; save it as {kind} in UTF-8") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path}: empty; expected a line with the names of the columns, then rows") from None
    except (MemoryError, RecursionError) as error:
        raise _no_memory(path, error) from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or ' '.join(str(error).split())[:160]}") from None
    except (EOFError, zlib.error) as error:
        raise FileError(f"{path}: cannot be read: {error}") from None
    except _SLIPS as error:
        if "out of memory" in str(error):
            raise _no_memory(path, error) from None
        raise DataError(f"{path}: not {kind}: {' '.join(str(error).split())[:160]}") from None


def _no_memory(path: Path, error: Exception) -> DataError:
    if isinstance(error, RecursionError):
        return DataError(f"{path}: lists or objects are nested too deeply; expected one value in each column")
    return DataError(f"{path}: there is not enough memory to read it; take a sample of the rows, or fewer columns")


def _too_large(path: Path, what: str, most: int) -> DataError:
    return DataError(
        f"{path}: {what} in memory, from {_shown(path.stat().st_size)}; expected at most {_shown(most)} from a file of "
        "this size. If you trust it, unpack it or save it as plain CSV, or take a sample"
    )


def _shown(n: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} bytes"

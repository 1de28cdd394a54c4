"""People's files: CSV, Parquet, NPZ, and folders of images. A mistake is one line that says what to do."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot.data.tables import MAX_INPUTS, check_column, listed
from nasbot.errors import DataError, FileError

if TYPE_CHECKING:
    import pandas as pd

TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET = (".parquet", ".pq")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
MISSING_WORDS = ("?",)  # beside pandas' own: "", NA, NaN, null, …
MAX_COLUMNS = 20 * MAX_INPUTS  # read at all
MAX_PIXELS = 2**31  # of all images of a folder


def read(path: Path, target: str | None) -> tuple[Any, Any, str]:
    """Inputs, target and a name for them. Raises FileError or DataError."""
    if not path.exists():
        raise FileError(f"{path}: no such file or folder")
    if path.is_dir():
        if target is not None:
            raise DataError(f"{path} is a folder of images: its folders are the classes, a target cannot be named")
        images, labels = read_images(path)
        return images, labels, path.resolve().name
    kind = path.name.lower()
    name = path.name.split(".")[0] or path.name
    if kind.endswith(".npz"):
        X, y = npz_arrays(path, ("X", target or "y"))
        return X, y, name
    if kind.endswith(PARQUET):
        frame = _parquet(path)
    elif kind.endswith(TEXT):
        frame = _csv(path)
    else:
        raise DataError(
            f"{path}: unknown kind of file; expected CSV ({', '.join(TEXT[:3])}), Parquet, NPZ, or a folder of images "
            "with a folder for each class (a spreadsheet can be saved as CSV)"
        )
    columns = [str(column) for column in frame.columns]
    if target is None:
        raise DataError(f"{path}: which column is to be predicted? Name it as the target; there are {listed(columns)}")
    check_column(target, columns, "target")
    if len(columns) < 2:
        raise DataError(f"{path}: {target!r} is the only column; expected others to predict it from")
    if not len(frame):
        raise DataError(f"{path}: there is a header, but no rows")
    frame.columns = columns
    return frame.drop(columns=[target]), frame[target], name


def _csv(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        separator, columns = header_of(path)
        if separator != "\t":
            columns = [column.strip().strip('"') for column in columns]
        if len(columns) > MAX_COLUMNS:
            raise DataError(f"{path}: {len(columns):,} columns; expected at most {MAX_COLUMNS:,}")
        if len(columns) > 1 and all(_reads_as_number(column) for column in columns):
            raise DataError(f"{path}: the first line holds numbers; expected the names of the columns there")
        if len(set(columns)) != len(columns):
            twice = next(column for i, column in enumerate(columns) if column in columns[:i])
            raise DataError(f"{path}: two columns are called {twice!r}; each needs a name of its own")
        frame = pd.read_csv(
            path, sep=separator, na_values=list(MISSING_WORDS), encoding="utf-8-sig", low_memory=False, index_col=False
        )
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
    frame.columns = [str(column).strip() for column in frame.columns]
    return frame


def header_of(path: Path) -> tuple[str, list[str]]:
    """The separator, by what the first line has most of, and the names in it."""
    import gzip

    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        line = file.readline().decode("utf-8-sig").rstrip("\r\n")
    if "\0" in line:
        raise DataError(f"{path}: not text in UTF-8; save it as CSV in UTF-8")
    separator = max((",", ";", "\t"), key=line.count)
    return separator, line.split(separator)


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd
    import pyarrow
    import pyarrow.parquet

    try:
        n = len(pyarrow.parquet.read_schema(path).names)
        if n > MAX_COLUMNS:
            raise DataError(f"{path}: {n:,} columns; expected at most {MAX_COLUMNS:,}")
        return pd.read_parquet(path)
    except (pyarrow.ArrowException, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not a Parquet file: {' '.join(str(error).split())[:160]}") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None


def npz_arrays(path: Path, wanted: Sequence[str]) -> list[np.ndarray]:
    """The arrays of these names; raises FileError or DataError."""
    try:
        if not zipfile.is_zipfile(path):
            raise DataError(f"{path}: not an NPZ file; np.savez(path, X=X, y=y) writes one")
        with np.load(path, allow_pickle=False) as arrays:
            names = list(arrays.files)
            for name in wanted:
                if name not in names:
                    expected = "X and the target" if len(wanted) > 1 else name
                    raise DataError(f"{path}: no array {name[:60]!r}; expected {expected}, got {listed(names)}")
            return [arrays[name] for name in wanted]
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        if isinstance(error, DataError):
            raise
        if "Object arrays" in str(error):
            raise DataError(f"{path}: holds Python objects, which nasbot does not read; save plain arrays") from None
        raise DataError(f"{path}: not an NPZ file: {str(error)[:120]}") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None


def read_images(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """All pictures below the folder as (n, height, width[, 3]) bytes, and the name of the folder each lies in."""
    classes = sorted(place for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))
    found = [(file, place.name) for place in classes for file in _pictures(place)]
    if not found:
        raise DataError(
            f"{folder}: no images; expected a folder for each class with pictures in it ({', '.join(PICTURES[:3])}, …)"
        )
    if len(classes) < 2:
        raise DataError(f"{folder}: the only class is {classes[0].name!r}; expected a folder for each of several")
    images = _stacked([file for file, _ in found])
    return images, np.array([label for _, label in found])


def _pictures(place: Path) -> list[Path]:
    return sorted(file for file in place.rglob("*") if file.suffix.lower() in PICTURES and file.is_file())


def _stacked(files: Sequence[Path]) -> np.ndarray:
    first = _picture(files[0], grey=False)
    grey = all(_is_grey(file) for file in files)
    height, width = first.shape[:2]
    if height * width * len(files) > MAX_PIXELS:
        raise DataError(
            f"{len(files):,} images of {height} x {width} pixels are too many for memory; make them smaller first"
        )
    stack = np.empty((len(files), height, width) if grey else (len(files), height, width, 3), dtype=np.uint8)
    for i, file in enumerate(files):
        image = _picture(file, grey=grey)
        if image.shape[:2] != (height, width):
            raise DataError(
                f"{file}: {image.shape[0]} x {image.shape[1]} pixels, others have {height} x {width}; "
                "bring all images to one size first"
            )
        stack[i] = image
    return stack


def _is_grey(file: Path) -> bool:
    from PIL import Image

    try:
        with Image.open(file) as image:
            return image.mode in ("1", "L")
    except (OSError, ValueError, SyntaxError):
        raise DataError(f"{file}: cannot be read as an image") from None


def _picture(file: Path, *, grey: bool) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(file) as image:
            return np.asarray(image.convert("L" if grey else "RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise DataError(f"{file}: cannot be read as an image") from None

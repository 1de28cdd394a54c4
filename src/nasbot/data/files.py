"""People's files: tables as text, Excel, JSON, Parquet, Feather, NPZ, and folders of images.

A mistake is one line that says what to do.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot.data.splitting import checked_shares, split_rows
from nasbot.data.tables import MAX_INPUTS, check_column, listed
from nasbot.data.text_tables import MISSING_WORDS, TEXT, is_text, numbers_in_text, read_text
from nasbot.errors import DataError, FileError

if TYPE_CHECKING:
    import pandas as pd

ARROW = (".parquet", ".pq", ".feather")
EXCEL = (".xlsx", ".xlsm")
JSON = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
MAX_COLUMNS = 20 * MAX_INPUTS  # read at all
MAX_PIXELS = 2**31  # of all images of a folder


def read(path: Path, target: str | Sequence[str] | None) -> tuple[Any, Any, str]:
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
        if not (target is None or isinstance(target, str)):
            raise DataError(f"{path}: expected one target, an array of the file; it may have several columns")
        X, y = npz_arrays(path, ("X", target or "y"))
        return X, y, name
    frame = read_table(path)
    return *_divided(frame, path, target), name


def read_parts(
    path: Path,
    target: str | Sequence[str] | None,
    valid: str | Path | None,
    test: str | Path | None,
    options: Mapping[str, Any],
) -> tuple[Any, Any, str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The rows of several files as one table, its name, and which rows are for training, validation and test."""
    import pandas as pd

    frames = [read_table(path)]
    for other in (valid, test):
        frame = frames[0].iloc[:0] if other is None else read_table(Path(other))
        if missing := [str(name) for name in frames[0].columns if name not in frame.columns]:
            raise DataError(f"{other}: no column {missing[0]!r}; expected the columns of {path}")
        frames.append(frame[list(frames[0].columns)])
    counts = [len(frame) for frame in frames]
    first, others = np.arange(counts[0]), np.arange(counts[0], sum(counts))
    in_valid, in_test = np.split(others, [counts[1]])
    if valid is None:
        train, held, _ = checked_shares(options.get("split", (0.6, 0.2, 0.2)))
        shares = (train / (train + held), held / (train + held), 0.0)
        first, in_valid, _ = split_rows(counts[0], shares, seed=options.get("seed", 0))
    X, y = _divided(pd.concat(frames, ignore_index=True), path, target)
    return X, y, path.name.split(".")[0] or path.name, (first, in_valid, in_test)


def _divided(frame: pd.DataFrame, path: Path, target: str | Sequence[str] | None) -> tuple[Any, Any]:
    """Inputs and target: one column, or several."""
    columns = [str(column) for column in frame.columns]
    if not target:
        raise DataError(f"{path}: which column is to be predicted? Name it as the target; there are {listed(columns)}")
    names = [target] if isinstance(target, str) else list(target)
    for name in names:
        check_column(name, columns, "target")
    if len(columns) <= len(names):
        raise DataError(f"{path}: {names[0]!r} is the only column; expected others to predict it from")
    if not len(frame):
        raise DataError(f"{path}: there is a header, but no rows")
    frame.columns = columns
    return frame.drop(columns=names), frame[names[0]] if len(names) == 1 else frame[names]


def read_table(path: Path) -> pd.DataFrame:
    """A file of rows and columns, by the end of its name. Raises FileError or DataError."""
    if not path.exists():
        raise FileError(f"{path}: no such file or folder")
    kind = path.name.lower()
    if is_text(kind):
        return read_text(path, most_columns=MAX_COLUMNS)
    if kind.endswith(ARROW):
        return _arrow(path)
    if kind.endswith(EXCEL):
        return _excel(path)
    if kind.endswith(JSON):
        return _json(path)
    raise DataError(
        f"{path}: unknown kind of file; expected CSV ({', '.join(TEXT[:3])}, also .gz or .zip), Excel (.xlsx), "
        "JSON lines, Parquet, Feather, NPZ, or a folder of images with a folder for each class "
        "(other spreadsheets can be saved as CSV)"
    )


def arrow_for(path: Path) -> Any:
    """The package pyarrow, with what reads this file; DataError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            f"{path}: Parquet and Feather files need pyarrow: install nasbot with its extra, nasbot[parquet], or save "
            "the table as CSV"
        ) from None
    return pyarrow


def _arrow(path: Path) -> pd.DataFrame:
    import pandas as pd

    pyarrow = arrow_for(path)
    is_feather = path.name.lower().endswith(".feather")
    try:
        if is_feather:
            return pd.DataFrame(pyarrow.feather.read_feather(path))
        n = len(pyarrow.parquet.read_schema(path).names)
        if n > MAX_COLUMNS:
            raise DataError(f"{path}: {n:,} columns; expected at most {MAX_COLUMNS:,}")
        return pd.read_parquet(path)
    except (pyarrow.ArrowException, ValueError) as error:
        if isinstance(error, DataError):
            raise
        what = "Feather" if is_feather else "Parquet"
        raise DataError(f"{path}: not a {what} file: {' '.join(str(error).split())[:160]}") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None


def _excel(path: Path) -> pd.DataFrame:
    """The first sheet."""
    import pandas as pd

    try:
        frame = pd.read_excel(path, na_values=list(MISSING_WORDS), engine="openpyxl")
    except ImportError:
        raise DataError(
            f"{path}: Excel files need openpyxl: install nasbot with its extra, nasbot[excel], or save the sheet as CSV"
        ) from None
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not an Excel file (.xlsx): {' '.join(str(error).split())[:120]}") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not frame.shape[1]:
        raise DataError(f"{path}: the first sheet is empty; expected a row with the names of the columns, then rows")
    return _with_numbers(frame)


def _json(path: Path) -> pd.DataFrame:
    """An object for each row: one in each line, or a list of them."""
    import gzip

    import pandas as pd

    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            text = file.read().decode("utf-8-sig").strip()
        rows = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    except UnicodeDecodeError:
        raise DataError(f"{path}: not text in UTF-8; save it in UTF-8") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON lines: {str(error)[:120]}; expected an object in each line") from None
    except (OSError, EOFError) as error:
        raise FileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: expected an object for each row, one in each line or a list of them")
    return _with_numbers(pd.DataFrame(rows))


def _with_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of numbers that are written as text, as numbers."""
    for name in frame.columns:
        if (numbers := numbers_in_text(frame[name], ".")) is not None:
            frame[name] = numbers
    return frame


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

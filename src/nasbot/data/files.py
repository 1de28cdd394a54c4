"""People's files: tables as text, Excel, JSON, Parquet, Feather, NPZ, and folders of images.

A mistake is one line that says what to do.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import struct
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot.data.arrow_files import FEATHER, PARQUET, read_arrow
from nasbot.data.bounds import (
    allowance,
    bounded,
    check_bytes,
    check_cells,
    check_is_there,
    check_members,
    our_errors,
)
from nasbot.data.splitting import Indices, checked_shares, split_rows
from nasbot.data.tables import MAX_INPUTS, check_column, listed
from nasbot.data.text_tables import MISSING_WORDS, TEXT, is_text, numbers_in_text, read_text
from nasbot.errors import DataError, FileError, OptionError

if TYPE_CHECKING:
    import pandas as pd
    from PIL import Image

ARROW = (*PARQUET, FEATHER)
EXCEL = (".xlsx", ".xlsm")
JSON = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
MAX_COLUMNS = 20 * MAX_INPUTS  # read at all
PART_NAMES = (("train", "training"), ("val", "valid", "validation"), ("test",))
SHARES = (0.6, 0.2, 0.2)
MAX_PIXELS = 2**31  # of all images of a folder, times channels
MAX_SHEET_ROWS = 2**20  # Excel's own limit
NPY_HEADER = 2**16  # bytes
# Where the rows and cells of a sheet say that they are.
_PLACE = re.compile(
    rb"""<(?:\w+:)?(?:(?P<row>row)\b(?:[^<>]*?\sr=["'](?P<number>\d+))?|c\b[^<>]*?\sr=["'](?P<column>[A-Z]{1,3})\d)"""
)
MAX_TAG = 2**20  # bytes


def read(path: Path, target: str | Sequence[str] | None) -> tuple[Any, Any, str]:
    """Inputs, target and a name for them. Raises FileError or DataError."""
    check_is_there(path)
    if path.is_dir():
        if target is not None:
            raise DataError(f"{path} is a folder of images: its folders are the classes, a target cannot be named")
        images, labels, _ = read_images(path)
        return images, labels, path.resolve().name
    kind = path.name.lower()
    name = path.name.split(".")[0] or path.name
    if kind.endswith(".npz"):
        if not (target is None or isinstance(target, str)):
            raise DataError(f"{path}: expected one target, an array of the file; it may have several columns")
        X, y = npz_arrays(path, ("X", target or "y"))
        return X, y, name if target in (None, "y") else f"{name}-{target}"
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
        if other is not None:
            _check_kinds(path, frames[0], Path(other), frame, options.get("kinds") or {})
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


def _check_kinds(path: Path, first: pd.DataFrame, other: Path, frame: pd.DataFrame, kinds: Mapping[str, str]) -> None:
    """DataError where a column of numbers holds words in the other file: together they would be categories."""
    for name in (name for name in first.columns if name not in kinds):
        if first[name].dtype.kind in "biuf" and frame[name].dtype.kind not in "biuf" and not frame[name].isna().all():
            raise DataError(
                f"{other}: column {str(name)!r} holds {str(frame[name].dropna().iloc[0])[:40]!r}; expected numbers, as "
                f"in {path} (--as {name}=category takes both for categories)"
            )


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
    check_is_there(path)
    kind = path.name.lower()
    if is_text(kind):
        return read_text(path, most_columns=MAX_COLUMNS)
    if kind.endswith(ARROW):
        return read_arrow(path, most_columns=MAX_COLUMNS)
    if kind.endswith(EXCEL):
        return _excel(path)
    if kind.endswith(JSON):
        return _json(path)
    raise DataError(
        f"{path}: unknown kind of file; expected CSV ({', '.join(TEXT[:3])}, also .gz or .zip), Excel (.xlsx), "
        "JSON lines, Parquet, Feather, NPZ, or a folder of images with a folder for each class "
        "(other spreadsheets can be saved as CSV)"
    )


def _excel(path: Path) -> pd.DataFrame:
    """The first sheet."""
    import pandas as pd

    try:
        import openpyxl  # noqa: F401  # pandas imports it
    except ImportError:
        raise DataError(
            f"{path}: Excel files need openpyxl: install nasbot with its extra, nasbot[excel], or save the sheet as CSV"
        ) from None
    with our_errors(path, "an Excel file (.xlsx)"):
        with zipfile.ZipFile(path) as archive:
            check_members(path, archive)
            _check_sheets(path, archive)
        frame = pd.read_excel(path, na_values=list(MISSING_WORDS), engine="openpyxl")
    if not frame.shape[1]:
        raise DataError(f"{path}: the first sheet is empty; expected a row with the names of the columns, then rows")
    return _with_numbers(frame)


def _check_sheets(path: Path, archive: zipfile.ZipFile) -> None:
    """DataError where cells far to the right or below, with nothing before them, make a small file a large table."""
    for member in archive.infolist():
        if not member.filename.lower().endswith(".xml"):
            continue
        rest, n_rows, n_columns = b"", 0, 0
        with archive.open(member) as file:
            while block := file.read(2**20):
                text = rest + block
                last = max(text.rfind(b"<"), 0)  # a tag that the next block may end
                text, rest = text[:last], text[last : last + MAX_TAG]
                for found in _PLACE.finditer(text):
                    if found["row"]:
                        n_rows = max(n_rows + 1, int((found["number"] or b"0")[:12]))
                    else:
                        n_columns = max(n_columns, _column_number(found["column"]))
                if n_rows > MAX_SHEET_ROWS:
                    raise DataError(f"{path}: a row beyond the {MAX_SHEET_ROWS:,} that a sheet can have")
                if len(rest) == MAX_TAG and b">" not in rest:
                    raise DataError(f"{path}: not an Excel file (.xlsx): a tag of more than {MAX_TAG:,} bytes")
                check_cells(path, n_rows, n_columns)  # all rows are made as wide as the widest


def _column_number(letters: bytes) -> int:
    """1 for A, 27 for AA."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _json(path: Path) -> pd.DataFrame:
    """An object for each row: one in each line, or a list of them."""
    import pandas as pd

    with our_errors(path, "JSON lines (an object in each line)"):
        is_packed = path.suffix.lower() == ".gz"
        with gzip.open(path, "rb") if is_packed else path.open("rb") as file, bounded(file, path) as content:
            text = content.read().decode("utf-8-sig").strip()
        rows = [_flat(row) if isinstance(row, dict) else row for row in _json_rows(text)]
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise DataError(f"{path}: expected an object for each row, one in each line or a list of them")
        names = {name for row in rows for name in row}
        if len(names) > MAX_COLUMNS:
            raise DataError(f"{path}: {len(names):,} columns; expected at most {MAX_COLUMNS:,}")
        check_cells(path, len(rows), len(names))
        frame = pd.DataFrame(rows)
    return _with_numbers(frame)


def _json_rows(text: str) -> list[Any]:
    """The rows of JSON lines, of a list, or of one object: lists by column, pandas' own forms, or a list inside."""
    if text.startswith("["):
        rows = json.loads(text)
        return rows if isinstance(rows, list) else [rows]
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].strip() != "{":
        return [json.loads(line) for line in lines]
    table = json.loads(text)
    if not isinstance(table, dict) or not table:
        return [table]
    values = list(table.values())
    if isinstance(table.get("columns"), list) and isinstance(table.get("data"), list):
        return [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    within = [value for value in values if isinstance(value, list) and value and isinstance(value[0], dict)]
    if len(within) == 1:
        return list(within[0])
    if all(isinstance(value, dict) and value.keys() == values[0].keys() for value in values):
        values = [list(value.values()) for value in values]
    if all(isinstance(value, list) for value in values):
        return [dict(zip(table, row, strict=True)) for row in zip(*values, strict=True)]
    return [table]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """{"at": {"lat": 1}} as {"at.lat": 1}: objects in a row are columns of their own."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= {f"{name}.{part}": one for part, one in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _with_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of numbers that are written as text, as numbers."""
    for name in frame.columns:
        if (numbers := numbers_in_text(frame[name], ".")) is not None:
            frame[name] = numbers
    return frame


def npz_arrays(path: Path, wanted: Sequence[str]) -> list[np.ndarray]:
    """The arrays of these names; raises FileError or DataError."""
    if not zipfile.is_zipfile(path):
        if not path.is_file():
            raise FileError(f"{path}: cannot be read: not a file")
        raise DataError(f"{path}: not an NPZ file; np.savez(path, X=X, y=y) writes one")
    with our_errors(path, "an NPZ file"), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        for name in wanted:
            if name not in names:
                expected = "X and the target" if len(wanted) > 1 else name
                raise DataError(f"{path}: no array {name[:60]!r}; expected {expected}, got {listed(names)}")
        members = [archive.namelist()[names.index(name)] for name in wanted]
        check_bytes(path, sum(_array_bytes(path, archive, member) for member in members), "its arrays")
        arrays = []
        for member in members:
            with archive.open(member) as file:
                arrays.append(np.lib.format.read_array(file, allow_pickle=False))
        return arrays


def _array_bytes(path: Path, archive: zipfile.ZipFile, member: str) -> int:
    """What an array takes, by its header: nothing of it is unpacked."""
    with archive.open(member) as file:
        start = io.BytesIO(file.read(NPY_HEADER))  # a header that is longer than this ends here, in a ValueError
    version = np.lib.format.read_magic(start)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(start)
    if dtype.hasobject:
        raise DataError(f"{path}: holds Python objects, which nasbot does not read; save plain arrays")
    if any(n < 0 for n in shape):
        raise DataError(f"{path}: not an NPZ file: an array of shape {shape}")
    return math.prod(shape) * dtype.itemsize


def read_images(
    folder: Path, *, size: int | None = None, shares: Sequence[float] = SHARES, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, Indices | None]:
    """All pictures below the folder as (n, height, width[, 3]) bytes, and the name of the folder each lies in.

    Where the folder holds ``train`` and ``val`` or ``test``, the classes are the folders in these, and the row numbers
    of the three parts come third; validation rows are taken from the training rows where there are none. ``size``
    brings all pictures to so many pixels in height and width.
    """
    if size is not None and (type(size) is not int or not 4 <= size <= 1024):
        raise OptionError(f"image_size: expected a whole number from 4 to 1024, got {str(size)[:40]}")
    inside = sorted(place for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))
    parts = _parts(inside)
    places = [inside] if parts is None else [_folders(part) for part in parts]
    found = [(file, place.name, i) for i, part in enumerate(places) for place in part for file in _pictures(place)]
    if not found:
        raise DataError(
            f"{folder}: no images; expected a folder for each class with pictures in it ({', '.join(PICTURES[:3])}, …)"
        )
    trained = sorted({name for _, name, i in found if i == 0})
    if len(trained) < 2:
        raise DataError(f"{folder}: the only class is {trained[0]!r}; expected a folder for each of several")
    if unknown := sorted({name for _, name, i in found if i} - set(trained)):
        raise DataError(
            f"{folder}: no training images of the class {unknown[0]!r}; expected some in {parts and parts[0]}"
        )
    images = _stacked([file for file, _, _ in found], size)
    labels = np.array([label for _, label, _ in found])
    if parts is None:
        return images, labels, None
    rows = [np.flatnonzero([i == part for _, _, i in found]) for part in range(3)]
    if not len(rows[1]):
        train, held, _ = checked_shares(shares)
        kept, chosen, _ = split_rows(len(rows[0]), (train / (train + held), held / (train + held), 0.0), seed=seed)
        rows = [rows[0][kept], rows[0][chosen], rows[2]]
    return images, labels, (rows[0], rows[1], rows[2])


def _parts(inside: Sequence[Path]) -> tuple[Path | None, Path | None, Path | None] | None:
    """The folders of training, validation and test pictures; None where the folder is not divided into these."""
    by_name = {place.name.lower(): place for place in inside}
    known = [next((by_name[name] for name in names if name in by_name), None) for names in PART_NAMES]
    if known[0] is None or len(inside) < 2 or set(by_name) - {name for names in PART_NAMES for name in names}:
        return None
    return known[0], known[1], known[2]


def _folders(part: Path | None) -> list[Path]:
    return [] if part is None else sorted(p for p in part.iterdir() if p.is_dir() and not p.name.startswith("."))


def _pictures(place: Path) -> list[Path]:
    return sorted(file for file in place.rglob("*") if file.suffix.lower() in PICTURES and file.is_file())


def _stacked(files: Sequence[Path], size: int | None) -> np.ndarray:
    headers = [_picture_header(file) for file in files]
    height, width = headers[0][:2] if size is None else (size, size)
    for file, (h, w, _) in zip(files, headers, strict=True):
        if size is None and (h, w) != (height, width):
            raise DataError(
                f"{file}: {h} x {w} pixels, others have {height} x {width}; --image-size 32 (image_size=32) brings all "
                "images to one size"
            )
    grey = all(is_grey for _, _, is_grey in headers)
    shape = (len(files), height, width) if grey else (len(files), height, width, 3)
    if math.prod(shape) > min(MAX_PIXELS, allowance(*files)):
        raise DataError(
            f"{len(files):,} images of {height} x {width} pixels are too many for memory; make them smaller first"
        )
    stack = np.empty(shape, dtype=np.uint8)
    for i, file in enumerate(files):
        stack[i] = _picture(file, grey=grey, size=size)
    return stack


def pictures_in(folder: Path) -> list[Path]:
    """All pictures of a folder and of those within it, by name; DataError where there are none."""
    found = _pictures(folder)
    if not found:
        raise DataError(f"{folder}: no images; expected pictures ({', '.join(PICTURES[:3])}, …) in it")
    return found


def read_pictures(files: Sequence[Path], shape: tuple[int, int, int]) -> np.ndarray:
    """Pictures as (n, height, width) grey or (n, height, width, 3); to a square shape they are scaled."""
    channels, height, width = shape
    if channels not in (1, 3):
        raise DataError(f"images: expected 1 or 3 channels, the model looks at {channels}")
    size = height if height == width else None
    images = [_picture(file, grey=channels == 1, size=size) for file in files]
    for file, image in zip(files, images, strict=True):
        if image.shape[:2] != (height, width):
            raise DataError(f"{file}: {image.shape[0]} x {image.shape[1]} pixels; expected {height} x {width}")
    return np.stack(images)


def _picture_header(file: Path) -> tuple[int, int, bool]:
    """Height, width, and whether it is grey; nothing is unpacked."""
    with _opened_picture(file) as image:
        return image.height, image.width, image.mode in ("1", "L")


def _picture(file: Path, *, grey: bool, size: int | None) -> np.ndarray:
    """The picture as bytes; what is transparent in it is white."""
    from PIL import Image

    with _opened_picture(file) as image:
        if "A" in image.getbands() or "transparency" in image.info:
            white = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(white, image.convert("RGBA"))
        plain = image.convert("L" if grey else "RGB")
        return np.asarray(plain if size is None else plain.resize((size, size), Image.Resampling.BILINEAR))


@contextmanager
def _opened_picture(file: Path) -> Iterator[Image.Image]:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # _stacked has a limit of its own
            opened = Image.open(file)
        with opened as image:
            yield image
    except Image.DecompressionBombError:
        raise DataError(f"{file}: too many pixels for memory; make it smaller first") from None
    except MemoryError:
        raise DataError(f"{file}: there is not enough memory to read it; make it smaller first") from None
    except (OSError, ValueError, SyntaxError, struct.error):
        raise DataError(f"{file}: cannot be read as an image") from None

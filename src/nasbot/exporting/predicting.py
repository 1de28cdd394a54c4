"""Predictions for a file of rows, a chunk at a time: as CSV, one line a row, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from nasbot.data.chunks import chunks
from nasbot.data.columns import CategoryColumn, DroppedColumn
from nasbot.data.files import pictures_in, read_pictures
from nasbot.data.preprocessing import Images, NumberTarget, Preprocessing, Table
from nasbot.data.tables import categories_of, listed
from nasbot.errors import DataError, OptionError
from nasbot.training.objective import computing_threads

if TYPE_CHECKING:
    import pandas as pd

    from nasbot.exporting.model_file import Model


PICTURES_AT_A_TIME = 256


@dataclass
class Notes:
    """What was noticed on the way."""

    rows: int = 0
    ignored: list[str] = field(default_factory=list)  # columns that the model does not know
    filled: list[str] = field(default_factory=list)  # columns that are not there, taken as gaps
    unknown: dict[str, tuple[int, str]] = field(default_factory=dict)  # by column: rows, and the first such value

    def lines(self) -> list[str]:
        """For people; nothing where all is as it was in training."""
        said = []
        if self.ignored:
            said.append(f"columns that the model does not know, ignored: {listed(self.ignored)}")
        if self.filled:
            said.append(f"columns that are not there, taken as gaps: {listed(self.filled)}")
        for name, (n, value) in self.unknown.items():
            said.append(
                f"column {name[:40]!r}: {n:,} of {self.rows:,} rows hold values without an input of their own, such as "
                f"{value[:40]!r}; they count as none of the known ones"
            )
        return said


def predict_file(
    model: Model, path: Path, out: TextIO, *, fill_missing: bool = False, coverage: float | None = None
) -> Notes:
    """Write the predictions for a CSV, Parquet or NPZ file, and return what was noticed.

    Args:
        model: with its preprocessing.
        path: of the rows; the target's column may be there or not. For a model of images also a folder of pictures.
        out: gets a header and one line a row: ``prediction`` (``prediction_NAME`` of several numbers), and for classes
            ``probability_CLASS``, one a class.
        fill_missing: take columns that are not there as gaps.
        coverage: also write ``prediction_low`` and ``prediction_high`` (``prediction_NAME_low``), which the truth lies
            between for this share of rows; see ``Model.predict_interval``.

    Raises:
        OptionError: where the model does not say what its data went through, or knows no such intervals.
        DataError: where columns are missing, or hold what they did not hold in training.
        FileError: where the file cannot be read.
    """
    preprocessing = model.preprocessing
    if preprocessing is None:
        raise OptionError("this model does not say what its data went through, so it predicts from no raw rows")
    notes = Notes()
    if path.is_dir() and isinstance(preprocessing.inputs, Images):
        return _predict_pictures(model, preprocessing.inputs, path, out, coverage)
    for chunk in chunks(path, text=_categories(preprocessing)):
        try:
            rows = _aligned(chunk, preprocessing, notes, fill_missing=fill_missing)
            with computing_threads(1):  # several would wait for each other at every small step
                predicted = _table(model, rows, coverage)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        predicted.to_csv(out, index=False, header=notes.rows == 0, lineterminator="\n")
        notes.rows += len(predicted)
    return notes


def _predict_pictures(model: Model, inputs: Images, folder: Path, out: TextIO, coverage: float | None) -> Notes:
    """The same for the pictures of a folder, with a column ``file`` that says which."""
    notes, files = Notes(), pictures_in(folder)
    for first in range(0, len(files), PICTURES_AT_A_TIME):
        some = files[first : first + PICTURES_AT_A_TIME]
        images = read_pictures(some, inputs.shape)
        if images.ndim == 4 and not inputs.channels_last:
            images = np.moveaxis(images, -1, 1)
        with computing_threads(1):
            predicted = _table(model, images, coverage)
        predicted.insert(0, "file", [str(file.relative_to(folder)) for file in some])
        predicted.to_csv(out, index=False, header=notes.rows == 0, lineterminator="\n")
        notes.rows += len(predicted)
    return notes


def _table(model: Model, rows: Any, coverage: float | None) -> pd.DataFrame:
    """The predictions of some rows, in the columns that are written."""
    import pandas as pd

    outputs = model.outputs(rows, exact=False)
    assert model.preprocessing is not None
    predicted, target = model.preprocessing.predicted(outputs), model.preprocessing.target
    bounds = () if coverage is None else model.bounds(predicted, coverage)
    if isinstance(target, NumberTarget):
        names = ["prediction"] if target.n_outputs == 1 else [f"prediction_{name}" for name in target.names]
        written = [f"{name}{end}" for end in ("", "_low", "_high")[: 1 + len(bounds)] for name in names]
        parts = [part.reshape(len(predicted), -1) for part in (predicted, *bounds)]
        return pd.DataFrame(np.concatenate(parts, axis=1), columns=written)
    odds = np.exp(outputs)
    shares = pd.DataFrame(
        odds / odds.sum(axis=1, keepdims=True), columns=[f"probability_{name}" for name in target.classes]
    )
    shares.insert(0, "prediction", predicted)
    return shares


def _aligned(chunk: Any, preprocessing: Preprocessing, notes: Notes, *, fill_missing: bool) -> Any:
    """The chunk with all columns that the model looks at; notes what is odd about it."""
    table = preprocessing.inputs
    if not isinstance(table, Table) or not hasattr(chunk, "columns"):
        return chunk
    names = list(chunk.columns)
    known = {column.name for column in table.columns}
    notes.ignored = [name for name in names if name not in known and name not in preprocessing.target.names]
    missing = [c.name for c in table.columns if not isinstance(c, DroppedColumn) and c.name not in names]
    if missing and not fill_missing:
        raise DataError(
            f"no column{'s' * (len(missing) > 1)} {listed(missing)}, which the model looks at; the columns are "
            f"{listed(names)} (--fill-missing takes them as gaps)"
        )
    if missing and len(missing) == sum(not isinstance(c, DroppedColumn) for c in table.columns):
        raise DataError(f"none of the columns that the model looks at is there: {listed(missing)}")
    notes.filled = missing
    for column, series in _of_categories(chunk, table):
        _count_unknown(column, series, notes)
    return chunk.assign(**dict.fromkeys(missing, np.nan)) if missing else chunk


def _of_categories(chunk: pd.DataFrame, table: Table) -> Iterator[tuple[CategoryColumn, Any]]:
    for column in table.columns:
        if isinstance(column, CategoryColumn) and column.name in chunk.columns:
            yield column, chunk[column.name]


def _count_unknown(column: CategoryColumn, series: Any, notes: Notes) -> None:
    values = set(column.values)
    others = [value for value in categories_of(series, values) if value is not None and value not in values]
    if others:
        n, first = notes.unknown.get(column.name, (0, others[0]))
        notes.unknown[column.name] = n + len(others), first


def _categories(preprocessing: Preprocessing) -> Sequence[str]:
    inputs = preprocessing.inputs
    return [c.name for c in inputs.columns if isinstance(c, CategoryColumn)] if isinstance(inputs, Table) else ()

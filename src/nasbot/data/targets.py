"""What is to be predicted: a number or a class, inferred from the values and said aloud."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nasbot.data.dates import is_date
from nasbot.data.preprocessing import Class, ClassTarget, NumberTarget
from nasbot.data.tables import MOST_SCALE, array_of, is_number, too_far_apart
from nasbot.errors import DataError, OptionError

TASKS = ("regression", "classification")
MAX_CLASSES = 1000
BEYOND = 0.1  # of the training targets' range, that predictions may lie beyond it at either end
CLASSES_OF_WHOLE_NUMBERS = 20  # whole numbers with no more different values than this are taken for classes


def target_of(raw: Any, train: np.ndarray, *, task: str | None, names: Sequence[str]) -> NumberTarget | ClassTarget:
    """The target's kind (inferred where ``task`` is None), with scales from the rows ``train``.

    Raises DataError for gaps, dates, a constant, one class, text where numbers are wanted, and numbers without end
    where classes are.
    """
    if task is not None and task not in TASKS:
        raise OptionError(f"task: expected {' or '.join(TASKS)}, got {str(task)[:40]!r}")
    values = checked_target(raw)
    name = ", ".join(names)
    if (task or inferred_task(values)) == "regression":
        return _number_target(values, train, names)
    if values.ndim == 2:
        raise DataError(f"target: {values.shape[1]} columns; expected one column of classes")
    return _class_target(values, name)


def checked_target(raw: Any) -> np.ndarray:
    """The target as an array (n,) or (n, several) without gaps."""
    import pandas as pd

    if isinstance(raw, pd.DataFrame | pd.Series):
        columns = [raw] if isinstance(raw, pd.Series) else [raw.iloc[:, i] for i in range(raw.shape[1])]
        if any(is_date(column) for column in columns):
            raise DataError("target: dates cannot be predicted as they are; turn them into numbers (days since a day)")
        raw = raw.to_numpy(dtype=object) if any(c.dtype.kind not in "biuf" for c in columns) else raw.to_numpy()
    values = array_of(raw)
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or values.size == 0:
        raise DataError(f"target: expected one value for each row, got an array of shape {values.shape}")
    if values.dtype.kind == "M" or (values.ndim == 1 and is_date(pd.Series(values))):
        raise DataError("target: dates cannot be predicted as they are; turn them into numbers (days since a day)")
    gaps = pd.isna(values)
    if gaps.any():
        rows = int(np.asarray(gaps).reshape(len(values), -1).any(axis=1).sum())
        raise DataError(
            f"target: {rows:,} of {len(values):,} rows have no value; remove these rows, or say --drop-unlabelled "
            "(drop_unlabelled=True)"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError("target: infinite values; remove or replace these rows first")
    return _as_numbers(values) if values.dtype.kind in "OUS" else values


def labelled(raw: Any) -> np.ndarray:
    """The numbers of the rows that have a target; DataError where none has."""
    import pandas as pd

    given = raw if isinstance(raw, pd.DataFrame | pd.Series) else array_of(raw)
    known = np.flatnonzero(~np.asarray(pd.isna(given)).reshape(len(given), -1).any(axis=1))
    if not len(known):
        raise DataError(f"target: none of {len(given):,} rows has a value")
    return known


def inferred_task(values: np.ndarray) -> str:
    """Text and truth values are classes, so are few different whole numbers; all other numbers are numbers."""
    if values.ndim == 2:
        return "regression"
    if values.dtype.kind not in "iuf":
        return "classification"
    if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
        return "regression"
    return "classification" if len(np.unique(values)) <= CLASSES_OF_WHOLE_NUMBERS else "regression"


def _as_numbers(values: np.ndarray) -> np.ndarray:
    """Objects that are all numbers (a column with gaps removed, say) as numbers, all others as they were."""
    import pandas as pd

    from nasbot.data.text_tables import clear_numbers_in_text

    flat = values.reshape(-1)
    kinds = {type(value) for value in flat}
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return values.astype(bool)
    if all(issubclass(kind, int | np.integer) and not issubclass(kind, bool) for kind in kinds):
        return values.astype(np.int64)
    if all(issubclass(kind, int | float | np.integer | np.floating) and not issubclass(kind, bool) for kind in kinds):
        return values.astype(np.float64)
    if kinds == {str} and values.ndim == 1 and not all(map(is_number, flat)):  # "$1,234.56"; plain digits are classes
        clear = clear_numbers_in_text(pd.Series(flat))
        if clear is not None and clear.nunique() > CLASSES_OF_WHOLE_NUMBERS:
            return clear.to_numpy(dtype=np.float64)
    return values


def _number_target(values: np.ndarray, train: np.ndarray, names: Sequence[str]) -> NumberTarget:
    if values.dtype.kind not in "biuf":
        text = next((value for value in values.reshape(-1) if not isinstance(value, int | float)), values.flat[0])
        raise DataError(
            f"target {', '.join(names)!r}: {str(text)[:40]!r} is not a number, so it cannot be predicted as one; "
            "classification predicts text"
        )
    numbers = values.astype(np.float64).reshape(len(values), -1)
    if np.isinf(numbers).any():
        raise DataError("target: infinite values; remove or replace these rows first")
    labels = tuple(names) if len(names) == numbers.shape[1] else tuple(f"y{i}" for i in range(numbers.shape[1]))
    part = numbers[train]
    for label, column in zip(labels, part.T, strict=True):
        if column.min() == column.max():
            raise DataError(f"target {label!r}: always {column[0]:g} in the training rows; there is nothing to learn")
    lows, highs = part.min(axis=0), part.max(axis=0)
    beyond = BEYOND * (highs - lows)
    limits = tuple((float(low), float(high)) for low, high in zip(lows - beyond, highs + beyond, strict=True))
    with np.errstate(over="ignore", invalid="ignore"):
        centres, scales = tuple(map(float, part.mean(axis=0))), tuple(map(float, part.std(axis=0)))
    for label, scale in zip(labels, scales, strict=True):
        if not 1 / MOST_SCALE < scale < MOST_SCALE:
            raise DataError(f"target {label!r}: {too_far_apart(scale)}")
    return NumberTarget(labels, centres, scales, limits)


def _class_target(values: np.ndarray, name: str) -> ClassTarget:
    if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
        raise DataError(
            f"target {name!r}: {len(np.unique(values)):,} different numbers such as {values[0]:g} are no classes; "
            "regression predicts numbers"
        )
    if values.dtype.kind == "O":
        values = np.array([str(value) for value in values])
    classes: list[Class] = [value.item() for value in np.unique(values)]
    if len(classes) < 2:
        raise DataError(f"target {name!r}: every row is {str(classes[0])[:40]!r}; there is one class, expected two")
    if len(classes) > MAX_CLASSES or len(classes) > 0.5 * len(values):
        raise DataError(
            f"target {name!r}: {len(classes):,} different values in {len(values):,} rows are no classes to learn; "
            "is this the right column?"
        )
    return ClassTarget(name, tuple(classes))

"""What differs between two data sets, for people who go on with a study on other data than they think."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nasbot.data.parts import PARTS, Dataset, Part
from nasbot.data.preprocessing import ClassTarget, Table
from nasbot.data.tables import listed


def differences(before: Dataset, now: Dataset) -> list[str]:
    """In words, the most telling first: target, columns, rows, how they are divided, weights. [] where nothing does."""
    found = [*_target(before, now), *_columns(before, now)]
    if not found:  # else what networks see has other inputs, so that rows cannot be compared
        found += _rows(before, now)
    return [*found, *_weights(before, now)]


def _target(before: Dataset, now: Dataset) -> Iterator[str]:
    old, new = before.preprocessing, now.preprocessing
    was, now_is = (", ".join(given.target.names) for given in (old, new))
    if was != now_is:
        yield f"the target was {was!r}, now {now_is!r}"
    if old.is_classification != new.is_classification:
        words = {True: "classes", False: "numbers"}
        yield f"it was predicted as {words[old.is_classification]}, now as {words[new.is_classification]}"
    elif isinstance(old.target, ClassTarget) and old.classes != new.classes:
        was, are = (listed([*map(str, given.classes)], most=6) for given in (old, new))
        yield f"the classes were {was}, now {are}"


def _columns(before: Dataset, now: Dataset) -> Iterator[str]:
    old, new = before.preprocessing.inputs, now.preprocessing.inputs
    if not isinstance(old, Table) or not isinstance(new, Table):
        if before.input_shape != now.input_shape:
            yield f"inputs were of shape {before.input_shape}, now {now.input_shape}"
        return
    was = {column.name: column for column in old.columns}
    is_now = {column.name: column for column in new.columns}
    if gone := [name for name in was if name not in is_now]:
        yield f"columns that are no longer there: {listed(gone, most=6)}"
    if added := [name for name in is_now if name not in was]:
        yield f"columns that were not there: {listed(added, most=6)}"
    kinds = [name for name in was if name in is_now and _kind(was[name]) != _kind(is_now[name])]
    if kinds:
        yield f"columns taken for something else than before: {listed(kinds, most=6)}"


def _kind(column: object) -> tuple[str, int]:
    return type(column).__name__, getattr(column, "width", 0)


def _rows(before: Dataset, now: Dataset) -> Iterator[str]:
    counts = [[len(getattr(data, part)) for part in PARTS] for data in (before, now)]
    if sum(counts[0]) != sum(counts[1]):
        yield f"there were {sum(counts[0]):,} rows, now {sum(counts[1]):,}"
        return
    if counts[0] != counts[1]:
        was, are = (", ".join(f"{n:,}" for n in given) for given in counts)
        yield f"divided otherwise: {was} rows for training, validation and test, now {are}"
        return
    other = sum(int((_prints(getattr(before, part)) != _prints(getattr(now, part))).sum()) for part in PARTS)
    if other:
        yield (
            f"{other:,} of {sum(counts[0]):,} rows differ, or the same rows are divided otherwise "
            "(another seed, group or time column)"
        )


def _prints(part: Part) -> np.ndarray:
    """A number for each row, in ascending order: equal for equal rows in any order, as far as single precision goes."""
    if not len(part):  # estimators have no test rows
        return np.zeros(0)
    flat = np.asarray(part.X, dtype=np.float64).reshape(len(part), -1)
    y = np.asarray(part.y, dtype=np.float64).reshape(len(part), -1)
    weights = np.cos(np.arange(1, flat.shape[1] + y.shape[1] + 1))
    return np.sort(np.round(np.concatenate([flat, y], axis=1) @ weights, 4))


def _weights(before: Dataset, now: Dataset) -> Iterator[str]:
    if (before.train.weights is None) != (now.train.weights is None):
        yield "rows had weights" if now.train.weights is None else "rows had no weights"
    if before.class_weights != now.class_weights:
        yield f"class weights were {before.class_weights or 'none'}, now {now.class_weights or 'none'}"

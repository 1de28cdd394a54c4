"""What a search would make of a table, column by column, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot._typing import Json
from nasbot.data.columns import CategoryColumn, Column, DateColumn, DroppedColumn, NumberColumn
from nasbot.data.metrics import IMBALANCED
from nasbot.data.preprocessing import ClassTarget
from nasbot.data.splitting import checked_shares, split_rows
from nasbot.data.tables import check_column, checked_kinds, column_of, listed, split_names
from nasbot.data.targets import checked_target, target_of
from nasbot.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

NEAR_COPY = 0.9999  # a correlation with the target from which a column is flagged
SHARES = checked_shares((0.6, 0.2, 0.2))


@dataclass(frozen=True)
class Inspected:
    """One column: what it was taken for, what becomes of it, and what to know about it."""

    column: str
    taken_for: str
    becomes: str
    note: str = ""

    def to_dict(self) -> dict[str, Json]:
        """As plain data."""
        return asdict(self)


def inspected(
    frame: pd.DataFrame,
    target: str | None = None,
    *,
    drop: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
) -> list[Inspected]:
    """Each column of the table in its order, prepared as for a search with the default split."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    names = list(frame.columns)
    drop = split_names(drop, names)
    for name in (*drop, *([] if target is None else [target])):
        check_column(name, names, "inspect")
    said = checked_kinds(kinds or {}, names)
    train = split_rows(len(frame), SHARES, seed=0)[0]
    truth = None if target is None else _codes(frame[target])
    return [
        _target(name, frame[name], train)
        if name == target
        else Inspected(name, "-", "nothing", "left out")
        if name in drop
        else _input(name, frame[name], train, truth, said.get(name))
        for name in names
    ]


def _input(
    name: str, series: pd.Series[Any], train: np.ndarray, truth: np.ndarray | None, kind: str | None
) -> Inspected:
    try:
        column = column_of(name, series, train, kind)
    except DataError as error:
        return Inspected(name, "?", "refused", str(error))
    taken_for, becomes, note = _described(column)
    notes = [note] if note else []
    if truth is not None and not isinstance(column, DroppedColumn) and _is_near_copy(series, truth):
        notes.append(f"nearly a copy of the target: is it known when predicting? --drop {name!r} leaves it out")
    return Inspected(name, taken_for, becomes, "; ".join(notes))


def _described(column: Column) -> tuple[str, str, str]:
    if isinstance(column, DroppedColumn):
        return column.reason.partition(":")[0], "nothing (dropped)", column.reason
    gaps = "gaps are filled and marked" if column.marks_gaps else ""
    inputs = f"{column.width} input{'s' * (column.width != 1)}"
    if isinstance(column, NumberColumn):
        return "number", inputs, gaps
    if isinstance(column, CategoryColumn):
        return "category", inputs, "; ".join(filter(None, [listed(column.values, most=4), gaps]))
    assert isinstance(column, DateColumn)
    written = {"ymd": "", "dmy": "read as day, month, year", "mdy": "read as month, day, year"}[column.order]
    return "date", f"{inputs}: {', '.join(column.parts)}", "; ".join(filter(None, [written, gaps]))


def _target(name: str, series: pd.Series[Any], train: np.ndarray) -> Inspected:
    try:
        found = target_of(series, train, task=None, names=(name,))
    except DataError as error:
        return Inspected(name, "target", "refused", str(error))
    if not isinstance(found, ClassTarget):
        return Inspected(name, "target", "a number: regression")
    codes = found.prepared(checked_target(series))[train]
    share = np.bincount(codes, minlength=found.n_outputs).max() / len(codes)
    most = found.classes[int(np.bincount(codes).argmax())]
    note = f"{listed([str(value) for value in found.classes], most=4)}; {str(most)!r} is {share:.1%} of the rows"
    if share > IMBALANCED:
        note += (
            f": imbalanced, an accuracy of {share:.3f} needs no network; --metric f1, average-precision or "
            "balanced-accuracy looks at the others"
        )
    return Inspected(name, "target", f"{found.n_outputs} classes: classification", note)


def _codes(series: pd.Series[Any]) -> np.ndarray:
    """Numbers as they are, everything else by its place among the different values; gaps as NaN."""
    import pandas as pd

    if series.dtype.kind in "biuf":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    codes, _ = pd.factorize(series, sort=False)
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _is_near_copy(series: pd.Series[Any], truth: np.ndarray) -> bool:
    """Whether the column and the target correlate almost perfectly, or name the same groups of rows."""
    values = _codes(series)
    known = np.isfinite(values) & np.isfinite(truth)
    values, truth = values[known], truth[known]
    if len(values) < 10 or np.ptp(values) == 0 or np.ptp(truth) == 0:
        return False
    if abs(np.corrcoef(values, truth)[0, 1]) > NEAR_COPY:
        return True
    pairs = np.unique(np.stack([values, truth]), axis=1).shape[1]
    return bool(len(np.unique(values)) == len(np.unique(truth)) == pairs < 0.5 * len(values))

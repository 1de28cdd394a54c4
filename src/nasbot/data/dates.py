"""Dates as people write them, and the parts of them that networks see: year, month, day, weekday, hour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot.data.columns import Column, DateColumn, DroppedColumn
from nasbot.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("year", "month", "day", "weekday", "hour")
ORDERS = ("ymd", "dmy", "mdy")
_TIME = r"(?:[T\s]+(\d{1,2}):\d{2}[\d:.,]*\s*([AaPp])?.*)?\s*"
YEAR_FIRST = re.compile(r"\s*(\d{4})([-/.])(\d{1,2})[-/.](\d{1,2})" + _TIME)
YEAR_LAST = re.compile(r"\s*(\d{1,2})([-/.])(\d{1,2})[-/.](\d{2}|\d{4})" + _TIME)
_LOOKED_AT = 200  # values, to tell dates from categories
CENTURY = 70  # years of two digits from here on are of 19..


def is_date(series: pd.Series[Any]) -> bool:
    """Whether the column holds dates, or text that looks like them."""
    import pandas as pd

    if isinstance(series.dtype, pd.PeriodDtype) or series.dtype.kind in "mM":
        return True
    if series.dtype.kind not in "OUS":
        return False
    values = series.dropna().head(_LOOKED_AT)
    looks = [hasattr(v, "isoformat") or (isinstance(v, str) and _matched(v) is not None) for v in values]
    return bool(looks) and sum(looks) >= 0.9 * len(looks)


def date_column(name: str, series: pd.Series[Any], train: np.ndarray) -> Column:
    """The parts that vary, with scales from the rows ``train``."""
    if series.dtype.kind == "m":
        raise DataError(
            f"column {name!r} holds durations; turn them into numbers (seconds) or leave it out (drop {name!r})"
        )
    rows = series.iloc[train]
    order = order_of(rows)
    parts = parts_of(rows, order, PARTS)
    known = parts[~np.isnan(parts[:, 0])]
    varying = [i for i in range(len(PARTS)) if len(known) and np.ptp(known[:, i]) > 0]
    if not varying:
        return DroppedColumn(name, "constant")
    centres, scales = known[:, varying].mean(axis=0), known[:, varying].std(axis=0)
    chosen = tuple(PARTS[i] for i in varying)
    gaps = len(known) < len(parts)
    return DateColumn(name, order, chosen, tuple(map(float, centres)), tuple(map(float, scales)), gaps)


def order_of(series: pd.Series[Any]) -> str:
    """What dates with the year last begin with: the day where a number above 12 says so, or no slash is used."""
    found = [m for value in series.dropna() if isinstance(value, str) and (m := YEAR_LAST.fullmatch(value))]
    if not found:
        return "ymd"
    if any(int(m[1]) > 12 for m in found):
        return "dmy"
    if any(int(m[3]) > 12 for m in found):
        return "mdy"
    return "mdy" if found[0][2] == "/" else "dmy"


def parts_of(series: pd.Series[Any], order: str, parts: Sequence[str]) -> np.ndarray:
    """(n, parts) numbers, NaN where there is no date; Monday is 0."""
    import pandas as pd

    if isinstance(series.dtype, pd.PeriodDtype):
        when = series.dt.to_timestamp()
    elif series.dtype.kind == "M":
        when = series
    else:
        when = _written(series, order)
    found = {"year": when.dt.year, "month": when.dt.month, "day": when.dt.day}
    found |= {"weekday": when.dt.day_of_week, "hour": when.dt.hour}
    return np.stack([found[part].to_numpy(dtype=np.float64, na_value=np.nan) for part in parts], axis=1)


def _matched(text: str) -> re.Match[str] | None:
    return YEAR_FIRST.fullmatch(text) or YEAR_LAST.fullmatch(text)


def _written(series: pd.Series[Any], order: str) -> pd.Series[Any]:
    """Dates from text or date objects; what is no date is a gap."""
    import pandas as pd

    fields = np.array([_fields(value, order) for value in series], dtype=np.float64).reshape(len(series), 4)
    frame = pd.DataFrame(fields, columns=["year", "month", "day", "hour"], index=series.index)
    when: pd.Series[Any] = pd.to_datetime(frame, errors="coerce")
    return when


def _fields(value: Any, order: str) -> tuple[float, float, float, float]:
    nothing = (np.nan,) * 4
    if hasattr(value, "isoformat") and value == value:  # not NaT
        return value.year, value.month, value.day, getattr(value, "hour", 0)
    if not isinstance(value, str):
        return nothing
    if match := YEAR_FIRST.fullmatch(value):
        year, month, day = int(match[1]), int(match[3]), int(match[4])
    elif match := YEAR_LAST.fullmatch(value):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        day, month = (second, first) if order == "mdy" else (first, second)
        year += 0 if len(match[4]) == 4 else 2000 if year < CENTURY else 1900
    else:
        return nothing
    hour = int(match[5] or 0)
    if match[6]:
        hour = hour % 12 + 12 * (match[6] in "Pp")
    return year, month, day, hour


def instants_of(series: pd.Series[Any]) -> np.ndarray:
    """Numbers in the order of time: numbers themselves; of dates written as text day and hour count."""
    import pandas as pd

    if series.dtype.kind in "biuf":
        return np.asarray(series.to_numpy(), dtype=np.float64)
    if series.dtype.kind == "m" or not is_date(series):
        raise DataError("time: expected a column of dates or numbers")
    if isinstance(series.dtype, pd.PeriodDtype):
        when = series.dt.to_timestamp()
    else:
        when = series if series.dtype.kind == "M" else _written(series, order_of(series))
    if gaps := int(when.isna().sum()):
        raise DataError(f"time: {gaps:,} of {len(series):,} values are no dates")
    instants: np.ndarray = when.to_numpy(dtype="datetime64[ns]").astype(np.int64)
    return instants

"""People's tables: whatever holds rows and columns becomes a data frame, and each column says what it is."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot.data.columns import CODE, CategoryColumn, Column, DroppedColumn, NumberColumn
from nasbot.data.dates import date_column, is_date
from nasbot.errors import DataError, OptionError

if TYPE_CHECKING:
    import pandas as pd

MAX_INPUTS = 20_000  # of a network, after categories became columns of their own; a wider first layer is no search
MAX_CATEGORIES = 50  # the most frequent ones of a column; the rest share "none of these"
FEW_CATEGORIES = 20  # which are categories even if most rows have one of their own
KINDS = ("number", "category", "date")
MOST_SCALE = 1e100  # of numbers that are squared
MOSTLY_NUMBERS = 0.1  # the share of words below which a column is one of numbers with mistakes in it
# Names of numbers that only tell rows apart, where each row has its own.
_IDENTIFIER = re.compile(
    r"(?i:id|uuid|guid|index|row|unnamed: 0|(row|record)[ _-]?(nr|no|number)|.*[ _-]id)|.*[a-z]I[Dd]"
)


def frame_of(raw: Any, *, names: Sequence[str] | None = None, optional: Sequence[str] = ()) -> pd.DataFrame:
    """Rows and columns as a data frame: from a frame, a numpy array, a tensor, or lists.

    With ``names`` the frame has exactly these columns in this order: a given frame by name, anything else by position.
    A given frame may lack those of ``optional``.
    """
    import pandas as pd

    raw = as_pandas(raw)
    if isinstance(raw, pd.Series):
        raw = raw.to_frame()
    if isinstance(raw, pd.DataFrame):
        frame = raw.set_axis([str(name) for name in raw.columns], axis=1)
        return frame if names is None else _chosen(frame, names, optional)
    array = array_of(raw)
    if array.ndim == 1:
        raise DataError(
            f"inputs: expected a table of rows and columns, got one row of {len(array)} values; "
            "X.reshape(-1, 1) makes it one column"
        )
    if array.ndim != 2:
        raise DataError(f"inputs: expected a table of rows and columns, got an array of {array.ndim} axes")
    if names is not None and array.shape[1] != len(names):
        raise DataError(f"inputs: expected {len(names)} columns, got {array.shape[1]}")
    if array.shape[1] > MAX_INPUTS:
        raise DataError(_too_wide(array.shape[1]))
    labels = [f"x{i}" for i in range(array.shape[1])] if names is None else list(names)
    return pd.DataFrame(array, columns=labels)


def as_pandas(raw: Any) -> Any:
    """Frames and series of other libraries (polars, pyarrow) as those of pandas; anything else as it is."""
    if hasattr(raw, "collect") and hasattr(raw, "lazy"):
        raise DataError("inputs: a lazy frame; expected one with rows, which .collect() makes")
    try:
        return raw.to_pandas() if hasattr(raw, "to_pandas") else raw
    except ImportError as error:  # polars makes its frames into pandas' by way of pyarrow
        raise DataError(f"inputs: {error}; install nasbot with its extra, nasbot[parquet]") from None


def array_of(raw: Any) -> np.ndarray:
    """An array of numbers or objects from an array, a tensor or lists; raises DataError for anything else."""
    torch = sys.modules.get("torch")  # a tensor in somebody's hands means that it is imported
    if torch is not None and isinstance(raw, torch.Tensor):
        raw = raw.detach().cpu().numpy()
    if hasattr(raw, "toarray"):
        raise DataError("inputs: a sparse matrix; expected a dense array, which X.toarray() makes")
    if not isinstance(raw, np.ndarray | list | tuple) and not hasattr(raw, "__array__"):
        raise DataError(f"expected an array, a data frame or a tensor, got {type(raw).__name__}")
    try:
        array = np.asarray(raw)
    except (ValueError, TypeError) as error:
        raise DataError(f"expected rows of one length: {str(error)[:120]}") from None
    if array.dtype.kind not in "biufOUST" + "M":
        raise DataError(f"expected numbers or text, got an array of {array.dtype}")
    return array


def columns_of(
    frame: pd.DataFrame, train: np.ndarray, *, drop: Sequence[str] = (), kinds: Mapping[str, str] | None = None
) -> tuple[Column, ...]:
    """What each column is, scales and categories from the rows ``train``.

    Dates become parts; identifiers, free text and columns without values are dropped. ``kinds`` says of columns what
    they are, one of ``KINDS``, whatever they look like. Raises DataError for what is wrong with the columns, all of it
    in one message: values that are not finite, or neither numbers, text nor dates.
    """
    names = [str(name) for name in frame.columns]
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"two columns are called {twice!r}; each needs a name of its own")
    drop = split_names(drop, names)
    for name in drop:
        check_column(name, names, "drop")
    said = checked_kinds(kinds or {}, names)
    columns: list[Column] = []
    problems: list[str] = []
    for i, name in enumerate(names):
        try:
            left_out = name in drop
            columns.append(
                DroppedColumn(name, "left out")
                if left_out
                else column_of(name, frame.iloc[:, i], train, said.get(name))
            )
        except DataError as error:
            problems.append(str(error))
    if problems:
        others = f"; and {len(problems) - 3} columns more" if len(problems) > 3 else ""
        raise DataError("; ".join(problems[:3]) + others)
    n_inputs = sum(column.width for column in columns)
    if n_inputs == 0:
        raise DataError(f"inputs: none of the {len(names)} columns varies, so there is nothing to learn from")
    if n_inputs > MAX_INPUTS:
        raise DataError(_too_wide(n_inputs))
    return tuple(columns)


def numbers_of(series: pd.Series[Any]) -> np.ndarray:
    """The values as float64, gaps as NaN; raises DataError for infinite values and for text, unless it is clear."""
    import pandas as pd

    from nasbot.data.text_tables import clear_numbers_in_text

    try:
        values = pd.to_numeric(series).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError):
        if (clear := clear_numbers_in_text(series)) is None:
            bad = next((v for v in series.dropna() if not is_number(v)), "?")
            raise DataError(f"column {series.name!r}: expected numbers, got {str(bad)[:40]!r}") from None
        values = clear.to_numpy(dtype=np.float64)
    if np.isinf(values).any():
        raise DataError(f"column {series.name!r} has infinite values; replace them, or leave them empty as missing")
    return values


def categories_of(series: pd.Series[Any], known: Collection[str] = ()) -> list[str | None]:
    """The values as text, gaps as None.

    Whole numbers stand without a point, also where gaps made pandas keep or write them with one: "12.0" is the known
    category "12".
    """
    missing = series.isna().to_numpy()
    if series.dtype.kind == "f":
        return [
            None if gap else f"{v:.0f}" if v == round(v) else str(v) for gap, v in zip(missing, series, strict=True)
        ]
    texts = [None if gap else str(value) for gap, value in zip(missing, series.tolist(), strict=True)]
    if not known:
        return texts
    whole = {f"{value}.0": value for value in known if value.isdecimal() and f"{value}.0" not in known}
    return [text if text is None else whole.get(text, text) for text in texts] if whole else texts


def check_column(name: str, names: Sequence[str], what: str) -> None:
    """Raises DataError with what is nearest where there is no such column."""
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}? The" if near else "; the"
    raise DataError(f"{what}: there is no column {name[:60]!r}{hint} columns are {listed(names)}")


def listed(names: Sequence[str], *, most: int = 12) -> str:
    """Some names in a sentence."""
    shown = ", ".join(repr(name[:40]) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


# -- inside ------------------------------------------------------------------------------------------------------------


def _chosen(frame: pd.DataFrame, names: Sequence[str], optional: Sequence[str]) -> pd.DataFrame:
    known = list(frame.columns)
    missing = [name for name in names if name not in known and name not in optional]
    if len(missing) > 1:
        raise DataError(f"inputs: there are no columns {listed(missing)}; the columns are {listed(known)}")
    for name in missing:
        check_column(name, known, "inputs")
    absent = {name: np.nan for name in names if name not in known}
    return frame.assign(**absent)[list(names)] if absent else frame[list(names)]


def split_names(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names of columns, of which some may be written together: "a,b" where no column is called so."""
    return [part.strip() for name in given for part in ([name] if name in names else name.split(","))]


def checked_kinds(kinds: Mapping[str, str], names: Sequence[str]) -> Mapping[str, str]:
    """The same; OptionError or DataError for a kind or a column that there is not."""
    for name, kind in kinds.items():
        check_column(name, names, "as")
        if kind not in KINDS:
            raise OptionError(f"as: {name}: expected one of {', '.join(KINDS)}, got {str(kind)[:40]!r}")
    return kinds


def column_of(name: str, series: pd.Series[Any], train: np.ndarray, kind: str | None = None) -> Column:
    """What a column is, or is said to be, scales and categories from the rows ``train``; see ``columns_of``."""
    import pandas as pd

    from nasbot.data.text_tables import clear_numbers_in_text

    if series.isna().all():
        return DroppedColumn(name, "no values at all")
    if kind == "category":
        return _category_column(name, categories_of(series), train, is_said=True)
    if kind == "number":
        return _number_column(name, numbers_of(series)[train], is_said=True)
    if kind == "date" and not is_date(series):
        raise DataError(f"column {name!r}: said to be dates, but {str(series.dropna().iloc[0])[:40]!r} is none")
    if is_date(series):
        return date_column(name, series, train)
    if isinstance(series.dtype, pd.CategoricalDtype):  # said outright, whatever the values look like
        return _category_column(name, categories_of(series), train)
    if series.dtype.kind in "biuf":
        return _number_column(name, numbers_of(series)[train])
    if series.dtype.kind == "c":
        raise DataError(f"column {name!r} holds complex numbers; expected real numbers or categories")
    plain = next((v for v in series.dropna() if not isinstance(v, str | bool | int | float | np.generic)), None)
    if plain is not None and not is_number(plain):
        raise DataError(
            f"column {name!r} holds {type(plain).__name__} values; expected numbers or text: turn it into columns of "
            f"its own, or leave it out (drop {name!r})"
        )
    if all(is_number(v) and not _is_code(v) for v in series.dropna()):  # numbers kept as text, whole or with gaps
        return _number_column(name, numbers_of(series)[train])
    if (clear := clear_numbers_in_text(series)) is not None:  # "$1,234.56", as files have them
        return _number_column(name, clear.to_numpy(dtype=np.float64)[train])
    return _category_column(name, categories_of(series), train)


def _number_column(name: str, values: np.ndarray, *, is_said: bool = False) -> Column:
    known = values[~np.isnan(values)]
    if not is_said and _IDENTIFIER.fullmatch(name) and len(known) > FEW_CATEGORIES and _tell_rows_apart(known):
        return DroppedColumn(name, "identifier: a number of its own for each row")
    if not len(known) or known.min() == known.max():
        constant_with_gaps = 0 < len(known) < len(values)
        if not constant_with_gaps:
            return DroppedColumn(name, "constant")
    fill = float(np.median(known))
    filled = np.where(np.isnan(values), fill, values)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = float(filled.std())
    if not scale < MOST_SCALE:
        raise DataError(f"column {name!r}: {too_far_apart(scale)}")
    return NumberColumn(
        name, fill, float(filled.mean()), scale if scale > 0 else 1.0, marks_gaps=len(known) < len(values)
    )


def _category_column(name: str, values: Sequence[str | None], train: np.ndarray, *, is_said: bool = False) -> Column:
    rows = [values[i] for i in train]
    known = [value for value in rows if value is not None]
    counts: dict[str, int] = {}
    for value in known:
        counts[value] = counts.get(value, 0) + 1
    is_free = not is_said and len(counts) > 0.5 * len(known)
    if is_free:
        words = [value for value in values if value is not None and not is_number(value)]
        if 0 < len(words) < MOSTLY_NUMBERS * len(values):
            raise DataError(
                f"column {name!r}: numbers, but {len(words):,} of {len(values):,} rows hold none, such as "
                f"{words[0][:40]!r}; mend or remove these rows, or leave the column out (drop {name!r})"
            )
    if is_free and len(counts) > FEW_CATEGORIES:
        return DroppedColumn(name, f"text: {len(counts):,} different values in {len(known):,} training rows")
    gaps = len(known) < len(rows)
    if len(counts) + gaps < 2:
        return DroppedColumn(name, "constant")
    frequent = sorted(counts, key=lambda value: (-counts[value], value))[:MAX_CATEGORIES]
    return CategoryColumn(name, tuple(sorted(frequent)), marks_gaps=gaps)


def too_far_apart(scale: float) -> str:
    """What is wrong with numbers whose squares no computer holds."""
    return f"its standard deviation is {scale:g}, expected 1e-100 to 1e100; use another unit, or a logarithm"


def _tell_rows_apart(values: np.ndarray) -> bool:
    return len(np.unique(values)) == len(values) and bool((values == np.round(values)).all())


def _is_code(value: Any) -> bool:
    """Whether it is digits with a 0 in front, which is no number that people write: a postal code, a part's."""
    return isinstance(value, str) and CODE.fullmatch(value) is not None


def is_number(value: Any) -> bool:
    """Whether Python reads it as a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _too_wide(n: int) -> str:
    return (
        f"{n:,} inputs are more than the {MAX_INPUTS:,} that a search is fit for; choose columns, or reduce them first "
        "(principal components, say)"
    )

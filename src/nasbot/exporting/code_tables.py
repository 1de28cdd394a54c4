"""The part of exported code that takes people's tables: data frames, dictionaries and arrays, and CSV files."""

from __future__ import annotations

from nasbot.data.columns import CategoryColumn, Column, DateColumn, NumberColumn
from nasbot.data.dates import CENTURY, YEAR_FIRST, YEAR_LAST
from nasbot.data.preprocessing import NumberTarget, Preprocessing, Table

IMPORTS = """import csv
import itertools
import sys
"""

WARNING_IMPORT = "import warnings\n"

DATE_IMPORTS = """import re
from datetime import datetime
"""

PREPARE = '''

def {name}(rows):
    """Rows as they were given to nasbot, {result}: a data frame, a list of dictionaries, or an array.

    Frames and dictionaries are read by column name, arrays in the order of COLUMNS; gaps are None or nan.
    """
    given, inputs = columns_of(rows), []
    for name, encoding, marks_gaps in COLUMNS:
        if encoding is None:  # a column that the network does not look at
            continue
        numbers, gaps = {encoders}[type(encoding)](name, given[name], encoding)
        inputs.append(numbers)
        if marks_gaps:
            inputs.append(gaps[:, None].to(torch.float64))
    return torch.cat(inputs, dim=1).to(torch.float32)


def columns_of(rows):
    """The values of each column, by name."""
    names = [name for name, _, _ in COLUMNS]
    if hasattr(rows, "to_pylist"):  # pyarrow
        rows = rows.to_pylist()
    if hasattr(rows, "columns"):  # pandas, polars
        given = {{str(name): rows[name] for name in rows.columns}}
    elif hasattr(rows, "shape"):
        if len(rows.shape) != 2 or rows.shape[1] != len(names):
            raise ValueError(f"expected (rows, {{len(names)}}) in the order of {{names}}, got {{tuple(rows.shape)}}")
        given = {{name: rows[:, i] for i, name in enumerate(names)}}
    elif all(hasattr(row, "keys") for row in rows):
        shared = [name for name in (rows[0] if rows else names) if all(name in row for row in rows)]
        given = {{name: [row[name] for row in rows] for name in shared}}
    else:
        if any(len(row) != len(names) for row in rows):
            raise ValueError(f"expected rows of {{len(names)}} values in the order of {{names}}")
        given = dict(zip(names, zip(*rows)))
    missing = [name for name, encoding, _ in COLUMNS if encoding is not None and name not in given]
    if missing:
        raise ValueError(f"no column {{', '.join(map(repr, missing))}}; got {{', '.join(map(repr, given))}}")
    return given


def is_gap(value):
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def encoded_numbers(name, values, encoding):
    """(value - centre) / scale, and where there are gaps."""
    fill, centre, scale = encoding
    values = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(values, torch.Tensor):
        numbers = values.to(torch.float64)
    elif getattr(getattr(values, "dtype", None), "kind", "O") in "fiub":
        numbers = torch.from_numpy(values.astype("float64"))
    else:
        numbers = torch.tensor([number(name, i, value) for i, value in enumerate(values)], dtype=torch.float64)
    if numbers.isinf().any():
        raise ValueError(f"column {{name!r}} has infinite values; expected numbers, or gaps")
    return ((torch.where(numbers.isnan(), fill, numbers) - centre) / scale)[:, None], numbers.isnan()


def number(name, row, value):
    try:
        return float("nan") if is_gap(value) else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"column {{name!r}}, row {{row + 1}}: expected a number, got {{str(value)[:40]!r}}") from None
'''

CATEGORIES = '''

def encoded_categories(name, values, encoding):
    """A number for each known category, and where there are gaps; what is not known is none of them."""
    index = {known: i for i, known in enumerate(encoding)}
    gaps = [is_gap(value) for value in values]
    texts = ["" if gap else str(value) for gap, value in zip(gaps, values)]
    codes = [-1 if gap else index.get(text, index.get(text.removesuffix(".0"), -1)) for gap, text in zip(gaps, texts)]
    unknown = [text for gap, code, text in zip(gaps, codes, texts) if code < 0 and not gap]
    if unknown:
        what = f"{len(unknown)} rows hold none of the known values, such as {unknown[0][:40]!r}"
        warnings.warn(f"column {name!r}: {what}")
    numbers = torch.zeros(len(codes), len(index) + 1, dtype=torch.float64)
    numbers[torch.arange(len(codes)), torch.tensor(codes, dtype=torch.int64)] = 1  # -1: the last, which is cut off
    return numbers[:, :-1], torch.tensor(gaps, dtype=torch.bool)
'''

DATES = '''

def encoded_dates(name, values, encoding):
    """The parts of dates, standardised, and where there are gaps."""
    dates = [None if is_gap(value) else date_of(value, encoding["order"]) for value in values]
    gaps = torch.tensor([date is None for date in dates], dtype=torch.bool)
    inputs = []
    for part, (centre, scale) in encoding["parts"].items():
        found = [centre if d is None else d.weekday() if part == "weekday" else getattr(d, part, 0) for d in dates]
        inputs.append((torch.tensor(found, dtype=torch.float64) - centre) / scale)
    return torch.stack(inputs, dim=1), gaps


def date_of(value, order):
    """A date object as it is, text such as 2024-03-01 or 1.3.2024 as one; None for anything else."""
    if hasattr(value, "year"):
        return value
    first, last = re.fullmatch(YEAR_FIRST, str(value)), re.fullmatch(YEAR_LAST, str(value))
    if first:
        year, month, day = int(first[1]), int(first[3]), int(first[4])
    elif last:
        year, month, day = int(last[4]), int(last[3]), int(last[1])
        month, day = (day, month) if order == "mdy" else (month, day)
        year += 0 if len(last[4]) == 4 else 2000 if year < CENTURY else 1900
    else:
        return None
    hour, half = int((first or last)[5] or 0), (first or last)[6]
    try:
        return datetime(year, month, day, hour % 12 + 12 * (half in "Pp") if half else hour)
    except ValueError:
        return None
'''

MAIN = '''

GAPS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "None", "<NA>")


def predict_file(path, out=sys.stdout, rows=10_000):
    """Write what is predicted for each line of a CSV file: one line each, in its order."""
    network, write = load(), csv.writer(out, lineterminator="\\n").writerow
    write({header})
    with open(path, newline="", encoding="utf-8-sig") as file:
        separator = max(",;\\t|", key=file.readline().count)
        file.seek(0)
        lines = (line for line in csv.reader(file, delimiter=separator) if line)
        names = next(lines, [])
        while batch := list(itertools.islice(lines, rows)):
            if any(len(line) != len(names) for line in batch):
                raise ValueError(f"expected {{len(names)}} values in each line, as in the first")
            values = [[None if value.strip() in GAPS else value for value in line] for line in batch]
            frame = [dict(zip(names, line)) for line in values]
{write}

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {{sys.argv[0]}} new.csv > predicted.csv")
    try:
        predict_file(sys.argv[1])
    except (OSError, ValueError) as error:
        sys.exit(f"{{sys.argv[1]}}: {{error}}")
'''

WRITE_NUMBERS = """            for line in predict(network, frame).tolist():
                write(line)
"""

WRITE_CLASSES = """            for line in probabilities(network, frame).tolist():
                write([CLASSES[line.index(max(line))], *line])
"""


def imports_of(table: Table) -> str:
    """Of the standard library only."""
    warnings, dates = WARNING_IMPORT * _has(table, CategoryColumn), DATE_IMPORTS * _has(table, DateColumn)
    return IMPORTS + warnings + dates


def columns_constant(table: Table) -> str:
    """What is known of each column, as a table in the code."""
    heading = "name, encoding (numbers: what stands for a gap, centre, scale), whether gaps are marked"
    rows = [(column.name, _encoding(column), getattr(column, "marks_gaps", False)) for column in table.columns]
    text = f"# {heading}\nCOLUMNS = [\n" + "".join(f"    {row!r},\n" for row in rows) + "]\n"
    if _has(table, DateColumn):
        text += f"YEAR_FIRST = {YEAR_FIRST.pattern!r}\nYEAR_LAST = {YEAR_LAST.pattern!r}\nCENTURY = {CENTURY}\n"
    return text


def prepare_table(table: Table, name: str, result: str) -> str:
    """The function of this name that takes raw rows, and those that it needs."""
    forms = {"tuple": "encoded_numbers"}
    if has_categories := _has(table, CategoryColumn):
        forms["list"] = "encoded_categories"
    if has_dates := _has(table, DateColumn):
        forms["dict"] = "encoded_dates"
    encoders = "{" + ", ".join(f"{form}: {function}" for form, function in forms.items()) + "}"
    text = PREPARE.format(name=name, result=result, encoders=encoders)
    return text + CATEGORIES * has_categories + DATES * has_dates


def main_of(preprocessing: Preprocessing) -> str:
    """What makes ``python model.py new.csv`` work, with the columns of ``nasbot predict``."""
    target = preprocessing.target
    if not isinstance(target, NumberTarget):
        header = ["prediction", *(f"probability_{name}" for name in target.classes)]
        return MAIN.format(header=header, write=WRITE_CLASSES)
    header = ["prediction"] if target.n_outputs == 1 else [f"prediction_{name}" for name in target.names]
    return MAIN.format(header=header, write=WRITE_NUMBERS)


def _has(table: Table, form: type) -> bool:
    return any(isinstance(column, form) for column in table.columns)


def _encoding(column: Column) -> object:
    if isinstance(column, NumberColumn):
        return column.fill, column.centre, column.scale
    if isinstance(column, CategoryColumn):
        return list(column.values)
    if isinstance(column, DateColumn):
        scales = zip(column.centres, column.scales, strict=True)
        return {"order": column.order, "parts": dict(zip(column.parts, scales, strict=True))}
    return None

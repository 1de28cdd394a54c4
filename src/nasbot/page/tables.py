"""Trials as CSV. A cell that a spreadsheet would take for a formula is made a text by an apostrophe."""

from __future__ import annotations

import csv
import io

from nasbot._typing import Json
from nasbot.page.records import trial_record
from nasbot.plots.snapshot import Snapshot

COLUMNS = (
    "number", "state", "value", "cause", "started", "finished", "seconds", "attempts", "searcher", "layers", "edges",
    "mass", "utility", "deciding", "fingerprint",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def trials_csv(snapshot: Snapshot) -> str:
    """Every trial in a row; the numbers of details have columns of their own."""
    records = [trial_record(trial) for trial in snapshot.history]
    details = list(dict.fromkeys(name for record in records for name in _table(record["details"])))
    text = io.StringIO()
    writer = csv.writer(text)
    names = [
        *COLUMNS,
        "parents",
        "modifiers",
        "predicted",
        "lower",
        "upper",
        *(f"details.{d}" for d in details),
        "message",
    ]
    writer.writerow([_cell(name) for name in names])
    for record in records:
        predicted, found = _table(record["predicted"]), _table(record["details"])
        cells: list[Json] = [record[name] for name in COLUMNS]
        cells += [" ".join(map(str, _list(record[name]))) for name in ("parents", "modifiers")]
        cells += [predicted.get(name) for name in ("median", "lower", "upper")]
        cells += [found.get(name) for name in details]
        writer.writerow([_cell(cell) for cell in (*cells, record["line"])])
    return text.getvalue()


def _cell(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _table(value: Json) -> dict[str, Json]:
    return dict(value) if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list) else []

"""Trials as CSV. A cell that a spreadsheet would take for a formula is made a text by an apostrophe."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from nasbot._json import table
from nasbot._typing import Json
from nasbot.data.frames import safe_text
from nasbot.page.records import trial_record
from nasbot.plots.snapshot import Snapshot
from nasbot.trial import Trial

COLUMNS = (
    "number", "state", "value", "cause", "started", "finished", "seconds", "attempts", "fidelity", "promoted_from",
    "searcher", "layers", "edges", "mass", "utility", "deciding", "fingerprint",
)  # fmt: skip
ROWS_PER_PART = 500


def trials_csv(trials: Iterable[Trial], details: Sequence[str], params: Sequence[str] = ()) -> Iterator[str]:
    """Every trial in a row, a part at a time; ``details`` and ``params`` name those that have columns of their own."""
    text = io.StringIO()
    writer = csv.writer(text)
    names = [
        *COLUMNS,
        "parents",
        "modifiers",
        "predicted",
        "lower",
        "upper",
        *(f"params.{name}" for name in params),
        *(f"details.{d}" for d in details),
        "message",
    ]
    writer.writerow([_cell(name) for name in names])
    for number, record in enumerate(map(trial_record, trials)):
        predicted, found = table(record["predicted"]), table(record["details"])
        cells: list[Json] = [record[name] for name in COLUMNS]
        cells += [" ".join(map(str, _list(record[name]))) for name in ("parents", "modifiers")]
        cells += [predicted.get(name) for name in ("median", "lower", "upper")]
        cells += [table(record["params"]).get(name) for name in params]
        cells += [found.get(name) for name in details]
        writer.writerow([_cell(cell) for cell in (*cells, record["line"])])
        if number % ROWS_PER_PART == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def detail_names(snapshot: Snapshot) -> list[str]:
    """The numbers of details, of the trials at hand."""
    records = [trial_record(trial) for trial in snapshot.history]
    return list(dict.fromkeys(name for record in records for name in table(record["details"])))


def param_names(snapshot: Snapshot) -> list[str]:
    """The params of the trials at hand, as the page has them."""
    return sorted({name for trial in snapshot.history for name in trial.candidate.params})


def _cell(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    return safe_text(str(value))


def _list(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list) else []

"""Trials as rows and back: exact, checked by CRC, and strict about everything read."""

from __future__ import annotations

import json
import math
import re
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from nasbot import _json
from nasbot._rng import checked_seed
from nasbot._typing import Json
from nasbot.architecture import Architecture, Vocabulary
from nasbot.candidate import Candidate, Params
from nasbot.errors import CodecError, NasbotError, OptionError, StorageError
from nasbot.storage.records import Answer, Request, Run
from nasbot.storage.tally import Line
from nasbot.trial import (
    Cancelled,
    Direction,
    Failed,
    FailureCause,
    Forecast,
    Outcome,
    Point,
    Provenance,
    Scored,
    Stopped,
    Trial,
    TrialState,
)

SHARED_COLUMNS = (
    "number, state, value, cause, message, details, rank, proposed_after, attempts, interruptions, "
    "started, finished, notes, arch"
)
OLD_COLUMNS = f"{SHARED_COLUMNS}, crc"  # of versions 1 and 2, in which all values were to be maximised
COLUMNS = f"{SHARED_COLUMNS}, params, fidelity, promoted_from, origin, forecast, crc"
_NAMES = COLUMNS.split(", ")
STOPPED = "stopped"  # the cause of a trial that a pacer ended
SEARCHER = re.compile(r'"searcher":"([^"\\]*)"')  # in an origin, as ``encoded`` writes it
LATEST = 1e15  # seconds; no clock says more
Row = tuple[Any, ...]


def trial_row(trial: Trial) -> Row:
    """The trial without its curve, in the order of COLUMNS."""
    cells: Row = (
        trial.number,
        *_outcome_cells(trial),
        trial.rank,
        trial.proposed_after,
        trial.attempts,
        trial.interruptions,
        _real(trial.started),
        _real(trial.finished),
        encoded(trial.notes),
        trial.arch.to_json(),
        encoded(trial.candidate.params),
        _real(trial.fidelity),
        trial.promoted_from,
        encoded(trial.origin.to_dict()),
        None if trial.forecast is None else encoded(trial.forecast.to_dict()),
    )
    return (*cells, crc(cells))


def _outcome_cells(trial: Trial) -> Row:
    """State, value, cause, message and details. A trial that was stopped is kept as one that failed by that cause.

    So tables of version 3 have room for it, and an older nasbot refuses it instead of taking it for a failure.
    """
    match trial.outcome:
        case Scored(value, details):
            return str(trial.state), _real(value), None, None, encoded(details)
        case Stopped() as stopped:
            return str(TrialState.FAILED), None, STOPPED, stopped.reason, encoded(stopped.to_dict())
        case Failed(cause, message, details):
            return str(trial.state), None, str(cause), message, encoded(details)
        case Cancelled(message):
            return str(trial.state), None, None, message, None
        case _:
            return str(trial.state), None, None, None, None


def trial_of(
    row: Row, points: Sequence[Row], vocabulary: Vocabulary | None, direction: Direction = Direction.MAXIMISE
) -> Trial:
    """The trial that ``trial_row`` and ``point_rows`` wrote. Raises StorageError where a row is damaged.

    ``direction`` is that of the study: in files of versions 1 and 2 all values are to be maximised.
    """
    where = f"trial {row[0]}"
    if len(row) == N_OLD:
        row, points = upgraded_trial(row, direction), [upgraded_point(point, direction) for point in points]
    _check_crc(where, row)
    number, state, value, cause, message, details, rank, after, attempts, interruptions, *rest = row[:-1]
    started, finished, notes, arch, params, fidelity, promoted_from, origin, forecast = rest
    _check_times(where, started, finished)
    if promoted_from is not None and promoted_from >= number:
        raise StorageError(f"{where}: promoted from trial {promoted_from}, which is not before it")
    try:
        trial = Trial(
            number=number,
            candidate=Candidate(Architecture.from_json(arch, vocabulary=vocabulary), _params(where, params)),
            fidelity=fidelity,
            promoted_from=promoted_from,
            origin=Provenance.from_dict(decoded(where, origin)),
            forecast=None if forecast is None else Forecast.from_dict(decoded(where, forecast)),
            notes=decoded(where, notes),
            proposed_after=after,
            attempts=attempts,
            interruptions=interruptions,
            started=started,
            finished=finished,
            rank=rank,
            outcome=_outcome(where, state, value, cause, message, details),
            curve=tuple(point_of(where, position, point) for position, point in enumerate(points)),
        )
    except NasbotError as error:
        error.args = (f"{where}: {error}".replace(f"{where}: {where}", where),)
        raise
    except (ValueError, TypeError) as error:  # a row with a right checksum that nasbot did not write
        raise StorageError(f"{where} is not a trial that nasbot wrote: {error}") from None
    if trial_row(trial)[1] != state:
        raise StorageError(f"{where}: recorded as {state}, but its record is that of a trial that is {trial.state}")
    return trial


def line_of(number: int, row: Row) -> Line:
    """The numbers of the row of trial ``number``, its checksum checked, its network not looked at."""
    if row[0] != number:
        raise StorageError(f"trials are missing: expected {number}, got {row[0]}")
    _check_crc(f"trial {number}", row)
    cells = dict(zip(_NAMES, row, strict=True))
    cells["searcher"] = cells["origin"]
    return unchecked_line(*(cells[name] for name in Line._fields))


LINE_COLUMNS = ", ".join("origin" if name == "searcher" else name for name in Line._fields)


def unchecked_line(number: int, state: str, value: Any, cause: Any, fidelity: float, origin: str, *rest: Any) -> Line:
    """The numbers of a row of which LINE_COLUMNS alone were read: quick, and no checksum is held against them."""
    if cause == STOPPED:
        state, cause = str(TrialState.STOPPED), None
    chosen_by = SEARCHER.search(origin)
    line = Line(number, state, value, cause, fidelity, "" if chosen_by is None else chosen_by[1], *rest)
    _check_times(f"trial {number}", line.started, line.finished)
    return line


def _check_times(where: str, *times: float | None) -> None:
    """Differences of what passes are finite, whoever wrote the row."""
    for at in times:
        if at is not None and not abs(at) < LATEST:
            raise StorageError(f"{where}: expected a time in seconds since 1970, got {at}")


def _outcome(where: str, state: str, value: Any, cause: Any, message: Any, details: Any) -> Outcome | None:
    match state:
        case TrialState.COMPLETED:
            return Scored(value, decoded(where, details))
        case TrialState.FAILED if cause == STOPPED:
            return Stopped.from_dict(decoded(where, details))
        case TrialState.FAILED:
            return Failed(FailureCause(cause), message, decoded(where, details))
        case TrialState.CANCELLED:
            return Cancelled(message)
    return None


def point_rows(number: int, first: int, points: Sequence[Point]) -> list[Row]:
    """Rows for points of a trial's curve that stand at ``first`` and after."""
    rows: list[Row] = [(number, first + i, point.step, _real(point.value)) for i, point in enumerate(points)]
    return [(*cells, crc(cells)) for cells in rows]


def curve_rows(was: Sequence[Point], trial: Trial) -> tuple[bool, list[Row]]:
    """Whether the stored points of a trial's curve go on to hold, and the rows to add to them."""
    holds = trial.curve[: len(was)] == tuple(was)
    kept = len(was) if holds else 0
    return holds, point_rows(trial.number, kept, trial.curve[kept:])


def point_of(where: str, position: int, row: Row) -> Point:
    """The point of a curve that stands at ``position``, as ``point_rows`` wrote it (in version 1, as it stands)."""
    _check_crc(f"{where}, point {position} of its curve", row)
    if row[1] != position:
        raise StorageError(f"{where}: point {position} of its curve is missing")
    return Point(row[2], row[3])


# -- versions 1 and 2 --------------------------------------------------------------------------------------------------

N_OLD = OLD_COLUMNS.count(",") + 1
_FORECAST_NOTES = ("mean", "sd", "observed_sd", "feasible", "utility", "n_utilities", "utility_by_phase", "repairs")


def upgraded_trial(row: Row, direction: Direction) -> Row:
    """A row of versions 1 and 2 as version 3 has it: values in the objective's sense, typed origin and forecast.

    StorageError where the row is damaged: nothing is migrated that cannot be proven.
    """
    where = f"trial {row[0]}"
    _check_crc(where, row)
    *before, notes, arch = row[:-1]
    before[2] = None if before[2] is None else direction.turned(before[2])
    kept = decoded(where, notes)
    origin, forecast = _origin_of(kept), _forecast_of(kept, direction)
    said = encoded(forecast.to_dict()) if forecast.to_dict() else None
    cells: Row = (*before, encoded(kept), arch, encoded({}), 1.0, None, encoded(origin.to_dict()), said)
    return (*cells, crc(cells))


def upgraded_point(row: Row, direction: Direction) -> Row:
    """A point of a curve of versions 1 and 2 as version 3 has it."""
    _check_crc(f"trial {row[0]}, point {row[1]} of its curve", row)
    cells = (*row[:3], direction.turned(row[3]))
    return (*cells, crc(cells))


def direction_of(settings: str | None) -> Direction:
    """Whether the study with these settings, as they are stored, maximises or minimises."""
    return stored_direction(None if settings is None else decoded("the settings", settings))


def _origin_of(notes: dict[str, Json]) -> Provenance:
    """What the notes say of where a network came from, taken out of them; what is not as we wrote it stays there."""
    found: dict[str, Json] = {}
    seconds: dict[str, Json] = {}
    forked = notes.get("forked_from")
    if isinstance(forked, Mapping) and set(forked) == {"study", "trial"}:
        found |= {"of_study": forked["study"], "of_trial": forked["trial"]}
    if isinstance(notes.get("seconds"), Mapping):
        seconds |= notes["seconds"]  # type: ignore[arg-type]
    if "deciding" in notes:
        seconds["deciding"] = notes["deciding"]
    names = {"searcher": "searcher", "parents": "parents", "modifiers": "modifiers", "changes": "changes"}
    found |= {name: notes[note] for note, name in {**names, "retry_of": "of_trial"}.items() if note in notes}
    try:
        origin = Provenance.from_dict({**found, "seconds": seconds})
    except CodecError:
        return Provenance()
    for note in (*names, "retry_of", "forked_from", "seconds", "deciding"):
        notes.pop(note, None)
    return origin


def _forecast_of(notes: dict[str, Json], direction: Direction) -> Forecast:
    found: dict[str, Any] = {name: notes[name] for name in _FORECAST_NOTES if notes.get(name) is not None}
    predicted = notes.get("predicted")
    try:
        if isinstance(predicted, Mapping) and set(predicted) == {"median", "lower", "upper"}:
            ends = {name: direction.turned(_json.number(predicted[name], name)) for name in predicted}
            low, high = sorted((ends["lower"], ends["upper"]))
            found |= {"median": ends["median"], "lower": low, "upper": high}
        forecast = Forecast.from_dict(found)
    except CodecError:
        return Forecast()
    for note in (*_FORECAST_NOTES, "predicted"):
        notes.pop(note, None)
    return forecast


def _params(where: str, text: str) -> dict[str, float | int | str]:
    found = decoded(where, text)
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise StorageError(f"{where}: param {name[:40]}: expected a number or a text, got {str(value)[:40]!r}")
    return found  # type: ignore[return-value]  # checked just above


# -- runs and requests -------------------------------------------------------------------------------------------------


def settings_row(settings: Mapping[str, Json]) -> Row:
    """A study's settings: 1, their text, and the checksum."""
    cells = (1, encoded(_json.plain_json(settings)))
    return (*cells, crc(cells))


def settings_of(row: Row) -> dict[str, Json]:
    """The settings that ``settings_row`` wrote; what no study could have been begun with is refused."""
    if not _is_intact(row):
        raise StorageError("the settings are damaged: their checksum does not fit")
    settings = decoded("the settings", row[1])
    stored_direction(settings)
    try:
        checked_seed(settings.get("seed"))
    except OptionError as error:
        raise StorageError(f"the settings: {error}") from None
    return settings


def stored_direction(settings: Mapping[str, Json] | None) -> Direction:
    """Whether the study with these settings maximises or minimises."""
    try:
        return Direction.of(str((settings or {}).get("direction", Direction.MAXIMISE)))
    except OptionError as error:
        raise StorageError(f"the settings: {error}") from None


RUN_COLUMNS = "number, state, begun, ended, record, crc"
REQUEST_COLUMNS = "number, kind, trial, made, made_by, answer, answered, crc"


def run_row(run: Run) -> Row:
    """The run in the order of RUN_COLUMNS."""
    cells: Row = (run.number, str(run.state), _real(run.begun), _real(run.ended), encoded(run.record))
    return (*cells, crc(cells))


def run_of(row: Row) -> Run:
    """The run that ``run_row`` wrote."""
    where = f"run {row[0]}"
    _check_crc(where, row)
    try:
        number, state, begun, ended, record = row[:-1]
        return Run(number=number, state=state, begun=begun, ended=ended, record=decoded(where, record))
    except (ValueError, TypeError) as error:
        raise StorageError(f"{where} is not a run that nasbot wrote: {error}") from None


def runs_of(rows: Iterable[Row]) -> tuple[Run, ...]:
    """All runs of a study, by number; StorageError where one is missing."""
    runs = tuple(map(run_of, rows))
    if [run.number for run in runs] != list(range(len(runs))):
        raise StorageError("records of runs are missing")
    return runs


def request_row(request: Request) -> Row:
    """The request in the order of REQUEST_COLUMNS."""
    cells: Row = (
        request.number,
        str(request.kind),
        request.trial,
        _real(request.made),
        request.by,
        request.answer,
        _real(request.answered),
    )
    return (*cells, crc(cells))


def answered_row(answer: Answer) -> Row:
    """The request with its answer, given now."""
    return request_row(replace(answer.request, answer=answer.text, answered=time.time()))


def request_of(row: Row) -> Request:
    """The request that ``request_row`` wrote."""
    where = f"request {row[0]}"
    _check_crc(where, row)
    try:
        number, kind, trial, made, by, answer, answered = row[:-1]
        return Request(number=number, kind=kind, trial=trial, made=made, by=by, answer=answer, answered=answered)
    except (ValueError, TypeError) as error:
        raise StorageError(f"{where} is not a request that nasbot wrote: {error}") from None


def curves_of(points: Iterable[Row]) -> dict[int, tuple[Row, ...]]:
    """Rows of points, which are in order, by the numbers of their trials."""
    return {number: tuple(curve) for number, curve in groupby(points, key=lambda row: row[0])}


def updates(columns: Sequence[str]) -> str:
    """What an insertion does where the row is there: an update in place, to which others may point."""
    return ", ".join(f"{name} = excluded.{name}" for name in columns)


# -- cells -------------------------------------------------------------------------------------------------------------


def crc(cells: Row) -> int:
    """CRC-32 of the cells, unambiguous in their types and exact in their numbers."""
    exact = [cell.hex() if isinstance(cell, float) else cell for cell in cells]
    return zlib.crc32(json.dumps(exact).encode())


def _is_intact(row: Row) -> bool:
    try:
        return crc(row[:-1]) == row[-1]  # type: ignore[no-any-return]
    except TypeError:  # bytes where a text should be
        return False


def _check_crc(where: str, row: Row) -> None:
    if not _is_intact(row):
        raise StorageError(f"{where} is damaged: its checksum does not fit its content")


def encoded(record: Mapping[str, Json] | Params) -> str:
    """Plain data as JSON text; the same data give the same text."""
    return json.dumps(record, allow_nan=False, sort_keys=True, separators=(",", ":"))


def decoded(where: str, text: str) -> dict[str, Json]:
    """The data that ``encoded`` wrote."""
    try:
        record = _json.parsed(text, where)
    except CodecError:
        raise StorageError(f"{where}: its notes, details or settings are not JSON") from None
    if not isinstance(record, dict):
        raise StorageError(f"{where}: its notes, details or settings are not an object")
    return record


def _real(number: float | None) -> float | None:
    """As SQLite keeps it: finite, and without the sign of a zero (whole numbers are stored as integers)."""
    if number is not None and not math.isfinite(number):
        raise StorageError(f"times and values must be finite, got {number}")
    return None if number is None else float(number) + 0.0

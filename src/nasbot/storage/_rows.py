"""Trials as rows and back: exact, checked by CRC, and strict about everything read."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from nasbot._typing import Json
from nasbot.architecture import Architecture, Vocabulary
from nasbot.errors import NasbotError, StorageError
from nasbot.storage.records import Request, Run
from nasbot.trial import Cancelled, Failed, FailureCause, Outcome, Point, Scored, Trial, TrialState

COLUMNS = (
    "number, state, value, cause, message, details, rank, proposed_after, attempts, interruptions, "
    "started, finished, notes, arch, crc"
)
Row = tuple[Any, ...]


def trial_row(trial: Trial) -> Row:
    """The trial without its curve, in the order of COLUMNS."""
    outcome = trial.outcome
    cells: Row = (
        trial.number,
        str(trial.state),
        _real(outcome.value) if isinstance(outcome, Scored) else None,
        str(outcome.cause) if isinstance(outcome, Failed) else None,
        outcome.message if isinstance(outcome, Failed | Cancelled) else None,
        encoded(outcome.details) if isinstance(outcome, Scored | Failed) else None,
        trial.rank,
        trial.proposed_after,
        trial.attempts,
        trial.interruptions,
        _real(trial.started),
        _real(trial.finished),
        encoded(trial.notes),
        trial.arch.to_json(),
    )
    return (*cells, crc(cells))


def trial_of(row: Row, points: Sequence[Row], vocabulary: Vocabulary | None) -> Trial:
    """The trial that ``trial_row`` and ``point_rows`` wrote. Raises StorageError where a row is damaged."""
    where = f"trial {row[0]}"
    _check_crc(where, row)
    number, state, value, cause, message, details, rank, after, attempts, interruptions, *rest = row[:-1]
    started, finished, notes, arch = rest
    try:
        trial = Trial(
            number=number,
            arch=Architecture.from_json(arch, vocabulary=vocabulary),
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
    if trial.state != state:
        raise StorageError(f"{where}: recorded as {state}, but its record is that of a trial that is {trial.state}")
    return trial


def _outcome(where: str, state: str, value: Any, cause: Any, message: Any, details: Any) -> Outcome | None:
    match state:
        case TrialState.COMPLETED:
            return Scored(value, decoded(where, details))
        case TrialState.FAILED:
            return Failed(FailureCause(cause), message, decoded(where, details))
        case TrialState.CANCELLED:
            return Cancelled(message)
    return None


def point_rows(number: int, first: int, points: Sequence[Point]) -> list[Row]:
    """Rows for points of a trial's curve that stand at ``first`` and after."""
    rows: list[Row] = [(number, first + i, point.step, _real(point.value)) for i, point in enumerate(points)]
    return [(*cells, crc(cells)) for cells in rows]


def point_of(where: str, position: int, row: Row) -> Point:
    """The point of a curve that stands at ``position``, as ``point_rows`` wrote it."""
    _check_crc(f"{where}, point {position} of its curve", row)
    if row[1] != position:
        raise StorageError(f"{where}: point {position} of its curve is missing")
    return Point(row[2], row[3])


# -- runs and requests -------------------------------------------------------------------------------------------------

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


def request_of(row: Row) -> Request:
    """The request that ``request_row`` wrote."""
    where = f"request {row[0]}"
    _check_crc(where, row)
    try:
        number, kind, trial, made, by, answer, answered = row[:-1]
        return Request(number=number, kind=kind, trial=trial, made=made, by=by, answer=answer, answered=answered)
    except (ValueError, TypeError) as error:
        raise StorageError(f"{where} is not a request that nasbot wrote: {error}") from None


# -- cells -------------------------------------------------------------------------------------------------------------


def crc(cells: Row) -> int:
    """CRC-32 of the cells, unambiguous in their types and exact in their numbers."""
    exact = [cell.hex() if isinstance(cell, float) else cell for cell in cells]
    return zlib.crc32(json.dumps(exact).encode())


def _check_crc(where: str, row: Row) -> None:
    try:
        is_intact = crc(row[:-1]) == row[-1]
    except TypeError:  # bytes where a text should be
        is_intact = False
    if not is_intact:
        raise StorageError(f"{where} is damaged: its checksum does not fit its content")


def encoded(record: Mapping[str, Json]) -> str:
    """Plain data as JSON text; the same data give the same text."""
    return json.dumps(record, allow_nan=False, sort_keys=True, separators=(",", ":"))


def decoded(where: str, text: str) -> dict[str, Json]:
    """The data that ``encoded`` wrote."""
    try:
        record = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, TypeError, RecursionError):
        raise StorageError(f"{where}: its notes, details or settings are not JSON") from None
    if not isinstance(record, dict):
        raise StorageError(f"{where}: its notes, details or settings are not an object")
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


def _real(number: float | None) -> float | None:
    """As SQLite keeps it: finite, and without the sign of a zero (whole numbers are stored as integers)."""
    if number is not None and not math.isfinite(number):
        raise StorageError(f"times and values must be finite, got {number}")
    return None if number is None else float(number) + 0.0

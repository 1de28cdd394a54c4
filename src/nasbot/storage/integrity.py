"""Is a study's file whole, and if it is not, what of it can be proven.

    examine(path)           every problem of the file, in words
    repair(path, copy)      a new file with everything that has a right checksum, and a list of what is lost

Proof is the checksum that each row carries over all its columns. Nothing is guessed: a trial is taken as it was
recorded or not at all, a curve up to its first missing point. The damaged file is only read.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from nasbot._typing import Json
from nasbot.architecture import Vocabulary
from nasbot.errors import FileError, NasbotError, StorageError, StudyError, VocabularyError
from nasbot.storage import _rows, _schema
from nasbot.storage._lock import presence
from nasbot.storage._pages import rows_in
from nasbot.storage._sqlite_file import check_file, code_of, connected, raise_interrupt, reading_mode
from nasbot.storage.memory import study_direction
from nasbot.storage.records import Run, RunState
from nasbot.storage.sqlite import SqliteStorage
from nasbot.trial import Direction, History, Point, Trial, TrialState

SHOWN_PROBLEMS = 20
OLD_REALS, TRIAL_REALS, RUN_REALS = (
    (2, 10, 11),
    (2, 10, 11, 15),
    (2, 3),
)  # columns of real numbers, which SQLite keeps as integers where it can
POINT_COLUMNS = "trial, position, step, value, crc"
T = TypeVar("T")


# -- examining ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Examination:
    """What was found in a study's file: nothing wrong, or ``problems``."""

    path: Path
    version: int | None
    n_trials: int
    n_runs: int
    problems: tuple[str, ...]

    @property
    def is_intact(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def examine(path: str | Path, *, vocabulary: Vocabulary | None = None) -> Examination:
    """Everything that can be checked about a study's file, which may be running. FileError where it cannot be read.

    Networks of a vocabulary that is neither built in nor given are checked by their checksums alone.
    """
    file = Path(path)
    check_file(file, must_exist=True)
    problems: list[str] = []
    version, n_trials, n_runs = None, 0, 0
    try:
        with closing(connected(file, reading_mode(file))) as db:
            db.execute("BEGIN")  # one state of a study that goes on meanwhile
            version = _schema.prepare(db, may_write=False)
            problems += _structure(db)
            n_trials = _examine_trials(db, version, vocabulary, problems)
            n_runs = _examine_others(db, version, problems)
    except sqlite3.OperationalError as error:
        raise_interrupt(file, error)
        if code_of(error) & 0xFF not in DAMAGE:
            raise FileError(f"{file}: {error}") from None
        problems.append(f"SQLite cannot read on: {error}")
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        problems.append(f"SQLite cannot read on: {error}")
    except StorageError as error:
        problems.append(str(error))
    return Examination(file, version, n_trials, n_runs, tuple(problems))


DAMAGE = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_INTERRUPT,
)


def _structure(db: sqlite3.Connection) -> list[str]:
    found = [str(row[0]) for row in db.execute(f"PRAGMA integrity_check({SHOWN_PROBLEMS})")]
    return [f"SQLite's own check: {text}" for text in found if text != "ok"]


def _examine_trials(db: sqlite3.Connection, version: int, vocabulary: Vocabulary | None, problems: list[str]) -> int:
    numbers: list[int] = []
    ranks: list[int | None] = []
    columns = _rows.COLUMNS if version >= _schema.WITH_CANDIDATES else _rows.OLD_COLUMNS
    for row in db.execute(f"SELECT {columns} FROM trials ORDER BY number"):
        if numbers and row[0] <= numbers[-1]:  # pages that point at each other in circles
            problems.append(f"trial {row[0]} comes again after trial {numbers[-1]}")
            break
        numbers.append(row[0])
        ranks.append(row[6])
        _note(problems, partial(_whole_trial, db, row, vocabulary))
    if missing := sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers)):
        problems.append(f"missing: {_trials(missing)}")
    known = [rank for rank in ranks if rank is not None]
    if sorted(known) != list(range(len(known))):
        problems.append("outcomes are missing: their ranks have gaps")
    strays = db.execute("SELECT DISTINCT trial FROM points WHERE trial NOT IN (SELECT number FROM trials)").fetchall()
    problems += [f"points of a curve of trial {number}, which is not there" for (number,) in strays[:SHOWN_PROBLEMS]]
    return len(numbers)


def _whole_trial(db: sqlite3.Connection, row: _rows.Row, vocabulary: Vocabulary | None) -> None:
    points = db.execute(f"SELECT {POINT_COLUMNS} FROM points WHERE trial = ? ORDER BY position", (row[0],)).fetchall()
    with suppress(VocabularyError):  # its checksum was right, or it would not have come to that
        _rows.trial_of(row, points, vocabulary)


def _examine_others(db: sqlite3.Connection, version: int, problems: list[str]) -> int:
    settings = db.execute("SELECT id, record, crc FROM settings").fetchone()
    if settings is None:
        problems.append("there are no settings: no study was begun in it, or they are lost")
    else:
        _note(problems, partial(_rows.settings_of, settings))
    if version < _schema.WITH_RUNS:
        return 0
    n_runs = 0
    for row in db.execute(f"SELECT {_rows.RUN_COLUMNS} FROM runs ORDER BY number"):
        n_runs += 1
        _note(problems, partial(_rows.run_of, row))
    for row in db.execute(f"SELECT {_rows.REQUEST_COLUMNS} FROM requests ORDER BY number"):
        _note(problems, partial(_rows.request_of, row))
    return n_runs


def _note(problems: list[str], check: Callable[[], object]) -> None:
    try:
        check()
    except NasbotError as error:
        problems.append(str(error))


# -- repairing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Repaired:
    """What a repaired copy holds, and what is lost. ``renumbered`` maps old numbers of trials to new ones."""

    path: Path
    copy: Path
    n_trials: int
    n_outcomes: int
    lost: tuple[str, ...]
    renumbered: Mapping[int, int] = field(default_factory=dict)


def repair(path: str | Path, copy: str | Path, *, vocabulary: Vocabulary | None = None) -> Repaired:
    """Write a new study with everything that can be proven of the one in ``path``.

    Trials that were running wait in it. Where trials are lost the others move up: numbers, ranks and the references to
    them change together, and each trial that moved notes the number it had. Raises StorageError where not even the
    settings can be proven, StudyError where somebody drives the study, FileError where there is such a copy already.
    """
    file, target = Path(path), Path(copy)
    check_file(file, must_exist=True, any_content=True)
    if presence(file).is_held:
        raise StudyError(f"{file} is being driven; stop its driver before it is repaired")
    if os.path.lexists(target):
        raise FileError(f"{target} is there already; a repair never overwrites anything")
    found = _salvaged(file, vocabulary)
    if found.settings is None:
        n = len(found.trials)
        raise StorageError(f"{file}: its settings are lost, so the study cannot be made again; {n} trials are provable")
    trials, renumbered = _renumbered(found.trials)
    storage = SqliteStorage(target, vocabulary=vocabulary)
    try:
        unfinished = [replace(trial, outcome=None, rank=None, finished=None) for trial in trials]
        storage.create(found.settings, [*unfinished, *History(tuple(trials)).finished])
        for number, run in enumerate(found.runs):
            storage.save_run(replace(run, number=number))
    finally:
        storage.close()
    n_outcomes = sum(trial.outcome is not None for trial in trials)
    return Repaired(file, target, len(trials), n_outcomes, tuple(found.lost), renumbered)


@dataclass
class _Found:
    settings: dict[str, Json] | None = None
    trials: list[Trial] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def _salvaged(file: Path, vocabulary: Vocabulary | None) -> _Found:
    """Through SQLite as far as it goes, then page by page; on a copy, so that nothing is written beside the file."""
    with tempfile.TemporaryDirectory(prefix="nasbot-repair-") as folder:
        work = Path(folder) / "study.sqlite"
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{file}{suffix}", f"{work}{suffix}")
        content = work.read_bytes()
        log = Path(f"{work}-wal")
        raw = list(rows_in(content, log.read_bytes() if log.exists() else b""))
        rows = _Rows(work)
        try:
            return _found(rows, raw, vocabulary)
        finally:
            rows.close()


def _found(rows: _Rows, raw: Sequence[_rows.Row], vocabulary: Vocabulary | None) -> _Found:
    found = _Found()
    for row in (*rows.of("settings", "id, record, crc"), *_raw(raw, 3)):
        with suppress(NasbotError):
            found.settings = found.settings or _rows.settings_of(row)
    best: dict[int, Trial] = {}
    direction = study_direction(found.settings)
    columns, reals = (_rows.COLUMNS, TRIAL_REALS) if rows.has_candidates() else (_rows.OLD_COLUMNS, OLD_REALS)
    candidates = (*rows.of("trials", columns), *_raw(raw, columns.count(",") + 1, reals))
    broken: set[int] = set()
    for row in candidates:
        try:
            trial = _rows.trial_of(row, (), vocabulary, direction)
        except VocabularyError:
            raise
        except NasbotError:
            if isinstance(row[0], int) and 0 <= row[0] < len(candidates) * 2:
                broken.add(row[0])
            continue
        best[trial.number] = max(best.get(trial.number, trial), trial, key=_progress)
    for number in sorted(best):
        found.trials.append(_with_curve(rows, best[number], found.lost, direction))
    known_ranks = {trial.rank for trial in found.trials if trial.rank is not None}
    lost = sorted({*range(max(best, default=-1) + 1), *broken} - set(best))
    if lost:
        found.lost.insert(0, _trials(lost))
    if "trials" in rows.cut:
        found.lost.append(f"trials after {max(best)}, if there were any" if best else "all trials, if there were any")
    if gaps := max(known_ranks, default=-1) + 1 - len(known_ranks):
        found.lost.append(f"{gaps} outcome{'s' * (gaps != 1)} (of these, or of trials that wait again)")
    runs: dict[int, Run] = {}
    for row in (*rows.of("runs", _rows.RUN_COLUMNS), *_raw(raw, _rows.RUN_COLUMNS.count(",") + 1, RUN_REALS)):
        with suppress(NasbotError):
            run = _rows.run_of(row)
            runs[run.number] = max(runs.get(run.number, run), run, key=lambda run: run.ended is not None)
    ended = (run if run.state is RunState.ENDED else run.over("died", at=run.begun) for run in runs.values())
    found.runs = sorted(ended, key=lambda run: run.number)
    return found


def _progress(trial: Trial) -> tuple[bool, int, int, bool]:
    """An outcome is never changed and attempts only grow, so of two states of a trial this tells the later one.

    Of one attempt the trial runs first; where it failed and is tried again, it waits after that.
    """
    return (trial.outcome is not None, trial.attempts, trial.interruptions, trial.started is None)


def _with_curve(rows: _Rows, trial: Trial, lost: list[str], direction: Direction) -> Trial:
    if trial.state is TrialState.RUNNING:
        return trial.requeued(interrupted=True)
    if trial.outcome is None:
        return trial
    curve: list[Point] = []
    points, is_whole = rows.points(trial.number)
    for position, row in enumerate(points):
        try:
            checked = row if rows.has_candidates() else _rows.upgraded_point(row, direction)
            curve.append(_rows.point_of(f"trial {trial.number}", position, checked))
        except NasbotError:
            is_whole = False
            break
    if not is_whole:
        lost.append(f"the curve of trial {trial.number} from its point {len(curve)} on")
    return trial.with_points(curve)


def _raw(raw: Iterable[_rows.Row], n_columns: int, reals: Sequence[int] = ()) -> Iterator[_rows.Row]:
    """Rows of this many columns as SQLite would give them: the first is the rowid, reals are reals."""
    for rowid, *cells in raw:
        if len(cells) == n_columns and cells[0] is None:
            cells[0] = rowid
            for i in reals:
                cells[i] = float(cells[i]) if isinstance(cells[i], int) else cells[i]
            yield tuple(cells)


def _renumbered(trials: Sequence[Trial]) -> tuple[list[Trial], dict[int, int]]:
    """Numbers and ranks without gaps, and everything that refers to them."""
    numbers = {trial.number: new for new, trial in enumerate(trials)}
    ranks = sorted(trial.rank for trial in trials if trial.rank is not None)
    moved = {old: new for old, new in numbers.items() if old != new}
    return [_moved(trial, numbers, ranks) for trial in trials], moved


def _moved(trial: Trial, numbers: Mapping[int, int], ranks: Sequence[int]) -> Trial:
    notes: dict[str, Json] = dict(trial.notes)
    origin = replace(trial.origin, parents=tuple(numbers[p] for p in trial.origin.parents if p in numbers))
    if origin.of_study is None and origin.of_trial is not None:
        origin = replace(origin, of_trial=numbers.get(origin.of_trial))
    number = numbers[trial.number]
    if number != trial.number:
        notes["number_before_repair"] = trial.number
    return replace(
        trial,
        number=number,
        origin=origin,
        promoted_from=None if trial.promoted_from is None else numbers.get(trial.promoted_from),
        notes=notes,
        rank=None if trial.rank is None else ranks.index(trial.rank),
        proposed_after=sum(rank < trial.proposed_after for rank in ranks),
    )


def _trials(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:SHOWN_PROBLEMS])
    more = f" and {len(numbers) - SHOWN_PROBLEMS} more" if len(numbers) > SHOWN_PROBLEMS else ""
    return f"trial{'s' * (len(numbers) != 1)} {shown}{more}"


class _Rows:
    """Rows of a damaged file through SQLite: from both ends of a table, then one by one in between."""

    def __init__(self, path: Path) -> None:
        self.cut: set[str] = set()  # tables that cannot be read from end to end
        self._path = path
        self._db: sqlite3.Connection | None = None
        try:
            self._db = connected(path, "mode=rw")
            self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except (sqlite3.Error, OverflowError, UnicodeError):
            self.close()

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    @cache  # noqa: B019  the object lives for one repair
    def has_candidates(self) -> bool:
        """Whether the trials are of version 3 or later; where nothing can be asked they are taken to be."""
        try:
            if self._db is not None:
                self._db.execute("SELECT params FROM trials LIMIT 0")
            return True
        except sqlite3.OperationalError as error:
            return "no such column" not in str(error)
        except (sqlite3.Error, OverflowError, UnicodeError):
            return True

    def of(self, table: str, columns: str) -> list[_rows.Row]:
        """Whatever can be reached; each row once."""
        key = columns.split(",")[0]
        found: dict[Any, _rows.Row] = {}
        is_whole = self._collect(found, f"SELECT {columns} FROM {table} ORDER BY {key}")
        if not is_whole:
            self.cut.add(table)
            self._collect(found, f"SELECT {columns} FROM {table} ORDER BY {key} DESC")
            last = max((number for number in found if isinstance(number, int)), default=0)
            for number in range(min(last, 100_000)):
                if number not in found:
                    self._collect(found, f"SELECT {columns} FROM {table} WHERE {key} = {number:d}")
        return list(found.values())

    def points(self, number: int) -> tuple[list[_rows.Row], bool]:
        """The curve of a trial as far as it can be reached, and whether that is all of it."""
        found: dict[Any, _rows.Row] = {}
        sql = f"SELECT {POINT_COLUMNS} FROM points WHERE trial = {number:d} ORDER BY position"
        is_whole = self._collect(found, sql, key=1)
        return list(found.values()), is_whole

    def _collect(self, found: dict[Any, _rows.Row], sql: str, *, key: int = 0) -> bool:
        if self._db is None:
            return False
        try:
            for row in self._db.execute(sql):
                found.setdefault(row[key], row)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise_interrupt(self._path, error)
            return False
        return True

"""A study in one SQLite file, with write-ahead log and synchronous=FULL: acknowledged means that the disk has it.

The driver holds a lock beside the file (``_lock``) and keeps the history in memory, since nobody else can change it.
Readers take no lock and may be many; each reading is one transaction, so they see a state that the study was in. What
others ask of the driver is the one thing that others write, a row at a time (``post_request``).
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TypeVar

from nasbot._typing import Json
from nasbot.architecture import Vocabulary
from nasbot.errors import StorageError, StudyError
from nasbot.storage import _rows, _schema, _sqlite_file
from nasbot.storage._lock import DriverLock, presence
from nasbot.storage.memory import following, study_direction, with_run
from nasbot.storage.records import Answer, Presence, Request, RequestKind, Run, RunState, who
from nasbot.storage.tally import Line, Tally
from nasbot.trial import Direction, History, Trial

LOG = logging.getLogger("nasbot")
DRIVER_BUSY_SECONDS = 5.0  # for the driver, which tries again for as long as it has patience
SECONDS_BETWEEN_TRIES = 1.0  # while the disk is full or somebody else writes
T = TypeVar("T")


class SqliteStorage:
    """One study in the file ``path``. As driver (default) it is made if it is not there; ``read_only`` never writes.

    ``vocabulary`` is needed where the networks' is not built in. Raises FileError where the file cannot be opened,
    StudyError where another driver has it, StorageError where it is not an intact study. A write that finds the disk
    full, or the file held by another program, tries again for up to ``patience`` seconds before it raises FileError;
    either way nothing is lost. Where another driver has written meanwhile, or the file is not the one at ``path`` any
    more, every write raises StudyError.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        vocabulary: Vocabulary | None = None,
        read_only: bool = False,
        patience: float = 600.0,
    ) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self.patience = patience
        self._vocabulary = vocabulary
        self._history: History | None = None  # the driver's copy, and so are the runs
        self._runs: tuple[Run, ...] | None = None
        self._asked_at: int | None = None  # version of the data when requests were last looked for
        self._version = _schema.VERSION
        self._is_towards: Direction | None = None
        self._written_at: int | None = None  # version of the data when the driver's copy was known to be right
        self._file: tuple[object, ...] = ()  # identity of the file and of its log
        self._lost: str | None = None  # why nothing can be written any more
        self._begun = False  # whether there is a study in the file, once that is known
        self._lock: DriverLock | None = None
        self._db: sqlite3.Connection | None = None
        self._read: History | None = None  # a reader's last reading, and the version of the data then
        self._read_at: int | None = None
        # What it knows of unfinished trials.
        self._known: dict[int, tuple[_rows.Row, tuple[_rows.Row, ...], Trial]] = {}
        _sqlite_file.check_file(self.path, must_exist=read_only)
        if not read_only:
            self._lock = DriverLock(self.path)
        try:
            with _sqlite_file.explained(self.path):
                if not read_only:
                    _sqlite_file.check_tables(self.path)
                self._db = self._connected()
                self._version = _schema.prepare(self._db, may_write=not read_only)
                if not read_only:
                    self._read_all()
                    self._bury()
        except BaseException:
            self.close()
            raise
        if not read_only:
            _sqlite_file.sync_folder(self.path)

    # -- the promises --------------------------------------------------------------------------------------------------

    def settings(self) -> Mapping[str, Json] | None:
        """What ``create`` was given; None where there is no study yet."""
        with _sqlite_file.explained(self.path):
            row = self._open_db().execute("SELECT id, record, crc FROM settings").fetchone()
            return None if row is None else _rows.settings_of(row)

    def create(self, settings: Mapping[str, Json], trials: Sequence[Trial] = ()) -> None:
        """Begin the study, with its first trials."""
        if self.settings() is not None:
            raise StudyError(f"{self.path}: the study exists already")
        row = _rows.settings_row(settings)

        def begin(db: sqlite3.Connection) -> History:
            db.execute("INSERT INTO settings VALUES (?, ?, ?)", row)
            return self._write(db, History(direction=study_direction(settings)), trials)

        self._history = self._committed(begin)

    def history(self) -> History:
        """Everything recorded so far; for the driver from memory, for a reader from the file."""
        self._open_db()
        if self._history is not None:
            return self._history
        with _sqlite_file.explained(self.path):
            return self._read_history()

    def tally(self) -> Tally:
        """The study in numbers; of a file, without rebuilding its networks."""
        db = self._open_db()
        if self._history is not None or self._version < _schema.WITH_CANDIDATES:
            return Tally.of_history(self.history())
        with _sqlite_file.explained(self.path):
            db.execute("BEGIN")
            try:
                rows = db.execute(f"SELECT {_rows.COLUMNS} FROM trials ORDER BY number")
                return Tally.of((_rows.line_of(number, row) for number, row in enumerate(rows)), self._direction())
            finally:
                db.execute("COMMIT")

    def n_trials(self) -> int:
        """How many trials there are; cheap."""
        if self._history is not None:
            return len(self._history)
        with _sqlite_file.explained(self.path):
            return int(self._open_db().execute("SELECT coalesce(sum(1), 0) FROM trials").fetchone()[0])

    def quick_lines(self) -> list[Line]:
        """Each trial in numbers, by number, without a look at checksums: for a first glance at very many."""
        if self._history is not None or self._version < _schema.WITH_CANDIDATES:
            return self.lines()
        with _sqlite_file.explained(self.path):
            rows = self._open_db().execute(f"SELECT {_rows.LINE_COLUMNS} FROM trials ORDER BY number")
            return [_rows.unchecked_line(*row) for row in rows]

    def lines(self, *, since: int = 0) -> list[Line]:
        """Each trial in numbers, by number; with ``since`` those not among the first so many outcomes recorded."""
        if self._history is not None or self._version < _schema.WITH_CANDIDATES:
            found = (Line.of(trial) for trial in self.history())
            return [line for line in found if line.rank is None or line.rank >= since]
        where = "WHERE rank IS NULL OR rank >= ?" if since else "WHERE ? = 0"
        with _sqlite_file.explained(self.path):
            rows = self._open_db().execute(f"SELECT {_rows.COLUMNS} FROM trials {where} ORDER BY number", (since,))
            return [_rows.line_of(row[0] if since else number, row) for number, row in enumerate(rows)]

    def some(self, numbers: Sequence[int]) -> list[Trial]:
        """The trials with these numbers, in this order; of a file, no others are rebuilt."""
        if self._history is not None or self._version < _schema.WITH_CANDIDATES:
            history = self.history()
            return [history[number] for number in numbers]
        with _sqlite_file.explained(self.path):
            return [self._one(number) for number in numbers]

    def save(self, *trials: Trial, answers: Sequence[Answer] = ()) -> None:
        """Record these trials and answers, all or none; on disk when this returns."""
        self._check_begun()
        before = self.history()

        def write(db: sqlite3.Connection) -> History:
            for answer in answers:
                _answer(db, answer)
            return self._write(db, before, trials)

        self._history = self._committed(write)

    def runs(self) -> Sequence[Run]:
        """Every stretch of driving so far; none in a file of the first version, which did not record them."""
        self._open_db()
        if self._runs is not None:
            return self._runs
        with _sqlite_file.explained(self.path):
            return self._read_runs()

    def save_run(self, run: Run) -> None:
        """Record the next run, or a later state of the last one. While one is open, signs of life are given."""
        self._check_begun()
        after = with_run(self.runs(), run)
        marks = ", ".join("?" * (_rows.RUN_COLUMNS.count(",") + 1))
        sql = f"INSERT OR REPLACE INTO runs ({_rows.RUN_COLUMNS}) VALUES ({marks})"
        self._committed(lambda db: db.execute(sql, _rows.run_row(run)))
        self._runs = after
        if self._lock is not None:
            if run.state is RunState.ENDED:
                self._lock.rest()
            else:
                self._lock.beat()

    def requests(self) -> Sequence[Request]:
        """What others ask and nobody has answered yet; the table is read only if somebody has written since."""
        db = self._open_db()
        if self._version < _schema.WITH_RUNS:
            return ()
        with _sqlite_file.explained(self.path):
            if not self.read_only:
                self._check_place()
                written = _data_version(db)
                if written == self._asked_at:
                    return ()
                self._check_owned(db)
            sql = f"SELECT {_rows.REQUEST_COLUMNS} FROM requests WHERE answer IS NULL ORDER BY number"
            found = tuple(_rows.request_of(row) for row in db.execute(sql).fetchall())
        if not self.read_only and not found:
            self._asked_at = written
        return found

    def presence(self) -> Presence:
        """Whether somebody is driving, and the last sign of life."""
        return presence(self.path)

    def close(self) -> None:
        """Let go of the file and of the driver's place."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._lock is not None:
            self._lock.release()

    # -- reading -------------------------------------------------------------------------------------------------------

    def _read_history(self) -> History:
        """All of it the first time; after that what may have changed, since a finished trial never does."""
        db, before = self._open_db(), self._read
        db.execute("BEGIN")
        try:
            written = _data_version(db)
            if before is not None and written == self._read_at:
                return before
            # Not count(*), a single step of SQLite's machine that no budget of steps can end.
            n_trials = db.execute("SELECT coalesce(sum(1), 0) FROM trials").fetchone()[0]
            columns = _rows.COLUMNS if self._version >= _schema.WITH_CANDIDATES else _rows.OLD_COLUMNS
            rows, points = _changed_rows(db, columns, 0 if before is None else len(before.finished))
        finally:
            db.execute("COMMIT")
        trials = {} if before is None else {trial.number: trial for trial in before.finished}
        curves = _rows.curves_of(points)
        rows.reverse()
        while rows:  # each forgotten once it is a trial: the rows of 100,000 are 200 MB
            row = rows.pop()
            trials[row[0]] = self._trial(row, curves.pop(row[0], ()))
        if curves:
            raise StorageError(f"there are points of a curve of trial {next(iter(curves))}, which is not there")
        if len(trials) != n_trials:
            raise StorageError(f"trials are missing: {n_trials} are recorded, {len(trials)} were read")
        try:
            history = History(tuple(trials[number] for number in sorted(trials)), self._direction())
        except StudyError as error:
            raise StorageError(f"trials are missing: {error}") from None
        if self.read_only:
            self._read, self._read_at = history, written
            self._known = {number: self._known[number] for number in (t.number for t in history.pending)}
        return history

    def _one(self, number: int) -> Trial:
        db = self._open_db()
        row = db.execute(f"SELECT {_rows.COLUMNS} FROM trials WHERE number = ?", (number,)).fetchone()
        if row is None:
            raise StorageError(f"trial {number} is missing")
        sql = "SELECT trial, position, step, value, crc FROM points WHERE trial = ? ORDER BY position"
        return _rows.trial_of(row, db.execute(sql, (number,)).fetchall(), self._vocabulary, self._direction())

    def _direction(self) -> Direction:
        """Of the study; settings never change, so they are looked up once."""
        if self._is_towards is None:
            settings = self.settings()
            if settings is None:
                return Direction.MAXIMISE
            self._is_towards = _rows.stored_direction(settings)
        return self._is_towards

    def _read_runs(self) -> tuple[Run, ...]:
        if self._version < _schema.WITH_RUNS:
            return ()
        return _rows.runs_of(
            self._open_db().execute(f"SELECT {_rows.RUN_COLUMNS} FROM runs ORDER BY number").fetchall()
        )

    def _trial(self, row: _rows.Row, curve: tuple[_rows.Row, ...]) -> Trial:
        """A reader polls; what has not changed since is not decoded again."""
        known = self._known.get(row[0])
        if known is None or known[0] != row or known[1] != curve:
            known = (row, curve, _rows.trial_of(row, curve, self._vocabulary, self._direction()))
            if self.read_only and known[2].outcome is None:
                self._known[row[0]] = known
        return known[2]

    # -- writing -------------------------------------------------------------------------------------------------------

    def _write(self, db: sqlite3.Connection, before: History, trials: Sequence[Trial]) -> History:
        after, names = before, _rows.COLUMNS.split(", ")
        marks, then = ", ".join("?" * len(names)), _rows.updates(names[1:])
        sql = f"INSERT INTO trials ({_rows.COLUMNS}) VALUES ({marks}) ON CONFLICT (number) DO UPDATE SET {then}"
        for trial in trials:
            was = after[trial.number].curve if 0 <= trial.number < len(after) else ()
            after = following(after, (trial,))
            # Not REPLACE, which deletes first and would break the points' reference.
            db.execute(sql, _rows.trial_row(trial))
            holds, rows = _rows.curve_rows(was, trial)
            if not holds:
                db.execute("DELETE FROM points WHERE trial = ?", (trial.number,))
            db.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?)", rows)
        return after

    def _bury(self) -> None:
        """The last driver died without a word: its run ended with its last sign of life."""
        last = self._runs[-1] if self._runs else None
        if last is not None and last.state is not RunState.ENDED and self._lock is not None:
            self.save_run(last.over("died", at=max(last.begun, self._lock.seen_before)))

    def _check_begun(self) -> None:
        if self._begun or self.settings() is not None:
            self._begun = True
            return
        raise StudyError(f"{self.path}: the study does not exist yet: create it first")

    def _committed(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What ``work`` gives, in a transaction that is on disk when this returns; on a full disk it waits for room."""
        if self.read_only:
            raise StudyError(f"{self.path} is open for reading only")
        db, waited = self._open_db(), 0.0

        def owned_work(db: sqlite3.Connection) -> T:
            self._check_owned(db)
            return work(db)

        with _sqlite_file.explained(self.path):
            while True:
                try:
                    result = _schema.in_transaction(db, owned_work)
                    self._check_place()
                except sqlite3.OperationalError as error:
                    is_busy = _sqlite_file.code_of(error) & 0xFF == sqlite3.SQLITE_BUSY
                    if not (is_busy or _sqlite_file.is_full(error)) or waited >= self.patience:
                        raise
                    if waited == 0:
                        what = "the other program that is writing to it" if is_busy else "room"
                        LOG.warning("%s: %s; waiting for %s, up to %g s", self.path, error, what, self.patience)
                    time.sleep(min(SECONDS_BETWEEN_TRIES, self.patience - waited))
                    waited += SECONDS_BETWEEN_TRIES + DRIVER_BUSY_SECONDS * is_busy
                else:
                    return result

    # -- one driver, one file ------------------------------------------------------------------------------------------

    def _read_all(self) -> None:
        """The driver's copy of everything, which ``_check_owned`` holds against what others write."""
        self._written_at = _data_version(self._open_db())
        self._history = self._read_history()
        self._runs = self._read_runs()
        self._file = _sqlite_file.identity(self.path)

    def _check_owned(self, db: sqlite3.Connection) -> None:
        """StudyError where another driver has written, which the lock should prevent: it may have been removed.

        Called inside the transaction, so nothing can come between. Requests are the one thing that others may write.
        """
        if self._lost is None and (written := _data_version(db)) != self._written_at:
            trials, runs = self._history or (), self._runs or ()
            known = (
                {row[0]: row[-1] for row in map(_rows.trial_row, trials)},
                {row[0]: row[-1] for row in map(_rows.run_row, runs)},
            )
            found = tuple(dict(db.execute(f"SELECT number, crc FROM {table}")) for table in ("trials", "runs"))
            if known == found:
                self._written_at = written
            else:
                self._lost = "another driver has taken over; this one stops, and what that one wrote is as it was"
        if self._lost is not None:
            raise StudyError(f"{self.path}: {self._lost}")

    def _check_place(self) -> None:
        """StudyError where the file was deleted or replaced, with everything that was acknowledged in a copy."""
        if self._lost is None and self._file and _sqlite_file.identity(self.path) != self._file:
            self._lost = f"deleted, moved or replaced while it was being driven; {self._rescued()}"
        if self._lost is not None:
            raise StudyError(f"{self.path}: {self._lost}")

    def _rescued(self) -> str:
        """Save what the open connection still has, and say where."""
        folder = self.path.parent if self.path.parent.is_dir() else Path.cwd()
        copy = next(
            name for n in count() if not os.path.lexists(name := folder / f"{self.path.stem}-rescued-{n}.sqlite")
        )
        try:
            with closing(_sqlite_file.connected(copy, "mode=rwc")) as target:
                self._open_db().backup(target)
        except sqlite3.Error as error:
            return f"no copy of it could be saved ({error})"
        return f"everything recorded so far is in {copy}"

    # -- the file ------------------------------------------------------------------------------------------------------

    def _connected(self) -> sqlite3.Connection:
        is_new = not _sqlite_file.has_content(self.path)
        db = _sqlite_file.connected(self.path, _sqlite_file.reading_mode(self.path) if self.read_only else "mode=rwc")
        if not self.read_only:
            db.execute(f"PRAGMA busy_timeout = {DRIVER_BUSY_SECONDS * 1000:.0f}")
            if is_new:
                db.execute("PRAGMA journal_mode = MEMORY")  # so that a death here leaves no rollback journal
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
        return db

    def _open_db(self) -> sqlite3.Connection:
        if self._db is None:
            raise StudyError(f"{self.path}: the study is closed")
        return self._db


def _changed_rows(db: sqlite3.Connection, columns: str, n_finished: int) -> tuple[list[_rows.Row], list[_rows.Row]]:
    """Rows of trials and of their curves, without those of the first ``n_finished`` that have an outcome."""
    changed = "" if n_finished == 0 else f"WHERE rank IS NULL OR rank >= {n_finished:d}"
    of_those = "" if n_finished == 0 else f"WHERE trial IN (SELECT number FROM trials {changed})"
    rows = db.execute(f"SELECT {columns} FROM trials {changed} ORDER BY number").fetchall()
    sql = f"SELECT trial, position, step, value, crc FROM points {of_those} ORDER BY trial, position"
    return rows, db.execute(sql).fetchall()


def _data_version(db: sqlite3.Connection) -> int:
    """Changes with every commit of another connection, and with none of this one's."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])


# -- requests from outside ---------------------------------------------------------------------------------------------


def post_request(path: str | Path, kind: RequestKind | str, trial: int | None = None) -> Request:
    """Ask something of whoever drives this study, now or next; returns when the disk has it."""
    file = Path(path)
    _sqlite_file.check_file(file, must_exist=True)
    with _sqlite_file.explained(file):
        _sqlite_file.check_tables(file)
    with _sqlite_file.explained(file), closing(_sqlite_file.connected(file, "mode=rw")) as db:
        if _schema.prepare(db, may_write=False) < _schema.WITH_RUNS:
            raise StorageError("its tables are of version 1, which knows no requests; resume the study to migrate it")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("BEGIN IMMEDIATE")
        number = db.execute("SELECT coalesce(max(number) + 1, 0) FROM requests").fetchone()[0]
        request = Request(number=number, kind=RequestKind(kind), trial=trial, made=time.time(), by=who())
        marks = ", ".join("?" * (_rows.REQUEST_COLUMNS.count(",") + 1))
        db.execute(f"INSERT INTO requests ({_rows.REQUEST_COLUMNS}) VALUES ({marks})", _rows.request_row(request))
        db.execute("COMMIT")
    return request


def _answer(db: sqlite3.Connection, answer: Answer) -> None:
    row = _rows.answered_row(answer)
    sql = "UPDATE requests SET answer = ?, answered = ?, crc = ? WHERE number = ?"
    db.execute(sql, (*row[-3:], answer.request.number))

"""A study in a PostgreSQL database: for drivers on several machines, or for one whose record is kept elsewhere.

Whoever writes locks the study's row, reads what others have written since, decides, and writes: nothing comes between.
A driver keeps a copy of the history and reads only rows that changed. While the server is away, it waits.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import psycopg

from nasbot._typing import Json
from nasbot.architecture import Vocabulary
from nasbot.errors import ClaimLostError, FileError, NasbotError, StorageError, StudyError
from nasbot.storage import _rows
from nasbot.storage.addresses import Address, address_of
from nasbot.storage.base import Decide
from nasbot.storage.catching_up import caught_up
from nasbot.storage.memory import following, study_direction, with_run
from nasbot.storage.postgres import tables
from nasbot.storage.postgres.connecting import PASSING, Db, connected, explained, first, in_one_line, run
from nasbot.storage.postgres.heartbeat import BEAT_SECONDS, IS_CONNECTED, IS_DEAD, Heartbeat
from nasbot.storage.records import Answer, Presence, Request, RequestKind, Run, RunState, signature, signed, who
from nasbot.storage.tally import Tally
from nasbot.trial import Direction, History, Trial, TrialState

LOG = logging.getLogger("nasbot")
SECONDS_BETWEEN_TRIES = 0.5  # while the server is away
_SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
T = TypeVar("T")


@dataclass(frozen=True)
class _Copy:
    """What a storage knows of a study: its history at a version, and whose the running trials are."""

    history: History
    owners: Mapping[int, int | None]
    version: int = -1


class PostgresStorage:
    """One study at ``address`` (``postgresql://user@host/database#study``); a driver's unless ``read_only``.

    A ``shared`` driver lets others work on the study beside it, which say so too; any other is alone. ``grace`` and
    ``silence`` are the seconds after which a driver that is not heard of is taken for dead (``heartbeat``). While the
    server is away, reading and writing try again for up to ``patience`` seconds. Raises FileError where the server
    cannot be reached, StudyError where another driver has the study, StorageError where it is not an intact study.
    """

    def __init__(
        self,
        address: str | Address,
        *,
        vocabulary: Vocabulary | None = None,
        read_only: bool = False,
        shared: bool = False,
        patience: float = 600.0,
        grace: float = 10.0,
        silence: float = 60.0,
    ) -> None:
        self.address = address_of(address)
        self.read_only = read_only
        self.is_shared = shared and not read_only
        self.patience = patience
        self._limits = (silence, grace)
        self._vocabulary = vocabulary
        self._study = self.address.name
        self._key = secrets.randbits(62)  # of this driver
        self._n_written = 0
        self._copy = _Copy(History(), {})
        self._is_behind = True  # whether the database may have what the copy has not, with one driver
        self._is_towards: Direction | None = None
        self._run: int | None = None
        self._first_request = 0  # what was asked of all drivers before is not for this one
        self._heeded: set[int] = set()
        self._looked_for_dead = 0.0
        self._heartbeat: Heartbeat | None = None
        self._is_open = True
        with explained(self.address):
            self._db: Db | None = connected(self.address)
            try:
                tables.prepare(self._db, may_write=not read_only)
                if read_only:
                    self._check_there(self._db)
                else:
                    self._enter(self._db)
            except BaseException:
                self._disconnect()
                raise
        if not read_only:
            self._heartbeat = Heartbeat(self.address, self._key)

    # -- the promises --------------------------------------------------------------------------------------------------

    def settings(self) -> Mapping[str, Json] | None:
        """What ``create`` was given; None where there is no study yet."""
        return self._retrying(self._read_settings)

    def create(self, settings: Mapping[str, Json], trials: Sequence[Trial] = ()) -> None:
        """Begin the study, with its first trials."""
        _, text, checksum = _rows.settings_row(settings)

        def begin(db: Db, copy: _Copy) -> tuple[None, _Copy]:
            if self._read_settings(db) is not None:
                raise StudyError("the study exists already")
            sql = "UPDATE nasbot.studies SET settings = %s, crc = %s WHERE study = %s"
            run(db, sql, text, checksum, self._study)
            empty = replace(copy, history=History(direction=study_direction(settings)))
            return None, self._write(db, empty, trials, is_first=True)

        self._committed(begin)

    def history(self) -> History:
        """Everything recorded so far, by any driver."""
        self._check_open()
        is_alone = not self.read_only and not self.is_shared
        if is_alone and not self._is_behind:
            return self._copy.history
        self._copy = self._retrying(self._read_snapshot)
        self._is_behind = False
        return self._copy.history

    def tally(self) -> Tally:
        """The study in numbers."""
        return Tally.of_history(self.history())

    def some(self, numbers: Sequence[int]) -> list[Trial]:
        """The trials with these numbers, in this order."""
        history = self.history()
        return [history[number] for number in numbers]

    def save(self, *trials: Trial, answers: Sequence[Answer] = ()) -> None:
        """Record these trials and answers, all or none; on the server's disk when this returns."""
        self.change(lambda history: trials, answers=answers)

    def runs(self) -> Sequence[Run]:
        """Every stretch of driving so far."""
        return self._retrying(self._read_runs)

    def save_run(self, run_now: Run) -> None:
        """Record a later state of this driver's run; where it is alone, the next run too."""
        self._check_begun()

        def write(db: Db, copy: _Copy) -> tuple[None, _Copy]:
            known = self._read_runs(db)
            if not self.is_shared:
                with_run(known, run_now)
            elif run_now.number != self._run or known[run_now.number].state is RunState.ENDED:
                raise StudyError(f"run {run_now.number} is not an open one of this driver")
            self._write_run(db, run_now)
            self._note_run(db, run_now.number)
            return None, copy

        self._committed(write)
        self._run = run_now.number

    def requests(self) -> Sequence[Request]:
        """What others ask and nobody has answered yet; what was asked of all drivers, until this one has answered."""
        return self._retrying(self._read_requests)

    def presence(self) -> Presence:
        """Whether somebody is driving, and the last sign of life."""
        sql = f"""SELECT coalesce(bool_or(NOT {IS_DEAD}), false), extract(epoch FROM max(d.beat))::double precision
            FROM nasbot.drivers d WHERE d.study = %s"""
        found = self._retrying(lambda db: first(db, sql, *self._limits, self._study)) or (False, None)
        return Presence(is_held=bool(found[0]), seen=found[1])

    def close(self) -> None:
        """Let go of the server and of the driver's place; of several drivers, let this one's running trials wait."""
        if not self._is_open:
            return
        if self._heartbeat is not None:
            patience, self.patience = self.patience, 0.0  # a server that is away will find out by itself
            with suppress(NasbotError):
                self._committed(self._leave)
            self.patience = patience
            self._heartbeat.stop()
        self._is_open = False
        self._disconnect()

    # -- several drivers -----------------------------------------------------------------------------------------------

    def change(self, decide: Decide, *, answers: Sequence[Answer] = ()) -> tuple[Trial, ...]:
        """Record what ``decide`` makes of the newest history; nobody else writes to the study meanwhile."""
        self._check_begun()

        def write(db: Db, copy: _Copy) -> tuple[tuple[Trial, ...], _Copy]:
            for answer in answers:
                self._answer(db, answer)
            trials = tuple(decide(copy.history))
            return trials, self._write(db, copy, trials)

        trials = self._committed(write)
        self._heeded |= {answer.request.number for answer in answers}
        return trials

    def join(self, new: Run) -> Run:
        """Record a new run, beside those of others."""
        self._check_begun()

        def write(db: Db, copy: _Copy) -> tuple[tuple[Run, int], _Copy]:
            numbered = replace(new, number=len(self._read_runs(db)))
            self._write_run(db, numbered)
            self._note_run(db, numbered.number)
            return (numbered, self._next_request(db)), copy

        joined, self._first_request = self._committed(write)
        self._run = joined.number
        return joined

    def is_ours(self, number: int) -> bool:
        """Whether this driver began the trial of this number, which runs."""
        return self._copy.owners.get(number) == self._key

    def release_dead(self) -> tuple[Trial, ...]:
        """Let the trials of drivers that are no more wait again; looks every other second at most."""
        if time.monotonic() - self._looked_for_dead < BEAT_SECONDS:
            return ()
        self._looked_for_dead = time.monotonic()
        sql = f"SELECT 1 FROM nasbot.drivers d WHERE d.study = %s AND d.driver <> %s AND {IS_DEAD}"
        if self._retrying(lambda db: first(db, sql, self._study, self._key, *self._limits)) is None:
            return ()
        return self._committed(self._buried)

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Whether it is this driver's turn to propose; the server takes it back from one that is gone."""
        digest = hashlib.sha256(f"nasbot turn {self._study}".encode()).digest()
        key = int.from_bytes(digest[:8], "big") >> 2
        got = self._retrying(lambda db: first(db, "SELECT pg_try_advisory_lock(%s)", key))
        is_ours = got is not None and bool(got[0])
        db = self._db
        try:
            yield is_ours
        finally:
            if is_ours and db is self._db and db is not None:  # a new connection has not got it
                with suppress(psycopg.Error):
                    run(db, "SELECT pg_advisory_unlock(%s)", key)

    # -- coming and going ----------------------------------------------------------------------------------------------

    def _enter(self, db: Db) -> None:
        """Take a driver's place; one that has just died is waited for until it is known to be dead."""
        run(db, "INSERT INTO nasbot.studies VALUES (%s, 0, NULL, NULL) ON CONFLICT DO NOTHING", self._study)
        while True:
            with db.transaction():
                copy = self._newest(db)
                _, copy = self._buried(db, copy)
                sql = f"SELECT d.is_shared, d.holder, {IS_CONNECTED} FROM nasbot.drivers d WHERE d.study = %s"
                others = run(db, sql, self._study).fetchall()
                in_the_way = [row for row in others if not (row[0] and self.is_shared)]
                if not in_the_way:
                    run(
                        db,
                        "INSERT INTO nasbot.drivers VALUES (%s, %s, %s, NULL, clock_timestamp(), 0, %s)",
                        *(self._study, self._key, self.is_shared, signature()),
                    )
                    self._first_request = self._next_request(db)
            self._copy = copy
            if not in_the_way:
                return
            if any(is_connected for *_, is_connected in in_the_way):
                how = "a study has one driver at a time, unless all of them share it (shared=True, --shared)"
                raise StudyError(f"the study is being driven by {signed(in_the_way[0][1])}; {how}")
            time.sleep(SECONDS_BETWEEN_TRIES)

    def _leave(self, db: Db, copy: _Copy) -> tuple[None, _Copy]:
        if self.is_shared:
            return None, self._released(db, copy, [self._key])
        self._forget(db, [self._key])
        return None, copy

    def _buried(self, db: Db, copy: _Copy) -> tuple[tuple[Trial, ...], _Copy]:
        """Drivers that died without a word: their runs ended with their last signs of life, their trials wait."""
        sql = f"""SELECT d.driver, d.run, extract(epoch FROM d.beat)::double precision FROM nasbot.drivers d
            WHERE d.study = %s AND d.driver <> %s AND {IS_DEAD}"""
        dead = run(db, sql, self._study, self._key, *self._limits).fetchall()
        runs = self._read_runs(db) if dead else ()
        for _, number, seen in dead:
            if number is not None and runs[number].state is not RunState.ENDED:
                self._write_run(db, runs[number].over("died", at=max(runs[number].begun, seen)))
        if not self.is_shared:  # alone: whatever runs is its own now, and the study lets it wait
            self._forget(db, [row[0] for row in dead])
            return (), copy
        after = self._released(db, copy, [row[0] for row in dead])
        return tuple(t for t in after.history.pending if copy.history[t.number] != t), after

    def _released(self, db: Db, copy: _Copy, drivers: Sequence[int]) -> _Copy:
        """Their running trials wait again, and so do those of nobody, which one that was alone has left."""
        self._forget(db, drivers)
        living = {row[0] for row in run(db, "SELECT driver FROM nasbot.drivers WHERE study = %s", self._study)}
        left = [copy.history[number] for number, owner in copy.owners.items() if owner not in living]
        return self._write(db, copy, [trial.requeued(interrupted=True) for trial in left], releases=True)

    def _forget(self, db: Db, drivers: Sequence[int]) -> None:
        sql = "DELETE FROM nasbot.drivers WHERE study = %s AND driver = ANY(%s::bigint[])"
        run(db, sql, self._study, list(drivers))

    # -- reading -------------------------------------------------------------------------------------------------------

    def _read_snapshot(self, db: Db) -> _Copy:
        """The copy, up to date: one statement where nothing was written, one state of the study where something was."""
        row = first(db, "SELECT version FROM nasbot.studies WHERE study = %s", self._study)
        if row is None or row[0] == self._copy.version:
            return self._copy
        db.execute(_SNAPSHOT)
        try:
            row = first(db, "SELECT version FROM nasbot.studies WHERE study = %s", self._study)
            return self._copy if row is None else self._caught_up(db, row[0])
        finally:
            db.execute(b"COMMIT")

    def _newest(self, db: Db) -> _Copy:
        """The copy, up to date, and nobody else writes to this study until the end of the transaction."""
        row = first(db, "SELECT version FROM nasbot.studies WHERE study = %s FOR UPDATE", self._study)
        if row is None:
            raise StorageError("the study is not there any more")
        return self._caught_up(db, row[0])

    def _caught_up(self, db: Db, version: int) -> _Copy:
        copy = self._copy
        if version == copy.version:
            return copy
        tables.check_sizes(db, self._study, copy.version)
        sql = f"SELECT {_rows.COLUMNS}, driver FROM nasbot.trials WHERE study = %s AND changed > %s ORDER BY number"
        rows = run(db, sql, self._study, copy.version).fetchall()
        sql = """SELECT trial, position, step, value, crc FROM nasbot.points
            WHERE study = %s AND trial = ANY(%s::bigint[]) ORDER BY trial, position"""
        points = run(db, sql, self._study, [row[0] for row in rows]).fetchall()
        curves = _rows.curves_of(points)
        direction = self._direction(db)
        trials = [
            _rows.trial_of(unpacked(row[:-1], 4), curves.get(row[0], ()), self._vocabulary, direction) for row in rows
        ]
        owners = {**copy.owners, **{row[0]: row[-1] for row in rows}}
        try:
            known = len(copy.history) > 0
            history = caught_up(copy.history, trials) if known else History(tuple(trials), direction)
        except StudyError as error:
            raise StorageError(f"trials are missing: {error}") from None
        running = {trial.number for trial in history.pending if trial.state is TrialState.RUNNING}
        return _Copy(history, {n: owner for n, owner in owners.items() if n in running}, version)

    def _direction(self, db: Db) -> Direction:
        """Of the study; settings never change, so they are looked up once."""
        if self._is_towards is None:
            settings = self._read_settings(db)
            if settings is None:
                return Direction.MAXIMISE
            self._is_towards = _rows.stored_direction(settings)
        return self._is_towards

    def _read_settings(self, db: Db) -> Mapping[str, Json] | None:
        row = first(db, "SELECT settings, crc FROM nasbot.studies WHERE study = %s", self._study)
        if row is None or row[0] is None:
            return None
        return _rows.settings_of((1, *row))

    def _read_runs(self, db: Db) -> tuple[Run, ...]:
        sql = f"SELECT {_rows.RUN_COLUMNS} FROM nasbot.runs WHERE study = %s ORDER BY number"
        return _rows.runs_of(run(db, sql, self._study))

    def _read_requests(self, db: Db) -> tuple[Request, ...]:
        first_of_ours = self._first_request if self.is_shared else None
        sql = f"""SELECT {_rows.REQUEST_COLUMNS} FROM nasbot.requests
            WHERE study = %s AND (answer IS NULL OR (trial IS NULL AND number >= %s)) ORDER BY number"""
        found = [_rows.request_of(unpacked(row, 4, 5)) for row in run(db, sql, self._study, first_of_ours)]
        return tuple(request for request in found if request.answer is None or request.number not in self._heeded)

    def _next_request(self, db: Db) -> int:
        row = first(db, "SELECT coalesce(max(number) + 1, 0) FROM nasbot.requests WHERE study = %s", self._study)
        return 0 if row is None else int(row[0])

    def _check_there(self, db: Db) -> None:
        if self._read_settings(db) is None:
            raise FileError("there is no such study in this database")

    # -- writing -------------------------------------------------------------------------------------------------------

    def _write(
        self, db: Db, copy: _Copy, trials: Sequence[Trial], *, releases: bool = False, is_first: bool = False
    ) -> _Copy:
        if not trials and not is_first:
            return copy
        after, owners, version = copy.history, dict(copy.owners), copy.version + 1
        names = ("study", *_rows.COLUMNS.split(", "), "changed", "driver")
        marks = ", ".join(["%s"] * len(names))
        sql = f"""INSERT INTO nasbot.trials ({", ".join(names)}) VALUES ({marks})
            ON CONFLICT (study, number) DO UPDATE SET {_rows.updates(names[2:])}"""
        for trial in trials:
            was = after[trial.number] if 0 <= trial.number < len(after) else None
            if was is not None and was.state is TrialState.RUNNING and self.is_shared and not releases:
                self._check_ours(trial.number, owners)
            after = following(after, (trial,))
            owners.pop(trial.number, None)
            if trial.state is TrialState.RUNNING:
                owners[trial.number] = self._key
            run(db, sql, self._study, *packed(_rows.trial_row(trial), 4), version, owners.get(trial.number))
            holds, points = _rows.curve_rows(() if was is None else was.curve, trial)
            if not holds:
                run(db, "DELETE FROM nasbot.points WHERE study = %s AND trial = %s", self._study, trial.number)
            for row in points:
                run(db, "INSERT INTO nasbot.points VALUES (%s, %s, %s, %s, %s, %s)", self._study, *row)
        run(db, "UPDATE nasbot.studies SET version = %s WHERE study = %s", version, self._study)
        return _Copy(after, owners, version)

    def _check_ours(self, number: int, owners: Mapping[int, int | None]) -> None:
        if owners.get(number) != self._key:
            raise ClaimLostError(f"trial {number} is another driver's")

    def _write_run(self, db: Db, written: Run) -> None:
        then = _rows.updates(_rows.RUN_COLUMNS.split(", ")[1:])
        sql = f"""INSERT INTO nasbot.runs (study, {_rows.RUN_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)
            ON CONFLICT (study, number) DO UPDATE SET {then}"""
        run(db, sql, self._study, *_rows.run_row(written))

    def _note_run(self, db: Db, number: int) -> None:
        """So that others know which run ends with this driver."""
        run(db, "UPDATE nasbot.drivers SET run = %s WHERE study = %s AND driver = %s", *self._as(number))

    def _answer(self, db: Db, answer: Answer) -> None:
        """The first driver's answer stays."""
        row = packed(_rows.answered_row(answer), 4, 5)
        sql = """UPDATE nasbot.requests SET answer = %s, answered = %s, crc = %s
            WHERE study = %s AND number = %s AND answer IS NULL"""
        run(db, sql, *row[-3:], self._study, answer.request.number)

    def _committed(self, work: Callable[[Db, _Copy], tuple[T, _Copy]]) -> T:
        """What ``work`` gives, in a transaction that is on the server's disk when this returns.

        Where the answer to a commit was lost with the connection, the driver's own row says whether it was made.
        """
        if self.read_only:
            raise StudyError(f"{self.address} is open for reading only")
        self._n_written += 1
        given: list[T] = []

        def attempt(db: Db) -> tuple[T, _Copy | None]:
            with db.transaction():
                copy = self._newest(db)
                sql = "SELECT n_written FROM nasbot.drivers WHERE study = %s AND driver = %s"
                row = first(db, sql, self._study, self._key)
                if row is None:
                    raise StudyError(
                        "this driver was not heard of for long and was taken for dead; others have its trials, and "
                        "what they wrote is as it was. Begin it again to go on"
                    )
                if given and row[0] == self._n_written:
                    return given[-1], None
                result, after = work(db, copy)
                given.append(result)
                sql = """UPDATE nasbot.drivers SET n_written = %s, beat = clock_timestamp()
                    WHERE study = %s AND driver = %s"""
                run(db, sql, *self._as(self._n_written))
            return result, after

        result, after = self._retrying(attempt)
        if after is None:
            self._is_behind = True
        else:
            self._copy = after
        return result

    def _retrying(self, work: Callable[[Db], T]) -> T:
        """What ``work`` gives, which is called again on a new connection where the server was away."""
        self._check_open()
        begun, has_warned = time.monotonic(), False
        with explained(self.address):
            while True:
                try:
                    if self._db is None:
                        self._db = connected(self.address)
                    return work(self._db)
                except PASSING as error:
                    self._disconnect()
                    if time.monotonic() - begun >= self.patience:
                        raise
                    if not has_warned:
                        what, patience = in_one_line(error), self.patience
                        LOG.warning("%s: %s; waiting for the server, up to %g s", self.address, what, patience)
                        has_warned = True
                    time.sleep(min(SECONDS_BETWEEN_TRIES, self.patience))

    def _as(self, value: object) -> tuple[object, str, int]:
        return value, self._study, self._key

    def _check_begun(self) -> None:
        if self._is_towards is None and self.settings() is None:
            raise StudyError(f"{self.address}: the study does not exist yet: create it first")

    def _check_open(self) -> None:
        if not self._is_open:
            raise StudyError(f"{self.address}: the study is closed")

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()


# -- without a driver --------------------------------------------------------------------------------------------------


def is_begun(address: Address) -> bool:
    """Whether there is such a study in its database."""
    return address.name in study_names(address)


def study_names(database: Address) -> list[str]:
    """The studies of a database, whichever of them the address names."""
    with explained(database), connected(database) as db:
        try:
            tables.prepare(db, may_write=False)
        except StorageError as error:
            if "ever begun" in str(error):
                return []
            raise
        sql = "SELECT study FROM nasbot.studies WHERE settings IS NOT NULL ORDER BY study"
        return [str(row[0]) for row in run(db, sql)]


def post_request(address: Address, kind: RequestKind | str, trial: int | None = None) -> Request:
    """Ask something of whoever drives this study, now or next; returns when the server's disk has it."""
    with explained(address), connected(address) as db:
        tables.prepare(db, may_write=False)
        with db.transaction():
            sql = "SELECT version FROM nasbot.studies WHERE study = %s AND settings IS NOT NULL FOR UPDATE"
            if first(db, sql, address.name) is None:
                raise FileError("there is no such study in this database")
            sql = "SELECT coalesce(max(number) + 1, 0) FROM nasbot.requests WHERE study = %s"
            number = (first(db, sql, address.name) or (0,))[0]
            request = Request(number=number, kind=RequestKind(kind), trial=trial, made=time.time(), by=who())
            names = f"study, {_rows.REQUEST_COLUMNS}"
            marks = ", ".join(["%s"] * (names.count(",") + 1))
            sql = f"INSERT INTO nasbot.requests ({names}) VALUES ({marks})"
            run(db, sql, address.name, *packed(_rows.request_row(request), 4, 5))
    return request


def packed(row: _rows.Row, *places: int) -> _rows.Row:
    """The row with these texts as JSON: PostgreSQL has no NUL in a text, and not every encoding has all letters."""
    return tuple(json.dumps(cell) if i in places and cell is not None else cell for i, cell in enumerate(row))


def unpacked(row: _rows.Row, *places: int) -> _rows.Row:
    """What ``packed`` was given; StorageError where it is something else."""
    try:
        return tuple(_text(cell) if i in places and cell is not None else cell for i, cell in enumerate(row))
    except (ValueError, RecursionError):
        raise StorageError(f"a text in row {row[0]} is damaged") from None


def _text(cell: str) -> str:
    text = json.loads(cell)
    if not isinstance(text, str):
        raise ValueError
    return text

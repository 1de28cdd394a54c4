"""A study as the server sees it: read when it has changed, its state looked up at every tick, nothing written.

What was seen is one frozen value (``Seen``), so an answer never mixes two moments. Reading keeps to a pace: it takes at
most a fiftieth of the time, however large the study, because the search that is being watched needs the machine.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from nasbot._typing import Json
from nasbot.errors import NasbotError
from nasbot.page.beside import Beside, files_beside
from nasbot.page.excerpt import MOST_WHOLE, Excerpt, ExcerptReader
from nasbot.page.payload import NOTHING_BESIDE, about_record, as_json, strip_record
from nasbot.page.records import trial_record
from nasbot.plots.snapshot import Snapshot
from nasbot.storage import Address, PartedStorage, Storage, open_storage
from nasbot.storage.memory import study_direction
from nasbot.study.status import StudyStatus, status_of
from nasbot.trial import History, Trial

MIN_PACE = 1.0  # seconds between two readings
MAX_PACE = 30.0
SHARE = 50  # of the time that readings may take, the inverse
SETTLED_SECONDS = 2.0  # a file changed so recently may change again within the same time stamp
GLANCE_SECONDS = (
    15.0  # after a glance at very many trials, before two thousand of them are rebuilt, which takes seconds
)
REOPEN_SECONDS = 300.0
PER_PART = 500  # trials of a large study that are rebuilt at once
NO_STUDY = "there is no study in this file yet"


@dataclass(frozen=True)
class Seen:
    """A study at one moment. ``changed[n]`` is the revision in which trial n was last different."""

    epoch: str
    revision: int
    snapshot: Snapshot
    status: StudyStatus | None = None
    records: tuple[str, ...] = ()  # JSON of each trial
    changed: tuple[int, ...] = ()
    problem: str = ""
    about: str = "{}"
    beside: Beside = NOTHING_BESIDE
    texts: dict[str, str] = field(default_factory=dict, compare=False)  # what was made of it, by name

    def strip(self) -> dict[str, Json]:
        """The strip on top of the page."""
        record = strip_record(self.snapshot, self.status)
        return record | ({"state": "unreadable", "problem": self.problem} if self.problem else {})


class WatchedStudy:
    """One study, in a file or a database. ``look`` is for one thread; ``seen`` is what was seen last.

    With ``glances`` the first look at a study of very many trials is a quick one, and the next a while later.
    """

    def __init__(self, path: Path | Address, name: str, *, glances: bool = False) -> None:
        self.path, self.name, self.glances = path, name, glances
        self.pace = MIN_PACE
        self.seen = Seen(secrets.token_hex(8), 0, Snapshot(History(), name=name))
        self._storage: Storage | None = None
        self.large: ExcerptReader | None = None  # of a study of very many trials
        self._signature: tuple[object, ...] = ()
        self._read_at = self._opened_at = -MAX_PACE
        self._rests_until = -MAX_PACE  # a damaged file that takes long to refuse must not keep others waiting
        self._is_settled = False
        self._lock = Lock()

    @property
    def place(self) -> str:
        """Where it is, for the process that draws figures; may hold a password."""
        return self.path.whole if isinstance(self.path, Address) else str(self.path.absolute())

    def look(self) -> Seen:
        """What there is to see now: the state always, the trials where they changed and the pace allows."""
        with self._lock:
            begun = time.monotonic()
            if begun < self._rests_until:
                return self.seen
            try:
                self.seen = self._looked()
            except NasbotError as error:
                self.close()
                self.seen = replace(self.seen, problem=str(error)[:500], status=None, texts={})
                now = time.monotonic()
                self._rests_until = now + min(MAX_PACE, SHARE * (now - begun))
            return self.seen

    def close(self) -> None:
        """Let go of the file; the next look opens it again."""
        if self._storage is not None:
            self._storage.close()
            self._storage = self.large = None
        self._signature = ()

    def trial(self, number: int) -> Trial | None:
        """Any trial of the study, for the thread that looks; None where there is none."""
        history = self.seen.snapshot.history
        if not isinstance(history, Excerpt):
            return history[number] if number < len(history) else None
        if number >= history.tally.n_trials or not isinstance(self._storage, PartedStorage):
            return None
        return self._storage.some([number])[0]

    def all_trials(self) -> Iterator[Trial]:
        """Every trial by number, a few at a time where there are very many; for the thread that looks."""
        history = self.seen.snapshot.history
        if not isinstance(history, Excerpt) or not isinstance(self._storage, PartedStorage):
            yield from history
            return
        for first in range(0, history.tally.n_trials, PER_PART):
            yield from self._storage.some(range(first, min(first + PER_PART, history.tally.n_trials)))

    def changed_at(self) -> float:
        """When the study was last written to, seconds since 1970; 0 where the file is gone, or in a database."""
        times = [0.0]
        for file in () if isinstance(self.path, Address) else (self.path, _log_of(self.path)):
            with suppress(OSError):
                times.append(file.stat().st_mtime)
        return max(times)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _looked(self) -> Seen:
        signature = self._signature_now()
        if self._storage is None or signature[0] != (self._signature or signature)[0]:  # another file of this name
            self.close()
            self._storage = storage = open_storage(self.path, read_only=True)
            storage.patience = 0.0  # where a server is away the page says so, and asks again
            self._opened_at = time.monotonic()
        status = status_of(self._storage)
        if status.run is None and time.monotonic() - self._opened_at > REOPEN_SECONDS:
            self.close()  # a file of the first version knows no runs; a driver may have migrated it since
            return self._looked()
        is_changed = signature != self._signature or not self._is_settled
        if is_changed and time.monotonic() - self._read_at >= self.pace:
            return self._read(signature, status)
        return replace(self.seen, status=status, problem="")

    def _read(self, signature: tuple[object, ...], status: StudyStatus) -> Seen:
        begun = time.thread_time()
        assert self._storage is not None
        settings = self._storage.settings()
        if settings is None:
            return replace(self.seen, status=status, problem=NO_STUDY)
        before = self.seen
        seen = self._with_records(before, Snapshot(self._read_history(settings), self.name, settings), status)
        self._signature, self._read_at = signature, time.monotonic()
        newest = max((stamp for stamp in signature[1:] if isinstance(stamp, float)), default=0.0)
        self._is_settled = time.time() - newest > SETTLED_SECONDS and not self._is_glance
        if self._is_glance:
            self.glances, self.pace = False, GLANCE_SECONDS
        elif before.records:  # the first reading takes every trial apart, later ones those that changed
            self.pace = min(MAX_PACE, max(MIN_PACE, SHARE * (time.thread_time() - begun)))
        return seen

    def _read_history(self, settings: Mapping[str, Json]) -> History:
        """All trials; of very many in a file an excerpt, which stays one."""
        storage = self._storage
        assert storage is not None
        if self.large is None and isinstance(storage, PartedStorage) and storage.n_trials() > MOST_WHOLE:
            self.large = ExcerptReader(storage)
        if self.large is None:
            return storage.history()
        if self._is_glance:
            return self.large.glance(study_direction(settings))
        return self.large.read(study_direction(settings))

    @property
    def _is_glance(self) -> bool:
        return self.glances and self.large is not None

    def _with_records(self, before: Seen, snapshot: Snapshot, status: StudyStatus) -> Seen:
        old: tuple[Trial, ...] = before.snapshot.history.trials
        is_same_study = before.snapshot.settings == snapshot.settings and len(old) <= len(snapshot.history)
        if not is_same_study and not isinstance(before.snapshot.history, Excerpt):
            before, old = Seen(secrets.token_hex(8), 0, snapshot), ()
        revision = before.revision + 1
        if isinstance(snapshot.history, Excerpt):
            return self._with_excerpt(before, snapshot, status, revision)
        records, changed = list(before.records), list(before.changed)
        for n, trial in enumerate(snapshot.history):
            if n < len(old) and old[n] is trial:
                continue
            text = as_json(trial_record(trial))
            if n >= len(records):
                records.append(text)
                changed.append(revision)
            elif records[n] != text or old[n].curve != trial.curve:
                records[n], changed[n] = text, revision
        beside = NOTHING_BESIDE if isinstance(self.path, Address) else Beside.of(self.path)
        if is_same_study and revision not in changed and before.about != "{}" and beside == before.beside:
            return replace(before, snapshot=snapshot, status=status, problem="")
        about = as_json(about_record(snapshot, status, str(self.path), beside))
        return Seen(before.epoch, revision, snapshot, status, tuple(records), tuple(changed), "", about, beside)

    def _with_excerpt(self, before: Seen, snapshot: Snapshot, status: StudyStatus, revision: int) -> Seen:
        """Which trials are in it changes as a study grows, so all of them are sent again."""
        records = tuple(as_json(trial_record(trial)) for trial in snapshot.history)
        beside = Beside.of(self.path)
        about = as_json(about_record(snapshot, status, str(self.path), beside))
        changed = (revision,) * len(records)
        return Seen(before.epoch, revision, snapshot, status, records, changed, "", about, beside)

    def _signature_now(self) -> tuple[object, ...]:
        """What changes with every write: the file's identity, sizes and times of it, of its log and of the model.

        A database is asked each time; where nothing was written since, that is one statement.
        """
        if isinstance(self.path, Address):
            return (self.path, time.monotonic())
        parts: list[object] = []
        for i, file in enumerate((self.path, _log_of(self.path), *files_beside(self.path))):
            try:
                found = file.stat()
            except OSError:
                parts.append(None)
                continue
            if i == 0:
                parts.append((found.st_dev, found.st_ino))
            parts += [found.st_size, found.st_mtime]
        return tuple(parts)


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")

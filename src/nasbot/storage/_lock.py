"""One driver per study: an operating-system lock on a file beside the study's, and the driver's sign of life.

``flock`` belongs to the open file, so the kernel frees it however the holder dies, SIGKILL included; a lock row with a
heartbeat would have to guess. The file itself stays: removing it could take the lock away from somebody who has just
opened it. On network file systems flock needs a lock daemon; where locking is not supported at all, opening fails.
Where the system has no ``flock`` (Windows), SQLite's own locks do the same (``_exclusive``).

The sign of life is the file's time of change: cheap enough for every second, needs no transaction, and is given even
while the disk is full.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path

from nasbot._files import open_regular
from nasbot.errors import FileError, StudyError
from nasbot.storage._exclusive import HeldError, Hold, is_held, taken
from nasbot.storage.records import Presence, signature, signed

MAX_HOLDER_BYTES = 1000
BEAT_SECONDS = 1.0
TRIES = 10  # somebody may be looking whether the lock is held, which takes a few microseconds
SECONDS_BETWEEN_TRIES = 0.02


class DriverLock:
    """Held from construction until ``release`` or the end of the process. Raises StudyError naming the holder."""

    def __init__(self, study: Path) -> None:
        self.path = lock_path(study)
        self._stopped = threading.Event()
        self._beating: threading.Thread | None = None
        # Not inherited by programs started from here; forks without exec let go of it, see below.
        self._file = open_regular(self.path, os.O_RDWR | os.O_CREAT, owners=_owners(study))
        try:
            self._hold = _tried(self.path, self._file)
        except HeldError:
            holder = self._holder()
            os.close(self._file)
            raise StudyError(f"{study} is being driven by {holder}; a study has one driver at a time") from None
        except OSError as error:
            os.close(self._file)
            raise FileError(f"cannot lock {self.path}: {error.strerror}") from None
        self.seen_before = os.fstat(self._file).st_mtime  # the last driver's last sign of life
        try:
            self._sign()
        except OSError as error:  # a full disk
            self._let_go()
            raise FileError(f"cannot write {self.path}: {error.strerror}") from None
        _held.add(self)

    def release(self) -> None:
        """Let another driver in; harmless when repeated."""
        self.rest()
        if self._file >= 0:
            self._let_go()

    def _let_go(self) -> None:
        if self._hold is not None:
            self._hold.close()
        os.close(self._file)
        self._file, self._hold = -1, None

    def beat(self) -> None:
        """Give a sign of life now and every second from here on, until ``rest``."""
        if self._beating is None:
            self._stopped.clear()
            self._touch()
            self._beating = threading.Thread(target=self._keep_beating, name="nasbot-sign-of-life", daemon=True)
            self._beating.start()

    def rest(self) -> None:
        """Give no more signs of life."""
        if self._beating is not None:
            self._stopped.set()
            self._beating.join()
            self._beating = None

    def _keep_beating(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            self._touch()

    def _touch(self) -> None:
        with suppress(OSError):  # a file system that is gone for a while must not end a search
            os.utime(self._file if os.utime in os.supports_fd else self.path)

    def _sign(self) -> None:
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, signature().encode())

    def _holder(self) -> str:
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            return signed(os.read(self._file, MAX_HOLDER_BYTES))
        except OSError:
            return signed("")

    def _forget(self) -> None:
        """In a forked child: the lock is the parent's, and must end with it."""
        if self._file >= 0:
            with suppress(OSError):
                os.close(self._file)
            self._file, self._beating = -1, None


def lock_path(study: Path) -> Path:
    """The file beside the study's that its driver holds: beside the file itself, by whatever link it was named."""
    return Path(f"{os.path.realpath(study)}.lock")


def _owners(study: Path) -> set[int] | None:
    """Ourselves, and whoever the study belongs to; None where files have no owner's number."""
    if not hasattr(os, "geteuid"):
        return None
    with suppress(OSError):
        return {os.geteuid(), study.stat().st_uid}
    return {os.geteuid()}


def presence(study: Path) -> Presence:
    """Whether a driver holds this study, and its last sign of life; never creates a file."""
    try:
        file = open_regular(lock_path(study), os.O_RDONLY)
    except FileError:
        return Presence(is_held=False, seen=None)
    try:
        seen = os.fstat(file).st_mtime
        return Presence(is_held=is_held(lock_path(study), file), seen=seen)
    finally:
        os.close(file)


def _tried(path: Path, file: int) -> Hold:
    for _ in range(TRIES):
        try:
            return taken(path, file)
        except HeldError:
            time.sleep(SECONDS_BETWEEN_TRIES)
    raise HeldError


_held: weakref.WeakSet[DriverLock] = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_held):
        lock._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

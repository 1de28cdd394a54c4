"""One driver per study: an operating-system lock on a file beside the study's.

``flock`` belongs to the open file, so the kernel frees it however the holder dies, SIGKILL included; a lock row with a
heartbeat would have to guess. The file itself stays: removing it could take the lock away from somebody who has just
opened it. On network file systems flock needs a lock daemon; where locking is not supported at all, opening fails.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path

from nasbot.errors import FileError, StudyError

MAX_HOLDER_BYTES = 1000


class DriverLock:
    """Held from construction until ``release`` or the end of the process. Raises StudyError naming the holder."""

    def __init__(self, study: Path) -> None:
        self.path = study.with_name(study.name + ".lock")
        try:
            # Not inherited by programs started from here; a fork without exec (os.fork) would share it.
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise FileError(f"cannot open {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._holder()
            os.close(self._file)
            raise StudyError(f"{study} is being driven by {holder}; a study has one driver at a time") from None
        except OSError as error:
            os.close(self._file)
            raise FileError(f"cannot lock {self.path}: {error.strerror}") from None
        self._sign()

    def release(self) -> None:
        """Let another driver in; harmless when repeated."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _sign(self) -> None:
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps(holder).encode(), 0)

    def _holder(self) -> str:
        """Who holds it, for people: the signature is not trusted for anything."""
        try:
            holder = json.loads(os.pread(self._file, MAX_HOLDER_BYTES, 0))
            host = str(holder["host"])[:100]
            return f"process {int(holder['pid'])} on {host} since {str(holder['since'])[:40]}"
        except (ValueError, KeyError, TypeError, OSError, RecursionError):
            return "another process (which has not signed the lock yet)"

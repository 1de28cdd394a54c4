"""A driver's sign of life, every other second over a connection of its own, and when silence means death.

The connection holds an advisory lock, which ends with it: of a process that was killed the server knows at once. A
server that was restarted knows nothing for a moment, and a machine that lost its network seems connected for long; so a
driver is dead after ``grace`` seconds of silence without its lock, and after ``silence`` seconds with it. Both are
counted on the server's clock, and not while the server itself was away.
"""

from __future__ import annotations

import threading

import psycopg

from nasbot.errors import OptionError
from nasbot.storage.addresses import Address
from nasbot.storage.postgres.connecting import Db, connected, first, run

BEAT_SECONDS = 2.0
# Of a row d of drivers, with the values silence and grace.
SINCE = "extract(epoch FROM clock_timestamp() - greatest(d.beat, pg_postmaster_start_time()))"
IS_CONNECTED = """EXISTS (SELECT FROM pg_locks l JOIN pg_database b ON b.oid = l.database
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND b.datname = current_database()
    AND ((l.classid::bigint << 32) | l.objid::bigint) = d.driver)"""
IS_DEAD = f"({SINCE} > %s OR ({SINCE} > %s AND NOT {IS_CONNECTED}))"


class Heartbeat:
    """Beats from construction until ``stop`` or the end of the process."""

    def __init__(self, address: Address, driver: int) -> None:
        self._address = address
        self._driver = driver
        self._db: Db | None = None
        self._has_lock = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, name="nasbot-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No more signs of life."""
        self._stopped.set()
        self._thread.join(timeout=5 * BEAT_SECONDS)  # a server that does not answer must not keep anybody
        self._drop()

    def _keep_beating(self) -> None:
        while True:
            try:
                self._beat()
            except (psycopg.Error, OptionError):  # the driver itself says so, where it needs the server
                self._drop()
            if self._stopped.wait(BEAT_SECONDS):
                return

    def _beat(self) -> None:
        if self._db is None:
            self._db = connected(self._address)
        if not self._has_lock:
            got = first(self._db, "SELECT pg_try_advisory_lock(%s)", self._driver)
            self._has_lock = got is not None and bool(got[0])
        run(
            self._db,
            "UPDATE nasbot.drivers SET beat = clock_timestamp() WHERE study = %s AND driver = %s",
            self._address.name,
            self._driver,
        )

    def _drop(self) -> None:
        db, self._db, self._has_lock = self._db, None, False
        if db is not None:
            db.close()

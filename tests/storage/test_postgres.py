"""A study in a PostgreSQL database, against a real server."""

from itertools import count

import pytest

from nasbot.storage.postgres import heartbeat
from nasbot.storage.postgres import storage as storage_module
from nasbot.storage.postgres.storage import PostgresStorage
from nasbot.testing.shared_storage_conformance import SharedStorageConformance
from nasbot.testing.storage_conformance import StorageConformance


class TestPostgresStorage(StorageConformance):
    @pytest.fixture(autouse=True)
    def _database(self, database):
        self._addresses = (f"{database}#study-{n}" for n in count())

    def make_storage(self) -> PostgresStorage:
        return PostgresStorage(next(self._addresses))

    def reopened(self, storage: PostgresStorage) -> PostgresStorage:
        storage.close()
        return PostgresStorage(storage.address)


class TestSharedPostgresStorage(SharedStorageConformance):
    @pytest.fixture(autouse=True)
    def _database(self, database, monkeypatch):
        monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.1)
        monkeypatch.setattr(storage_module, "BEAT_SECONDS", 0.05)
        self._addresses = (f"{database}#study-{n}" for n in count())

    def make_drivers(self, n: int) -> list[PostgresStorage]:
        address = next(self._addresses)
        return [PostgresStorage(address, shared=True, grace=1.0) for _ in range(n)]

    def kill(self, driver: PostgresStorage) -> None:
        driver._heartbeat.stop()
        driver._disconnect()

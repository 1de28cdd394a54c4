from nasbot.storage import MemoryStorage
from nasbot.testing.storage_conformance import StorageConformance


class TestMemoryStorage(StorageConformance):
    def make_storage(self) -> MemoryStorage:
        return MemoryStorage()

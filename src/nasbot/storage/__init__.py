"""What is remembered of a study: in one SQLite file, or in memory."""

from nasbot.storage.base import Storage
from nasbot.storage.memory import MemoryStorage
from nasbot.storage.sqlite import SqliteStorage

__all__ = ["MemoryStorage", "SqliteStorage", "Storage"]

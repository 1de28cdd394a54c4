"""What is remembered of a study: in one SQLite file, or in memory."""

from nasbot.storage.base import Storage
from nasbot.storage.memory import MemoryStorage
from nasbot.storage.records import Answer, Presence, Request, RequestKind, Run, RunState
from nasbot.storage.sqlite import SqliteStorage, post_request

__all__ = [
    "Answer",
    "MemoryStorage",
    "Presence",
    "Request",
    "RequestKind",
    "Run",
    "RunState",
    "SqliteStorage",
    "Storage",
    "post_request",
]

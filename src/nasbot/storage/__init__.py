"""What is remembered of a study: in one SQLite file, or in memory."""

from nasbot.storage.base import Storage
from nasbot.storage.integrity import Examination, Repaired, examine, repair
from nasbot.storage.memory import MemoryStorage
from nasbot.storage.records import Answer, Presence, Request, RequestKind, Run, RunState
from nasbot.storage.sqlite import SqliteStorage, post_request

__all__ = [
    "Answer",
    "Examination",
    "MemoryStorage",
    "Presence",
    "Repaired",
    "Request",
    "RequestKind",
    "Run",
    "RunState",
    "SqliteStorage",
    "Storage",
    "examine",
    "post_request",
    "repair",
]

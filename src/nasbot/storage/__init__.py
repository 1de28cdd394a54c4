"""What is remembered of a study: in one SQLite file, or in memory."""

from nasbot.storage.base import Storage
from nasbot.storage.integrity import Examination, Repaired, examine, repair
from nasbot.storage.memory import MemoryStorage
from nasbot.storage.opening import is_begun, open_storage
from nasbot.storage.records import Answer, Presence, Request, RequestKind, Run, RunState
from nasbot.storage.sqlite import SqliteStorage, post_request
from nasbot.storage.tally import Tally

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
    "Tally",
    "examine",
    "is_begun",
    "open_storage",
    "post_request",
    "repair",
]

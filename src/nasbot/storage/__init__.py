"""What is remembered of a study: in one SQLite file, in a PostgreSQL database, or in memory."""

from nasbot.storage.addresses import Address
from nasbot.storage.base import PartedStorage, SharedStorage, Storage
from nasbot.storage.integrity import Examination, Repaired, examine, repair
from nasbot.storage.memory import MemoryStorage
from nasbot.storage.opening import is_begun, open_storage, post_request
from nasbot.storage.records import Answer, Presence, Request, RequestKind, Run, RunState
from nasbot.storage.sqlite import SqliteStorage
from nasbot.storage.tally import Tally

__all__ = [
    "Address",
    "Answer",
    "Examination",
    "MemoryStorage",
    "PartedStorage",
    "Presence",
    "Repaired",
    "Request",
    "RequestKind",
    "Run",
    "RunState",
    "SharedStorage",
    "SqliteStorage",
    "Storage",
    "Tally",
    "examine",
    "is_begun",
    "open_storage",
    "post_request",
    "repair",
]

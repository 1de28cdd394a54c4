"""What a study's file says beside its trials: who drove it when, and what others ask of the driver."""

from __future__ import annotations

import getpass
import json
import math
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from nasbot._json import plain_json
from nasbot._typing import Json
from nasbot.errors import StudyError


class RunState(StrEnum):
    """What a run is doing, as the driver itself says."""

    RUNNING = "running"
    PAUSED = "paused"  # begins no more trials until it is told to
    STOPPING = "stopping"  # begins no more trials, and ends with those that run
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One stretch of driving, from a driver's beginning to its end. Times are seconds since 1970, in UTC.

    ``record`` is plain data about the driver: pid, host, versions, executor, workers, budget ({trials, seconds}),
    command (the line that goes on with the study), and once it has ended ``ending`` (finished, stopped, interrupted,
    failed: …, died). Readers ask through the properties, which believe nothing that is not of the right type.
    """

    number: int
    begun: float
    state: RunState = RunState.RUNNING
    ended: float | None = None
    record: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", RunState(self.state))
        object.__setattr__(self, "record", plain_json(self.record))
        if (self.state is RunState.ENDED) != (self.ended is not None):
            raise StudyError(f"run {self.number}: a run that has ended says when, and no other")
        if not all(math.isfinite(when) for when in (self.begun, self.ended) if when is not None):
            raise StudyError(f"run {self.number}: expected finite times")

    def now(self, state: RunState) -> Run:
        """The same run, doing this."""
        return replace(self, state=state)

    def over(self, ending: str, *, at: float) -> Run:
        """The same run, ended."""
        return replace(self, state=RunState.ENDED, ended=at, record={**self.record, "ending": ending})

    @property
    def pid(self) -> int | None:
        """The driver's process."""
        return self._whole("pid")

    @property
    def host(self) -> str | None:
        """The driver's machine."""
        return self._text("host")

    @property
    def workers(self) -> int | None:
        """How many trials it runs at a time."""
        return self._whole("workers")

    @property
    def command(self) -> str | None:
        """The command line that goes on with the study, None where the driver was no command."""
        return self._text("command")

    @property
    def plan(self) -> str | None:
        """How its budget was to be spent, in words."""
        return self._text("plan")

    @property
    def ending(self) -> str | None:
        """How it ended."""
        return self._text("ending")

    def _whole(self, name: str) -> int | None:
        value = self.record.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _text(self, name: str) -> str | None:
        value = self.record.get(name)
        return value if isinstance(value, str) else None


class RequestKind(StrEnum):
    """What can be asked of a driver from outside."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"  # after the trials that run
    STOP_NOW = "stop-now"  # those that run go back to waiting
    CANCEL = "cancel"  # a trial that waits or runs
    RETRY = "retry"  # a trial that failed: its network is tried again, as a new trial

    @property
    def names_trial(self) -> bool:
        """Whether it is about one trial; otherwise it is about the run."""
        return self in (RequestKind.CANCEL, RequestKind.RETRY)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Something asked of the driver; ``answer`` says what became of it, None while the driver has not read it."""

    number: int
    kind: RequestKind
    made: float  # seconds since 1970, in UTC, here and below
    trial: int | None = None
    by: str = ""  # who asked, for people
    answer: str | None = None
    answered: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", RequestKind(self.kind))
        if self.kind.names_trial != (self.trial is not None):
            raise StudyError(f"{self.kind}: expected {'a' if self.kind.names_trial else 'no'} trial number")
        if (self.answer is None) != (self.answered is None):
            raise StudyError(f"request {self.number}: answer and answered are given together or not at all")


class Answer(NamedTuple):
    """What the driver did about a request."""

    request: Request
    text: str


class Presence(NamedTuple):
    """Whether somebody holds the driver's place, and when a driver last gave a sign of life (seconds since 1970)."""

    is_held: bool
    seen: float | None


# -- for people; nothing depends on them -------------------------------------------------------------------------------


def who() -> str:
    """Who is asking."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        user = str(os.getuid()) if hasattr(os, "getuid") else "somebody"
    return f"{user} on {socket.gethostname()}, process {os.getpid()}"


def signature() -> str:
    """What a driver leaves where others look for whoever drives."""
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since})


def signed(by: str | bytes) -> str:
    """The driver that left this ``signature``; it is not trusted for anything."""
    try:
        holder = json.loads(by)
        return f"process {int(holder['pid'])} on {str(holder['host'])[:100]} since {str(holder['since'])[:40]}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return "another process (which has not signed the lock yet)"

"""How a study is doing: whether somebody drives it, who, since when, and how to go on where nobody does.

Nothing here loads a searcher, so that whoever only looks (the live page, ``nasbot status``) starts quickly.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from nasbot._typing import Json
from nasbot.errors import OptionError
from nasbot.storage.base import Storage
from nasbot.storage.records import Presence, Run, RunState
from nasbot.study.budget import Budget
from nasbot.study.runs import is_ours


class StudyState(StrEnum):
    """What a study is doing."""

    RUNNING = "running"
    PAUSED = "paused"  # its driver waits for ``nasbot resume``
    STOPPING = "stopping"  # its driver finishes what runs
    IDLE = "idle"  # nobody drives it: its last run ended, or there was none
    DIED = "died"  # nobody drives it, and its last driver did not say goodbye


@dataclass(frozen=True)
class StudyStatus:
    """A study at one moment. Times are seconds since 1970, in UTC."""

    state: StudyState
    at: float  # when this was looked up
    seen: float | None  # the last sign of life of a driver
    run: Run | None  # the last one, of those that are open if there are any
    n_runs: int
    n_drivers: int = 0  # those that are open

    @property
    def is_driven(self) -> bool:
        """Whether a driver is there that heeds requests."""
        return self.state not in (StudyState.IDLE, StudyState.DIED)

    @property
    def silence(self) -> float | None:
        """Seconds since the last sign of life; a healthy driver gives one every second."""
        return None if self.seen is None else max(0.0, self.at - self.seen)

    @property
    def budget(self) -> Budget | None:
        """What the study may spend in all, as its last driver was told."""
        return None if self.run is None else budget_of(self.run)

    @property
    def workers(self) -> int | None:
        """How many trials its last driver ran at a time."""
        return None if self.run is None else self.run.workers

    @property
    def plan(self) -> str | None:
        """How its last driver meant to spend the budget, in words; None where it had no plan."""
        return None if self.run is None or self.run.plan is None else self.run.plan[:500]

    @property
    def command(self) -> str | None:
        """The command line that goes on with the study; None where its last driver was no command.

        None also where what the file says is not as nasbot writes it.
        """
        command = None if self.run is None else self.run.command
        return command if command is not None and is_ours(command) else None

    @property
    def driver(self) -> str | None:
        """Who drives it, or drove it last, for people."""
        if self.run is None or self.run.pid is None:
            return None
        last = f"process {self.run.pid} on {self.run.host or 'an unknown machine'}"
        return f"{self.n_drivers} drivers, the last to join {last}" if self.n_drivers > 1 else last

    def to_dict(self) -> dict[str, Json]:
        """As plain data."""
        run, budget = self.run, self.budget
        return {
            "state": str(self.state),
            "seen": self.seen,
            "silence": self.silence,
            "begun": run.begun if run else None,
            "ended": run.ended if run else None,
            "ending": run.ending if run else None,
            "pid": run.pid if run else None,
            "host": run.host if run else None,
            "workers": self.workers,
            "budget": None if budget is None else {"trials": budget.trials, "seconds": budget.seconds},
            "plan": self.plan,
            "command": self.command,
            "n_runs": self.n_runs,
            "n_drivers": self.n_drivers,
        }


def status_of(storage: Storage) -> StudyStatus:
    """How the study in this storage is doing now."""
    presence = storage.presence()  # before the runs: a driver that begins in between is seen a moment later
    runs = storage.runs()
    driving = [run for run in runs if run.state is not RunState.ENDED and presence.is_held and not _is_gone(run)]
    run = (driving or runs)[-1] if runs else None
    seen = presence.seen if run is None or presence.seen is None else max(presence.seen, run.begun)
    return StudyStatus(_state(run, presence), time.time(), seen, run, len(runs), len(driving))


def budget_of(run: Run) -> Budget | None:
    """The budget that a run was given, None where it had none."""
    given = run.record.get("budget")
    if not isinstance(given, Mapping):
        return None
    trials, seconds = given.get("trials"), given.get("seconds")
    try:
        return Budget(
            trials if isinstance(trials, int) else None, seconds if isinstance(seconds, int | float) else None
        )
    except OptionError:
        return None


def _state(run: Run | None, presence: Presence) -> StudyState:
    if run is None or run.state is RunState.ENDED:
        return StudyState.IDLE
    if not presence.is_held or _is_gone(run):
        return StudyState.DIED
    return StudyState(str(run.state))


def _is_gone(run: Run) -> bool:
    """Whether the driver was a process of this machine that is no more; its lock may outlive it in a child."""
    if run.pid is None or run.host != socket.gethostname() or os.name == "nt":  # whose os.kill(…, 0) is Ctrl-C
        return False
    try:
        os.kill(run.pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False

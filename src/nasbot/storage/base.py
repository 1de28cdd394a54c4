"""The seam between a study and whatever remembers it.

``nasbot.testing.storage_conformance`` checks the promises below on any implementation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from nasbot._typing import Json
from nasbot.storage.records import Answer, Presence, Request, Run
from nasbot.trial import History, Trial


class Storage(Protocol):
    """The memory of one study. Every implementation promises:

    - Acknowledged is kept: when ``create`` or ``save`` returns, what it was given outlives this process; in a file it
      outlives the machine's power. When it raises, nothing of it is kept and everything before it is.
    - Whole: all trials of one call become visible together, to this process and to every reader, or none does.
    - Exact: what is read equals what was written: numbers to the last bit (0 has no sign), networks layer by layer,
      the order of outcomes.
    - Strict: a trial changes only as ``History.with_trial`` allows, a run that has ended never, and there is one run at
      a time; anything else raises StudyError.
    - One driver: at most one storage writes a study at a time, another is refused with the holder named, and the
      death of the holder frees it. Readers are never refused and never delay the driver.
    - Inert: reading runs no code from what is read, and damage raises StorageError, never a wrong value.
    """

    def settings(self) -> Mapping[str, Json] | None:
        """What ``create`` was given; None where there is no study yet."""
        ...

    def create(self, settings: Mapping[str, Json], trials: Sequence[Trial] = ()) -> None:
        """Begin the study, with its first trials; StudyError where there is one already."""
        ...

    def history(self) -> History:
        """Everything recorded so far."""
        ...

    def save(self, *trials: Trial, answers: Sequence[Answer] = ()) -> None:
        """Record these trials, new ones or later states of known ones, and what was done about requests."""
        ...

    def runs(self) -> Sequence[Run]:
        """Every stretch of driving so far, the last one last."""
        ...

    def save_run(self, run: Run) -> None:
        """Record a run: the next one, or a later state of the last one."""
        ...

    def requests(self) -> Sequence[Request]:
        """What others ask and nobody has answered yet, oldest first; cheap to call often."""
        ...

    def presence(self) -> Presence:
        """Whether somebody is driving, and the last sign of life."""
        ...

    def close(self) -> None:
        """Let go of files and of the driver's place; may be called again, nothing else may."""
        ...

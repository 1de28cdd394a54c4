"""The seam between a study and whatever remembers it.

``nasbot.testing.storage_conformance`` checks the promises below on any implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias, runtime_checkable

from nasbot._typing import Json
from nasbot.storage.records import Answer, Presence, Request, Run
from nasbot.storage.tally import Line
from nasbot.trial import History, Trial

Decide: TypeAlias = "Callable[[History], Sequence[Trial]]"  # what to record, from what is recorded


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


@runtime_checkable
class PartedStorage(Storage, Protocol):
    """A storage that gives parts of a study without rebuilding the rest: for those of very many trials."""

    read_only: bool

    def n_trials(self) -> int:
        """How many trials there are; cheap."""
        ...

    def some(self, numbers: Sequence[int]) -> list[Trial]:
        """The trials with these numbers, in this order."""
        ...

    def lines(self, *, since: int = 0) -> list[Line]:
        """Each trial in numbers, by number; with ``since`` those not among the first so many outcomes recorded."""
        ...

    def quick_lines(self) -> list[Line]:
        """The same of all trials, without a look at checksums: for a first glance."""
        ...


@runtime_checkable
class SharedStorage(Storage, Protocol):
    """A storage through which several drivers work on one study where all of them say so (``is_shared``).

    The other promises hold, but for the one driver; these take its place:

    - Up to date: ``history`` has what every driver has recorded so far, the trials of others among those pending.
    - Decided on the newest: between the history that ``change`` hands out and the record of what was decided on it
      nobody writes, so numbers, ranks and claims are given once.
    - Claimed: a running trial belongs to the driver that began it; to write it is ClaimLostError for any other.
    - Released: trials of a driver that died or left wait again, interrupted, once somebody calls ``release_dead``, and
      its run has ended as "died". A driver that lives is never taken for dead while it gives signs of life.
    """

    is_shared: bool

    def change(self, decide: Decide, *, answers: Sequence[Answer] = ()) -> tuple[Trial, ...]:
        """Record what ``decide`` makes of the newest history, all or none, and return it; it may be called again."""
        ...

    def join(self, run: Run) -> Run:
        """Record a new run beside those of others; it comes back with the number that it was given."""
        ...

    def is_ours(self, number: int) -> bool:
        """Whether this driver began the trial of this number, which runs."""
        ...

    def release_dead(self) -> tuple[Trial, ...]:
        """Let the trials of drivers that are no more wait again; cheap to call often."""
        ...

    def turn(self) -> AbstractContextManager[bool]:
        """Whether it is this driver's turn to propose, until the end of the ``with``; never waits.

        It only saves work: of two that propose at once, one proposes again.
        """
        ...


def shared(storage: Storage) -> SharedStorage | None:
    """The storage as one of several drivers, None where there is one driver."""
    return storage if isinstance(storage, SharedStorage) and storage.is_shared else None


def change(storage: Storage, decide: Decide, *, answers: Sequence[Answer] = ()) -> tuple[Trial, ...]:
    """Record what ``decide`` makes of the history, with one driver or with several; what was recorded."""
    if (several := shared(storage)) is not None:
        return several.change(decide, answers=answers)
    trials = tuple(decide(storage.history()))
    if trials or answers:
        storage.save(*trials, answers=answers)
    return trials

"""The history of one driver after what others have recorded, however much that was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nasbot.errors import StorageError, StudyError
from nasbot.storage.memory import following
from nasbot.trial import History, Trial, TrialState


def caught_up(history: History, changed: Sequence[Trial]) -> History:
    """The history in which these trials, by number, are as they are now; it costs no copy of the others.

    Steps that were not seen are made up, so that each trial still changes only as ``History.with_trial`` allows.
    Raises StorageError where it cannot have become that.
    """
    steps: list[Trial] = []
    for trial in changed:
        unfinished = replace(trial, outcome=None, finished=None, rank=None)
        if trial.number < len(history):
            steps += _between(history[trial.number], unfinished)
        else:
            steps.append(unfinished)
    steps += sorted((trial for trial in changed if trial.rank is not None), key=lambda trial: trial.rank or 0)
    try:
        return following(history, steps)
    except StudyError as error:
        raise StorageError(f"what was recorded is not what can follow: {error}") from None


def _between(before: Trial, after: Trial) -> list[Trial]:
    """The states to pass through from one to the other, neither of which has an outcome."""
    if before == after:
        return []
    has_run_unseen = before.state is after.state is TrialState.WAITING
    return [replace(after, started=0.0), after] if has_run_unseen else [after]

"""What a study says when it is asked to leave: how far it came, the best so far, and how to go on."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from nasbot.execution.interruption import Interrupted
from nasbot.trial import TrialState

if TYPE_CHECKING:
    from nasbot.study.view import StudyView

THE_SAME_CALL = "the same call goes on from here"
NAMES = {signal.SIGINT: "Ctrl-C"}


def interrupted_message(study: StudyView, stop: Interrupted, *, resume: str = THE_SAME_CALL) -> str:
    """A few lines for a person; ``resume`` is the command that goes on with the study."""
    history = study.history
    waiting = sum(trial.state is TrialState.WAITING for trial in history)
    counts = f"{len(history.completed)} trials completed, {len(history.failed)} failed, {waiting} waiting"
    counts += f", {len(history.stopped)} stopped early" if history.stopped else ""
    best = study.best
    found = "none yet" if best is None else f"trial {best.number} with {best.value:.6g}"
    by = NAMES.get(signal.Signals(stop.signal), signal.Signals(stop.signal).name)
    return f"stopped by {by}, everything is recorded: {counts}\nbest so far: {found}\nresume: {resume}"

"""What can be asked of a study from outside, and what each request means for its trials.

A study that is being driven is asked through its file, and its driver does it; of one that nobody drives, whoever asks
takes the driver's place for a moment and does it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from nasbot.errors import StudyError
from nasbot.storage import Address, RequestKind, open_storage, post_request
from nasbot.storage.addresses import place_of
from nasbot.study.settings import naming_vocabulary
from nasbot.study.status import StudyStatus, status_of
from nasbot.trial import RETRY, Cancelled, Failed, History, Provenance, Stopped, Trial, TrialState


class Asked(NamedTuple):
    """What became of a request: done at once, or handed to the driver, who will do it soon."""

    done: bool
    text: str


def ask_study(where: str | Path, kind: RequestKind | str, trial: int | None = None) -> Asked:
    """Ask a study (name, file or address) to pause, resume, stop, cancel a trial or retry one.

    StudyError where that has no meaning.
    """
    what, place = RequestKind(kind), place_of(where)
    reader = open_storage(place, read_only=True)
    try:
        status = status_of(reader)
        if status.is_driven and trial is not None:
            with naming_vocabulary(reader):
                check_request(reader.history(), what, trial)
    finally:
        reader.close()
    if status.is_driven:
        post_request(place, what, trial)
        return Asked(False, f"asked {status.driver or 'the driver'} to {in_words(what, trial)}")
    if not what.names_trial or trial is None:
        raise StudyError(
            f"{place}: nobody drives this study, so there is nothing to {_verb(what)}{how_to_go_on(status)}"
        )
    return Asked(True, _do(place, what, trial))


def _do(place: Path | Address, kind: RequestKind, number: int) -> str:
    storage = open_storage(place)
    try:
        with naming_vocabulary(storage):
            changed, text = changed_trial(storage.history(), kind, number, at=None)
        storage.save(changed)
        return text
    finally:
        storage.close()


def how_to_go_on(status: StudyStatus) -> str:
    """The end of a sentence about a study that nobody drives."""
    return f"; go on with it by: {status.command}" if status.command else "; go on with it as it was begun"


def in_words(kind: RequestKind, trial: int | None) -> str:
    """A request as the end of "asked … to"."""
    return f"{_verb(kind)} trial {trial}" if kind.names_trial else _verb(kind)


def _verb(kind: RequestKind) -> str:
    return "stop at once" if kind is RequestKind.STOP_NOW else str(kind)


def check_request(history: History, kind: RequestKind, number: int) -> Trial:
    """The trial that is meant; StudyError where it cannot be cancelled or retried."""
    if not 0 <= number < len(history):
        raise StudyError(f"there is no trial {number}; the study has {len(history)}, numbered from 0")
    trial = history[number]
    if kind is RequestKind.CANCEL and trial.state.is_final:
        raise StudyError(f"trial {number} is {trial.state} already; only one that waits or runs can be cancelled")
    if kind is RequestKind.RETRY:
        if not isinstance(trial.outcome, Failed | Stopped):
            raise StudyError(f"trial {number} is {trial.state}; only one that failed or was stopped can be tried again")
        later = [t for t in history.trials[number + 1 :] if t.origin == Provenance(searcher=RETRY, of_trial=number)]
        if later and not isinstance(later[-1].outcome, Failed | Cancelled):
            raise StudyError(f"trial {number} is being tried again already, as trial {later[-1].number}")
    return trial


def changed_trial(history: History, kind: RequestKind, number: int, *, at: float | None) -> tuple[Trial, str]:
    """The trial to save for a request about a trial that does not run, and a sentence about it.

    ``at`` is the study's clock, by default where it stands.
    """
    trial = check_request(history, kind, number)
    if kind is RequestKind.RETRY:
        again = Trial(
            number=len(history),
            candidate=trial.candidate,
            fidelity=trial.fidelity,
            promoted_from=trial.promoted_from,
            origin=Provenance(searcher=RETRY, of_trial=number),
            proposed_after=len(history.finished),
        )
        return again, f"trial {number} will be tried again, as trial {again.number}"
    if trial.state is TrialState.RUNNING:  # of a driver that died
        trial = trial.requeued(interrupted=True)
    when = history.elapsed if at is None else at
    return trial.ended(Cancelled("on request"), at=when, rank=len(history.finished)), f"trial {number} is cancelled"

"""``nasbot pause``, ``resume``, ``stop``, ``cancel`` and ``retry``: asking something of a study from outside."""

from __future__ import annotations

from typing import Annotated

import typer

from nasbot.cli._options import Json, Study
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json

Trial = Annotated[int, typer.Argument(metavar="TRIAL", help="The trial's number, from 0.", show_default=False)]


def pause(study: Study, as_json: Json = False) -> None:
    """Let a running study begin no more trials until nasbot resume; those that run finish."""
    _ask(study, "pause", None, as_json=as_json)


def resume(study: Study, as_json: Json = False) -> None:
    """Let a paused study go on. Of one that nobody drives, say how to go on with it."""
    _ask(study, "resume", None, as_json=as_json)


def stop(
    study: Study,
    now: Annotated[bool, typer.Option("--now", help="Interrupt running trials; they go back to the queue.")] = False,
    as_json: Json = False,
) -> None:
    """Let a running study end when the trials that run have finished; it can be resumed."""
    _ask(study, "stop-now" if now else "stop", None, as_json=as_json)


def cancel(study: Study, trial: Trial, as_json: Json = False) -> None:
    """Cancel a trial that waits or runs; its network may be proposed again."""
    _ask(study, "cancel", trial, as_json=as_json)


def retry(study: Study, trial: Trial, as_json: Json = False) -> None:
    """Try the network of a failed trial again, as a new trial."""
    _ask(study, "retry", trial, as_json=as_json)


def _ask(study: str, kind: str, trial: int | None, *, as_json: bool) -> None:
    from nasbot.storage.addresses import without_password
    from nasbot.study.requests import ask_study

    asked = ask_study(study, kind, trial)
    if as_json:
        record = {"study": without_password(study), "request": kind, "trial": trial}
        print_json(record | {"done": asked.done, "message": asked.text})
    else:
        print(one_line(asked.text))

"""``nasbot status``: how a study is doing, once or until nobody drives it any more."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from nasbot._words import duration
from nasbot.cli._options import Json, Study
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.cli._summary import Summary

CLEAR = "\x1b[H\x1b[J"
LONG_SILENCE = 30.0  # seconds; a healthy driver gives a sign of life every second


def status(
    study: Study,
    watch: Annotated[bool, typer.Option("--watch", help="Keep refreshing until the study no longer runs.")] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", help="Refresh interval with --watch, in seconds.")] = 2.0,
    as_json: Json = False,
) -> None:
    """Show whether a study is running, paused, stopping, idle or died, and how far it came.

    Also who drives it, the last sign of life, and for a study that nobody drives how to go on with it.
    """
    if not 0.01 <= every <= 86400:
        raise OptionError(f"--every: expected 0.01 to 86400 seconds, got {every:g}")
    from nasbot.cli._summary import Watched

    with Watched(study) as watched:
        last = None
        while True:
            summary = watched.summary()
            shown = summary.to_dict()
            changed = {name: value for name, value in shown.items() if name not in ("seen", "silence")}
            if changed != last or (sys.stdout.isatty() and not as_json):
                _show(summary, as_json=as_json, clear=watch and sys.stdout.isatty())
                last = changed
            if not watch or not summary.status.is_driven:
                return
            time.sleep(every)


def _show(summary: Summary, *, as_json: bool, clear: bool) -> None:
    if as_json:
        print_json(summary.to_dict())
    else:
        print(CLEAR * clear + "\n".join(_lines(summary)))
    sys.stdout.flush()


def _lines(summary: Summary) -> list[str]:
    from nasbot.storage.tally import spent_in_words

    state, run = summary.status, summary.status.run
    rows = {
        "trials": str(summary.tally),
        "best": summary.best,
        "budget": str(state.budget or "") + f" ({duration(summary.tally.seconds)} elapsed)",
        "plan": state.plan,
        "time": spent_in_words(summary.tally.spent, duration),
        "driver": state.driver if state.is_driven else None,
        "workers": str(state.workers) if state.is_driven and state.workers else None,
        "last seen": _seen(summary),
        "ended": run.ending if run and not state.is_driven else None,
        "go on by": _command(summary),
    }
    lines = [f"{one_line(summary.name)}: {state.state}"]
    lines += [f"  {name:<9} {one_line(text.strip())}" for name, text in rows.items() if text]
    return lines


def _command(summary: Summary) -> str | None:
    """What goes on with the study; with a longer budget where the last run has had its own."""
    from nasbot.study.runs import with_longer_budget

    state = summary.status
    if state.is_driven or state.command is None:
        return None
    is_spent = state.run is not None and state.run.ending == "finished"
    return with_longer_budget(state.command) if is_spent else state.command


def _seen(summary: Summary) -> str | None:

    silence = summary.status.silence
    if silence is None:
        return None
    ago = f"{duration(silence)} ago"
    is_odd = summary.status.is_driven and silence > LONG_SILENCE
    return f"{ago}: its process lives but is stopped or stuck" if is_odd else ago

"""``python -m nasbot.page._worker``: slow figures; lines of [study, what, which] in, lines of JSON out, to the end.

A study stays open between two questions, so that only what has changed is read again.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace

from nasbot._system import be_nice
from nasbot.architecture.own_vocabulary import use_vocabulary
from nasbot.errors import NasbotError
from nasbot.page.excerpt import Excerpt
from nasbot.page.figures import figure_json, near_record
from nasbot.page.payload import as_json
from nasbot.page.watching import WatchedStudy
from nasbot.plots.snapshot import Snapshot, parent_of
from nasbot.storage.addresses import place_of

NICENESS = 15  # the search goes first


def main() -> int:
    """Answer until the input ends."""
    be_nice(NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's, at whose end the input ends
    for where in sys.argv[1:]:  # vocabularies that the server's caller has named
        use_vocabulary(where)
    watched: dict[str, WatchedStudy] = {}
    for line in sys.stdin:
        path, what, which = json.loads(line)
        try:
            if path not in watched:
                place = place_of(path)
                watched[path] = WatchedStudy(place, place.stem)
            text = _answer(watched[path], what, which)
        except NasbotError as error:
            watched.pop(path, None)
            text = json.dumps({"message": str(error)[:300]})
        print(text, flush=True)
    return 0


def _answer(study: WatchedStudy, what: str, which: str) -> str:
    seen = study.look()
    if seen.problem:
        return json.dumps({"message": seen.problem[:300]})
    if what == "figure":
        return figure_json(which, seen.snapshot)
    return as_json(near_record(_with_trial(study, seen.snapshot, int(which)), int(which)))


def _with_trial(study: WatchedStudy, snapshot: Snapshot, number: int) -> Snapshot:
    """The snapshot; one that is an excerpt with this trial and its parent in it."""
    history, trial = snapshot.history, study.trial(number)
    if trial is None or not isinstance(history, Excerpt):
        return snapshot
    parent = parent_of(trial, number)
    made_of = None if parent is None else study.trial(parent)
    trials = [*history, trial, *([] if made_of is None else [made_of])]
    return replace(snapshot, history=Excerpt(trials, history.tally, history.direction))


if __name__ == "__main__":
    sys.exit(main())

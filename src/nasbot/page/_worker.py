"""``python -m nasbot.page._worker``: slow figures; lines of [file, what, which] in, lines of JSON out, to the end.

A study stays open between two questions, so that only what has changed is read again.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from nasbot._system import be_nice
from nasbot.architecture.own_vocabulary import use_vocabulary
from nasbot.errors import NasbotError
from nasbot.page.figures import figure_json, near_record
from nasbot.page.payload import as_json
from nasbot.plots.snapshot import Snapshot
from nasbot.study import StudyView

NICENESS = 15  # the search goes first


def main() -> int:
    """Answer until the input ends."""
    be_nice(NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's, at whose end the input ends
    for where in sys.argv[1:]:  # vocabularies that the server's caller has named
        use_vocabulary(where)
    views: dict[str, StudyView] = {}
    for line in sys.stdin:
        path, what, which = json.loads(line)
        try:
            if path not in views:
                views[path] = StudyView.read(Path(path))
            text = _answer(Snapshot.of(views[path], name=Path(path).stem), what, which)
        except NasbotError as error:
            views.pop(path, None)
            text = json.dumps({"message": str(error)[:300]})
        print(text, flush=True)
    return 0


def _answer(snapshot: Snapshot, what: str, which: str) -> str:
    return figure_json(which, snapshot) if what == "figure" else as_json(near_record(snapshot, int(which)))


if __name__ == "__main__":
    sys.exit(main())

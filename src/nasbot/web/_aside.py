"""``python -m nasbot.web._aside FILE figure NAME``, or ``near NUMBER``: one answer of the page, as JSON."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

NICENESS = 15  # the search goes first


def main(path: str, kind: str, what: str) -> int:
    """Print the answer; an error is one line on standard error."""
    with suppress(OSError):
        os.nice(NICENESS)
    from nasbot.errors import NasbotError
    from nasbot.report.figures import figure_json, near_record
    from nasbot.report.payload import as_json
    from nasbot.report.snapshot import Snapshot
    from nasbot.study import StudyView

    try:
        with StudyView.read(Path(path)) as view:
            snapshot = Snapshot.of(view, name=Path(path).stem)
        text = figure_json(what, snapshot) if kind == "figure" else as_json(near_record(snapshot, int(what)))
    except NasbotError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))

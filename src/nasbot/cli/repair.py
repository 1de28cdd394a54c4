"""``nasbot repair``: a copy of a damaged study with everything that can be proven."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nasbot.cli._options import Json, Study
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json


def repair(
    study: Study,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Output file; default: STUDY-repaired.sqlite.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a repaired copy of a damaged study, and say what is lost.

    The copy holds every trial whose checksum is right. The damaged file is not changed, and nothing is overwritten.
    """
    from nasbot.storage import repair as repaired
    from nasbot.storage.paths import study_path

    file = study_path(study)
    copy = file.with_name(f"{file.stem}-repaired{file.suffix}") if out is None else Path(out)
    report = repaired(file, copy)
    if as_json:
        record = {"file": str(file), "copy": str(copy), "n_trials": report.n_trials, "n_outcomes": report.n_outcomes}
        moved = {str(old): new for old, new in report.renumbered.items()}
        print_json(record | {"lost": list(report.lost), "renumbered": moved})
        return
    print(f"wrote {one_line(str(copy))}: {report.n_trials} trials, {report.n_outcomes} of them with an outcome")
    for lost in report.lost or ("nothing",):
        print(f"  lost: {one_line(lost)}")
    if report.renumbered:
        old, new = next(iter(report.renumbered.items()))
        print(f"  numbers changed from trial {old} on, which is trial {new} now; each notes the one it had")

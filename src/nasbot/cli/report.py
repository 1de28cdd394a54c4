"""``nasbot report``: a study as one HTML file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from nasbot.cli._options import Study
from nasbot.cli._outcome import one_line


def report(
    study: Study,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE.html", help="Output file; default: STUDY-report.html.")
    ] = None,
    compare: Annotated[
        list[str] | None, typer.Option(metavar="OTHER", help="Another study to compare with; may be repeated.")
    ] = None,
) -> None:
    """Write a study as one self-contained HTML page, to read, to print or to send.

    It needs no network and no server: plots, every network's drawing and why it was proposed are in the file.
    """
    from nasbot.page.beside import Beside
    from nasbot.page.excerpt import snapshot_in, tally_of
    from nasbot.page.html import report_html, write_report
    from nasbot.plots.snapshot import Snapshot
    from nasbot.storage import open_storage
    from nasbot.storage.addresses import place_of
    from nasbot.study import StudyView
    from nasbot.study.settings import naming_vocabulary

    others = []
    for name in compare or ():
        with StudyView.read(name) as view:
            others.append(Snapshot.of(view, name=place_of(name).stem))
    path = place_of(study)
    with StudyView.read(study) as view, closing(open_storage(path, read_only=True)) as storage:
        with naming_vocabulary(storage):
            snapshot = snapshot_in(storage, path.stem, view.settings)
        html = report_html(
            snapshot,
            file=str(path),
            status=view.status(),
            others=others,
            beside=Beside.of(path),
        )
    written = write_report(html, Path(out if out is not None else f"{path.stem}-report.html"))
    print(f"wrote {one_line(str(written))} ({len(html.encode()) / 1e6:.1f} MB, {tally_of(snapshot.history)})")

"""The page: HTML, styles and scripts of ``static/``, and the report, which is the page and its data in one file.

The report asks nothing of the network. Its policy (CSP) allows the one script and the one style it holds, by their
hashes, and nothing else; the data stand in a block that is not run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from nasbot._files import file_errors, write_whole
from nasbot.drawing.draw import to_svg
from nasbot.page.beside import Beside
from nasbot.page.excerpt import Excerpt, shown
from nasbot.page.figures import FIGURES, figure_json, near_record
from nasbot.page.payload import NOTHING_BESIDE, SERIES, about_record, as_json, compare_record, series_json, strip_record
from nasbot.page.records import trial_record, whole_trial_record
from nasbot.plots.rungs import why_of
from nasbot.plots.snapshot import Snapshot
from nasbot.study.status import StudyStatus

SCRIPTS = ("dom.js", "charts.js", "source.js", "model.js", "pages.js", "main.js")
STYLE = "page.css"
DRAWN_OF_EXCERPT = 300
MAX_DRAWINGS = 1000  # in one report; beyond, the best and the first ones: a browser should still open it


def static_file(name: str) -> str:
    """One of the page's own files."""
    return resources.files("nasbot.page").joinpath("static", name).read_text(encoding="utf-8")


def page_html(*, head: str, body: str) -> str:
    """The page with these additions at the end of its head and of its body."""
    return static_file("page.html").replace("<!--head-->", head).replace("<!--body-->", body)


def live_html() -> str:
    """The page for a server that has the files of ``static/`` beside it."""
    scripts = "\n".join(f'<script src="../../static/{name}" defer></script>' for name in SCRIPTS)
    return page_html(head=f'<link rel="stylesheet" href="../../static/{STYLE}">\n{scripts}', body="")


def report_html(
    snapshot: Snapshot,
    *,
    file: str = "",
    status: StudyStatus | None = None,
    others: Sequence[Snapshot] = (),
    beside: Beside = NOTHING_BESIDE,
) -> str:
    """The whole study as one self-contained HTML page; ``others`` are shown beside it on its page Compare.

    ``beside`` is what a search on data left in the folder beside the study.
    """
    style, script = static_file(STYLE), "\n".join(static_file(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'
    data = _report_json(snapshot, file, status, others, beside)
    # In a block of data the only thing with a meaning is the end of the block, and what hides it.
    safe = data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    block = f'<script type="application/json" id="nasbot-data">{safe}</script>\n<script>{script}</script>'
    return page_html(head=head, body=block)


def _report_json(
    snapshot: Snapshot, file: str, status: StudyStatus | None, others: Sequence[Snapshot], beside: Beside
) -> str:
    """All of the report's data."""
    snapshot = shown(snapshot)
    history = snapshot.history
    drawn = _drawn(snapshot)
    near = drawn if isinstance(history, Excerpt) else {trial.number for trial in history}
    # Most of a report is drawings, which are a quarter as long when packed; what people may want to read is not.
    packed = {
        "whole": as_json({trial.number: whole_trial_record(trial, why_of(snapshot, trial)) for trial in history}),
        "drawings": as_json({trial.number: to_svg(trial.arch) for trial in history if trial.number in drawn}),
        "near": as_json(
            {trial.number: near_record(snapshot, trial.number) for trial in history if trial.number in near}
        ),
    }
    parts: dict[str, str] = {
        "about": as_json(about_record(snapshot, status, file, beside)),
        "strip": as_json(strip_record(snapshot, status)),
        "trials": as_json([trial_record(trial) for trial in history]),
        "series": _object({name: series_json(name, snapshot) for name in SERIES}),
        "figures": _object({name: figure_json(name, snapshot) for name in FIGURES}),
        "compare": as_json(compare_record([(each, {}) for each in (snapshot, *others)])),
        "packed": as_json(base64.b64encode(gzip.compress(_object(packed).encode(), 9, mtime=0)).decode()),
    }
    return _object(parts)


def write_report(html: str, path: str | Path) -> Path:
    """Write it, whole or not at all; FileError where that cannot be done."""
    path = Path(path)
    with file_errors(f"cannot write {path}", ValueError):
        write_whole(path, html.encode())
    return path


def _drawn(snapshot: Snapshot) -> set[int]:
    """The trials whose networks are drawn: all, or of very many the best and those that led to the best."""
    history = snapshot.history
    if len(history) <= MAX_DRAWINGS:
        return {trial.number for trial in history}
    most = DRAWN_OF_EXCERPT if isinstance(history, Excerpt) else MAX_DRAWINGS
    return {trial.number for trial in history.ranked[:most]}


def _object(parts: Mapping[str, str]) -> str:
    """A JSON object of parts that are JSON already; names are ours."""
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

"""Results on standard output: tables for people, one JSON value for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: Any) -> None:
    """One JSON value on one line, ASCII only; never NaN or Infinity."""
    print(json.dumps(value, allow_nan=False))


def console() -> Console:
    """Where tables go. Without a terminal lines are as long as they need to be, so that nothing is cut or wrapped."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """Rich would exit here; like every other error, this one is for the command's end."""
            raise BrokenPipeError

    terminal = Terminal(highlight=False, markup=False, emoji=False)
    if not terminal.is_terminal:
        terminal.width = 1000
    return terminal


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    right: bool = True,
    wrapped: str | None = None,
) -> None:
    """A table whose first column is left-aligned; the others are right-aligned unless ``right`` is False.

    The column with the heading ``wrapped`` takes several lines where the terminal is narrow.
    """
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i and right else "left", no_wrap=heading != wrapped)
    for row in rows:
        table.add_row(*row)
    console().print(table)


def short_fingerprint(fingerprint: str) -> str:
    """Enough of it to tell the networks of one table apart."""
    return fingerprint[:12]

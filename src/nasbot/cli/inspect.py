"""``nasbot inspect``: what a search would make of each column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nasbot.cli._options import As, Drop, Json, parsed_kinds
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json, print_table


def inspect(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A table: CSV, Excel, JSON lines, Parquet or Feather.")],
    target: Annotated[str | None, typer.Option(metavar="COL", help="The column to predict.")] = None,
    drop: Drop = None,
    kinds: As = None,
    as_json: Json = False,
) -> None:
    """Show what each column is taken for, what becomes of it, and what is dropped."""
    from nasbot.data.files import read_table
    from nasbot.data.inspecting import inspected

    frame = read_table(Path(data))
    found = inspected(frame, target, drop=drop or (), kinds=parsed_kinds(kinds))
    if as_json:
        print_json({"file": data, "rows": len(frame), "columns": [column.to_dict() for column in found]})
        return
    rows = [[one_line(text) for text in (c.column, c.taken_for, c.becomes, c.note)] for c in found]
    print_table(
        ["column", "taken for", "becomes", "note"], rows, title=one_line(f"{data}: {len(frame):,} rows"), right=False
    )

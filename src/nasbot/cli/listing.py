"""``nasbot list``: the studies of a folder, and how each is doing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasbot._words import duration
from nasbot.cli._options import Json
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json, print_table
from nasbot.errors import NasbotError

if TYPE_CHECKING:
    from nasbot.storage import Address


def list_studies(
    folder: Annotated[
        str | None,
        typer.Argument(metavar="FOLDER", help="Folder to list, or a database's address; default: the studies folder."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the studies of a folder: state, trials, best value, last sign of life.

    A file that cannot be read is listed with what is wrong with it.
    """
    from nasbot.storage.addresses import is_address, without_password
    from nasbot.storage.opening import studies_in
    from nasbot.storage.paths import studies_folder

    where = studies_folder() if folder is None else folder if is_address(folder) else Path(folder)
    records = [_record(place) for place in studies_in(where)]
    if as_json:
        print_json(records)
    elif not records:
        print(f"no studies in {one_line(without_password(str(where)))}")
    else:
        print_table(("study", "state", "trials", "best", "elapsed", "last seen"), [_row(record) for record in records])
        for record in records:
            if "error" in record:
                print(f"{one_line(record['study'])}: {one_line(record['error'])}")


def _record(path: Path | Address) -> dict[str, Any]:
    from nasbot.cli._summary import Watched, name_of

    is_bare = isinstance(path, Path) and path.parent == Path()
    try:
        with Watched(path.absolute() if is_bare and isinstance(path, Path) else path) as watched:
            return watched.summary().to_dict()
    except NasbotError as error:
        return {"study": name_of(path), "file": str(path), "state": "unreadable", "error": str(error)}


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    from nasbot.storage.tally import trials_in_words

    name = one_line(record["study"])
    if "error" in record:
        return (name, record["state"], "", "", "", "")
    best, silence = record["best"], record["silence"]
    return (
        name,
        record["state"],
        trials_in_words(record),
        "" if best is None else f"{best['value']:.6g}",
        duration(record["seconds"]),
        "" if silence is None else f"{duration(silence)} ago",
    )

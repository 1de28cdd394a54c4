"""``nasbot delete``: a study and its own files."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nasbot.cli._options import Json, Study
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json
from nasbot.errors import FileError, OptionError


def delete(
    study: Study,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a study: its file, its data, weights and drawings. What nasbot did not write stays.

    Refused while the study is being driven. There is no way back.
    """
    from nasbot.automl.removing import remove_study
    from nasbot.storage.paths import study_path

    path = study_path(study)
    if not path.exists():
        raise FileError(f"{path}: no such study")
    if not yes:
        if not sys.stdin.isatty():
            raise OptionError("delete: nobody can be asked here; say --yes")
        if not typer.confirm(f"Delete the study {one_line(str(path))} with its data and weights?", err=True):
            raise typer.Exit(0)
    removed = remove_study(path)
    if as_json:
        print_json({"study": study, "removed": [*map(str, removed.files)], "left": [*map(str, removed.left)]})
        return
    print(f"deleted {one_line(str(path))} ({len(removed.files)} files)")
    if removed.left:
        print(one_line(f"left, for nasbot did not write it: {', '.join(map(str, removed.left[:5]))}"))

"""Options that several commands share, and what their text means."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from nasbot._files import file_errors
from nasbot.errors import OptionError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of a table.")]
Study = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study's name (in the folder studies) or file.", show_default=False)
]
Preset = Annotated[
    str, typer.Option(help="Rules of the distance: paper (the appendix), release (the 2018 code), figure or log-mass.")
]
Vocabularies = Annotated[
    list[str] | None,
    typer.Option(
        "--vocabulary",
        metavar="MODULE:NAME",
        help="Import this vocabulary of your own; needed where networks are of it.",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", metavar="COL", help="Column to drop; may be repeated, or a,b,c.")
]
As = Annotated[
    list[str] | None,
    typer.Option("--as", metavar="COL=KIND", help="Take a column for number, category or date; may be repeated."),
]
ImageSize = Annotated[int | None, typer.Option(metavar="N", help="Resize the images of a folder to N x N pixels.")]


def with_vocabulary(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option --vocabulary, which is carried out before it."""

    @functools.wraps(command)
    def run(*, vocabulary: list[str] | None = None, **options: Any) -> None:
        if vocabulary:
            from nasbot.architecture.own_vocabulary import use_vocabulary

            for where in vocabulary:
                use_vocabulary(where)
        command(**options)

    signature = inspect.signature(command, eval_str=True)
    own = inspect.Parameter(
        "vocabulary", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Vocabularies
    )
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), own])  # type: ignore[attr-defined]
    return run


def parsed_kinds(given: list[str] | None) -> dict[str, str]:
    """{"zip": "category"} from "zip=category"."""
    kinds = {}
    for text in given or ():
        name, _, kind = text.rpartition("=")
        if not name:
            raise OptionError(f"--as: expected COLUMN=KIND, such as zip=category, got {text[:60]!r}")
        kinds[name] = kind
    return kinds


def parsed_weights(text: str | None) -> tuple[float, ...] | None:
    """Structural weights from "0.1,0.2"; None, for the preset's own, where none are given."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        expected = "numbers separated by commas, such as 0.1,0.2,0.4,0.8"
        raise OptionError(f"--weights must be {expected}, got {text[:60]!r}") from None


def made_folder(path: str) -> Path:
    """The folder, created with its parents where it is missing."""
    folder = Path(path)
    with file_errors(f"cannot create the folder {path}", ValueError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder

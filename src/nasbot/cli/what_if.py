"""``nasbot what-if``: what the search expects of every change of the best network."""

from __future__ import annotations

from typing import Annotated

import typer

from nasbot.cli._options import Json, Study
from nasbot.cli._output import print_json
from nasbot.errors import OptionError


def what_if(
    study: Study,
    top: Annotated[int, typer.Option(metavar="N", help="Number of edits to show, highest utility first.")] = 20,
    as_json: Json = False,
) -> None:
    """Show the predicted effect of every one-step change of the best network so far."""
    if top < 1:
        raise OptionError(f"--top must be at least 1, got {top}")
    from nasbot.study import StudyView

    with StudyView.read(study) as view:
        effects = view.what_if()
        best = view.best.number if view.best else None
        deciding = view.deciding_time()
    if as_json:
        print_json({"best": best, "n_changes": len(effects), "changes": [e.to_dict() for e in effects.top(top)]})
        return
    print(f"{effects.top(top)}\n\n{len(effects)} changes of trial {best}; {deciding}")

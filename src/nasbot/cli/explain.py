"""``nasbot explain``: what the search believed of a network when it chose it."""

from __future__ import annotations

from typing import Annotated

import typer

from nasbot.cli._options import Json, Study
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json


def explain(
    study: Study,
    trial: Annotated[int, typer.Argument(metavar="TRIAL", help="The trial's number, from 0.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Show what was believed of a trial's network when it was chosen.

    Predicted value and its 90 % interval, expected improvement, and the nearest networks evaluated by then.
    """
    from nasbot.study import StudyView

    with StudyView.read(study) as view:
        effect = view.explain(trial)
        record = view.history[trial]
        value = record.value
    if as_json:
        print_json({"trial": trial, "state": str(record.state), "value": value, **effect.to_dict()})
        return
    changes = [one_line(change) for change in record.origin.changes]
    parents = ", ".join(f"trial {parent}" for parent in record.origin.parents)
    print(f"trial {trial}, {record.state}{'' if value is None else f', value {value:.6g}'}")
    print(f"  made from   {parents or 'no trial'} by {'; '.join(changes) or 'no change'}")
    print("\n".join(str(effect).splitlines()[1:]))

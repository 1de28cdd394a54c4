"""``nasbot explain``: what the search believed of a network when it chose it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nasbot.cli._options import Json, Study
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json
from nasbot.errors import NasbotError, StudyError

if TYPE_CHECKING:
    from nasbot.study import StudyView


def explain(
    study: Study,
    trial: Annotated[
        int | None, typer.Argument(metavar="[TRIAL]", help="The trial's number, from 0; default: the best.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what was believed of a trial's network when it was chosen, and why it was stopped, promoted or discarded.

    Predicted value and its 90 % interval, expected improvement, and the nearest networks evaluated by then; of a
    starting network how it compares and what was made from it.
    """
    from nasbot.searchers import Effect
    from nasbot.study import StudyView

    effect, untold = None, ""
    with StudyView.read(study) as view:
        trial = trial if trial is not None else _best_of(view)
        reason = view.why(trial)
        try:
            effect = view.explain(trial)
        except NasbotError as error:
            if not reason:
                raise
            untold = str(error)  # a searcher without beliefs can still say whom it promoted
        record = view.history[trial]
        value = record.value
    if as_json:
        said = {} if effect is None else effect.to_dict()
        about = {"trial": trial, "state": str(record.state), "value": value, "params": dict(record.candidate.params)}
        print_json({**about, "why": reason or None, **said})
        return
    changes = [one_line(change) for change in record.origin.changes]
    parents = ", ".join(f"trial {parent}" for parent in record.origin.parents)
    print(f"trial {trial}, {record.state}{'' if value is None else f', value {value:.6g}'}")
    if changes or (parents and record.promoted_from is None):  # a promotion is the same network
        print(f"  made from   {parents or 'no trial'} by {'; '.join(changes) or 'no change'}")
    if record.candidate.params:
        print(f"  params      {one_line(str(record.candidate))}")
    if reason:
        print(f"  why         {one_line(reason)}")
    if effect is None:
        print(f"  {one_line(untold)}")
        return
    first, *rest = str(effect).splitlines()
    print("\n".join(rest if isinstance(effect, Effect) else [f"  chosen      {first}", *rest]))


def _best_of(view: StudyView) -> int:
    if (best := view.best) is None:
        raise StudyError("no trial of this study is completed yet; expected the number of a trial")
    return best.number

"""``nasbot plot``: a picture of a study."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from nasbot.cli._options import Study
from nasbot.cli._outcome import one_line
from nasbot.errors import OptionError

NAMES = (
    "history, timeline, rungs, curves, costs, compare, network, diff, match, map, lineage, modifiers, surrogate, "
    "importance, slice, acquisition, layers, failures, time"
)


def plot(
    study: Study,
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {NAMES}.", show_default=False)],
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Output file, .svg, .png or .pdf; default: STUDY-NAME.svg."),
    ] = None,
    by: Annotated[str, typer.Option(help="history, compare: trials or seconds.")] = "trials",
    cost: Annotated[str, typer.Option(help="costs: parameters, mass or seconds.")] = "parameters",
    trial: Annotated[
        int | None, typer.Option(help="network, diff, match: a trial's number; the best if not given.")
    ] = None,
    other: Annotated[
        int | None, typer.Option(help="diff, match: the trial to compare with; the one it was made of if not given.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STUDY", help="compare: another study; may be repeated. Seeds of one search are averaged."
        ),
    ] = None,
    param: Annotated[
        str | None, typer.Option(metavar="NAME", help="slice: a searched param; the most important if not given.")
    ] = None,
    best: Annotated[int, typer.Option(help="layers: number of best networks to count.")] = 10,
) -> None:
    """Draw a picture of a study: how it goes, what it found, whether its surrogate can be trusted."""
    from nasbot.plots.plot import PLOTS, PlotOptions, file_name
    from nasbot.plots.plot import plot as draw
    from nasbot.plots.snapshot import Snapshot
    from nasbot.storage.addresses import place_of
    from nasbot.study import StudyView

    if name not in PLOTS:
        raise OptionError(f"plot: expected one of {', '.join(PLOTS)}, got {name[:40]!r}")
    if against and name != "compare":
        raise OptionError(f"--against is for compare, got {name}")
    if param is not None and name != "slice":
        raise OptionError(f"--param is for slice, got {name}")
    with ExitStack() as opened:
        shown, *others = (
            Snapshot.of(opened.enter_context(StudyView.read(where)), name=place_of(where).stem)
            for where in (study, *(against or ()))
        )
    options = PlotOptions(by=by, cost=cost, trial=trial, other=other, param=param, n_best=best, against=tuple(others))
    path = draw(shown, name, out or file_name(shown.name, name), options=options)
    print(f"drew {one_line(str(path))}")

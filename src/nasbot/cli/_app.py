"""The list of commands."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from nasbot.cli._options import with_vocabulary
from nasbot.cli.check import check
from nasbot.cli.control import cancel, pause, resume, retry, stop
from nasbot.cli.delete import delete
from nasbot.cli.demo import demo
from nasbot.cli.distance import distance
from nasbot.cli.doctor import doctor
from nasbot.cli.draw import draw
from nasbot.cli.explain import explain
from nasbot.cli.export import export
from nasbot.cli.inspect import inspect
from nasbot.cli.listing import list_studies
from nasbot.cli.plot import plot
from nasbot.cli.pool import pool
from nasbot.cli.predict import predict
from nasbot.cli.repair import repair
from nasbot.cli.report import report
from nasbot.cli.run import run
from nasbot.cli.serve import serve
from nasbot.cli.show import show
from nasbot.cli.status import status
from nasbot.cli.what_if import what_if

COMPLETING = "_NASBOT_COMPLETE"  # the variable by which the shell asks what may come next

app = typer.Typer(
    name="nasbot",
    help="Neural architecture search with Bayesian optimisation and optimal transport.",
    epilog="Exit codes and the format of the files are described in docs/reference.",
    add_completion=COMPLETING in os.environ,  # else its two options would be in every help
    rich_markup_mode=None,  # plain help: a quarter of the time, and readable in a pipe
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

READ_NETWORKS = {
    distance,
    draw,
    check,
    explain,
    what_if,
    plot,
    show,
    predict,
    export,
    report,
    serve,
    repair,
    cancel,
    retry,
}
for command in (run, inspect, demo, distance, draw, check, pool, explain, what_if, plot):
    app.command()(with_vocabulary(command) if command in READ_NETWORKS else command)
app.command("list")(list_studies)
app.command()(doctor)
for about_a_study in (status, show, predict, export, report, serve, pause, resume, stop, cancel, retry, repair, delete):
    app.command()(with_vocabulary(about_a_study) if about_a_study in READ_NETWORKS else about_a_study)


def _print_version(wanted: bool) -> None:
    if wanted:
        from nasbot import __version__

        print(f"nasbot {__version__}")
        raise typer.Exit


@app.callback()
def nasbot(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Neural architecture search with Bayesian optimisation and optimal transport."""

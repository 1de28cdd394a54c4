"""The command ``nasbot``: one module per command, and the promises that all of them share.

Every mistake is one line on standard error and the exit code of its error (docs/reference/exit-codes.md); nothing but
results goes to standard output. What is slow to import is imported by the command that needs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, by default the process's own, and return its exit code; never raises."""
    from nasbot.cli._outcome import exit_code_of

    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    import typer

    from nasbot.cli._app import COMPLETING, app

    command = typer.main.get_command(app)
    if COMPLETING in os.environ:  # set by the shell's own script: docs/reference/cli.md says how it gets there
        return _completed(command, COMPLETING)
    # Not command.main(): it has ideas of its own about broken pipes, interrupts and how errors look.
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with command.make_context("nasbot", given or ["--help"]) as context:
            command.invoke(context)
    except typer.Exit as done:  # --help and --version
        return done.exit_code
    return 0


def _completed(command: Any, variable: str) -> int:
    """What the shell asks when a person presses tab, or the script that makes it ask."""
    try:
        command.main(prog_name="nasbot", complete_var=variable)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    return 0

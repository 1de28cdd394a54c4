"""``nasbot demo``: what there is to see so far, in one command."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nasbot.cli._options import made_folder
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_table

if TYPE_CHECKING:
    from nasbot.architecture import Architecture

KINDS = ("mlp-reg", "cnn")
SHOWN_WEIGHT = 0.4


def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="Where the pictures and networks go.")] = "demo-output",
) -> None:
    """Draw the initial pools and print distances."""
    folder = made_folder(out)
    from nasbot.architecture.pools import initial_pool

    pools = {kind: initial_pool(kind) for kind in KINDS}
    _draw_all(pools, folder)
    for kind, archs in pools.items():
        _print_distances(kind, archs)
    shown = one_line(str(folder))
    print(f"Pictures and networks are in {shown}; open {shown}/cnn-9.svg in a browser.")
    print("Next, try:")
    print(f"  {_program()} distance {shown}/cnn-0.json {shown}/cnn-9.json --explain")
    print(f"  {_program()} draw {shown}/cnn-0.json {shown}/matching.svg --matching {shown}/cnn-9.json")


def _program() -> str:
    """What to type for ``nasbot`` here: after ``make demo`` it is in .venv, where the shell does not look."""
    beside_python = Path(sys.executable).with_name("nasbot")
    if shutil.which("nasbot") or not beside_python.exists():
        return "nasbot"
    return one_line(os.path.relpath(beside_python))


def _draw_all(pools: Mapping[str, Sequence[Architecture]], folder: Path) -> None:
    """Progress goes to standard error, and only to a terminal: standard output holds results."""
    from rich.console import Console
    from rich.progress import track

    screen = Console(stderr=True)
    jobs = [(f"{kind}-{i}", arch) for kind, archs in pools.items() for i, arch in enumerate(archs)]
    progress = track(jobs, "Drawing the initial pools", console=screen, transient=True, disable=not screen.is_terminal)
    for name, arch in progress:
        arch.save(folder / f"{name}.json")
        arch.draw(folder / f"{name}.svg", title=name)


def _print_distances(kind: str, archs: Sequence[Architecture]) -> None:
    from nasbot.otmann import pairwise

    d_bar = pairwise(archs, structural_weights=(SHOWN_WEIGHT,)).d_bar[0]
    rows = [(f"{kind}-{i}", *(f"{value:.2f}" for value in row)) for i, row in enumerate(d_bar)]
    title = f"Normalised distance d_bar between the initial networks, structural weight {SHOWN_WEIGHT:g}"
    print_table((kind, *(str(i) for i in range(len(archs)))), rows, title=title)

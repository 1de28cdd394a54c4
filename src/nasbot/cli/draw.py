"""``nasbot draw``: a picture of one network, or of how two are matched."""

from __future__ import annotations

from typing import Annotated

import typer

from nasbot.cli._outcome import one_line


def draw(
    network: Annotated[str, typer.Argument(metavar="NET.json", help="The network.", show_default=False)],
    picture: Annotated[
        str, typer.Argument(metavar="OUT.svg", help="Output file, .svg, .png or .pdf.", show_default=False)
    ],
    matching: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER.json", help="A second network, drawn beside the first with the mass matched between them."
        ),
    ] = None,
) -> None:
    """Draw a network, or how two are matched."""
    from nasbot.architecture import Architecture

    first = Architecture.load(network)
    if matching is None:
        path = first.draw(picture)
    else:
        second = Architecture.load(matching)
        from nasbot.otmann import explain

        path = explain(first, second).draw(picture)
    print(f"drew {one_line(str(path))}")

"""``nasbot pool``: the networks that a search starts from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasbot.cli._options import Json, made_folder
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json, print_table, short_fingerprint
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.architecture import Architecture


KINDS = {"mlp": "mlp-reg", **{kind: kind for kind in ("mlp-reg", "mlp-class", "cnn", "mlp-reg+", "mlp-class+")}}


def pool(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="mlp (mlp-reg), mlp-class, cnn, or one ending in +.", show_default=False),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Write each network to this folder as JSON.", show_default=False
        ),
    ] = None,
    with_pictures: Annotated[
        bool, typer.Option("--draw", help="With --out: also write an SVG drawing of each.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the initial pool of one kind of network.

    With --out its networks are also written to files.
    """
    if kind not in KINDS:
        raise OptionError(f"there is no initial pool of kind {kind[:60]!r}; expected one of {', '.join(KINDS)}")
    if with_pictures and out is None:
        raise OptionError("--draw needs --out, the folder that the pictures go to")
    from nasbot.architecture.pools import initial_pool

    name = KINDS[kind]
    named = {f"{name}-{i}": arch for i, arch in enumerate(initial_pool(name))}
    if out is not None:
        _write(named, made_folder(out), with_pictures=with_pictures)
    if as_json:
        print_json([_record(name, arch) for name, arch in named.items()])
        return
    print_pool(named, title=f"Initial pool of {name}")
    if out is not None:
        print(f"wrote {len(named)} networks{' and pictures' if with_pictures else ''} to {one_line(out)}")


def _record(name: str, arch: Architecture) -> dict[str, Any]:
    return {"name": name, "fingerprint": arch.fingerprint, "total_mass": arch.total_mass, **arch.to_dict()}


def _write(named: dict[str, Architecture], folder: Path, *, with_pictures: bool) -> None:
    for name, arch in named.items():
        arch.save(folder / f"{name}.json")
        if with_pictures:
            arch.draw(folder / f"{name}.svg")


def print_pool(named: dict[str, Architecture], *, title: str) -> None:
    """A table of networks, one a row."""
    rows = [
        (
            name,
            str(len(x.processing_layers)),
            str(len(x.edges)),
            f"{x.total_mass:,.0f}",
            short_fingerprint(x.fingerprint),
        )
        for name, x in named.items()
    ]
    print_table(("network", "layers", "edges", "total mass", "fingerprint"), rows, title=title)

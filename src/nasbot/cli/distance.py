"""``nasbot distance``: d and d_bar between two networks, and on request why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasbot.cli._options import Json, Preset, parsed_weights
from nasbot.cli._output import print_json, print_table

if TYPE_CHECKING:
    from nasbot.otmann import Distances, Matching


def distance(
    a: Annotated[str, typer.Argument(metavar="A.json", help="The first network.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B.json", help="The second network.", show_default=False)],
    weights: Annotated[
        str | None,
        typer.Option(metavar="NU,NU,...", help="Structural weights; default: the preset's.", show_default=False),
    ] = None,
    preset: Preset = "paper",
    explain: Annotated[
        bool, typer.Option("--explain", help="Also show which layers are matched, at 0.4 or at each of --weights.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the OTMANN distance between two networks.

    One row for each structural weight: d, and d_bar = d / (total mass of both).
    """
    chosen = parsed_weights(weights)
    from nasbot.architecture import Architecture

    first, second = Architecture.load(a), Architecture.load(b)
    from nasbot import otmann

    result = otmann.distance(first, second, structural_weights=chosen, preset=preset)
    matchings: list[Matching] = []
    if explain:
        matchings = [otmann.explain(first, second, structural_weight=nu, preset=preset) for nu in chosen or (0.4,)]
    if as_json:
        print_json(_record(first.kind, preset, result, matchings, explain))
    else:
        _print(result, matchings)


def _record(kind: str, preset: str, result: Distances, matchings: list[Matching], explain: bool) -> dict[str, Any]:
    record = {
        "kind": kind,
        "preset": preset,
        "structural_weights": list(result.structural_weights),
        "d": result.d.tolist(),
        "d_bar": result.d_bar.tolist(),
    }
    return record | ({"matchings": [matching.to_dict() for matching in matchings]} if explain else {})


def _print(result: Distances, matchings: list[Matching]) -> None:
    columns = zip(result.structural_weights, result.d, result.d_bar, strict=True)
    rows = [(f"{nu:g}", f"{d:,.10g}", f"{d_bar:.6f}") for nu, d, d_bar in columns]
    print_table(("structural weight", "d", "d_bar"), rows)
    for matching in matchings:
        print(f"Matching at structural weight {matching.structural_weight:g}\n\n{matching}\n")

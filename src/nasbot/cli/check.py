"""``nasbot check``: is this file a network, which one, and would a search propose it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasbot.cli._options import Json
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json
from nasbot.errors import FileError, InvalidArchitectureError, NasbotError, Violation

if TYPE_CHECKING:
    from nasbot.architecture import Architecture


def check(
    network: Annotated[str, typer.Argument(metavar="NET.json", help="The network.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Say whether a file holds a valid network.

    Also says which limits of the default search space it exceeds. A valid network outside the search space is no
    error; an invalid one is.
    """
    from nasbot.architecture import Architecture
    from nasbot.architecture.space import SearchSpace

    try:
        arch = Architecture.load(network)
    except FileError:
        raise
    except NasbotError as error:
        if as_json:
            print_json(_refusal(network, error))
        raise
    violations = SearchSpace(arch.vocabulary).violations(arch)
    if as_json:
        print_json(_record(network, arch, violations))
    else:
        _print(network, arch, violations)


def _refusal(network: str, error: NasbotError) -> dict[str, Any]:
    broken = error.violations if isinstance(error, InvalidArchitectureError) else ()
    return {
        "file": network,
        "valid": False,
        "error": type(error).__name__,
        "message": str(error),
        "violations": _plain(broken),
    }


def _record(network: str, arch: Architecture, outside: list[Violation]) -> dict[str, Any]:
    return {
        "file": network,
        "valid": True,
        "kind": arch.kind,
        "n_layers": len(arch.layers),
        "n_edges": len(arch.edges),
        "total_mass": arch.total_mass,
        "fingerprint": arch.fingerprint,
        "in_search_space": not outside,
        "violations": _plain(outside),
    }


def _plain(violations: tuple[Violation, ...] | list[Violation]) -> list[dict[str, Any]]:
    return [{"rule": x.rule, "message": x.message, "layer": x.layer} for x in violations]


def _print(network: str, arch: Architecture, outside: list[Violation]) -> None:
    print(f"{one_line(network)}: a valid network")
    n_processing, n_decision = len(arch.processing_layers), len(arch.decision_layers)
    rows = {
        "kind": arch.kind,
        "layers": f"{len(arch.layers)} ({n_processing} processing, {n_decision} decision)",
        "edges": str(len(arch.edges)),
        "total mass": f"{arch.total_mass:,.10g}",
        "fingerprint": arch.fingerprint,
        "search space": f"outside the default one, {len(outside)} violations:" if outside else "inside the default one",
    }
    for name, value in rows.items():
        print(f"  {name:<13} {value}")
    for violation in outside:
        print(f"    {one_line(str(violation))}")

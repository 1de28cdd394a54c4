"""``nasbot check``: is this file a network or a study, and is it whole."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasbot.cli._options import Json
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json
from nasbot.errors import FileError, InvalidArchitectureError, NasbotError, StorageError, Violation

if TYPE_CHECKING:
    from nasbot.architecture import Architecture
    from nasbot.storage import Address


def check(
    network: Annotated[
        str, typer.Argument(metavar="NET.json|STUDY", help="A network, or a study.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Say whether a file holds a valid network, or a study that is whole.

    Of a network also which limits of the default search space it exceeds: lying outside is no error. Of a study every
    row, checksum and reference is checked; one that is damaged is an error.
    """
    from nasbot.storage.addresses import address_of, is_address

    if is_address(network):
        _check_database(address_of(network), as_json=as_json)
        return
    if (study := _study_file(network)) is not None:
        _check_study(network, study, as_json=as_json)
        return
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


def _study_file(given: str) -> Path | None:
    """The study that is meant, by its content, or by its name where there is no such file; None for a network."""
    from nasbot.storage._sqlite_file import MAGIC
    from nasbot.storage.paths import study_path

    file = Path(given)
    try:
        if not file.exists():
            file = study_path(given)
        with file.open("rb") as content:
            return file if content.read(len(MAGIC)) == MAGIC else None
    except (OSError, ValueError):  # whatever it is, reading it as a network says so
        return None


def _check_study(given: str, study: Path, *, as_json: bool) -> None:
    from nasbot.storage import examine

    found = examine(study)
    if as_json:
        print_json(
            {
                "file": str(study),
                "valid": found.is_intact,
                "version": found.version,
                "n_trials": found.n_trials,
                "n_runs": found.n_runs,
                "problems": list(found.problems),
            }
        )
    elif found.is_intact:
        print(f"{one_line(given)}: a study that is whole")
        for name, value in {"trials": found.n_trials, "runs": found.n_runs, "version": found.version}.items():
            print(f"  {name:<13} {value}")
    else:
        for problem in found.problems:
            print(one_line(problem))
    if not found.is_intact:
        n = len(found.problems)
        raise StorageError(f"{study}: {n} problem{'s' * (n != 1)}, the first: {found.problems[0]}; see nasbot repair")


def _check_database(study: Address, *, as_json: bool) -> None:
    """Reading checks every row; the first that is damaged ends it, since there is nothing to repair it from."""
    from nasbot.storage import open_storage

    problems: list[str] = []
    n_trials = n_runs = 0
    with closing(open_storage(study, read_only=True)) as storage:
        try:
            storage.settings()
            n_trials, n_runs = len(storage.history()), len(storage.runs())
        except StorageError as error:
            problems = [str(error)]
    if as_json:
        counts = {"n_trials": n_trials, "n_runs": n_runs}
        print_json({"file": str(study), "valid": not problems, **counts, "problems": problems})
    elif not problems:
        print(f"{one_line(str(study))}: a study that is whole\n  {'trials':<13} {n_trials}\n  {'runs':<13} {n_runs}")
    if problems:
        raise StorageError(problems[0])


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

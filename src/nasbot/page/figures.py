"""What the page shows that takes a moment: the map, the surrogate's health and beliefs, and what is near to a network.

These need the distance and the belief, numba and scipy with them, so the live page computes them in a worker process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nasbot.architecture import Architecture
from nasbot.drawing.diff_drawing import diff_scene
from nasbot.drawing.render import svg
from nasbot.errors import NasbotError
from nasbot.page.payload import as_json
from nasbot.plots import series
from nasbot.plots.snapshot import Snapshot, parent_of
from nasbot.searchers.effect import Near, nearest
from nasbot.trial import History


def figure_json(name: str, snapshot: Snapshot) -> str:
    """One figure as JSON text."""
    return as_json(FIGURES[name](snapshot))


def _map(snapshot: Snapshot) -> dict[str, Any]:
    found = series.architecture_map(snapshot)
    rough = "faithful" if found.stress < 0.1 else "fair" if found.stress < 0.2 else "rough"
    return {
        "points": found.points,
        "path": list(found.path),
        "message": found.message,
        "describe": f"{len(found.points)} networks, {found.n_pairs:,} distances; stress {found.stress:.2f} ({rough})",
    }


def _surrogate(snapshot: Snapshot) -> dict[str, Any]:
    health = series.surrogate(snapshot)
    return {
        "level": health.level,
        "points": health.points,
        "running_coverage": health.running_coverage,
        "running_log_density": health.running_log_density,
        "coverage": health.coverage,
        "log_density": health.log_density,
        "rank_correlation": health.rank_correlation,
        "message": health.message,
    }


FIGURES = {"map": _map, "surrogate": _surrogate, "params": series.param_beliefs}


def near_record(snapshot: Snapshot, number: int, *, with_drawing: bool = True) -> dict[str, Any]:
    """The evaluated networks nearest to a trial's when it was chosen, and what its parent became in it."""
    history = snapshot.history
    trial = history[number]
    known = _known_at_proposal(history, number)  # of a large study, among the trials of its excerpt
    record: dict[str, Any] = {}
    try:
        if known:
            record["nearest"] = _nearest(snapshot, trial.arch, known)
        parent = parent_of(trial, number)
        if parent is not None and any(each.number == parent for each in history):
            record["diff"] = _diff(snapshot, parent, number, with_drawing=with_drawing)
    except NasbotError as error:  # networks of a vocabulary that the distance does not know
        record["message"] = str(error)[:300]
    return record


def _known_at_proposal(history: History, number: int) -> list[tuple[int, Architecture]]:
    known = history[number].proposed_after
    return [(t.number, t.arch) for t in history.completed if t.rank is not None and t.rank < known]


def _nearest(snapshot: Snapshot, arch: Architecture, known: Sequence[tuple[int, Architecture]]) -> list[Near]:
    otmann = snapshot.distance
    between = otmann.cross(otmann.pack([arch]), otmann.pack([other for _, other in known]))
    return list(nearest([number for number, _ in known], between.d[:, 0], between.d_bar[:, 0]))


def _diff(snapshot: Snapshot, parent: int, number: int, *, with_drawing: bool) -> dict[str, Any]:
    first, second = snapshot.history[parent].arch, snapshot.history[number].arch
    diff = series.network_diff(first, second, preset=snapshot.distance.rules)
    *lines, summary = str(diff).splitlines()
    drawing = svg(diff_scene(diff, names=(f"trial {parent}", f"trial {number}"))) if with_drawing else None
    return {"parent": parent, "summary": summary, "lines": lines, "drawing": drawing}

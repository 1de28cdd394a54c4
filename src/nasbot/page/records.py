"""Trials and studies as plain JSON for the page: what a table needs of every trial, and all there is about one.

Values are in the objective's own sense here. Everything is data: the page puts it into text nodes and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nasbot._typing import Json
from nasbot._words import first_line
from nasbot.architecture import Layer
from nasbot.trial import Forecast, Point, Stopped, Trial

MAX_LINE = 200  # characters of a message in a table
MAX_MESSAGE = 20_000  # the end of a longer one is what says why
MAX_POINTS = 400  # of a curve; more cannot be told apart on a screen
MAX_DETAILS = 40  # numbers of one trial's details that a table carries
SHORT_FINGERPRINT = 12


def trial_record(trial: Trial) -> dict[str, Json]:
    """What tables and plots need of one trial: small, and without its curve."""
    origin, said = trial.origin, trial.forecast or Forecast()
    last = trial.curve[-1] if trial.curve else None
    return {
        "number": trial.number,
        "state": str(trial.state),
        "value": trial.value,
        "fidelity": trial.fidelity,
        "params": dict(trial.candidate.params),
        "cause": trial.cause,
        "line": first_line(trial.message, MAX_LINE),
        "started": trial.started,
        "finished": trial.finished,
        "seconds": trial.seconds,
        "rank": trial.rank,
        "attempts": trial.attempts,
        "searcher": origin.searcher[:MAX_LINE] or None,
        "parents": [parent for parent in origin.parents if 0 <= parent < trial.number],
        "promoted_from": trial.promoted_from,
        "modifiers": [name[:MAX_LINE] for name in origin.modifiers],
        "predicted": None if said.median is None else {"lower": said.lower, "median": said.median, "upper": said.upper},
        "mean": said.mean,
        "sd": said.sd,
        "utility": said.utility,
        "feasible": said.feasible,
        "deciding": origin.seconds.get("deciding"),
        "layers": len(trial.arch.processing_layers),
        "edges": len(trial.arch.edges),
        "mass": trial.arch.total_mass,
        "fingerprint": trial.arch.fingerprint[:SHORT_FINGERPRINT],
        "details": _numbers(_details(trial)),
        "step": None if last is None else last.step,
        "latest": None if last is None else last.value,
    }


def whole_trial_record(trial: Trial, why: str = "") -> dict[str, Json]:
    """All there is about one trial but its drawing; ``why`` it was stopped, promoted or discarded, in words."""
    arch = trial.arch
    return trial_record(trial) | {
        "message": trial.message[-MAX_MESSAGE:],
        "why": why,
        "all_details": dict(_details(trial)),
        "notes": {**trial.origin.to_dict(), **(trial.forecast or Forecast()).to_dict(), **trial.notes},
        "changes": list[Json](change[:MAX_LINE] for change in trial.origin.changes),
        "interruptions": trial.interruptions,
        "proposed_after": trial.proposed_after,
        "curve": [[point.step, point.value] for point in thinned(trial.curve)],
        "n_points": len(trial.curve),
        "network": {
            "kind": arch.kind,
            "fingerprint": arch.fingerprint,
            "layers": [_layer(u, layer) for u, layer in enumerate(arch.layers)],
            "edges": [[u, v] for u, v in sorted(arch.edges)],
        },
    }


def thinned(curve: Sequence[Point]) -> Sequence[Point]:
    """The curve, or so many of its points that a screen shows no difference; the first and the last are kept."""
    if len(curve) <= MAX_POINTS:
        return curve
    last = len(curve) - 1
    return [curve[round(i * last / (MAX_POINTS - 1))] for i in range(MAX_POINTS)]


def _layer(u: int, layer: Layer) -> dict[str, Json]:
    own: dict[str, Json] = {}
    if (given := layer.attributes) is not None:  # in words, and as a network's file has them
        own = {"attributes": str(given), "own": {key: v for key, v in given._asdict().items() if v is not None}}
    return {"index": u, "label": str(layer.label), "units": layer.units, "stride": layer.stride, **own}


def _details(trial: Trial) -> Mapping[str, Json]:
    return trial.outcome.to_dict() if isinstance(trial.outcome, Stopped) else trial.details


def _numbers(details: Mapping[str, Json], prefix: str = "") -> dict[str, Json]:
    """The numbers among the details by name, those of inner tables as ``metrics.mse``."""
    found: dict[str, Json] = {}
    for name, value in details.items():
        if isinstance(value, Mapping) and not prefix:
            found |= _numbers(value, f"{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[(prefix + name)[:MAX_LINE]] = value
    return dict(list(found.items())[:MAX_DETAILS])

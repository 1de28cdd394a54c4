"""A searcher's settings as plain data: compared when a study is resumed, and enough to make a built-in one again.

{"type": "NASBOT", "name": ..., "acquisition": ..., "belief": {...}, "distance": {...}, "pool": [fingerprints]}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from nasbot._typing import Json
from nasbot.acquisition.choices import Acquisition, description
from nasbot.gp.belief import LOCAL_ABOVE
from nasbot.otmann import Otmann
from nasbot.otmann.learned import LearnedDistance
from nasbot.otmann.presets import PRESETS

if TYPE_CHECKING:
    from nasbot.searchers.pool import PoolSearcher

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in the repr of a function: another one in every process


def described(searcher: PoolSearcher) -> dict[str, Json]:
    """Every option by its name but the space, which a study stores itself; networks by their fingerprints."""
    options = {entry.name: _described(getattr(searcher, entry.name)) for entry in fields(searcher)}
    del options["space"]
    for name in ("params", "fidelity"):  # parts of the domain, which a study stores itself
        del options[name]
    for name, default in (("prior", {}), ("cost_weight", 0.0), ("cost_horizon", None), ("repeats_best", False)):
        # As if there were no such option: studies from before it go on.
        if name in options and options[name] == default:
            del options[name]
    belief = options.get("belief")
    if isinstance(belief, dict) and belief.get("local_above") == LOCAL_ABOVE:
        del belief["local_above"]
    options["pool"] = [candidate.fingerprint for candidate in searcher.initial_pool()]
    return {"type": type(searcher).__name__, **options}


def _described(value: object) -> Json:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _described(entry) for name, entry in value.items()}
    if isinstance(value, Acquisition):
        return description(value) or _foreign(value)
    if isinstance(value, tuple | list):
        return [_described(entry) for entry in value]
    if isinstance(value, LearnedDistance):
        return {"type": "LearnedDistance", "tables": list(value.names)}
    if isinstance(value, Otmann) and value.rules == PRESETS.get(value.rules.name):
        return {"type": "Otmann", "preset": value.rules.name, "structural_weights": list(value.structural_weights)}
    if is_dataclass(value) and not isinstance(value, Otmann):
        return {entry.name: _described(getattr(value, entry.name)) for entry in fields(value)}
    if callable(value) and hasattr(value, "__qualname__"):  # a function by where it is, never by its address
        return {"function": f"{value.__module__}.{value.__qualname__}"}
    return _foreign(value)


def _foreign(value: object) -> Mapping[str, Json]:
    """Something of a user's own by its class, and by its repr where it has one, without addresses in it."""
    kind = type(value)
    described: dict[str, Json] = {"type": f"{kind.__module__}.{kind.__qualname__}"}
    return described if kind.__repr__ is object.__repr__ else {**described, "repr": ADDRESS.sub("", repr(value))}

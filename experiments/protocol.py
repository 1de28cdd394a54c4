"""What is run, as a TOML file for each experiment: the budget and whatever else a result depends on, and the runs.

    [settings]          part of what a result is: records made under other settings are never mixed with these
    seconds = 180.0
    [runs]              crossed with each other; more may be added any day, and only those are run then
    seed = 5            the same as [0, 1, 2, 3, 4]
    dataset = ["protein", "naval"]
    [quick.settings]    what ``--quick`` puts in their place
    [quick.runs]

``remarks = "..."`` is printed on the page: what happened while the records were made, and a reader should know.
``like = "regression"`` takes the settings of another experiment, so that their results can be compared.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from nasbot.errors import FileError, OptionError

FOLDER = Path(__file__).resolve().parent / "protocols"
PARTS = frozenset({"like", "minutes", "remarks", "settings", "runs", "quick"})

Run = dict[str, Any]  # one entry of each list of [runs]: what tells a run from the others


@dataclass(frozen=True)
class Protocol:
    """One experiment's settings and runs."""

    name: str
    settings: Mapping[str, Any]
    axes: Mapping[str, Sequence[Any]]
    minutes: float  # how long all of it was estimated to take on two cores
    remarks: str = ""

    @property
    def digest(self) -> str:
        """Stands for the settings; records carry it."""
        text = json.dumps(self.settings, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def runs(self) -> list[Run]:
        """Every run, those of the first axis together: whenever it is stopped, all methods have as many seeds."""
        return [dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values())]


def read_protocol(name: str, *, quick: bool = False, folder: Path = FOLDER) -> Protocol:
    """The protocol of an experiment; FileError and OptionError say what is wrong with its file."""
    stored = _stored(folder / f"{name}.toml")
    settings: dict[str, Any] = {}
    if "like" in stored:
        settings |= read_protocol(str(stored["like"]), quick=quick, folder=folder).settings
    settings |= stored.get("settings", {})
    axes, minutes, remarks = stored.get("runs", {}), stored.get("minutes", 0.0), stored.get("remarks", "")
    if quick:
        other = stored.get("quick", {})
        settings |= other.get("settings", {})
        axes, minutes, remarks = axes | other.get("runs", {}), other.get("minutes", minutes), ""
    entries = {axis: _entries(name, axis, given) for axis, given in axes.items()}
    return Protocol(name, settings, entries, float(minutes), " ".join(str(remarks).split()))


def _entries(name: str, axis: str, given: object) -> list[Any]:
    """The list, or 0, 1, 2, … of a number of them."""
    if isinstance(given, list) and given:
        return given
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return list(range(given))
    raise OptionError(f"{name}.toml: runs.{axis}: expected a list of entries or how many there are, got {given!r}")


def _stored(path: Path) -> dict[str, Any]:
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{path}: not a TOML file ({error})") from None
    if unknown := sorted(set(stored) - PARTS):
        raise OptionError(f"{path.name}: unknown entry {unknown[0]!r}; there are {', '.join(sorted(PARTS))}")
    return stored

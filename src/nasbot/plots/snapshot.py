"""One moment of a study, from which every series is made, so that all pictures of a page agree.

snapshot = Snapshot.of(StudyView.read("protein"), name="protein")     # also of a Study, or of a bare History
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.errors import OptionError
from nasbot.otmann import Otmann
from nasbot.otmann.presets import PAPER, PRESETS, search_rules
from nasbot.trial import Direction, History, Trial

if TYPE_CHECKING:  # at run time it would bring all searchers, and scipy, to the live page
    from nasbot.study import StudyView


@dataclass(frozen=True)
class Snapshot:
    """The trials of a study as they are now, and what is needed to show them: a name and the settings."""

    history: History
    name: str = ""
    settings: Mapping[str, Json] = field(default_factory=dict)  # of the study; empty for a bare history

    @classmethod
    def of(cls, source: Source, *, name: str = "") -> Snapshot:
        """What a study, a view of one or a bare history shows now; read once."""
        if isinstance(source, Snapshot):
            return source
        if isinstance(source, History):
            return cls(source, name=name)
        return cls(source.history, name, source.settings)

    @property
    def direction(self) -> Direction:
        """Whether values are better high or low."""
        return self.history.direction

    def is_better(self, value: float, other: float) -> bool:
        """Whether a value beats another."""
        return self.direction.turned(value) > self.direction.turned(other)

    @property
    def searcher(self) -> str:
        """The searcher's name; of a bare history the one that most trials name."""
        described = self.settings.get("searcher")
        if isinstance(described, Mapping) and "name" in described:
            return str(described["name"])
        names = [trial.origin.searcher for trial in self.history if trial.origin.was_proposed]
        return max(dict.fromkeys(names), key=names.count, default="")

    @property
    def distance(self) -> Otmann:
        """The study's own distance, by which all its pictures compare; where it is not known, that of a search."""
        searcher = self.settings.get("searcher")
        described = searcher.get("distance") if isinstance(searcher, Mapping) else None
        if isinstance(described, Mapping) and str(described.get("preset")) in PRESETS:
            given = described.get("structural_weights")
            weights = [float(w) for w in given if isinstance(w, int | float)] if isinstance(given, list) else None
            with suppress(OptionError):
                return Otmann(preset=str(described["preset"]), structural_weights=weights or None)
        return Otmann(preset=search_rules(self.history[0].arch.vocabulary) if len(self.history) else PAPER)

    @property
    def elapsed(self) -> float:
        """Seconds on the study's clock at its last record."""
        return self.history.elapsed


Source: TypeAlias = "Snapshot | StudyView | History"


def number_of(details: Json, *keys: str) -> float | None:
    """A finite number in nested details, None where there is none: details are the objective's own."""
    value = details
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def parent_of(trial: Trial, n_trials: int) -> int | None:
    """The trial of which this one's network was made, None where its origin names none that came before it."""
    first = next(iter(trial.origin.parents), None)
    return first if first is not None and 0 <= first < min(trial.number, n_trials) else None


def records_of(history: History) -> tuple[int, ...]:
    """Trials, in order, that were better than everything before when they came; the first value of all is one."""
    best = -math.inf
    records = []
    for trial in history.completed:
        if trial.fidelity >= 1 and history.merit(trial) > best:
            best = history.merit(trial)
            records.append(trial.number)
    return tuple(records)


def plain(record: Any) -> Any:
    """Any series as data that JSON can carry: records as objects, networks in their file format, NaN as null."""
    if isinstance(record, Architecture):
        return record.to_dict()
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {entry.name: plain(getattr(record, entry.name)) for entry in dataclasses.fields(record)}
    if isinstance(record, tuple) and hasattr(record, "_asdict"):
        return {key: plain(value) for key, value in record._asdict().items()}
    if isinstance(record, Mapping):
        return {str(key): plain(value) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return [plain(value) for value in record]
    if isinstance(record, float) and not math.isfinite(record):
        return None
    return str(record) if isinstance(record, str) else record

"""How long a study has spent choosing networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nasbot._typing import Json
from nasbot.trial import History


class DecidingTime(NamedTuple):
    """Seconds over all proposals. What searchers do not say of themselves is in ``other``."""

    distances: float
    fitting: float
    maximising: float
    other: float
    n_proposals: int

    @classmethod
    def of(cls, history: History) -> DecidingTime:
        """The sums over the notes of all trials that were proposed."""
        notes = [trial.notes for trial in history if "deciding" in trial.notes]
        distances, fitting, maximising = (
            sum(_seconds(entry.get("seconds"), part) for entry in notes)
            for part in ("distances", "fitting", "maximising")
        )
        total = sum(_seconds(entry, "deciding") for entry in notes)
        other = max(0.0, total - distances - fitting - maximising)
        return cls(distances, fitting, maximising, other, n_proposals=len(notes))

    @property
    def total(self) -> float:
        """All of it."""
        return self.distances + self.fitting + self.maximising + self.other

    def __str__(self) -> str:
        each = f", {self.total / self.n_proposals:.3f} s each" if self.n_proposals else ""
        parts = ", ".join(f"{name} {getattr(self, name):.2f} s" for name in self._fields[:4])
        return f"{self.n_proposals} proposals in {self.total:.2f} s{each}: {parts}"


def _seconds(notes: Json, part: str) -> float:
    """A number of the notes, 0 where it is missing: searchers need not say it."""
    value = notes.get(part) if isinstance(notes, Mapping) else None
    return float(value) if isinstance(value, int | float) else 0.0

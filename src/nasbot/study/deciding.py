"""How long a study has spent choosing networks."""

from __future__ import annotations

from typing import NamedTuple

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
        """The sums over all trials that were proposed."""
        taken = [trial.origin.seconds for trial in history if "deciding" in trial.origin.seconds]
        distances, fitting, maximising, total = (
            sum(seconds.get(part, 0.0) for seconds in taken)
            for part in ("distances", "fitting", "maximising", "deciding")
        )
        other = max(0.0, total - distances - fitting - maximising)
        return cls(distances, fitting, maximising, other, n_proposals=len(taken))

    @property
    def total(self) -> float:
        """All of it."""
        return self.distances + self.fitting + self.maximising + self.other

    def __str__(self) -> str:
        each = f", {self.total / self.n_proposals:.3f} s each" if self.n_proposals else ""
        parts = ", ".join(f"{name} {getattr(self, name):.2f} s" for name in self._fields[:4])
        return f"{self.n_proposals} proposals in {self.total:.2f} s{each}: {parts}"

"""What the measured figures must reach."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """One figure, what it should reach, and the looser gate that decides the exit code (None: no gate)."""

    name: str
    measured: float
    bar: float
    gate: float | None = None
    at_least: bool = True
    unit: str = ""

    @property
    def passed(self) -> bool:
        """Whether the figure reaches the bar."""
        return self._reaches(self.bar)

    @property
    def through_gate(self) -> bool:
        """Whether the figure is good enough for a busy machine."""
        return self.gate is None or self._reaches(self.gate)

    def _reaches(self, limit: float) -> bool:
        return self.measured >= limit if self.at_least else self.measured <= limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        verdict = "PASS" if self.passed else "MISS" if self.through_gate else "MISS, and below the gate"
        gate = "" if self.gate is None else f" (gate {self.gate:g})"
        return f"{self.name:58} {self.measured:9.4g}{self.unit:3} {sign} {self.bar:g}{self.unit}{gate}: {verdict}"

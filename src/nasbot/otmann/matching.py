"""Why two networks are as far apart as they are: the optimal matching, layer by layer, and its three penalties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbot._display import display
from nasbot.architecture import Architecture
from nasbot.architecture.masses import layer_masses
from nasbot.otmann.costs import label_cost, structural_cost
from nasbot.otmann.distances import checked_weights
from nasbot.otmann.models import Network, as_architecture
from nasbot.otmann.packing import shared_vocabulary
from nasbot.otmann.presets import RuleSet, rule_set
from nasbot.otmann.transport import solve_transport

Floats = NDArray[np.float64]


class MatchedPair(NamedTuple):
    """Mass matched between layer u of the first and layer v of the second network, and what each unit of it costs."""

    u: int
    v: int
    mass: float
    label_cost: float
    structural_cost: float  # already times the structural weight


@dataclass(frozen=True, eq=False)
class Matching:
    """An optimal solution of eq. (3). The three penalties add up to the distance."""

    first: Architecture
    second: Architecture
    structural_weight: float
    masses_1: Floats
    masses_2: Floats
    label_cost: Floats  # C_lmm (n1, n2), infinite where labels never match
    structural_cost: Floats  # C_str (n1, n2), without the weight
    matched_mass: Floats  # Z (n1, n2)
    unassigned_1: Floats  # (n1,)
    unassigned_2: Floats  # (n2,)

    @property
    def label_penalty(self) -> float:
        """φ_lmm: what matching different labels costs."""
        matched = self.matched_mass > 0
        return float((self.matched_mass[matched] * self.label_cost[matched]).sum())

    @property
    def unassigned_mass(self) -> float:
        """φ_nas: the mass left unassigned in both networks, at 1 a unit."""
        return float(self.unassigned_1.sum() + self.unassigned_2.sum())

    @property
    def structural_penalty(self) -> float:
        """ν φ_str: what matching layers at different places costs, the weight included."""
        return float(self.structural_weight * (self.matched_mass * self.structural_cost).sum())

    @property
    def distance(self) -> float:
        """d, the sum of the three penalties."""
        return self.label_penalty + self.unassigned_mass + self.structural_penalty

    @property
    def normalised_distance(self) -> float:
        """d_bar = d / (tm1 + tm2)."""
        total = float(self.masses_1.sum() + self.masses_2.sum())
        return min(self.distance / total, 1.0) if total > 0 else 0.0

    def pairs(self) -> Iterator[MatchedPair]:
        """Every two layers with mass matched between them, in the order of the first network."""
        for u, v in np.argwhere(self.matched_mass > 0):
            weighted = float(self.structural_weight * self.structural_cost[u, v])
            mass, label = float(self.matched_mass[u, v]), float(self.label_cost[u, v])
            yield MatchedPair(int(u), int(v), mass, label, weighted)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the totals, the matched pairs, and what stays unassigned."""
        return {
            "structural_weight": self.structural_weight,
            "d": self.distance,
            "d_bar": self.normalised_distance,
            "label_penalty": self.label_penalty,
            "unassigned_mass": self.unassigned_mass,
            "structural_penalty": self.structural_penalty,
            "pairs": [pair._asdict() for pair in self.pairs()],
            "unassigned_1": self.unassigned_1.tolist(),
            "unassigned_2": self.unassigned_2.tolist(),
        }

    def draw(self, path: str | Path, **options: Any) -> Path:
        """Draw both networks side by side with the mass that runs between them (.svg or .png)."""
        drawn: Path = display("matching.draw")(self, path, **options)
        return drawn

    def _repr_svg_(self) -> str:
        return str(display("matching.svg")(self))

    def __str__(self) -> str:
        lines = [f"{'first':<22}{'second':<22}{'mass':>14}{'label':>8}{'structure':>11}{'cost':>14}"]
        for u, layer in enumerate(self.first.layers):
            lines += [self._matched_line(pair) for pair in self.pairs() if pair.u == u]
            if self.unassigned_1[u] > 0:
                lines.append(_line(f"{u} {layer}", "unassigned", self.unassigned_1[u], "", "", self.unassigned_1[u]))
        for v, layer in enumerate(self.second.layers):
            if self.unassigned_2[v] > 0:
                lines.append(_line("unassigned", f"{v} {layer}", self.unassigned_2[v], "", "", self.unassigned_2[v]))
        lines.append("")
        lines.append(f"labels {self.label_penalty:,.6g} + unassigned {self.unassigned_mass:,.6g} + structure ")
        lines[-1] += f"{self.structural_penalty:,.6g} = d {self.distance:,.6g}"
        lines.append(f"d_bar {self.normalised_distance:.6g} at structural weight {self.structural_weight:g}")
        return "\n".join(lines)

    def _matched_line(self, pair: MatchedPair) -> str:
        return _line(
            f"{pair.u} {self.first.layers[pair.u]}",
            f"{pair.v} {self.second.layers[pair.v]}",
            pair.mass,
            f"{pair.label_cost:.3g}",
            f"{pair.structural_cost:.3g}",
            pair.mass * (pair.label_cost + pair.structural_cost),
        )


def _line(first: str, second: str, mass: float, label: str, structure: str, cost: float) -> str:
    return f"{first:<22}{second:<22}{mass:>14,.6g}{label:>8}{structure:>11}{cost:>14,.6g}"


def explain(a: Network, b: Network, *, structural_weight: float = 0.4, preset: str | RuleSet = "paper") -> Matching:
    """The matching behind d(a, b) at one structural weight: print it, draw it, or read its parts."""
    rules = rule_set(preset)
    a, b = as_architecture(a), as_architecture(b)
    (nu,) = checked_weights((structural_weight,))
    penalties = rules.penalties_for(shared_vocabulary((a, b)))
    masses_1, masses_2 = layer_masses(a, rules.mass_rules), layer_masses(b, rules.mass_rules)
    label, structural = label_cost(a, b, penalties, rules.attribute_penalties), structural_cost(a, b)
    plan = solve_transport(masses_1, masses_2, label + nu * structural)
    return Matching(
        a, b, nu, masses_1, masses_2, label, structural, plan.matched_mass, plan.unassigned_1, plan.unassigned_2
    )

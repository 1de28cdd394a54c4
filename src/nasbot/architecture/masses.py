"""Layer masses ℓm of Section 3: how much each layer counts when two networks are matched.

processing layer   factor * units * incoming channels, the factor 1 but for res (2) and fc in a CNN (0.1); a layer
                   without units (a pool) counts as one unit, and passes on the channels it receives; under
                   ``logarithmic`` rules log(1 + that product). A label with a mass of its own has that
input, output      zeta * S each, where S is the mass of all processing layers
decision layers    zeta * S shared equally

The input emits one channel whatever the data, so that the distance does not depend on the data set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture.labels import Label, Role
from nasbot.errors import InvalidArchitectureError, OptionError, Violation

if TYPE_CHECKING:
    from nasbot.architecture.graph import Architecture


@dataclass(frozen=True, kw_only=True, repr=False)
class MassRules:
    """What the paper, its release, its first figure and our search do differently about masses."""

    nonprocessing_mass: float = 0.1  # ζ
    nonprocessing_floor: float = (
        0.0  # the release: input, output and all decision layers together weigh at least 100 each
    )
    factors: Mapping[str, float] = field(default_factory=dict)  # by label, in place of the vocabulary's
    logarithmic: bool = False  # log(1 + product), not the product, where a layer's mass is one
    exponent: float = 1.0  # or the product to this power, which is between the two

    def __post_init__(self) -> None:
        if not 0 < self.nonprocessing_mass < 1:
            raise OptionError(f"nonprocessing_mass (ζ) must lie between 0 and 1, got {self.nonprocessing_mass}")
        if not 0 < self.exponent <= 1:
            raise OptionError(f"exponent of masses must be above 0 and at most 1, got {self.exponent}")

    def __repr__(self) -> str:
        """The last field only where it says something: studies keep this from before it was."""
        shown = fields(self) if self.exponent != 1.0 else fields(self)[:-1]
        return f"MassRules({', '.join(f'{x.name}={getattr(self, x.name)!r}' for x in shown)})"

    def factor(self, label: Label) -> float:
        """What units * incoming channels is multiplied by."""
        return self.factors.get(label.name, label.mass_factor)


PAPER_MASS_RULES = MassRules()

LARGEST_MASS = 8e307  # of a network: two of them have to have a sum


def layer_masses(arch: Architecture, rules: MassRules = PAPER_MASS_RULES) -> NDArray[np.float64]:
    """ℓm(u) for every layer u."""
    labels = [arch.vocabulary.by_name[layer.label] for layer in arch.layers]
    masses = np.zeros(len(arch.layers), np.float64)
    for u, incoming in enumerate(incoming_channels(arch)):
        if labels[u].role is Role.PROCESSING:
            masses[u] = _processing_mass(labels[u], arch.layers[u].units, incoming, rules)
    share = max(rules.nonprocessing_mass * masses.sum(), rules.nonprocessing_floor)
    masses[[0, -1]] = share
    for u in arch.decision_layers:
        masses[u] = share / len(arch.decision_layers)
    check_finite(share)
    return masses


def check_finite(total: float, network: str = "the network") -> None:
    """Raise where a mass is beyond what two networks can have together in floating point: no distance could be made."""
    if not total <= LARGEST_MASS:
        message = f"{network} has a mass beyond {LARGEST_MASS:g}: its layers pass on and concatenate too many channels"
        raise InvalidArchitectureError.of([Violation("mass", message)])


def _processing_mass(label: Label, units: int | None, incoming: float, rules: MassRules) -> float:
    if label.fixed_mass is not None:
        return label.fixed_mass
    product = rules.factor(label) * (1 if units is None else units) * incoming
    return math.log1p(product) if rules.logarithmic else product**rules.exponent


def incoming_channels(arch: Architecture) -> list[float]:
    """For each layer the sum of its parents' outgoing channels; 0 for the input.

    Whole numbers as floats: layers that pass channels on can double them a thousand times over.
    """
    out_channels: list[float] = []
    incoming: list[float] = []
    for layer, parents in zip(arch.layers, arch.parents, strict=True):
        incoming.append(sum(out_channels[p] for p in parents) if parents else 0.0)
        emitted = float(layer.units) if layer.units is not None else incoming[-1]
        out_channels.append(emitted if parents else 1.0)
    return incoming

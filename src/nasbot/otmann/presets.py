"""Rule sets of the distance: three under which it has been published, and one of ours (docs/deviations.md).

paper     the appendix of the paper, and the default of the distance
release   the authors' 2018 code, so that its numbers can be reproduced
figure    the rules behind the numbers in the caption of the paper's first figure
log-mass  the paper's, but a layer weighs the logarithm of its mass, so that a distance is not ruled by the few widest
          layers; the search compares CNNs so, unless it is told otherwise
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from nasbot.architecture.attributes import AttributePenalties
from nasbot.architecture.labels import Vocabulary
from nasbot.architecture.masses import PAPER_MASS_RULES, MassRules
from nasbot.architecture.penalties import LabelPenalties
from nasbot.architecture.vocabularies import BUILT_IN, CNN, RESIDUALS, cnn_penalties
from nasbot.errors import OptionError

ATTRIBUTES = AttributePenalties()
PAPER_WEIGHTS = (0.1, 0.2, 0.4, 0.8)  # ν_str, App. B.1


@dataclass(frozen=True, kw_only=True, repr=False)
class RuleSet:
    """All that fixes the distance besides the vocabulary; ``penalties`` stands in for a built-in vocabulary's table."""

    name: str
    structural_weights: tuple[float, ...] = PAPER_WEIGHTS
    mass_rules: MassRules = PAPER_MASS_RULES
    penalties: Mapping[str, LabelPenalties] = field(default_factory=dict)
    attribute_penalties: AttributePenalties = ATTRIBUTES
    within_groups: float = 1.0  # what penalties between labels of one group are multiplied by,
    between_groups: float = 1.0  # and those between labels of different ones

    def __repr__(self) -> str:
        """The last three fields only where they say something: studies keep this from before they were."""
        first, later = fields(self)[:-3], fields(self)[-3:]
        shown = [*first, *(x for x in later if getattr(self, x.name) != x.default)]
        return f"RuleSet({', '.join(f'{x.name}={getattr(self, x.name)!r}' for x in shown)})"

    def penalties_for(self, vocabulary: Vocabulary) -> LabelPenalties:
        """The table for networks of this vocabulary; a user's own vocabulary always keeps its own, but for factors."""
        table = vocabulary.penalties
        if vocabulary == BUILT_IN.get(vocabulary.name):
            table = self.penalties.get(vocabulary.name, table)
        if self.within_groups == self.between_groups == 1.0:
            return table
        groups = [label.group for label in vocabulary.labels]
        same = np.array([[a == b for b in groups] for a in groups])
        return table.multiplied(np.where(same, self.within_groups, self.between_groups))


_CNN_LABELS = CNN.penalties.labels

PAPER = RuleSet(name="paper")
RELEASE = RuleSet(
    name="release",
    structural_weights=(0.1, 0.25, 0.61, 1.5),
    mass_rules=MassRules(nonprocessing_floor=100.0, factors=dict.fromkeys(RESIDUALS.values(), 1.0)),
    penalties={"cnn": cnn_penalties(_CNN_LABELS, near=0.2, far=0.2 * math.sqrt(2), pools=0.5)},
)
FIGURE = RuleSet(
    name="figure",
    structural_weights=(0.5,),
    mass_rules=MassRules(factors={"fc": 1.0}),
    penalties={"cnn": cnn_penalties(_CNN_LABELS, near=0.1, far=0.14, pools=0.25)},
)
LOG_MASS = RuleSet(name="log-mass", mass_rules=MassRules(logarithmic=True))
PRESETS: Mapping[str, RuleSet] = {rules.name: rules for rules in (PAPER, RELEASE, FIGURE, LOG_MASS)}


def search_rules(vocabulary: Vocabulary) -> RuleSet:
    """The rules that a search compares networks by: the paper's; for CNNs with the logarithms of masses.

    Masses are products, so the few widest layers rule the distance, and depth and branches hardly show. In CNNs those
    matter more to the search than widths do, in MLPs they do not: docs/deviations.md has the measurements.
    """
    return LOG_MASS if vocabulary.shrinks_images else PAPER


def rule_set(preset: str | RuleSet) -> RuleSet:
    """The rule set itself, or the preset of that name."""
    if isinstance(preset, RuleSet):
        return preset
    if str(preset) in PRESETS:
        return PRESETS[str(preset)]
    raise OptionError(f"unknown preset {str(preset)[:60]!r}; known: {', '.join(PRESETS)}")

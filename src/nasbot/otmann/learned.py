"""A distance of which the data choose the numbers: a few tables of OTMANN, the first of them expected.

The paper leaves its numbers to taste: how masses count, what the input and the output weigh (ζ), which structural
weights ν there are, what it costs to take one label for another. Each table here is one answer. A searcher compares
them by how likely they make the values seen (``searchers/choosing.py``); until then, and where nobody chooses, this is
the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nasbot.architecture.labels import Vocabulary
from nasbot.errors import OptionError
from nasbot.otmann.distances import Distances, Otmann
from nasbot.otmann.presets import LOG_MASS, PAPER, PRESETS, RuleSet, search_rules

WIDE_WEIGHTS = (0.1, 0.4, 1.6, 6.4)  # ν that let structure count for more
ROOT = 0.5  # the exponent between masses themselves and their logarithms
HEAVY_ENDS = 0.3  # ζ


@dataclass(frozen=True)
class LearnedDistance:
    """Tables of OTMANN with different names, the expected one first; a NetworkDistance itself, that of the first."""

    tables: tuple[Otmann, ...]

    def __post_init__(self) -> None:
        names = [table.rules.name for table in self.tables]
        if not names or len(set(names)) < len(names):
            raise OptionError(f"a learned distance needs tables with different names, got {', '.join(names) or 'none'}")
        if len({len(table.structural_weights) for table in self.tables}) > 1:
            raise OptionError("the tables of a learned distance must have equally many structural weights")

    @classmethod
    def of(cls, vocabulary: Vocabulary, expected: str = "") -> LearnedDistance:
        """The tables for networks of a vocabulary; ``expected`` names another preset to begin with."""
        first = PRESETS[expected] if expected else search_rules(vocabulary)
        others = [rules for rules in _rules(vocabulary) if rules.name != first.name]
        return cls(tuple(Otmann(preset=rules) for rules in (first, *others)))

    @property
    def names(self) -> tuple[str, ...]:
        """What each table is called."""
        return tuple(table.rules.name for table in self.tables)

    def pack(self, archs: Any) -> Any:
        """As the first table does."""
        return self.tables[0].pack(archs)

    def cross(self, a: Any, b: Any) -> Distances:
        """As the first table does."""
        return self.tables[0].cross(a, b)

    def pairwise(self, archs: Any) -> Distances:
        """As the first table does."""
        return self.tables[0].pairwise(archs)


def _rules(vocabulary: Vocabulary) -> Iterator[RuleSet]:
    has_products = any(label.takes_units for label in vocabulary.labels)
    yield PAPER
    yield replace(PAPER, name="wide", structural_weights=WIDE_WEIGHTS)
    if has_products:
        root = replace(PAPER.mass_rules, exponent=ROOT)
        yield RuleSet(name="root-mass", mass_rules=root)
        yield LOG_MASS
        yield replace(LOG_MASS, name="log-mass wide", structural_weights=WIDE_WEIGHTS)
    base = LOG_MASS if has_products else PAPER
    heavy = replace(base.mass_rules, nonprocessing_mass=HEAVY_ENDS)
    yield replace(base, name=f"{base.name} heavy ends", mass_rules=heavy)
    yield replace(base, name=f"{base.name} strict groups", between_groups=2.0)
    yield replace(base, name=f"{base.name} strict labels", within_groups=2.0, between_groups=2.0)

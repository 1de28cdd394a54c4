"""The tables among which the data choose: what each changes of the paper's numbers, and their order."""

import pytest

from nasbot.architecture import CNN, MLP_REG
from nasbot.otmann.learned import LearnedDistance
from nasbot.otmann.presets import PAPER_WEIGHTS, PRESETS
from tests.evolution.vocabularies import cells

WIDE = (0.1, 0.4, 1.6, 6.4)
# weights, exponent of masses, whether their logarithms, what the ends weigh, factors within groups and between them
PAPER = {"paper": (PAPER_WEIGHTS, 1.0, False, 0.1, 1.0, 1.0), "wide": (WIDE, 1.0, False, 0.1, 1.0, 1.0)}
OF_PRODUCTS = {
    "root-mass": (PAPER_WEIGHTS, 0.5, False, 0.1, 1.0, 1.0),
    "log-mass": (PAPER_WEIGHTS, 1.0, True, 0.1, 1.0, 1.0),
    "log-mass wide": (WIDE, 1.0, True, 0.1, 1.0, 1.0),
}


def harder(base, *, logarithmic):
    return {
        f"{base} heavy ends": (PAPER_WEIGHTS, 1.0, logarithmic, 0.3, 1.0, 1.0),
        f"{base} strict groups": (PAPER_WEIGHTS, 1.0, logarithmic, 0.1, 1.0, 2.0),
        f"{base} strict labels": (PAPER_WEIGHTS, 1.0, logarithmic, 0.1, 2.0, 2.0),
    }


OF_UNITS = {**PAPER, **OF_PRODUCTS, **harder("log-mass", logarithmic=True)}


def told(learned):
    rules = [(table.structural_weights, table.rules.mass_rules, table.rules) for table in learned.tables]
    return [
        (r.name, (weights, m.exponent, m.logarithmic, m.nonprocessing_mass, r.within_groups, r.between_groups))
        for weights, m, r in rules
    ]


@pytest.mark.parametrize(
    ("vocabulary", "first", "tables"),
    [
        (MLP_REG, "paper", OF_UNITS),
        (CNN, "log-mass", OF_UNITS),
        (cells(), "paper", {**PAPER, **harder("paper", logarithmic=False)}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_tables_of_a_vocabulary(vocabulary, first, tables):
    others = [name for name in tables if name != first]
    assert told(LearnedDistance.of(vocabulary)) == [(name, tables[name]) for name in (first, *others)]


def test_another_preset_may_be_expected():
    tables = LearnedDistance.of(MLP_REG, "release").tables
    assert tables[0].rules is PRESETS["release"]
    assert [table.rules.name for table in tables[1:]] == list(OF_UNITS)

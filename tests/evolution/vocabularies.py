"""Vocabularies of users' own for the tests: labels whose names say nothing."""

from nasbot.architecture import Architecture, Label, LabelPenalties, Layer, Role, Signal, Vocabulary
from nasbot.errors import Violation

CELL_EDGES = frozenset({(0, 1), (0, 2), (0, 4), (1, 3), (1, 5), (2, 6), (3, 6), (4, 7), (5, 7), (6, 7)})
CELL_OPERATIONS = ("a", "b", "c", "d", "e")


def vocabulary(name, labels, *rules):
    names = tuple(label.name for label in labels)
    return Vocabulary(name, tuple(labels), LabelPenalties.from_pairs(names, {}), rules)


def _fixed_structure(arch):
    if arch.edges != CELL_EDGES:
        yield Violation("cell structure", f"a cell has {len(CELL_EDGES)} given edges, got {len(arch.edges)}")


def cells():
    """Six operations of a fixed cell, as in NAS-Bench-201: no units, no decision layers, the structure a rule."""
    operations = [Label(name=name, fixed_mass=1.0) for name in CELL_OPERATIONS]
    ends = [Label(name="in", role=Role.INPUT), Label(name="out", role=Role.OUTPUT)]
    return vocabulary("cells", [*ends, *operations], _fixed_structure)


def cell(operations, of=None):
    of = of or cells()
    return Architecture(of, [Layer("in"), *map(Layer, operations), Layer("out")], CELL_EDGES)


def images(*, halving="strided"):
    """Images without the names of the built-in ones; ``halving``: what can halve an image without having units."""
    through = {"takes": Signal.IMAGE, "emits": Signal.IMAGE}
    labels = [
        Label(name="x", role=Role.INPUT, emits=Signal.IMAGE),
        Label(name="y", role=Role.OUTPUT),
        Label(name="thing", takes_units=True, strides=(1, 2), **through),
        Label(name="verdict", role=Role.DECISION, takes=Signal.ANY, may_follow_input=False),
    ]
    if halving == "strided":
        labels.append(Label(name="sub", strides=(1, 2), **through))
    elif halving == "fixed":
        labels += [
            Label(name="first", shrinks=2, **through),
            Label(name="marked", shrinks=2, joins_skips=True, **through),
        ]
    return vocabulary("images", labels)

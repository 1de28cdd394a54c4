"""A user's own vocabulary: cells in the manner of NAS-Bench-201, their operations on the layers."""

from collections.abc import Iterable

from nasbot.architecture import Architecture, Label, LabelPenalties, Role, Vocabulary
from nasbot.errors import Violation

MAX_OPERATIONS = 6


def at_most_six_operations(arch: Architecture) -> Iterable[Violation]:
    """The space's own rule: a cell of NAS-Bench-201 has six operations."""
    if (n := len(arch.processing_layers)) > MAX_OPERATIONS:
        first_too_many = arch.processing_layers[MAX_OPERATIONS]
        yield Violation("cell size", f"a cell has at most {MAX_OPERATIONS} operations, got {n}", first_too_many)


def cell_vocabulary() -> Vocabulary:
    """Fixed masses (no label takes units), no decision layers, a rule of its own."""
    labels = (
        Label(name="start", role=Role.INPUT),
        Label(name="end", role=Role.OUTPUT),
        Label(name="conv-1x1", fixed_mass=1.0, family="conv", group="conv"),
        Label(name="conv-3x3", fixed_mass=9.0, family="conv", group="conv"),
        Label(name="avg-pool-3x3", fixed_mass=0.5, family="pool"),
        Label(name="skip-connect", fixed_mass=0.0, family="skip"),
    )
    penalties = LabelPenalties.from_pairs(tuple(label.name for label in labels), {("conv-1x1", "conv-3x3"): 0.4})
    return Vocabulary("nas-bench-201", labels, penalties, rules=(at_most_six_operations,))

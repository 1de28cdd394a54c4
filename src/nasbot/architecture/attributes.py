"""Options of one layer (end of Section 4): dropout, normalisation and a factor of weight decay, as part of its label.

None everywhere is "as the label has it", so a layer without attributes is what it always was. The penalty between two
labels grows by what their attributes differ; each part is a pseudo-distance, so their sum is one and Theorem 1 holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nasbot.architecture.operations import OPERATIONS
from nasbot.errors import PenaltyError, Violation

if TYPE_CHECKING:
    from nasbot.architecture.labels import Label

NORMS = ("none", "batch", "layer")
MOST_DECAY = 1024.0  # and 1 / 1024 the least: beyond them weight decay is off or everything


class Attributes(NamedTuple):
    """What one layer has of its own; None: as its label has it."""

    dropout: float | None = None  # the share of what it emits that a training step leaves out
    norm: str | None = None  # between weights and activation: none, batch or layer
    decay_factor: float | None = None  # times the recipe's weight decay

    def __str__(self) -> str:
        shown = ["" if self.dropout is None else f"dropout {self.dropout:g}", "" if self.norm is None else _named(self)]
        shown.append("" if self.decay_factor is None else f"decay x{self.decay_factor:g}")
        return ", ".join(part for part in shown if part)

    @property
    def key(self) -> tuple[float, str, float]:
        """The same as values that sort."""
        return -1.0 if self.dropout is None else self.dropout, self.norm or "", self.decay_factor or 0.0


def _named(attributes: Attributes) -> str:
    return "no norm" if attributes.norm == "none" else f"{attributes.norm} norm"


@dataclass(frozen=True, kw_only=True)
class AttributePenalties:
    """What a difference of attributes adds to the penalty between two labels, for each unit of mass."""

    dropout: float = 0.5  # times the difference of the shares
    norm: float = 0.1  # where the normalisations differ
    decay_factor: float = 0.05  # times the difference of the factors' logarithms to base 2

    def __post_init__(self) -> None:
        for name in ("dropout", "norm", "decay_factor"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise PenaltyError(f"attribute penalty {name}: expected a finite number >= 0, got {value!r}")


def coordinates(attributes: Attributes | None, label: Label) -> tuple[float, int, float]:
    """Where a layer stands among others: its dropout beyond the label's, its own norm (0: the label's), log2 factor."""
    if attributes is None:
        return 0.0, 0, 0.0
    return (
        0.0 if attributes.dropout is None else attributes.dropout - label.dropout,
        0 if attributes.norm is None else 1 + NORMS.index(attributes.norm),
        0.0 if attributes.decay_factor is None else math.log2(attributes.decay_factor),
    )


def settled(given: Attributes, label: Label) -> Attributes | None:
    """Without what the label has anyway, so that two ways to write one layer are equal."""
    kept = Attributes(
        None if given.dropout is None or given.dropout == label.dropout else float(given.dropout),
        None if given.norm == label.norm else given.norm,
        None if given.decay_factor is None or given.decay_factor == 1 else float(given.decay_factor),
    )
    return None if kept == Attributes() else kept


def violations(given: Attributes, label: Label, u: int) -> Iterator[Violation]:
    """What is wrong with the attributes of layer u."""
    name = f"layer {u} ({label.name})"
    is_processing = label.role == "processing"
    if given.dropout is not None:
        if not is_processing:
            yield Violation("dropout", f"{name} takes no dropout, got {given.dropout!r}", u)
        elif not _is_number(given.dropout) or not 0 <= given.dropout < 1:
            yield Violation("dropout", f"{name}: dropout must be at least 0 and below 1, got {given.dropout!r}", u)
    if given.norm is not None:
        if not is_processing or label.operation not in ("dense", "convolution"):
            yield Violation("norm", f"{name} takes no norm, got {given.norm!r}", u)
        elif given.norm not in NORMS:
            yield Violation("norm", f"{name}: norm must be {', '.join(NORMS[:-1])} or layer, got {given.norm!r}", u)
        elif given.norm == "layer" and label.emits == "image":
            yield Violation("norm", f"{name}: layer normalisation is for layers of vectors; expected none or batch", u)
    if given.decay_factor is not None:
        has_weights = label.role == "decision" or (is_processing and OPERATIONS[label.operation].has_weights)
        if not has_weights:
            yield Violation("decay_factor", f"{name} has no weights to decay, got {given.decay_factor!r}", u)
        elif not _is_number(given.decay_factor) or not 1 / MOST_DECAY <= given.decay_factor <= MOST_DECAY:
            limits = f"from 1/{MOST_DECAY:g} to {MOST_DECAY:g}"
            yield Violation("decay_factor", f"{name}: decay_factor must lie {limits}, got {given.decay_factor!r}", u)


def kept_by(given: Attributes | None, label: Label) -> Attributes | None:
    """Those that a layer of this label can have."""
    if given is None:
        return None
    wrong = {violation.rule for violation in violations(given, label, 0)}
    return given._replace(**dict.fromkeys(wrong))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

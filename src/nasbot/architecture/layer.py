"""One layer of a network, and how many of them, of their edges and of their units are ever read or built."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from nasbot.architecture.attributes import Attributes

# Far beyond any search space; they keep one absurd network from exhausting memory before a limit is looked at.
MAX_LAYERS = 1_000
MAX_EDGES = 10_000
MAX_UNITS = 1_000_000

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Layer:
    """One layer: its label, units and stride where the label takes them, and what else it has of its own.

    ``Layer("relu", 64, dropout=0.1, norm="layer", decay_factor=2)``: ``Attributes`` says what these are.
    """

    label: str
    units: int | None
    stride: int | None
    attributes: Attributes | None  # None: all as the label has them

    def __init__(
        self,
        label: str,
        units: int | None = None,
        stride: int | None = None,
        attributes: Attributes | None = None,
        *,
        dropout: float | None = None,
        norm: str | None = None,
        decay_factor: float | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "label", label)
        put(self, "units", units if type(units) is int else _plain(units))
        put(self, "stride", stride if type(stride) is int else _plain(stride))
        if dropout is not None or norm is not None or decay_factor is not None:
            attributes = Attributes(dropout, norm, decay_factor)
        put(self, "attributes", attributes)

    def __repr__(self) -> str:
        own = "" if self.attributes is None else f", attributes={self.attributes!r}"
        return f"Layer(label={self.label!r}, units={self.units!r}, stride={self.stride!r}{own})"

    def __str__(self) -> str:
        units = "" if self.units is None else f" {self.units}"
        stride = f" /{self.stride}" if self.stride not in (None, 1) else ""
        own = "" if self.attributes is None else f" [{self.attributes}]"
        return f"{self.label}{units}{stride}{own}"


def _plain(number: Any) -> Any:
    """Whole numbers of numpy as Python's, anything else as it is: what is wrong with it the rules will say."""
    return int(number) if isinstance(number, Integral) and not isinstance(number, bool) else number

"""The columns of a table as networks see them: numbers, categories, dates, and what was left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

CODE = re.compile(r"0\d+")  # digits with a 0 in front: no number that people write, but a postal code, a part's


@dataclass(frozen=True)
class NumberColumn:
    """One column of numbers: (value - centre) / scale; gaps become ``fill``, and may be marked."""

    name: str
    fill: float
    centre: float
    scale: float
    marks_gaps: bool = False

    @property
    def width(self) -> int:
        """How many inputs of the network it takes."""
        return 1 + self.marks_gaps


@dataclass(frozen=True)
class CategoryColumn:
    """One column of categories: an input for each value seen in training rows, all 0 for any other and for gaps."""

    name: str
    values: tuple[str, ...]
    marks_gaps: bool = False

    @property
    def width(self) -> int:
        """How many inputs of the network it takes."""
        return len(self.values) + self.marks_gaps


@dataclass(frozen=True)
class DateColumn:
    """One column of dates: some of year, month, day, weekday and hour, each standardised; gaps become the means."""

    name: str
    order: str  # of day, month and year where dates are written: "ymd", "dmy" or "mdy"
    parts: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    marks_gaps: bool = False

    @property
    def width(self) -> int:
        """How many inputs of the network it takes."""
        return len(self.parts) + self.marks_gaps


@dataclass(frozen=True)
class DroppedColumn:
    """A column that says nothing (constant in the training rows, text, a row's name), or that was left out by wish."""

    name: str
    reason: str

    @property
    def width(self) -> int:
        """It takes no input of the network."""
        return 0


Column: TypeAlias = NumberColumn | CategoryColumn | DateColumn | DroppedColumn

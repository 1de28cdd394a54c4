"""M of Section 3: what it costs to match one unit of mass between two labels.

A table is part of a vocabulary. All of it is relative to the cost of leaving a unit of mass unassigned, which is 1, so
a penalty of 2 or more is never paid: both sides would rather stay unassigned. Infinity is the usual way to say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nasbot.errors import PenaltyError

NON_ASSIGNMENT_COST = 1.0
# App. A.1: leaving a unit unassigned on both sides costs 1 + 1, so nothing dearer is ever part of an optimum.
NEVER_MATCH = 2.0 * NON_ASSIGNMENT_COST
TRIANGLE_TOLERANCE = 1e-12


@dataclass(frozen=True)
class LabelPenalties:
    """A symmetric table over ``labels``, 0 on its diagonal, that satisfies the triangle inequality (for Theorem 1)."""

    labels: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        _check_shape(self.labels, self.rows)
        _check_entries(self.labels, self.rows)
        _check_triangle(self.labels, self.matrix)

    @classmethod
    def from_pairs(cls, labels: Sequence[str], pairs: Mapping[tuple[str, str], float]) -> LabelPenalties:
        """Equal labels cost 0, the named pairs what they say in either order, all others infinity."""
        table = {(x, x): 0.0 for x in labels}
        for named, penalty in pairs.items():
            given: object = named
            if not isinstance(given, tuple) or len(given) != 2:
                raise PenaltyError(f"penalties: expected pairs of labels such as ('conv3', 'conv5'), got {given!r}")
            x, y = named
            if unknown := {x, y} - set(labels):
                raise PenaltyError(
                    f"penalty for ({x}, {y}): unknown label {min(unknown)!r}; known: {', '.join(labels)}"
                )
            if math.isnan(penalty):
                raise PenaltyError(f"penalty for ({x}, {y}) must be a number >= 0 or infinity, got {penalty}")
            for pair in ((x, y), (y, x)):
                if table.setdefault(pair, float(penalty)) != float(penalty):
                    raise PenaltyError(
                        f"penalty for ({pair[0]}, {pair[1]}): two different values, {table[pair]} and {penalty}; "
                        "the table must be symmetric and 0 between equal labels"
                    )
        rows = tuple(tuple(table.get((x, y), math.inf) for y in labels) for x in labels)
        return cls(tuple(labels), rows)

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """The table as an array, clipped at NEVER_MATCH, which changes no distance."""
        return np.minimum(np.array(self.rows, dtype=np.float64), NEVER_MATCH)

    @cached_property
    def exchange_classes(self) -> tuple[int, ...]:
        """For each label the number of its class; labels of different classes never exchange mass.

        Classes are the connected components of "penalty below NEVER_MATCH": the transport problem splits along them.
        """
        n = len(self.labels)
        class_of = list(range(n))
        for i in range(n):
            for j in range(i):
                if self.matrix[i, j] < NEVER_MATCH and class_of[i] != class_of[j]:
                    kept, gone = sorted((class_of[i], class_of[j]))
                    class_of = [kept if c == gone else c for c in class_of]
        number = {c: k for k, c in enumerate(sorted(set(class_of)))}
        return tuple(number[c] for c in class_of)

    def multiplied(self, factors: NDArray[np.float64]) -> LabelPenalties:
        """The table with each entry multiplied by its factor, and none dearer than a way over other labels."""
        table = np.minimum(self.matrix * factors, NEVER_MATCH)
        for y in range(len(table)):
            table = np.minimum(table, table[:, y, None] + table[None, y, :])
        table[table >= NEVER_MATCH] = np.inf
        return LabelPenalties(self.labels, tuple(tuple(row) for row in table.tolist()))

    def penalty(self, x: str, y: str) -> float:
        """M(x, y) as given, infinities included."""
        return self.rows[self.labels.index(x)][self.labels.index(y)]


def _check_shape(labels: tuple[str, ...], rows: tuple[tuple[float, ...], ...]) -> None:
    n = len(labels)
    if len(set(labels)) != n:
        raise PenaltyError(f"labels of a penalty table must differ, got {', '.join(labels)}")
    if len(rows) != n or any(len(row) != n for row in rows):
        got = f"{len(rows)} rows of lengths {sorted({len(row) for row in rows})}"
        raise PenaltyError(f"a penalty table over {n} labels needs {n} rows of {n} entries, got {got}")


def _check_entries(labels: tuple[str, ...], rows: tuple[tuple[float, ...], ...]) -> None:
    for i, x in enumerate(labels):
        if rows[i][i] != 0:
            raise PenaltyError(f"penalty for ({x}, {x}) must be 0, got {rows[i][i]}")
        for j, y in enumerate(labels):
            if math.isnan(rows[i][j]) or rows[i][j] < 0:
                raise PenaltyError(f"penalty for ({x}, {y}) must be a number >= 0 or infinity, got {rows[i][j]}")
            if rows[i][j] != rows[j][i]:
                raise PenaltyError(
                    f"penalties must be symmetric: ({x}, {y}) is {rows[i][j]}, ({y}, {x}) is {rows[j][i]}"
                )


def _check_triangle(labels: tuple[str, ...], clipped: NDArray[np.float64]) -> None:
    """On the clipped table, since only clipped costs enter the distance."""
    detour = clipped[:, :, None] + clipped[None, :, :]  # x -> y -> z
    excess = clipped[:, None, :] - detour
    x, y, z = np.unravel_index(np.argmax(excess), excess.shape) if excess.size else (0, 0, 0)
    if excess.size and excess[x, y, z] > TRIANGLE_TOLERANCE:
        raise PenaltyError(
            f"penalties break the triangle inequality: ({labels[x]}, {labels[z]}) costs {clipped[x, z]:g}, but by way "
            f"of {labels[y]} only {clipped[x, y]:g} + {clipped[y, z]:g}; lower the first or raise one of the others"
        )

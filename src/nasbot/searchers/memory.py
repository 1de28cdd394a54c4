"""Distances between the networks of a study, remembered from one proposal to the next.

A cache and nothing more: what it answers depends on the networks asked about, not on what was asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture
from nasbot.otmann import Distances, NetworkDistance, PairwiseDistances

Floats = NDArray[np.float64]


class DistanceMemory:
    """The table of all networks met so far; a pair is compared once."""

    def __init__(self, distance: NetworkDistance) -> None:
        self._table = PairwiseDistances.of((), _Symmetric(distance))
        self._place: dict[Architecture, int] = {}

    def between(self, networks: Sequence[Architecture]) -> tuple[Floats, Floats]:
        """d and d_bar, each (weights, n, n), in the order asked for."""
        arrivals = list(dict.fromkeys(arch for arch in networks if arch not in self._place))
        for arch in arrivals:
            self._place[arch] = len(self._place)
        self._table = self._table.extended(arrivals)
        places = np.array([self._place[arch] for arch in networks], dtype=np.intp)
        rows, columns = places[:, None], places[None, :]
        return self._table.distances.d[:, rows, columns], self._table.distances.d_bar[:, rows, columns]


@dataclass(frozen=True, eq=False)
class _Symmetric:
    """A distance whose d(a, b) and d(b, a) agree to the last digit: the mean of both.

    The solver's do not quite, and which of the two a table has would depend on which network arrived first. That is
    another order in a study that was resumed, and a difference in the last digit is enough for another proposal.
    """

    distance: NetworkDistance

    def pack(self, archs: Sequence[Architecture]) -> Any:
        return self.distance.pack(archs)

    def cross(self, a: Any, b: Any) -> Distances:
        there, back = self.distance.cross(a, b), self.distance.cross(b, a)
        return Distances(
            there.structural_weights,
            0.5 * (there.d + back.d.transpose(0, 2, 1)),
            0.5 * (there.d_bar + back.d_bar.transpose(0, 2, 1)),
        )

    def pairwise(self, archs: Any) -> Distances:
        among = self.cross(archs, archs)
        for x in (among.d, among.d_bar):
            x[:, range(x.shape[1]), range(x.shape[1])] = 0.0  # exactly, which the solver's may miss by its last digit
        return among

"""Distances between the networks of a study, remembered from one proposal to the next.

A cache and nothing more: what it answers depends on the networks asked about, not on what was asked before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture
from nasbot.otmann import NetworkDistance, PairwiseDistances

Floats = NDArray[np.float64]


class DistanceMemory:
    """The table of all networks met so far; a pair is compared once."""

    def __init__(self, distance: NetworkDistance) -> None:
        self._table = PairwiseDistances.of((), distance)
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

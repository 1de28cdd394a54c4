"""Distances between all networks seen so far, grown by rows as networks arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture
from nasbot.otmann.distances import Distances, Otmann

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairwiseDistances:
    """All networks so far and the distances between each two. ``extended`` solves only the pairs that are new."""

    otmann: Otmann
    networks: tuple[Architecture, ...]
    distances: Distances

    @classmethod
    def of(cls, networks: Sequence[Architecture], otmann: Otmann | None = None) -> PairwiseDistances:
        """The table of these networks, by default under the paper's rules and weights."""
        otmann = otmann or Otmann()
        return cls(otmann, tuple(networks), otmann.pairwise(networks))

    def extended(self, arrivals: Sequence[Architecture]) -> PairwiseDistances:
        """The table with these networks behind the others."""
        if not arrivals:
            return self
        arrived = self.otmann.pack(arrivals)
        between = self.otmann.cross(self.networks, arrived)
        among = self.otmann.pairwise(arrived)
        return PairwiseDistances(
            self.otmann,
            (*self.networks, *arrivals),
            Distances(
                self.otmann.structural_weights,
                _bordered(self.distances.d, between.d, among.d),
                _bordered(self.distances.d_bar, between.d_bar, among.d_bar),
            ),
        )

    def __len__(self) -> int:
        return len(self.networks)


def _bordered(known: Floats, between: Floats, among: Floats) -> Floats:
    """[[known, between], [between', among]] for each structural weight."""
    return np.block([[known, between], [between.transpose(0, 2, 1), among]])

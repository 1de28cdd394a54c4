"""Distances between all networks seen so far, grown by rows as networks arrive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nasbot._display import display
from nasbot.architecture import Architecture
from nasbot.otmann.distances import Distances, Otmann
from nasbot.otmann.models import several

Floats = NDArray[np.float64]


class NetworkDistance(Protocol):
    """What a table, or a search, needs of a distance: Otmann is one, a user's own may be another.

    ``d`` and ``d_bar`` are finite, >= 0, symmetric, and of shape (weights, n, m). What ``pack`` returns is handed to
    the other two and to nobody else; they also take plain sequences of networks.
    """

    def pack(self, archs: Sequence[Architecture]) -> Any:
        """Networks in the form in which comparing them is quick."""
        ...

    def cross(self, a: Any, b: Any) -> Distances:
        """Between each of ``a`` and each of ``b``."""
        ...

    def pairwise(self, archs: Any) -> Distances:
        """Between each two of ``archs``."""
        ...


@dataclass(frozen=True, eq=False)
class PairwiseDistances:
    """All networks so far and the distances between each two. ``extended`` solves only the pairs that are new."""

    distance: NetworkDistance
    networks: tuple[Architecture, ...]
    distances: Distances

    @classmethod
    def of(cls, networks: Iterable[Architecture], distance: NetworkDistance | None = None) -> PairwiseDistances:
        """The table of these networks, by default under OTMANN with the paper's rules and weights."""
        distance, networks = distance or Otmann(), several(networks)
        return cls(distance, tuple(networks), distance.pairwise(networks))

    def extended(self, arrivals: Iterable[Architecture]) -> PairwiseDistances:
        """The table with these networks behind the others."""
        if not (arrivals := several(arrivals)):
            return self
        arrived = self.distance.pack(arrivals)
        between = self.distance.cross(self.networks, arrived)
        among = self.distance.pairwise(arrived)
        return PairwiseDistances(
            self.distance,
            (*self.networks, *arrivals),
            Distances(
                self.distances.structural_weights,
                _bordered(self.distances.d, between.d, among.d),
                _bordered(self.distances.d_bar, between.d_bar, among.d_bar),
            ),
        )

    def taken(self, numbers: NDArray[np.intp]) -> PairwiseDistances:
        """The table of some of these networks."""
        d, d_bar = (x[:, numbers[:, None], numbers] for x in (self.distances.d, self.distances.d_bar))
        networks = tuple(self.networks[number] for number in numbers)
        return PairwiseDistances(self.distance, networks, Distances(self.distances.structural_weights, d, d_bar))

    def __len__(self) -> int:
        return len(self.networks)

    def _repr_html_(self) -> str:
        return str(display("distances.html")(self.distances))


def _bordered(known: Floats, between: Floats, among: Floats) -> Floats:
    """[[known, between], [between', among]] for each structural weight."""
    return np.block([[known, between], [between.transpose(0, 2, 1), among]])

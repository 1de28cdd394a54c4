"""Distances between the networks of a study, remembered from one proposal to the next.

A cache and nothing more: what it answers depends on the networks asked about, not on what was asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from nasbot.architecture import Architecture
from nasbot.architecture.features import FeatureMap
from nasbot.otmann import Distances, NeighbourIndex, NetworkDistance, Otmann, PairwiseDistances

Floats = NDArray[np.float64]

MOST_REMEMBERED = 1500  # networks: 144 MB
MOST_FEATURES = 20_000  # networks whose features are remembered

Blocks = tuple[Floats, ...]  # features (n, numbers of a block) of n networks


class DistanceMemory:
    """The table of all networks met so far; a pair is compared once. Of what it does not keep it has no weights."""

    def __init__(self, distance: NetworkDistance, *, keeps_d: bool = True, keeps_d_bar: bool = True) -> None:
        self._table = PairwiseDistances.of((), _Symmetric(distance, keeps_d, keeps_d_bar))
        self._place: dict[Architecture, int] = {}

    def between(self, networks: Sequence[Architecture]) -> tuple[Floats, Floats]:
        """d and d_bar, each (weights, n, n), in the order asked for."""
        if len(self._place) > max(MOST_REMEMBERED, 2 * len(networks)):  # begin again, with those that are asked for now
            wanted = frozenset(networks)
            kept = [arch for arch in self._place if arch in wanted]
            places = np.array([self._place[arch] for arch in kept], dtype=np.intp)
            self._table = self._table.taken(places)
            self._place = {arch: place for place, arch in enumerate(kept)}
        arrivals = list(dict.fromkeys(arch for arch in networks if arch not in self._place))
        for arch in arrivals:
            self._place[arch] = len(self._place)
        self._table = self._table.extended(arrivals)
        places = np.array([self._place[arch] for arch in networks], dtype=np.intp)
        rows, columns = places[:, None], places[None, :]
        return self._table.distances.d[:, rows, columns], self._table.distances.d_bar[:, rows, columns]


class CrossMemory:
    """Distances from some known networks, remembered for each that is asked about: its params are tuned in rounds."""

    def __init__(self, distance: NetworkDistance, known: Any) -> None:
        self._distance, self._known = distance, known
        self._columns: dict[Architecture, tuple[Floats, Floats]] = {}

    def to(self, networks: Sequence[Architecture]) -> tuple[Floats, Floats]:
        """d and d_bar, each (weights, known, networks)."""
        arrivals = list(dict.fromkeys(arch for arch in networks if arch not in self._columns))
        if arrivals:
            between = self._distance.cross(self._known, self._distance.pack(arrivals))
            for i, arch in enumerate(arrivals):
                self._columns[arch] = between.d[:, :, i], between.d_bar[:, :, i]
            if len(arrivals) == len(networks):
                return between.d, between.d_bar
        d, d_bar = zip(*(self._columns[arch] for arch in networks), strict=True)
        return np.stack(d, axis=2), np.stack(d_bar, axis=2)


class FeatureMemory:
    """The features of all networks met so far: found once, though candidates are looked at again and again."""

    def __init__(self, feature_map: FeatureMap) -> None:
        self._map = feature_map
        self._known: dict[Architecture, Blocks] = {}

    def of(self, networks: Sequence[Architecture]) -> Blocks:
        """The features of each network, block by block."""
        if len(self._known) > MOST_FEATURES:
            self._known.clear()
        for arch in networks:
            if arch not in self._known:
                self._known[arch] = self._map(arch)
        found = [self._known[arch] for arch in networks]
        return tuple(np.array(block) for block in zip(*found, strict=True))


def feature_differences(a: Blocks, b: Blocks) -> Floats:
    """How far networks are apart in each block of features, (blocks, n, m)."""
    return np.array([cdist(left, right) for left, right in zip(a, b, strict=True)])


class NeighbourMemory:
    """The index of the networks evaluated so far: for each, the nearest of them."""

    def __init__(self, distance: NetworkDistance) -> None:
        self._distance = distance
        self._indexed: list[Architecture] = []
        self._index: NeighbourIndex | None = None

    def nearest(self, evaluated: Sequence[Architecture], asked: Sequence[Architecture], k: int) -> NDArray[np.int64]:
        """Numbers (asked, k) of the evaluated networks nearest to each that is asked about."""
        if not isinstance(self._distance, Otmann):  # no bounds are known for a distance of one's own
            d = self._distance.cross(asked, evaluated).d.mean(axis=0)
            return np.argsort(d, axis=1, kind="stable")[:, :k]
        evaluated = list(evaluated)
        n = min(len(evaluated), len(self._indexed))
        if self._index is None or evaluated[:n] != self._indexed[:n]:
            self._index, self._indexed, n = NeighbourIndex(distance=self._distance), [], 0
        self._index.append(evaluated[len(self._indexed) :])
        self._indexed += evaluated[len(self._indexed) :]
        return self._index.query(asked, min(k, len(evaluated)), first=len(evaluated)).numbers


@dataclass(frozen=True, eq=False)
class _Symmetric:
    """A distance whose d(a, b) and d(b, a) agree to the last digit: the mean of both.

    The solver's do not quite, and which of the two a table has would depend on which network arrived first. That is
    another order in a study that was resumed, and a difference in the last digit is enough for another proposal.
    """

    distance: NetworkDistance
    keeps_d: bool
    keeps_d_bar: bool

    def pack(self, archs: Sequence[Architecture]) -> Any:
        return self.distance.pack(archs)

    def cross(self, a: Any, b: Any) -> Distances:
        there, back = self.distance.cross(a, b), self.distance.cross(b, a)
        return Distances(
            there.structural_weights,
            _mean(there.d, back.d) if self.keeps_d else np.empty((0, *there.d.shape[1:])),
            _mean(there.d_bar, back.d_bar) if self.keeps_d_bar else np.empty((0, *there.d_bar.shape[1:])),
        )

    def pairwise(self, archs: Any) -> Distances:
        among = self.cross(archs, archs)
        for x in (among.d, among.d_bar):
            x[:, range(x.shape[1]), range(x.shape[1])] = 0.0  # exactly, which the solver's may miss by its last digit
        return among


def _mean(there: Floats, back: Floats) -> Floats:
    return np.asarray(0.5 * (there + back.transpose(0, 2, 1)))

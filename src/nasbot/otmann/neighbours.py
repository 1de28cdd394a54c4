"""The exact nearest of many networks, for few exact distances.

Three lower bounds on d settle most networks without solving their transport problem:

    class masses    Σ_c |m_c(a) - m_c(b)| <= d(a, b): within a class what one network has more of stays unassigned
    landmarks       |d(a, l) - d(b, l)| <= d(a, b) for any network l: d is a pseudo-distance (Theorem 1)
    d_bar           both, divided by the sum of the total masses
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbot.errors import OptionError, VocabularyError
from nasbot.otmann.distances import Networks, Otmann
from nasbot.otmann.models import Network
from nasbot.otmann.packing import PackedNetworks, joined

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

N_LANDMARKS = 32
ROUNDING = 1e-9  # of the total masses: what solver and bounds may be off by


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest of each of m networks, nearest first, of equals the one appended first; all (m, k)."""

    numbers: Integers  # counted from 0 in the order of appending
    distances: Floats
    n_exact: int  # exact distances that it took, landmarks' included


class NeighbourIndex:
    """Networks among which the nearest are looked for; it grows by ``append``.

    The distance is d, averaged over the structural weights of ``distance``: give that one weight for d at this weight.
    What it answers depends on the networks and their order alone.

    Args:
        networks: those to begin with.
        distance: rules and structural weights; the paper's unless given.
    """

    def __init__(self, networks: Sequence[Network] = (), *, distance: Otmann | None = None) -> None:
        self.distance = distance or Otmann()
        self._packs: list[PackedNetworks] = []  # each more than twice as large as the next
        self._landmarks: PackedNetworks | None = None
        self._n_at_choice = 0  # networks among which landmarks were chosen last
        self._masses = _Rows()  # (n, classes)
        self._to_landmarks = _Rows()  # (n, landmarks)
        self._totals = _Rows()  # (n, 1)
        self.append(networks)

    def __len__(self) -> int:
        return self._totals.n

    def append(self, networks: Networks) -> None:
        """Add networks behind the others. Landmarks are chosen again whenever the index has doubled."""
        if not len(networks):
            return
        pack = self.distance.pack(networks)
        if self._packs and pack.vocabulary != self._packs[0].vocabulary:
            raise VocabularyError(
                f"the index holds networks of kind {self._packs[0].vocabulary.name}; got some of kind "
                f"{pack.vocabulary.name}: make an index for each kind"
            )
        self._masses.append(pack.class_masses())
        self._totals.append(pack.total_masses[:, None])
        self._packs.append(pack)
        while len(self._packs) > 1 and len(self._packs[-2]) <= 2 * len(self._packs[-1]):
            self._packs[-2:] = [joined(self._packs[-2:])]
        if self._landmarks is None or len(self) >= 2 * self._n_at_choice:
            self._choose_landmarks()
        else:
            self._to_landmarks.append(self._mean_d(pack, self._landmarks))

    def query(self, networks: Networks, k: int, *, normalised: bool = False, first: int | None = None) -> Neighbours:
        """The k nearest of each of these networks, under d or, ``normalised``, under d_bar.

        Args:
            networks: those whose neighbours are looked for.
            k: how many of each.
            normalised: whether by d_bar.
            first: how many of the networks of the index to look among, all unless given.

        Raises:
            OptionError: k is not between 1 and the number of networks to look among.
        """
        n = len(self) if first is None else min(first, len(self))
        from scipy.spatial.distance import cdist

        if not 1 <= k <= n:
            raise OptionError(f"k: expected 1 to {n}, the number of networks to look among, got {k}")
        asked = self.distance.pack(networks) if len(networks) else None
        numbers, distances = np.empty((len(networks), k), np.int64), np.empty((len(networks), k))
        n_exact = 0
        if asked is not None:
            assert self._landmarks is not None
            masses, to_landmarks = asked.class_masses(), self._mean_d(asked, self._landmarks)
            for i in range(len(asked)):
                scale = self._totals.all[:n, 0] + asked.total_masses[i]
                bounds = cdist(masses[[i]], self._masses.all[:n], "cityblock")[0]
                np.maximum(bounds, cdist(to_landmarks[[i]], self._to_landmarks.all[:n], "chebyshev")[0], out=bounds)
                bounds -= ROUNDING * scale
                if normalised:
                    bounds /= np.where(scale > 0.0, scale, 1.0)
                numbers[i], distances[i], n_solved = self._nearest(asked.taken(np.array([i])), k, bounds, normalised)
                n_exact += n_solved + to_landmarks.shape[1]
        return Neighbours(numbers, distances, n_exact)

    def _nearest(self, one: PackedNetworks, k: int, bounds: Floats, normalised: bool) -> tuple[Integers, Floats, int]:
        """Exact distances in ascending order of their bounds, until no bound left is below the k-th nearest."""
        near = np.argpartition(bounds, k - 1)[:k]
        exact = self._exact(one, near, normalised)
        left = np.setdiff1d(np.flatnonzero(bounds <= exact.max()), near)
        left = left[np.argsort(bounds[left], kind="stable")]
        n_exact, step = k, k
        while len(left) and bounds[left[0]] <= exact.max():
            now, left = left[:step], left[step:]
            n_exact, step = n_exact + len(now), 2 * step
            near, exact = np.concatenate([near, now]), np.concatenate([exact, self._exact(one, now, normalised)])
            order = np.lexsort((near, exact))[:k]
            near, exact = near[order], exact[order]
        order = np.lexsort((near, exact))
        return near[order], exact[order], n_exact

    def _exact(self, one: PackedNetworks, numbers: Integers, normalised: bool) -> Floats:
        exact = np.empty(len(numbers))
        begin = 0
        for pack in self._packs:
            here = np.flatnonzero((numbers >= begin) & (numbers < begin + len(pack)))
            if len(here):
                between = self.distance.cross(one, pack.taken(numbers[here] - begin), threads=1)
                exact[here] = (between.d_bar if normalised else between.d).mean(axis=0)[0]
            begin += len(pack)
        return exact

    def _choose_landmarks(self) -> None:
        """The first network, then always the one farthest from all chosen so far."""
        rows = np.empty((len(self), min(N_LANDMARKS, len(self))))
        nearest = np.full(len(self), np.inf)
        chosen, number = [], 0
        for column in range(rows.shape[1]):
            landmark = self._taken(number)
            chosen.append(landmark)
            rows[:, column] = np.concatenate([self._mean_d(pack, landmark)[:, 0] for pack in self._packs])
            np.minimum(nearest, rows[:, column], out=nearest)
            number = int(nearest.argmax())
        self._landmarks, self._n_at_choice = joined(chosen), len(self)
        self._to_landmarks = _Rows()
        self._to_landmarks.append(rows)

    def _taken(self, number: int) -> PackedNetworks:
        for pack in self._packs:
            if number < len(pack):
                return pack.taken(np.array([number]))
            number -= len(pack)
        raise AssertionError("no such network")

    def _mean_d(self, a: PackedNetworks, b: PackedNetworks) -> Floats:
        return np.asarray(self.distance.cross(a, b).d.mean(axis=0))


class _Rows:
    """An array that grows by rows, with room for as many again."""

    def __init__(self) -> None:
        self._room, self.n = np.empty((0, 0)), 0

    @property
    def all(self) -> Floats:
        return self._room[: self.n]

    def append(self, rows: Floats) -> None:
        n = self.n + len(rows)
        if n > len(self._room):
            room = np.empty((2 * n, rows.shape[1]))
            room[: self.n] = self.all if self.n else 0.0
            self._room = room
        self._room[self.n : n] = rows
        self.n = n

"""The exact nearest of many networks, for few exact distances.

Lower bounds on d settle most networks without solving their transport problem; the first two cost nothing, the third
is asked of those that these leave, in ascending order:

    class masses    Σ_c |m_c(a) - m_c(b)| <= d(a, b): within a class what one network has more of stays unassigned
    landmarks       |d(a, l) - d(b, l)| <= d(a, b) for any network l: d is a pseudo-distance (Theorem 1)
    one side        each layer of a to its cheapest of b, or the reverse, as if there were room (``_kernels.bounds``)
    d_bar           all of them, divided by the sum of the total masses

Of 20,000 MLPs grown by mutation the first two leave 7 %, the third 0.8 %, of which 0.3 % are the 64 nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nasbot.errors import OptionError, VocabularyError
from nasbot.otmann.distances import Networks, Otmann, counted
from nasbot.otmann.packing import PackedNetworks, joined

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_Measure: TypeAlias = Callable[[PackedNetworks, PackedNetworks, bool], Floats]

N_FARTHEST = 16  # landmarks, each as far as can be from those before it;
N_SPREAD = 32  # and evenly spread among all: to those most networks are nearer
N_PER_PACK = 8192  # networks packed at once, which takes three times the room of what is kept
MAPPED_FROM = 16384  # networks of a pack that is kept in a temporary file, mapped into memory
STEP = 4  # times k: how many are bounded closely at first; twice as many each time after that
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

    def __init__(self, networks: Networks = (), *, distance: Otmann | None = None) -> None:
        self.distance = distance or Otmann()
        self._packs: list[PackedNetworks] = []  # mapped ones, then each more than twice as large as the next
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
        networks = counted(networks)
        if not len(networks):
            return
        if isinstance(networks, PackedNetworks):
            self._append(self.distance.pack(networks))
        else:
            for first in range(0, len(networks), N_PER_PACK):
                self._append(self.distance.pack(networks[first : first + N_PER_PACK]))
        if self._landmarks is None or len(self) >= 2 * self._n_at_choice:
            self._choose_landmarks()

    def _append(self, pack: PackedNetworks) -> None:
        if self._packs and pack.vocabulary != self._packs[0].vocabulary:
            raise VocabularyError(
                f"the index holds networks of kind {self._packs[0].vocabulary.name}; got some of kind "
                f"{pack.vocabulary.name}: make an index for each kind"
            )
        self._masses.append(pack.class_masses())
        self._totals.append(pack.total_masses[:, None])
        if self._landmarks is not None and len(self) < 2 * self._n_at_choice:
            self._to_landmarks.append(self._mean_d(pack, self._landmarks))
        self._packs.append(pack.slim())
        # Mapped ones stay apart: joining takes several times the room of what is joined.
        while len(self._packs) > 1 and len(self._packs[-2]) <= min(2 * len(self._packs[-1]), MAPPED_FROM - 1):
            self._packs[-2:] = [joined(self._packs[-2:]).slim()]
        if len(self._packs[-1]) >= MAPPED_FROM:
            self._packs[-1] = self._packs[-1].mapped()

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
        networks = counted(networks)
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
                    bounds = _normalised(bounds, scale)
                found = self._nearest(asked.taken(np.array([i])), k, bounds, normalised)
                numbers[i], distances[i] = found.numbers, found.distances
                n_exact += found.n_solved + to_landmarks.shape[1]
        return Neighbours(numbers, distances, n_exact)

    def _nearest(self, one: PackedNetworks, k: int, bounds: Floats, normalised: bool) -> _Nearest:
        """In ascending order of their bounds, until no bound left is below the k-th nearest."""
        found, step = _Nearest(k), min(len(bounds), STEP * k)
        first = np.argpartition(bounds, step - 1)[:step]
        self._look_at(one, first, found, normalised)
        left = np.setdiff1d(np.flatnonzero(bounds <= found.reach), first)
        left = left[np.argsort(bounds[left], kind="stable")]
        while len(left) and bounds[left[0]] <= found.reach:
            self._look_at(one, left[:step], found, normalised)
            left, step = left[step:], 2 * step
        return found

    def _look_at(self, one: PackedNetworks, numbers: Integers, found: _Nearest, normalised: bool) -> None:
        """Solve those of these whose close bound is within reach, the k of the least bounds before the others."""
        bounds = self._of_each(self._close_bounds, one, numbers, normalised)
        order = np.argsort(bounds, kind="stable")
        for some in (order[: found.k], order[found.k :]):
            now = numbers[some[bounds[some] <= found.reach]]
            found.add(now, self._of_each(self._exact, one, now, normalised))

    def _of_each(self, measure: _Measure, one: PackedNetworks, numbers: Integers, normalised: bool) -> Floats:
        """What ``measure`` says of d, or of d_bar, from one network to those with these numbers."""
        values = np.empty(len(numbers))
        begin = 0
        for pack in self._packs:
            here = np.flatnonzero((numbers >= begin) & (numbers < begin + len(pack)))
            if len(here):
                values[here] = measure(one, pack.taken(numbers[here] - begin), normalised)
            begin += len(pack)
        return values

    def _exact(self, one: PackedNetworks, others: PackedNetworks, normalised: bool) -> Floats:
        between = self.distance.cross(one, others, threads=1)
        return np.asarray((between.d_bar if normalised else between.d).mean(axis=0)[0])

    def _close_bounds(self, one: PackedNetworks, others: PackedNetworks, normalised: bool) -> Floats:
        bounds, scale = self.distance.bounds(one, others), one.total_masses + others.total_masses
        return _normalised(bounds - ROUNDING * scale, scale) if normalised else bounds - ROUNDING * scale

    def _choose_landmarks(self) -> None:
        """Some evenly spread among all, then always the network farthest from all chosen so far."""
        n, n_spread = len(self), min(N_SPREAD, len(self))
        chosen = list(np.unique(np.linspace(0, n - 1, n_spread).astype(np.int64)))
        landmarks = joined([self._taken(int(number)) for number in chosen])
        rows = self._to(landmarks)
        nearest = rows.min(axis=1)
        for _ in range(min(N_FARTHEST, n - len(chosen))):
            landmark = self._taken(int(nearest.argmax()))
            landmarks = joined([landmarks, landmark])
            row = self._to(landmark)
            rows = np.column_stack([rows, row])
            np.minimum(nearest, row[:, 0], out=nearest)
        self._landmarks, self._n_at_choice = landmarks, n
        self._to_landmarks = _Rows()
        self._to_landmarks.append(rows)

    def _to(self, landmarks: PackedNetworks) -> Floats:
        """d (n, landmarks) of all networks, some thousands at a time."""
        parts = []
        for pack in self._packs:
            for first in range(0, len(pack), N_PER_PACK):
                some = pack.taken(np.arange(first, min(first + N_PER_PACK, len(pack))))
                parts.append(self._mean_d(some, landmarks))
        return np.concatenate(parts)

    def _taken(self, number: int) -> PackedNetworks:
        for pack in self._packs:
            if number < len(pack):
                return pack.taken(np.array([number]))
            number -= len(pack)
        raise AssertionError("no such network")

    def _mean_d(self, a: PackedNetworks, b: PackedNetworks) -> Floats:
        return np.asarray(self.distance.cross(a, b).d.mean(axis=0))


def _normalised(d: Floats, scale: Floats) -> Floats:
    return d / np.where(scale > 0.0, scale, 1.0)


class _Nearest:
    """The k nearest of those solved so far."""

    def __init__(self, k: int) -> None:
        self.k, self.n_solved = k, 0
        self.numbers, self.distances = np.empty(0, np.int64), np.empty(0)

    @property
    def reach(self) -> float:
        """How near a network must be to belong to them; of equals the first appended is nearer."""
        return float(self.distances[-1]) if len(self.distances) == self.k else np.inf

    def add(self, numbers: Integers, distances: Floats) -> None:
        self.n_solved += len(numbers)
        numbers, distances = np.concatenate([self.numbers, numbers]), np.concatenate([self.distances, distances])
        order = np.lexsort((numbers, distances))[: self.k]
        self.numbers, self.distances = numbers[order], distances[order]


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

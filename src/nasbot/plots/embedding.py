"""The architecture map: every network a point of the plane, near to those that OTMANN calls near.

Metric scaling by majorisation (SMACOF), begun from classical scaling: no random start, so the same networks always
give the same map. Up to ``MAX_FULL`` networks every pair counts. Beyond, landmarks far from each other are placed so,
and each other network by its distances to them: pairs grow with n, not with its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture
from nasbot.otmann import NetworkDistance, Otmann
from nasbot.plots.snapshot import Snapshot, Source, records_of
from nasbot.trial import TrialState

Floats = NDArray[np.float64]

MAX_FULL = 120
N_LANDMARKS = 24
N_ROUNDS = 100
MAP_WEIGHT = 0.4  # the structural weight at which networks are compared, as in ``explain``
TINY = 1e-12


class MapPoint(NamedTuple):
    """One trial on the map."""

    trial: int
    x: float
    y: float
    value: float | None
    state: str
    cause: str


@dataclass(frozen=True)
class ArchitectureMap:
    """Networks on a plane whose distances stand for d_bar. ``path`` are the trials that were the best in turn."""

    direction: str
    points: tuple[MapPoint, ...]  # by trial; cancelled ones are left out
    path: tuple[int, ...]
    stress: float  # Kruskal's stress-1 over the pairs compared: 0 is exact, 0.2 is rough
    n_pairs: int
    message: str = ""


def architecture_map(source: Source) -> ArchitectureMap:
    """The networks of a study on a plane, by the study's own distance: d_bar at structural weight 0.4."""
    snapshot = Snapshot.of(source)
    distance = Otmann(preset=snapshot.distance.rules, structural_weights=(MAP_WEIGHT,))
    shown = [trial for trial in snapshot.history if trial.state is not TrialState.CANCELLED]
    placed = embed([trial.arch for trial in shown], distance=distance)
    path = records_of(snapshot.history)
    points = tuple(
        MapPoint(
            trial.number,
            float(placed.places[i, 0]),
            float(placed.places[i, 1]),
            trial.value,
            str(trial.state),
            str(trial.cause or ""),
        )
        for i, trial in enumerate(shown)
    )
    message = "" if points else "no trials yet"
    return ArchitectureMap(str(snapshot.direction), points, path, placed.stress, placed.n_pairs, message)


class Embedding(NamedTuple):
    """Places (n, 2), centred, with the longest extent along x."""

    places: Floats
    landmarks: tuple[int, ...]
    stress: float
    n_pairs: int


def embed(networks: Sequence[Architecture], *, distance: NetworkDistance | None = None) -> Embedding:
    """Networks on the plane; every one is a landmark where there are few."""
    distance = distance or Otmann(structural_weights=(MAP_WEIGHT,))
    n = len(networks)
    if n == 0:
        return Embedding(np.zeros((0, 2)), (), 0.0, 0)
    packed = distance.pack(networks)
    if n <= MAX_FULL:
        between = distance.pairwise(packed).d_bar.mean(axis=0)
        places = _turned(majorised(between, classical(between)))
        return Embedding(places, tuple(range(n)), _stress(between, _gaps(places, places)), n * (n - 1) // 2)
    landmarks, to_all = _landmarks(networks, packed, distance)
    among = to_all[:, landmarks]
    among = 0.5 * (among + among.T)
    anchors = majorised(among, classical(among))
    places = _triangulated(anchors, to_all)
    places[landmarks] = anchors
    places = _turned(places)
    stress = _stress(to_all, _gaps(places[landmarks], places))
    return Embedding(places, tuple(landmarks), stress, to_all.size)


def _landmarks(networks: Sequence[Architecture], packed: object, distance: NetworkDistance) -> tuple[list[int], Floats]:
    """Each the network farthest from those before it, beginning with the first; with their distances to all."""
    chosen: list[int] = []
    rows: list[Floats] = []
    nearest = np.full(len(networks), np.inf)
    at = 0
    for _ in range(N_LANDMARKS):
        row = distance.cross([networks[at]], packed).d_bar.mean(axis=0)[0]
        row[at] = 0.0
        chosen.append(at)
        rows.append(row)
        nearest = np.minimum(nearest, row)
        at = int(np.argmax(nearest))
    return chosen, np.stack(rows)


def classical(between: Floats) -> Floats:
    """Torgerson's scaling of distances (n, n): the two leading axes (n, 2)."""
    n = len(between)
    squared = between**2
    centred = -0.5 * (squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean())
    values, vectors = np.linalg.eigh(0.5 * (centred + centred.T))
    order = np.argsort(values)[::-1][:2]
    places = np.zeros((n, 2))
    places[:, : len(order)] = vectors[:, order] * np.sqrt(np.maximum(values[order], 0.0))
    return places


def majorised(between: Floats, start: Floats, n_rounds: int = N_ROUNDS) -> Floats:
    """Places of lower stress than ``start``: the Guttman transform, again and again."""
    places = start
    n = len(start)
    for _ in range(n_rounds):
        gaps = _gaps(places, places)
        ratio = np.divide(between, gaps, out=np.zeros_like(gaps), where=gaps > TINY)
        places = (ratio.sum(axis=1)[:, None] * places - ratio @ places) / n
    return places


def _triangulated(anchors: Floats, to_all: Floats) -> Floats:
    """Each network where its distances to the anchors fit best, (n, 2) from anchors (k, 2) and distances (k, n)."""
    squared = to_all**2
    centred = anchors - anchors.mean(axis=0)
    inverse = np.linalg.pinv(centred)
    # The start of landmark scaling: linear in the squared distances, exact where the distances are.
    among = _gaps(anchors, anchors) ** 2
    places: Floats = (-0.5 * inverse @ (squared - among.mean(axis=1)[:, None])).T + anchors.mean(axis=0)
    for _ in range(N_ROUNDS):
        gaps = _gaps(anchors, places)  # (k, n)
        ratio = np.divide(to_all, gaps, out=np.zeros_like(gaps), where=gaps > TINY)
        places = anchors.mean(axis=0) + (ratio.sum(axis=0)[:, None] * places - ratio.T @ anchors) / len(anchors)
    return places


def _gaps(a: Floats, b: Floats) -> Floats:
    difference = a[:, None, :] - b[None, :, :]
    gaps: Floats = np.sqrt((difference**2).sum(axis=2))
    return gaps


def _stress(between: Floats, gaps: Floats) -> float:
    total = float((between**2).sum())
    return float(np.sqrt(((between - gaps) ** 2).sum() / total)) if total > 0 else 0.0


def _turned(places: Floats) -> Floats:
    """Centred, the longest extent along x, and of the two mirror images always the same one."""
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned: Floats = centred @ axes.T if axes.shape == (2, 2) else centred
    for axis in range(2):
        farthest = turned[int(np.argmax(np.abs(turned[:, axis]))), axis]
        if farthest < 0:
            turned[:, axis] *= -1.0
    return turned + 0.0

"""What became of one network in another: layers kept, changed, added and removed, and the edges between them.

The transport plan says which layers do each other's work, but splits them and knows no edges. From it, labels and
neighbours one-to-one matches are made: one that keeps the order of layers, and one that is free, made again while
matches whose neighbours match too are favoured. The one with the fewest edits is kept, and improved by exchanges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture
from nasbot.otmann.matching import Matching, explain
from nasbot.otmann.presets import RuleSet

Floats = NDArray[np.float64]
Edge = tuple[int, int]

N_ROUNDS = 8
# What makes two layers worth matching: equal in all, equal labels, labels that OTMANN matches at a price; then the part
# of their masses that the plan matches, being at the same place, and in later rounds each neighbour matched alike.
SAME, SAME_LABEL, OTHER_LABEL = 1.0, 0.6, 0.3
# Layers whose labels OTMANN never matches (a convolution that became a pool) are one layer changed only where that
# keeps edges: by itself such a match is dearer than a layer removed and one added.
UNRELATED = 3
MATCHED_MASS, SAME_PLACE, NEIGHBOUR = 0.5, 0.4, 0.35


class Change(StrEnum):
    """What became of a layer or an edge."""

    KEPT = "kept"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


class LayerChange(NamedTuple):
    """Layer ``u`` of the first network is layer ``v`` of the second; None where it is only in the other."""

    change: Change
    u: int | None
    v: int | None
    words: str  # "conv3 64 -> conv5 64"


class EdgeChange(NamedTuple):
    """An edge, by the layers of the first and of the second network; an edge is kept, added or removed."""

    change: Change
    first: Edge | None
    second: Edge | None


@dataclass(frozen=True)
class NetworkDiff:
    """From the first network to the second; layers in the order of the second, removed ones where they stood."""

    first: Architecture
    second: Architecture
    layers: tuple[LayerChange, ...]
    edges: tuple[EdgeChange, ...]
    d: float  # OTMANN at structural weight 0.4
    d_bar: float

    @property
    def n_edits(self) -> int:
        """Layers and edges that are not kept."""
        changes = [*(entry.change for entry in self.layers), *(entry.change for entry in self.edges)]
        return sum(change is not Change.KEPT for change in changes)

    def match(self) -> dict[int, int]:
        """Layers of the first network to layers of the second."""
        return {entry.u: entry.v for entry in self.layers if entry.u is not None and entry.v is not None}

    def __str__(self) -> str:
        counts = Counter(entry.change for entry in self.layers if entry.change is not Change.KEPT)
        edges = Counter(entry.change for entry in self.edges if entry.change is not Change.KEPT)
        lines = [f"{entry.change:<8} {entry.words}" for entry in self.layers if entry.change is not Change.KEPT]
        parts = [f"{n} layers {change}" for change, n in counts.items()]
        parts += [f"{n} edges {change}" for change, n in edges.items()]
        return "\n".join([*lines, f"{', '.join(parts) or 'no difference'}; d = {self.d:.6g}, d_bar = {self.d_bar:.4f}"])


def network_diff(first: Architecture, second: Architecture, *, preset: str | RuleSet = "paper") -> NetworkDiff:
    """What became of ``first`` in ``second``; VocabularyError unless they share a vocabulary."""
    matching = explain(first, second, preset=preset)
    likeness = _likeness(matching)
    worth = likeness + _togetherness(matching)
    starts = [_aligned(likeness), *_assignments(matching, worth)]
    chosen = _improved(matching, min(starts, key=lambda match: _price(matching, match)), worth)
    return NetworkDiff(
        first,
        second,
        tuple(_layer_changes(first, second, chosen)),
        tuple(_edge_changes(first, second, chosen)),
        matching.distance,
        matching.normalised_distance,
    )


# -- the match ---------------------------------------------------------------------------------------------------------


def _likeness(matching: Matching) -> Floats:
    """How alike each layer of the first and each of the second are; -inf where they have different roles (n1, n2)."""
    a, b = matching.first, matching.second
    equal = np.array([[x == y for y in b.layers] for x in a.layers])
    same_label = np.array([[x.label == y.label for y in b.layers] for x in a.layers])
    other = OTHER_LABEL * (1.0 - np.minimum(matching.label_cost, 1.0))
    alike = np.where(equal, SAME, np.where(same_label, SAME_LABEL, other))
    roles = np.array([[a.role(u) is b.role(v) for v in range(len(b.layers))] for u in range(len(a.layers))])
    return np.where(roles, alike, -np.inf)


def _togetherness(matching: Matching) -> Floats:
    """What speaks for each two layers beside themselves: mass matched between them, and being at one place (n1, n2)."""
    smaller = np.minimum(matching.masses_1[:, None], matching.masses_2[None, :])
    share = np.divide(matching.matched_mass, smaller, out=np.zeros_like(smaller), where=smaller > 0)
    together: Floats = MATCHED_MASS * np.minimum(share, 1.0) + SAME_PLACE * np.exp(-matching.structural_cost)
    return together


def _assignments(matching: Matching, worth: Floats) -> Iterator[dict[int, int]]:
    """The match of greatest worth, then again with what it says of neighbours, until it settles."""
    bonus = np.zeros_like(worth)
    seen: list[dict[int, int]] = []
    for _ in range(N_ROUNDS):
        match = _assigned(worth, bonus)
        if match in seen:
            return
        seen.append(match)
        yield match
        bonus = NEIGHBOUR * _neighbours_matched(matching.first, matching.second, match)


def _aligned(likeness: Floats) -> dict[int, int]:
    """The most alike of those that keep the order of layers: what a layer wedged into a chain needs."""
    n_1, n_2 = likeness.shape
    total = np.zeros((n_1 + 1, n_2 + 1))
    for u in range(n_1):
        for v in range(n_2):
            total[u + 1, v + 1] = max(total[u, v] + likeness[u, v], total[u, v + 1], total[u + 1, v])
    match: dict[int, int] = {}
    u, v = n_1, n_2
    while u and v:
        if total[u, v] == total[u - 1, v]:
            u -= 1
        elif total[u, v] == total[u, v - 1]:
            v -= 1
        else:
            u, v = u - 1, v - 1
            match[u] = v
    return match


def _assigned(worth: Floats, bonus: Floats) -> dict[int, int]:
    """The one-to-one match of greatest worth; layers that must not be matched stay alone."""
    from scipy.optimize import linear_sum_assignment

    forbidden = ~np.isfinite(worth)
    rows, columns = linear_sum_assignment(np.where(forbidden, -1e3, worth + bonus), maximize=True)
    return {int(u): int(v) for u, v in zip(rows, columns, strict=True) if not forbidden[u, v]}


def _neighbours_matched(a: Architecture, b: Architecture, match: dict[int, int]) -> Floats:
    """For each two layers how many parents and children they have in common under the match (n1, n2)."""
    image = np.zeros((len(a.layers), len(b.layers)))
    for u, v in match.items():
        image[u, v] = 1.0
    edges_a, edges_b = _adjacency(a), _adjacency(b)
    common: Floats = edges_a @ image @ edges_b.T + edges_a.T @ image @ edges_b
    return common


def _adjacency(arch: Architecture) -> Floats:
    matrix = np.zeros((len(arch.layers), len(arch.layers)))
    for u, v in arch.edges:
        matrix[u, v] = 1.0
    return matrix


def _price(matching: Matching, match: dict[int, int]) -> int:
    """The number of edits, but for changes of layers into unrelated ones."""
    a, b = matching.first, matching.second
    changed = sum(
        (1 if np.isfinite(matching.label_cost[u, v]) else UNRELATED)
        for u, v in match.items()
        if a.layers[u] != b.layers[v]
    )
    alone = len(a.layers) + len(b.layers) - 2 * len(match)
    kept = sum((match.get(u, -1), match.get(v, -1)) in b.edges for u, v in a.edges)
    return changed + alone + len(a.edges) + len(b.edges) - 2 * kept


def _improved(matching: Matching, match: dict[int, int], worth: Floats) -> dict[int, int]:
    """Exchange and move single matches as long as that makes it cheaper."""
    best, fewest = dict(match), _price(matching, match)
    for _ in range(N_ROUNDS):
        start = fewest
        for candidate in list(_variations(best, worth)):
            n = _price(matching, candidate)
            if n < fewest:
                best, fewest = candidate, n
        if fewest == start:
            break
    return best


def _variations(match: dict[int, int], worth: Floats) -> Iterator[dict[int, int]]:
    """Matches that differ in where one layer goes, or two exchanged; and without one match that changes a label."""
    back = {v: u for u, v in match.items()}
    for u in range(worth.shape[0]):
        if u in match and worth[u, match[u]] < SAME_LABEL:
            yield {key: value for key, value in match.items() if key != u}
        for v in range(worth.shape[1]):
            if not np.isfinite(worth[u, v]) or match.get(u) == v:
                continue
            changed = dict(match)
            other = back.get(v)
            if other is not None:
                del changed[other]
                if u in match and np.isfinite(worth[other, match[u]]):
                    changed[other] = match[u]
            changed[u] = v
            yield changed


# -- what it says ------------------------------------------------------------------------------------------------------


def _layer_changes(a: Architecture, b: Architecture, match: dict[int, int]) -> Iterator[LayerChange]:
    back = {v: u for u, v in match.items()}
    removed = [u for u in range(len(a.layers)) if u not in match]
    for v, layer in enumerate(b.layers):
        u = back.get(v)
        if u is None:
            yield LayerChange(Change.ADDED, None, v, str(layer))
            continue
        while removed and removed[0] < u:
            yield LayerChange(Change.REMOVED, removed[0], None, str(a.layers[removed.pop(0)]))
        before = a.layers[u]
        if before == layer:
            yield LayerChange(Change.KEPT, u, v, str(layer))
        else:
            yield LayerChange(Change.CHANGED, u, v, f"{before} -> {layer}")
    for u in removed:
        yield LayerChange(Change.REMOVED, u, None, str(a.layers[u]))


def _edge_changes(a: Architecture, b: Architecture, match: dict[int, int]) -> Iterator[EdgeChange]:
    kept = {}
    for edge in sorted(a.edges):
        image = match.get(edge[0], -1), match.get(edge[1], -1)
        if image in b.edges:
            kept[image] = edge
        else:
            yield EdgeChange(Change.REMOVED, edge, None)
    for edge in sorted(b.edges):
        if edge in kept:
            yield EdgeChange(Change.KEPT, kept[edge], edge)
        else:
            yield EdgeChange(Change.ADDED, None, edge)

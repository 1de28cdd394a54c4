"""A numbering of the layers that does not depend on the one given, so that isomorphic networks are recognised.

Colour refinement splits the layers by label, units, stride, attributes, depth and, repeatedly, by the colours of their
parents and children. Where layers still share a colour one of them is set apart and refinement goes on; every choice is
tried and the smallest encoding wins. Choices that a symmetry already found maps onto one that was tried are left out,
so networks with many equal branches cost a few refinements a branch and not their factorial.

Work is bounded: a network of hundreds of layers built to defeat this gets a numbering that depends on the given one,
and may then be taken for different from a renumbered copy of itself; it is never taken for equal to another network.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nasbot.architecture.graph import Architecture

Colouring = tuple[int, ...]  # one colour per layer; colours are dense ranks, so equal cells have equal numbers
Encoding = tuple[tuple[int, int], ...]

# Layers looked at in all refinements together, about half a second's work. Random 60-layer networks need 200 to 2,000,
# 29 equal branches of two layers 51,000.
MAX_WORK = 200_000


def canonical_form(arch: Architecture) -> Architecture:
    """The same network, numbered canonically."""
    place = canonical_places(arch)
    order = sorted(range(len(place)), key=place.__getitem__)
    edges = ((place[u], place[v]) for u, v in arch.edges)
    return type(arch)(arch.vocabulary, (arch.layers[u] for u in order), edges)


def fingerprint(arch: Architecture) -> str:
    """SHA-256 over kind, canonically ordered layers and edges."""
    place = canonical_places(arch)
    order = sorted(range(len(place)), key=place.__getitem__)
    layers = [
        [x.label, x.units, x.stride, *([] if x.attributes is None else [x.attributes])]
        for x in (arch.layers[u] for u in order)
    ]
    edges = sorted((place[u], place[v]) for u, v in arch.edges)
    content = json.dumps([arch.kind, layers, edges], separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def numbering_free_hash(arch: Architecture) -> int:
    """Equal for networks that are the same up to numbering, and nearly always different for others.

    Each layer is hashed with everything before it, then with everything behind it. A quarter of the cost of a
    fingerprint, which sets and dicts of networks therefore need only where two of these are equal.
    """
    index, parents, children = arch.vocabulary.index, arch.parents, arch.children
    before: list[int] = []
    for layer, fed_by in zip(arch.layers, parents, strict=True):
        what: tuple[object, ...] = (index[layer.label], layer.units or 0, layer.stride or 0)
        if layer.attributes is not None:
            what = (*what, layer.attributes)
        before.append(hash((what, before[fed_by[0]] if len(fed_by) == 1 else (*sorted([before[p] for p in fed_by]),))))
    both = before.copy()
    for u in range(len(both) - 2, -1, -1):
        feeds = children[u]
        both[u] = hash((before[u], both[feeds[0]] if len(feeds) == 1 else (*sorted([both[c] for c in feeds]),)))
    return hash((*sorted(both),))


def canonical_places(arch: Architecture) -> Colouring:
    """For each layer its place in the canonical order, which is topological."""
    search = _Search(arch)
    search.explore(search.refined(_initial_colours(arch)), ())
    assert search.best is not None  # a search visits at least one leaf
    return search.best


class _Search:
    """Individualisation and refinement over one network; ``best`` is the discrete colouring of smallest encoding."""

    def __init__(self, arch: Architecture) -> None:
        self.arch = arch
        self.best: Colouring | None = None
        self.best_encoding: Encoding = ()
        self.best_chosen: tuple[int, ...] = ()
        self.symmetries: list[tuple[int, ...]] = []
        self.work = 0

    def explore(self, colours: Colouring, chosen: tuple[int, ...]) -> int:
        """Visit the leaves below this colouring; returns how many choices the caller may keep.

        A leaf with the encoding of the best one is its mirror image, and so is the whole branch in which it lies, from
        the choice where the two parted: that branch is left at once.
        """
        cell = _first_shared_cell(colours)
        if not cell:
            return self._visit(colours, chosen)
        if self.work > MAX_WORK:
            return self._visit(_ranks([(colour, u) for u, colour in enumerate(colours)]), chosen)
        tried: list[int] = []
        for u in cell:
            if not self._is_image_of(u, tried, chosen):
                tried.append(u)
                keep = self.explore(self.refined(_set_apart(colours, u)), (*chosen, u))
                if keep < len(chosen) or self.work > MAX_WORK:
                    return keep
        return len(chosen)

    def refined(self, colours: Colouring) -> Colouring:
        """The coarsest finer colouring in which equal colours have equally coloured parents and children."""
        parents, children = self.arch.parents, self.arch.children
        n_colours = len(set(colours))
        while n_colours < len(colours):
            self.work += len(colours)
            keys = [
                (colour, sorted([colours[p] for p in parents[u]]), sorted([colours[c] for c in children[u]]))
                for u, colour in enumerate(colours)
            ]
            colours = _ranks(keys)
            before, n_colours = n_colours, len(set(colours))
            if before == n_colours:
                break
        return colours

    def _visit(self, places: Colouring, chosen: tuple[int, ...]) -> int:
        encoding = tuple(sorted((places[u], places[v]) for u, v in self.arch.edges))
        if self.best is None or encoding < self.best_encoding:
            self.best, self.best_encoding, self.best_chosen = places, encoding, chosen
        elif encoding == self.best_encoding:
            at_place = {place: u for u, place in enumerate(self.best)}
            self.symmetries.append(tuple(at_place[place] for place in places))
            return next(i for i, (x, y) in enumerate(zip(chosen, self.best_chosen, strict=False)) if x != y)
        return len(chosen)

    def _is_image_of(self, u: int, tried: list[int], chosen: tuple[int, ...]) -> bool:
        """Whether u and a layer already tried here are twins, or symmetries that keep ``chosen`` in place swap them."""
        if not tried:
            return False
        parents, children = self.arch.parents, self.arch.children
        if any(parents[u] == parents[t] and children[u] == children[t] for t in tried):
            return True
        fixing = [s for s in self.symmetries if all(s[c] == c for c in chosen)]
        orbit, frontier = {u}, [u]
        while frontier:
            x = frontier.pop()
            for y in (s[x] for s in fixing):
                if y not in orbit:
                    orbit.add(y)
                    frontier.append(y)
        return not orbit.isdisjoint(tried)


def _initial_colours(arch: Architecture) -> Colouring:
    """By depth first, so that every later order is topological; then by what the layer is."""
    depth = [0] * len(arch.layers)
    for u in range(1, len(arch.layers)):
        depth[u] = 1 + max(depth[p] for p in arch.parents[u])
    index = arch.vocabulary.index
    return _ranks(
        [
            (depth[u], index[x.label], x.units or 0, x.stride or 0, () if x.attributes is None else x.attributes.key)
            for u, x in enumerate(arch.layers)
        ]
    )


def _ranks(keys: Sequence[object]) -> Colouring:
    """Colour = the number of layers with a smaller key, so that a discrete colouring is a numbering."""
    order = sorted(range(len(keys)), key=keys.__getitem__)  # type: ignore[arg-type]
    ranks = [0] * len(keys)
    for place, u in enumerate(order):
        same = place > 0 and keys[u] == keys[order[place - 1]]
        ranks[u] = ranks[order[place - 1]] if same else place
    return tuple(ranks)


def _first_shared_cell(colours: Colouring) -> list[int]:
    """The layers of the lowest colour that more than one layer has; empty where all differ."""
    seen: dict[int, list[int]] = {}
    for u, colour in enumerate(colours):
        seen.setdefault(colour, []).append(u)
    shared = [colour for colour, cell in seen.items() if len(cell) > 1]
    return seen[min(shared)] if shared else []


def _set_apart(colours: Colouring, u: int) -> Colouring:
    """u first in its cell, the others behind it."""
    return tuple(colour + (colour == colours[u] and v != u) for v, colour in enumerate(colours))

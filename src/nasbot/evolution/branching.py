"""How the search draws branches of CNNs: from the input on, much as the authors' release does.

What a modification does is the same as in ``structure.py``; where it is done differs, and how far it goes:

release_dup_path      begins near the input, walks further, and duplicates about half of the layers it came by
release_skip          begins near the input, and ends further from it and nearer to the output, never at a softmax

The release's other preferences, for comparisons with it, are in ``benchmarks/release_modifiers.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from nasbot.architecture import Architecture, Edge, Role
from nasbot.evolution.modifier import NO_SITE, Modifier, Rejected, pick
from nasbot.evolution.structure import Path, dup_path, inner_children, n_pools_between, skip
from nasbot.evolution.wiring import is_free, label_of, shrinking

LEAST_WALK = 4  # layers of a path before it may stop
STOP = 0.2
COPIED = 0.5  # how likely a layer on the path is duplicated, where it may be left out


# -- where to begin ----------------------------------------------------------------------------------------------------


def _hops(arch: Architecture) -> list[int]:
    """The fewest edges from the input to each layer."""
    hops = [0] * len(arch.layers)
    for v in range(1, len(hops)):
        hops[v] = 1 + min(hops[u] for u in arch.parents[v])
    return hops


def _hops_to_output(arch: Architecture) -> list[int]:
    hops = [0] * len(arch.layers)
    for u in reversed(range(len(hops) - 1)):
        hops[u] = 1 + min(hops[v] for v in arch.children[u])
    return hops


def _near_the_input(layers: Sequence[int], hops: Sequence[int], rng: np.random.Generator) -> int:
    """One of the layers, with weight 1 / sqrt(1 + hops from the input)."""
    until = np.cumsum([1.0 / sqrt(1.0 + hops[u]) for u in layers])
    return layers[min(int(np.searchsorted(until, rng.random() * until[-1], side="right")), len(layers) - 1)]


def is_dense(arch: Architecture, u: int) -> bool:
    """Whether this is a fully connected layer of a network of images: behind it there is nothing to branch for."""
    label = label_of(arch, u)
    return label.role is Role.PROCESSING and label.takes_units and not label.strides and arch.vocabulary.shrinks_images


# -- dup_path ----------------------------------------------------------------------------------------------------------


def _walk(arch: Architecture, rng: np.random.Generator) -> Path | Rejected:
    last = len(arch.layers) - 1
    starts = [u for u in range(last) if inner_children(arch, u) and not is_dense(arch, u)]
    if not starts:
        return Rejected("release_dup_path", NO_SITE, "no path begins before the decision layers")
    path = [_near_the_input(starts, _hops(arch), rng)]
    path.append(pick(inner_children(arch, path[0]), rng))
    path.append(pick(arch.children[path[1]], rng))
    while path[-1] != last and (len(path) < LEAST_WALK or rng.random() >= STOP):
        path.append(pick(arch.children[path[-1]], rng))
    first, *inner, end = path
    kept: list[int] = []
    for u in inner:
        is_first_dense = is_dense(arch, u) and not any(is_dense(arch, v) for v in kept)
        if _must_be_copied(arch, u) or is_first_dense or first == 0 == len(kept) or rng.random() < COPIED:
            kept.append(u)
    return (first, *(kept or inner[-1:]), end)


def _must_be_copied(arch: Architecture, u: int) -> bool:
    """What shrinks the image or decides: without it the copy would not fit where the path ends."""
    label = label_of(arch, u)
    return label.role is Role.DECISION or shrinking(arch.layers[u], label) > 1


# -- skip --------------------------------------------------------------------------------------------------------------


def _far_skip(arch: Architecture, rng: np.random.Generator) -> Edge | Rejected:
    last = len(arch.layers) - 1
    starts = [u for u in range(1, last) if label_of(arch, u).role is Role.PROCESSING and not is_dense(arch, u)]
    if not starts:
        return Rejected("release_skip", NO_SITE, "there is no layer to begin at")
    hops, to_output = _hops(arch), _hops_to_output(arch)
    u = _near_the_input(starts, hops, rng)
    ends = [
        v
        for v in range(u + 1, last)
        if hops[v] > hops[u] + 1
        and to_output[v] < to_output[u] - 1
        and arch.layers[v].label != "softmax"
        and not (is_dense(arch, v) and any(is_dense(arch, w) for w in arch.parents[v]))
        and is_free(arch, u, v)
        and isinstance(n_pools_between(arch, u, v), int)
    ]
    if not ends:
        return Rejected("release_skip", NO_SITE, f"nothing further on can follow layer {u}")
    return u, pick(ends, rng)


release_dup_path: Modifier[Path] = replace(dup_path, name="release_dup_path", draw=_walk)
release_skip: Modifier[Edge] = replace(skip, name="release_skip", draw=_far_skip)

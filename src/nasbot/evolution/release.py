"""The modifiers much as the authors' release draws them: where the paper says "at random", it has preferences.

What a modification does is the same (``structure.py``, ``units.py``); where it is done differs, and how far it goes:

release_dup_path      begins near the input, walks further, and duplicates about half of the layers it came by
release_skip          begins near the input, and ends further from it and nearer to the output, never at a softmax
release_inc_en_masse  changes a half, a quarter or an eighth of the layers, not an eighth only; and ..._dec_en_masse
release_swap_label    convolutions seldom to a pool, a pool to the other kind of pool, fully connected layers of CNNs
                      never; in MLPs only to the other family of activations
release_wedge_layer   seldom a pool; behind fully connected layers of CNNs only such layers, and nowhere else

``RELEASE_MODIFIERS`` are all of them with the release's weights (a name that stands twice is picked twice as often).
They are for comparisons with the authors' code: ``NASBOT(space=space, modifiers=RELEASE_MODIFIERS,
distance=Otmann())``. Not as there: ``remove_layer`` (docs/deviations.md); which convolution takes the place of another
(there some are likelier than others, and some never taken); and ``sites``, which list what could be done as the
paper has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import sqrt

import numpy as np

from nasbot.architecture import Architecture, Edge, Label, Role
from nasbot.evolution.modifier import NO_SITE, Modifier, Rejected, pick
from nasbot.evolution.structure import (
    NewLabel,
    Path,
    Wedge,
    dup_path,
    inner_children,
    n_pools_between,
    new_layer,
    other_labels,
    random_stride,
    relabelled,
    skip,
    swap_label,
    swappable,
    wedge_labels,
    wedge_layer,
    wedgeable,
)
from nasbot.evolution.units import Run, changeable, dec_en_masse, decreased, inc_en_masse, increased
from nasbot.evolution.wiring import is_free, label_of, shrinking

LEAST_WALK = 4  # layers of a path before it may stop
STOP = 0.2
COPIED = 0.5  # how likely a layer on the path is duplicated, where it may be left out
SWAPPED_POOL = 0.1  # how likely a convolution becomes a layer without units
WEDGED_POOL = 0.05  # and a new layer is one


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


def _is_dense(arch: Architecture, u: int) -> bool:
    """Whether this is a fully connected layer of a network of images: behind it there is nothing to branch for."""
    label = label_of(arch, u)
    return label.role is Role.PROCESSING and label.takes_units and not label.strides and arch.vocabulary.shrinks_images


# -- dup_path ----------------------------------------------------------------------------------------------------------


def _walk(arch: Architecture, rng: np.random.Generator) -> Path | Rejected:
    last = len(arch.layers) - 1
    starts = [u for u in range(last) if inner_children(arch, u) and not _is_dense(arch, u)]
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
        is_first_dense = _is_dense(arch, u) and not any(_is_dense(arch, v) for v in kept)
        if _must_be_copied(arch, u) or is_first_dense or first == 0 == len(kept) or rng.random() < COPIED:
            kept.append(u)
    return (first, *(kept or inner[-1:]), end)


def _must_be_copied(arch: Architecture, u: int) -> bool:
    """What shrinks the image or decides: without it the copy would not fit where the path ends."""
    label = label_of(arch, u)
    return label.role is Role.DECISION or shrinking(arch.layers[u], label) > 1


# -- skip --------------------------------------------------------------------------------------------------------------


def _leap(arch: Architecture, rng: np.random.Generator) -> Edge | Rejected:
    last = len(arch.layers) - 1
    starts = [u for u in range(1, last) if label_of(arch, u).role is Role.PROCESSING and not _is_dense(arch, u)]
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
        and not (_is_dense(arch, v) and any(_is_dense(arch, w) for w in arch.parents[v]))
        and is_free(arch, u, v)
        and isinstance(n_pools_between(arch, u, v), int)
    ]
    if not ends:
        return Rejected("release_skip", NO_SITE, f"nothing further on can follow layer {u}")
    return u, pick(ends, rng)


# -- units -------------------------------------------------------------------------------------------------------------


def _run(arch: Architecture, layers: Sequence[int], name: str, rng: np.random.Generator) -> Run | Rejected:
    """Halves in networks of four or more inner layers, quarters from eight on, eighths from sixteen on."""
    parts = [n for n in (2, 4, 8) if len(arch.layers) - 2 >= 2 * n]
    cuts = [np.linspace(0, len(layers), n + 1).astype(int).tolist() for n in parts]
    runs = [tuple(layers[a:b]) for ends in cuts for a, b in pairwise(ends) if a < b]
    return pick(runs, rng) if runs else Rejected(name, NO_SITE, "too few layers with units")


def _increased_run(arch: Architecture, rng: np.random.Generator) -> Run | Rejected:
    return _run(arch, changeable(arch, increased), "release_inc_en_masse", rng)


def _decreased_run(arch: Architecture, rng: np.random.Generator) -> Run | Rejected:
    return _run(arch, changeable(arch, decreased), "release_dec_en_masse", rng)


# -- labels ------------------------------------------------------------------------------------------------------------


def _seldom_a_pool(labels: Sequence[Label], probability: float, rng: np.random.Generator) -> Label:
    """One of the labels; one without units with this probability, where there is a choice."""
    pools = [label for label in labels if not label.takes_units]
    others = [label for label in labels if label.takes_units]
    if pools and (not others or rng.random() < probability):
        return pick(pools, rng)
    return pick(others, rng)


def _swap(arch: Architecture, rng: np.random.Generator) -> NewLabel | Rejected:
    layers = [u for u in swappable(arch) if label_of(arch, u).role is Role.PROCESSING and not _is_dense(arch, u)]
    if not layers:
        return Rejected("release_swap_label", NO_SITE, "no layer could have another label")
    u = pick(layers, rng)
    now = label_of(arch, u)
    labels = other_labels(arch, u)
    if not now.takes_units:
        labels = [label for label in labels if not label.takes_units]
    elif arch.vocabulary.shrinks_images:
        labels = [label for label in labels if label.strides or not label.takes_units]
    else:
        labels = [label for label in labels if label.family != now.family]
    if not labels:
        return Rejected("release_swap_label", "no other label fits", f"layer {u} {arch.layers[u]}")
    label = _seldom_a_pool(labels, SWAPPED_POOL, rng)
    return u, relabelled(arch, u, label, other_stride=random_stride(label, rng))


def _wedge(arch: Architecture, rng: np.random.Generator) -> Wedge | Rejected:
    edge = pick(wedgeable(arch), rng)
    labels: Sequence[Label] = wedge_labels(arch, *edge)
    if arch.vocabulary.shrinks_images:
        behind_dense = _is_dense(arch, edge[0])
        labels = [label for label in labels if (label.takes_units and not label.strides) == behind_dense]
    if not labels:
        return Rejected("release_wedge_layer", "no label fits", f"no label fits between {edge[0]} and {edge[1]}")
    label = _seldom_a_pool(labels, WEDGED_POOL, rng)
    return edge, new_layer(arch, edge, label, other_stride=random_stride(label, rng))


release_dup_path: Modifier[Path] = replace(dup_path, name="release_dup_path", draw=_walk)
release_skip: Modifier[Edge] = replace(skip, name="release_skip", draw=_leap)
release_inc_en_masse: Modifier[Run] = replace(inc_en_masse, name="release_inc_en_masse", draw=_increased_run)
release_dec_en_masse: Modifier[Run] = replace(dec_en_masse, name="release_dec_en_masse", draw=_decreased_run)
release_swap_label: Modifier[NewLabel] = replace(swap_label, name="release_swap_label", draw=_swap)
release_wedge_layer: Modifier[Wedge] = replace(wedge_layer, name="release_wedge_layer", draw=_wedge)

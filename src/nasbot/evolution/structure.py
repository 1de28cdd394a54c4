"""The five modifiers that change the structure (the lower half of the appendix's table).

dup_path      a random path u1, ..., uk: u2, ..., u(k-1) are duplicated, and connected to u1 and uk
remove_layer  a layer is removed; parents left without children and children left without parents are reconnected
skip          an edge (u, v) is added, u before v in the topological order; through pools where the image must shrink
swap_label    a layer gets another label
wedge_layer   an edge (u, v) becomes (u, w), (w, v) with a new layer w

Images (App. B.2, "Considerations"): a modification after which images of different sizes would meet is rejected.
Choices that the label tables already rule out are not drawn. Of strides the table says nothing; they are as below.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise, product

import numpy as np

from nasbot.architecture import Architecture, Edge, Label, Layer, Role, Signal
from nasbot.architecture.attributes import kept_by
from nasbot.evolution.modifier import NO_SITE, Draft, Modifier, Rejected, below, pick
from nasbot.evolution.wiring import (
    accepts,
    is_free,
    label_of,
    labels_between,
    put_in,
    shrinking,
    skip_layer,
    strides,
    take_out,
    units_between,
)

# How likely a new or swapped layer has not its first choice of stride; as in the authors' release.
OTHER_STRIDE = 0.05
# "Until you decide to stop randomly": 3 layers are duplicated on average, as in the authors' release, which follows
# longer paths (stopping with 0.2 from four layers on) and duplicates each layer of them with 0.5.
STOP = 1 / 3
# Paths that ``dup_path.sites`` lists, the shortest first: a network of 60 layers with branches has millions.
MAX_PATHS = 200
MAX_WIRINGS = 16  # ways to reconnect that ``remove_layer.sites`` lists for one layer
SKIP_DRAWS = 30  # pairs looked at before all of them are gone through

Path = tuple[int, ...]
Removal = tuple[int, tuple[Edge, ...]]  # the layer, and the edges put in its stead
NewLabel = tuple[int, Layer]  # the layer, and what it becomes
Wedge = tuple[Edge, Layer]


# -- dup_path ----------------------------------------------------------------------------------------------------------


def inner_children(arch: Architecture, u: int) -> list[int]:
    """The children of u that a path can go through."""
    last = len(arch.layers) - 1
    return [v for v in arch.children[u] if v != last]


def _paths(arch: Architecture) -> Iterator[Path]:
    """Paths of three layers, then of four, and so on: the first MAX_PATHS of them."""
    longest: list[Path] = [(u, v) for u in range(len(arch.layers)) for v in inner_children(arch, u)]
    n_paths = 0
    while longest and n_paths < MAX_PATHS:
        longer = islice(((*path, v) for path in longest for v in arch.children[path[-1]]), MAX_PATHS - n_paths)
        longest = list(longer)
        yield from longest
        n_paths += len(longest)


def _random_path(arch: Architecture, rng: np.random.Generator) -> Path:
    """u1 uniformly, and from there to random children, never ending before there is a layer to duplicate.

    (The release prefers u1 near the input, with 1 / sqrt(1 + its distance from there).)
    """
    last = len(arch.layers) - 1
    starts = [u for u in range(last) if arch.children[u][0] != last]
    path = [pick(starts, rng)]
    path.append(pick(inner_children(arch, path[0]), rng))
    path.append(pick(arch.children[path[1]], rng))
    while path[-1] != last and rng.random() >= STOP:
        path.append(pick(arch.children[path[-1]], rng))
    return tuple(path)


def _duplicated(arch: Architecture, path: Path) -> Draft:
    first, *inner, end = path
    layers, edges = put_in(arch, end, (arch.layers[u] for u in inner))
    # The duplicates are numbered end, end + 1, ...; u1 comes before them, uk now right behind them.
    chain = [first, *range(end, end + len(inner) + 1)]
    edges += pairwise(chain)
    return Draft(f"path {' -> '.join(map(str, path))} duplicated", layers, edges)


dup_path = Modifier("dup_path", _paths, _random_path, _duplicated)


# -- remove_layer ------------------------------------------------------------------------------------------------------


def _removable(arch: Architecture) -> list[int]:
    """All but the ends and a sole decision layer. One of several decision layers may go; in the release it may not."""
    decisions = arch.decision_layers if len(arch.decision_layers) > 1 else ()
    return [*arch.processing_layers, *decisions]


def _orphans(arch: Architecture, u: int) -> tuple[list[int], list[int]]:
    """Parents of u without another child, and children of u without another parent."""
    parents = [p for p in arch.parents[u] if len(arch.children[p]) == 1]
    return parents, [c for c in arch.children[u] if len(arch.parents[c]) == 1]


def _wirings(arch: Architecture, u: int) -> Iterator[tuple[Edge, ...]]:
    """The ways to reconnect what the removal of u leaves loose."""
    parents, children = _orphans(arch, u)
    for targets in product(arch.children[u], repeat=len(parents)):
        bridges = tuple(zip(parents, targets, strict=True))
        loose = [c for c in children if c not in targets]
        for sources in product(arch.parents[u], repeat=len(loose)):
            yield (*bridges, *zip(sources, loose, strict=True))


def _removals(arch: Architecture) -> Iterator[Removal]:
    return ((u, wiring) for u in _removable(arch) for wiring in islice(_wirings(arch, u), MAX_WIRINGS))


def _random_removal(arch: Architecture, rng: np.random.Generator) -> Removal | Rejected:
    if not (layers := _removable(arch)):
        return Rejected("remove_layer", NO_SITE, "there is no layer that could be spared")
    u = pick(layers, rng)
    parents, children = _orphans(arch, u)
    bridges = [(p, pick(arch.children[u], rng)) for p in parents]
    adopted = {c for _, c in bridges}
    bridges += [(pick(arch.parents[u], rng), c) for c in children if c not in adopted]
    return u, tuple(bridges)


def _removed(arch: Architecture, site: Removal) -> Draft:
    """Where u shrank the image its children see a larger one; the release gives a stride of 2 to them instead."""
    u, bridges = site
    return Draft(f"layer {u} {arch.layers[u]} removed", *take_out(arch, u, bridges))


remove_layer = Modifier("remove_layer", _removals, _random_removal, _removed)


# -- skip --------------------------------------------------------------------------------------------------------------


def n_pools_between(arch: Architecture, u: int, v: int) -> int | str:
    """How often the image leaving u must be halved for v; or what keeps u from feeding v."""
    before, behind = label_of(arch, u), label_of(arch, v)
    if not accepts(behind, before.emits):
        return "images and vectors do not mix"
    n_pools = _halvings(arch, u, v) if behind.takes is Signal.IMAGE else 0
    if n_pools is None:
        return "the image cannot be brought to the size of the others"
    if n_pools:
        pool = skip_layer(arch.vocabulary)
        if pool is None:
            return "no label without units halves images"
        behind = arch.vocabulary[pool.label]
    return n_pools if u > 0 or behind.may_follow_input else "not everything may follow the input"


def _halvings(arch: Architecture, u: int, v: int) -> int | None:
    """How many times the image leaving u is twice as large as those that enter v; None where it is no such multiple."""
    ours, others = arch.downsampling[u] or 1, arch.downsampling[arch.parents[v][0]] or 1
    ratio, rest = divmod(others, ours)
    return ratio.bit_length() - 1 if not rest and ratio & (ratio - 1) == 0 else None


def _pairs(arch: Architecture) -> Iterator[Edge]:
    n = len(arch.layers)
    return ((u, v) for u in range(n) for v in range(u + 1, n) if is_free(arch, u, v))


def _skips(arch: Architecture) -> Iterator[Edge]:
    return (pair for pair in _pairs(arch) if isinstance(n_pools_between(arch, *pair), int))


def _random_skip(arch: Architecture, rng: np.random.Generator) -> Edge | Rejected:
    """Uniform over the pairs that can be joined: pairs are drawn until one can, and listed only where that is rare.

    (In the release u is never the input, is preferably near it, and v is further from it and nearer to the output.)
    """
    n = len(arch.layers)
    for _ in range(SKIP_DRAWS):
        u, v = sorted((below(n, rng), below(n, rng)))
        if u < v and is_free(arch, u, v) and isinstance(n_pools_between(arch, u, v), int):
            return u, v
    if pairs := list(_skips(arch)):
        return pick(pairs, rng)
    obstacles = sorted({str(n_pools_between(arch, *pair)) for pair in _pairs(arch)})
    return Rejected("skip", NO_SITE, "; ".join(obstacles) or "all layers that may be joined are")


def _skipped(arch: Architecture, site: Edge) -> Draft | Rejected:
    """(u, v), or u -> pools -> v, the pools numbered before v."""
    u, v = site
    n_pools = n_pools_between(arch, u, v)
    if isinstance(n_pools, str):
        return Rejected("skip", n_pools, f"skip {u} -> {v}: {n_pools}")
    pool = skip_layer(arch.vocabulary) if n_pools else None
    if pool is None:
        return Draft(f"skip {u} -> {v}", arch.layers, (*arch.edges, (u, v)))
    layers, edges = put_in(arch, v, [pool] * n_pools)
    chain = [u, *range(v, v + n_pools + 1)]
    through = pool.label if n_pools == 1 else f"{n_pools} {pool.label}"
    return Draft(f"skip {u} -> {v} through {through}", layers, [*edges, *pairwise(chain)])


skip = Modifier("skip", _skips, _random_skip, _skipped)


# -- swap_label --------------------------------------------------------------------------------------------------------


def swappable(arch: Architecture) -> list[int]:
    """Layers whose role has other labels too: never the ends, and decision layers only where there is a choice."""
    n_processing = sum(label.role is Role.PROCESSING for label in arch.vocabulary.labels)
    decisions = arch.decision_layers if len(arch.vocabulary.decision_labels) > 1 else ()
    return sorted((*(arch.processing_layers if n_processing > 1 else ()), *decisions))


def other_labels(arch: Architecture, u: int) -> list[Label]:
    """All that fit, each as likely. (The release prefers some, and in MLPs swaps only between the two families.)"""
    now = label_of(arch, u)
    labels = labels_between(arch, arch.parents[u], arch.children[u], now.role)
    return [label for label in labels if label.name != now.name]


def relabelled(arch: Architecture, u: int, label: Label, *, other_stride: int = 0) -> Layer:
    """Layer u with this label; its units and its shrinking stay where the label can have them."""
    layer = arch.layers[u]
    units = layer.units
    if not label.takes_units:
        units = None
    elif units is None:
        units = units_between(arch, arch.parents[u][0], arch.children[u][0])
    stride = strides(label, shrinking(layer, label_of(arch, u)))[other_stride]
    return Layer(label.name, units, stride, kept_by(layer.attributes, label))


def _swaps(arch: Architecture) -> Iterator[NewLabel]:
    for u in swappable(arch):
        for label in other_labels(arch, u):
            for i in range(len(strides(label))):
                yield u, relabelled(arch, u, label, other_stride=i)


def _random_swap(arch: Architecture, rng: np.random.Generator) -> NewLabel | Rejected:
    if not (layers := swappable(arch)):
        return Rejected("swap_label", NO_SITE, "no layer could have another label")
    u = pick(layers, rng)
    if not (labels := other_labels(arch, u)):
        return Rejected("swap_label", "no other label fits", f"layer {u} {arch.layers[u]}: no other label fits there")
    label = pick(labels, rng)
    return u, relabelled(arch, u, label, other_stride=random_stride(label, rng))


def random_stride(label: Label, rng: np.random.Generator) -> int:
    """Which of ``strides(label)``: mostly the first."""
    n = len(label.strides)
    return 1 + below(n - 1, rng) if n > 1 and rng.random() < OTHER_STRIDE else 0


def _swapped(arch: Architecture, site: NewLabel) -> Draft:
    u, layer = site
    layers = (*arch.layers[:u], layer, *arch.layers[u + 1 :])
    return Draft(f"layer {u}: {arch.layers[u]} -> {layer}", layers, arch.edges)


swap_label = Modifier("swap_label", _swaps, _random_swap, _swapped)


# -- wedge_layer -------------------------------------------------------------------------------------------------------


def wedgeable(arch: Architecture) -> list[Edge]:
    """All edges but those that only a decision layer may feed; ascending, so that the order is the same anywhere."""
    decisions = set(arch.decision_layers)
    return [(u, v) for u, feeds in enumerate(arch.children) if u not in decisions for v in feeds]


def wedge_labels(arch: Architecture, u: int, v: int) -> tuple[Label, ...]:
    """All that fit, each as likely. (In the release a pool has 0.05, and behind fc comes fc.)"""
    return labels_between(arch, (u,), (v,), Role.PROCESSING)


def new_layer(arch: Architecture, edge: Edge, label: Label, *, other_stride: int = 0) -> Layer:
    units = units_between(arch, *edge) if label.takes_units else None
    return Layer(label.name, units, strides(label)[other_stride])


def _wedges(arch: Architecture) -> Iterator[Wedge]:
    for edge in wedgeable(arch):
        for label in wedge_labels(arch, *edge):
            for i in range(len(strides(label))):
                yield edge, new_layer(arch, edge, label, other_stride=i)


def _random_wedge(arch: Architecture, rng: np.random.Generator) -> Wedge | Rejected:
    edge = pick(wedgeable(arch), rng)
    if not (labels := wedge_labels(arch, *edge)):
        return Rejected("wedge_layer", "no label fits", f"no label fits between {edge[0]} and {edge[1]}")
    label = pick(labels, rng)
    return edge, new_layer(arch, edge, label, other_stride=random_stride(label, rng))


def _wedged(arch: Architecture, site: Wedge) -> Draft:
    (u, v), layer = site
    layers, edges = put_in(arch, v, [layer])
    edges.remove((u, v + 1))
    return Draft(f"{layer} wedged into {u} -> {v}", layers, [*edges, (u, v), (v, v + 1)])


wedge_layer = Modifier("wedge_layer", _wedges, _random_wedge, _wedged)

"""What the structural modifiers share: which label may stand where, and layers put into or taken out of a graph.

Everything is read from the label tables of the vocabulary (role, takes, emits, strides, units), never from the text of
a label, so that vocabularies of users' own are treated like the built-in ones. Layers are put in and taken out in such
places that the numbering stays topological.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from nasbot.architecture import Architecture, Edge, Label, Layer, Role, Signal, Vocabulary

FALLBACK_UNITS = 16  # where no layer before a new one has units; as in the authors' release


def label_of(arch: Architecture, u: int) -> Label:
    """The row of the label table for layer u."""
    return arch.vocabulary.by_name[arch.layers[u].label]


def accepts(label: Label, signal: Signal) -> bool:
    """Whether a layer of this label may stand behind one that emits this; an output is as lenient as the graph is."""
    if label.takes is signal or label.takes is Signal.ANY:
        return True
    return label.role is Role.OUTPUT and label.takes is Signal.VECTOR


def labels_between(
    arch: Architecture, parents: Sequence[int], children: Sequence[int], role: Role
) -> tuple[Label, ...]:
    """The labels of this role that may stand between these layers, image sizes apart, in the vocabulary's order.

    They may be those of an equal vocabulary, so compare them by name.
    """
    by_name, layers = arch.vocabulary.by_name, arch.layers
    emitted = {by_name[layers[p].label].emits for p in parents}
    takers = {layers[c].label for c in children}
    return _labels_between(arch.vocabulary, role, frozenset(emitted), frozenset(takers), parents[0] == 0)


@lru_cache(maxsize=1024)
def _labels_between(
    vocabulary: Vocabulary, role: Role, emitted: frozenset[Signal], takers: frozenset[str], follows_input: bool
) -> tuple[Label, ...]:
    return tuple(
        label
        for label in vocabulary.labels
        if label.role is role
        and (label.may_follow_input or not follows_input)
        and all(accepts(label, signal) for signal in emitted)
        and all(accepts(vocabulary[taker], label.emits) for taker in takers)
    )


def is_free(arch: Architecture, u: int, v: int) -> bool:
    """Whether an edge from u may end at v and be new, signals and image sizes apart."""
    if (u, v) in arch.edges or label_of(arch, u).role is Role.DECISION:
        return False
    return v < len(arch.layers) - 1 or not arch.vocabulary.decision_labels


def shrinking(layer: Layer, label: Label) -> int:
    """By how much a layer shrinks images."""
    return layer.stride or label.shrinks


def strides(label: Label, wanted: int | None = None) -> list[int | None]:
    """The strides a layer of this label can have: first ``wanted`` where it can, else the default; then the others."""
    if not label.strides:
        return [None]
    first = wanted if wanted in label.strides else label.strides[0]
    return [first, *(stride for stride in label.strides if stride != first)]


def units_between(arch: Architecture, u: int, v: int) -> int:
    """(ℓu(u) + ℓu(v)) / 2 for a layer between u and v, rounded down; where one has no units, those of the other.

    Where neither has (between two pools), the units of the nearest layer before them that has some.
    """
    found = [units for x in (u, v) if (units := arch.layers[x].units) is not None]
    while not found and u > 0:
        u = arch.parents[u][-1]
        units = arch.layers[u].units
        found = [] if units is None else [units]
    return sum(found) // len(found) if found else FALLBACK_UNITS


@lru_cache(maxsize=64)
def skip_layer(vocabulary: Vocabulary) -> Layer | None:
    """The layer of stride 2 that a skip to an image half the size goes through; None where the vocabulary has none.

    The label that ``joins_skips`` (the avg-pool of a CNN), else the first one without units that can halve an image.
    """
    halving = [
        label
        for label in vocabulary.labels
        if label.role is Role.PROCESSING
        and label.takes is label.emits is Signal.IMAGE
        and not label.takes_units
        and 2 in (label.strides or (label.shrinks,))
    ]
    for label in sorted(halving, key=lambda label: not label.joins_skips):
        return Layer(label.name, None, 2 if label.strides else None)
    return None


def put_in(arch: Architecture, v: int, new: Iterable[Layer]) -> tuple[list[Layer], list[Edge]]:
    """Layers and edges with ``new`` put in before layer v, not yet connected: they are numbered from v on."""
    between = list(new)
    layers = [*arch.layers[:v], *between, *arch.layers[v:]]
    m = len(between)
    return layers, [(x + m if x >= v else x, y + m if y >= v else y) for x, y in arch.edges]


def take_out(arch: Architecture, u: int, bridges: Iterable[Edge]) -> tuple[list[Layer], list[Edge]]:
    """Layers and edges without layer u, and with the edges ``bridges`` (in the old numbering) in its stead."""
    layers = [*arch.layers[:u], *arch.layers[u + 1 :]]
    kept = [edge for edge in arch.edges if u not in edge]
    return layers, [(x - (x > u), y - (y > u)) for x, y in (*kept, *bridges)]

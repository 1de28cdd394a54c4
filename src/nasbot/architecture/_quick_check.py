"""A quick yes for layer graphs that keep every rule of ``graph.py``: one pass, no message.

A search builds thousands of networks a second and nearly all are valid. What is not plainly valid here is left to the
checks of ``graph.py``, which say what is wrong; tests/architecture/test_quick_check.py holds the two to one verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nasbot.architecture.labels import Role, Signal, Vocabulary

if TYPE_CHECKING:
    from nasbot.architecture.graph import Edge, Layer

Neighbours = list[list[int]]


class Checked(NamedTuple):
    """What the pass finds out on its way, kept so that nobody computes it again."""

    parents: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, ...], ...]
    downsampling: tuple[int | None, ...]


def quick_check(
    vocabulary: Vocabulary, layers: tuple[Layer, ...], edges: frozenset[Edge], max_units: int
) -> Checked | None:
    """The neighbours and image sizes of a valid network; None where a rule is broken or a stride was left out."""
    neighbours = _neighbours(len(layers), edges)
    if neighbours is None:
        return None
    parents, children = neighbours
    if not _ends_fit(vocabulary, layers, children[0]):
        return None
    factors = _signals(vocabulary, layers, parents, children, max_units)
    if factors is None:
        return None
    return Checked(tuple(map(tuple, parents)), tuple(map(tuple, children)), tuple(factors))


def _neighbours(n: int, edges: frozenset[Edge]) -> tuple[Neighbours, Neighbours] | None:
    """Parents and children, ascending; None unless the numbering is topological and all but the ends have both."""
    parents: Neighbours = [[] for _ in range(n)]
    children: Neighbours = [[] for _ in range(n)]
    for u, v in edges:
        if type(u) is not int or type(v) is not int or not 0 <= u < v < n:
            return None
        children[u].append(v)
        parents[v].append(u)
    if not (all(children[:-1]) and all(parents[1:])):
        return None
    for several in (parents, children):
        for found in several:
            if len(found) > 1:
                found.sort()
    return parents, children


def _ends_fit(vocabulary: Vocabulary, layers: tuple[Layer, ...], first: list[int]) -> bool:
    """Whether the input begins, bare, the output ends, and only what may follow the input follows it."""
    by_name = vocabulary.by_name
    begin, label = layers[0], by_name[vocabulary.input_label]
    if begin.label != label.name or layers[-1].label != vocabulary.output_label:
        return False
    if begin.units is not None or begin.stride is not None or label.takes_units or label.strides:
        return False
    followers = [by_name.get(layers[u].label) for u in first]
    return all(follower is not None and follower.may_follow_input for follower in followers)


def _signals(
    vocabulary: Vocabulary, layers: tuple[Layer, ...], parents: Neighbours, children: Neighbours, max_units: int
) -> list[int | None] | None:
    """By how much the image leaving each layer has shrunk (None: a vector); None where a layer breaks a rule.

    Flat and long on purpose: it runs for each layer of each network that a search looks at.
    """
    rows = vocabulary.rows
    last = len(layers) - 1
    only_decisions_end = bool(vocabulary.decision_labels)
    ends = set(parents[last])
    if only_decisions_end and 0 in ends:
        return None
    begin = vocabulary.by_name[layers[0].label]
    factors: list[int | None] = [begin.shrinks if begin.emits is Signal.IMAGE else None]
    for u in range(1, last + 1):
        layer = layers[u]
        row = rows.get(layer.label)
        if row is None:
            return None
        role, takes_units, strides, shrinks, takes_images, refuses_images, emits_images = row
        units = layer.units
        if takes_units:
            if type(units) is not int or not 1 <= units <= max_units:
                return None
        elif units is not None:
            return None
        stride = layer.stride
        if strides:
            if type(stride) is not int or stride not in strides:
                return None
            shrinks = stride
        elif stride is not None:
            return None
        if role is Role.DECISION:
            if len(children[u]) > 1 or u not in ends:
                return None
        elif role is Role.PROCESSING:
            if only_decisions_end and u in ends:
                return None
        elif role is Role.INPUT or u < last:
            return None
        fed_by = parents[u]
        entering = factors[fed_by[0]]
        if takes_images:
            if entering is None:
                return None
            if len(fed_by) > 1:
                for p in fed_by:
                    if factors[p] != entering:
                        return None
        elif refuses_images and any(factors[p] is not None for p in fed_by):
            return None
        factors.append((entering or 1) * shrinks if emits_images else None)
    return factors

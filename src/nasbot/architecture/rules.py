"""The rules of Section 2.2, each said once: what makes layers and edges a network of a vocabulary.

``checked`` runs for every network that a search looks at, thousands a second, and nearly all are valid: it is flat, and
a message is written only where a rule is broken. Rules stand on those before them: labels, edges, connections,
decision layers, signals; the first of these that is broken is reported, with all its violations.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from nasbot.architecture import attributes
from nasbot.architecture.attributes import Attributes
from nasbot.architecture.labels import Role, Vocabulary
from nasbot.architecture.layer import MAX_LAYERS
from nasbot.errors import InvalidArchitectureError, Violation

if TYPE_CHECKING:
    from nasbot.architecture.layer import Edge, Layer

Neighbours = list[list[int]]
NONE = Attributes()
# Most layers have one parent and one child: kept once, for they were a quarter of a study of 100,000 networks.
ALONE = tuple((u,) for u in range(MAX_LAYERS))
DECISION, PROCESSING = Role.DECISION, Role.PROCESSING  # looked up once: an enumeration's members are slow to find


class Checked(NamedTuple):
    """What the check finds out on its way, by the names that ``Architecture`` has for it."""

    layers: tuple[Layer, ...]  # with the strides that were left out
    parents: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, ...], ...]
    downsampling: tuple[int | None, ...]


def checked(vocabulary: Vocabulary, layers: tuple[Layer, ...], edges: frozenset[Edge], *, max_units: int) -> Checked:
    """The parts of a valid network; InvalidArchitectureError, naming layer, rule and values, where a rule is broken.

    The parents of the output are exactly the decision layers, and those feed nothing else; only what may follow the
    input does; no image layer stands behind a vector; images that are concatenated have one size.
    """
    rows, last, decides = vocabulary.rows, len(layers) - 1, bool(vocabulary.decision_labels)
    near = _neighbours(last + 1, edges)
    connected = near is not None and all(near[1][:-1]) and all(near[0][1:])
    # Where they are not, labels are reported first all the same, and nothing else of what the loop finds.
    parents, children = near if near is not None and connected else ([[0]] * (last + 1), [[last]] * (last + 1))
    ends = set(parents[last])
    misplaced = layers[0].label != vocabulary.input_label or layers[last].label != vocabulary.output_label
    of_labels: list[Violation] = []
    of_decisions: list[Violation] = []
    of_images: list[Violation] = []
    of_sizes: list[Violation] = []
    filled: list[tuple[int, Layer]] = []
    attributed: list[int] = []
    factors: list[int | None] = []
    for u, layer in enumerate(layers):
        row = rows.get(layer.label)
        if row is None:
            of_labels.append(_unknown(vocabulary, layer, u))
            factors.append(None)
            continue
        role, takes_units, strides, shrinks, takes_images, refuses_images, emits_images = row
        units, stride = layer.units, layer.stride
        if takes_units:
            if type(units) is not int or not 1 <= units <= max_units:
                needed = f"needs units, a whole number from 1 to {max_units}, got {units!r}"
                of_labels.append(Violation("units", f"layer {u} ({layer.label}) {needed}", u))
        elif units is not None:
            of_labels.append(Violation("units", f"layer {u} ({layer.label}) takes no units, got {units!r}", u))
        if strides or stride is not None:
            if stride is None or not strides:
                filled.append((u, type(layer)(layer.label, units, strides[0] if strides else None, layer.attributes)))
            if stride is None:
                shrinks = strides[0]
            elif type(stride) is not int or stride not in (strides or (shrinks,)):
                of_labels.append(_wrong_stride(layer, u, strides or (shrinks,)))
            else:
                shrinks = stride
        if layer.attributes is not None:
            attributed.append(u)
        if role is DECISION:
            if children[u] != [last]:
                of_decisions.append(_feeds_others(layers, u, children[u]))
        elif role is not PROCESSING and 0 < u < last:
            misplaced = True
        elif decides and u in ends:
            of_decisions.append(_undecided(vocabulary, layers, u))
        if not u:
            factors.append(shrinks if emits_images else None)
            continue
        fed_by = parents[u]
        entering = factors[fed_by[0]]
        if takes_images:
            if len(fed_by) > 1 or entering is None:
                if vectors := [p for p in fed_by if factors[p] is None]:
                    of_images.append(_wrong_signal(layers, u, vectors[0], "images", "a vector"))
                elif any(factors[p] != entering for p in fed_by):
                    of_sizes.append(_wrong_size(layers, u, fed_by, factors))
        elif refuses_images and (pictures := [p for p in fed_by if factors[p] is not None]):
            of_images.append(_wrong_signal(layers, u, pictures[0], "vectors", "images"))
        factors.append((entering or 1) * shrinks if emits_images else None)
    for u in attributed:
        of_labels += attributes.violations(layers[u].attributes or NONE, vocabulary.by_name[layers[u].label], u)
    if of_labels:
        raise InvalidArchitectureError.of(of_labels)
    if near is None:
        raise _wrong_edges(last + 1, edges)
    if misplaced or not connected:
        raise InvalidArchitectureError.of(_disconnected(vocabulary, layers, *near))
    by_name = vocabulary.by_name
    early = [_follows(vocabulary, layers, u) for u in children[0] if not by_name[layers[u].label].may_follow_input]
    for found in (of_decisions, early + of_images[:1], of_sizes):
        if found:
            raise InvalidArchitectureError.of(found)
    if filled:
        complete = list(layers)
        for u, layer in filled:
            complete[u] = layer
        layers = tuple(complete)
    if attributed:
        layers = _settled(vocabulary, layers)
    return Checked(layers, _kept(parents), _kept(children), tuple(factors))


def _kept(neighbours: Neighbours) -> tuple[tuple[int, ...], ...]:
    return tuple([ALONE[near[0]] if len(near) == 1 else tuple(near) for near in neighbours])


def _settled(vocabulary: Vocabulary, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Without attributes that say what the label says anyway."""
    return tuple(
        layer
        if layer.attributes is None
        or (kept := attributes.settled(layer.attributes, vocabulary.by_name[layer.label])) == layer.attributes
        else type(layer)(layer.label, layer.units, layer.stride, kept)
        for layer in layers
    )


def _neighbours(n: int, edges: frozenset[Edge]) -> tuple[Neighbours, Neighbours] | None:
    """Parents and children, ascending; None unless every edge leads from a lower to a higher number of a layer."""
    parents: Neighbours = [[] for _ in range(n)]
    children: Neighbours = [[] for _ in range(n)]
    for u, v in edges:
        if type(u) is not int or type(v) is not int or not 0 <= u < v < n:
            return None
        children[u].append(v)
        parents[v].append(u)
    for several in (parents, children):
        for near in several:
            if len(near) > 1:
                near.sort()
    return parents, children


def _wrong_edges(n: int, edges: frozenset[Edge]) -> InvalidArchitectureError:
    check_numbering(n, edges)
    topological_order(n, edges)  # raises its own message where a cycle is the reason
    backward = sorted(edge for edge in edges if edge[0] >= edge[1])
    message = (
        "layers must be in topological order, every edge from a lower to a higher number; "
        f"backward: {some(backward)}; Architecture.in_any_order renumbers them"
    )
    return InvalidArchitectureError.of([Violation("topological order", message, backward[0][0])])


def check_numbering(n: int, edges: Iterable[Edge]) -> None:
    """Raise unless every edge joins two layers that there are."""
    raise_if_any(
        Violation("edges", f"edge ({u!r}, {v!r}): layers are numbered 0 to {n - 1}")
        for u, v in edges
        if type(u) is not int or type(v) is not int or not (0 <= u < n and 0 <= v < n)
    )


def topological_order(n: int, pairs: Iterable[Edge]) -> list[int]:
    """Kahn's algorithm, the lowest free number first; raises where the graph has a cycle."""
    waiting = [0] * n
    children: list[list[int]] = [[] for _ in range(n)]
    for u, v in pairs:
        waiting[v] += 1
        children[u].append(v)
    free = [u for u in range(n) if not waiting[u]]
    order = []
    while free:
        order.append(u := heapq.heappop(free))
        for v in children[u]:
            waiting[v] -= 1
            if not waiting[v]:
                heapq.heappush(free, v)
    if len(order) < n:
        stuck = sorted(set(range(n)) - set(order))
        message = f"the graph must not have a cycle; layers on or behind one: {some(stuck)}"
        raise InvalidArchitectureError.of([Violation("acyclic", message, stuck[0])])
    return order


# -- what is said where a rule is broken -------------------------------------------------------------------------------


def raise_if_any(violations: Iterable[Violation]) -> None:
    """InvalidArchitectureError of all of them."""
    if found := list(violations):
        raise InvalidArchitectureError.of(found)


def some(values: Iterable[object], most: int = 8) -> str:
    """The first few values, for a message that stays one line however many there are."""
    listed = [str(value) for value in values]
    return ", ".join(listed[:most]) + (f", … ({len(listed)} in all)" if len(listed) > most else "")


def _unknown(vocabulary: Vocabulary, layer: Layer, u: int) -> Violation:
    known = ", ".join(vocabulary.by_name)
    message = f"layer {u}: unknown label {str(layer.label)[:60]!r} in vocabulary {vocabulary.name}; known: {known}"
    return Violation("label", message, u)


def _wrong_stride(layer: Layer, u: int, allowed: tuple[int, ...]) -> Violation:
    choices = " or ".join(str(stride) for stride in allowed)
    return Violation("stride", f"layer {u} ({layer.label}) has stride {choices}, got {layer.stride!r}", u)


def _disconnected(
    vocabulary: Vocabulary, layers: tuple[Layer, ...], parents: Neighbours, children: Neighbours
) -> list[Violation]:
    """One input, one output, and, the order being topological, every layer on a path between the two."""
    last = len(layers) - 1
    found = []
    for role, label, place in (("input", vocabulary.input_label, 0), ("output", vocabulary.output_label, last)):
        places = [u for u, layer in enumerate(layers) if layer.label == label]
        if places != [place]:
            where, got = "first" if place == 0 else "last", some(places) or "none"
            message = f"the {role} ({label}) must be the {where} layer and the only one of its label, got layers: {got}"
            found.append(Violation(f"one {role}", message, place))
    sides = (
        ("no parents, so nothing from the input reaches it", parents, range(1, last + 1)),
        ("no children, so nothing it computes reaches the output", children, range(last)),
    )
    for why, near, inside in sides:
        found += [Violation("connected", f"layer {u} ({layers[u].label}) has {why}", u) for u in inside if not near[u]]
    return found


def _undecided(vocabulary: Vocabulary, layers: tuple[Layer, ...], u: int) -> Violation:
    allowed = " or ".join(vocabulary.decision_labels)
    message = f"layer {u} ({layers[u].label}) feeds the output; only decision layers ({allowed}) may"
    return Violation("decision layers", message, u)


def _feeds_others(layers: tuple[Layer, ...], u: int, children: list[int]) -> Violation:
    last = len(layers) - 1
    message = (
        f"layer {u} ({layers[u].label}) is a decision layer and feeds only the output ({last}); "
        f"it also feeds {some(v for v in children if v != last)}"
    )
    return Violation("decision layers", message, u)


def _follows(vocabulary: Vocabulary, layers: tuple[Layer, ...], u: int) -> Violation:
    inner = (Role.PROCESSING, Role.DECISION)
    allowed = some(x.name for x in vocabulary.labels if x.may_follow_input and x.role in inner)
    message = f"layer {u} ({layers[u].label}) may not follow the input; expected one of {allowed}"
    return Violation("after the input", message, u)


def _wrong_signal(layers: tuple[Layer, ...], u: int, p: int, takes: str, emits: str) -> Violation:
    message = f"layer {u} ({layers[u].label}) takes {takes}, but its parent {p} ({layers[p].label}) emits {emits}"
    return Violation("images", message, u)


def _wrong_size(layers: tuple[Layer, ...], u: int, fed_by: list[int], factors: list[int | None]) -> Violation:
    message = (
        f"layer {u} ({layers[u].label}) concatenates its parents, so their images must have one size; "
        f"as parts of the input's size they are {{{some(_sizes(fed_by, factors))}}}"
    )
    return Violation("image size", message, u)


def _sizes(fed_by: list[int], factors: list[int | None]) -> Iterator[str]:
    """1/factor of each; hundreds of strides multiply to numbers that nobody reads and Python refuses to print."""
    for p in fed_by:
        factor = factors[p] or 1
        yield f"{p}: 1/{factor}" if factor.bit_length() <= 32 else f"{p}: less than 1/2^{factor.bit_length() - 2}"

"""Section 2.2: a network as a value, a directed acyclic graph of layers.

``Architecture`` is frozen and valid from birth: one input, one output, every layer on a path between them, decision
layers and image sizes as its vocabulary demands. To change a network, build another. Two networks are equal when they
are the same up to the numbering of their layers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nasbot._display import display
from nasbot.architecture._quick_check import quick_check
from nasbot.architecture.labels import Role, Signal, Vocabulary
from nasbot.architecture.vocabularies import vocabulary_of
from nasbot.errors import InvalidArchitectureError, Violation

if TYPE_CHECKING:
    from nasbot.architecture.paths import PathLengths

# Far beyond any search space; they keep one absurd network from exhausting memory before a limit is looked at.
MAX_LAYERS = 1_000
MAX_EDGES = 10_000
MAX_UNITS = 1_000_000

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: its label, and units and stride where the label takes them."""

    label: str
    units: int | None = None
    stride: int | None = None

    def __str__(self) -> str:
        units = "" if self.units is None else f" {self.units}"
        stride = f" /{self.stride}" if self.stride not in (None, 1) else ""
        return f"{self.label}{units}{stride}"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Architecture:
    """A layer graph: layers in topological order, input first and output last, edges as index pairs.

    Raises InvalidArchitectureError, naming layer, rule and values, unless every rule of the vocabulary holds.
    """

    vocabulary: Vocabulary
    layers: tuple[Layer, ...]
    edges: frozenset[Edge]

    def __init__(self, kind: str | Vocabulary, layers: Iterable[Layer], edges: Iterable[Edge]) -> None:
        vocabulary = vocabulary_of(kind)
        given, pairs = _plain_parts(layers, edges)
        _raise_if_any(_shape_violations(given, pairs))
        if (checked := quick_check(vocabulary, given, pairs, MAX_UNITS)) is not None:
            # The names of the cached properties below: what the check found out need not be found out again.
            vars(self).update(vocabulary=vocabulary, layers=given, edges=pairs, **checked._asdict())
        else:
            self._check_at_length(vocabulary, given, pairs)
        for rule in vocabulary.rules:
            _raise_if_any(rule(self))

    def _check_at_length(self, vocabulary: Vocabulary, given: tuple[Layer, ...], pairs: frozenset[Edge]) -> None:
        """Fill in what was left out and check rule by rule, each on the strength of those before it."""
        _raise_if_any(_label_violations(vocabulary, given))
        _raise_if_any(_numbering_violations(len(given), pairs))
        _raise_if_any(_order_violations(len(given), pairs))
        object.__setattr__(self, "vocabulary", vocabulary)
        object.__setattr__(self, "layers", tuple(_with_default_stride(vocabulary, layer) for layer in given))
        object.__setattr__(self, "edges", pairs)
        _raise_if_any(_connection_violations(self))
        _raise_if_any(_decision_violations(self))
        _raise_if_any(_signal_violations(self))

    @classmethod
    def in_any_order(cls, kind: str | Vocabulary, layers: Iterable[Layer], edges: Iterable[Edge]) -> Architecture:
        """The same, for layers numbered in any order: they are renumbered topologically, ties by the given order."""
        given, pairs = _plain_parts(layers, edges)
        _raise_if_any(_shape_violations(given, pairs))
        _raise_if_any(_numbering_violations(len(given), pairs))
        order = _topological_order(len(given), pairs)
        position = {u: i for i, u in enumerate(order)}
        return cls(kind, (given[u] for u in order), ((position[u], position[v]) for u, v in pairs))

    def with_units(self, units: Mapping[int, int]) -> Architecture:
        """The same network with these units in these layers.

        Raises as the constructor does, and costs a fifth of it: nothing that units have no part in is checked again.
        """
        layers, by_name = list(self.layers), self.vocabulary.by_name
        for u, n_units in units.items():
            label = by_name[layers[u].label]
            layers[u] = Layer(label.name, n_units, layers[u].stride)
            if not label.takes_units or type(n_units) is not int or not 1 <= n_units <= MAX_UNITS:
                return Architecture(self.vocabulary, layers, self.edges)
        changed = object.__new__(Architecture)
        for shared in ("vocabulary", "edges", "parents", "children", "downsampling"):
            vars(changed)[shared] = getattr(self, shared)
        vars(changed)["layers"] = tuple(layers)
        for rule in self.vocabulary.rules:
            _raise_if_any(rule(changed))
        return changed

    # -- identity ------------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """Equal for two networks exactly when they are the same up to the numbering of their layers (SHA-256)."""
        from nasbot.architecture.canonical import fingerprint

        return fingerprint(self)

    def canonical(self) -> Architecture:
        """The same network with its layers in an order that does not depend on how they were numbered."""
        from nasbot.architecture.canonical import canonical_form

        return canonical_form(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Architecture):
            return NotImplemented
        if self is other:
            return True
        if self.vocabulary != other.vocabulary or len(self.layers) != len(other.layers):
            return False
        if self.layers == other.layers and self.edges == other.edges:
            return True
        return hash(self) == hash(other) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return self._numbering_free_hash

    @cached_property
    def _numbering_free_hash(self) -> int:
        from nasbot.architecture.canonical import numbering_free_hash

        return numbering_free_hash(self)

    # -- structure -----------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The name of the vocabulary: mlp-reg, mlp-class, cnn, or a user's own."""
        return self.vocabulary.name

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """For each layer the layers that feed it, ascending."""
        return _neighbours(len(self.layers), ((v, u) for u, v in self.edges))

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each layer the layers it feeds, ascending."""
        return _neighbours(len(self.layers), self.edges)

    @cached_property
    def downsampling(self) -> tuple[int | None, ...]:
        """For each layer the factor by which the image leaving it is smaller than the input; None: it is a vector."""
        from nasbot.architecture.image_size import downsampling

        return downsampling(self)

    def role(self, u: int) -> Role:
        """Whether layer u is the input, a processing layer, a decision layer or the output."""
        return self.vocabulary[self.layers[u].label].role

    @cached_property
    def decision_layers(self) -> tuple[int, ...]:
        """Indices of the layers whose outputs are averaged."""
        return self._layers_of_role(Role.DECISION)

    @cached_property
    def processing_layers(self) -> tuple[int, ...]:
        """Indices of all layers but the input, the output and the decision layers."""
        return self._layers_of_role(Role.PROCESSING)

    def _layers_of_role(self, role: Role) -> tuple[int, ...]:
        by_name = self.vocabulary.by_name
        return tuple([u for u, layer in enumerate(self.layers) if by_name[layer.label].role is role])

    # -- quantities of Section 3, computed once, when first asked for ------------------------------------------------

    @cached_property
    def masses(self) -> NDArray[np.float64]:
        """Layer masses under the paper's rules (``layer_masses`` takes others)."""
        from nasbot.architecture.masses import layer_masses

        return layer_masses(self)

    @cached_property
    def total_mass(self) -> float:
        """Sum of the layer masses."""
        return float(self.masses.sum())

    @cached_property
    def path_lengths(self) -> PathLengths:
        """Path lengths of Algorithm 1, over all layers and over each group."""
        from nasbot.architecture.paths import path_lengths

        return path_lengths(self)

    # -- in and out --------------------------------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], *, vocabulary: Vocabulary | None = None) -> Architecture:
        """Read ``{"kind", "layers": [{"label", "units", "stride"}], "edges": [[u, v]]}``; inverse of ``to_dict``."""
        from nasbot.architecture.codec import from_dict

        return from_dict(record, vocabulary=vocabulary)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that ``from_dict`` reads back exactly."""
        from nasbot.architecture.codec import to_dict

        return to_dict(self)

    @classmethod
    def from_json(cls, text: str | bytes, *, vocabulary: Vocabulary | None = None) -> Architecture:
        """Read one network from JSON, strictly and within fixed bounds; never runs code."""
        from nasbot.architecture.codec import from_json

        return from_json(text, vocabulary=vocabulary)

    def to_json(self) -> str:
        """One network as versioned JSON."""
        from nasbot.architecture.codec import to_json

        return to_json(self)

    @classmethod
    def load(cls, path: str | Path, *, vocabulary: Vocabulary | None = None) -> Architecture:
        """Read a network from a JSON file; errors name the file."""
        from nasbot.architecture.codec import load

        return load(path, vocabulary=vocabulary)

    def save(self, path: str | Path) -> None:
        """Write the network to a JSON file."""
        from nasbot.architecture.codec import save

        save(self, path)

    # -- seeing ------------------------------------------------------------------------------------------------------

    def draw(self, path: str | Path, **options: Any) -> Path:
        """Draw the network in the manner of the paper's figures; the ending of ``path`` (.svg, .png) says how."""
        drawn: Path = display("network.draw")(self, path, **options)
        return drawn

    def _repr_svg_(self) -> str:
        return str(display("network.svg")(self))

    def __repr__(self) -> str:
        return f"<Architecture {self.kind}: {len(self.layers)} layers, {len(self.edges)} edges>"

    def __str__(self) -> str:
        lines = [repr(self)]
        for u, layer in enumerate(self.layers):
            fed_by = ", ".join(str(p) for p in self.parents[u])
            lines.append((f"{u:4d}  {layer!s:<18} " + (f"<- {fed_by}" if fed_by else "")).rstrip())
        return "\n".join(lines)


def _raise_if_any(violations: Iterable[Violation]) -> None:
    if found := list(violations):
        raise InvalidArchitectureError.of(found)


def _neighbours(n: int, pairs: Iterable[Edge]) -> tuple[tuple[int, ...], ...]:
    lists: list[list[int]] = [[] for _ in range(n)]
    for u, v in pairs:
        lists[u].append(v)
    return tuple(tuple(sorted(neighbours)) for neighbours in lists)


def _topological_order(n: int, pairs: Iterable[Edge]) -> list[int]:
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
        message = f"the graph must not have a cycle; layers on or behind one: {_some(stuck)}"
        _raise_if_any([Violation("acyclic", message, stuck[0])])
    return order


def _some(values: Iterable[object], most: int = 8) -> str:
    """The first few values, for a message that stays one line however many there are."""
    listed = [str(value) for value in values]
    return ", ".join(listed[:most]) + (f", … ({len(listed)} in all)" if len(listed) > most else "")


def _part(factor: int | None) -> str:
    """1/factor for a message; hundreds of strides multiply to numbers that nobody reads and Python refuses to print."""
    return f"1/{factor}" if factor is None or factor.bit_length() <= 32 else f"less than 1/2^{factor.bit_length() - 2}"


def _with_default_stride(vocabulary: Vocabulary, layer: Layer) -> Layer:
    """The layer as it is stored: a stride that was left out is the default, one that the label fixes is left out."""
    strides = vocabulary.by_name[layer.label].strides
    if strides and layer.stride is None:
        return Layer(layer.label, layer.units, strides[0])
    if not strides and layer.stride is not None:
        return Layer(layer.label, layer.units)
    return layer


def _plain_parts(layers: Iterable[Layer], edges: Iterable[Edge]) -> tuple[tuple[Layer, ...], frozenset[Edge]]:
    """Layers and edges as what they are said to be, or an error that says which is not."""
    given = tuple(layers)
    for u, layer in enumerate(given):
        if not isinstance(layer, Layer) or not isinstance(layer.label, str):  # type: ignore[redundant-expr]
            got = repr(layer)[:60]
            _raise_if_any([Violation("layers", f"layer {u} must be a Layer whose label is a string, got {got}", u)])
    try:
        pairs: frozenset[Edge] = frozenset(map(tuple, edges))  # type: ignore[arg-type]  # quicker than unpacking each
    except TypeError as error:
        _raise_if_any([Violation("edges", f"edges must be pairs of layer numbers: {error}")])
        raise
    if wrong := [pair for pair in pairs if len(pair) != 2]:  # type: ignore[redundant-expr]
        _raise_if_any([Violation("edges", f"edges must be pairs of layer numbers, got {repr(wrong[0])[:60]}")])
    return given, pairs


def _shape_violations(layers: tuple[Layer, ...], edges: frozenset[Edge]) -> Iterator[Violation]:
    if len(layers) < 3:
        yield Violation("layers", f"a network has at least 3 layers (input, one more, output), got {len(layers)}")
    if len(layers) > MAX_LAYERS:
        yield Violation("layers", f"a network has at most {MAX_LAYERS} layers, got {len(layers)}")
    if len(edges) > MAX_EDGES:
        yield Violation("edges", f"a network has at most {MAX_EDGES} edges, got {len(edges)}")


def _label_violations(vocabulary: Vocabulary, layers: tuple[Layer, ...]) -> Iterator[Violation]:
    by_name = vocabulary.by_name
    for u, layer in enumerate(layers):
        label = by_name.get(layer.label)
        if label is None:
            known = ", ".join(by_name)
            message = (
                f"layer {u}: unknown label {str(layer.label)[:60]!r} in vocabulary {vocabulary.name}; known: {known}"
            )
            yield Violation("label", message, u)
            continue
        units = layer.units
        if not label.takes_units:
            if units is not None:
                yield Violation("units", f"layer {u} ({label.name}) takes no units, got {units!r}", u)
        elif type(units) is not int or not 1 <= units <= MAX_UNITS:
            message = f"layer {u} ({label.name}) needs units, a whole number from 1 to {MAX_UNITS}, got {units!r}"
            yield Violation("units", message, u)
        allowed = label.strides or (label.shrinks,)
        if layer.stride is not None and (type(layer.stride) is not int or layer.stride not in allowed):
            choices = " or ".join(str(stride) for stride in allowed)
            yield Violation("stride", f"layer {u} ({label.name}) has stride {choices}, got {layer.stride!r}", u)


def _numbering_violations(n: int, edges: frozenset[Edge]) -> Iterator[Violation]:
    for u, v in edges:
        if type(u) is not int or type(v) is not int or not (0 <= u < n and 0 <= v < n):
            yield Violation("edges", f"edge ({u!r}, {v!r}): layers are numbered 0 to {n - 1}")


def _order_violations(n: int, edges: frozenset[Edge]) -> Iterator[Violation]:
    if backward := sorted(edge for edge in edges if edge[0] >= edge[1]):
        _topological_order(n, edges)  # raises its own message where a cycle is the reason
        message = (
            "layers must be in topological order, every edge from a lower to a higher number; "
            f"backward: {_some(backward)}; Architecture.in_any_order renumbers them"
        )
        yield Violation("topological order", message, backward[0][0])


def _connection_violations(arch: Architecture) -> Iterator[Violation]:
    """One input, one output, and, the order being topological, every layer on a path between the two."""
    last = len(arch.layers) - 1
    names = {Role.INPUT: (arch.vocabulary.input_label, 0), Role.OUTPUT: (arch.vocabulary.output_label, last)}
    for role, (label, place) in names.items():
        found = [u for u, layer in enumerate(arch.layers) if layer.label == label]
        if found != [place]:
            where = "first" if place == 0 else "last"
            got = _some(found) or "none"
            message = f"the {role} ({label}) must be the {where} layer and the only one of its label, got layers: {got}"
            yield Violation(f"one {role}", message, place)
    for u in range(1, last + 1):
        if not arch.parents[u]:
            message = f"layer {u} ({arch.layers[u].label}) has no parents, so nothing from the input reaches it"
            yield Violation("connected", message, u)
    for u in range(last):
        if not arch.children[u]:
            message = f"layer {u} ({arch.layers[u].label}) has no children, so nothing it computes reaches the output"
            yield Violation("connected", message, u)


def _decision_violations(arch: Architecture) -> Iterator[Violation]:
    """Parents of the output are exactly the decision layers, and decision layers feed nothing else."""
    if not arch.vocabulary.decision_labels:
        return
    last = len(arch.layers) - 1
    allowed = " or ".join(arch.vocabulary.decision_labels)
    for u in arch.parents[last]:
        if arch.role(u) is not Role.DECISION:
            message = f"layer {u} ({arch.layers[u].label}) feeds the output; only decision layers ({allowed}) may"
            yield Violation("decision layers", message, u)
    for u in arch.decision_layers:
        if arch.children[u] != (last,):
            others = [v for v in arch.children[u] if v != last]
            message = (
                f"layer {u} ({arch.layers[u].label}) is a decision layer and feeds only the output ({last}); "
                f"it also feeds {_some(others)}"
            )
            yield Violation("decision layers", message, u)


def _signal_violations(arch: Architecture) -> Iterator[Violation]:
    """What may follow the input, no image layer behind a vector, one image size where images are concatenated."""
    from nasbot.architecture.image_size import downsampling

    labels = [arch.vocabulary.by_name[layer.label] for layer in arch.layers]
    for u in arch.children[0]:
        if not labels[u].may_follow_input:
            allowed = _some(
                label.name
                for label in arch.vocabulary.labels
                if label.may_follow_input and label.role in (Role.PROCESSING, Role.DECISION)
            )
            message = f"layer {u} ({labels[u].name}) may not follow the input; expected one of {allowed}"
            yield Violation("after the input", message, u)
    for u, label in enumerate(labels):
        if label.refuses_images:
            for p in arch.parents[u]:
                if labels[p].emits is Signal.IMAGE:
                    parent = f"its parent {p} ({labels[p].name})"
                    message = f"layer {u} ({label.name}) takes vectors, but {parent} emits images"
                    yield Violation("images", message, u)
                    return
        if label.takes is Signal.IMAGE:
            for p in arch.parents[u]:
                if labels[p].emits is not Signal.IMAGE:
                    message = (
                        f"layer {u} ({label.name}) takes images, but its parent {p} ({labels[p].name}) emits a vector"
                    )
                    yield Violation("images", message, u)
                    return
    factors = downsampling(arch)
    for u, label in enumerate(labels):
        if label.takes is Signal.IMAGE and len({factors[p] for p in arch.parents[u]}) > 1:
            sizes = _some(f"{p}: {_part(factors[p])}" for p in arch.parents[u])
            message = (
                f"layer {u} ({label.name}) concatenates its parents, so their images must have one size; "
                f"as parts of the input's size they are {{{sizes}}}"
            )
            yield Violation("image size", message, u)

"""Section 2.2: a network as a value, a directed acyclic graph of layers.

``Architecture`` is frozen and valid from birth: one input, one output, every layer on a path between them, decision
layers and image sizes as its vocabulary demands. To change a network, build another. Two networks are equal when they
are the same up to the numbering of their layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nasbot._display import display
from nasbot.architecture import codec
from nasbot.architecture.labels import Role, Vocabulary
from nasbot.architecture.layer import MAX_EDGES, MAX_LAYERS, MAX_UNITS, Edge, Layer
from nasbot.architecture.rules import check_numbering, checked, raise_if_any, topological_order
from nasbot.architecture.vocabularies import vocabulary_of
from nasbot.errors import Violation, VocabularyError

if TYPE_CHECKING:
    from nasbot.architecture.paths import PathLengths


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Architecture:
    """A layer graph: layers in topological order, input first and output last, edges as index pairs.

    Raises InvalidArchitectureError, naming layer, rule and values, unless every rule of the vocabulary holds.
    """

    vocabulary: Vocabulary
    layers: tuple[Layer, ...]
    edges: frozenset[Edge]
    parents: tuple[tuple[int, ...], ...]  # for each layer the layers that feed it, ascending
    children: tuple[tuple[int, ...], ...]  # for each layer the layers it feeds, ascending
    downsampling: tuple[int | None, ...]  # by how much the image leaving each layer has shrunk; None: it is a vector

    def __init__(self, kind: str | Vocabulary, layers: Iterable[Layer], edges: Iterable[Edge]) -> None:
        vocabulary = vocabulary_of(kind)
        given, pairs = _plain_parts(layers, edges)
        raise_if_any(_shape_violations(given, pairs))
        found = checked(vocabulary, given, pairs, max_units=MAX_UNITS)
        vars(self).update(vocabulary=vocabulary, edges=pairs, **found._asdict())
        _keep_rules(self)

    @classmethod
    def in_any_order(cls, kind: str | Vocabulary, layers: Iterable[Layer], edges: Iterable[Edge]) -> Architecture:
        """The same, for layers numbered in any order: they are renumbered topologically, ties by the given order."""
        given, pairs = _plain_parts(layers, edges)
        raise_if_any(_shape_violations(given, pairs))
        check_numbering(len(given), pairs)
        order = topological_order(len(given), pairs)
        position = {u: i for i, u in enumerate(order)}
        return cls(kind, (given[u] for u in order), ((position[u], position[v]) for u, v in pairs))

    def with_units(self, units: Mapping[int, int]) -> Architecture:
        """The same network with these units in these layers.

        Raises as the constructor does, and costs a fifth of it: nothing that units have no part in is checked again.
        """
        layers, by_name = list(self.layers), self.vocabulary.by_name
        for u, n_units in units.items():
            label = by_name[layers[u].label]
            layers[u] = Layer(label.name, n_units, layers[u].stride, layers[u].attributes)
            if not label.takes_units or type(n_units) is not int or not 1 <= n_units <= MAX_UNITS:
                return Architecture(self.vocabulary, layers, self.edges)
        changed = object.__new__(Architecture)
        for shared in ("vocabulary", "edges", "parents", "children", "downsampling"):
            vars(changed)[shared] = getattr(self, shared)
        vars(changed)["layers"] = tuple(layers)
        _keep_rules(changed)
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
        return cls(*codec.parts_of(record, vocabulary))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that ``from_dict`` reads back exactly."""
        return codec.plain(self.kind, self.layers, self.edges)

    @classmethod
    def from_json(cls, text: str | bytes, *, vocabulary: Vocabulary | None = None) -> Architecture:
        """Read one network from JSON, strictly and within fixed bounds; never runs code."""
        return cls(*codec.parts_of_json(text, vocabulary))

    def to_json(self) -> str:
        """One network as versioned JSON."""
        return codec.to_json(self.kind, self.layers, self.edges)

    @classmethod
    def load(cls, path: str | Path, *, vocabulary: Vocabulary | None = None) -> Architecture:
        """Read a network from a JSON file; errors name the file."""
        content = codec.read(path)
        with codec.naming(path):
            return cls.from_json(content, vocabulary=vocabulary)

    def save(self, path: str | Path) -> None:
        """Write the network to a JSON file."""
        codec.write(path, self.to_json())

    # -- seeing ------------------------------------------------------------------------------------------------------

    def draw(self, path: str | Path, **options: Any) -> Path:
        """Draw the network in the manner of the paper's figures; the ending of ``path`` (.svg, .png) says how."""
        drawn: Path = display("network.draw")(self, path, **options)
        return drawn

    def _repr_svg_(self) -> str:
        return str(display("network.svg")(self))

    def __repr__(self) -> str:
        return f"<Architecture {self.kind}: {self.depth}, {len(self.edges)} edges>"

    @property
    def depth(self) -> str:
        """For people: "3 hidden layers" (those that process), or "linear model" where there are only decisions."""
        n = len(self.processing_layers)
        return f"{n} hidden layer{'s' * (n != 1)}" if n or not self.decision_layers else "linear model"

    def __str__(self) -> str:
        lines = [repr(self)]
        for u, layer in enumerate(self.layers):
            fed_by = ", ".join(str(p) for p in self.parents[u])
            lines.append((f"{u:4d}  {layer!s:<18} " + (f"<- {fed_by}" if fed_by else "")).rstrip())
        return "\n".join(lines)


def _plain_parts(layers: Iterable[Layer], edges: Iterable[Edge]) -> tuple[tuple[Layer, ...], frozenset[Edge]]:
    """Layers and edges as what they are said to be, or an error that says which is not."""
    given = tuple(layers)
    for u, layer in enumerate(given):
        if not isinstance(layer, Layer) or not isinstance(layer.label, str):  # type: ignore[redundant-expr]
            got = repr(layer)[:60]
            raise_if_any([Violation("layers", f"layer {u} must be a Layer whose label is a string, got {got}", u)])
    try:
        # A set that grew has room for up to four times its edges; the copy of one has room for twice as many.
        pairs: frozenset[Edge] = frozenset(set(map(tuple, edges)))  # type: ignore[arg-type]
    except TypeError as error:
        raise_if_any([Violation("edges", f"edges must be pairs of layer numbers: {error}")])
        raise
    if wrong := [pair for pair in pairs if len(pair) != 2]:  # type: ignore[redundant-expr]
        raise_if_any([Violation("edges", f"edges must be pairs of layer numbers, got {repr(wrong[0])[:60]}")])
    return given, pairs


def _keep_rules(arch: Architecture) -> None:
    """That the network keeps the rules of its vocabulary's own, each of which gives the violations it finds."""
    for rule in arch.vocabulary.rules:
        found: object = rule(arch)
        if not isinstance(found, Iterable):
            name = getattr(rule, "__name__", type(rule).__name__)
            expected = "expected violations, yielded or in a list that is empty for a valid network"
            raise VocabularyError(
                f"vocabulary {arch.vocabulary.name}: rule {name}: {expected}, got {type(found).__name__}"
            )
        raise_if_any(found)


def _shape_violations(layers: tuple[Layer, ...], edges: frozenset[Edge]) -> Iterator[Violation]:
    if len(layers) < 3:
        yield Violation("layers", f"a network has at least 3 layers (input, one more, output), got {len(layers)}")
    if len(layers) > MAX_LAYERS:
        yield Violation("layers", f"a network has at most {MAX_LAYERS} layers, got {len(layers)}")
    if len(edges) > MAX_EDGES:
        yield Violation("edges", f"a network has at most {MAX_EDGES} edges, got {len(edges)}")

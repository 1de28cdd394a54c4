"""Random valid networks of any vocabulary, valid by construction: nothing is drawn and thrown away.

Layers are grown one after the other. Each takes its first parent mostly from the open ends of the graph, sometimes from
further back (a branch), and then perhaps more parents (a merge or a skip) among those whose signal and image size fit.
Degrees, edges and units stay inside the search space of Appendix B.3, so the networks look like mutated ones.

Every random decision goes through ``Choices``, for which 0 always means the plainer network: numpy's generator answers
here, and hypothesis answers in ``strategies.py``, where that order is what makes failures shrink to short chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from nasbot.architecture import Architecture, Edge, Label, Layer, Role, Signal, Vocabulary, vocabulary_of
from nasbot.architecture.attributes import NORMS, Attributes, kept_by
from nasbot.architecture.layer import MAX_LAYERS
from nasbot.errors import InvalidArchitectureError, OptionError, VocabularyError

MAX_DEGREE = 5  # in and out, App. B.3
MAX_EDGES = 200  # App. B.3
MAX_OPEN_ENDS = 4  # below MAX_DEGREE, so that one decision layer can close them all
MAX_DECISIONS = 3
MAX_SHRINKING = 32  # images of 32 pixels, the usual ones, end as single pixels
UNIT_SCALES = tuple(1 << k for k in range(3, 10))  # a scale s stands for s..2s: 8..1024 in all
TINY_UNITS = 7

# Chances in percent.
BRANCH = 18
MERGE = 30
SKIP = 15
SHRINK = 15
ROUND_UNITS = 50
TINY = 5
SECOND_DECISION = 35
IMAGES_END = 0.7  # the part of the layers after which images may become vectors

RULE_ATTEMPTS = 200

T = TypeVar("T")


class Choices(Protocol):
    """A source of decisions. ``integer`` includes both bounds; lower answers mean plainer networks."""

    def integer(self, low: int, high: int) -> int: ...


class GeneratorChoices:
    """Decisions by a numpy generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def integer(self, low: int, high: int) -> int:
        """Uniform over low..high."""
        return int(self.rng.integers(low, high, endpoint=True))


def random_architecture(kind: str | Vocabulary, *, rng: np.random.Generator, n_layers: int) -> Architecture:
    """A valid network of exactly ``n_layers`` layers; equal generators give equal networks.

    Units lie in 8..1024, degrees are at most 5 and edges at most 200, as in the search space of Appendix B.3. Where the
    vocabulary has rules of its own, networks are drawn until one keeps them; VocabularyError where none of 200 does.
    """
    vocabulary = vocabulary_of(kind)
    for _ in range(RULE_ATTEMPTS):
        try:
            return grow(vocabulary, n_layers, GeneratorChoices(rng))
        except InvalidArchitectureError:
            if not vocabulary.rules:
                raise
    raise VocabularyError(
        f"vocabulary {vocabulary.name}: none of {RULE_ATTEMPTS} random networks of {n_layers} layers kept its rules"
    )


def with_random_attributes(arch: Architecture, *, rng: np.random.Generator, share: float = 0.5) -> Architecture:
    """The same network, about this share of its layers with attributes of their own, wherever they may have them."""

    def drawn(layer: Layer) -> Layer:
        if rng.random() >= share:
            return layer
        own = Attributes(
            float(rng.choice([0.05, 0.1, 0.3, 0.7])), str(rng.choice(NORMS)), float(2.0 ** rng.integers(-6, 7))
        )
        return Layer(layer.label, layer.units, layer.stride, kept_by(own, arch.vocabulary[layer.label]))

    return Architecture(arch.vocabulary, map(drawn, arch.layers), arch.edges)


def relabelled(arch: Architecture, *, rng: np.random.Generator) -> Architecture:
    """The same network with its layers numbered in another topological order, drawn at random."""
    waiting = [len(parents) for parents in arch.parents]
    free, order = [0], []
    while free:
        order.append(u := free.pop(int(rng.integers(len(free)))))
        for v in arch.children[u]:
            waiting[v] -= 1
            if not waiting[v]:
                free.append(v)
    place = {u: i for i, u in enumerate(order)}
    return Architecture(arch.vocabulary, (arch.layers[u] for u in order), ((place[u], place[v]) for u, v in arch.edges))


def smallest_size(vocabulary: Vocabulary) -> int:
    """The fewest layers a network of this vocabulary can have."""
    decisions = [label for label in vocabulary.labels if label.role is Role.DECISION]
    if not decisions:
        return 3
    signal = vocabulary[vocabulary.input_label].emits
    return 3 if any(label.may_follow_input and _accepts(label, signal) for label in decisions) else 4


def grow(vocabulary: Vocabulary, n_layers: int, choices: Choices, *, tiny_units: bool = False) -> Architecture:
    """The network that these choices describe; with ``tiny_units`` now and then a layer of 1..7 units."""
    smallest = smallest_size(vocabulary)
    if not smallest <= n_layers <= MAX_LAYERS:
        raise OptionError(
            f"n_layers: a network of kind {vocabulary.name} has {smallest} to {MAX_LAYERS} layers, got {n_layers}"
        )
    growth = _Growth(vocabulary, n_layers, choices, tiny_units=tiny_units)
    n_decisions = growth.draw_decisions(smallest)
    n_processing = n_layers - 2 - n_decisions
    for u in range(1, n_processing + 1):
        growth.add_processing_layer(progress=u / n_processing)
    growth.close(n_decisions)
    return Architecture(vocabulary, growth.layers, growth.edges)


def _accepts(label: Label, signal: Signal) -> bool:
    """Whether a layer of this label may stand behind one that emits this."""
    return label.takes is Signal.ANY or label.takes is signal


@dataclass
class _Growth:
    """A network under construction: everything up to the last layer added is final."""

    vocabulary: Vocabulary
    n_layers: int
    choices: Choices
    tiny_units: bool
    layers: list[Layer] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    shrunk: list[int] = field(default_factory=list)  # by how much the image leaving each layer is smaller; 1: vector
    n_children: list[int] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    behind: list[list[Label]] = field(default_factory=list)  # the processing labels that may follow each layer

    def __post_init__(self) -> None:
        self._append(Layer(self.vocabulary.input_label), ())

    # -- decisions -----------------------------------------------------------------------------------------------

    def chance(self, percent: int) -> bool:
        """True with this chance; the plainest choice is False."""
        return self.choices.integer(0, 99) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, the plainest first."""
        return options[self.choices.integer(0, len(options) - 1)] if len(options) > 1 else options[0]

    def draw_decisions(self, smallest: int) -> int:
        """How many decision layers there will be; several only where there is room for them."""
        if not self.vocabulary.decision_labels:
            return 0
        n = 1
        while n < min(MAX_DECISIONS, 1 + self.n_layers - smallest) and self.chance(SECOND_DECISION):
            n += 1
        return n

    # -- growing ---------------------------------------------------------------------------------------------------

    def add_processing_layer(self, *, progress: float) -> None:
        """One more layer behind those there are."""
        parent = self._first_parent()
        label = self._label_behind(parent, progress)
        units = self._units() if label.takes_units else None
        layer = Layer(label.name, units, self._stride(label, parent))
        self._append(layer, (parent, *self._more_parents(label, parent)))

    def close(self, n_decisions: int) -> None:
        """Decision layers behind all open ends, and the output behind them."""
        ends = self._open_ends()
        if not n_decisions:
            self._append(Layer(self.vocabulary.output_label), ends)
            return
        feeds = [[end for i, end in enumerate(ends) if i % n_decisions == k] for k in range(n_decisions)]
        for parents in feeds:
            first = parents or [self.pick(ends)]
            label = self._label_among(self._decision_labels(first), first[0])
            self._append(Layer(label.name), (*first, *self._more_parents(label, *first)))
        n = len(self.layers)
        self._append(Layer(self.vocabulary.output_label), range(n - n_decisions, n))

    def _append(self, layer: Layer, parents: Sequence[int]) -> None:
        u, label = len(self.layers), self.vocabulary[layer.label]
        entering = self.shrunk[parents[0]] if parents else 1
        is_image = label.emits is Signal.IMAGE
        self.layers.append(layer)
        self.labels.append(label)
        self.shrunk.append(entering * (layer.stride or label.shrinks) if is_image else 1)
        self.n_children.append(0)
        self.behind.append(self._labels_behind(u, Role.PROCESSING))
        for p in parents:
            self.n_children[p] += 1
            self.edges.append((p, u))

    # -- what fits ---------------------------------------------------------------------------------------------------

    def _open_ends(self) -> list[int]:
        """Layers nothing follows yet, the latest first."""
        return [u for u in range(len(self.layers) - 1, -1, -1) if not self.n_children[u]]

    def _first_parent(self) -> int:
        ends = self._open_ends()
        if len(ends) < MAX_OPEN_ENDS and self.chance(BRANCH):
            free = [u for u in range(len(self.layers) - 1, -1, -1) if self.n_children[u] < MAX_DEGREE]
            if behind := [u for u in free if self.behind[u]]:
                return self.pick(behind)
        return self.pick([end for end in ends if self.behind[end]] or ends)

    def _more_parents(self, label: Label, *have: int) -> list[int]:
        """Other open ends (merges) and perhaps one earlier layer (a skip), where signal and image size fit."""
        room = MAX_DEGREE - len(have)
        if self._edges_spent(len(have)) or len(self.layers) == 1:
            return []
        others = [u for u in range(len(self.layers) - 1, -1, -1) if u not in have and self._joins(u, label, have[0])]
        more = [u for u in others if not self.n_children[u] and self.chance(MERGE)]
        skips = [u for u in others if 0 < self.n_children[u] < MAX_DEGREE]
        if skips and self.chance(SKIP):
            more.append(self.pick(skips))
        return more[:room]

    def _edges_spent(self, n_parents: int) -> bool:
        """Whether extra parents here could leave too few edges for the layers to come."""
        still_needed = (self.n_layers - len(self.layers)) + MAX_OPEN_ENDS + MAX_DECISIONS
        return len(self.edges) + n_parents + MAX_DEGREE + still_needed > MAX_EDGES

    def _joins(self, u: int, label: Label, first: int) -> bool:
        if u == 0 and not label.may_follow_input:
            return False
        same_size = label.takes is not Signal.IMAGE or self.shrunk[u] == self.shrunk[first]
        return _accepts(label, self.labels[u].emits) and same_size and self.labels[u].role is not Role.DECISION

    def _fits(self, parent: int, stride: int) -> bool:
        return stride == 1 or self.shrunk[parent] * stride <= MAX_SHRINKING

    def _labels_behind(self, u: int, role: Role) -> list[Label]:
        """The labels of this role that may stand behind layer u, in the vocabulary's order."""
        return [
            label
            for label in self.vocabulary.labels
            if label.role is role
            and _accepts(label, self.labels[u].emits)
            and (u > 0 or label.may_follow_input)
            and self._fits(u, label.shrinks)
        ]

    def _decision_labels(self, parents: Sequence[int]) -> list[Label]:
        """The decision labels that may stand behind all of these."""
        return [label for label in self._labels_behind(parents[0], Role.DECISION) if self._follows_all(label, parents)]

    def _follows_all(self, label: Label, parents: Sequence[int]) -> bool:
        return all(label in self._labels_behind(p, Role.DECISION) for p in parents)

    def _label_behind(self, parent: int, progress: float) -> Label:
        """Images stay images until most layers are there, and most layers do not shrink them."""
        options = self.behind[parent]
        if self.labels[parent].emits is Signal.IMAGE and progress < IMAGES_END:
            options = [label for label in options if label.emits is Signal.IMAGE] or options
        shrinking = self.chance(SHRINK)
        wanted = [label for label in options if (label.shrinks > 1) == shrinking]
        return self._label_among(wanted or options, parent)

    def _label_among(self, options: Sequence[Label], parent: int) -> Label:
        if not options:
            raise VocabularyError(
                f"vocabulary {self.vocabulary.name}: no label may stand behind layer {parent} "
                f"({self.layers[parent].label}), which emits {self.labels[parent].emits}"
            )
        return self.pick(options)

    def _stride(self, label: Label, parent: int) -> int | None:
        if not label.strides:
            return None
        fitting = [stride for stride in label.strides if self._fits(parent, stride)]
        return self.pick(fitting) if fitting and self.chance(SHRINK) else label.strides[0]

    def _units(self) -> int:
        if self.tiny_units and self.chance(TINY):
            return 1 + self.choices.integer(0, TINY_UNITS - 1)
        scale = self.pick(UNIT_SCALES)
        return scale + self.choices.integer(0, scale) if self.chance(100 - ROUND_UNITS) else scale

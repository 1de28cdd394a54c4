"""Networks as the arrays that the solver reads: packed once, usable in any number of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from tempfile import TemporaryFile
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture, MassRules, Role, Vocabulary
from nasbot.architecture.masses import LARGEST_MASS, check_finite
from nasbot.architecture.penalties import NEVER_MATCH
from nasbot.errors import VocabularyError
from nasbot.otmann._kernels.lanes import HOPS, LANES
from nasbot.otmann.costs import attribute_columns, attribute_cost
from nasbot.otmann.presets import RuleSet
from nasbot.otmann.solver import WORK_PER_PACKED_LAYER, solver_for

N_KINDS_AND_ENDS = 6
ROWS_IN_CACHE = 32  # of costs against some thousand layers
_ROLE_NUMBER = {Role.INPUT: 0, Role.PROCESSING: 1, Role.DECISION: 2, Role.OUTPUT: 3}

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Hops = NDArray[np.int32]
Number = TypeVar("Number", np.float64, np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class PackedNetworks:
    """Layers of many networks, sorted by exchange class, then network, then mass.

    Networks stand by ascending total mass, the layers of one class by descending mass: the solver needs a fifth fewer
    pivots when the lighter network chooses first, and its heaviest layer before the others.

    order (networks,)               the i-th of these networks is number order[i] of those packed
    hops (4 * groups, layers)       shortest and longest path lengths, which are whole numbers, of each group of layers
    walks (2 * groups, layers)      those of random walks, divided by the number of all path lengths
    masses, labels (layers,)        label numbers index the vocabulary
    label_costs (labels, layers)    penalty of each label against each layer
    attributes (3, layers)          of layers, as ``costs.attribute_columns`` has them; None: no layer has any
    offsets (classes, networks + 1) where each network's layers of each class begin and end
    total_masses (networks,)        tm(G), in the order in which the networks were packed
    Behind the layers of hops, walks and label_costs there is room for the kernel to read on.
    """

    vocabulary: Vocabulary
    rules: RuleSet
    order: Integers
    hops: Hops
    walks: Floats
    masses: Floats
    labels: Integers
    label_costs: Floats
    offsets: Integers
    total_masses: Floats
    attributes: Floats | None = None

    def __len__(self) -> int:
        return len(self.total_masses)

    def label_rows_against(self, other: PackedNetworks) -> tuple[Integers, Floats]:
        """For each layer of these a row of costs against all layers of ``other``, and the rows.

        A row for each label, unless layers have attributes: then one for each label and attributes that occur here.
        """
        if self.attributes is None and other.attributes is None:
            return self.labels, other.label_costs
        kinds, row = self._kinds
        options, option = _different(kinds[1:])
        more = attribute_cost(options, other.attributes, self.rules.attribute_penalties)
        assert more is not None  # one of the two has attributes
        costs = other.label_costs[kinds[0].astype(np.int64)]
        for begin in range(0, len(costs), ROWS_IN_CACHE):
            rows = costs[begin : begin + ROWS_IN_CACHE, : len(other.labels)]
            rows += more[option[begin : begin + ROWS_IN_CACHE]]
            np.minimum(rows, NEVER_MATCH, out=rows)
        return row, costs

    @cached_property
    def _kinds(self) -> tuple[Floats, Integers]:
        """The different labels with attributes, (4, kinds), and which of them each layer has; asked for often."""
        own = np.zeros((3, len(self.labels))) if self.attributes is None else self.attributes
        return _different(np.vstack([self.labels, own]))

    @cached_property
    def places(self) -> tuple[Integers, Integers]:
        """Where the layers of each class begin and how many there are, (classes, networks) in the order of packing."""
        rank = np.argsort(self.order)
        return self.offsets[:, rank], np.diff(self.offsets, axis=1)[:, rank]

    def class_masses(self) -> Floats:
        """The mass (networks, classes) that each network has in each exchange class, in the order of packing."""
        sums = np.concatenate([[0.0], np.cumsum(self.masses)])[self.offsets]
        masses = np.empty((len(self), len(self.offsets)))
        masses[self.order] = np.diff(sums, axis=1).T
        return masses

    def taken(self, numbers: Integers) -> PackedNetworks:
        """Some of these networks, in this order; nothing is computed again."""
        return joined([self], numbers)

    def slim(self) -> PackedNetworks:
        """The same without ``label_costs``, which are half of it: to keep, and to take from."""
        return replace(self, label_costs=np.zeros((0, 0)))

    def mapped(self) -> PackedNetworks:
        """The same with its layers in a temporary file that is mapped into memory: the system may take pages back."""
        return replace(
            self,
            hops=_in_file(self.hops),
            walks=_in_file(self.walks),
            masses=_in_file(self.masses),
            labels=_in_file(self.labels),
            label_costs=_in_file(self.label_costs),
        )


def joined(packs: Sequence[PackedNetworks], numbers: Integers | None = None) -> PackedNetworks:
    """The networks of several packs, one pack after the other, as one; or those with these numbers among them."""
    first = packs[0]
    n_layers = np.cumsum([0, *(len(pack.masses) for pack in packs)])

    def of_all(arrays: Sequence[NDArray[Number]]) -> NDArray[Number]:
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=-1)

    def of_layers(arrays: Sequence[NDArray[Number]]) -> NDArray[Number]:
        if len(arrays) == 1:
            return arrays[0]  # with the room behind the layers, since a part of it would have to be copied
        return of_all([array[:, : len(pack.masses)] for array, pack in zip(arrays, packs, strict=True)])

    begin = of_all(
        [
            pack.places[0] + layer_0 if layer_0 else pack.places[0]
            for pack, layer_0 in zip(packs, n_layers[:-1], strict=True)
        ]
    )
    count, total_masses = of_all([pack.places[1] for pack in packs]), of_all([pack.total_masses for pack in packs])
    if numbers is not None:
        begin, count, total_masses = begin[:, numbers], count[:, numbers], total_masses[numbers]
    order = np.argsort(total_masses, kind="stable")
    begin, count = begin[:, order].ravel(), count[:, order].ravel()
    ends = np.cumsum(count)
    layers = np.arange(ends[-1]) + np.repeat(begin - ends + count, count)
    ends = ends.reshape(len(first.offsets), -1)
    labels = of_all([pack.labels for pack in packs])[layers]

    return PackedNetworks(
        first.vocabulary,
        first.rules,
        order,
        _with_room(of_layers([pack.hops for pack in packs]), layers),
        _with_room(of_layers([pack.walks for pack in packs]), layers),
        of_all([pack.masses for pack in packs])[layers],
        labels,
        _with_room(first.rules.penalties_for(first.vocabulary).matrix, labels),
        np.column_stack([np.concatenate([[0], ends[:-1, -1]]), ends]),
        total_masses,
        _attributes_of(packs, layers),
    )


def _attributes_of(packs: Sequence[PackedNetworks], layers: Integers) -> Floats | None:
    if all(pack.attributes is None for pack in packs):
        return None
    every = [np.zeros((3, len(x.masses))) if x.attributes is None else x.attributes for x in packs]
    taken = np.concatenate(every, axis=1)[:, layers]
    return taken if taken.any() else None


def shared_vocabulary(archs: Sequence[Architecture]) -> Vocabulary:
    """The one vocabulary of all these networks."""
    first = archs[0].vocabulary
    for i, arch in enumerate(archs):
        if arch.vocabulary is not first and arch.vocabulary != first:
            raise VocabularyError(
                f"only networks of one vocabulary can be compared: network 0 is {first.name}, network {i} is "
                f"{arch.kind}" + (" (another vocabulary of that name)" if arch.kind == first.name else "")
            )
    return first


def pack(archs: Sequence[Architecture], rules: RuleSet) -> PackedNetworks:
    """Masses and path lengths of every network, computed here and nowhere again."""
    vocabulary = shared_vocabulary(archs)
    penalties = rules.penalties_for(vocabulary)
    n_classes = max(penalties.exchange_classes) + 1
    n_groups = 1 + len(vocabulary.groups)
    layer_offsets = _offsets([len(arch.layers) for arch in archs])
    n_layers = layer_offsets[-1]
    features = np.zeros((N_KINDS_AND_ENDS * n_groups, n_layers))
    masses, labels = np.zeros(n_layers), np.zeros(n_layers, np.int64)
    offsets = np.zeros((n_classes, len(archs) + 1), np.int64)
    total_masses = np.zeros(len(archs))
    label_numbers, units = _layers(archs, vocabulary)
    tables = (*_label_tables(vocabulary, rules.mass_rules), np.array(penalties.exchange_classes, np.int64))
    kinds = _kinds(archs, label_numbers)
    if kinds is not None:  # the kernel takes a label with attributes for a label
        label_numbers = kinds.of_layers
        tables = tuple(table[kinds.labels] for table in tables)  # type: ignore[assignment]
    role, factor, fixed_mass, group, exchange_classes = tables
    with np.errstate(over="ignore"):  # as compiled code does; masses beyond floating point are refused below
        n_kept = solver_for(WORK_PER_PACKED_LAYER * n_layers).pack_networks(
            layer_offsets,
            label_numbers,
            units,
            _offsets([len(arch.edges) for arch in archs]),
            np.array(list(chain.from_iterable(sorted(arch.edges) for arch in archs)), np.int64).reshape(-1, 2),
            role,
            factor,
            fixed_mass,
            group,
            n_groups,
            exchange_classes,
            n_classes,
            float(rules.mass_rules.nonprocessing_mass),
            float(rules.mass_rules.nonprocessing_floor),
            0.0 if rules.mass_rules.logarithmic else float(rules.mass_rules.exponent),
            features,
            masses,
            labels,
            offsets,
            total_masses,
        )
    for i in np.flatnonzero(~(total_masses <= LARGEST_MASS)):
        check_finite(float(total_masses[i]), f"network {i}")
    order = np.argsort(total_masses, kind="stable")
    counts = np.diff(offsets, axis=1)
    rank = np.empty(len(archs), np.int64)
    rank[order] = np.arange(len(archs))
    network = np.repeat(np.tile(rank, n_classes), counts.ravel())
    class_number = np.repeat(np.arange(n_classes), counts.sum(axis=1))
    by_group = features.reshape(n_groups, N_KINDS_AND_ENDS, n_layers)
    layers = np.lexsort((-masses[:n_kept], network, class_number))
    ends = np.cumsum(counts[:, order]).reshape(counts.shape)
    labels, attributes = labels[layers], None
    if kinds is not None:
        labels, attributes = kinds.labels[labels], kinds.attributes[:, labels]
    return PackedNetworks(
        vocabulary,
        rules,
        order,
        _with_room(by_group[:, :HOPS].astype(np.int32), layers),
        _with_room(by_group[:, HOPS:] / len(features), layers),
        masses[layers],
        labels,
        _with_room(penalties.matrix, labels),
        np.column_stack([np.concatenate([[0], ends[:-1, -1]]), ends]),
        total_masses,
        attributes,
    )


def _in_file(array: NDArray[Number]) -> NDArray[Number]:
    if not array.size:
        return array
    with TemporaryFile(prefix="nasbot-pack-") as file:  # the map outlives it, and it has no name to be removed
        array.tofile(file)
        mapped = np.memmap(file, array.dtype, "c", shape=array.shape)  # pages are read as they are looked at
    return mapped.view(np.ndarray)


class _Kinds(NamedTuple):
    """The different labels with attributes among some layers."""

    labels: Integers  # (kinds,)
    attributes: Floats  # (3, kinds)
    of_layers: Integers  # (layers,)


def _kinds(archs: Sequence[Architecture], labels: Integers) -> _Kinds | None:
    attributes = attribute_columns(archs)
    if attributes is None:
        return None
    kinds, of_layers = _different(np.vstack([labels, attributes]))
    return _Kinds(kinds[0].astype(np.int64), kinds[1:], of_layers)


def _different(columns: Floats) -> tuple[Floats, Integers]:
    """The different ones of these columns, sorted, and which of them each is."""
    found, at = np.unique(columns, axis=1, return_inverse=True)
    return found, at.reshape(-1).astype(np.int64)


def _with_room(rows: NDArray[Number], columns: Integers) -> NDArray[Number]:
    """These columns, and zeros behind them, since the kernel reads whole lanes from any column on."""
    rows = rows.reshape(-1, rows.shape[-1])
    taken = np.zeros((len(rows), len(columns) + LANES), rows.dtype)
    np.take(rows, columns, axis=1, out=taken[:, : len(columns)], mode="clip")  # which needs no buffer
    return taken


def _offsets(lengths: Sequence[int]) -> Integers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _layers(archs: Sequence[Architecture], vocabulary: Vocabulary) -> tuple[Integers, Integers]:
    index = vocabulary.index
    labels = [index[layer.label] for arch in archs for layer in arch.layers]
    units = [-1 if layer.units is None else layer.units for arch in archs for layer in arch.layers]
    return np.array(labels, np.int64), np.array(units, np.int64)


def _label_tables(vocabulary: Vocabulary, mass_rules: MassRules) -> tuple[Integers, Floats, Floats, Integers]:
    """Role, mass factor, fixed mass (NaN: none) and group number (0: none) of each label."""
    labels = vocabulary.labels
    group_number = {group: 1 + g for g, group in enumerate(vocabulary.groups)}
    return (
        np.array([_ROLE_NUMBER[label.role] for label in labels], np.int64),
        np.array([mass_rules.factor(label) for label in labels], np.float64),
        np.array([np.nan if label.fixed_mass is None else label.fixed_mass for label in labels], np.float64),
        np.array([group_number[label.group] if label.group else 0 for label in labels], np.int64),
    )

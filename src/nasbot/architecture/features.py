"""Numbers that say what a network is, in blocks: the third term of the kernel compares networks by them.

size     logarithms of the mass and, where the shape of samples is known and labels take units, of parameters and FLOPs;
         not where all layers weigh the same
shape    logarithms of the longest and the shortest path, of the numbers of layers, skips and decision layers, of the
         least, largest and mean width, and of the mean ones behind the input and before the decision. Where no label
         takes units, as in cells: for each set of groups the shortest, the longest and the number of paths through
         layers of these groups alone, and how many such layers there are on a path at least and at most
labels   the share of each label; where no label takes units, how many layers have it
own      what the vocabulary's own ``features`` say of a network

All by the fields of labels, never by their names, so every vocabulary has them. Layers whose label ``cuts`` pass
nothing on, so neither they nor what leads nowhere without them is counted. Logarithms are natural, counts are plain,
and no number depends on other networks: the scale of a block is the belief's to find (``gp/rows.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture.labels import Role, Vocabulary
from nasbot.architecture.resources import resources
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.architecture.graph import Architecture

Floats = NDArray[np.float64]

ALL_SETS_UP_TO = 4  # groups; of more, each alone, all but one, and all


@dataclass(frozen=True)
class FeatureMap:
    """Features of networks of one vocabulary; FLOPs and parameters are among them where ``input_shape`` is given."""

    vocabulary: Vocabulary
    input_shape: tuple[int, ...] | None = None
    n_outputs: int = 1

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The names of the blocks that networks of this vocabulary have."""
        own = ("own",) if self.vocabulary.features else ()
        return ("size", "shape", "labels", *own) if self._has_sizes else ("shape", "labels", *own)

    def __call__(self, arch: Architecture) -> tuple[Floats, ...]:
        """The numbers of each block."""
        live = _live(arch)
        found: dict[str, Sequence[float] | Floats] = {"labels": self._shares(arch, live)}
        if self._has_sizes:
            found["size"] = self._size(arch)
        found["shape"] = _shape(arch) if self._has_units else self._paths(arch, live)
        if self.vocabulary.features:
            found["own"] = _own(arch)
        return tuple(np.array(found[block], dtype=np.float64) for block in self.blocks)

    @cached_property
    def _has_units(self) -> bool:
        return any(label.takes_units for label in self.vocabulary.labels)

    @cached_property
    def _has_sizes(self) -> bool:
        masses = {label.fixed_mass for label in self.vocabulary.labels if label.role is Role.PROCESSING}
        return self._has_units or len(masses) > 1

    @cached_property
    def _counted(self) -> Mapping[str, int]:
        """Places of the processing labels that do not cut."""
        labels = [x for x in self.vocabulary.labels if x.role is Role.PROCESSING and not x.cuts]
        return {label.name: place for place, label in enumerate(labels)}

    @cached_property
    def _in_sets(self) -> Mapping[str, Floats]:
        """For each processing label that does not cut, which sets of groups (sets,) it is in: 0 or 1."""
        groups = {name: self.vocabulary[name].group or name for name in self._counted}
        names = list(dict.fromkeys(groups.values()))
        sizes = range(1, len(names) + 1) if len(names) <= ALL_SETS_UP_TO else sorted({1, len(names) - 1, len(names)})
        sets = [chosen for size in sizes for chosen in combinations(names, size)]
        return {name: np.array([float(group in chosen) for chosen in sets]) for name, group in groups.items()}

    def _shares(self, arch: Architecture, live: Sequence[bool]) -> list[float]:
        counts = [0.0] * len(self._counted)
        for layer, is_live in zip(arch.layers, live, strict=True):
            if is_live and layer.label in self._counted:
                counts[self._counted[layer.label]] += 1.0
        total = max(1.0, sum(counts)) if self._has_units else 1.0
        return [count / total for count in counts]

    def _size(self, arch: Architecture) -> list[float]:
        mass = math.log1p(arch.total_mass)
        if self.input_shape is None or not self._has_units:
            return [mass]
        costs = resources(arch, self.input_shape, self.n_outputs)
        return [mass, math.log1p(costs.parameters), math.log1p(costs.flops)]

    def _paths(self, arch: Architecture, live: Sequence[bool]) -> Floats:
        """Of each set of groups: paths through its layers alone, and its layers on live paths; (5 * sets,)."""
        n_sets = len(next(iter(self._in_sets.values()), ()))
        lengths = [0] * len(arch.layers)  # longest path from the input, dead layers too
        alone = np.zeros((len(arch.layers), 3, n_sets))  # shortest, longest, number
        among = np.zeros((len(arch.layers), 2, n_sets))  # fewest, most
        alone[0, 2] = 1.0
        last = len(arch.layers) - 1
        for u in range(1, len(arch.layers)):
            parents = arch.parents[u]
            hop = u != last
            lengths[u] = max(lengths[p] for p in parents) + hop
            passes = self._in_sets.get(arch.layers[u].label, np.zeros(n_sets)) if hop else np.ones(n_sets)
            before = alone[list(parents)]
            alone[u, 0] = np.where(passes, before[:, 0].min(axis=0) + hop, np.inf)
            alone[u, 1] = np.where(passes, before[:, 1].max(axis=0) + hop, -np.inf)
            alone[u, 2] = passes * before[:, 2].sum(axis=0)
            if reached := [p for p in parents if live[p]]:
                counted = passes if hop else 0.0
                among[u, 0] = among[reached, 0].min(axis=0) + counted
                among[u, 1] = among[reached, 1].max(axis=0) + counted
        none = lengths[-1] + 1.0  # as long as no path can be
        has_path = alone[-1, 2] > 0.0
        fewest = among[-1, 0] if live[-1] else np.full(n_sets, none)
        return np.concatenate(
            [
                np.where(has_path, alone[-1, 0], none),
                np.where(has_path, alone[-1, 1], 0.0),
                np.log1p(alone[-1, 2]),
                fewest,
                among[-1, 1],
            ]
        )


def _live(arch: Architecture) -> list[bool]:
    """Whether each layer is on a path from the input to the output that no label cuts."""
    cutting = {label.name for label in arch.vocabulary.labels if label.cuts}
    if not cutting:
        return [True] * len(arch.layers)
    n = len(arch.layers)
    passes = [layer.label not in cutting for layer in arch.layers]
    reached, useful = [True] * n, [True] * n
    for u in range(1, n):
        reached[u] = passes[u] and any(reached[p] for p in arch.parents[u])
    for u in range(n - 2, -1, -1):
        useful[u] = passes[u] and any(useful[c] for c in arch.children[u])
    return [a and b for a, b in zip(reached, useful, strict=True)]


def _shape(arch: Architecture) -> list[float]:
    """Logarithms of what the head of this file lists for networks with units."""
    n = len(arch.layers)
    shortest, longest = [0] * n, [0] * n
    for u in range(1, n):
        shortest[u] = 1 + min(shortest[p] for p in arch.parents[u])
        longest[u] = 1 + max(longest[p] for p in arch.parents[u])
    widths = [layer.units for layer in arch.layers if layer.units is not None] or [1]
    mean = sum(widths) / len(widths)
    before_the_end = {p for u in arch.decision_layers or (n - 1,) for p in arch.parents[u]}
    ends = (_mean_width(arch, arch.children[0]) or mean, _mean_width(arch, before_the_end) or mean)
    decisions = max(1, len(arch.decision_layers))
    plain = (longest[-1], shortest[-1], n, *ends, min(widths), max(widths), mean, decisions)
    return [*(math.log(number) for number in plain), math.log1p(len(arch.edges) - (n - 1))]


def _mean_width(arch: Architecture, layers: Iterable[int]) -> float:
    """Of those layers that have units; 0 where none has."""
    widths = [units for u in layers if (units := arch.layers[u].units) is not None]
    return sum(widths) / len(widths) if widths else 0.0


def _own(arch: Architecture) -> list[float]:
    """What the vocabulary's own functions say, one after the other."""
    numbers: list[float] = []
    for function in arch.vocabulary.features:
        said = function(arch)
        for number in said if isinstance(said, Sequence) else (said,):
            if not _is_finite(number):
                name = getattr(function, "__qualname__", str(function))
                raise OptionError(
                    f"vocabulary {arch.vocabulary.name}: feature {name} must give finite numbers, got "
                    f"{str(number)[:40]!r} for network {arch.fingerprint[:12]}"
                )
            numbers.append(float(number))
    return numbers


def _is_finite(number: object) -> bool:
    return isinstance(number, int | float | np.number) and math.isfinite(number)

"""d and d_bar of Section 3 between networks, for several structural weights at once.

Wherever a network is asked for, a PyTorch model will do: it is traced first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nasbot._display import display
from nasbot._system import n_cores
from nasbot.errors import OptionError, SolverError, VocabularyError
from nasbot.otmann._kernels.network_simplex import NOT_CONVERGED
from nasbot.otmann.models import Network, as_architecture, several
from nasbot.otmann.packing import PackedNetworks, pack
from nasbot.otmann.presets import RuleSet, rule_set
from nasbot.otmann.solver import Solver, bounding, solver_for

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Networks: TypeAlias = Iterable[Network] | PackedNetworks
_Work: TypeAlias = tuple[Callable[[int, int], None], int]  # what is called with a first and last number, up to an end

# Below about a millisecond of work a second thread costs more than it brings.
WORTH_A_THREAD = 200_000  # pairs times the product of their mean layer counts
CHUNKS_PER_THREAD = 8  # rows of an upper triangle shrink, so threads take small bites


@dataclass(frozen=True, eq=False)
class Distances:
    """d and d_bar, the structural weights along the first axis: (weights, n, m), or (weights,) for one pair."""

    structural_weights: tuple[float, ...]
    d: Floats
    d_bar: Floats

    def __repr__(self) -> str:
        weights = ", ".join(f"{nu:g}" for nu in self.structural_weights)
        if self.d.ndim > 1:
            return f"<Distances {self.d.shape[1]} x {self.d.shape[2]} at structural weights {weights}>"
        values = "; ".join(f"{d:.6g} ({d_bar:.4g})" for d, d_bar in zip(self.d, self.d_bar, strict=True))
        return f"<Distances at structural weights {weights}: d (d_bar) = {values}>"

    def _repr_html_(self) -> str:
        return str(display("distances.html")(self))


@dataclass(frozen=True, init=False)
class Otmann:
    """The distance under one rule set and for fixed structural weights ν."""

    rules: RuleSet
    structural_weights: tuple[float, ...]

    def __init__(self, *, structural_weights: Iterable[float] | None = None, preset: str | RuleSet = "paper") -> None:
        rules = rule_set(preset)
        weights = rules.structural_weights if structural_weights is None else structural_weights
        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "structural_weights", checked_weights(weights))

    def pack(self, archs: Networks) -> PackedNetworks:
        """Networks as arrays; whatever is compared more than once is worth packing."""
        if not isinstance(archs, PackedNetworks):
            return pack([as_architecture(arch) for arch in several(archs)], self.rules)
        if archs.rules != self.rules:
            raise OptionError(f"networks were packed under {archs.rules.name!r} rules, this is {self.rules.name!r}")
        return archs

    def distance(self, a: Network, b: Network) -> Distances:
        """Between two networks: arrays of shape (weights,)."""
        between = self.cross([a], [b], threads=1)
        return Distances(self.structural_weights, between.d[:, 0, 0], between.d_bar[:, 0, 0])

    def cross(self, a: Networks, b: Networks, *, threads: int | None = None) -> Distances:
        """Between each of ``a`` and each of ``b``: arrays of shape (weights, len(a), len(b))."""
        a, b = counted(a), counted(b)
        if not len(a) or not len(b):
            return self._none(len(a), len(b))
        packed_a, packed_b = self.pack(a), self.pack(b)
        if packed_a.vocabulary != packed_b.vocabulary:
            raise VocabularyError(
                "only networks of one vocabulary can be compared: the first are of kind "
                f"{packed_a.vocabulary.name}, the second of kind {packed_b.vocabulary.name}"
            )
        return self._distances(packed_a, packed_b, only_above=False, threads=threads)

    def pairwise(self, archs: Networks, *, threads: int | None = None) -> Distances:
        """Between each two of ``archs``: exactly symmetric arrays of shape (weights, n, n) with zero diagonal."""
        archs = counted(archs)
        if not len(archs):
            return self._none(0, 0)
        packed = self.pack(archs)
        return self._distances(packed, packed, only_above=True, threads=threads)

    def bounds(self, one: PackedNetworks, others: PackedNetworks) -> Floats:
        """Lower bounds (others,) on d averaged over the structural weights, for less than what d costs."""
        found = np.empty(len(others))
        solver = solver_for(len(one.masses) * len(others.masses))
        labels, label_costs = one.label_rows_against(others)
        bounding(solver.is_compiled)(
            one.hops, one.walks, one.masses, labels, one.offsets,
            others.hops, others.walks, others.masses, label_costs, others.offsets, others.order,
            np.array(self.structural_weights), found,
        )  # fmt: skip
        return found

    def _none(self, n: int, m: int) -> Distances:
        empty = np.zeros((len(self.structural_weights), n, m))
        return Distances(self.structural_weights, empty, empty)

    def _distances(self, a: PackedNetworks, b: PackedNetworks, *, only_above: bool, threads: int | None) -> Distances:
        d = _solve_all(a, b, self.structural_weights, only_above=only_above, threads=threads)
        if only_above:
            d += d.transpose(0, 2, 1)
        total = a.total_masses[:, None] + b.total_masses[None, :]
        d_bar = d / np.where(total > 0.0, total, 1.0)
        np.minimum(d_bar, 1.0, out=d_bar)  # d <= tm1 + tm2: only rounding can say otherwise
        return Distances(self.structural_weights, d, d_bar)


def counted(networks: Networks) -> list[Network] | PackedNetworks:
    """Networks of which there are so many: packed ones as they are, all others as a list."""
    return networks if isinstance(networks, PackedNetworks) else several(networks)


def checked_weights(weights: Iterable[float]) -> tuple[float, ...]:
    """Structural weights as a tuple of finite numbers >= 0, at least one."""
    try:
        checked = tuple(float(nu) for nu in weights)
    except (TypeError, ValueError):
        raise OptionError(f"structural_weights must be a sequence of numbers, got {str(weights)[:60]!r}") from None
    if not checked:
        raise OptionError("structural_weights must name at least one weight")
    for nu in checked:
        if not math.isfinite(nu) or nu < 0:
            raise OptionError(f"structural weights (ν) must be finite and >= 0, got {nu:g}")
    return checked


def _solve_all(
    a: PackedNetworks, b: PackedNetworks, weights: tuple[float, ...], *, only_above: bool, threads: int | None
) -> Floats:
    """d for every pair, (weights, n, m); with ``only_above`` (a is b) for each pair once, zero elsewhere."""
    n, m = len(a), len(b)
    d = np.zeros(len(weights) * n * m)
    solver = solver_for(len(a.masses) * len(b.masses) / (2 if only_above else 1))
    if only_above:
        work = [_rows(solver, a, a, np.arange(1, n + 1), weights, d, (n, 1))]
    else:
        # The lighter network of a pair has the rows.
        totals_a, totals_b = a.total_masses[a.order], b.total_masses[b.order]
        work = [
            _rows(solver, a, b, totals_b.searchsorted(totals_a, side="left"), weights, d, (m, 1)),
            _rows(solver, b, a, totals_a.searchsorted(totals_b, side="right"), weights, d, (1, m), "the second list"),
        ]
    n_threads = _n_threads(a, b, threads)
    _do(work, n_threads if solver.is_compiled else 1)  # Python computes one thing at a time
    return d.reshape(len(weights), n, m)


def _rows(
    solver: Solver,
    a: PackedNetworks,
    b: PackedNetworks,
    begins: Integers,
    weights: tuple[float, ...],
    d: Floats,
    steps: tuple[int, int],
    side: str = "the first list",
) -> _Work:
    """To add to ``d`` that of the i-th of a, in the order of packing, against all of b from begins[i] on.

    In each weight's part of ``d``, networks of a and of b are ``steps`` apart.
    """
    descending, nu = _descending(weights)
    places = descending * (len(a) * len(b))
    labels, label_costs = a.label_rows_against(b)

    def solve_rows(first: int, last: int) -> None:
        n_pivots = solver.add_distances(
            first, last, begins, a.order, b.order, *steps, places,
            a.hops, a.walks, a.masses, labels, a.offsets,
            b.hops, b.walks, b.masses, label_costs, b.offsets,
            nu, d,
        )  # fmt: skip
        if n_pivots == NOT_CONVERGED:
            numbers = ", ".join(str(number) for number in sorted(a.order[first:last])[:10])
            raise SolverError(
                f"network simplex did not converge, for one of networks {numbers} (of {side}); please report it"
            )

    return solve_rows, len(a) if begins.min() < len(b) else 0


@lru_cache(maxsize=16)
def _descending(weights: tuple[float, ...]) -> tuple[Integers, Floats]:
    """The order in which the solver takes the weights, and the weights in it."""
    order = np.argsort(-np.array(weights), kind="stable")
    return order, np.array(weights)[order]


def _n_threads(a: PackedNetworks, b: PackedNetworks, threads: int | None) -> int:
    if threads is not None:
        if threads < 1:
            raise OptionError(f"threads must be at least 1, got {threads}")
        return threads
    if len(a.masses) * len(b.masses) < WORTH_A_THREAD:
        return 1
    return n_cores()


def _do(work: Sequence[_Work], threads: int) -> None:
    """Have each piece of work done, 0 to n; what a part of it computes does not depend on the others."""
    if threads == 1:
        for part, n in work:
            if n:
                part(0, n)
        return
    with ThreadPoolExecutor(threads) as pool:
        begun = []
        for part, n in work:
            step = max(1, n // (threads * CHUNKS_PER_THREAD))
            begun += [pool.submit(part, first, min(n, first + step)) for first in range(0, n, step)]
        for done in begun:
            done.result()


def distance(
    a: Network,
    b: Network,
    *,
    structural_weights: Iterable[float] | None = None,
    preset: str | RuleSet = "paper",
) -> Distances:
    """OTMANN between two networks: ``.d`` and ``.d_bar``, one entry per structural weight."""
    return Otmann(structural_weights=structural_weights, preset=preset).distance(a, b)


def cross(
    a: Networks,
    b: Networks,
    *,
    structural_weights: Iterable[float] | None = None,
    preset: str | RuleSet = "paper",
    threads: int | None = None,
) -> Distances:
    """OTMANN between each of ``a`` and each of ``b``: ``.d`` and ``.d_bar`` of shape (weights, len(a), len(b))."""
    return Otmann(structural_weights=structural_weights, preset=preset).cross(a, b, threads=threads)


def pairwise(
    archs: Networks,
    *,
    structural_weights: Iterable[float] | None = None,
    preset: str | RuleSet = "paper",
    threads: int | None = None,
) -> Distances:
    """OTMANN between each two of ``archs``: ``.d`` and ``.d_bar`` of shape (weights, n, n)."""
    return Otmann(structural_weights=structural_weights, preset=preset).pairwise(archs, threads=threads)

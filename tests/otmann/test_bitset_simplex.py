"""The fast solver against the plain one, on problems of every size that it takes, degenerate ones above all."""

import os
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nasbot.architecture.penalties import NEVER_MATCH
from nasbot.otmann import solve_transport, solver
from nasbot.otmann._kernels import bitset_simplex
from nasbot.otmann._kernels.compiled import TWINS
from nasbot.otmann._kernels.lanes import LANES
from nasbot.otmann.costs import augmented_cost
from nasbot.testing.strategies import TransportProblem, transport_problems

Floats = NDArray[np.float64]


def as_asked(name: str) -> Any:
    """A function of the module, compiled unless NASBOT_PLAIN_SOLVER asks for Python."""
    function = getattr(bitset_simplex, name)
    return function if os.environ.get(solver.SWITCH) else TWINS[function]


class bitset:
    N_NODES, COLUMNS = bitset_simplex.N_NODES, bitset_simplex.COLUMNS
    start_unassigned, assign_greedily, set_potentials, move_potentials, optimise, total_cost = (
        staticmethod(as_asked(name))
        for name in (
            *("start_unassigned", "assign_greedily", "set_potentials"),
            *("move_potentials", "optimise", "total_cost"),
        )
    )


def potentials_of(parent: NDArray[np.uint64], cost: Floats, n_columns: int) -> tuple[Floats, Floats]:
    """Those of any tree, each from its parent's: row + column = cost on all arcs of the tree, and 0 at the root."""

    @cache
    def potential(node: int) -> float:
        if node == 0:
            return 0.0
        above = int(parent[node])
        row, column = (above, node) if node > bitset.COLUMNS else (node, above)
        return float(cost[row, max(0, column - int(bitset.COLUMNS))] - potential(above))

    columns = [0.0, *(potential(int(bitset.COLUMNS) + column) for column in range(1, n_columns + 1))]
    return np.array([potential(row) for row in range(len(cost))]), np.array(columns)


def bitset_cost(
    mass_1: Floats,
    mass_2: Floats,
    costs: list[Floats],
    *,
    greedily: bool,
    functions: Any = None,
    pivots: list[int] | None = None,
) -> list[float]:
    """Totals under each of ``costs`` in turn, the tree kept from one to the next; from the star or a greedy start."""
    chosen = functions or bitset
    rows, columns = np.uint64(len(mass_1)), np.uint64(len(mass_2))
    stride = (len(mass_2) + LANES) // LANES * LANES
    parent, rows_below, columns_below = (np.zeros(chosen.N_NODES, np.uint64) for _ in range(3))
    path = np.zeros(2 * chosen.N_NODES, np.uint64)
    flow, row_potential, column_potential = (np.full(chosen.N_NODES, np.nan) for _ in range(3))
    slopes = np.full(chosen.N_NODES, np.nan), np.full(chosen.N_NODES, np.nan)
    chosen.start_unassigned(
        rows, columns, mass_1, mass_2, parent, flow, rows_below, columns_below, row_potential, column_potential
    )
    totals = []
    for k, cost in enumerate(costs):
        padded = np.zeros((len(mass_1) + 1, stride))  # the filler would be worth entering, were it in reach
        padded[:, : len(mass_2) + 1] = augmented_cost(np.minimum(cost, NEVER_MATCH))
        if greedily and k == 0:
            chosen.assign_greedily(
                rows, columns, padded.ravel(), np.uint64(stride),
                parent, flow, rows_below, columns_below, column_potential,
            )  # fmt: skip
            check_basis(len(mass_1), len(mass_2), mass_1, mass_2, parent, flow, rows_below, columns_below)
        given = padded.ravel(), np.zeros(padded.size), np.uint64(stride)  # costs that have nothing to do with the last
        if k == 0:
            chosen.set_potentials(rows, columns, *given, parent, row_potential, column_potential, *slopes)
        for found, again in zip(
            (row_potential, column_potential), potentials_of(parent, padded, len(mass_2)), strict=True
        ):
            if k == 0:
                np.testing.assert_array_equal(found[: len(again)], again)
            found[: len(again)] = again
        n_pivots = chosen.optimise(
            rows, columns, *given,
            parent, flow, rows_below, columns_below, row_potential, column_potential, *slopes, path,
        )  # fmt: skip
        assert n_pivots >= 0
        if pivots is not None:
            pivots.append(n_pivots)
        prices = row_potential[: len(mass_1) + 1, None] + column_potential[: len(mass_2) + 1]
        assert (padded[:, : len(mass_2) + 1] - prices >= -1e-9).all()  # no arc of any row is left to enter
        totals.append(chosen.total_cost(rows, columns, padded.ravel(), np.uint64(stride), parent, flow))
        check_basis(len(mass_1), len(mass_2), mass_1, mass_2, parent, flow, rows_below, columns_below)
    return totals


def check_basis(
    n_rows: int,
    n_columns: int,
    mass_1: Floats,
    mass_2: Floats,
    parent: NDArray[np.uint64],
    flow: Floats,
    rows_below: NDArray[np.uint64],
    columns_below: NDArray[np.uint64],
) -> None:
    """The bits say what the parents say, what flows is what there is, and the tree is strongly feasible.

    The last is why it ends: arcs without flow point to the root, so those to a column, which point away, have some.
    """
    columns = int(bitset.COLUMNS)
    nodes = [*range(1, n_rows + 1), *range(columns + 1, columns + n_columns + 1)]
    below: dict[int, set[int]] = {x: set() for x in [0, *nodes]}
    for node in nodes:
        x = node
        while x:
            below[x].add(node)
            x = int(parent[x])
    for x in nodes:
        bits = int(rows_below[x]) | int(columns_below[x]) << columns
        assert {k for k in range(2 * columns) if bits >> k & 1} == below[x]
    through = dict.fromkeys([0, *nodes], 0.0)
    for x in nodes:
        through[x] += flow[x]
        through[int(parent[x])] += flow[x]
    total = mass_1.sum() + mass_2.sum()
    assert flow[nodes].min(initial=0.0) >= 0.0
    if all(mass_1 > 0) and all(mass_2 > 0):
        assert (flow[columns + 1 : columns + n_columns + 1] > 0).all()
    np.testing.assert_allclose([through[1 + i] for i in range(n_rows)], mass_1, atol=1e-12 * total)
    np.testing.assert_allclose([through[columns + 1 + j] for j in range(n_columns)], mass_2, atol=1e-12 * total)


@given(transport_problems(), st.booleans())
def test_it_gives_the_cost_of_the_plain_solver(problem: TransportProblem, greedily: bool) -> None:
    scale = max(float(problem.mass_1.sum() + problem.mass_2.sum()), 1e-300)
    plain = solve_transport(problem.mass_1, problem.mass_2, problem.cost).total_cost
    (fast,) = bitset_cost(problem.mass_1, problem.mass_2, [problem.cost], greedily=greedily)
    assert fast / scale == pytest.approx(plain / scale, rel=1e-12, abs=1e-14)


@settings(max_examples=200)
@given(
    st.integers(0, 63),
    st.integers(0, 63),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_whole_masses_and_few_costs_do_not_make_it_cycle(
    n_rows: int, n_columns: int, most_mass: int, n_costs: int, seed: int, greedily: bool
) -> None:
    """Nearly every pivot of such problems is degenerate, and nearly every choice a tie."""
    rng = np.random.default_rng(seed)
    mass_1, mass_2 = (rng.integers(1, most_mass + 1, n).astype(float) for n in (n_rows, n_columns))
    costs = [rng.integers(0, n_costs, (n_rows, n_columns)) / 2 for _ in range(3)]
    fast = bitset_cost(mass_1, mass_2, costs, greedily=greedily)
    plain = [solve_transport(mass_1, mass_2, cost).total_cost for cost in costs]
    np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("greedily", [True, False])
@pytest.mark.parametrize("n", [1, 15, 16, 31, 32, 47, 48, 62, 63])
def test_the_largest_problems_and_the_edges_of_lanes(n: int, greedily: bool) -> None:
    rng = np.random.default_rng(n)
    mass_1, mass_2 = rng.lognormal(0, 3, (2, n))
    costs = [rng.uniform(0, 1, (n, n)) + nu * rng.uniform(0, 5, (n, n)) for nu in (0.8, 0.4, 0.2, 0.1)]
    fast = bitset_cost(mass_1, mass_2, costs, greedily=greedily)
    plain = [solve_transport(mass_1, mass_2, cost).total_cost for cost in costs]
    np.testing.assert_allclose(fast, plain, rtol=1e-12)


def test_a_greedy_start_fills_the_cheapest_column_that_has_room() -> None:
    """Row 1 (3) fills column 2 (2) and a part of column 1, on which it then hangs; row 2 fills the rest of column 1."""
    cost = np.array([[0.5, 0.1], [0.2, 0.3]])
    padded = np.zeros((3, LANES))
    padded[:, :3] = augmented_cost(cost)
    parent, rows_below, columns_below = (np.zeros(bitset.N_NODES, np.uint64) for _ in range(3))
    flow, row_potential, column_potential = (np.zeros(bitset.N_NODES) for _ in range(3))
    two, stride = np.uint64(2), np.uint64(LANES)
    mass_1, mass_2 = np.array([3.0, 5.0]), np.array([4.0, 2.0])
    bitset.start_unassigned(
        two, two, mass_1, mass_2, parent, flow, rows_below, columns_below, row_potential, column_potential
    )
    bitset.assign_greedily(two, two, padded.ravel(), stride, parent, flow, rows_below, columns_below, column_potential)
    row_1, row_2, column_1, column_2 = 1, 2, 65, 66
    assert [int(parent[x]) for x in (row_1, row_2, column_1, column_2)] == [column_1, 0, row_2, row_1]
    assert flow[[row_1, row_2, column_1, column_2]].tolist() == [1.0, 2.0, 3.0, 2.0]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_potentials_move_with_the_structural_weight(n_rows: int, n_columns: int, seed: int) -> None:
    """Pivots keep the slopes: what they predict for another weight is what the tree gives there."""
    rng = np.random.default_rng(seed)
    mass_1, mass_2 = rng.lognormal(0, 2, n_rows), rng.lognormal(0, 2, n_columns)
    rows, columns = np.uint64(n_rows), np.uint64(n_columns)
    stride = (n_columns + LANES) // LANES * LANES
    label_cost, structural = np.zeros((2, n_rows + 1, stride))
    label_cost[:, : n_columns + 1] = augmented_cost(rng.uniform(0, 1, (n_rows, n_columns)))
    structural[1:, 1 : n_columns + 1] = rng.uniform(0, 3, (n_rows, n_columns))
    parent, rows_below, columns_below = (np.zeros(bitset.N_NODES, np.uint64) for _ in range(3))
    path = np.zeros(2 * bitset.N_NODES, np.uint64)
    flow, *prices = (np.zeros(bitset.N_NODES) for _ in range(5))
    tree = parent, flow, rows_below, columns_below
    bitset.start_unassigned(rows, columns, mass_1, mass_2, *tree, *prices[:2])
    costs = {nu: (label_cost + nu * structural).ravel() for nu in (0.8, 0.2)}
    flat, length = structural.ravel(), np.uint64(stride)
    bitset.assign_greedily(rows, columns, costs[0.8], length, *tree, prices[1])
    bitset.set_potentials(rows, columns, costs[0.8], flat, length, parent, *prices)
    assert bitset.optimise(rows, columns, costs[0.8], flat, length, *tree, *prices, path) >= 0
    bitset.move_potentials(rows, columns, 0.2 - 0.8, *prices)
    fresh = [
        *potentials_of(parent, costs[0.2].reshape(-1, stride), n_columns),
        *potentials_of(parent, structural, n_columns),
    ]
    for moved, again, n in zip(prices, fresh, (n_rows, n_columns) * 2, strict=True):
        np.testing.assert_allclose(moved[: n + 1], again[: n + 1], rtol=0, atol=1e-11)


@pytest.mark.parametrize(("cost", "n_pivots"), [(0.5, 1), (NEVER_MATCH, 0)])
def test_pivots_are_counted(cost, n_pivots):
    """From nothing assigned, one pair that is worth matching takes one pivot; another takes none."""
    mass, counted = np.array([1.0]), []
    total = bitset_cost(mass, mass, [np.array([[cost]])], greedily=False, functions=bitset_simplex, pivots=counted)
    assert counted == [n_pivots]
    assert total == [min(cost, 2.0)]

"""d between many pairs of networks, class by class: costs, what needs no solving, and the solvers called."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture.penalties import NEVER_MATCH, NON_ASSIGNMENT_COST
from nasbot.otmann._kernels._marking import inlined, kernel
from nasbot.otmann._kernels.bitset_simplex import MOST_LAYERS, N_NODES, assign_greedily, move_potentials, set_potentials
from nasbot.otmann._kernels.bitset_simplex import optimise as optimise_small
from nasbot.otmann._kernels.bitset_simplex import start_unassigned as start_small
from nasbot.otmann._kernels.bitset_simplex import total_cost as cost_of_small
from nasbot.otmann._kernels.lanes import (
    HOPS,
    LANES,
    WALKS,
    Hops,
    copy_lanes,
    lanes_equal,
    set_lanes,
    set_structural_costs,
)
from nasbot.otmann._kernels.network_simplex import NOT_CONVERGED
from nasbot.otmann._kernels.network_simplex import optimise as optimise_large
from nasbot.otmann._kernels.network_simplex import start_unassigned as start_large
from nasbot.otmann._kernels.network_simplex import total_cost as cost_of_large

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

LINE = 8  # numbers of a cache line
TILE = 128  # layers of the second side whose structural costs are computed together: their rows stay in the L1 cache


@inlined
def structural_costs(
    hops_1: Hops,
    walks_1: Floats,
    length_1: int,
    first_row: int,
    n_rows: int,
    hops_2: Hops,
    walks_2: Floats,
    length_2: int,
    begin: int,
    end: int,
    n_groups: int,
    hop: float,
    out: Floats,
    stride: int,
) -> None:
    """out[i * stride + j - begin] = C_str between layers first_row + i and j; one ``hop`` of difference costs that."""
    for i in range(n_rows):
        x = first_row + i
        for j in range(0, end - begin, LANES):
            y = begin + j
            set_structural_costs(
                out, i * stride + j, hops_1, x, hops_2, y, walks_1, x, walks_2, y, length_1, length_2, n_groups, hop
            )


@inlined
def cancel(
    row_0: int,
    n_rows: int,
    column_0: int,
    n_columns: int,
    masses_1: Floats,
    labels_1: Integers,
    masses_2: Floats,
    label_costs_2: Floats,
    length_2: int,
    structural: Floats,
    structural_0: int,
    width: int,
    zeros: Floats,
    mass_left_1: Floats,
    mass_left_2: Floats,
    kept_columns: Integers,
    structural_left: Floats,
    label_cost_left: Floats,
    stride: int,
) -> tuple[int, int]:
    """Match what is in the same place; returns how many rows and columns have mass left, compacted in ``..._left``.

    Costs are a pseudo-distance between layers (tables are checked for it), so mass that both networks have in the same
    place, at cost 0, need not travel: whatever passes through such a pair could take the direct way for no more. The
    relatives that a search compares share most of their layers, and their problems become small.
    """
    for y in range(n_columns):
        mass_left_2[y] = masses_2[column_0 + y]
    n_rows_left = 0
    for x in range(n_rows):
        first_label_cost = labels_1[row_0 + x] * length_2 + column_0
        first_structural = structural_0 + x * width
        left = masses_1[row_0 + x]
        near = np.uint64(0)
        for y in range(0, n_columns, LANES):
            near |= lanes_equal(structural, first_structural + y, zeros, 0, 0.0)
        if near:
            for y in range(n_columns):
                if structural[first_structural + y] == 0.0 and label_costs_2[first_label_cost + y] == 0.0:
                    matched = min(left, mass_left_2[y])
                    left -= matched
                    mass_left_2[y] -= matched
        if left > 0.0:
            mass_left_1[n_rows_left] = left
            n_rows_left += 1
            target = n_rows_left * stride + 1
            structural_left[target - 1] = 0.0  # the root's, which the lanes of the row before may have written over
            label_cost_left[target - 1] = NON_ASSIGNMENT_COST
            for y in range(0, n_columns, LANES):
                copy_lanes(structural_left, target + y, structural, first_structural + y)
                copy_lanes(label_cost_left, target + y, label_costs_2, first_label_cost + y)
    n_columns_left = 0
    for y in range(n_columns):
        if mass_left_2[y] > 0.0:
            mass_left_2[n_columns_left] = mass_left_2[y]
            n_columns_left += 1
            kept_columns[n_columns_left] = y + 1
    if n_columns_left < n_columns:
        for x in range(1, n_rows_left + 1):
            for y in range(1, n_columns_left + 1):
                structural_left[x * stride + y] = structural_left[x * stride + kept_columns[y]]
                label_cost_left[x * stride + y] = label_cost_left[x * stride + kept_columns[y]]
    return n_rows_left, n_columns_left


@inlined
def _set_cost(
    n_rows: int, n_columns: int, weight: float, label_cost: Floats, structural: Floats, cost: Floats, stride: int
) -> None:
    """cost = label + nu * structural, of the root (row and column 0) too."""
    for x in range(n_rows + 1):
        for at in range(x * stride, x * stride + n_columns + 1, LANES):
            set_lanes(cost, at, label_cost, at, structural, at, weight)


@inlined
def match_one_with_one(
    mass_1: float, mass_2: float, label_cost: float, structural: float, weights: Floats, values: Floats
) -> None:
    """The whole problem where a class has one layer in each network."""
    for k in range(len(weights)):
        cost = min(NEVER_MATCH, label_cost + weights[k] * structural)
        values[k] = min(mass_1, mass_2) * cost + abs(mass_1 - mass_2) * NON_ASSIGNMENT_COST


@inlined
def leave_unassigned(n_rows: int, n_columns: int, mass_1: Floats, mass_2: Floats, values: Floats) -> None:
    """The whole problem where one of the networks has no mass left in a class."""
    total = 0.0
    for x in range(n_rows):
        total += mass_1[x] * NON_ASSIGNMENT_COST
    for y in range(n_columns):
        total += mass_2[y] * NON_ASSIGNMENT_COST
    for k in range(len(values)):
        values[k] = total


@kernel
def _solve_large(
    n_rows: int,
    n_columns: int,
    mass_1: Floats,
    mass_2: Floats,
    label_cost: Floats,
    structural: Floats,
    cost: Floats,
    stride: int,
    weights: Floats,
    tree: Integers,
    flow: Floats,
    row_potential: Floats,
    column_potential: Floats,
    scratch: Integers,
    values: Floats,
) -> int:
    """The ``values`` of networks beyond the reach of the fast solver; returns the number of pivots."""
    square = cost.reshape((len(cost) // stride, stride))
    scratch[:] = 0
    stamp = 0
    start_large(mass_1[:n_rows], mass_2[:n_columns], tree, flow)
    for k in range(len(weights)):
        _set_cost(n_rows, n_columns, weights[k], label_cost, structural, cost, stride)
        stamp = optimise_large(n_rows, n_columns, square, tree, flow, row_potential, column_potential, scratch, stamp)
        if stamp == NOT_CONVERGED:
            return NOT_CONVERGED
        values[k] = cost_of_large(n_rows, n_columns, square, tree, flow)
    return stamp


@inlined
def largest(offsets: Integers, begin: int, end: int) -> int:
    most = 0
    for c in range(offsets.shape[0]):
        for i in range(begin, end):
            most = max(most, offsets[c, i + 1] - offsets[c, i])
    return most


@inlined
def whole_lines(n: int) -> Floats:
    """Room for n numbers that begins where a cache line does, so that lanes do not lie across two; worth 1 % or so."""
    room = np.zeros(n + LINE)
    skipped = (-room.ctypes.data // room.itemsize) % LINE
    return room[skipped : skipped + n]


@kernel
def add_distances(
    first: int,
    last: int,
    begins: Integers,
    order_1: Integers,
    order_2: Integers,
    step_1: int,
    step_2: int,
    places: Integers,
    hops_1: Hops,
    walks_1: Floats,
    masses_1: Floats,
    labels_1: Integers,
    offsets_1: Integers,
    hops_2: Hops,
    walks_2: Floats,
    masses_2: Floats,
    label_costs_2: Floats,
    offsets_2: Integers,
    weights: Floats,
    out: Floats,
) -> int:
    """Add d of networks first <= i < last against all j >= begins[i] to ``out``, class by class.

    That of weight k is at places[k] + order_1[i] * step_1 + order_2[j] * step_2.
    offsets[c, i]         first layer of class c of network i in the arrays; the end of the last one too
    hops, walks           (4 or 2 * groups, layers), path lengths; those of walks already divided by the number of all
    label_costs_2[l, y]   penalty of label l against layer y of the second side
    weights               nu, descending: mass matched at a large nu stays well matched at a smaller one
    Behind the layers of hops_2, walks_2 and label_costs_2 there is room for LANES more. Returns the number of pivots,
    or NOT_CONVERGED.
    """
    n_networks_2 = offsets_2.shape[1] - 1
    n_groups = hops_1.shape[0] // HOPS
    hop = 1.0 / (n_groups * (HOPS + WALKS))
    length_1 = hops_1.shape[1]
    length_2 = hops_2.shape[1]
    flat_hops_1 = hops_1.ravel()
    flat_walks_1 = walks_1.ravel()
    flat_hops_2 = hops_2.ravel()
    flat_walks_2 = walks_2.ravel()
    flat_label_costs_2 = label_costs_2.ravel()
    most_rows = largest(offsets_1, first, last)
    most_columns = largest(offsets_2, 0, n_networks_2)
    tile = TILE + most_columns
    width = (tile + LANES - 1) // LANES * LANES
    structural = whole_lines(most_rows * width + LANES)  # read also behind the last layer, where it must be finite
    zeros = np.zeros(LANES)
    mass_left_1 = np.empty(most_rows)
    mass_left_2 = np.empty(most_columns)
    kept_columns = np.empty(most_columns + 1, np.int64)
    stride = (most_columns + LANES) // LANES * LANES
    length = np.uint64(stride)
    structural_left = whole_lines((most_rows + 1) * stride + LANES)
    label_cost_left = whole_lines((most_rows + 1) * stride + LANES)
    label_cost_left[:] = NON_ASSIGNMENT_COST
    label_cost_left[0] = 0.0
    cost = whole_lines((most_rows + 1) * stride)
    n_nodes = max(N_NODES, most_rows + most_columns + 1)
    flow = np.empty(n_nodes)
    row_potential = whole_lines(n_nodes)
    column_potential = whole_lines(n_nodes)
    row_slope = whole_lines(n_nodes)
    column_slope = whole_lines(n_nodes)
    parent = np.empty(n_nodes, np.uint64)
    rows_below = np.empty(n_nodes, np.uint64)
    columns_below = np.empty(n_nodes, np.uint64)
    path = np.empty(2 * n_nodes, np.uint64)
    tree = np.empty((4, n_nodes), np.int64)
    scratch = np.zeros((2, n_nodes), np.int64)
    values = np.empty(len(weights))
    n_pivots_in_all = 0
    for c in range(len(offsets_1)):
        for i in range(first, last):
            row_0 = offsets_1[c, i]
            n_rows = offsets_1[c, i + 1] - row_0
            tile_end = begins[i]
            while tile_end < n_networks_2:
                tile_begin = tile_end
                tile_end += 1
                while tile_end < n_networks_2 and offsets_2[c, tile_end + 1] - offsets_2[c, tile_begin] <= tile:
                    tile_end += 1
                tile_0 = offsets_2[c, tile_begin]
                structural_costs(
                    flat_hops_1, flat_walks_1, length_1, row_0, n_rows,
                    flat_hops_2, flat_walks_2, length_2, tile_0, offsets_2[c, tile_end],
                    n_groups, hop, structural, width,
                )  # fmt: skip
                for j in range(tile_begin, tile_end):
                    column_0 = offsets_2[c, j]
                    n_columns = offsets_2[c, j + 1] - column_0
                    if n_rows == 1 and n_columns == 1:
                        match_one_with_one(
                            masses_1[row_0], masses_2[column_0], label_costs_2[labels_1[row_0], column_0],
                            structural[column_0 - tile_0], weights, values,
                        )  # fmt: skip
                    else:
                        n_rows_left, n_columns_left = cancel(
                            row_0, n_rows, column_0, n_columns, masses_1, labels_1, masses_2,
                            flat_label_costs_2, length_2, structural, column_0 - tile_0, width, zeros,
                            mass_left_1, mass_left_2, kept_columns, structural_left, label_cost_left, stride,
                        )  # fmt: skip
                        if n_rows_left == 0 or n_columns_left == 0:
                            leave_unassigned(n_rows_left, n_columns_left, mass_left_1, mass_left_2, values)
                        elif max(n_rows_left, n_columns_left) <= MOST_LAYERS:
                            # Not a function: numba would count references to its sixteen arrays up and down at each
                            # call, since so much code lies between; half of all the time for CNNs of 8 layers.
                            rows, columns = np.uint64(n_rows_left), np.uint64(n_columns_left)
                            start_small(
                                rows, columns, mass_left_1, mass_left_2,
                                parent, flow, rows_below, columns_below, row_potential, column_potential,
                            )  # fmt: skip
                            for k in range(len(weights)):
                                _set_cost(
                                    n_rows_left, n_columns_left, weights[k],
                                    label_cost_left, structural_left, cost, stride,
                                )  # fmt: skip
                                if not k:
                                    assign_greedily(
                                        rows, columns, cost, length,
                                        parent, flow, rows_below, columns_below, column_potential,
                                    )  # fmt: skip
                                    set_potentials(
                                        rows, columns, cost, structural_left, length,
                                        parent, row_potential, column_potential, row_slope, column_slope,
                                    )  # fmt: skip
                                else:
                                    move_potentials(
                                        rows, columns, weights[k] - weights[k - 1],
                                        row_potential, column_potential, row_slope, column_slope,
                                    )  # fmt: skip
                                n_pivots = optimise_small(
                                    rows, columns, cost, structural_left, length,
                                    parent, flow, rows_below, columns_below,
                                    row_potential, column_potential, row_slope, column_slope, path,
                                )  # fmt: skip
                                if n_pivots == NOT_CONVERGED:
                                    return NOT_CONVERGED
                                n_pivots_in_all += n_pivots
                                values[k] = cost_of_small(rows, columns, cost, length, parent, flow)
                        else:
                            n_pivots = _solve_large(
                                n_rows_left, n_columns_left, mass_left_1, mass_left_2,
                                label_cost_left, structural_left, cost, stride, weights,
                                tree, flow, row_potential, column_potential, scratch, values,
                            )  # fmt: skip
                            if n_pivots == NOT_CONVERGED:
                                return NOT_CONVERGED
                            n_pivots_in_all += n_pivots
                    at = order_1[i] * step_1 + order_2[j] * step_2
                    for k in range(len(weights)):
                        out[places[k] + at] += values[k]
    return n_pivots_in_all

"""The transport solver of OTMANN: exact network simplex, compiled with numba, for many pairs of networks at once.

The problem (App. A.1, eq. 6) splits along exchange classes, sets of labels between which mass can be matched at all.
Within a class it is a minimum-cost flow over rows (layers of the first network), columns (layers of the second) and one
root, the unassigned node: row -> column costs label + nu * structural, row -> root and root -> column cost 1 each.

Nodes are numbered 0 the root, 1..n_rows the rows, then the columns. A basis is a spanning tree hung on the root; the
arc between a node and its tree parent points up for a row and down for a column, and ``flow[x]`` runs on it. The start
is the star, "nothing is matched", which is feasible; from one nu to the next only costs change: tree and flow stay.

Why it ends: of the arcs that run dry in a pivot the last one met from the apex leaves, which keeps every zero-flow arc
pointing to the root (a strongly feasible tree, Cunningham 1976), so no basis returns. Rounding could spoil that in
theory; a cap on pivots turns it into an error, never into a wrong number.

``nasbot.testing.reference`` solves the same problems by linear programming; NUMBA_DISABLE_JIT=1 runs this as Python.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nasbot.architecture.penalties import NEVER_MATCH, NON_ASSIGNMENT_COST

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REDUCED_COST_TOLERANCE = 1e-12  # costs are of order 1
PIVOTS_PER_NODE = 1000  # about 2 are needed; the cap only has to exist
TILE = 128  # layers of the second side whose structural costs are computed together: their rows stay in the L1 cache
UNROLLED = 4  # features added at a time; packing pads their number to a multiple
NOT_CONVERGED = -1


# A basis is handed around as separate arrays: in a tuple of arrays each use costs numba a reference count (2x slower).
#   tree (4, nodes)       the links below
#   flow (nodes,)         on the arc between a node and its tree parent
#   row_potential, column_potential   index 0 is the root in both
#   scratch (2, nodes)    a stack for walks over the tree, and marks that tell the paths of one pivot from older ones
PARENT, FIRST_CHILD, NEXT_SIBLING, PREVIOUS_SIBLING = 0, 1, 2, 3
STACK, MARK = 0, 1


@njit(cache=True, nogil=True, inline="always")
def _hang(tree: Integers, x: int, parent: int) -> None:
    """Make x the first child of ``parent``."""
    first = tree[FIRST_CHILD, parent]
    tree[PARENT, x] = parent
    tree[PREVIOUS_SIBLING, x] = -1
    tree[NEXT_SIBLING, x] = first
    if first >= 0:
        tree[PREVIOUS_SIBLING, first] = x
    tree[FIRST_CHILD, parent] = x


@njit(cache=True, nogil=True, inline="always")
def _cut(tree: Integers, x: int) -> None:
    """Take x, with all below it, off its parent."""
    before = tree[PREVIOUS_SIBLING, x]
    after = tree[NEXT_SIBLING, x]
    if before >= 0:
        tree[NEXT_SIBLING, before] = after
    else:
        tree[FIRST_CHILD, tree[PARENT, x]] = after
    if after >= 0:
        tree[PREVIOUS_SIBLING, after] = before


@njit(cache=True, nogil=True, inline="always")
def start_unassigned(mass_1: Floats, mass_2: Floats, tree: Integers, flow: Floats) -> None:
    """The star around the root: every unit of mass stays unassigned."""
    n_rows = len(mass_1)
    n_columns = len(mass_2)
    tree[PARENT, 0] = -1
    for x in range(n_rows + n_columns + 1):
        tree[FIRST_CHILD, x] = -1
    for i in range(n_rows):
        _hang(tree, 1 + i, 0)
        flow[1 + i] = mass_1[i]
    for j in range(n_columns):
        _hang(tree, 1 + n_rows + j, 0)
        flow[1 + n_rows + j] = mass_2[j]


@njit(cache=True, nogil=True, inline="always")
def _set_potentials(
    n_rows: int, cost: Floats, tree: Integers, row_potential: Floats, column_potential: Floats, scratch: Integers
) -> None:
    """Potentials with row + column = cost on every tree arc and 0 at the root."""
    row_potential[0] = 0.0
    column_potential[0] = 0.0
    scratch[STACK, 0] = 0
    top = 1
    while top:
        top -= 1
        x = scratch[STACK, top]
        child = tree[FIRST_CHILD, x]
        while child >= 0:
            if child <= n_rows:
                column = x - n_rows if x else 0
                row_potential[child] = cost[child, column] - column_potential[column]
            else:
                column = child - n_rows
                column_potential[column] = cost[x, column] - row_potential[x]
            scratch[STACK, top] = child
            top += 1
            child = tree[NEXT_SIBLING, child]


@njit(cache=True, nogil=True, inline="always")
def _pivot(
    n_rows: int,
    row: int,
    column: int,
    reduced_cost: float,
    tree: Integers,
    flow: Floats,
    row_potential: Floats,
    column_potential: Floats,
    scratch: Integers,
    stamp: int,
) -> None:
    """Bring the arc from ``row`` to ``column`` (0 is the root in both) into the tree."""
    target = n_rows + column if column else 0
    x = row
    while x >= 0:
        scratch[MARK, x] = stamp
        x = tree[PARENT, x]
    apex = target
    while scratch[MARK, apex] != stamp:
        apex = tree[PARENT, apex]

    # Round the cycle, flow drops on rows of the row's side and on columns of the column's side.
    step = np.inf
    leaving = -1
    leaves_row_side = True
    x = row
    while x != apex:
        if x <= n_rows and flow[x] < step:
            step = flow[x]
            leaving = x
        x = tree[PARENT, x]
    x = target
    while x != apex:
        if x > n_rows and flow[x] <= step:
            step = flow[x]
            leaving = x
            leaves_row_side = False
        x = tree[PARENT, x]
    x = row
    while x != apex:
        flow[x] += step if x > n_rows else -step
        x = tree[PARENT, x]
    x = target
    while x != apex:
        flow[x] += step if x <= n_rows else -step
        x = tree[PARENT, x]

    # What hung below the leaving arc is turned over, from its end of the new arc, and hung on the other end.
    head = row if leaves_row_side else target
    x = head
    above = target if leaves_row_side else row
    carried = step
    while True:
        next_up = tree[PARENT, x]
        previous_flow = flow[x]
        _cut(tree, x)
        _hang(tree, x, above)
        flow[x] = carried
        if x == leaving:
            break
        above = x
        x = next_up
        carried = previous_flow

    shift = reduced_cost if leaves_row_side else -reduced_cost
    scratch[STACK, 0] = head
    top = 1
    while top:
        top -= 1
        x = scratch[STACK, top]
        if x <= n_rows:
            row_potential[x] += shift
        else:
            column_potential[x - n_rows] -= shift
        child = tree[FIRST_CHILD, x]
        while child >= 0:
            scratch[STACK, top] = child
            top += 1
            child = tree[NEXT_SIBLING, child]


@njit(cache=True, nogil=True)
def optimise(
    n_rows: int,
    n_columns: int,
    cost: Floats,
    tree: Integers,
    flow: Floats,
    row_potential: Floats,
    column_potential: Floats,
    scratch: Integers,
    stamp: int,
) -> int:
    """Pivot from the basis given to an optimal one for ``cost``; returns the new stamp, or NOT_CONVERGED.

    Rows take turns to bring in their best arc; a whole round without one proves optimality. Counting the violations
    of a row first, without a branch, is what the compiler turns into vector instructions; most rows have none.
    """
    _set_potentials(n_rows, cost, tree, row_potential, column_potential, scratch)
    last_stamp = stamp + PIVOTS_PER_NODE * (n_rows + n_columns + 1)
    row = 0
    n_clean = 0
    while n_clean <= n_rows:
        row_cost = cost[row]
        bound = row_potential[row] - REDUCED_COST_TOLERANCE
        n_violations = 0
        for j in range(n_columns + 1):
            n_violations += row_cost[j] - column_potential[j] < bound
        if n_violations:
            best = np.inf
            entering = 0
            for j in range(n_columns + 1):
                difference = row_cost[j] - column_potential[j]
                if difference < best:
                    best = difference
                    entering = j
            stamp += 1
            if stamp > last_stamp:
                return NOT_CONVERGED
            reduced_cost = best - row_potential[row]
            _pivot(n_rows, row, entering, reduced_cost, tree, flow, row_potential, column_potential, scratch, stamp)
            n_clean = 0
        else:
            n_clean += 1
        row = row + 1 if row < n_rows else 0
    return stamp


@njit(cache=True, nogil=True, inline="always")
def _total_cost(n_rows: int, n_columns: int, cost: Floats, tree: Integers, flow: Floats) -> float:
    """Summed over tree arcs, so that a network matched with itself costs exactly 0."""
    total = 0.0
    for x in range(1, n_rows + 1):
        parent = tree[PARENT, x]
        total += flow[x] * cost[x, parent - n_rows if parent else 0]
    for x in range(n_rows + 1, n_rows + n_columns + 1):
        total += flow[x] * cost[tree[PARENT, x], x - n_rows]
    return total


@njit(cache=True, nogil=True)
def solve_one(mass_1: Floats, mass_2: Floats, cost: Floats, plan: Floats) -> float:
    """One problem: fills ``plan`` (rows + 1, columns + 1; index 0 unassigned) and returns its cost, or NOT_CONVERGED.

    ``cost`` has the same shape, with NON_ASSIGNMENT_COST in row and column 0 and 0 at their corner.
    """
    n_rows = len(mass_1)
    n_columns = len(mass_2)
    n_nodes = n_rows + n_columns + 1
    tree = np.empty((4, n_nodes), np.int64)
    flow = np.empty(n_nodes)
    row_potential = np.empty(n_rows + 1)
    column_potential = np.empty(n_columns + 1)
    scratch = np.zeros((2, n_nodes), np.int64)
    start_unassigned(mass_1, mass_2, tree, flow)
    stamp = optimise(n_rows, n_columns, cost, tree, flow, row_potential, column_potential, scratch, 0)
    if stamp == NOT_CONVERGED:
        return NOT_CONVERGED
    plan[:, :] = 0.0
    for x in range(1, n_rows + 1):
        parent = tree[PARENT, x]
        plan[x, parent - n_rows if parent else 0] = flow[x]
    for x in range(n_rows + 1, n_rows + n_columns + 1):
        plan[tree[PARENT, x], x - n_rows] = flow[x]
    return _total_cost(n_rows, n_columns, cost, tree, flow)


# Reassociation lets the compiler vectorise the sums; path lengths are finite, so the other freedoms change nothing.
@njit(cache=True, nogil=True, fastmath={"nnan", "ninf", "nsz", "reassoc", "contract"})
def _structural_costs(
    features_1: Floats, first_row: int, n_rows: int, features_2: Floats, begin: int, end: int, out: Floats
) -> None:
    """out[i, j - begin] = sum over features of |features_1[:, first_row + i] - features_2[:, j]|."""
    n = end - begin
    for i in range(n_rows):
        row = out[i]
        row[:n] = 0.0
        for k in range(0, features_1.shape[0], UNROLLED):
            x0 = features_1[k, first_row + i]
            x1 = features_1[k + 1, first_row + i]
            x2 = features_1[k + 2, first_row + i]
            x3 = features_1[k + 3, first_row + i]
            y0 = features_2[k, begin:end]
            y1 = features_2[k + 1, begin:end]
            y2 = features_2[k + 2, begin:end]
            y3 = features_2[k + 3, begin:end]
            for j in range(n):
                row[j] += (abs(x0 - y0[j]) + abs(x1 - y1[j])) + (abs(x2 - y2[j]) + abs(x3 - y3[j]))


@njit(cache=True, nogil=True, inline="always")
def _cancel(
    mass_1: Floats,
    mass_2: Floats,
    structural: Floats,
    labels_1: Integers,
    label_costs_2: Floats,
    mass_left_1: Floats,
    mass_left_2: Floats,
    columns_left: Integers,
    structural_left: Floats,
    label_cost_left: Floats,
) -> tuple[int, int]:
    """Match what is in the same place; returns how many rows and columns have mass left, compacted in ``..._left``.

    Costs are a pseudo-distance between layers (tables are checked for it), so mass that both networks have in the same
    place, at cost 0, need not travel: whatever passes through such a pair could take the direct way for no more. The
    relatives that a search compares share most of their layers, and their problems become small.
    """
    n_rows = len(mass_1)
    n_columns = len(mass_2)
    mass_left_2[:n_columns] = mass_2
    n_rows_left = 0
    for x in range(n_rows):
        structural_row = structural[x]
        label_cost_row = label_costs_2[labels_1[x]]
        left = mass_1[x]
        n_near = 0
        for y in range(n_columns):
            n_near += structural_row[y] == 0.0
        if n_near:
            for y in range(n_columns):
                if structural_row[y] == 0.0 and label_cost_row[y] == 0.0:
                    matched = min(left, mass_left_2[y])
                    left -= matched
                    mass_left_2[y] -= matched
        if left > 0.0:
            mass_left_1[n_rows_left] = left
            structural_left[n_rows_left, :n_columns] = structural_row
            label_cost_left[n_rows_left, :n_columns] = label_cost_row
            n_rows_left += 1
    n_columns_left = 0
    for y in range(n_columns):
        if mass_left_2[y] > 0.0:
            mass_left_2[n_columns_left] = mass_left_2[y]
            columns_left[n_columns_left] = y
            n_columns_left += 1
    if n_columns_left < n_columns:
        for x in range(n_rows_left):
            for y in range(n_columns_left):
                structural_left[x, y] = structural_left[x, columns_left[y]]
                label_cost_left[x, y] = label_cost_left[x, columns_left[y]]
    return n_rows_left, n_columns_left


@njit(cache=True, nogil=True)
def _largest(offsets: Integers, begin: int, end: int) -> int:
    most = 0
    for i in range(begin, end):
        most = max(most, offsets[i + 1] - offsets[i])
    return most


@njit(cache=True, nogil=True)
def add_class_distances(
    first: int,
    last: int,
    only_above: bool,
    features_1: Floats,
    masses_1: Floats,
    labels_1: Integers,
    offsets_1: Integers,
    features_2: Floats,
    masses_2: Floats,
    label_costs_2: Floats,
    offsets_2: Integers,
    weights: Floats,
    out: Floats,
) -> int:
    """Add one exchange class's share of d to out[i, j, k] for networks first <= i < last against all j (or all j > i).

    offsets     first layer of each network of this class in the arrays, and the end
    features    (features, layers), path lengths already divided by their number
    label_costs_2[l, y]   penalty of label l against layer y of the second side
    weights     nu, descending: mass matched at a large nu stays well matched at a smaller one
    Returns the number of pivots, or NOT_CONVERGED.
    """
    n_networks_2 = len(offsets_2) - 1
    most_rows = _largest(offsets_1, first, last)
    most_columns = _largest(offsets_2, 0, n_networks_2)
    tile = TILE + most_columns
    structural = np.empty((most_rows, tile))
    cost = np.full((most_rows + 1, most_columns + 1), NON_ASSIGNMENT_COST)
    cost[0, 0] = 0.0
    n_nodes = most_rows + most_columns + 1
    tree = np.empty((4, n_nodes), np.int64)
    flow = np.empty(n_nodes)
    row_potential = np.empty(most_rows + 1)
    column_potential = np.empty(most_columns + 1)
    scratch = np.zeros((2, n_nodes), np.int64)
    mass_left_1 = np.empty(most_rows)
    mass_left_2 = np.empty(most_columns)
    columns_left = np.empty(most_columns, np.int64)
    structural_left = np.empty((most_rows, most_columns))
    label_cost_left = np.empty((most_rows, most_columns))
    stamp = 0
    for i in range(first, last):
        row_0 = offsets_1[i]
        n_rows = offsets_1[i + 1] - row_0
        tile_end = i + 1 if only_above else 0
        while tile_end < n_networks_2:
            tile_begin = tile_end
            tile_end += 1
            while tile_end < n_networks_2 and offsets_2[tile_end + 1] - offsets_2[tile_begin] <= tile:
                tile_end += 1
            _structural_costs(
                features_1, row_0, n_rows, features_2, offsets_2[tile_begin], offsets_2[tile_end], structural
            )
            for j in range(tile_begin, tile_end):
                column_0 = offsets_2[j]
                n_columns = offsets_2[j + 1] - column_0
                in_tile = column_0 - offsets_2[tile_begin]
                if n_rows == 1 and n_columns == 1:
                    matched = min(masses_1[row_0], masses_2[column_0])
                    unassigned = abs(masses_1[row_0] - masses_2[column_0]) * NON_ASSIGNMENT_COST
                    label_cost = label_costs_2[labels_1[row_0], column_0]
                    for k in range(len(weights)):
                        pair_cost = label_cost + weights[k] * structural[0, in_tile]
                        out[i, j, k] += matched * min(NEVER_MATCH, pair_cost) + unassigned
                    continue
                n_rows_left, n_columns_left = _cancel(
                    masses_1[row_0 : row_0 + n_rows],
                    masses_2[column_0 : column_0 + n_columns],
                    structural[:n_rows, in_tile : in_tile + n_columns],
                    labels_1[row_0 : row_0 + n_rows],
                    label_costs_2[:, column_0 : column_0 + n_columns],
                    mass_left_1,
                    mass_left_2,
                    columns_left,
                    structural_left,
                    label_cost_left,
                )
                for k in range(len(weights)):
                    weight = weights[k]
                    for x in range(n_rows_left):
                        label_cost_row = label_cost_left[x]
                        structural_row = structural_left[x]
                        cost_row = cost[x + 1, 1 : n_columns_left + 1]
                        for y in range(n_columns_left):
                            cost_row[y] = label_cost_row[y] + weight * structural_row[y]
                    if k == 0:
                        start_unassigned(mass_left_1[:n_rows_left], mass_left_2[:n_columns_left], tree, flow)
                    stamp = optimise(
                        n_rows_left, n_columns_left, cost, tree, flow, row_potential, column_potential, scratch, stamp
                    )
                    if stamp == NOT_CONVERGED:
                        return NOT_CONVERGED
                    out[i, j, k] += _total_cost(n_rows_left, n_columns_left, cost, tree, flow)
    return stamp

"""The transport solver of OTMANN: exact network simplex.

The problem (App. A.1, eq. 6) splits along exchange classes, sets of labels between which mass can be matched at all.
Within a class it is a minimum-cost flow over rows (layers of the first network), columns (layers of the second) and one
root, the unassigned node: row -> column costs label + nu * structural, row -> root and root -> column cost 1 each.

Nodes are numbered 0 the root, 1..n_rows the rows, then the columns. A basis is a spanning tree hung on the root; the
arc between a node and its tree parent points up for a row and down for a column, and ``flow[x]`` runs on it. The start
is the star, "nothing is matched", which is feasible; from one nu to the next only costs change: tree and flow stay.

Why it ends: of the arcs that run dry in a pivot the last one met from the apex leaves, which keeps every zero-flow arc
pointing to the root (a strongly feasible tree, Cunningham 1976), so no basis returns. Rounding could spoil that in
theory; a cap on pivots turns it into an error, never into a wrong number.

``nasbot.testing.reference`` solves the same problems by linear programming.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasbot.otmann._kernels._marking import inlined, kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REDUCED_COST_TOLERANCE = 1e-12  # costs are of order 1
PIVOTS_PER_NODE = 1000  # 2 or 3 are needed on networks, 30 on the worst costs we could make; the cap only has to exist
NOT_CONVERGED = -1


# A basis is handed around as separate arrays: in a tuple of arrays each use costs numba a reference count (2x slower).
#   tree (4, nodes)       the links below
#   flow (nodes,)         on the arc between a node and its tree parent
#   row_potential, column_potential   index 0 is the root in both
#   scratch (2, nodes)    a stack for walks over the tree, and marks that tell the paths of one pivot from older ones
PARENT, FIRST_CHILD, NEXT_SIBLING, PREVIOUS_SIBLING = 0, 1, 2, 3
STACK, MARK = 0, 1


@inlined
def _hang(tree: Integers, x: int, parent: int) -> None:
    """Make x the first child of ``parent``."""
    first = tree[FIRST_CHILD, parent]
    tree[PARENT, x] = parent
    tree[PREVIOUS_SIBLING, x] = -1
    tree[NEXT_SIBLING, x] = first
    if first >= 0:
        tree[PREVIOUS_SIBLING, first] = x
    tree[FIRST_CHILD, parent] = x


@inlined
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


@inlined
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


@inlined
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


@inlined
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


@kernel
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


@inlined
def total_cost(n_rows: int, n_columns: int, cost: Floats, tree: Integers, flow: Floats) -> float:
    """Summed over tree arcs, so that a network matched with itself costs exactly 0."""
    total = 0.0
    for x in range(1, n_rows + 1):
        parent = tree[PARENT, x]
        total += flow[x] * cost[x, parent - n_rows if parent else 0]
    for x in range(n_rows + 1, n_rows + n_columns + 1):
        total += flow[x] * cost[tree[PARENT, x], x - n_rows]
    return total


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
    return total_cost(n_rows, n_columns, cost, tree, flow)

"""The network simplex of ``network_simplex`` for problems of at most 63 rows and 63 columns, about twice as fast.

Same problem, same rule for the arc that leaves, so it ends for the same reason. Nearly half of the pivots, those near
the start, are done without prices (``assign_greedily``). The trees of such problems are small (from the star, a cycle
had five nodes and what is cut off six), and what costs time are mispredicted branches and the search for the entering
arc. So everything below a node is a set of bits: whether a node is on the way to another is one test, turning a subtree
over is a few operations on words, and potentials are shifted sixteen at a time without a branch.

Nodes: 0 the root, 1.. the rows, COLUMNS + 1.. the columns. The root has number 0 among the columns too, so bit k of a
set of rows is row k, and bit k of a set of columns is node COLUMNS + k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture.penalties import NON_ASSIGNMENT_COST
from nasbot.otmann._kernels._marking import inlined
from nasbot.otmann._kernels.lanes import (
    LANES,
    add_to_lanes,
    any_below,
    clear_lanes,
    first_bit,
    lanes_equal,
    least_of_lanes,
    set_lanes,
)
from nasbot.otmann._kernels.network_simplex import NOT_CONVERGED, PIVOTS_PER_NODE, REDUCED_COST_TOLERANCE

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

# Everything that counts or indexes is unsigned: numba then need not ask whether an index is negative.
Word = np.uint64
ZERO, ONE = Word(0), Word(1)
ALL = ~ZERO
COLUMNS = Word(64)
MOST_LAYERS = 63
N_NODES = 128
STEP = Word(LANES)
# Potential of columns that shall never look worth entering: those that only fill the last sixteen lanes and, while rows
# choose greedily, those that are full.
OUT_OF_REACH = -1e9

# A basis, as separate arrays (in a tuple each use would cost numba a reference count):
#   parent, flow (N_NODES,)              the tree parent, and what flows on the arc to it
#   rows_below, columns_below (N_NODES,) the node and all that hangs below it, as bits
#   row_potential, column_potential      at least COLUMNS each
#   row_slope, column_slope              the same: how potentials grow with the structural weight
#   path (2 * N_NODES,)                  scratch: the two arms of a cycle, the second from SECOND_ARM on
SECOND_ARM = Word(N_NODES)


@inlined
def in_lanes(n: Word) -> Word:
    """How many the whole lanes hold that n rows or columns and the root need."""
    return (n + STEP) // STEP * STEP


@inlined
def start_unassigned(
    n_rows: Word,
    n_columns: Word,
    mass_1: Floats,
    mass_2: Floats,
    parent: Words,
    flow: Floats,
    rows_below: Words,
    columns_below: Words,
    row_potential: Floats,
    column_potential: Floats,
) -> None:
    """The star around the root: every unit of mass stays unassigned. Of potentials, those that no tree changes."""
    parent[0] = ZERO
    rows_below[0] = ALL
    columns_below[0] = ALL
    row_potential[0] = 0.0
    column_potential[0] = 0.0
    for row in range(ONE, n_rows + ONE):
        parent[row] = ZERO
        flow[row] = mass_1[row - ONE]
        rows_below[row] = ONE << row
        columns_below[row] = ZERO
    for column in range(ONE, n_columns + ONE):
        x = COLUMNS + column
        parent[x] = ZERO
        flow[x] = mass_2[column - ONE]
        rows_below[x] = ZERO
        columns_below[x] = ONE << column
        column_potential[column] = NON_ASSIGNMENT_COST
    for filler in range(n_columns + ONE, in_lanes(n_columns)):
        column_potential[filler] = OUT_OF_REACH


@inlined
def assign_greedily(
    n_rows: Word,
    n_columns: Word,
    cost: Floats,
    stride: Word,
    parent: Words,
    flow: Floats,
    rows_below: Words,
    columns_below: Words,
    column_potential: Floats,
) -> None:
    """From the star, each row in turn fills the column that is cheapest for it among those that have room left.

    Nearly half of all pivots have both ends on the root, and these are they, without the prices, which are found once
    afterwards: what is full is out of reach meanwhile. The lesser end hangs on the other, so that the tree stays
    strongly feasible. (Pivots of their own for such pairs, prices kept, were no faster than the general ones.)
    """
    n_column_lanes = in_lanes(n_columns)
    for row in range(ONE, n_rows + ONE):
        first = row * stride
        while True:
            best = least_of_lanes(cost, first, column_potential, ZERO, n_column_lanes)
            if best >= NON_ASSIGNMENT_COST:
                break
            bests = ZERO
            for begin in range(ZERO, n_column_lanes, STEP):
                bests |= lanes_equal(cost, first + begin, column_potential, begin, best) << begin
            column = first_bit(bests)
            x = COLUMNS + column
            row_flow = flow[row]
            column_flow = flow[x]
            if row_flow < column_flow:
                parent[row] = x
                flow[x] = column_flow - row_flow
                rows_below[x] |= rows_below[row]
                columns_below[x] |= columns_below[row]
                break
            parent[x] = row
            flow[row] = row_flow - column_flow
            rows_below[row] |= rows_below[x]
            columns_below[row] |= columns_below[x]
            column_potential[column] = OUT_OF_REACH


@inlined
def set_potentials(
    n_rows: Word,
    n_columns: Word,
    cost: Floats,
    structural: Floats,
    stride: Word,
    parent: Words,
    row_potential: Floats,
    column_potential: Floats,
    row_slope: Floats,
    column_slope: Floats,
) -> None:
    """After ``assign_greedily``, potentials with row + column = ``cost`` on every tree arc, and 0 at the root.

    Slopes likewise for structural. What fills a column is a later row than those that hang on it, and so the last row
    comes first and nothing is looked for.
    """
    row_slope[0] = 0.0
    for begin in range(ZERO, in_lanes(n_columns), STEP):
        clear_lanes(column_slope, begin)
    for rows_before in range(ZERO, n_rows):
        row = n_rows - rows_before
        above = parent[row]
        over = parent[above]
        column = above - COLUMNS if above else ZERO
        column_potential[column] = cost[over * stride + column] - row_potential[over]
        column_slope[column] = structural[over * stride + column] - row_slope[over]
        row_potential[row] = cost[row * stride + column] - column_potential[column]
        row_slope[row] = structural[row * stride + column] - column_slope[column]
    for column in range(ONE, n_columns + ONE):
        above = parent[COLUMNS + column]
        column_potential[column] = cost[above * stride + column] - row_potential[above]
        column_slope[column] = structural[above * stride + column] - row_slope[above]


@inlined
def move_potentials(
    n_rows: Word,
    n_columns: Word,
    change: float,
    row_potential: Floats,
    column_potential: Floats,
    row_slope: Floats,
    column_slope: Floats,
) -> None:
    """The potentials of the same tree where the structural weight has changed by ``change``."""
    for begin in range(ZERO, in_lanes(n_rows), STEP):
        set_lanes(row_potential, begin, row_potential, begin, row_slope, begin, change)
    for begin in range(ZERO, in_lanes(n_columns), STEP):
        set_lanes(column_potential, begin, column_potential, begin, column_slope, begin, change)


@inlined
def _pivot(
    n_row_lanes: Word,
    n_column_lanes: Word,
    row: Word,
    column: Word,
    reduced_cost: float,
    reduced_slope: float,
    parent: Words,
    flow: Floats,
    rows_below: Words,
    columns_below: Words,
    row_potential: Floats,
    column_potential: Floats,
    row_slope: Floats,
    column_slope: Floats,
    path: Words,
) -> Word:
    """Bring the arc from ``row`` to ``column`` (0 is the root in both) into the tree.

    Returns the rows of which some arc may look better than before. What moves shifts against what does not: with the
    row's end, arcs to the columns that move fall in price for all rows that stay; with the column's end, arcs of the
    rows that move, to all columns that stay. All other arcs cost as much as before or more.
    """
    # Up from both ends to the apex (everything is below the root). Rows and columns take turns, so flow drops on every
    # other node: those in even places. Selecting, not branching, since which of them is the least cannot be predicted.
    target = COLUMNS + column if column else ZERO
    step = np.inf
    leaving = ZERO
    row_end = ZERO
    x = row
    while not (columns_below[x] >> column) & ONE:
        path[row_end] = x
        amount = np.inf if row_end & ONE else flow[x]
        less = amount < step
        step = amount if less else step
        leaving = row_end if less else leaving
        row_end += ONE
        x = parent[x]
    apex = x
    column_end = SECOND_ARM
    x = target
    while x != apex:
        path[column_end] = x
        amount = np.inf if column_end & ONE else flow[x]
        less = amount <= step
        step = amount if less else step
        leaving = column_end if less else leaving
        column_end += ONE
        x = parent[x]

    # What hung below the leaving arc is turned over, from its end of the new arc, and hung on the other end.
    moved_rows = rows_below[path[leaving]]
    moved_columns = columns_below[path[leaving]]
    if leaving < SECOND_ARM:
        turned, turned_end = ZERO, row_end
        other, other_end = SECOND_ARM, column_end
        above = target
        shift = reduced_cost
        slope_shift = reduced_slope
        cheaper = ~moved_rows if moved_columns else ZERO
    else:
        turned, turned_end = SECOND_ARM, column_end
        other, other_end = ZERO, row_end
        above = row
        shift = -reduced_cost
        slope_shift = -reduced_slope
        cheaper = moved_rows
    rows_of_previous = ZERO
    columns_of_previous = ZERO
    carried = step
    change = -step
    for i in range(turned, leaving + ONE):
        x = path[i]
        changed = flow[x] + change
        flow[x] = carried
        carried = changed
        change = -change
        parent[x] = above
        above = x
        rows_before = rows_below[x]
        columns_before = columns_below[x]
        rows_below[x] = moved_rows & ~rows_of_previous
        columns_below[x] = moved_columns & ~columns_of_previous
        rows_of_previous = rows_before
        columns_of_previous = columns_before
    for i in range(leaving + ONE, turned_end):
        x = path[i]
        flow[x] += change
        change = -change
        rows_below[x] &= ~moved_rows
        columns_below[x] &= ~moved_columns
    change = -step
    for i in range(other, other_end):
        x = path[i]
        flow[x] += change
        change = -change
        rows_below[x] |= moved_rows
        columns_below[x] |= moved_columns
    for begin in range(ZERO, n_row_lanes, STEP):
        add_to_lanes(row_potential, begin, moved_rows >> begin, shift)
        add_to_lanes(row_slope, begin, moved_rows >> begin, slope_shift)
    for begin in range(ZERO, n_column_lanes, STEP):
        add_to_lanes(column_potential, begin, moved_columns >> begin, -shift)
        add_to_lanes(column_slope, begin, moved_columns >> begin, -slope_shift)
    return cheaper


@inlined
def optimise(
    n_rows: Word,
    n_columns: Word,
    cost: Floats,
    structural: Floats,
    stride: Word,
    parent: Words,
    flow: Floats,
    rows_below: Words,
    columns_below: Words,
    row_potential: Floats,
    column_potential: Floats,
    row_slope: Floats,
    column_slope: Floats,
    path: Words,
) -> int:
    """Pivot from the basis given, with its potentials, to an optimal one for ``cost``.

    ``cost[stride * row + column]``: rows of ``stride``, a multiple of LANES. Each row in turn brings in its best arc
    until it has none; the turn goes by those rows of which an arc may be worth entering, all of them at first, and when
    there are none the basis is optimal. Returns the number of pivots, or NOT_CONVERGED.
    """
    n_row_lanes = in_lanes(n_rows)
    n_column_lanes = in_lanes(n_columns)
    most_pivots = PIVOTS_PER_NODE * (int(n_rows) + int(n_columns) + 1)
    n_pivots = 0
    all_rows = ALL >> (COLUMNS - ONE - n_rows)
    open_rows = all_rows
    row = ZERO
    while open_rows and n_pivots <= most_pivots:
        further = open_rows & (ALL << row)
        row = first_bit(further if further else open_rows)
        first = row * stride
        bound = row_potential[row] - REDUCED_COST_TOLERANCE
        if any_below(cost, first, column_potential, ZERO, n_column_lanes, bound):
            best = least_of_lanes(cost, first, column_potential, ZERO, n_column_lanes)
            bests = ZERO
            for begin in range(ZERO, n_column_lanes, STEP):
                bests |= lanes_equal(cost, first + begin, column_potential, begin, best) << begin
            column = first_bit(bests)
            open_rows |= all_rows & _pivot(
                n_row_lanes, n_column_lanes, row, column, best - row_potential[row],
                structural[first + column] - row_slope[row] - column_slope[column],
                parent, flow, rows_below, columns_below,
                row_potential, column_potential, row_slope, column_slope, path,
            )  # fmt: skip
            n_pivots += 1
        else:
            open_rows &= ~(ONE << row)
    return n_pivots if n_pivots <= most_pivots else NOT_CONVERGED


@inlined
def total_cost(n_rows: Word, n_columns: Word, cost: Floats, stride: Word, parent: Words, flow: Floats) -> float:
    """Summed over tree arcs, so that a network matched with itself costs exactly 0."""
    total = 0.0
    for row in range(ONE, n_rows + ONE):
        above = parent[row]
        total += flow[row] * cost[row * stride + (above - COLUMNS if above else ZERO)]
    for column in range(ONE, n_columns + ONE):
        x = COLUMNS + column
        total += flow[x] * cost[parent[x] * stride + column]
    return total

"""Lower bounds on d between one network and some of many, for a fraction of what solving costs.

Within a class let A be what the rows have to give and B what the columns have. Matched mass pays its cost; each unit of
the rows that stays unassigned leaves one of the columns so, and they pay 1 each. With c(x) the least cost of row x,

    d = B - A + sum over x of (matched cost, or 2 a unit where unassigned) >= B - A + sum over x of a(x) min(c(x), 2)

where no more than B can be matched: the dearest rows stay unassigned beyond that. The same holds for columns, and the
larger of the two bounds counts, for each structural weight. What both networks have in the same place is cancelled
before, as for solving, so that relatives are bounded closely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture.penalties import NEVER_MATCH
from nasbot.otmann._kernels._marking import inlined, kernel
from nasbot.otmann._kernels.lanes import HOPS, LANES, WALKS, Hops
from nasbot.otmann._kernels.pairs import cancel, largest, match_one_with_one, structural_costs, whole_lines

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@inlined
def _one_sided(n: int, masses: Floats, least: Floats, to_match: float) -> float:
    """Sum of masses times costs, those beyond ``to_match`` at NEVER_MATCH: the cheapest are matched. Sorts both."""
    for i in range(1, n):
        cost, mass = least[i], masses[i]
        j = i - 1
        while j >= 0 and least[j] > cost:
            least[j + 1] = least[j]
            masses[j + 1] = masses[j]
            j -= 1
        least[j + 1] = cost
        masses[j + 1] = mass
    total = 0.0
    for i in range(n):
        matched = min(masses[i], to_match)
        to_match -= matched
        total += matched * min(least[i], NEVER_MATCH) + (masses[i] - matched) * NEVER_MATCH
    return total


@inlined
def _least_costs(n: int, label_cost: Floats, structural: Floats, weight: float, least: Floats) -> float:
    """The least of n costs, at most NEVER_MATCH; ``least`` becomes the lesser of itself and each."""
    best = NEVER_MATCH
    for y in range(n):
        cost = label_cost[y] + weight * structural[y]
        best = cost if cost < best else best
        least[y] = cost if cost < least[y] else least[y]
    return best


@kernel
def mean_bounds(
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
    order_2: Integers,
    weights: Floats,
    out: Floats,
) -> int:
    """out[j] = lower bound on d, averaged over weights, of the one network of the first side against the j-th packed.

    Arguments are those of ``add_distances``. Returns the number of bounds.
    """
    n_groups = hops_1.shape[0] // HOPS
    hop = 1.0 / (n_groups * (HOPS + WALKS))
    length_1 = hops_1.shape[1]
    length_2 = hops_2.shape[1]
    flat_hops_1 = hops_1.ravel()
    flat_walks_1 = walks_1.ravel()
    flat_hops_2 = hops_2.ravel()
    flat_walks_2 = walks_2.ravel()
    flat_label_costs_2 = label_costs_2.ravel()
    most_rows = largest(offsets_1, 0, 1)
    n_networks: int = offsets_2.shape[1] - 1
    most_columns = largest(offsets_2, 0, n_networks)
    width = (most_columns + LANES - 1) // LANES * LANES
    structural = whole_lines(most_rows * width + LANES)
    zeros = np.zeros(LANES)
    mass_left_1 = np.empty(most_rows)
    mass_left_2 = np.empty(most_columns)
    kept_columns = np.empty(most_columns + 1, np.int64)
    stride = (most_columns + LANES) // LANES * LANES
    structural_left = whole_lines((most_rows + 1) * stride + LANES)
    label_cost_left = whole_lines((most_rows + 1) * stride + LANES)
    least_1 = np.empty(most_rows)
    least_2 = np.empty(most_columns)
    sorted_1 = np.empty(most_rows)
    sorted_2 = np.empty(most_columns)
    values = np.empty(len(weights))
    for j in range(n_networks):
        total = 0.0
        for c in range(len(offsets_1)):
            row_0 = offsets_1[c, 0]
            n_rows = offsets_1[c, 1] - row_0
            column_0 = offsets_2[c, j]
            n_columns = offsets_2[c, j + 1] - column_0
            structural_costs(
                flat_hops_1, flat_walks_1, length_1, row_0, n_rows,
                flat_hops_2, flat_walks_2, length_2, column_0, column_0 + n_columns,
                n_groups, hop, structural, width,
            )  # fmt: skip
            if n_rows == 1 and n_columns == 1:
                match_one_with_one(
                    masses_1[row_0], masses_2[column_0], label_costs_2[labels_1[row_0], column_0],
                    structural[0], weights, values,
                )  # fmt: skip
                total += values.sum()
                continue
            rows, columns = cancel(
                row_0, n_rows, column_0, n_columns, masses_1, labels_1, masses_2,
                flat_label_costs_2, length_2, structural, 0, width, zeros,
                mass_left_1, mass_left_2, kept_columns, structural_left, label_cost_left, stride,
            )  # fmt: skip
            mass_1 = mass_left_1[:rows].sum()
            mass_2 = mass_left_2[:columns].sum()
            for weight in weights:
                for y in range(columns):
                    least_2[y] = NEVER_MATCH
                    sorted_2[y] = mass_left_2[y]
                for x in range(rows):
                    first = (x + 1) * stride + 1
                    least_1[x] = _least_costs(
                        columns,
                        label_cost_left[first : first + columns],
                        structural_left[first : first + columns],
                        weight,
                        least_2,
                    )
                    sorted_1[x] = mass_left_1[x]
                by_rows = mass_2 - mass_1 + _one_sided(rows, sorted_1, least_1, mass_2)
                by_columns = mass_1 - mass_2 + _one_sided(columns, sorted_2, least_2, mass_1)
                total += max(by_rows, by_columns)
        out[order_2[j]] = total / len(weights)
    return n_networks

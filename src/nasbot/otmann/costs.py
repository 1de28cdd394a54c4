"""C_lmm and C_str of Section 3 for one pair of networks, written as the formulas (the batch kernel has its own)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture, LabelPenalties
from nasbot.architecture.penalties import NON_ASSIGNMENT_COST

Floats = NDArray[np.float64]


def label_cost(a: Architecture, b: Architecture, penalties: LabelPenalties) -> Floats:
    """C_lmm (n1, n2): the penalty between the labels of every two layers, infinities included."""
    table = np.array(penalties.rows)
    index = a.vocabulary.index
    rows = [index[layer.label] for layer in a.layers]
    columns = [index[layer.label] for layer in b.layers]
    cost: Floats = table[np.ix_(rows, columns)]
    return cost


def structural_cost(a: Architecture, b: Architecture) -> Floats:
    """C_str (n1, n2): mean over groups and over the six path lengths of their absolute difference."""
    difference = a.path_lengths.features[:, None, :] - b.path_lengths.features[None, :, :]
    cost: Floats = np.abs(difference).mean(axis=-1)
    return cost


def augmented_cost(cost: Floats) -> Floats:
    """C' of App. A.1 with the unassigned row and column first: cost 1 to stay unassigned, 0 at the corner."""
    n1, n2 = cost.shape
    augmented = np.full((n1 + 1, n2 + 1), NON_ASSIGNMENT_COST)
    augmented[0, 0] = 0.0
    augmented[1:, 1:] = cost
    return augmented

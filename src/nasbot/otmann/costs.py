"""C_lmm and C_str of Section 3 for one pair of networks, written as the formulas (the batch kernel has its own)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture, LabelPenalties
from nasbot.architecture.attributes import AttributePenalties, coordinates
from nasbot.architecture.penalties import NEVER_MATCH, NON_ASSIGNMENT_COST

Floats = NDArray[np.float64]
NORM = 1  # its row among the attributes


def label_cost(
    a: Architecture, b: Architecture, penalties: LabelPenalties, of_attributes: AttributePenalties
) -> Floats:
    """C_lmm (n1, n2): the penalty between the labels of every two layers, infinities included.

    Where layers have attributes, what those differ by is added: M'((x, a), (y, b)) = min(2, M(x, y) + differences).
    """
    table = np.array(penalties.rows)
    index = a.vocabulary.index
    rows = [index[layer.label] for layer in a.layers]
    columns = [index[layer.label] for layer in b.layers]
    cost: Floats = table[np.ix_(rows, columns)]
    more = attribute_cost(attribute_columns([a]), attribute_columns([b]), of_attributes)
    return cost if more is None else np.where(cost + more < NEVER_MATCH, cost + more, np.maximum(cost, NEVER_MATCH))


def attribute_columns(archs: Sequence[Architecture]) -> Floats | None:
    """The attributes of all layers of these networks as numbers, (3, layers); None where no layer has any."""
    if all(layer.attributes is None for arch in archs for layer in arch.layers):
        return None
    by_name = archs[0].vocabulary.by_name
    found = [coordinates(layer.attributes, by_name[layer.label]) for arch in archs for layer in arch.layers]
    return np.array(found, np.float64).T


def attribute_cost(a: Floats | None, b: Floats | None, penalties: AttributePenalties) -> Floats | None:
    """What the attributes of every two layers differ by, (n1, n2); None where no layer has any.

    A sum of pseudo-distances: shares of dropout and logarithms of factors on a line, normalisations equal or not. Many
    layers have the same of one attribute, so each is compared once for its different values.
    """
    if a is None and b is None:
        return None
    first = np.zeros((3, 1)) if a is None else a
    second = np.zeros((3, 1)) if b is None else b
    weights = (penalties.dropout, penalties.norm, penalties.decay_factor)
    cost = np.zeros((first.shape[1], second.shape[1]))
    for row, weight in enumerate(weights):
        values, at = np.unique(first[row], return_inverse=True)
        difference = np.abs(values[:, None] - second[row])
        cost += (weight * (difference > 0 if row == NORM else difference))[at.reshape(-1)]
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

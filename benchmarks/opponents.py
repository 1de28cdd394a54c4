"""What a user could assemble from POT instead: a loop over ``ot.emd2``, and its bare solver with costs for free.

Fair to both sides: masses, labels and path lengths of each network are at hand. The loop asks for one distance at a
time, by network, network and structural weight; ``shared`` is the loop of a careful user, who builds label and
structural costs once for a pair. Masses are normalised: with raw ones of about 1e7 ``emd_c`` returns "infeasible,
cost 0" now and then, so its result code is looked at as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")  # POT would import torch, and dispatch on it

import numpy as np
import ot
from numpy.typing import NDArray
from ot.lp.emd_wrap import emd_c

from nasbot.architecture import Architecture
from nasbot.architecture.penalties import NEVER_MATCH, NON_ASSIGNMENT_COST

Floats = NDArray[np.float64]
OPTIMAL = 1
MAX_ITERATIONS = 100_000


@dataclass(frozen=True, eq=False)
class Prepared:
    """One network as the loop reads it."""

    labels: NDArray[np.int64]
    features: Floats  # (layers, path lengths)
    masses: Floats
    total: float


def prepared(arch: Architecture) -> Prepared:
    """Everything about one network that does not depend on the other."""
    labels = np.array([arch.vocabulary.index[layer.label] for layer in arch.layers])
    features = np.ascontiguousarray(arch.path_lengths.features)
    return Prepared(labels, features, arch.masses, arch.total_mass)


@dataclass(frozen=True, eq=False)
class Problem:
    """One transport problem with masses that sum to 1; ``total`` undoes it."""

    supply: Floats
    demand: Floats
    cost: Floats
    total: float


def problems(a: Prepared, b: Prepared, table: Floats, weights: Sequence[float]) -> Iterator[Problem]:
    """The augmented problems of App. A.1 for one pair, one for each structural weight."""
    total = a.total + b.total
    supply = np.append(a.masses, b.total) / total
    demand = np.append(b.masses, a.total) / total
    label = table[a.labels[:, None], b.labels[None, :]]
    structural = np.abs(a.features[:, None, :] - b.features[None, :, :]).mean(axis=-1)
    for nu in weights:
        cost = np.full((len(supply), len(demand)), NON_ASSIGNMENT_COST)
        cost[-1, -1] = 0.0
        np.minimum(label + nu * structural, NEVER_MATCH, out=cost[:-1, :-1])
        yield Problem(supply, demand, cost, total)


def emd2_loop(
    a: Sequence[Prepared], b: Sequence[Prepared], table: Floats, weights: Sequence[float], *, shared: bool
) -> Floats:
    """d (weights, n, m) by numpy and ``ot.emd2``."""
    groups = [tuple(weights)] if shared else [(nu,) for nu in weights]
    d = np.empty((len(weights), len(a), len(b)))
    for i, first in enumerate(a):
        for j, second in enumerate(b):
            built = (problem for group in groups for problem in problems(first, second, table, group))
            for k, problem in enumerate(built):
                d[k, i, j] = problem.total * ot.emd2(problem.supply, problem.demand, problem.cost)
    return d


def emd_c_loop(given: Sequence[Problem]) -> Floats:
    """Values by POT's low-level solver, one for each of the ``given`` problems; raises unless all are optimal."""
    values = np.empty(len(given))
    for i, problem in enumerate(given):
        _, value, _, _, code = emd_c(problem.supply, problem.demand, problem.cost, MAX_ITERATIONS, 1)
        if code != OPTIMAL:
            raise RuntimeError(f"emd_c: problem {i} ended with code {code}")
        values[i] = value * problem.total
    return values

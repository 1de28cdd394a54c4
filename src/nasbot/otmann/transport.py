"""One transport problem with the freedom to leave mass unassigned (App. A.1), solved exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nasbot.architecture.penalties import NEVER_MATCH
from nasbot.errors import OptionError, SolverError
from nasbot.otmann._kernels.network_simplex import NOT_CONVERGED, solve_one
from nasbot.otmann.costs import augmented_cost

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Transport:
    """An optimal plan: what goes where, what stays unassigned on either side, and what it costs in all."""

    total_cost: float
    matched_mass: Floats  # (n1, n2)
    unassigned_1: Floats  # (n1,)
    unassigned_2: Floats  # (n2,)


def solve_transport(mass_1: ArrayLike, mass_2: ArrayLike, cost: ArrayLike) -> Transport:
    """Match masses at ``cost`` (n1, n2) a unit or leave them unassigned at 1 a unit and side; raises unless optimal.

    A cost of NEVER_MATCH or more, infinity included, is never paid: both sides unassigned cost as much. So costs are
    clipped there without loss, and what the solver matched at that cost is unassigned.
    """
    mass_1, mass_2, cost = (np.ascontiguousarray(x, np.float64) for x in (mass_1, mass_2, cost))
    if cost.shape != (len(mass_1), len(mass_2)):
        raise OptionError(f"cost must have shape ({len(mass_1)}, {len(mass_2)}), as the masses, got {cost.shape}")
    for name, mass in (("mass_1", mass_1), ("mass_2", mass_2)):
        if not np.all((mass >= 0) & np.isfinite(mass)):
            raise OptionError(f"{name} must be finite and >= 0 everywhere")
    if not np.all(cost >= 0):
        raise OptionError("cost must be >= 0 or infinite everywhere")
    plan = np.empty((len(mass_1) + 1, len(mass_2) + 1))
    total_cost = solve_one(mass_1, mass_2, augmented_cost(np.minimum(cost, NEVER_MATCH)), plan)
    if total_cost == NOT_CONVERGED:
        raise SolverError(f"network simplex did not converge on a {cost.shape} problem; please report this case")
    matched = plan[1:, 1:]
    freed = np.where(cost >= NEVER_MATCH, matched, 0.0)
    return Transport(
        float(total_cost), matched - freed, plan[1:, 0] + freed.sum(axis=1), plan[0, 1:] + freed.sum(axis=0)
    )

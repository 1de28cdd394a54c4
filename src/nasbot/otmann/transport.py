"""One transport problem with the freedom to leave mass unassigned (App. A.1), solved exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nasbot.errors import OptionError, SolverError
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
    """Match masses at ``cost`` (n1, n2) a unit, or leave them unassigned at 1 a unit and side. Raises unless optimal."""
    from nasbot.otmann._network_simplex import NOT_CONVERGED, solve_one

    mass_1, mass_2, cost = (np.ascontiguousarray(x, np.float64) for x in (mass_1, mass_2, cost))
    if cost.shape != (len(mass_1), len(mass_2)):
        raise OptionError(f"cost must have shape ({len(mass_1)}, {len(mass_2)}), as the masses, got {cost.shape}")
    for name, array in (("mass_1", mass_1), ("mass_2", mass_2), ("cost", cost)):
        if not np.all(np.isfinite(array)) or np.any(array < 0):
            raise OptionError(f"{name} must be finite and >= 0 everywhere; clip costs at 2, which changes nothing")
    plan = np.empty((len(mass_1) + 1, len(mass_2) + 1))
    total_cost = solve_one(mass_1, mass_2, augmented_cost(cost), plan)
    if total_cost == NOT_CONVERGED:
        raise SolverError(f"network simplex did not converge on a {cost.shape} problem; please report this case")
    return Transport(float(total_cost), plan[1:, 1:], plan[1:, 0], plan[0, 1:])

"""The solver on single problems, against linear programming and by hand."""

import numpy as np
import pytest
from hypothesis import given

from nasbot.errors import OptionError
from nasbot.otmann import solve_transport
from nasbot.otmann._kernels import network_simplex
from nasbot.otmann.costs import augmented_cost
from nasbot.testing.reference import reference_transport
from nasbot.testing.strategies import TransportProblem, transport_problems


@given(transport_problems())
def test_network_simplex_matches_linear_programming(problem: TransportProblem) -> None:
    fast = solve_transport(problem.mass_1, problem.mass_2, problem.cost)
    slow = reference_transport(problem.mass_1, problem.mass_2, problem.cost)
    scale = max(float(problem.mass_1.sum() + problem.mass_2.sum()), 1e-300)
    assert fast.total_cost / scale == pytest.approx(slow.total_cost / scale, rel=1e-9, abs=1e-12)


@given(transport_problems())
def test_plans_are_feasible_and_cost_what_they_say(problem: TransportProblem) -> None:
    plan = solve_transport(problem.mass_1, problem.mass_2, problem.cost)
    assert (plan.matched_mass >= 0).all()
    assert (plan.unassigned_1 >= 0).all()
    assert (plan.unassigned_2 >= 0).all()
    scale = max(float(problem.mass_1.sum() + problem.mass_2.sum()), 1e-300)
    given_out = plan.matched_mass.sum(axis=1) + plan.unassigned_1
    taken_in = plan.matched_mass.sum(axis=0) + plan.unassigned_2
    np.testing.assert_allclose(given_out / scale, problem.mass_1 / scale, rtol=0, atol=1e-13)
    np.testing.assert_allclose(taken_in / scale, problem.mass_2 / scale, rtol=0, atol=1e-13)
    matched = plan.matched_mass > 0
    cost = (
        (plan.matched_mass[matched] * problem.cost[matched]).sum() + plan.unassigned_1.sum() + plan.unassigned_2.sum()
    )
    assert cost / scale == pytest.approx(plan.total_cost / scale, rel=1e-12, abs=1e-14)


def test_mass_goes_where_it_is_cheap_and_stays_where_it_is_not() -> None:
    plan = solve_transport([5.0, 3.0], [4.0, 3.0], [[0.1, 2.0], [1.5, 2.0]])
    np.testing.assert_allclose(plan.matched_mass, [[4.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(plan.unassigned_1, [1.0, 3.0])
    np.testing.assert_allclose(plan.unassigned_2, [0.0, 3.0])
    assert plan.total_cost == pytest.approx(4 * 0.1 + 1 + 3 + 3)


@pytest.mark.parametrize("n", [2, 5, 20, 60])
def test_fully_degenerate_problems_end(n: int) -> None:
    """Equal masses and equal costs: every basis is degenerate, the classical trap for a simplex method."""
    plan = solve_transport(np.ones(n), np.ones(n), np.full((n, n), 0.5))
    assert plan.total_cost == pytest.approx(0.5 * n)


def test_either_side_may_be_empty_or_massless() -> None:
    assert solve_transport([], [2.0], np.zeros((0, 1))).total_cost == 2.0
    assert solve_transport([0.0, 0.0], [0.0], np.zeros((2, 1))).total_cost == 0.0


@pytest.mark.parametrize(
    ("mass_1", "mass_2", "cost", "message"),
    [
        ([1.0], [1.0], [[0.5, 0.5]], r"cost must have shape \(1, 1\)"),
        ([-1.0], [1.0], [[0.5]], "mass_1 must be finite and >= 0"),
        ([1.0], [np.nan], [[0.5]], "mass_2 must be finite and >= 0"),
        ([np.inf], [1.0], [[0.5]], "mass_1 must be finite and >= 0"),
        ([1.0], [1.0], [[np.nan]], "cost must be >= 0 or infinite"),
        ([1.0], [1.0], [[-0.5]], "cost must be >= 0 or infinite"),
        ([1.0, -1.0], [1.0], [[0.5], [0.5]], "mass_1 must be finite and >= 0"),  # one of several
        ([1.0, 1.0], [1.0], [[0.5], [-0.5]], "cost must be >= 0 or infinite"),
    ],
)
def test_input_that_cannot_be_meant_is_refused(mass_1: object, mass_2: object, cost: object, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        solve_transport(mass_1, mass_2, cost)  # type: ignore[arg-type]


def test_the_root_has_a_potential_of_its_own_whatever_memory_held():
    mass, cost, nodes = np.array([1.0, 2.0]), augmented_cost(np.array([[0.3, 0.4], [0.5, 0.1]])), 5
    tree, flow, scratch = np.zeros((4, nodes), np.int64), np.zeros(nodes), np.zeros((2, nodes), np.int64)
    rows, columns = np.full(3, np.nan), np.full(3, np.nan)
    network_simplex.start_unassigned(mass, mass, tree, flow)
    assert network_simplex.optimise(2, 2, cost, tree, flow, rows, columns, scratch, 0) >= 0
    assert network_simplex.total_cost(2, 2, cost, tree, flow) == pytest.approx(0.3 + 2 * 0.1)

"""The reference distance: checked by hand, by brute force, by POT, and made to refuse."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.architecture import Architecture, LabelPenalties, Layer, MassRules
from nasbot.errors import NasbotError, OptionError, SolverError, VocabularyError
from nasbot.testing import reference
from nasbot.testing.networks import random_architecture
from nasbot.testing.reference import (
    UnsolvedError,
    reference_distance,
    reference_masses,
    reference_matching,
    reference_transport,
    solve_matching,
)
from nasbot.testing.strategies import TransportProblem, transport_problems

INF = np.inf


def chain(kind: str, *layers: Layer) -> Architecture:
    return Architecture(kind, layers, [(u, u + 1) for u in range(len(layers) - 1)])


def mlp(*inner: Layer) -> Architecture:
    return chain("mlp-reg", Layer("ip"), *inner, Layer("linear"), Layer("op"))


def test_by_hand_one_layer_with_more_units() -> None:
    """Masses 8 and 10, the rest a tenth of them each: nothing costs anything but the 2 + 3 * 0.2 left over."""
    matching = reference_matching(mlp(Layer("relu", 8)), mlp(Layer("relu", 10)), 0.5)
    assert matching.distance == pytest.approx(2.6, rel=1e-12)
    assert matching.normalised_distance == pytest.approx(2.6 / (18 * 1.3), rel=1e-12)
    np.testing.assert_allclose(matching.matched_mass, np.diag([0.8, 8, 0.8, 0.8]), atol=1e-12)
    np.testing.assert_allclose(matching.unassigned_2, [0.2, 2, 0.2, 0.2], atol=1e-12)
    assert matching.label_penalty == matching.structural_penalty == 0


def test_by_hand_another_label() -> None:
    """8 units at 0.25 each between relu and tanh; their groups' path lengths differ by 1 at every layer but the last.

    Rectifier and sigmoid lengths differ in 1 of the two ends at ip (to the output), linear and op (from the input),
    and in both at the layer itself: for each of the two groups, 3 of 6 kinds or 6 of 6, over 3 groups.
    """
    matching = reference_matching(mlp(Layer("relu", 8)), mlp(Layer("tanh", 8)), 0.3)
    assert matching.label_penalty == pytest.approx(8 * 0.25, rel=1e-12)
    structural = 0.3 * (3 * 0.8 * (2 * 0.5) / 3 + 8 * (2 * 1.0) / 3)
    assert matching.structural_penalty == pytest.approx(structural, rel=1e-12)
    assert matching.unassigned_mass == pytest.approx(0, abs=1e-12)


def test_what_is_too_far_away_is_left_unassigned() -> None:
    """At a structural weight this large nothing but equal places match: d is then all the mass of both."""
    a, b = mlp(Layer("relu", 8)), mlp(*[Layer("relu", 8)] * 6)
    matching = reference_matching(a, b, 1e6)
    assert matching.distance == pytest.approx(reference_masses(a).sum() + reference_masses(b).sum(), rel=1e-12)
    assert matching.normalised_distance == pytest.approx(1)


def test_penalties_and_mass_rules_are_arguments() -> None:
    a, b = mlp(Layer("relu", 10)), mlp(Layer("elu", 10))
    labels = a.vocabulary.penalties.labels
    free = LabelPenalties.from_pairs(labels, {("relu", "elu"): 0.0})
    never = LabelPenalties.from_pairs(labels, {})
    assert reference_distance(a, b, 0.5) == pytest.approx(10 * 0.1)
    assert reference_distance(a, b, 0.5, penalties=free) == pytest.approx(0, abs=1e-12)
    assert reference_distance(a, b, 0.5, penalties=never) == pytest.approx(20)
    heavy = MassRules(factors={"relu": 3.0, "elu": 3.0})
    assert reference_distance(a, b, 0.5, mass_rules=heavy) == pytest.approx(30 * 0.1)


def test_networks_without_mass_are_at_distance_zero() -> None:
    bare = mlp()
    matching = reference_matching(bare, bare, 0.5)
    assert matching.distance == matching.normalised_distance == 0
    assert reference_distance(bare, mlp(Layer("relu", 10)), 0.5) == pytest.approx(13)


@given(st.integers(1, 3), st.integers(1, 3), st.data())
def test_brute_force_on_whole_masses(n1: int, n2: int, data: st.DataObject) -> None:
    """With whole masses some optimal matching is whole, so trying all of those finds the minimum of eq. (3)."""
    masses = st.integers(0, 2)
    m1, m2 = ([data.draw(masses) for _ in range(n)] for n in (n1, n2))
    costs = st.sampled_from([0.0, 0.3, 1.0, 1.7, 2.5, INF])
    cost = np.array([[data.draw(costs) for _ in range(n2)] for _ in range(n1)])
    best = INF
    for flat in itertools.product(range(3), repeat=n1 * n2):
        z = np.array(flat).reshape(n1, n2)
        if (z.sum(axis=1) <= m1).all() and (z.sum(axis=0) <= m2).all() and not z[np.isinf(cost)].any():
            paid = (z * np.where(np.isinf(cost), 0, cost)).sum()
            best = min(best, float(paid + sum(m1) + sum(m2) - 2 * z.sum()))
    assert solve_matching(m1, m2, cost, np.zeros_like(cost), 0.0).distance == pytest.approx(best, abs=1e-9)
    assert reference_transport(m1, m2, cost).total_cost == pytest.approx(best, abs=1e-9)


@given(transport_problems())
def test_a_matching_keeps_its_constraints_exactly(problem: TransportProblem) -> None:
    solved = solve_matching(problem.mass_1, problem.mass_2, problem.cost, np.zeros_like(problem.cost), 0.0)
    assert (solved.matched_mass >= 0).all()
    assert (solved.matched_mass[np.isinf(problem.cost)] == 0).all()
    rounding = 1e-15 * solved.total_mass
    assert (solved.matched_mass.sum(axis=1) <= problem.mass_1 + rounding).all()
    assert (solved.matched_mass.sum(axis=0) <= problem.mass_2 + rounding).all()
    assert solved.gap <= 1e-10 * solved.distance + 1e-13 * solved.total_mass


def test_pot_gives_the_same_cost() -> None:
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(2)
    for kind in ("mlp-reg", "mlp-class", "cnn"):
        a, b = (random_architecture(kind, rng=rng, n_layers=20) for _ in range(2))
        cost = reference.reference_label_cost(a, b) + 0.4 * reference.reference_structural_cost(a, b)
        m1, m2 = reference_masses(a), reference_masses(b)
        augmented = np.ones((len(m1) + 1, len(m2) + 1))
        augmented[:-1, :-1], augmented[-1, -1] = np.minimum(cost, 2), 0
        total = m1.sum() + m2.sum()
        expected = total * ot.emd2(np.append(m1, m2.sum()) / total, np.append(m2, m1.sum()) / total, augmented)
        assert reference_distance(a, b, 0.4) == pytest.approx(expected, rel=1e-9)


# -- what it refuses ---------------------------------------------------------------------------------------------------


def test_networks_of_two_kinds_are_refused() -> None:
    other = chain("mlp-class", Layer("ip"), Layer("relu", 8), Layer("softmax"), Layer("op"))
    with pytest.raises(VocabularyError, match="got mlp-reg and mlp-class"):
        reference_distance(mlp(Layer("relu", 8)), other, 0.5)


@pytest.mark.parametrize("nu", [-0.1, INF, float("nan")])
def test_a_structural_weight_that_cannot_be_meant_is_refused(nu: float) -> None:
    with pytest.raises(OptionError, match=f"structural_weight must be a finite number >= 0, got {nu}"):
        reference_distance(mlp(Layer("relu", 8)), mlp(Layer("relu", 9)), nu)


@pytest.mark.parametrize("masses", [[-1.0], [float("nan")], [INF], [[1.0]]])
def test_masses_that_cannot_be_meant_are_refused(masses: list) -> None:
    with pytest.raises(OptionError, match="masses must be one row of finite numbers >= 0"):
        reference_transport(masses, [1.0], [[0.0]])


def test_a_program_that_was_not_solved_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "linprog", lambda *_, **__: SimpleNamespace(status=4, message="numerical trouble"))
    for solve in (
        lambda: solve_matching([1.0], [1.0], [[0.5]], [[0.0]], 0.0),
        lambda: reference_transport([1.0], [1.0], [[0.5]]),
    ):
        with pytest.raises(UnsolvedError, match=r"HiGHS did not solve a program of .* variables: numerical trouble"):
            solve()
    assert issubclass(UnsolvedError, SolverError)
    assert issubclass(UnsolvedError, NasbotError)


def test_an_answer_that_is_not_optimal_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that claims success with nothing matched: its prices cannot prove that."""
    honest = reference.linprog

    def lazy(*args, **kwargs):
        result = honest(*args, **kwargs)
        result.x = np.zeros_like(result.x)
        return result

    monkeypatch.setattr(reference, "linprog", lazy)
    with pytest.raises(UnsolvedError, match=r"found penalties of 2\.0, but only 0\.5 is proven"):
        solve_matching([1.0], [1.0], [[0.5]], [[0.0]], 0.0)
    with pytest.raises(UnsolvedError, match=r"found penalties of 2\.0, but only 0\.5 is proven"):
        reference_transport([1.0], [1.0], [[0.5]])

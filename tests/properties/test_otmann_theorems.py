"""The theorems of Section 3 and Appendix A as properties of the distance, and the linear program as its oracle."""

import os
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nasbot
from nasbot.architecture import Architecture, Layer, MassRules
from nasbot.otmann.presets import PRESETS
from nasbot.testing.networks import random_architecture, relabelled
from nasbot.testing.reference import (
    reference_distance,
    reference_label_cost,
    reference_masses,
    reference_matching,
    reference_structural_cost,
    reference_transport,
    solve_matching,
)
from nasbot.testing.strategies import (
    TransportProblem,
    architecture_tuples,
    architectures,
    generators,
    transport_problems,
)

KINDS = ("mlp-reg", "mlp-class", "cnn")
WEIGHTS = (0.1, 0.2, 0.4, 0.8)
THOROUGH = os.environ.get("NASBOT_THOROUGH", "") not in ("", "0")
N_ORACLE_PAIRS = 2_400 if THOROUGH else 600  # in all; HiGHS takes 5 to 60 ms a pair
ROUNDING = 1e-12  # of the masses, which distances are small differences of

presets = st.sampled_from(sorted(PRESETS))


def total_mass(*archs: Architecture, preset: str = "paper") -> float:
    """The yardstick of rounding errors."""
    return float(sum(nasbot.layer_masses(arch, PRESETS[preset].mass_rules).sum() for arch in archs))


# -- Theorem 1 ---------------------------------------------------------------------------------------------------------


@given(architectures(max_layers=24), presets)
def test_every_network_is_at_distance_zero_from_itself_exactly(arch: Architecture, preset: str) -> None:
    assert (nasbot.distance(arch, arch, preset=preset).d == 0).all()


@given(architecture_tuples(2, max_layers=24), presets)
def test_the_distance_is_symmetric_and_not_negative(pair: tuple[Architecture, ...], preset: str) -> None:
    a, b = pair
    there, back = nasbot.distance(a, b, preset=preset), nasbot.distance(b, a, preset=preset)
    assert (there.d >= 0).all()
    np.testing.assert_allclose(there.d, back.d, rtol=1e-11, atol=ROUNDING * total_mass(a, b))
    np.testing.assert_allclose(there.d_bar, back.d_bar, rtol=1e-11, atol=ROUNDING)


@given(architecture_tuples(3, max_layers=20), presets)
def test_the_triangle_inequality_holds(triple: tuple[Architecture, ...], preset: str) -> None:
    d = nasbot.pairwise(triple, preset=preset).d
    slack = ROUNDING * total_mass(*triple, preset=preset)
    for x, y, z in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        assert (d[:, x, z] <= d[:, x, y] + d[:, y, z] + slack).all()


def test_the_triangle_inequality_can_be_tight() -> None:
    """Between chains that only lose mass the detour costs nothing: a test with a strict inequality would be vacuous."""
    narrow, middle, wide = (chain("relu", units) for units in (8, 16, 32))
    d = nasbot.pairwise([narrow, middle, wide]).d
    np.testing.assert_allclose(d[:, 0, 2], d[:, 0, 1] + d[:, 1, 2], rtol=1e-12)
    assert (d[:, 0, 2] > 0).all()


# -- Theorem 2 ---------------------------------------------------------------------------------------------------------


@given(architecture_tuples(2, max_layers=20), st.sampled_from(WEIGHTS), presets)
def test_both_programs_of_theorem_2_and_the_solver_agree(
    pair: tuple[Architecture, ...], nu: float, preset: str
) -> None:
    a, b = pair
    rules = PRESETS[preset]
    penalties = rules.penalties_for(a.vocabulary)
    masses = [reference_masses(arch, rules.mass_rules) for arch in pair]
    cost = reference_label_cost(a, b, penalties) + nu * reference_structural_cost(a, b)
    inequalities = reference_distance(a, b, nu, penalties=penalties, mass_rules=rules.mass_rules)
    transport = reference_transport(*masses, cost).total_cost
    solver = nasbot.distance(a, b, structural_weights=[nu], preset=preset).d[0]
    close = {"rel": 1e-9, "abs": ROUNDING * total_mass(a, b, preset=preset)}
    assert transport == pytest.approx(inequalities, **close)
    assert solver == pytest.approx(inequalities, **close)


@given(transport_problems())
def test_both_programs_of_theorem_2_agree_on_any_masses_and_costs(problem: TransportProblem) -> None:
    matching = solve_matching(problem.mass_1, problem.mass_2, problem.cost, np.zeros_like(problem.cost), 0.0)
    transport = reference_transport(problem.mass_1, problem.mass_2, problem.cost)
    close = {"rel": 1e-9, "abs": ROUNDING * matching.total_mass}
    assert transport.total_cost == pytest.approx(matching.distance, **close)
    np.testing.assert_allclose(transport.plan[:-1].sum(axis=1), problem.mass_1, rtol=1e-12)
    np.testing.assert_allclose(transport.plan[:, :-1].sum(axis=0), problem.mass_2, rtol=1e-12)


@dataclass(frozen=True)
class OraclePair:
    kind: str
    preset: str
    n_layers: tuple[int, int]
    seed: int


def oracle_pairs(kind: str, n: int) -> list[OraclePair]:
    """Sizes 8 to 60 in every combination of small and large, the rule sets in turn, mostly the paper's."""
    rng = np.random.default_rng([11, KINDS.index(kind)])
    turns = ("paper", "paper", "paper", "release", "log-mass", "figure")
    sizes = rng.integers(8, 60, size=(n, 2), endpoint=True)
    return [OraclePair(kind, turns[i % len(turns)], (int(s), int(t)), i) for i, (s, t) in enumerate(sizes)]


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_the_distance_is_that_of_the_linear_program(kind: str, part: int) -> None:
    pairs = oracle_pairs(kind, N_ORACLE_PAIRS // len(KINDS))[part::4]
    worst = 0.0
    for pair in pairs:
        rng = np.random.default_rng([pair.seed, *pair.n_layers])
        a, b = (random_architecture(kind, rng=rng, n_layers=n) for n in pair.n_layers)
        nu, rules = float(rng.choice(WEIGHTS)), PRESETS[pair.preset]
        penalties = rules.penalties_for(a.vocabulary)
        expected = reference_distance(a, b, nu, penalties=penalties, mass_rules=rules.mass_rules)
        found = nasbot.distance(a, b, structural_weights=[nu], preset=pair.preset).d[0]
        assert expected > 0
        assert found == pytest.approx(expected, rel=1e-9, abs=0), pair
        worst = max(worst, abs(found - expected) / expected)
    assert worst < 1e-9
    assert len(pairs) >= N_ORACLE_PAIRS // 12


# -- Section 3: normalised distance, invariance, the pseudo-distance example -------------------------------------------


@given(architecture_tuples(2, max_layers=24), presets)
def test_the_normalised_distance_is_at_most_one(pair: tuple[Architecture, ...], preset: str) -> None:
    a, b = pair
    found = nasbot.distance(a, b, preset=preset)
    assert ((found.d_bar >= 0) & (found.d_bar <= 1)).all()
    np.testing.assert_allclose(found.d_bar * total_mass(a, b, preset=preset), found.d, rtol=1e-12)


def test_the_normalised_distance_reaches_one_where_nothing_can_be_matched() -> None:
    """Input, output and decision layers always match, so they are given next to no mass here, and a dear structure."""
    rules = nasbot.RuleSet(name="bare", mass_rules=MassRules(nonprocessing_mass=1e-9))
    conv = Architecture("cnn", [Layer("ip"), Layer("conv3", 8), Layer("softmax"), Layer("op")], CHAIN_EDGES)
    deep = [Layer("ip"), *[Layer("conv3", 8)] * 50, Layer("softmax"), Layer("op")]
    far = Architecture("cnn", deep, [(u, u + 1) for u in range(len(deep) - 1)])
    assert nasbot.distance(conv, far, structural_weights=[1e3], preset=rules).d_bar[0] == pytest.approx(1, abs=1e-8)


@given(architecture_tuples(2, max_layers=24), generators())
def test_the_numbering_of_layers_does_not_matter(pair: tuple[Architecture, ...], rng: np.random.Generator) -> None:
    a, b = pair
    renumbered = nasbot.distance(relabelled(a, rng=rng), relabelled(b, rng=rng))
    np.testing.assert_allclose(renumbered.d, nasbot.distance(a, b).d, rtol=1e-11, atol=ROUNDING * total_mass(a, b))


@given(architectures(max_layers=24), generators())
def test_a_renumbered_copy_is_at_distance_zero(arch: Architecture, rng: np.random.Generator) -> None:
    found = nasbot.distance(arch, relabelled(arch, rng=rng))
    np.testing.assert_allclose(found.d_bar, 0, atol=ROUNDING)


CHAIN_EDGES = [(0, 1), (1, 2), (2, 3)]


def chain(label: str, *units: int, kind: str = "mlp-reg", decision: str = "linear") -> Architecture:
    layers = [Layer("ip"), *(Layer(label, n) for n in units), Layer(decision), Layer("op")]
    return Architecture(kind, layers, [(u, u + 1) for u in range(len(layers) - 1)])


def split_in_halves(arch: Architecture, u: int) -> Architecture:
    """Layer u replaced by two parallel layers of half its units each, with its parents and children."""
    layer = arch.layers[u]
    assert layer.units is not None
    assert layer.units % 2 == 0
    half = Layer(layer.label, layer.units // 2, layer.stride)
    layers = [*arch.layers[:u], half, half, *arch.layers[u + 1 :]]

    def images(v: int) -> list[int]:
        return [v] if v < u else [u, u + 1] if v == u else [v + 1]

    return Architecture(arch.vocabulary, layers, [(x, y) for s, t in arch.edges for x in images(s) for y in images(t)])


@pytest.mark.parametrize("preset", sorted(PRESETS.keys() - {"log-mass"}))
def test_two_parallel_halves_are_at_distance_zero_as_in_the_appendix(preset: str) -> None:
    """The appendix's figure: 16 conv3 filters in one layer or in two layers of 8, between conv3 layers."""
    whole = chain("conv3", 16, 16, 32, kind="cnn", decision="softmax")
    halves = split_in_halves(whole, 2)
    assert whole != halves
    found = nasbot.distance(whole, halves, preset=preset)
    np.testing.assert_allclose(found.d, 0, atol=ROUNDING * total_mass(whole, preset=preset))
    assert (nasbot.distance(whole, chain("conv3", 16, 18, 32, kind="cnn", decision="softmax")).d > 1).all()


def test_two_parallel_halves_are_two_layers_where_a_layer_weighs_its_logarithm() -> None:
    whole = chain("conv3", 16, 16, 32, kind="cnn", decision="softmax")
    apart = nasbot.distance(whole, split_in_halves(whole, 2), preset="log-mass")
    more = 2 * np.log1p(8 * 16) - np.log1p(16 * 16)  # mass of two halves that one whole cannot take
    np.testing.assert_allclose(apart.d, 1.3 * more, rtol=1e-12)


@given(st.data())
def test_two_parallel_halves_are_at_distance_zero_in_any_chain(data: st.DataObject) -> None:
    """In a chain all paths go through every layer, so no path length changes when one of them is doubled."""
    kind, labels, decision = data.draw(
        st.sampled_from(
            [
                ("mlp-reg", ("relu", "elu", "tanh"), "linear"),
                ("mlp-class", ("crelu", "logistic"), "softmax"),
                ("cnn", ("conv3", "res5", "conv7"), "softmax"),
            ]
        )
    )
    even = st.integers(4, 512).map(lambda n: 2 * n)
    inner = data.draw(st.lists(st.builds(Layer, st.sampled_from(labels), even), min_size=1, max_size=12))
    layers = [Layer("ip"), *inner, Layer(decision), Layer("op")]
    whole = Architecture(kind, layers, [(u, u + 1) for u in range(len(layers) - 1)])
    halves = split_in_halves(whole, data.draw(st.integers(1, len(inner))))
    np.testing.assert_allclose(nasbot.distance(whole, halves).d, 0, atol=ROUNDING * total_mass(whole))
    assert whole != halves


# -- tables ------------------------------------------------------------------------------------------------------------


@given(architecture_tuples(5, max_layers=16))
def test_tables_are_exactly_symmetric_with_a_zero_diagonal(archs: tuple[Architecture, ...]) -> None:
    table = nasbot.pairwise(archs)
    for array in (table.d, table.d_bar):
        assert array.shape == (4, 5, 5)
        np.testing.assert_array_equal(array, array.transpose(0, 2, 1))
        np.testing.assert_array_equal(np.diagonal(array, axis1=1, axis2=2), 0)
    np.testing.assert_allclose(table.d, nasbot.cross(archs, archs).d, rtol=1e-11, atol=ROUNDING * total_mass(*archs))


@given(architecture_tuples(2, max_layers=20))
def test_a_larger_structural_weight_never_brings_networks_nearer(pair: tuple[Architecture, ...]) -> None:
    d = nasbot.distance(*pair, structural_weights=(0.0, *WEIGHTS, 5.0)).d
    assert (np.diff(d) >= -ROUNDING * total_mass(*pair)).all()


# -- the matching that explain() returns -------------------------------------------------------------------------------


@given(architecture_tuples(2, max_layers=20), st.sampled_from(WEIGHTS), presets)
def test_a_matching_keeps_the_constraints_and_adds_up_to_the_distance(
    pair: tuple[Architecture, ...], nu: float, preset: str
) -> None:
    a, b = pair
    rules = PRESETS[preset]
    matching = nasbot.explain(a, b, structural_weight=nu, preset=preset)
    m1, m2 = reference_masses(a, rules.mass_rules), reference_masses(b, rules.mass_rules)
    total = float(m1.sum() + m2.sum())
    close = {"rtol": 1e-9, "atol": ROUNDING * total}
    z = matching.matched_mass
    assert z.shape == (len(m1), len(m2))
    assert (z >= 0).all()
    assert (matching.unassigned_1 >= 0).all()
    assert (matching.unassigned_2 >= 0).all()
    np.testing.assert_allclose(z.sum(axis=1) + matching.unassigned_1, m1, **close)
    np.testing.assert_allclose(z.sum(axis=0) + matching.unassigned_2, m2, **close)

    labels = reference_label_cost(a, b, rules.penalties_for(a.vocabulary))
    assert (z[np.isinf(labels)] == 0).all()
    finite = np.where(np.isinf(labels), 0, labels)
    np.testing.assert_allclose(matching.label_penalty, (z * finite).sum(), **close)
    np.testing.assert_allclose(matching.structural_penalty, nu * (z * reference_structural_cost(a, b)).sum(), **close)
    unassigned = matching.unassigned_1.sum() + matching.unassigned_2.sum()
    np.testing.assert_allclose(matching.unassigned_mass, unassigned, **close)

    parts = matching.label_penalty + matching.unassigned_mass + matching.structural_penalty
    found = nasbot.distance(a, b, structural_weights=[nu], preset=preset)
    np.testing.assert_allclose(parts, matching.distance, **close)
    np.testing.assert_allclose(found.d[0], matching.distance, **close)
    np.testing.assert_allclose(found.d_bar[0], matching.normalised_distance, rtol=1e-9, atol=ROUNDING)


def test_a_matching_is_as_good_as_the_best_one() -> None:
    rng = np.random.default_rng(5)
    for kind in KINDS:
        a, b = (random_architecture(kind, rng=rng, n_layers=24) for _ in range(2))
        best, ours = reference_matching(a, b, 0.4), nasbot.explain(a, b, structural_weight=0.4)
        assert ours.distance == pytest.approx(best.distance, rel=1e-10)
        assert ours.normalised_distance == pytest.approx(best.normalised_distance, rel=1e-10)

"""Tables of distances: shapes, threads, rule sets, bad input. Theorems and reference numbers have their own folders."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from torch import nn

import nasbot
from nasbot.architecture import Architecture, Layer, SearchSpace
from nasbot.errors import OptionError, SolverError, VocabularyError
from nasbot.evolution import sample_edits
from nasbot.otmann import Otmann, PairwiseDistances, distances
from nasbot.otmann._kernels.network_simplex import NOT_CONVERGED
from nasbot.otmann.solver import PLAIN, Solver
from nasbot.testing.networks import random_architecture
from nasbot.testing.reference import reference_distance


def networks(kind: str, n: int, first_seed: int = 0) -> list[Architecture]:
    seeds = range(first_seed, first_seed + n)
    return [random_architecture(kind, rng=np.random.default_rng(s), n_layers=8 + s % 20) for s in seeds]


@pytest.mark.parametrize("kind", ["mlp-reg", "mlp-class", "cnn"])
def test_all_three_ways_of_asking_agree(kind: str) -> None:
    archs = networks(kind, 12)
    table = nasbot.pairwise(archs)
    block = nasbot.cross(archs[:5], archs[5:])
    assert table.d.shape == table.d_bar.shape == (4, 12, 12)
    assert block.d.shape == (4, 5, 7)
    np.testing.assert_allclose(table.d[:, :5, 5:], block.d, rtol=1e-13)
    one = nasbot.distance(archs[1], archs[9])
    assert one.d.shape == one.d_bar.shape == (4,)
    np.testing.assert_allclose(one.d, table.d[:, 1, 9], rtol=1e-13)
    np.testing.assert_array_equal(table.d, table.d.transpose(0, 2, 1))


def test_the_solver_is_told_how_many_pairs_of_layers_it_will_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    """By that a process decides whether compiling is worth it."""
    told: list[float] = []

    def solver_for(work: float) -> Solver:
        told.append(work)
        return PLAIN

    monkeypatch.setattr(distances, "solver_for", solver_for)
    a, b = networks("cnn", 3), networks("cnn", 2, first_seed=9)
    n, m = (sum(len(arch.layers) for arch in archs) for archs in (a, b))
    otmann = Otmann()
    otmann.cross(a, b)
    otmann.pairwise(a)
    otmann.bounds(otmann.pack(a[:1]), otmann.pack(b))
    assert told == [n * m, n * n / 2, len(a[0].layers) * m]


@pytest.mark.parametrize("kind", ["mlp-reg", "cnn"])
def test_networks_on_both_sides_of_what_the_fast_solver_takes(kind: str) -> None:
    """63 layers of a class fit into its words; larger networks, in the same tables, are for the plain solver."""
    sizes = (64, 66, 68, 90, 130, 20)
    archs = [random_architecture(kind, rng=np.random.default_rng(size), n_layers=size) for size in sizes]
    table = nasbot.pairwise(archs)
    for i, j in ((0, 1), (0, 3), (2, 4), (3, 5), (4, 5)):
        for k, nu in enumerate(table.structural_weights):
            assert table.d[k, i, j] == pytest.approx(reference_distance(archs[i], archs[j], nu), rel=1e-9)


def test_threads_change_nothing_to_the_last_bit() -> None:
    a, b = networks("cnn", 40), networks("cnn", 30, first_seed=100)
    otmann = Otmann()
    np.testing.assert_array_equal(otmann.cross(a, b, threads=1).d, otmann.cross(a, b, threads=3).d)
    np.testing.assert_array_equal(otmann.pairwise(a, threads=1).d, otmann.pairwise(a, threads=2).d)


def test_weights_come_back_in_the_order_asked_for() -> None:
    a, b = networks("cnn", 2)
    ascending = nasbot.distance(a, b, structural_weights=(0.1, 0.4, 0.8))
    jumbled = nasbot.distance(a, b, structural_weights=(0.4, 0.8, 0.1))
    np.testing.assert_allclose(jumbled.d, ascending.d[[1, 2, 0]], rtol=1e-13)
    assert np.all(np.diff(ascending.d) >= 0), "a dearer structure cannot make networks nearer"


def test_packed_networks_serve_again_but_only_under_their_rules() -> None:
    archs = networks("mlp-reg", 6)
    otmann = Otmann()
    packed = otmann.pack(archs)
    np.testing.assert_array_equal(otmann.pairwise(packed).d, otmann.pairwise(archs).d)
    with pytest.raises(OptionError, match="packed under 'paper' rules, this is 'release'"):
        Otmann(preset="release").pairwise(packed)


def test_empty_tables_are_empty() -> None:
    assert nasbot.pairwise([]).d.shape == (4, 0, 0)
    assert nasbot.cross([], networks("cnn", 3)).d_bar.shape == (4, 0, 3)


def test_a_network_without_processing_layers_has_no_mass_and_is_as_far_as_the_other_is_heavy() -> None:
    linear = Architecture("mlp-reg", [Layer("ip"), Layer("linear"), Layer("op")], [(0, 1), (1, 2)])
    (other,) = networks("mlp-reg", 1)
    assert nasbot.distance(linear, linear).d_bar.tolist() == [0.0] * 4
    np.testing.assert_allclose(nasbot.distance(linear, other).d, other.total_mass)
    np.testing.assert_allclose(nasbot.distance(linear, other).d_bar, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"structural_weights": (-0.1,)}, "finite and >= 0, got -0.1"),
        ({"structural_weights": (float("nan"),)}, "finite and >= 0, got nan"),
        ({"structural_weights": ()}, "at least one"),
        ({"structural_weights": "abc"}, "sequence of numbers"),
        ({"structural_weights": 0.5}, "sequence of numbers"),
        ({"preset": "papers"}, "unknown preset 'papers'; known: paper, release, figure, log-mass"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, object], message: str) -> None:
    a, b = networks("cnn", 2)
    with pytest.raises(OptionError, match=message):
        nasbot.distance(a, b, **options)  # type: ignore[arg-type]


def test_zero_threads_are_refused() -> None:
    with pytest.raises(OptionError, match="threads must be at least 1, got 0"):
        nasbot.pairwise(networks("cnn", 3), threads=0)


def test_two_vocabularies_are_refused() -> None:
    with pytest.raises(VocabularyError, match=r"cnn.*mlp-reg"):
        nasbot.cross(networks("cnn", 2), networks("mlp-reg", 2))


def test_a_solve_that_does_not_converge_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Solver(PLAIN.pack_networks, lambda *_: NOT_CONVERGED, is_compiled=False)
    monkeypatch.setattr(distances, "solver_for", lambda work: failing)
    with pytest.raises(SolverError, match="did not converge"):
        nasbot.pairwise(networks("cnn", 3))


def test_growing_a_table_solves_only_new_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    archs = networks("cnn", 9)
    table = PairwiseDistances.of(archs[:5])
    solved = []
    real = distances._solve_all

    def counting(a, b, weights, *, only_above, threads):  # type: ignore[no-untyped-def]
        solved.append(len(a) * (len(a) - 1) // 2 if only_above else len(a) * len(b))
        return real(a, b, weights, only_above=only_above, threads=threads)

    monkeypatch.setattr(distances, "_solve_all", counting)
    grown = table.extended(archs[5:7]).extended([]).extended(archs[7:])
    assert sum(solved) == 9 * 8 // 2 - 5 * 4 // 2
    np.testing.assert_allclose(grown.distances.d, nasbot.pairwise(archs).d, rtol=1e-13)
    np.testing.assert_array_equal(grown.distances.d, grown.distances.d.transpose(0, 2, 1))
    assert len(grown) == 9
    assert grown.networks == tuple(archs)


@pytest.mark.parametrize("kind", ["mlp-reg", "mlp-class", "cnn"])
def test_relatives_share_mass_in_the_same_place_and_are_as_far_as_the_linear_program_says(kind: str) -> None:
    """Their common mass is matched before the solver runs, partly or wholly: edits of units and of structure."""
    rng = np.random.default_rng(5)
    for parent in networks(kind, 3, first_seed=20):
        edits = sample_edits(parent, SearchSpace(kind), 6, rng=rng)
        relatives = [parent, *(edit.arch for edit in edits)]
        table = nasbot.pairwise(relatives, structural_weights=(0.1, 0.8))
        for i, a in enumerate(relatives):
            for j, b in enumerate(relatives[:i]):
                for k, nu in enumerate((0.1, 0.8)):
                    expected = reference_distance(a, b, nu)
                    assert table.d[k, i, j] == pytest.approx(expected, rel=1e-9, abs=1e-9 * a.total_mass), (i, j, nu)


@pytest.mark.parametrize("kind", ["mlp-reg", "cnn"])
def test_a_table_from_scratch_and_one_by_linear_programming(kind: str) -> None:
    archs = networks(kind, 4)
    table = nasbot.pairwise(archs, structural_weights=(0.3,))
    for i in range(4):
        for j in range(4):
            assert table.d[0, i, j] == pytest.approx(reference_distance(archs[i], archs[j], 0.3), rel=1e-9, abs=1e-9)


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(OptionError, match=r"expected an Architecture or a torch.nn.Module, got str"):
        Otmann().pairwise(["mlp"])  # type: ignore[list-item]


def test_one_thread_is_the_callers_own_and_more_of_them_share_the_work_in_small_parts() -> None:
    calls: list[tuple[str, int, int, bool]] = []
    caller = threading.get_ident()

    def work(name: str, n: int) -> tuple[Callable[[int, int], None], int]:
        return lambda first, last: calls.append((name, first, last, threading.get_ident() == caller)), n

    distances._do([work("a", 100), work("none", 0), work("b", 3)], 1)
    assert calls == [("a", 0, 100, True), ("b", 0, 3, True)]
    calls.clear()
    distances._do([work("a", 100), work("none", 0), work("b", 3)], 2)
    # Two threads with eight parts each: 6 rows a part, and the last one has what is left.
    parts = [("a", first, min(first + 6, 100), False) for first in range(0, 100, 6)]
    assert sorted(calls) == [*parts, *(("b", i, i + 1, False) for i in range(3))]


def test_small_tables_are_computed_by_one_thread_and_large_ones_by_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "n_cores", lambda: 7)
    few, many = (Otmann().pack(networks("cnn", n)) for n in (2, 40))
    monkeypatch.setattr(distances, "WORTH_A_THREAD", len(few.masses) * len(many.masses))
    assert distances._n_threads(few, few, None) == 1
    assert distances._n_threads(few, many, None) == 7
    assert distances._n_threads(few, many, 2) == 2
    monkeypatch.setattr(distances, "WORTH_A_THREAD", len(few.masses) * len(many.masses) + 1)
    assert distances._n_threads(few, many, None) == 1


def test_rounding_never_lifts_a_normalised_distance_above_1() -> None:
    """To a network without mass d is the other's total mass, which the solver adds up in another order."""
    linear = Architecture("mlp-reg", [Layer("ip"), Layer("linear"), Layer("op")], [(0, 1), (1, 2)])
    others = Otmann().pack(networks("mlp-reg", 40))
    found = nasbot.cross([linear], others)
    assert (found.d[:, 0] > others.total_masses).any()
    assert found.d_bar.max() == 1.0


@pytest.mark.parametrize(
    "ask",
    [
        nasbot.pairwise,
        lambda one: nasbot.cross([], one),
        lambda one: nasbot.cross(one, []),
        nasbot.NeighbourIndex,
        lambda one: nasbot.NeighbourIndex(networks("mlp-reg", 2)).query(one, 1),
        nasbot.PairwiseDistances.of,
    ],
)
def test_one_network_where_several_are_asked_for_is_refused(ask: Callable[[object], object]) -> None:
    for one in (networks("mlp-reg", 1)[0], nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), None):
        with pytest.raises(OptionError, match=f"expected a list of networks, got {type(one).__name__}"):
            ask(one)


def test_networks_may_come_one_by_one() -> None:
    archs = networks("mlp-reg", 6)
    table = nasbot.pairwise(archs).d
    np.testing.assert_array_equal(nasbot.pairwise(iter(archs)).d, table)
    np.testing.assert_array_equal(nasbot.cross(iter(archs), iter(archs)).d, table)
    grown = PairwiseDistances.of(iter(archs[:4])).extended(iter(archs[4:]))
    np.testing.assert_array_equal(grown.distances.d, table)
    assert grown.networks == tuple(archs)
    index = nasbot.NeighbourIndex(iter(archs))
    assert index.query(iter(archs), 1).numbers[:, 0].tolist() == list(range(6))

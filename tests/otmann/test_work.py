"""What solving takes, counted: slips that only make it slower give the same distances, so no other test sees them.

Masses are whole and costs quarters, so that every sum is exact and the counts are the same on any processor. Whoever
changes on purpose which arc enters, or what an index looks at, counts again.
"""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from nasbot.architecture import Architecture
from nasbot.architecture.penalties import NEVER_MATCH
from nasbot.otmann import NeighbourIndex, Otmann
from nasbot.otmann._kernels import network_simplex, pairs
from nasbot.otmann.costs import augmented_cost
from nasbot.otmann.packing import pack
from nasbot.otmann.presets import PAPER
from nasbot.otmann.solver import PLAIN
from nasbot.testing.networks import random_architecture
from tests.otmann.test_bitset_simplex import bitset_cost

Floats = NDArray[np.float64]


def problem(n_rows: int, n_columns: int) -> tuple[Floats, Floats, list[Floats]]:
    """Masses, and two tables of costs of which the second is solved from the basis of the first."""
    rng = np.random.default_rng(64 * n_rows + n_columns)
    mass_1, mass_2 = (rng.integers(1, 20, n).astype(float) for n in (n_rows, n_columns))
    return mass_1, mass_2, [rng.integers(0, 9, (n_rows, n_columns)) / 4 for _ in range(2)]


def networks(kind: str, sizes: list[int]) -> list[Architecture]:
    return [random_architecture(kind, rng=np.random.default_rng(i), n_layers=size) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("size", "from_star", "greedily", "plain"),
    [
        ((3, 5), [7, 8], [1, 9], [6, 14]),
        ((17, 9), [39, 32], [15, 32], [15, 39]),
        ((24, 33), [82, 140], [19, 136], [82, 226]),
        ((60, 48), [198, 329], [97, 338], [160, 429]),
    ],
)
def test_pivots_of_both_solvers(size, from_star, greedily, plain):
    mass_1, mass_2, costs = problem(*size)
    for expected, is_greedy in ((from_star, False), (greedily, True)):
        counted: list[int] = []
        bitset_cost(mass_1, mass_2, costs, greedily=is_greedy, pivots=counted)
        assert counted == expected
    n_nodes = sum(size) + 1
    tree, scratch = np.zeros((4, n_nodes), np.int64), np.zeros((2, n_nodes), np.int64)
    flow, *prices = (np.zeros(n) for n in (n_nodes, size[0] + 1, size[1] + 1))
    network_simplex.start_unassigned(mass_1, mass_2, tree, flow)
    stamps = [0]
    for cost in costs:
        given = augmented_cost(np.minimum(cost, NEVER_MATCH)), tree, flow, *prices, scratch
        stamps.append(network_simplex.optimise(*size, *given, stamps[-1]))
    assert stamps[1:] == plain


def distances_by(solver: Callable[..., int], archs: list[Architecture]) -> tuple[int, Floats]:
    """What the kernel of distances returns, and d of all pairs."""
    a = pack(archs, PAPER)
    n = len(archs)
    d = np.zeros(2 * n * n)
    labels, costs = a.label_rows_against(a)
    sides = (a.hops, a.walks, a.masses, labels, a.offsets), (a.hops, a.walks, a.masses, costs, a.offsets)
    begins, places = np.arange(1, n + 1), np.array([n * n, 0])
    returned = solver(0, n, begins, a.order, a.order, n, 1, places, *sides[0], *sides[1], np.array([0.5, 0.125]), d)
    return returned, d.reshape(2, n, n)


@pytest.mark.parametrize(("sizes", "n_pivots"), [([12, 20, 31, 44], 147), ([20, 140, 150], 1215)])
def test_pivots_of_networks_in_all(sizes, n_pivots):
    """The second has more layers of a class than the fast solver takes."""
    archs = networks("mlp-reg", sizes)
    returned, d = distances_by(PLAIN.add_distances, archs)
    found = Otmann(structural_weights=(0.125, 0.5)).pairwise(archs).d
    np.testing.assert_allclose(d + d.transpose(0, 2, 1), found, rtol=1e-12)
    assert returned == n_pivots


def test_structural_costs_are_found_for_some_128_layers_at_once(monkeypatch):
    """As many whole networks as fit into that and the largest of them; all of them once for each of the first side."""
    archs = networks("mlp-reg", list(range(40, 64, 2)))
    packed = pack(archs, PAPER)
    largest = int(np.diff(packed.offsets, axis=1).max())
    tiles, plain = [], pairs.structural_costs

    def counted(*arguments):
        begin, end = arguments[8:10]
        tiles.append(int(end - begin))
        plain(*arguments)

    monkeypatch.setattr(pairs, "structural_costs", counted)
    distances_by(PLAIN.add_distances, archs)
    assert (len(tiles), sum(tiles), max(tiles)) == (56, 3370, 185)
    assert max(tiles) <= 128 + largest


def test_rooms_of_numbers_begin_where_cache_lines_do():
    for n in (1, 7, 8, 9, 1000):
        room = pairs.whole_lines(n)
        assert len(room) == n
        assert room.ctypes.data % 64 == 0
        assert not room.any()


@pytest.mark.parametrize(
    ("options", "n_exact"),
    [({}, 270), ({"normalised": True}, 264), ({"first": 60}, 261)],
    ids=["d", "normalised", "first"],
)
def test_exact_distances_of_an_index(options, n_exact):
    archs = networks("mlp-reg", [8 + i % 13 for i in range(90)])
    assert NeighbourIndex(archs[5:]).query(archs[:5], 2, **options).n_exact == n_exact

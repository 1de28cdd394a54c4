"""Canonical forms against networkx' isomorphism: nothing equal is missed, nothing different is confused."""

import itertools
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import DiGraphMatcher

from nasbot.architecture import Architecture, Edge, Layer
from nasbot.architecture.canonical import canonical_places
from nasbot.testing.networks import random_architecture, relabelled
from nasbot.testing.strategies import architectures, generators

IP, OP, LINEAR = Layer("ip"), Layer("op"), Layer("linear")
RELU = Layer("relu", 8)


def as_graph(arch: Architecture) -> nx.DiGraph:
    graph = nx.DiGraph(list(arch.edges))
    nx.set_node_attributes(graph, {u: (x.label, x.units, x.stride) for u, x in enumerate(arch.layers)}, "layer")
    return graph


def isomorphic(a: Architecture, b: Architecture) -> bool:
    """By somebody else's code: VF2 with the layers as node labels."""
    return DiGraphMatcher(as_graph(a), as_graph(b), node_match=lambda x, y: x["layer"] == y["layer"]).is_isomorphic()


def between(
    upper: int, lower: int, pairs: list[Edge], *, upper_layer: Layer = RELU, lower_layer: Layer = RELU
) -> Architecture:
    """Two rows of equal layers with these edges from the first to the second, the input above and a decision below."""
    first, second = range(1, upper + 1), range(upper + 1, upper + lower + 1)
    last = upper + lower + 1
    edges = [(0, u) for u in first] + [(u, last) for u in second] + [(last, last + 1)]
    edges += [(1 + i, 1 + upper + j) for i, j in pairs]
    layers = [IP, *[upper_layer] * upper, *[lower_layer] * lower, LINEAR, OP]
    return Architecture("mlp-reg", layers, edges)


def cycle_pairs(length: int, offset: int = 0) -> list[Edge]:
    """A cycle of 2 * length layers, alternating between the two rows."""
    return [(offset + i, offset + j % length) for i in range(length) for j in (i, i + 1)]


# -- random networks ---------------------------------------------------------------------------------------------------


@given(architectures(max_layers=24), generators())
def test_the_canonical_form_is_the_same_network_whatever_the_numbering(
    arch: Architecture, rng: np.random.Generator
) -> None:
    form, copy = arch.canonical(), relabelled(arch, rng=rng).canonical()
    assert (form.layers, form.edges) == (copy.layers, copy.edges)
    assert isomorphic(form, arch)
    assert sorted(canonical_places(arch)) == list(range(len(arch.layers)))
    again = form.canonical()
    assert (again.layers, again.edges) == (form.layers, form.edges)


@given(architectures("mlp-reg", min_layers=4, max_layers=7), architectures("mlp-reg", min_layers=4, max_layers=7))
def test_small_networks_are_equal_exactly_when_isomorphic(a: Architecture, b: Architecture) -> None:
    assert (a == b) == isomorphic(a, b)


def test_all_small_graphs_of_one_label_are_told_apart_like_networkx_does() -> None:
    """Every valid network of four equal layers between input and decision: hundreds of graphs, few up to numbering."""
    found: dict[str, list[Architecture]] = {}
    inner = list(itertools.combinations(range(1, 5), 2))
    for chosen in itertools.product([False, True], repeat=len(inner)):
        middle = [edge for edge, is_there in zip(inner, chosen, strict=True) if is_there]
        heads = {v for _, v in middle}
        tails = {u for u, _ in middle}
        edges = [*middle, *((0, u) for u in range(1, 5) if u not in heads)]
        edges += [*((u, 5) for u in range(1, 5) if u not in tails), (5, 6)]
        arch = Architecture("mlp-reg", [IP, *[RELU] * 4, LINEAR, OP], edges)
        found.setdefault(arch.fingerprint, []).append(arch)
    assert sum(len(same) for same in found.values()) == 64
    for same in found.values():
        assert all(isomorphic(same[0], other) for other in same[1:])
    representatives = [same[0] for same in found.values()]
    assert not any(isomorphic(a, b) for a, b in itertools.combinations(representatives, 2))
    assert len(representatives) == 31  # acyclic graphs on four unlabelled nodes (OEIS A003087)


@pytest.mark.parametrize("kind", ["mlp-reg", "mlp-class", "cnn"])
def test_one_changed_edge_is_seen_exactly_when_it_makes_a_difference(kind: str) -> None:
    rng = np.random.default_rng(17)
    n_compared = 0
    for _ in range(40):
        arch = random_architecture(kind, rng=rng, n_layers=int(rng.integers(8, 30)))
        u, v = sorted(rng.choice(np.array(arch.processing_layers), size=2, replace=False).tolist())
        try:
            other = Architecture(kind, arch.layers, arch.edges ^ {(u, v)})
        except ValueError:
            continue  # the edge was needed, or images do not fit
        assert arch != other
        again = relabelled(other, rng=rng)
        assert again == other
        assert isomorphic(again, other)
        n_compared += 1
    assert n_compared >= 5


# -- graphs that colour refinement alone cannot tell apart -------------------------------------------------------------


def test_one_long_cycle_is_not_two_short_ones() -> None:
    """All layers of a row look alike to their neighbours, and to the neighbours' neighbours, without end."""
    one = between(6, 6, cycle_pairs(6))
    two = between(6, 6, [*cycle_pairs(3), *cycle_pairs(3, offset=3)])
    assert not isomorphic(one, two)
    assert one != two
    assert one.fingerprint != two.fingerprint
    three = between(6, 6, [*cycle_pairs(2), *cycle_pairs(4, offset=2)])
    assert len({one, two, three}) == 3


@pytest.mark.parametrize("n", [4, 6, 8])
def test_cycles_are_recognised_in_any_numbering(n: int) -> None:
    rng = np.random.default_rng(n)
    one = between(n, n, cycle_pairs(n))
    assert {relabelled(one, rng=rng).fingerprint for _ in range(20)} == {one.fingerprint}


def test_every_numbering_of_a_small_symmetric_network_is_recognised() -> None:
    """All permutations of both rows of an 8-cycle: 24 * 24 numberings of one network."""
    base = cycle_pairs(4)
    prints = set()
    for upper in itertools.permutations(range(4)):
        for lower in itertools.permutations(range(4)):
            prints.add(between(4, 4, [(upper[i], lower[j]) for i, j in base]).fingerprint)
    assert prints == {between(4, 4, base).fingerprint}


@given(st.data())
def test_random_regular_middles_are_equal_exactly_when_isomorphic(data: st.DataObject) -> None:
    """Every layer with two children and two parents: refinement sees nothing, so all is left to the search."""

    def middle() -> Architecture:
        shift = data.draw(st.permutations(range(5)))
        moved = data.draw(st.permutations(range(5)).filter(lambda p: all(p[i] != shift[i] for i in range(5))))
        return between(5, 5, [*enumerate(shift), *enumerate(moved)])

    a, b = middle(), middle()
    assert (a == b) == isomorphic(a, b)


def test_equal_layers_with_other_units_break_the_symmetry() -> None:
    base = cycle_pairs(4)
    assert between(4, 4, base, upper_layer=Layer("relu", 9)) != between(4, 4, base, lower_layer=Layer("relu", 9))


@pytest.mark.parametrize("other", [Layer("conv3", 8, 2), Layer("conv3", 9, 1), Layer("conv5", 8, 1)])
def test_layers_that_differ_only_in_what_they_are_keep_their_places(other: Layer) -> None:
    """Twins in the graph: only label, units and stride can say which of the two comes first."""
    pair = [Layer("conv3", 8, 1), other]
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]
    one, same = (Architecture("cnn", [IP, *x, Layer("softmax"), OP], edges) for x in (pair, pair[::-1]))
    assert one == same
    assert one.canonical().layers == same.canonical().layers


# -- work --------------------------------------------------------------------------------------------------------------


def branches(n: int, depth: int) -> Architecture:
    """n equal chains of this depth side by side."""
    edges: list[Edge] = []
    last = n * depth + 1
    for k in range(n):
        stops = [0, *range(1 + k * depth, 1 + (k + 1) * depth), last]
        edges += list(itertools.pairwise(stops))
    return Architecture("mlp-reg", [IP, *[RELU] * (n * depth), LINEAR, OP], [*edges, (last, last + 1)])


@pytest.mark.parametrize(("n", "depth"), [(490, 1), (490, 2), (29, 2), (14, 4), (300, 3)])
def test_work_is_bounded_however_many_branches_are_equal(n: int, depth: int) -> None:
    arch = branches(n, depth)
    start = time.process_time()
    assert arch.fingerprint
    assert time.process_time() - start < 10  # MAX_WORK is about half a second's; without it this takes for ever


@pytest.mark.parametrize(("n", "depth"), [(58, 1), (29, 2), (14, 4)])
def test_equal_branches_are_recognised_at_the_sizes_of_the_search_space(n: int, depth: int) -> None:
    arch = branches(n, depth)
    rng = np.random.default_rng(0)
    assert all(relabelled(arch, rng=rng) == arch for _ in range(3))


@pytest.mark.parametrize("kind", ["mlp-reg", "cnn"])
def test_random_networks_of_sixty_layers_take_milliseconds(kind: str) -> None:
    rng = np.random.default_rng(1)
    archs = [random_architecture(kind, rng=rng, n_layers=60) for _ in range(50)]
    start = time.process_time()
    assert len({arch.fingerprint for arch in archs}) == 50
    assert time.process_time() - start < 10  # measured: 0.1 s

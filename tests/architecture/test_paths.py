"""Path lengths: against every path written out, against networkx, and against the plain twin."""

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from nasbot.architecture import Architecture, Layer, PathEnd, PathKind, path_lengths
from nasbot.testing.networks import random_architecture
from nasbot.testing.reference import reference_path_lengths
from nasbot.testing.strategies import architectures

KINDS = {"sp": PathKind.SHORTEST, "lp": PathKind.LONGEST, "rw": PathKind.RANDOM_WALK}
ENDS = {"ip": PathEnd.FROM_INPUT, "op": PathEnd.TO_OUTPUT}
IP, OP, SOFTMAX = Layer("ip"), Layer("op"), Layer("softmax")


def paths_to_output(arch: Architecture, u: int) -> Iterator[tuple[float, list[int]]]:
    """Every path from u to the output with the chance that a random walk takes it."""
    if not arch.children[u]:
        yield 1.0, [u]
    for v in arch.children[u]:
        for chance, path in paths_to_output(arch, v):
            yield chance / len(arch.children[u]), [u, *path]


def paths_from_input(arch: Architecture, v: int) -> Iterator[tuple[float, list[int]]]:
    """Every path from the input to v with the chance of the walk that goes backwards from v."""
    if not arch.parents[v]:
        yield 1.0, [v]
    for u in arch.parents[v]:
        for chance, path in paths_from_input(arch, u):
            yield chance / len(arch.parents[v]), [*path, v]


def test_by_hand() -> None:
    """ip -> conv -> pool -> conv -> fc -> softmax -> op, and a short cut from the pool to the fc."""
    layers = [IP, Layer("conv3", 8), Layer("max-pool"), Layer("res5", 8), Layer("fc", 8), SOFTMAX, OP]
    edges = [*[(u, u + 1) for u in range(6)], (2, 4)]
    lengths = Architecture("cnn", layers, edges).path_lengths
    assert lengths.groups == ("all", "conv", "pool", "fc")
    expected = {
        ("all", "sp", "op"): [5, 4, 3, 3, 2, 1, 0],
        ("all", "lp", "op"): [6, 5, 4, 3, 2, 1, 0],
        ("all", "rw", "op"): [5.5, 4.5, 3.5, 3, 2, 1, 0],
        ("all", "sp", "ip"): [0, 1, 2, 3, 3, 4, 5],
        ("all", "rw", "ip"): [0, 1, 2, 3, 3.5, 4.5, 5.5],
        ("conv", "sp", "op"): [1, 1, 0, 1, 0, 0, 0],
        ("conv", "lp", "op"): [2, 2, 1, 1, 0, 0, 0],
        ("conv", "rw", "op"): [1.5, 1.5, 0.5, 1, 0, 0, 0],
        ("conv", "lp", "ip"): [0, 1, 1, 2, 2, 2, 2],
        ("conv", "rw", "ip"): [0, 1, 1, 2, 1.5, 1.5, 1.5],
        ("pool", "sp", "op"): [1, 1, 1, 0, 0, 0, 0],
        ("pool", "sp", "ip"): [0, 0, 1, 1, 1, 1, 1],
        ("fc", "lp", "op"): [1, 1, 1, 1, 1, 0, 0],
        ("fc", "lp", "ip"): [0, 0, 0, 0, 1, 1, 1],
    }
    for (group, kind, end), values in expected.items():
        np.testing.assert_allclose(lengths.of(KINDS[kind], ENDS[end], group), values, err_msg=f"{group} {kind} {end}")


@given(architectures(max_layers=10))
def test_every_path_written_out(arch: Architecture) -> None:
    lengths = arch.path_lengths
    for group in lengths.groups:
        counted = [group in ("all", arch.vocabulary[layer.label].group) for layer in arch.layers]
        for u in range(len(arch.layers)):
            onwards = [(chance, sum(counted[x] for x in path[:-1])) for chance, path in paths_to_output(arch, u)]
            backwards = [(chance, sum(counted[x] for x in path[1:])) for chance, path in paths_from_input(arch, u)]
            for end, walks in (("op", onwards), ("ip", backwards)):
                assert lengths.of(PathKind.SHORTEST, ENDS[end], group)[u] == min(hops for _, hops in walks)
                assert lengths.of(PathKind.LONGEST, ENDS[end], group)[u] == max(hops for _, hops in walks)
                expected = sum(chance * hops for chance, hops in walks)
                assert lengths.of(PathKind.RANDOM_WALK, ENDS[end], group)[u] == pytest.approx(expected, abs=1e-12)


@given(architectures(max_layers=30))
def test_shortest_and_longest_paths_are_those_of_networkx(arch: Architecture) -> None:
    n = len(arch.layers)
    graph = nx.DiGraph(list(arch.edges))
    to_output = nx.single_source_shortest_path_length(graph.reverse(), n - 1)
    from_input = nx.single_source_shortest_path_length(graph, 0)
    lengths = arch.path_lengths
    assert lengths.of(PathKind.SHORTEST, PathEnd.TO_OUTPUT).tolist() == [to_output[u] for u in range(n)]
    assert lengths.of(PathKind.SHORTEST, PathEnd.FROM_INPUT).tolist() == [from_input[u] for u in range(n)]
    longest = nx.dag_longest_path_length(graph)
    assert lengths.of(PathKind.LONGEST, PathEnd.TO_OUTPUT)[0] == longest
    assert lengths.of(PathKind.LONGEST, PathEnd.FROM_INPUT)[-1] == longest


@given(architectures(max_layers=40))
def test_all_lengths_are_those_of_the_plain_twin(arch: Architecture) -> None:
    lengths, plain = arch.path_lengths, reference_path_lengths(arch)
    assert lengths.array.shape == (len(lengths.groups), 3, 2, len(arch.layers))
    assert len(plain) == 6 * len(lengths.groups)
    for (group, kind, end), expected in plain.items():
        np.testing.assert_allclose(lengths.of(KINDS[kind], ENDS[end], group), expected, rtol=1e-13, atol=1e-13)


def test_features_hold_every_length_of_a_layer_in_one_row() -> None:
    arch = random_architecture("cnn", rng=np.random.default_rng(3), n_layers=25)
    features = arch.path_lengths.features
    assert features.shape == (25, 24)
    for u in (0, 7, 24):
        np.testing.assert_array_equal(np.sort(features[u]), np.sort(arch.path_lengths.array[..., u].ravel()))


def test_a_chain_as_long_as_can_be_does_not_exhaust_the_stack() -> None:
    def chain(n: int) -> Architecture:
        layers = [IP, *[Layer("relu", 8)] * (n - 3), SOFTMAX, OP]
        return Architecture("mlp-class", layers, [(u, u + 1) for u in range(n - 1)])

    assert path_lengths(chain(1000)).of(PathKind.RANDOM_WALK, PathEnd.TO_OUTPUT)[0] == 999
    # The plain twin is slow, and recursion takes two frames a layer: 400 would exhaust the stack as surely.
    assert reference_path_lengths(chain(400))["all", "rw", "op"][0] == 399

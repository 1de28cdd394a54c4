"""Crossings: counted right, reduced, and none left where none is needed."""

from itertools import combinations

import pytest

from nasbot.drawing.layered import layered_graph, ranks_of
from nasbot.drawing.ordering import crossings, order_beside_chain, order_ranks
from tests.drawing.geometry import GRAPHS


def graph_of(name):
    n, edges = GRAPHS[name]
    return layered_graph(ranks_of(n, edges), edges)


def given_order(graph):
    order = [[] for _ in range(graph.n_ranks)]
    for node, rank in enumerate(graph.rank):
        order[rank].append(node)
    return order


def crossings_pair_by_pair(graph, order):
    place = {node: i for nodes in order for i, node in enumerate(nodes)}
    count = 0
    for nodes in order:
        links = [(place[a], place[b]) for a in nodes for b in graph.down[a]]
        count += sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(links, 2))
    return count


@pytest.mark.parametrize("name", ["all pairs of 20", "random 30/60 #30", "nested skips", "random 15/30 #15"])
def test_crossings_are_counted_as_pair_by_pair(name):
    graph = graph_of(name)
    for order in (given_order(graph), order_ranks(graph)):
        assert crossings(graph, order) == crossings_pair_by_pair(graph, order)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_node_is_placed_once_and_crossings_do_not_grow(name):
    graph = graph_of(name)
    order = order_ranks(graph)
    assert [sorted(nodes) for nodes in order] == given_order(graph)
    assert crossings(graph, order) <= crossings(graph, given_order(graph))


@pytest.mark.parametrize("name", ["chain of 60", "58 branches", "nested skips", "two long branches"])
def test_what_can_be_drawn_without_crossings_is(name):
    graph = graph_of(name)
    assert crossings(graph, order_ranks(graph)) == 0


def test_random_skips_lose_most_of_their_crossings():
    graph = graph_of("skips 60/200 #0")
    assert crossings(graph, order_ranks(graph)) < 0.75 * crossings(graph, given_order(graph))


def test_branches_of_branches_are_untangled():
    # 0 feeds 1 2 3; each feeds two layers, numbered so that the given order crosses.
    edges = {(0, 1), (0, 2), (0, 3), (1, 4), (1, 7), (2, 5), (2, 8), (3, 6), (3, 9), *((u, 10) for u in range(4, 10))}
    graph = layered_graph(ranks_of(11, edges), edges)
    assert crossings(graph, given_order(graph)) > 0
    assert crossings(graph, order_ranks(graph)) == 0


@pytest.mark.parametrize("name", ["chain of 60", "overlapping skips", "nested skips", "skips 60/200 #1"])
def test_trunks_beside_a_chain_keep_to_their_side(name):
    graph = graph_of(name)
    order = order_beside_chain(graph)
    assert [sorted(nodes) for nodes in order] == given_order(graph)
    side = {node: nodes.index(node) < nodes.index(rank) for rank, nodes in enumerate(order) for node in nodes}
    assert all(len({side[bend] for bend in bends}) <= 1 for bends in graph.bends.values())


def test_nested_skips_beside_a_chain_do_not_cross_and_branches_are_no_chain():
    graph = graph_of("nested skips")
    assert crossings(graph, order_beside_chain(graph)) == 0
    assert order_beside_chain(graph_of("two long branches")) is None

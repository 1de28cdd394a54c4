"""The layout on its numbers: nothing overlaps, no edge runs through a box, all of it on the canvas."""

import numpy as np
import pytest

from nasbot.drawing import layout as layout_module
from nasbot.drawing.layered import layered_graph, n_bends, ranks_of
from nasbot.drawing.layout import column_layout, layered_layout, layout
from tests.drawing.geometry import (
    GRAPHS,
    NETWORKS,
    all_pairs,
    boxes_entered,
    chain,
    chain_with_skips,
    check_layout,
    network,
    overlapping,
    parallel,
    random_graph,
    sampled,
)

SIZE = (120.0, 24.0)


@pytest.mark.parametrize("name", GRAPHS)
def test_layered_layouts_keep_boxes_and_edges_apart(name):
    n, edges = GRAPHS[name]
    check_layout(layered_layout([SIZE] * n, edges), edges)


@pytest.mark.parametrize(("kind", "n"), NETWORKS)
def test_random_networks_of_every_kind(kind, n):
    arch = network(kind, n)
    check_layout(layered_layout([SIZE] * n, arch.edges), arch.edges)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_columns_keep_boxes_and_edges_apart(name, side):
    n, edges = GRAPHS[name]
    check_layout(column_layout([SIZE] * n, edges, side=side), edges)


def test_boxes_of_all_sizes():
    n, edges = 45, random_graph(45, 100, 3)
    rng = np.random.default_rng(0)
    sizes = [(float(w), float(h)) for w, h in rng.uniform((60, 10), (300, 90), (n, 2))]
    check_layout(layered_layout(sizes, edges), edges)
    check_layout(column_layout(sizes, edges), edges)


@pytest.mark.parametrize("n_edges", [60, 100, 200])
@pytest.mark.parametrize("seed", range(4))
def test_narrow_boxes_still_hold_their_arrowheads(n_edges, seed):
    edges = random_graph(30, n_edges, seed)
    check_layout(layered_layout([(40.0, 12.0)] * 30, edges), edges)


def test_hostile_sizes_end_in_a_layout_too():
    most = chain_with_skips(1000, 10_000, 0)  # as many as an Architecture may have
    for edges in (chain(1000), parallel(998), most):
        check_layout(layout([SIZE] * 1000, edges), edges, every=len(edges) // 100)


def test_a_network_with_too_many_bends_becomes_a_column():
    edges = chain(200) | {(u, 199) for u in range(100)}
    assert n_bends(ranks_of(200, edges), edges) > layout_module.MAX_BENDS
    assert len({box.centre[0] for box in layout([SIZE] * 200, edges).boxes}) == 1


def test_sixty_layers_are_never_too_many():
    edges = all_pairs(60)
    assert n_bends(ranks_of(60, edges), edges) <= layout_module.MAX_BENDS


def test_the_number_of_bends_is_known_beforehand():
    for n, edges in GRAPHS.values():
        rank = ranks_of(n, edges)
        assert n_bends(rank, edges) == len(layered_graph(rank, edges).rank) - n


def test_ranks_point_down_and_decision_layers_share_the_last_but_one():
    for kind, n in NETWORKS:
        arch = network(kind, n, seed=1)
        rank = ranks_of(n, arch.edges)
        assert all(rank[u] < rank[v] for u, v in arch.edges)
        assert rank[0] == 0
        assert {rank[u] for u in arch.decision_layers} == {rank[-1] - 1}


def test_edges_of_one_layer_share_their_trunk():
    graph = layered_graph(ranks_of(6, chain(6) | {(0, 3), (0, 5)}), chain(6) | {(0, 3), (0, 5)})
    assert graph.bends[0, 3] == graph.bends[0, 5][:2]
    assert len(graph.rank) == 6 + 4
    assert all(len(graph.up[bend]) == 1 for bend in range(6, 10))


def test_a_chain_is_drawn_straight():
    plan = layered_layout([SIZE] * 30, chain(30))
    assert {box.centre[0] for box in plan.boxes} == {60.0}
    assert plan.width == SIZE[0]


def test_a_chain_with_skips_keeps_its_chain_straight():
    plan = layered_layout([SIZE] * 30, chain(30) | {(u, u + 3) for u in range(1, 25, 2)})
    assert len({round(box.centre[0], 6) for box in plan.boxes}) == 1


def test_a_long_edge_runs_straight_past_the_boxes():
    plan = layered_layout([SIZE] * 20, chain(20) | {(2, 17)})
    route = next(route for route in plan.routes if route.edge == (2, 17))
    points = sampled(route.start, route.pieces)
    beside = [x for x, y in points if plan.boxes[3].y <= y <= plan.boxes[16].y + SIZE[1]]
    assert np.ptp(beside) < 1e-6


@pytest.mark.parametrize("reach", [2, 3, 10])
def test_overlapping_skips_stand_beside_one_column(reach):
    edges = chain(60) | {(u, u + reach) for u in range(60 - reach)}
    assert len({round(box.centre[0], 6) for box in layered_layout([SIZE] * 60, edges).boxes}) == 1


def test_the_order_in_which_edges_are_given_does_not_matter():
    n, edges = GRAPHS["random 45/200 #45"]
    listed = sorted(edges)
    mixed = [listed[i] for i in np.random.default_rng(1).permutation(len(listed))]
    assert layout([SIZE] * n, mixed) == layout([SIZE] * n, listed)
    assert column_layout([SIZE] * n, mixed) == column_layout([SIZE] * n, listed)


def test_the_checks_can_fail():
    n, edges = GRAPHS["random 15/30 #15"]
    narrow = layered_layout([(20.0, 24.0)] * n, edges)
    wide = [type(box)(box.x - 50, box.y, box.width + 100, box.height) for box in narrow.boxes]
    assert overlapping(wide)
    assert any(boxes_entered(sampled(route.start, route.pieces), wide) for route in narrow.routes)

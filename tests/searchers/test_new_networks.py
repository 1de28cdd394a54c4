"""Never the same network twice, whatever became of it, and until the space is used up."""

from collections import defaultdict
from itertools import combinations, cycle

import networkx as nx
import pytest

from nasbot.architecture import Layer, SearchSpace, chain
from nasbot.architecture.vocabularies import RECTIFIERS, SIGMOIDS
from nasbot.errors import ExhaustedError
from nasbot.evolution import one_step_edits
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
from nasbot.trial import Cancelled, Scored
from tests.conftest import THOROUGH
from tests.searchers.problems import CELLS, SEARCHERS, cell_pool, follow, made, of_outcomes, propose, timeout, value_of

N_IN_A_ROW = {NASBOT: 60, RandomSearch: 60, EvolutionSearch: 500, TreeBO: 40}  # 500 of each in a thorough run


@pytest.mark.timeout(3600)  # five hundred proposals in a thorough run on a busy machine
@pytest.mark.parametrize("kind", SEARCHERS)
def test_hundreds_of_proposals_in_a_row_without_a_duplicate(kind):
    """Whatever becomes of them."""
    outcomes = cycle(["scored", "scored", "failed", "pending", "scored"])

    def outcome(arch):
        return {"scored": Scored(value_of(arch)), "failed": timeout(), "pending": None}[next(outcomes)]

    history = follow(made(kind), 500 if THOROUGH else N_IN_A_ROW[kind], outcome)
    alike = defaultdict(list)
    for trial in history:
        alike[tuple(sorted(map(str, trial.arch.layers)))].append(trial.arch)
    for group in alike.values():
        assert not any(are_isomorphic(a, b) for a, b in combinations(group, 2))
    assert history.failed
    assert history.pending


def as_graph(arch):
    graph = nx.DiGraph(arch.edges)
    nx.set_node_attributes(graph, dict(enumerate(map(str, arch.layers))), "layer")
    return graph


def are_isomorphic(a, b):
    """By somebody else's code."""
    return nx.is_isomorphic(as_graph(a), as_graph(b), node_match=lambda x, y: x["layer"] == y["layer"])


def tiny(kind):
    """A space of seven networks: one layer of eight units and any activation."""
    space = SearchSpace("mlp-reg", max_layers=4, min_units=8, max_units=8)
    return made(kind, space=space, pool=(chain("mlp-reg", [Layer("relu", 8)]),), modifiers=("swap_label",))


@pytest.mark.parametrize("kind", SEARCHERS)
def test_a_tiny_space_is_searched_to_its_last_network(kind):
    searcher = tiny(kind)
    history = follow(searcher, 6)
    assert {trial.arch.layers[1].label for trial in history} == {*RECTIFIERS, *SIGMOIDS}
    with pytest.raises(ExhaustedError, match="all of the 7 networks that the modifiers lead to are evaluated"):
        propose(searcher, history)
    # What was cancelled may come again; here it is the only one left.
    pairs = [(trial.arch, trial.outcome) for trial in history]
    pairs[5] = (pairs[5][0], Cancelled("no longer wanted"))
    assert propose(searcher, of_outcomes(pairs)).arch == pairs[5][0]


@pytest.mark.parametrize("kind", [NASBOT, RandomSearch, EvolutionSearch])
def test_a_neighbourhood_that_is_used_up_is_left(kind):
    """All networks within two steps of the pool have failed: what is left is farther than most mutations go."""
    searcher = made(kind, "cells", pool=cell_pool()[:1], modifiers=("swap_label",))
    known = dict.fromkeys(candidate.arch for candidate in searcher.initial_pool())
    for _ in range(2):
        known |= {e.arch: None for a in list(known) for e in one_step_edits(a, CELLS, modifiers=("swap_label",))}
    history = of_outcomes((arch, timeout()) for arch in known)
    assert propose(searcher, history).arch not in known


@pytest.mark.parametrize("kind", SEARCHERS)
@pytest.mark.parametrize("outcome", [None, timeout()], ids=["pending", "failed"])
def test_what_is_pending_or_failed_is_not_proposed_again(kind, outcome):
    """The very proposal that the searcher would make is in the history."""
    searcher = made(kind)
    history = follow(searcher, 3)
    wanted = propose(searcher, history).arch
    known = of_outcomes([*((t.arch, t.outcome) for t in history), (wanted, outcome)])
    for seed in range(5):
        assert propose(searcher, known, seed).arch != wanted

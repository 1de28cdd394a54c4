"""Evolution by ask and tell: no duplicates, parents by fitness, and that it climbs."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from nasbot.architecture import Layer, chain, initial_pool
from nasbot.architecture.space import SearchSpace
from nasbot.errors import OptionError
from nasbot.evolution import (
    Evolution,
    Mutation,
    MutationOperator,
    Rejected,
    evaluation_schedule,
    mutation_schedule,
    selection_probabilities,
)
from nasbot.testing.networks import relabelled
from tests.evolution.vocabularies import cell, cells


def evolution(kind="mlp-reg", **options):
    return Evolution(MutationOperator(SearchSpace(kind)), initial_pool(kind), **options)


@pytest.mark.parametrize(("step", "n_evaluations", "n_mutations"), [(0, 50, 21), (4, 50, 21), (25, 125, 33)])
def test_schedules_are_the_releases(step, n_evaluations, n_mutations):
    assert evaluation_schedule(step) == n_evaluations
    assert mutation_schedule(n_evaluations) == n_mutations


def test_schedules_at_their_ends():
    assert (evaluation_schedule(100), mutation_schedule(250)) == (250, 47)
    assert (evaluation_schedule(10**6), mutation_schedule(10**6)) == (500, 100)
    assert mutation_schedule(0) == 5
    with pytest.raises(OptionError, match="step"):
        evaluation_schedule(-1)


@pytest.mark.parametrize("kind", ["mlp-reg", "cnn"])
def test_never_a_network_twice_nor_one_to_avoid(kind):
    rng = np.random.default_rng(0)
    first = evolution(kind).ask(60, rng=np.random.default_rng(1))
    avoid = [relabelled(mutation.arch, rng=rng) for mutation in first]
    searching = evolution(kind, avoid=avoid)
    asked = searching.ask(60, rng=np.random.default_rng(1))  # would be the same 60 again
    for _ in range(6):
        more = searching.ask(40, rng=rng)
        searching.tell([mutation.arch for mutation in more], rng.random(len(more)))
        asked += more
    fingerprints = [mutation.arch.fingerprint for mutation in asked]
    known = {arch.fingerprint for arch in (*avoid, *initial_pool(kind))}
    assert len(asked) == 300
    assert len(set(fingerprints)) == 300
    assert known.isdisjoint(fingerprints)
    assert searching.n_duplicates >= 60


def test_a_copy_was_told_the_same_and_goes_on_by_itself():
    searching, pool = evolution(), initial_pool("mlp-reg")
    searching.tell(pool, np.arange(10.0))
    one, other = searching.copy(avoid=()), searching.copy(avoid=())
    asked = [[m.arch for m in each.ask(30, rng=np.random.default_rng(0))] for each in (one, other, searching)]
    assert asked[0] == asked[1] == asked[2]
    one.tell(asked[0], np.zeros(30))
    assert other.population == searching.population == tuple(pool)
    more = [m.arch for m in searching.copy(avoid=()).ask(30, rng=np.random.default_rng(1))]
    avoiding = searching.copy(avoid=more).ask(30, rng=np.random.default_rng(1))
    assert {m.arch for m in avoiding}.isdisjoint(more)


def test_lineage_is_in_the_population():
    searching, pool, rng = evolution(), initial_pool("mlp-reg"), np.random.default_rng(0)
    searching.tell(pool, np.arange(10.0))
    assert {mutation.parent for mutation in searching.ask(50, rng=rng)} <= set(pool)


def test_parents_are_drawn_by_their_fitness():
    """Mutations of four steps, so that hardly one is thrown away as a duplicate: that would favour rare parents."""
    pool = initial_pool("mlp-reg")
    searching = Evolution(MutationOperator(SearchSpace("mlp-reg"), step_probabilities=[0, 0, 0, 1]), pool)
    fitness = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 3.0])
    searching.tell(pool, fitness)
    parents = Counter(mutation.parent for mutation in searching.ask(3000, rng=np.random.default_rng(0)))
    counts = np.array([parents[arch] for arch in pool])
    assert chisquare(counts, counts.sum() * selection_probabilities(fitness)).pvalue > 0.01


def test_minus_infinity_is_never_a_parent():
    searching, pool = evolution(), initial_pool("mlp-reg")
    searching.tell(pool, [-np.inf] * 9 + [0.0])
    assert {mutation.parent for mutation in searching.ask(30, rng=np.random.default_rng(0))} == {pool[9]}


def test_before_anything_is_told_parents_are_drawn_from_the_initial_population():
    parents = {mutation.parent for mutation in evolution().ask(200, rng=np.random.default_rng(0))}
    assert parents == set(initial_pool("mlp-reg"))


def test_told_again_has_its_new_fitness():
    searching, pool = evolution(), initial_pool("mlp-reg")
    searching.tell(pool, np.zeros(10))
    searching.tell([relabelled(pool[3], rng=np.random.default_rng(0))], [5.0])
    assert len(searching.population) == 10
    assert searching.best() == (pool[3], 5.0)
    assert list(searching.fitness) == [0, 0, 0, 5, 0, 0, 0, 0, 0, 0]


def test_it_climbs():
    """Fitness: how near the network is to 500 units in all."""
    searching, rng = evolution(), np.random.default_rng(0)

    def fitness_of(networks):
        return [-abs(sum(layer.units or 0 for layer in arch.layers) - 500) for arch in networks]

    pool = initial_pool("mlp-reg")
    searching.tell(pool, fitness_of(pool))
    start = searching.best()[1]
    for _ in range(15):
        networks = [mutation.arch for mutation in searching.ask(20, rng=rng)]
        searching.tell(networks, fitness_of(networks))
    assert searching.best()[1] > start / 4


def test_a_used_up_space_ends_the_asking():
    vocabulary = cells()
    operator = MutationOperator(SearchSpace(vocabulary), ["swap_label"], step_probabilities=[1])
    first = cell("aaaaaa", vocabulary)
    searching = Evolution(operator, [first])
    assert len(searching.ask(100, rng=np.random.default_rng(0))) == 24  # six places, four other operations
    assert searching.ask(3, rng=np.random.default_rng(0)) == []


def test_what_cannot_be_told():
    searching, pool = evolution(), initial_pool("mlp-reg")
    one_nan, one_inf = (np.where(np.arange(10) == 3, wrong, 0.0) for wrong in (np.nan, np.inf))
    for fitness in ([1.0], [np.nan] * 10, one_nan, one_inf, np.zeros((10, 1))):
        with pytest.raises(OptionError, match="fitness"):
            searching.tell(pool, fitness)
    assert searching.population == ()
    with pytest.raises(OptionError, match="nothing has been told"):
        searching.best()
    with pytest.raises(OptionError, match="initial_population"):
        Evolution(MutationOperator(SearchSpace("cnn")), [])
    with pytest.raises(OptionError, match="n_mutations"):
        searching.ask(-1, rng=np.random.default_rng(0))


def test_where_nothing_can_be_done_nothing_comes():
    tight = SearchSpace("mlp-reg", min_units=64, max_units=64)
    operator = MutationOperator(tight, ["inc_single"])
    searching = Evolution(operator, [chain("mlp-reg", [Layer("relu", 64)])])
    assert searching.ask(2, rng=np.random.default_rng(0)) == []


def test_a_network_that_was_only_told_is_not_proposed():
    vocabulary = cells()
    operator = MutationOperator(SearchSpace(vocabulary), ["swap_label"], step_probabilities=[1])
    searching = Evolution(operator, [cell("aaaaaa", vocabulary)])
    told = [cell(("a",) * i + (new,) + ("a",) * (5 - i), vocabulary) for i in range(6) for new in "bcd"]
    searching.tell([cell("aaaaaa", vocabulary), *told], [0.0, *[-np.inf] * len(told)])
    found = searching.ask(50, rng=np.random.default_rng(0))
    assert {mutation.arch.layers[1 + i].label for mutation in found for i in range(6)} == {"a", "e"}
    assert len(found) == 6


@pytest.mark.parametrize(("n", "tries"), [(1, 41), (3, 45), (0, 0)])
def test_what_is_used_up_is_given_up_after_so_many_tries_in_vain(n, tries):
    """Forty, and as many as are asked for, in whole rounds of as many as are asked for."""
    network = initial_pool("mlp-reg")[0]
    asked = []

    class Useless:
        def __call__(self, arch, *, rng):
            asked.append(arch)
            return Rejected("nothing", "always")

    assert Evolution(Useless(), [network]).ask(n, rng=np.random.default_rng(0)) == []
    assert len(asked) == tries


def test_a_network_found_twice_counts_once_and_tries_go_on_after_a_find():
    network, *others = initial_pool("mlp-reg")[:3]
    mutations = [Mutation(arch, network, ()) for arch in (*others, *others, network)]
    asked = []

    class Few:
        def __call__(self, arch, *, rng):
            asked.append(arch)
            return mutations[len(asked) % len(mutations)]

    evolution = Evolution(Few(), [network])
    found = evolution.ask(5, rng=np.random.default_rng(0))
    assert {mutation.arch for mutation in found} == set(others)
    assert evolution.n_duplicates == len(asked) - 2


@pytest.mark.parametrize(("every", "n_found", "n_tries"), [(1, 20, 20), (30, 500 // 30, 500), (10**6, 0, 60)])
def test_asking_ends_after_so_many_tries_in_all_and_so_many_in_vain(every, n_found, n_tries):
    """For 20 mutations 100 + 20 * 20 tries, of which 40 + 20 in a row may give nothing new."""
    n_asked = 0

    def now_and_then(parent, *, rng):
        nonlocal n_asked
        n_asked += 1
        if n_asked % every:
            return Rejected("none", "nothing")
        return Mutation(chain("mlp-reg", [Layer("relu", 7 + n_asked)]), parent, ())

    found = Evolution(now_and_then, initial_pool("mlp-reg")).ask(20, rng=np.random.default_rng(0))
    assert (len(found), n_asked) == (n_found, n_tries)


@pytest.mark.parametrize(("n", "n_tries"), [(2, 44), (5, 53)])
def test_tries_in_vain_are_counted_from_the_last_find(n, n_tries):
    """The first round finds one; then those left to find are tried for at once until 40 + n were in vain."""
    n_asked = 0

    def once(parent, *, rng):
        nonlocal n_asked
        n_asked += 1
        made = Mutation(chain("mlp-reg", [Layer("relu", 7)]), parent, ())
        return made if n_asked == 1 else Rejected("none", "nothing")

    assert len(Evolution(once, initial_pool("mlp-reg")).ask(n, rng=np.random.default_rng(0))) == 1
    assert n_asked == n_tries

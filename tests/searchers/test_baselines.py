"""The paper's three rivals: what each of them is allowed to look at."""

import numpy as np
import pytest

import nasbot.searchers.evolution_search
import nasbot.searchers.random_search
from nasbot.errors import OptionError
from nasbot.evolution import Evolution, evaluation_schedule, one_step_edits
from nasbot.searchers import EvolutionSearch, RandomSearch, TreeBO
from nasbot.searchers.tree_kernel import is_chain
from nasbot.trial import Scored
from tests.searchers.problems import CNN, MLP, cell_pool, follow, made, mlp_pool, of_outcomes, propose, scored, value_of

# -- RAND --------------------------------------------------------------------------------------------------------------


def test_rand_follows_the_schedule_of_nasbot(monkeypatch):
    asked = []

    def counted(fitness, operator, population, *, n_evaluations, **options):
        asked.append((n_evaluations, tuple(population)))
        return by_evolution(fitness, operator, population, n_evaluations=n_evaluations, **options)

    by_evolution = nasbot.searchers.random_search.by_evolution
    monkeypatch.setattr(nasbot.searchers.random_search, "by_evolution", counted)
    history = follow(made(EvolutionSearch), 120)
    searcher = made(RandomSearch)
    for n in (3, 4, 28, 103):
        propose(searcher, of_outcomes((t.arch, t.outcome) for t in history[:n]))
    assert [n for n, _ in asked] == [evaluation_schedule(t) for t in (1, 1, 25, 100)] == [50, 50, 125, 250]
    assert {population for _, population in asked} == {mlp_pool()}


def test_rand_does_not_look_at_values():
    history = follow(made(RandomSearch), 10)
    networks = [trial.arch for trial in history]
    values = [value_of(arch) for arch in networks]
    assert propose(made(RandomSearch), scored(networks, values)) == propose(
        made(RandomSearch), scored(networks, values[::-1])
    )


# -- EA ----------------------------------------------------------------------------------------------------------------


def parents_told(monkeypatch, history, **options):
    """Trial numbers of the networks among which the next proposal's parent is drawn."""
    told = []

    class Watched(Evolution):
        def tell(self, networks, fitness):
            told.extend(networks)
            super().tell(networks, fitness)

    monkeypatch.setattr(nasbot.searchers.evolution_search, "Evolution", Watched)
    propose(made(EvolutionSearch, **options), history)
    return sorted(next(t.number for t in history if t.arch == arch) for arch in told)


@pytest.mark.parametrize(("n", "expected"), [(3, 3), (4, 3), (12, 3), (13, 13), (22, 13), (23, 23)])
def test_a_generation_has_ten_networks_made_from_those_before_it(monkeypatch, n, expected):
    """The pool of three is the first generation."""
    history = of_outcomes((t.arch, t.outcome) for t in follow(made(EvolutionSearch), 25)[:n])
    assert parents_told(monkeypatch, history) == list(range(expected))


def test_members_of_a_generation_that_are_not_finished_are_no_parents(monkeypatch):
    pairs = [(t.arch, t.outcome) for t in follow(made(EvolutionSearch), 10)]
    pairs[5] = (pairs[5][0], None)
    assert parents_told(monkeypatch, of_outcomes(pairs)) == [n for n in range(13) if n != 5]


def test_n_mutations_is_the_size_of_a_generation(monkeypatch):
    history = of_outcomes((t.arch, t.outcome) for t in follow(made(EvolutionSearch), 6)[:8])
    assert parents_told(monkeypatch, history, n_mutations=2) == list(range(7))


def test_better_networks_have_more_children():
    pool = mlp_pool()
    history = scored(pool, [0.0, 0.0, 3.0])
    parents = [propose(made(EvolutionSearch), history, seed).origin.parents[0] for seed in range(200)]
    # exp(value / sd): sd is sqrt(2), so the third is exp(3 / sqrt(2)) times as likely as each of the others.
    weight = np.exp(3 / np.sqrt(2))
    assert parents.count(2) / 200 == pytest.approx(weight / (weight + 2), abs=0.1)


def test_ea_goes_by_the_history_alone_whatever_it_was_asked_before():
    """It remembers the parents of the last proposal, and histories of other parents and values follow."""
    pairs = [(t.arch, t.outcome) for t in follow(made(EvolutionSearch), 30)]
    networks, outcomes = zip(*pairs, strict=True)
    histories = [of_outcomes(pairs[:n]) for n in (14, 15, 23, 13)]
    histories.append(of_outcomes(zip(networks[:13], outcomes[:13][::-1], strict=True)))
    searcher = made(EvolutionSearch)
    for history in (*histories, histories[0]):
        for seed in range(3):
            assert propose(searcher, history, seed) == propose(made(EvolutionSearch), history, seed)


# -- TreeBO ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["mlp", "cnn"])
def test_treebo_proposes_chains_only(problem):
    history = follow(made(TreeBO, problem), 15, lambda arch: Scored(len(arch.layers)))
    assert all(is_chain(trial.arch) for trial in history)
    assert max(len(t.arch.layers) for t in history) > max(len(t.arch.layers) for t in history[:3])


@pytest.mark.parametrize("space", [MLP, CNN], ids=["mlp", "cnn"])
def test_treebo_refuses_a_pool_that_branches(space):
    chains = mlp_pool()[1:] if space is MLP else made(TreeBO, "cnn").pool
    branching = next(edit.arch for arch in chains for edit in one_step_edits(arch, space) if not is_chain(edit.arch))
    with pytest.raises(OptionError, match="pool network 1: TreeBO searches chains; expected one, got a network that"):
        TreeBO(space=space, pool=(chains[0], branching))


def test_treebo_refuses_cells():
    with pytest.raises(OptionError, match="pool network 0: TreeBO searches chains"):
        made(TreeBO, "cells", pool=cell_pool())


def test_treebo_is_not_disturbed_by_networks_that_branch():
    """They may be in a study's pool; there is no place for them in its kernel."""
    branching = next(e.arch for e in one_step_edits(mlp_pool()[2], MLP) if not is_chain(e.arch))
    history = of_outcomes([*((arch, Scored(value_of(arch))) for arch in mlp_pool()), (branching, Scored(99.0))])
    assert is_chain(propose(made(TreeBO), history).arch)


def test_treebo_goes_where_values_are_high():
    def n_tanh(arch):
        return sum(layer.label == "tanh" for layer in arch.layers) / len(arch.processing_layers)

    history = follow(made(TreeBO), 25, lambda arch: Scored(n_tanh(arch)))
    first, last = (np.mean([n_tanh(t.arch) for t in part]) for part in (history[:10], history[-10:]))
    assert last > first + 0.2

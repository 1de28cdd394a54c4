"""One-step, k-step and compound operators: lineage, rejections and their bounds."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from nasbot.architecture import Layer, chain, initial_pool
from nasbot.architecture.space import SearchSpace
from nasbot.errors import OptionError
from nasbot.evolution import (
    MODIFIERS,
    STEP_PROBABILITIES,
    Mutation,
    MutationOperator,
    Rejected,
    mutate,
    mutate_once,
)
from nasbot.evolution.mutation import _drawn
from nasbot.testing.strategies import architectures, generators
from tests.evolution.vocabularies import cell, cells

MLP = initial_pool("mlp-reg")[0]
SPACE = SearchSpace("mlp-reg")


def test_one_step_has_one_step():
    mutation = mutate_once(MLP, SPACE, rng=np.random.default_rng(0))
    assert isinstance(mutation, Mutation)
    assert mutation.parent is MLP
    assert len(mutation.steps) == 1
    assert mutation.arch != MLP


@given(architectures("mlp-reg", max_layers=12), st.integers(1, 6), generators())
def test_k_steps_are_k_modifications(arch, k, rng):
    space = SearchSpace("mlp-reg", min_units=1)
    mutation = mutate(arch, k, space, rng=rng)
    assert isinstance(mutation, Mutation)
    assert len(mutation.steps) == k
    assert mutation.arch in space
    assert {step.modifier for step in mutation.steps} <= set(MODIFIERS)
    assert all(str(step).startswith(f"{step.modifier}: ") for step in mutation.steps)


def test_numbers_of_steps_and_modifiers_have_their_probabilities():
    operator, rng = MutationOperator(SearchSpace("mlp-reg", min_units=1)), np.random.default_rng(0)
    mutations = [operator(MLP, rng=rng) for _ in range(4000)]
    n_steps = np.bincount([len(mutation.steps) for mutation in mutations], minlength=6)[1:]
    assert chisquare(n_steps, 4000 * np.array(STEP_PROBABILITIES)).pvalue > 0.01
    modifiers = Counter(step.modifier for mutation in mutations for step in mutation.steps)
    assert chisquare([modifiers[name] for name in MODIFIERS]).pvalue > 0.01


def test_a_modifier_that_stands_there_twice_is_twice_as_likely():
    operator = MutationOperator(SPACE, ["skip", "inc_single", "skip"], step_probabilities=[1])
    rng = np.random.default_rng(0)
    modifiers = Counter(operator(MLP, rng=rng).steps[0].modifier for _ in range(3000))
    assert chisquare([modifiers["skip"], modifiers["inc_single"]], [2000, 1000]).pvalue > 0.01


def test_rejections_are_counted_by_modifier_and_reason():
    tight = SearchSpace("mlp-reg", min_units=64, max_units=64)
    operator = MutationOperator(tight, ["inc_single", "dec_single"])
    outcome = operator(chain("mlp-reg", [Layer("relu", 64)]), rng=np.random.default_rng(0))
    assert isinstance(outcome, Rejected)
    assert outcome.reason in ("min_units", "max_units")
    assert set(operator.rejections) == {("inc_single", "max_units"), ("dec_single", "min_units")}
    assert sum(operator.rejections.values()) == operator.max_tries
    assert "expected at most 64" in outcome.detail or "expected at least 64" in outcome.detail


def test_a_mutation_that_gets_stuck_keeps_the_steps_it_has():
    """Decreases lead from 10 to 8 units, 9 and then 8, and no further."""
    operator = MutationOperator(SPACE, ["dec_single"])
    mutation = operator.mutate(chain("mlp-reg", [Layer("relu", 10)]), 5, rng=np.random.default_rng(0))
    assert [step.description for step in mutation.steps] == [
        "layer 1 relu: 10 -> 9 units",
        "layer 1 relu: 9 -> 8 units",
    ]


def test_cells_are_mutated_by_swaps_alone():
    vocabulary = cells()
    arch = cell("abcdea", vocabulary)
    rng = np.random.default_rng(0)
    swaps = MutationOperator(SearchSpace(vocabulary), ["swap_label"])
    for operator in (swaps, MutationOperator(SearchSpace(vocabulary))):
        mutations = [operator(arch, rng=rng) for _ in range(100)]
        assert {step.modifier for x in mutations if isinstance(x, Mutation) for step in x.steps} == {"swap_label"}
        assert sum(isinstance(x, Rejected) for x in mutations) < 5
    assert not swaps.rejections


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modifiers": ["dup"]}, "unknown modifier 'dup'; known: dec_single"),
        ({"modifiers": "skip"}, "list of names"),
        ({"modifiers": []}, "at least one"),
        ({"step_probabilities": []}, "step_probabilities"),
        ({"step_probabilities": [0.5, -0.1]}, "step_probabilities"),
        ({"step_probabilities": [0, 0]}, "step_probabilities"),
        ({"step_probabilities": [np.nan]}, "step_probabilities"),
        ({"step_probabilities": [0.5, np.nan]}, "step_probabilities"),
        ({"step_probabilities": [0.5, np.inf]}, "step_probabilities"),
        ({"max_tries": 0}, "max_tries"),
    ],
)
def test_options_that_cannot_be_meant(options, message):
    with pytest.raises(OptionError, match=message):
        MutationOperator(SPACE, **options)


@pytest.mark.parametrize("k", [0, -1, 1.0, True])
def test_steps_are_a_whole_number(k):
    with pytest.raises(OptionError, match="k: expected"):
        mutate(MLP, k, SPACE, rng=np.random.default_rng(0))


def test_weights_need_not_add_up_to_one():
    rng = np.random.default_rng(0)
    drawn = [_drawn((1.0, 4.0), rng) for _ in range(2000)]
    assert drawn.count(0) / 2000 == pytest.approx(0.25, abs=0.03)
    assert [_drawn((0.125, 0.25), rng) for _ in range(200)].count(0) == pytest.approx(100, abs=30)

"""Issue 3's bar: every modifier, 2,000 applications on random networks of each kind: a valid network of the space, or a
reason; and that what comes out depends on the generator alone, in any process."""

import hashlib
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.architecture import Architecture, initial_pool
from nasbot.architecture.space import SearchSpace
from nasbot.errors import InvalidArchitectureError
from nasbot.evolution import (
    CNN_MODIFIERS,
    DOUBLING_MODIFIERS,
    MODIFIERS,
    STRUCTURE_MODIFIERS,
    UNIT_MODIFIERS,
    Evolution,
    Mutation,
    MutationOperator,
    Rejected,
    one_step_edits,
    sample_edits,
)
from nasbot.evolution.structure import MAX_PATHS, MAX_WIRINGS
from nasbot.testing.networks import random_architecture
from nasbot.testing.strategies import architectures, generators
from tests.evolution.vocabularies import images

KINDS = ("mlp-reg", "mlp-class", "cnn")
OWN = images(halving="fixed")
# Reasons that can come up at all: limits of the space, rules of the graph, and the modifiers' own.
REASONS = {
    *("min_layers", "max_layers", "max_edges", "max_mass", "max_in_degree", "max_out_degree", "min_units", "max_units"),
    *("image size", "images", "after the input", "decision layers", "linear_model"),
    *("nowhere to apply", "no other label fits", "no label fits"),
}


def networks(kind, n, seed=0):
    """Random networks inside the space, of 5 to 40 layers."""
    rng, space = np.random.default_rng(seed), SearchSpace(kind)
    found = []
    while len(found) < n:
        arch = random_architecture(kind, rng=rng, n_layers=int(rng.integers(5, 41)))
        found += [arch] if arch in space else []
    return found


@pytest.mark.parametrize(("kind", "n_applications"), [*((kind, 2000) for kind in KINDS), (OWN, 500)], ids=str)
def test_applications_of_every_modifier(kind, n_applications):
    space, pool = SearchSpace(kind), networks(kind, 100)
    for seed, name in enumerate((*MODIFIERS, *DOUBLING_MODIFIERS)):
        rng = np.random.default_rng(seed)
        operator = MutationOperator(space, [name], max_tries=1)
        n_valid = 0
        for i in range(n_applications):
            parent = pool[i % len(pool)]
            mutation = operator.mutate(parent, 1, rng=rng)
            if isinstance(mutation, Rejected):
                assert mutation.reason in REASONS, mutation
                assert str(mutation).startswith(f"{name}: ")
                continue
            n_valid += 1
            assert mutation.arch in space
            if i % 4 == 0:
                again = Architecture(mutation.arch.vocabulary, mutation.arch.layers, mutation.arch.edges)
                assert (again.parents, again.downsampling) == (mutation.arch.parents, mutation.arch.downsampling)
            assert mutation.arch != parent
        assert n_valid + sum(operator.rejections.values()) == n_applications
        # Half of a run's units must not be below the least in any of its layers, nor twice as many above the most.
        assert n_valid > (0.3 if name in DOUBLING_MODIFIERS else 0.5) * n_applications, (name, operator.rejections)


def test_registry():
    assert tuple(MODIFIERS) == UNIT_MODIFIERS + STRUCTURE_MODIFIERS
    assert len(MODIFIERS) == 9
    assert all(modifier.name == name for name, modifier in MODIFIERS.items())
    assert sorted(name.removeprefix("release_") for name in CNN_MODIFIERS) == sorted((*MODIFIERS, *DOUBLING_MODIFIERS))


@given(architectures(max_layers=14), st.sampled_from(sorted(MODIFIERS)), generators())
def test_what_is_drawn_is_among_what_is_listed(arch, name, rng):
    modifier = MODIFIERS[name]
    drawn = modifier.draw(arch, rng)
    listed = list(modifier.sites(arch))
    if isinstance(drawn, Rejected):
        assert drawn.reason != "nowhere to apply" or not listed
    elif name == "dup_path":
        assert drawn in listed or len(listed) == MAX_PATHS
    elif name == "remove_layer":
        assert drawn in listed or Counter(u for u, _ in listed)[drawn[0]] == MAX_WIRINGS
    else:
        assert drawn in listed


@given(architectures(max_layers=16), st.sampled_from(sorted(MODIFIERS)), generators())
def test_a_modifier_leaves_its_argument_alone_and_repeats_itself(arch, name, rng):
    before, seed = arch.to_json(), int(rng.integers(2**32))
    outcomes = [MODIFIERS[name](arch, rng=np.random.default_rng(seed)) for _ in range(2)]
    assert arch.to_json() == before
    assert outcomes[0] == outcomes[1]
    if isinstance(outcomes[0], Architecture):
        assert outcomes[0].to_json() == outcomes[1].to_json()


@given(architectures("cnn", min_layers=6, max_layers=20), generators())
def test_a_skip_joins_images_of_one_size(arch, rng):
    outcome = MODIFIERS["skip"](arch, rng=rng)
    if isinstance(outcome, Architecture):
        n_new = len(outcome.layers) - len(arch.layers)
        assert len(outcome.edges) == len(arch.edges) + 1 + n_new
        assert Counter(outcome.layers) - Counter(arch.layers) == Counter({x: n_new for x in [_avg_pool()] if n_new})


def _avg_pool():
    return next(layer for layer in initial_pool("cnn")[4].layers if layer.label == "avg-pool")


# -- one-step edits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, OWN], ids=str)
def test_one_step_edits_are_in_the_space_all_different_and_the_same_each_time(kind):
    space = SearchSpace(kind, max_layers=20)
    for arch in [arch for arch in networks(kind, 30) if len(arch.layers) < 18][:4]:
        edits = one_step_edits(arch, space)
        assert len({edit.arch.fingerprint for edit in edits} | {arch.fingerprint}) == len(edits) + 1
        assert all(edit.arch in space for edit in edits)
        assert {edit.modifier for edit in edits} <= set(MODIFIERS)
        assert edits == one_step_edits(arch, space)
        assert one_step_edits(arch, space, limit=25) == edits[:25]
        sampled = sample_edits(arch, space, 40, rng=np.random.default_rng(0))
        assert len({edit.arch for edit in sampled}) == len(sampled) == 40
        paths_are_cut = sum(1 for _ in MODIFIERS["dup_path"].sites(arch)) >= 200
        assert paths_are_cut or {edit.arch for edit in sampled} <= {edit.arch for edit in edits}


def test_the_first_edits_are_of_every_kind():
    edits = one_step_edits(initial_pool("cnn")[0], SearchSpace("cnn"), limit=9)
    assert {edit.modifier for edit in edits} == set(MODIFIERS)


def test_edits_by_chosen_modifiers_only():
    edits = one_step_edits(initial_pool("mlp-reg")[0], SearchSpace("mlp-reg"), modifiers=UNIT_MODIFIERS)
    assert {edit.modifier for edit in edits} == set(UNIT_MODIFIERS)


# -- another process ---------------------------------------------------------------------------------------------------

SCRIPT = "from tests.evolution.test_every_modifier import digest; print(digest())"


def digest():
    """A hash over everything random here: mutations, their lineage, evolution and edits, exactly as numbered."""
    record = []
    for kind in ("mlp-class", "cnn"):
        space, pool, rng = SearchSpace(kind), initial_pool(kind), np.random.default_rng(7)
        operator = MutationOperator(space)
        evolution = Evolution(operator, pool)
        for _ in range(4):
            mutations = evolution.ask(20, rng=rng)
            evolution.tell([mutation.arch for mutation in mutations], rng.random(len(mutations)))
            record += [(mutation.arch.to_json(), str(mutation.steps)) for mutation in mutations]
        record += [(edit.arch.to_json(), edit.description) for edit in one_step_edits(pool[2], space, limit=200)]
        record += [(edit.arch.to_json(), edit.description) for edit in sample_edits(pool[2], space, 50, rng=rng)]
        record += [sorted(operator.rejections.items())]
    return hashlib.sha256(repr(record).encode()).hexdigest()


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_same_in_another_process(hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == digest()


def test_invalid_networks_are_never_an_exception():
    """The one exception a modifier could let through is the graph's own; ``edit_at`` turns it into a reason."""
    arch = initial_pool("mlp-reg")[0]
    edit = MODIFIERS["skip"].edit_at(arch, (0, len(arch.layers) - 1))
    assert isinstance(edit, Rejected)
    assert edit.reason == "decision layers"
    with pytest.raises(InvalidArchitectureError):
        Architecture(arch.vocabulary, arch.layers, [*arch.edges, (0, len(arch.layers) - 1)])
    assert not isinstance(edit, Mutation)

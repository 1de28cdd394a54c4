"""The modifiers much as the authors' release draws them: the same changes as the paper's, in other places."""

from collections import Counter
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chisquare

from benchmarks.release_modifiers import RELEASE_MODIFIERS
from nasbot.architecture import Architecture, Layer, chain, initial_pool
from nasbot.architecture.space import SearchSpace
from nasbot.errors import OptionError
from nasbot.evolution import CNN_MODIFIERS, MODIFIERS, Edit, Rejected, branching, one_step_edits
from nasbot.evolution.modifiers import modifiers_of
from nasbot.searchers import NASBOT
from nasbot.study import Study
from nasbot.testing.networks import random_architecture

KINDS = ("mlp-reg", "mlp-class", "cnn")
BY_NAME = {modifier.name: modifier for modifier in modifiers_of(RELEASE_MODIFIERS)}
OWN = sorted(set(BY_NAME) - set(MODIFIERS))


def drawn(name, arch, n, seed=0):
    rng = np.random.default_rng(seed)
    return [BY_NAME[name].edit(arch, rng=rng) for _ in range(n)]


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", KINDS)
def test_each_gives_valid_networks_or_reasons(kind, name):
    rng = np.random.default_rng(1)
    n_edits = 0
    for _ in range(400):
        arch = random_architecture(kind, rng=rng, n_layers=int(rng.integers(5, 30)))
        edit = BY_NAME[name].edit(arch, rng=rng)
        if isinstance(edit, Rejected):
            assert edit.reason
        else:
            n_edits += 1
            assert edit.modifier == name
            assert Architecture.from_dict(edit.arch.to_dict()) == edit.arch
    assert n_edits >= 100


def test_weights_are_those_of_the_release():
    """Swaps, duplicated paths and skips twice as likely as each of the six others."""
    shares = Counter(modifier.name.removeprefix("release_") for modifier in modifiers_of(RELEASE_MODIFIERS))
    assert set(shares) == set(MODIFIERS)
    assert {name for name, n in shares.items() if n == 2} == {"swap_label", "dup_path", "skip"}
    assert sum(shares.values()) == 12


def test_paths_begin_near_the_input():
    """In a chain of equal layers the layer k edges from the input begins a path with weight 1 / sqrt(1 + k)."""
    arch = chain("mlp-reg", [Layer("relu", 64)] * 8)
    edits = [edit for edit in drawn("release_dup_path", arch, 3000) if isinstance(edit, Edit)]
    starts = Counter(int(edit.description.split()[1]) for edit in edits)
    weights = 1 / np.sqrt(1 + np.arange(9))  # the input, and the layers that have one behind them to duplicate
    assert len(edits) == 3000
    assert chisquare([starts[k] for k in range(9)], 3000 * weights / weights.sum()).pvalue > 0.01


def test_of_a_path_from_the_input_the_first_layer_is_duplicated_always_and_of_others_half_the_time():
    arch = chain("mlp-reg", [Layer("relu", 64)] * 12)
    paths = [
        edit.description.split(" duplicated")[0].removeprefix("path ") for edit in drawn("release_dup_path", arch, 600)
    ]
    steps = [[int(u) for u in path.split(" -> ")] for path in paths]
    assert {second for first, second, *_ in steps if first == 0} == {1}
    kept = [second == first + 1 for first, second, *_ in steps if 0 < first < 8]
    assert 0.4 < np.mean(kept) < 0.6


def test_a_path_to_the_output_takes_its_decision_layer_along():
    arch = chain("mlp-reg", [Layer("relu", 64)] * 2)
    edits = [edit for edit in drawn("release_dup_path", arch, 200) if isinstance(edit, Edit)]
    to_the_end = [edit for edit in edits if edit.description.split(" duplicated")[0].endswith("-> 4")]
    assert to_the_end
    assert all(len(edit.arch.decision_layers) == 2 for edit in to_the_end)


def test_half_a_quarter_or_an_eighth_of_the_layers_are_changed_at_once():
    arch = chain("mlp-reg", [Layer("relu", 64)] * 16)
    changed = Counter(
        sum(new.units != old.units for new, old in zip(edit.arch.layers, arch.layers, strict=True))
        for edit in drawn("release_inc_en_masse", arch, 1400)
        if isinstance(edit, Edit)
    )
    assert chisquare([changed[n] for n in (8, 4, 2)], [200, 400, 800]).pvalue > 0.01


def test_skips_lead_away_from_the_input_and_towards_the_output():
    rng = np.random.default_rng(5)
    n_edits = 0
    for _ in range(60):
        arch = random_architecture("mlp-reg", rng=rng, n_layers=18)
        graph = nx.DiGraph(arch.edges)
        from_input = nx.shortest_path_length(graph, source=0)
        to_output = nx.shortest_path_length(graph, target=len(arch.layers) - 1)
        for edit in drawn("release_skip", arch, 10):
            if isinstance(edit, Edit):
                n_edits += 1
                u, v = (int(part) for part in edit.description.removeprefix("skip ").split(" -> "))
                assert 1 <= u < v < len(arch.layers) - 1
                assert from_input[v] >= from_input[u] + 2
                assert to_output[v] <= to_output[u] - 2
    assert n_edits >= 100


def test_activations_are_swapped_for_those_of_the_other_family():
    arch = chain("mlp-reg", [Layer("relu", 64), Layer("tanh", 64)])
    families = arch.vocabulary.by_name
    for edit in drawn("release_swap_label", arch, 100):
        assert isinstance(edit, Edit)
        ((old, new),) = [(a, b) for a, b in zip(arch.layers, edit.arch.layers, strict=True) if a != b]
        assert families[old.label].family != families[new.label].family


def test_in_networks_of_images_pools_are_swapped_for_pools_and_dense_layers_stay():
    arch = initial_pool("cnn")[9]
    swaps: Counter[tuple[str, bool]] = Counter()
    for edit in drawn("release_swap_label", arch, 2000):
        if isinstance(edit, Edit):
            ((old, new),) = [(a, b) for a, b in zip(arch.layers, edit.arch.layers, strict=True) if a != b]
            swaps[old.label.rstrip("0123456789"), "pool" in new.label] += 1
            assert "fc" not in (old.label, new.label)
    assert {to_pool for old, to_pool in swaps if "pool" in old} == {True}
    of_convolutions = {(old, to_pool): n for (old, to_pool), n in swaps.items() if "pool" not in old}
    to_pools = sum(n for (_, to_pool), n in of_convolutions.items() if to_pool)
    assert 0.05 < to_pools / sum(of_convolutions.values()) < 0.15


def test_few_layers_are_not_changed_en_masse():
    assert isinstance(drawn("release_inc_en_masse", chain("mlp-reg", [Layer("relu", 64)] * 2), 1)[0], Rejected)


def test_pools_are_seldom_wedged_in():
    arch = initial_pool("cnn")[9]
    edits = [edit for edit in drawn("release_wedge_layer", arch, 2000) if isinstance(edit, Edit)]
    pools = sum("pool" in edit.description.split(" wedged")[0] for edit in edits)
    assert 0 < pools / len(edits) < 0.1


def test_a_search_by_them_is_a_search_like_any_other():
    searcher = NASBOT(space=SearchSpace("cnn"), modifiers=RELEASE_MODIFIERS)
    study = Study.in_memory(searcher, seed=0).optimise(lambda arch: float(len(arch.layers)), 13)
    modifiers = [name for trial in study.history for name in trial.origin.modifiers]
    assert modifiers
    assert set(modifiers) <= set(BY_NAME)


def test_a_modifier_named_twice_lists_its_edits_once():
    arch, space = chain("mlp-reg", [Layer("relu", 64)] * 3), SearchSpace("mlp-reg")
    once = one_step_edits(arch, space, modifiers=("release_skip", "inc_single"))
    assert one_step_edits(arch, space, modifiers=("release_skip", "inc_single", "release_skip")) == once


def test_names_that_studies_may_still_have_say_where_they_went():
    assert {"release_dup_path", "release_skip"} <= {modifier.name for modifier in modifiers_of(CNN_MODIFIERS)}
    for name in set(OWN) - {"release_dup_path", "release_skip"}:
        with pytest.raises(OptionError, match=rf"{name} is no longer part .* benchmarks/release_modifiers\.py"):
            NASBOT(space=SearchSpace("cnn"), modifiers=("inc_single", name))


@pytest.mark.parametrize(
    ("start", "draws", "path"),
    [
        (0.5, (0.9, 0.9), (2, 4, 5)),  # the last one, where chance keeps none
        (0.5, (0.9, 0.1), (2, 4, 5)),
        (0.5, (0.1, 0.9), (2, 3, 5)),
        (0.5, (0.1, 0.1), (2, 3, 4, 5)),
        (0.0, (0.9,), (0, 1, 3)),  # and of those from the input the first, undrawn
        (0.0, (0.1,), (0, 1, 2, 3)),
    ],
)
def test_a_walk_keeps_each_inner_layer_by_chance_but_at_least_one(start, draws, path):
    arch = chain("mlp-reg", [Layer("relu", 64)] * 6)
    children, stop = (0.0, 0.0, 0.0), 0.1
    drawn_in_turn = iter((start, *children, stop, *draws))
    assert branching._walk(arch, SimpleNamespace(random=lambda: next(drawn_in_turn))) == path
    assert next(drawn_in_turn, None) is None

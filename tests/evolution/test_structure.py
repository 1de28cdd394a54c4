"""dup_path, remove_layer, skip, swap_label, wedge_layer: the lower half of the appendix's table, by hand."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from nasbot.architecture import CNN, MLP_REG, Architecture, Layer, Role, Signal, chain, initial_pool
from nasbot.evolution import MODIFIERS, Rejected, structure
from nasbot.evolution.branching import _near_the_input
from nasbot.evolution.structure import MAX_PATHS, random_stride
from nasbot.evolution.wiring import accepts, units_between
from tests.evolution.vocabularies import cell, images

DUP, REMOVE, SKIP, SWAP, WEDGE = (
    MODIFIERS[name] for name in ("dup_path", "remove_layer", "skip", "swap_label", "wedge_layer")
)


def mlp(layers, edges):
    return Architecture("mlp-reg", [Layer("ip"), *layers, Layer("linear"), Layer("op")], edges)


def drawn(modifier, arch, n=400):
    """All that comes out of n applications, how often, and the reasons for the rest."""
    rng = np.random.default_rng(0)
    return Counter(
        outcome.reason if isinstance(outcome, Rejected) else outcome
        for outcome in (modifier(arch, rng=rng) for _ in range(n))
    )


def listed(modifier, arch):
    return {edit.reason if isinstance(edit, Rejected) else edit.arch for edit in modifier.edits(arch)}


RELUS = [Layer("relu", 8 * n) for n in (1, 2, 3)]
CHAIN = chain("mlp-reg", RELUS)  # ip 0, relus 1-3, linear 4, op 5


# -- dup_path ----------------------------------------------------------------------------------------------------------


def test_dup_path_duplicates_the_inside_of_a_path():
    arch = DUP.edit_at(CHAIN, (0, 1, 2, 3)).arch
    expected = mlp(
        [RELUS[0], RELUS[1], RELUS[0], RELUS[1], RELUS[2]],
        [(0, 1), (1, 2), (0, 3), (3, 4), (2, 5), (4, 5), (5, 6), (6, 7)],
    )
    assert arch == expected
    assert DUP.edit_at(CHAIN, (0, 1, 2, 3)).description == "path 0 -> 1 -> 2 -> 3 duplicated"


def test_dup_path_may_duplicate_the_decision_layer():
    arch = DUP.edit_at(CHAIN, (3, 4, 5)).arch
    assert arch.decision_layers == (4, 5)
    assert arch.parents[6] == (4, 5)


def test_dup_path_draws_every_path_of_a_chain_and_lists_the_same():
    paths = {tuple(range(i, j)) for i in range(6) for j in range(i + 3, 7)}
    assert set(DUP.sites(CHAIN)) == paths
    assert set(drawn(DUP, CHAIN, 2000)) == listed(DUP, CHAIN)
    assert len(listed(DUP, CHAIN)) == len(paths)


def test_dup_path_duplicates_three_layers_on_average_where_there_is_room():
    arch = chain("mlp-reg", [Layer("relu", 8)] * 56)
    rng = np.random.default_rng(0)
    lengths = [len(DUP.draw(arch, rng)) - 2 for _ in range(4000)]
    assert 2.6 < np.mean(lengths) < 3.1  # a little below 3, because some begin near the end
    assert min(lengths) == 1


def test_dup_path_lists_the_shortest_paths_up_to_a_bound():
    deep = chain("mlp-reg", [Layer("relu", 8)] * 56)
    paths = list(DUP.sites(deep))
    assert len(paths) == MAX_PATHS
    assert [len(path) for path in paths] == sorted(len(path) for path in paths)


# -- remove_layer ------------------------------------------------------------------------------------------------------


def test_remove_reconnects_a_chain():
    assert listed(REMOVE, CHAIN) == {chain("mlp-reg", [x for x in RELUS if x is not gone]) for gone in RELUS}
    assert set(drawn(REMOVE, CHAIN)) == listed(REMOVE, CHAIN)


def test_remove_adds_no_edge_where_none_is_needed():
    """Both neighbours of layer 2 have others: 1 also feeds 3, and 3 is also fed by 1."""
    arch = mlp(RELUS, [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5)])
    assert REMOVE.edit_at(arch, (2, ())).arch == chain("mlp-reg", [RELUS[0], RELUS[2]])
    assert (2, ()) in set(REMOVE.sites(arch))


def test_remove_reconnects_each_orphan_to_one_layer_of_the_other_side():
    """Layer 3 has parents 1 and 2, who feed nothing else, and children 4 and 5, fed by nothing else."""
    layers = [Layer("relu", 8 * n) for n in range(1, 6)]
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6), (6, 7)]
    arch = mlp(layers, edges)
    wirings = {wiring for u, wiring in REMOVE.sites(arch) if u == 3}
    assert wirings == {
        ((1, 4), (2, 5)),
        ((1, 5), (2, 4)),
        ((1, 4), (2, 4), (1, 5)),
        ((1, 4), (2, 4), (2, 5)),
        ((1, 5), (2, 5), (1, 4)),
        ((1, 5), (2, 5), (2, 4)),
    }
    rng = np.random.default_rng(0)
    sites = [REMOVE.draw(arch, rng) for _ in range(600)]
    assert {wiring for u, wiring in sites if u == 3} == wirings
    assert {u for u, _ in sites} == {1, 2, 3, 4, 5}


def test_remove_spares_the_ends_and_a_sole_decision_layer():
    arch = chain("mlp-reg", [])
    assert isinstance(REMOVE(arch, rng=np.random.default_rng(0)), Rejected)
    assert not list(REMOVE.sites(arch))


def test_remove_takes_one_of_two_decision_layers_where_its_parents_have_other_children():
    two = DUP.edit_at(CHAIN, (3, 4, 5)).arch
    assert REMOVE.edit_at(two, (4, ())).arch == CHAIN
    assert CHAIN in drawn(REMOVE, two)


def test_remove_is_rejected_where_images_of_two_sizes_would_meet():
    layers = [Layer("conv3", 8), Layer("conv3", 8, 2), Layer("conv5", 8, 2), Layer("fc", 8)]
    edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6)]
    arch = Architecture("cnn", [Layer("ip"), *layers, Layer("softmax"), Layer("op")], edges)
    joined = Architecture(
        "cnn",
        [Layer("ip"), *layers[:3], Layer("conv7", 8), *layers[3:], Layer("softmax"), Layer("op")],
        [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6), (6, 7)],
    )
    assert not isinstance(REMOVE.edit_at(arch, (2, ())), Rejected)  # fc takes what comes
    longer = WEDGE.edit_at(joined, ((1, 2), Layer("conv3", 8, 1))).arch  # 1 -> w 2 -> 3, joined with 4 at 5
    rejected = REMOVE.edit_at(longer, (3, ((2, 5),)))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "image size"
    assert "1/2" in rejected.detail


# -- skip --------------------------------------------------------------------------------------------------------------


def test_skip_adds_every_missing_edge_from_an_earlier_to_a_later_layer():
    expected = {(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4)}
    assert set(SKIP.sites(CHAIN)) == expected
    networks = {Architecture("mlp-reg", CHAIN.layers, CHAIN.edges | {pair}) for pair in expected}
    assert listed(SKIP, CHAIN) == networks
    assert set(drawn(SKIP, CHAIN)) == networks


def test_skip_is_uniform_over_pairs():
    counts = drawn(SKIP, CHAIN, 6000)
    assert max(counts.values()) - min(counts.values()) < 200  # six pairs, 1000 each, standard deviation 29


def test_skip_to_a_smaller_image_goes_through_average_pools():
    layers = [Layer("conv3", 8), Layer("max-pool"), Layer("conv3", 8), Layer("max-pool"), Layer("conv3", 8)]
    arch = chain("cnn", [*layers, Layer("fc", 8)])  # conv 1, pool 2, conv 3, pool 4, conv 5, fc 6, softmax 7, op 8
    edit = SKIP.edit_at(arch, (1, 5))
    assert edit.description == "skip 1 -> 5 through 2 avg-pool"
    new = edit.arch
    assert [layer.label for layer in new.layers[5:7]] == ["avg-pool", "avg-pool"]
    assert new.parents[5:8] == ((1,), (5,), (4, 6))
    sizes = new.downsampling
    assert sizes[4] == sizes[6] == 4
    assert SKIP.edit_at(arch, (1, 3)).description == "skip 1 -> 3 through avg-pool"
    assert SKIP.edit_at(arch, (3, 6)).description == "skip 3 -> 6"  # fc takes images of any size


def test_skip_to_a_larger_image_or_from_vectors_to_images_is_never_drawn():
    """Layers 1 and 2 run beside each other, the first with stride 2."""
    layers = [Layer("conv3", 8, 2), Layer("conv5", 8), Layer("conv3", 8), Layer("fc", 8), Layer("conv7", 8)]
    edges = [(0, 1), (0, 2), (1, 4), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6), (6, 7)]
    arch = Architecture("cnn", [Layer("ip"), *layers, Layer("softmax"), Layer("op")], edges)
    pairs = set(SKIP.sites(arch))
    assert (1, 3) not in pairs  # from half the size to full size
    assert (4, 5) not in pairs  # from fc to a convolution
    assert (1, 6) in pairs
    rejected = SKIP.edit_at(arch, (1, 3))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "the image cannot be brought to the size of the others"  # not by the rules' own words
    assert "vectors" in SKIP.edit_at(arch, (4, 5)).reason


def test_skip_from_the_input_respects_what_may_follow_it():
    arch = chain("cnn", [Layer("conv3", 8), Layer("max-pool"), Layer("conv3", 8), Layer("fc", 8)])
    assert {v for u, v in SKIP.sites(arch) if u == 0} == set()  # pool and fc may not, and conv 3 only through a pool
    assert SKIP.edit_at(arch, (0, 3)).reason == "not everything may follow the input"


@pytest.mark.parametrize(("halving", "label", "stride"), [("strided", "sub", 2), ("fixed", "marked", None)])
def test_skip_in_a_vocabulary_of_ones_own_goes_through_what_halves_images(halving, label, stride):
    things = [Layer("thing", 8), Layer("thing", 8, 2), Layer("thing", 8)]
    arch = chain(images(halving=halving), things)
    new = SKIP.edit_at(arch, (1, 3)).arch
    assert new.layers[3] == Layer(label, None, stride)
    assert new.downsampling[2] == new.downsampling[3] == 2


def test_skip_where_nothing_halves_images_is_rejected_with_that_reason():
    things = [Layer("thing", 8), Layer("thing", 8, 2), Layer("thing", 8)]
    arch = chain(images(halving="nothing"), things)
    assert SKIP.edit_at(arch, (1, 3)).reason == "no label without units halves images"
    full = Architecture(arch.vocabulary, arch.layers, [*arch.edges, (0, 2), (1, 4), (2, 4)])
    rejected = SKIP(full, rng=np.random.default_rng(0))
    assert isinstance(rejected, Rejected)
    assert "no label without units halves images" in rejected.detail


# -- swap_label --------------------------------------------------------------------------------------------------------


def test_swap_gives_any_other_label_and_keeps_the_units():
    arch = chain("mlp-reg", [Layer("relu", 24)])
    others = ("crelu", "leaky-relu", "softplus", "elu", "logistic", "tanh")
    expected = {chain("mlp-reg", [Layer(label, 24)]) for label in others}
    assert listed(SWAP, arch) == expected
    counts = drawn(SWAP, arch, 3000)
    assert set(counts) == expected
    assert max(counts.values()) - min(counts.values()) < 150  # six labels, 500 each, standard deviation 20


def test_swap_keeps_the_image_size_where_the_new_label_can():
    arch = chain("cnn", [Layer("conv3", 16), Layer("max-pool"), Layer("conv3", 32), Layer("fc", 8)])
    outcomes = {edit.arch.layers[2] for edit in SWAP.edits(arch) if edit.arch.layers[2] != arch.layers[2]}
    assert {Layer("avg-pool"), Layer("conv3", 24, 2), Layer("res7", 24, 2), Layer("conv5", 24, 1)} <= outcomes
    swapped = Counter(x.layers[2].stride for x in drawn(SWAP, arch, 4000).elements())  # a quarter of them at layer 2
    assert 20 < swapped[1] < 80  # 4000 * 1/4 * 6/7 convolutions * OTHER_STRIDE = 43
    assert swapped[2] > 700


def test_swap_never_gives_a_label_that_the_tables_rule_out():
    arch = initial_pool("cnn")[0]
    for edit in SWAP.edits(arch):
        assert not isinstance(edit, Rejected) or edit.reason == "image size", edit
        if not isinstance(edit, Rejected):
            assert edit.arch.layers[1].label not in ("fc", "max-pool", "avg-pool")  # follows the input
            assert edit.arch.layers[-2].label == "softmax"


def test_swap_of_a_cell_changes_one_operation():
    now = "abcdea"
    others = [(i, new) for i in range(6) for new in "abcde" if new != now[i]]
    assert listed(SWAP, cell(now)) == {cell((*now[:i], new, *now[i + 1 :])) for i, new in others}


# -- wedge_layer -------------------------------------------------------------------------------------------------------


def test_wedge_puts_a_layer_with_the_mean_of_the_units_into_an_edge():
    arch = chain("mlp-reg", [Layer("relu", 10), Layer("relu", 31)])
    labels = ("relu", "crelu", "leaky-relu", "softplus", "elu", "logistic", "tanh")
    expected = {
        chain("mlp-reg", layers)
        for label in labels
        for layers in (
            [Layer(label, 10), Layer("relu", 10), Layer("relu", 31)],
            [Layer("relu", 10), Layer(label, 20), Layer("relu", 31)],
            [Layer("relu", 10), Layer("relu", 31), Layer(label, 31)],
        )
    }
    assert listed(WEDGE, arch) == expected
    assert set(drawn(WEDGE, arch, 2000)) == expected


def test_wedge_removes_the_edge_and_no_other():
    arch = mlp(RELUS, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5)])
    edit = WEDGE.edit_at(arch, ((0, 2), Layer("tanh", 16)))
    assert edit.description == "tanh 16 wedged into 0 -> 2"
    assert edit.arch.edges == {(0, 1), (0, 2), (2, 3), (1, 4), (3, 4), (4, 5), (5, 6)}
    assert edit.arch.layers[2] == Layer("tanh", 16)


def test_wedge_between_pools_takes_the_units_from_further_up():
    arch = chain("cnn", [Layer("conv3", 40), Layer("max-pool"), Layer("avg-pool"), Layer("fc", 8)])
    new = {layer for edge, layer in WEDGE.sites(arch) if edge == (2, 3)}
    assert {layer.units for layer in new} == {40, None}
    assert {layer.stride for layer in new if layer.units} == {1, 2}


def test_wedge_never_goes_between_a_decision_layer_and_the_output():
    assert all(edge != (4, 5) for edge, _ in WEDGE.sites(CHAIN))


def test_a_shrinking_wedge_into_one_of_two_joined_branches_is_rejected():
    layers = [Layer("conv3", 8), Layer("conv3", 8), Layer("conv5", 8), Layer("conv7", 8), Layer("fc", 8)]
    edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6), (6, 7)]
    arch = Architecture("cnn", [Layer("ip"), *layers, Layer("softmax"), Layer("op")], edges)
    assert WEDGE.edit_at(arch, ((1, 2), Layer("max-pool"))).reason == "image size"
    assert WEDGE.edit_at(arch, ((4, 5), Layer("max-pool"))).arch.downsampling[4] == 1


def test_structure_fixed_by_a_rule_is_a_reason():
    rng = np.random.default_rng(0)
    for modifier in (DUP, REMOVE, SKIP, WEDGE):
        outcome = modifier(cell("abcdea"), rng=rng)
        assert isinstance(outcome, Rejected)
        assert outcome.reason == "cell structure"


def test_between_two_pools_the_units_are_those_of_the_nearest_layer_before():
    layers = [Layer("ip"), Layer("conv3", 16), Layer("conv3", 32), Layer("max-pool"), Layer("max-pool")]
    layers += [Layer("fc", 16), Layer("softmax"), Layer("op")]
    edges = [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)]
    assert units_between(Architecture("cnn", layers, edges), 3, 4) == 32


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_each_of_a_labels_strides_is_drawn_and_no_other(n):
    label = SimpleNamespace(strides=tuple(range(1, n + 1)))
    drawn = {random_stride(label, np.random.default_rng(seed)) for seed in range(300)}
    assert drawn == set(range(max(n, 1)))


@pytest.mark.parametrize(("drawn", "layer"), [(0.0, 3), (0.49, 3), (0.51, 8), (1.0, 8)])
def test_a_layer_is_drawn_whatever_is_rounded(drawn, layer):
    """Weights 1 and 1: a product that is rounded up to their sum is still the last layer's."""
    rng = SimpleNamespace(random=lambda: drawn)
    assert _near_the_input([3, 8], dict.fromkeys((3, 8), 0), rng) == layer


def test_between_layers_where_no_label_fits_no_layer_is_wedged(monkeypatch):
    monkeypatch.setattr(structure, "wedge_labels", lambda *_: ())
    refused = structure._random_wedge(initial_pool("mlp-reg")[0], np.random.default_rng(0))
    assert isinstance(refused, Rejected)
    assert refused.reason == "no label fits"


@pytest.mark.parametrize("label", [*CNN.labels, *MLP_REG.labels], ids=lambda label: label.name)
@pytest.mark.parametrize("signal", Signal)
def test_a_label_accepts_what_it_takes_and_an_output_anything(label, signal):
    assert accepts(label, signal) == (label.takes in (signal, Signal.ANY) or label.role is Role.OUTPUT)

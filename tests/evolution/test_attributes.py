"""The modifiers of layers' attributes."""

import numpy as np
import pytest

from nasbot.architecture import Attributes, Layer, SearchSpace, chain
from nasbot.evolution import ATTRIBUTE_MODIFIERS, MODIFIERS, Edit, Rejected, one_step_edits
from nasbot.evolution.modifier import NO_SITE
from nasbot.evolution.modifiers import modifiers_of
from nasbot.searchers.nasbot import default_modifiers
from tests.evolution.vocabularies import cell

BY_NAME = {modifier.name: modifier for modifier in modifiers_of(ATTRIBUTE_MODIFIERS)}
MLP = chain("mlp-reg", [Layer("relu", 16), Layer("tanh", 8), Layer("elu", 8)])


def own(arch):
    return tuple(layer.attributes for layer in arch.layers)


def test_searches_make_them_only_where_they_are_named():
    assert not set(ATTRIBUTE_MODIFIERS) & {*MODIFIERS, *default_modifiers(MLP.vocabulary)}


@pytest.mark.parametrize("name", ATTRIBUTE_MODIFIERS)
def test_one_layer_a_run_or_all(name):
    edits = [edit for edit in BY_NAME[name].edits(MLP) if isinstance(edit, Edit)]
    changed = {sum(before != after for before, after in zip(own(MLP), own(edit.arch), strict=True)) for edit in edits}
    n = 4 if name == "change_decay" else 3  # decision layers have weights to decay, too
    assert {1, 2, n} <= changed
    for edit in edits:
        assert edit.modifier == name
        assert edit.arch != MLP
        assert edit.arch.edges == MLP.edges
        assert [layer.units for layer in edit.arch.layers] == [layer.units for layer in MLP.layers]
    rng = np.random.default_rng(0)
    drawn = [BY_NAME[name].edit(MLP, rng=rng) for _ in range(1000)]  # the rarest is drawn once in 45
    assert {edit.arch for edit in drawn if isinstance(edit, Edit)} == {edit.arch for edit in edits}


def test_words_and_values():
    edit = next(e for e in BY_NAME["change_dropout"].edits(MLP))
    assert edit.description == "layer 1 relu: dropout 0 -> 0.05"
    assert edit.arch.layers[1].attributes == Attributes(dropout=0.05)
    halved = next(e for e in BY_NAME["change_decay"].edits(MLP))
    assert halved.description == "layer 1 relu: decay factor 1 -> 0.5"
    back = [e.arch for e in BY_NAME["change_decay"].edits(halved.arch)]
    assert MLP in back


@pytest.mark.parametrize(
    ("now", "near"), [(64.0, {32.0}), (32.0, {16.0, 64.0}), (1 / 64, {1 / 32}), (1 / 32, {1 / 16, 1 / 64})]
)
def test_factors_go_to_64_and_a_64th(now, near):
    arch = chain("mlp-reg", [Layer("relu", 16, decay_factor=now)])
    alone = [e for e in BY_NAME["change_decay"].edits(arch) if e.description.startswith("layer 1 relu: ")]
    assert {edit.arch.layers[1].attributes.decay_factor for edit in alone} == near


def test_a_run_says_all_that_its_layers_had():
    arch = chain("mlp-reg", [Layer("relu", 16, dropout=0.1), Layer("tanh", 8), Layer("elu", 8)])
    words = [edit.description for edit in BY_NAME["change_dropout"].edits(arch)]
    assert "layers 1, 2, 3: dropout 0.1, 0 -> 0.5" in words
    # What the first of them has is no change.
    assert "layers 1, 2, 3: dropout 0.1, 0 -> 0.1" not in words


def test_no_layer_can_have_it():
    rng = np.random.default_rng(0)
    rejected = BY_NAME["change_norm"].edit(cell("abcdea"), rng=rng)
    assert rejected == Rejected("change_norm", NO_SITE, "no layer can have a norm")
    assert list(BY_NAME["change_norm"].edits(cell("abcdea"))) == []


def test_layers_that_cannot_have_it_are_left_alone():
    cnn = chain("cnn", [Layer("conv3", 8, 1), Layer("max-pool"), Layer("fc", 8)])
    for edit in BY_NAME["change_norm"].edits(cnn):
        if isinstance(edit, Rejected):
            assert edit.reason == "norm", "layer normalisation of images"
        else:
            assert edit.arch.layers[2].attributes is None


def test_swapping_labels_keeps_what_the_new_label_can_have():
    arch = chain("mlp-reg+", [Layer("relu", 16, dropout=0.1, norm="layer")])
    swaps = [e.arch.layers[1] for e in one_step_edits(arch, SearchSpace("mlp-reg+"), modifiers=["swap_label"])]
    kept = {layer.label: layer.attributes for layer in swaps}
    assert kept["tanh"] == Attributes(dropout=0.1, norm="layer")
    assert kept["res-dense"] == Attributes(dropout=0.1)

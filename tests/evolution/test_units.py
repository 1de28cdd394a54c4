"""dec_single, inc_single, dec_en_masse, inc_en_masse: the upper half of the appendix's table, by hand."""

import numpy as np
import pytest

from nasbot.architecture import Layer, chain
from nasbot.evolution import MODIFIERS, UNIT_MODIFIERS, Rejected
from nasbot.evolution.units import decreased, increased, run_length
from tests.evolution.vocabularies import cell


def mlp(*units):
    return chain("mlp-reg", [Layer("relu", n) for n in units])


def units(arch):
    return tuple(layer.units for layer in arch.layers if layer.units is not None)


def outcomes(name, arch, n=400):
    rng = np.random.default_rng(0)
    return {units(MODIFIERS[name](arch, rng=rng)) for _ in range(n)}


@pytest.mark.parametrize(
    ("before", "less", "more"),
    [(64, 56, 72), (512, 448, 576), (8, 7, 9), (12, 10, 14), (11, 10, 12), (3, 2, 4), (2, 1, 3), (1000, 875, 1125)],
)
def test_an_eighth_rounded_and_at_least_one(before, less, more):
    assert (decreased(before), increased(before)) == (less, more)


def test_single_changes_each_layer_alone():
    arch = mlp(64, 128, 8)
    assert outcomes("dec_single", arch) == {(56, 128, 8), (64, 112, 8), (64, 128, 7)}
    assert outcomes("inc_single", arch) == {(72, 128, 8), (64, 144, 8), (64, 128, 9)}


def test_one_unit_is_not_decreased():
    assert outcomes("dec_single", mlp(1, 64)) == {(1, 56)}
    assert isinstance(MODIFIERS["dec_single"](mlp(1), rng=np.random.default_rng(0)), Rejected)


@pytest.mark.parametrize(
    ("n_layers", "length"),
    [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (8, 2), (9, 2), (16, 2), (17, 3), (24, 3), (40, 5), (56, 7)],
)
def test_how_many_layers_en_masse(n_layers, length):
    assert run_length(n_layers) == length


def test_en_masse_changes_neighbours_in_topological_order():
    expected = {
        (56, 56, 64, 64, 64),
        (64, 56, 56, 64, 64),
        (64, 64, 56, 56, 64),
        (64, 64, 64, 56, 56),
    }
    assert outcomes("dec_en_masse", mlp(*[64] * 5)) == expected
    changed = [tuple(n != 64 for n in after) for after in outcomes("inc_en_masse", mlp(*[64] * 20))]
    assert sorted(changed) == sorted(tuple(i <= j < i + 3 for j in range(20)) for i in range(18))


def test_en_masse_counts_only_layers_with_units():
    """Five of the eight layers have units, so a quarter of five are changed, the pool between them passed over."""
    convolutions = [Layer("conv3", 64), Layer("max-pool"), Layer("conv3", 64)]
    arch = chain("cnn", [*convolutions, Layer("conv5", 64), Layer("fc", 64), Layer("fc", 64)])
    rng = np.random.default_rng(0)
    assert (72, 72, 64, 64, 64) in {units(MODIFIERS["inc_en_masse"](arch, rng=rng)) for _ in range(100)}


@pytest.mark.parametrize("name", UNIT_MODIFIERS)
def test_only_units_change(name):
    rng = np.random.default_rng(0)
    arch = chain("cnn", [Layer("conv3", 64, 2), Layer("max-pool"), Layer("res5", 32), Layer("fc", 16)])
    for _ in range(50):
        changed = MODIFIERS[name](arch, rng=rng)
        assert changed.edges == arch.edges
        assert [(x.label, x.stride) for x in changed.layers] == [(x.label, x.stride) for x in arch.layers]


@pytest.mark.parametrize("name", UNIT_MODIFIERS)
def test_a_network_without_units_is_rejected_with_the_reason(name):
    rejected = MODIFIERS[name](cell("abcdea"), rng=np.random.default_rng(0))
    assert isinstance(rejected, Rejected)
    assert rejected.modifier == name
    assert str(rejected) == f"{name}: no layer has units to change"


def test_descriptions():
    rng = np.random.default_rng(0)
    assert MODIFIERS["inc_single"].edit(mlp(64), rng=rng).description == "layer 1 relu: 64 -> 72 units"
    edits = list(MODIFIERS["dec_en_masse"].edits(mlp(64, 64, 128)))
    assert [edit.description for edit in edits] == [
        "layers 1, 2: 64, 64 -> 56, 56 units",
        "layers 2, 3: 64, 128 -> 56, 112 units",
    ]

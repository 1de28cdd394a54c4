"""The modifiers of units by hand: the upper half of the appendix's table, and halve_units and double_units."""

import numpy as np
import pytest
from scipy.stats import chisquare

from nasbot.architecture import Layer, chain
from nasbot.evolution import DOUBLING_MODIFIERS, UNIT_MODIFIERS, Rejected
from nasbot.evolution.modifiers import modifiers_of
from nasbot.evolution.units import decreased, doubling_lengths, increased, run_length
from tests.evolution.vocabularies import cell

ALL = (*UNIT_MODIFIERS, *DOUBLING_MODIFIERS)
MODIFIERS = {modifier.name: modifier for modifier in modifiers_of(ALL)}


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


@pytest.mark.parametrize(
    ("n_layers", "lengths"),
    [(0, []), (1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (5, [1, 2, 3, 5]), (20, [1, 3, 5, 10, 20]), (8, [1, 2, 4, 8])],
)
def test_how_many_layers_leap_together(n_layers, lengths):
    assert doubling_lengths(n_layers) == lengths


def test_leaps_halve_or_double_runs_of_neighbours_of_each_length():
    expected = {(24, 8, 32), (48, 4, 32), (48, 8, 16), (24, 4, 32), (48, 4, 16), (24, 4, 16)}
    assert outcomes("halve_units", mlp(48, 8, 32)) == expected
    assert outcomes("double_units", mlp(24, 4)) == {(48, 4), (24, 8), (48, 8)}
    assert outcomes("halve_units", mlp(1, 9)) == {(1, 4)}
    listed = [units(edit.arch) for edit in MODIFIERS["halve_units"].edits(mlp(48, 8, 32))]
    assert len(listed) == len(expected)
    assert set(listed) == expected


def test_each_length_of_a_leap_is_as_likely_as_the_others():
    rng, arch = np.random.default_rng(0), mlp(*[64] * 8)
    doubled = [units(MODIFIERS["double_units"](arch, rng=rng)).count(128) for _ in range(2000)]
    assert chisquare([doubled.count(length) for length in (1, 2, 4, 8)]).pvalue > 0.01
    assert set(doubled) == {1, 2, 4, 8}


def test_en_masse_counts_only_layers_with_units():
    """Five of the eight layers have units, so a quarter of five are changed, the pool between them passed over."""
    convolutions = [Layer("conv3", 64), Layer("max-pool"), Layer("conv3", 64)]
    arch = chain("cnn", [*convolutions, Layer("conv5", 64), Layer("fc", 64), Layer("fc", 64)])
    rng = np.random.default_rng(0)
    assert (72, 72, 64, 64, 64) in {units(MODIFIERS["inc_en_masse"](arch, rng=rng)) for _ in range(100)}


@pytest.mark.parametrize("name", ALL)
def test_only_units_change(name):
    rng = np.random.default_rng(0)
    arch = chain("cnn", [Layer("conv3", 64, 2), Layer("max-pool"), Layer("res5", 32), Layer("fc", 16)])
    for _ in range(50):
        changed = MODIFIERS[name](arch, rng=rng)
        assert changed.edges == arch.edges
        assert [(x.label, x.stride) for x in changed.layers] == [(x.label, x.stride) for x in arch.layers]


@pytest.mark.parametrize("name", ALL)
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

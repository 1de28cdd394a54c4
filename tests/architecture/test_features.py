"""Features of networks: what they count, on which they do not depend, and a user's own."""

import math

import numpy as np
import pytest
from hypothesis import given

from nasbot.architecture import Architecture, Label, LabelPenalties, Layer, Role, Vocabulary, chain, vocabulary_of
from nasbot.architecture.features import FeatureMap
from nasbot.errors import OptionError
from nasbot.testing.strategies import architectures

ENDS = (Label(name="in", role=Role.INPUT), Label(name="out", role=Role.OUTPUT))


def small_cells(*, cuts=True, features=()):
    labels = (
        *ENDS,
        Label(name="a", fixed_mass=1.0, group="x"),
        Label(name="b", fixed_mass=1.0, group="y"),
        Label(name="zero", fixed_mass=1.0, group="z", cuts=cuts),
    )
    penalties = LabelPenalties.from_pairs(tuple(label.name for label in labels), {})
    return Vocabulary("small", labels, penalties, features=features)


def diamond(vocabulary, first, second, third):
    """in -> first -> third -> out and in -> second -> out."""
    layers = [Layer("in"), Layer(first), Layer(second), Layer(third), Layer("out")]
    return Architecture(vocabulary, layers, {(0, 1), (0, 2), (1, 3), (2, 4), (3, 4)})


def by_block(arch, **options):
    feature_map = FeatureMap(arch.vocabulary, **options)
    return dict(zip(feature_map.blocks, feature_map(arch), strict=True))


def test_a_chain_of_layers_with_units():
    found = by_block(chain("mlp-reg", [Layer("relu", 16), Layer("tanh", 64), Layer("relu", 32)]))
    depth, shortest, layers, first, last, least, largest, mean, decisions, skips = np.exp(found["shape"])
    assert (depth, shortest, layers) == pytest.approx((5, 5, 6))
    assert (first, last, least, largest, mean) == pytest.approx((16, 32, 16, 64, 112 / 3))
    assert (decisions, skips) == pytest.approx((1, 1))  # log(1 + 0) of skips
    shares = dict(
        zip(
            [x.name for x in vocabulary_of("mlp-reg").labels if x.role is Role.PROCESSING], found["labels"], strict=True
        )
    )
    assert {name: share for name, share in shares.items() if share} == pytest.approx({"relu": 2 / 3, "tanh": 1 / 3})


def test_costs_are_known_where_the_shape_of_samples_is():
    arch = chain("mlp-reg", [Layer("relu", 16)])
    assert by_block(arch)["size"] == pytest.approx([math.log1p(arch.total_mass)])
    _, parameters, flops = by_block(arch, input_shape=(9,))["size"]
    assert np.expm1([parameters, flops]) == pytest.approx([9 * 16 + 16 + 16 + 1, 2 * (9 * 16 + 16)])


def test_the_mass_is_a_size_where_layers_without_units_weigh_differently():
    assert "size" not in by_block(diamond(small_cells(), "a", "b", "a"))
    labels = (
        *ENDS,
        Label(name="a", fixed_mass=1.0),
        Label(name="b", fixed_mass=9.0),
        Label(name="zero", fixed_mass=1.0),
    )
    table = LabelPenalties.from_pairs(tuple(label.name for label in labels), {})
    arch = diamond(Vocabulary("weighty", labels, table), "a", "b", "a")
    assert by_block(arch)["size"] == pytest.approx([math.log1p(11 * 1.2)])  # the ends have a tenth each


def test_paths_of_a_cell_are_counted_for_each_set_of_groups():
    found = by_block(diamond(small_cells(), "a", "b", "a"))
    shortest, longest, number, fewest, most = found["shape"].reshape(5, -1)
    # The sets are {x}, {y}, {x, y}: a layer that cuts is in none.
    assert shortest == pytest.approx([2, 1, 1])
    assert longest == pytest.approx([2, 1, 2])
    assert number == pytest.approx(np.log1p([1, 1, 2]))
    assert fewest == pytest.approx([0, 0, 1])
    assert most == pytest.approx([2, 1, 2])
    assert found["labels"] == pytest.approx([2, 1])


def test_what_a_label_cuts_off_does_not_count():
    cut = by_block(diamond(small_cells(), "a", "b", "zero"))
    shortest, longest, number, fewest, most = cut["shape"].reshape(5, -1)
    assert cut["labels"] == pytest.approx([0, 1])
    assert number == pytest.approx(np.log1p([0, 1, 1]))
    assert shortest == pytest.approx([3, 1, 1])  # no path through {x}: longer than any could be
    assert longest == pytest.approx([0, 1, 1])
    assert (*fewest, *most) == pytest.approx((0, 1, 1, 0, 1, 1))
    whole = by_block(diamond(small_cells(cuts=False), "a", "b", "zero"))
    assert whole["labels"] == pytest.approx([1, 1, 1])


def test_a_cell_through_which_nothing_comes_has_features_too():
    found = by_block(diamond(small_cells(), "zero", "zero", "a"))
    assert found["labels"] == pytest.approx([0, 0])
    assert np.all(np.isfinite(found["shape"]))


@given(architectures())
def test_features_are_finite_and_do_not_depend_on_how_layers_are_numbered(arch):
    found, relabelled = by_block(arch), by_block(arch.canonical())
    assert tuple(found) == ("size", "shape", "labels")
    for block, numbers in found.items():
        assert np.all(np.isfinite(numbers)), block
        assert relabelled[block] == pytest.approx(numbers), block


def depth_twice(arch):
    return [2.0 * len(arch.layers), -1.0]


def test_a_vocabulary_may_have_features_of_its_own():
    found = by_block(diamond(small_cells(features=(depth_twice, lambda arch: 7)), "a", "b", "a"))
    assert found["own"] == pytest.approx([10.0, -1.0, 7.0])


@pytest.mark.parametrize("said", [math.nan, "tall", None])
def test_a_feature_that_is_no_number_is_refused(said):
    arch = diamond(small_cells(features=(lambda arch: said,)), "a", "b", "a")
    with pytest.raises(OptionError, match=r"vocabulary small: feature .* must give finite numbers, got .* for network"):
        by_block(arch)

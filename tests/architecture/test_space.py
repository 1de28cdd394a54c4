"""The search space: each limit on both sides of its bound, messages, and the quick answer against the long one."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nasbot.architecture import CNN, Architecture, Label, LabelPenalties, Layer, Role, Signal, Vocabulary
from nasbot.architecture.blocks import blocked_cnn, chain, residual_cnn, vgg_like
from nasbot.architecture.pools import initial_pool
from nasbot.architecture.resources import resources
from nasbot.architecture.space import SearchSpace
from nasbot.errors import OptionError, OutsideSpaceError, VocabularyError
from nasbot.testing.networks import random_architecture
from nasbot.testing.strategies import architectures

KINDS = ("mlp-reg", "mlp-class", "cnn")
SHAPES = {"mlp-reg": (9,), "mlp-class": (9,), "cnn": (3, 32, 32)}


def mlp(*units):
    return chain("mlp-reg", [Layer("relu", n) for n in units])


def fan(width):
    """Input, ``width`` layers side by side, one decision layer: the degrees of both ends of the fan are ``width``."""
    layers = [Layer("ip"), *[Layer("relu", 8)] * width, Layer("linear"), Layer("op")]
    middle = range(1, width + 1)
    edges = [(0, u) for u in middle] + [(u, width + 1) for u in middle] + [(width + 1, width + 2)]
    return Architecture("mlp-reg", layers, edges)


def rules(space, arch):
    return [(violation.rule, violation.layer) for violation in space.violations(arch)]


# -- the paper's limits ------------------------------------------------------------------------------------------------


def test_defaults_are_those_of_appendix_b3():
    space = SearchSpace("cnn")
    limits = (space.max_layers, space.max_mass, space.max_in_degree, space.max_out_degree, space.max_edges)
    assert limits == (60, 1e8, 5, 5, 200)
    assert (space.min_units, space.max_units) == (8, 1024)


@pytest.mark.parametrize("kind", KINDS)
def test_every_pool_network_is_inside(kind):
    for space in (SearchSpace(kind), SearchSpace(kind, input_shape=SHAPES[kind], n_outputs=10)):
        for arch in initial_pool(kind):
            assert space.violations(arch) == []
            assert arch in space


@pytest.mark.parametrize(
    ("at_the_limit", "beyond", "options", "rule", "layer", "message"),
    [
        (
            mlp(*[8] * 57), mlp(*[8] * 58), {}, "max_layers", None,
            "the network has 61 layers, expected at most 60 (1 too many)",
        ),
        (
            mlp(8, 8), mlp(8), {"min_layers": 5}, "min_layers", None,
            "the network has 4 layers, expected at least 5 (1 too few)",
        ),
        (
            mlp(8, 8), mlp(8, 8, 8, 8), {"max_edges": 4}, "max_edges", None,
            "the network has 6 edges, expected at most 4 (2 too many)",
        ),
        (
            mlp(9, 8), mlp(9, 5), {}, "min_units", 2,
            "layer 2 (relu) has 5 units, expected at least 8 (3 too few)",
        ),
        (
            mlp(9, 1024), mlp(9, 2048), {}, "max_units", 2,
            "layer 2 (relu) has 2,048 units, expected at most 1,024 (1,024 too many)",
        ),
        (
            fan(3), fan(5), {"max_in_degree": 3}, "max_in_degree", 6,
            "layer 6 (linear) has 5 parents, expected at most 3 (2 too many)",
        ),
        (
            fan(3), fan(4), {"max_out_degree": 3}, "max_out_degree", 0,
            "layer 0 (ip) has 4 children, expected at most 3 (1 too many)",
        ),
        (
            # 10 + 10 * 20 = 210 of processing, and 0.3 of that for the ends
            mlp(10, 20), mlp(10, 21), {"max_mass": 273.0}, "max_mass", 2,
            "the network has mass 286, expected at most 273 (13 too much; layer 2 (relu) has 210 of it)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "_" in value else "",
)  # fmt: skip
def test_each_limit_includes_its_bound(at_the_limit, beyond, options, rule, layer, message):
    space = SearchSpace("mlp-reg", **options)
    assert at_the_limit in space
    assert space.violations(at_the_limit) == []
    space.check(at_the_limit)
    (violation,) = space.violations(beyond)
    assert (violation.rule, violation.layer, violation.message) == (rule, layer, message)
    assert beyond not in space
    with pytest.raises(OutsideSpaceError) as caught:
        space.check(beyond)
    assert caught.value.violations == (violation,)
    assert caught.value.layer == layer
    assert message in str(caught.value)


def test_every_layer_at_fault_is_named():
    assert rules(SearchSpace("mlp-reg", max_layers=5), mlp(4, 9, 2000)) == [
        ("max_layers", None), ("min_units", 1), ("max_units", 3)
    ]  # fmt: skip


def test_fan_of_six_breaks_both_degrees():
    assert rules(SearchSpace("mlp-reg"), fan(5)) == []
    assert rules(SearchSpace("mlp-reg"), fan(6)) == [("max_out_degree", 0), ("max_in_degree", 7)]


def test_rules_are_names_of_fields():
    tiny = {"min_layers": 8, "max_layers": 8, "max_edges": 1, "max_mass": 1e-3, "max_in_degree": 1, "max_out_degree": 1}
    data = {"input_shape": (9,), "max_parameters": 1, "max_flops": 1, "max_memory": 1}
    found = {
        rule for arch in (fan(6), mlp(8), mlp(7)) for rule, _ in rules(SearchSpace("mlp-reg", **tiny, **data), arch)
    }
    fields = {field.name for field in dataclasses.fields(SearchSpace)}
    assert found == {"min_units", *tiny, "max_parameters", "max_flops", "max_memory"}
    assert found <= fields


# -- limits that need the data -----------------------------------------------------------------------------------------


def test_resource_limits_include_their_bound_and_name_the_costliest_layer():
    arch = blocked_cnn(3, 2)
    cost = resources(arch, (3, 32, 32), 10)
    totals = {
        "max_parameters": cost.parameters,
        "max_flops": cost.flops,
        "max_memory": cost.memory_bytes(50),
    }
    data = {"input_shape": (3, 32, 32), "n_outputs": 10, "batch_size": 50}
    for field, total in totals.items():
        assert arch in SearchSpace("cnn", **data, **{field: total})
        space = SearchSpace("cnn", **data, **{field: total - 1})
        assert arch not in space
        (violation,) = space.violations(arch)
        assert violation.rule == field
        assert f"needs {total:,} " in violation.message
        assert f"expected at most {total - 1:,} (1 too many; layer {violation.layer} (" in violation.message
    parts = [part.parameters for part in cost.layers]
    (violation,) = SearchSpace("cnn", **data, max_parameters=1).violations(arch)
    assert parts[violation.layer] == max(parts)
    assert f"needs {max(parts):,} of them" in violation.message


def test_memory_grows_with_the_batch():
    arch = residual_cnn(2, 1)
    limit = resources(arch, (3, 16, 16)).memory_bytes(64)
    assert arch in SearchSpace("cnn", input_shape=(3, 16, 16), max_memory=limit, batch_size=64)
    assert arch not in SearchSpace("cnn", input_shape=(3, 16, 16), max_memory=limit, batch_size=65)


@pytest.mark.parametrize(
    ("shape", "layers_at_fault"),
    [
        ((3, 32, 32), []),
        ((3, 17, 17), []),  # 17 -> 9 -> 5 -> 3 -> 2 -> 1
        ((3, 16, 16), [12]),
        ((3, 1, 16), [12]),  # one side has pixels left until then
        ((3, 8, 8), [10, 12]),
        ((3, 1, 1), [3, 6, 8, 10, 12]),
    ],
)
def test_a_pool_on_a_single_pixel_is_outside(shape, layers_at_fault):
    arch, space = vgg_like(1), SearchSpace("cnn", input_shape=shape, may_shrink_pixels=False)
    assert rules(space, arch) == [("may_shrink_pixels", u) for u in layers_at_fault]
    assert (arch in space) == (not layers_at_fault)
    assert arch in SearchSpace("cnn", input_shape=shape)


def test_why_pixels_may_be_shrunk_by_default():
    """The reason given in the code: the paper's tenth CNN does it on images of CIFAR-10."""
    space = SearchSpace("cnn", input_shape=(3, 32, 32), may_shrink_pixels=False)
    assert [arch in space for arch in initial_pool("cnn")] == [True] * 9 + [False]
    digits = SearchSpace("cnn", input_shape=(1, 8, 8), may_shrink_pixels=False)
    assert not any(arch in digits for arch in initial_pool("cnn"))


def test_a_stride_on_a_single_pixel_is_outside():
    arch = chain("cnn", [Layer("conv3", 8, 2), Layer("res3", 8, 2), Layer("conv3", 8, 1)])
    (violation,) = SearchSpace("cnn", input_shape=(1, 2, 2), may_shrink_pixels=False).violations(arch)
    assert (violation.rule, violation.layer) == ("may_shrink_pixels", 2)
    assert "layer 2 (res3) shrinks an image that is one pixel already, of an input of side 2" in violation.message


# -- the quick answer is the long one ----------------------------------------------------------------------------------


@st.composite
def spaces(draw, kind):
    """Limits near what networks of 4 to 16 layers have, so that both answers are common."""
    limits = {
        "max_layers": st.integers(5, 20),
        "min_layers": st.integers(3, 5),
        "max_edges": st.integers(3, 30),
        "max_mass": st.sampled_from([1e3, 1e4, 1e5, 1e6, 1e8, math.inf]),
        "max_in_degree": st.integers(1, 5),
        "max_out_degree": st.integers(1, 5),
        "min_units": st.integers(1, 64),
        "max_units": st.integers(64, 1024),
    }
    data = {"max_parameters": st.integers(10**4, 10**8), "max_flops": st.integers(10**5, 10**10)}
    chosen = {name: draw(limit) for name, limit in limits.items() if draw(st.integers(0, 3)) == 0}
    if draw(st.booleans()):
        chosen["input_shape"] = draw(st.sampled_from([(3, 32, 32), (1, 5, 5)])) if kind == "cnn" else (9,)
        chosen["may_shrink_pixels"] = draw(st.booleans())
        chosen |= {name: draw(limit) for name, limit in data.items() if draw(st.booleans())}
    return SearchSpace(kind, **chosen)


@given(st.data(), st.sampled_from(KINDS))
def test_in_agrees_with_violations(data, kind):
    arch, space = data.draw(architectures(kind)), data.draw(spaces(kind))
    assert (arch in space) == (space.violations(arch) == [])


@given(architectures(max_layers=20))
def test_mass_is_judged_exactly_at_its_bound(arch):
    """The quick sum must not decide what only the exact one can."""
    assume(arch.total_mass > 0)
    for limit in (arch.total_mass, np.nextafter(arch.total_mass, 0), np.nextafter(arch.total_mass, np.inf)):
        space = SearchSpace(arch.kind, max_mass=float(limit), min_units=1)
        assert (arch in space) == (arch.total_mass <= limit)


@given(architectures(max_layers=20), st.floats(0.5, 2))
def test_mass_is_judged_rightly_around_its_bound(arch, factor):
    assume(arch.total_mass > 0)
    space = SearchSpace(arch.kind, max_mass=arch.total_mass * factor, min_units=1)
    assert (arch in space) == (factor >= 1)


def test_most_random_networks_of_the_strategies_are_inside():
    """The generator promises the limits of Appendix B.3; if it drifts away, one of the two is wrong."""
    rng = np.random.default_rng(3)
    for kind in KINDS:
        for n_layers in (8, 30, 60):
            arch = random_architecture(kind, rng=rng, n_layers=n_layers)
            assert SearchSpace(kind).violations(arch) == []


# -- vocabularies ------------------------------------------------------------------------------------------------------


def cell_vocabulary(**fields):
    labels = (
        Label(name="in", role=Role.INPUT, emits=Signal.IMAGE),
        Label(name="conv", takes=Signal.IMAGE, emits=Signal.IMAGE, fixed_mass=9.0),
        Label(name="out", role=Role.OUTPUT, takes=Signal.IMAGE),
    )
    table = LabelPenalties.from_pairs([label.name for label in labels], {})
    return Vocabulary(**{"name": "cells", "labels": labels, "penalties": table, **fields})


def test_own_vocabulary_with_fixed_masses_and_no_decision_layers():
    cells = cell_vocabulary()
    arch = chain(cells, [Layer("conv")] * 3)  # 3 * 9, and 0.2 of it for the two ends
    assert arch.total_mass == pytest.approx(32.4)
    assert arch in SearchSpace(cells, max_mass=32.5)
    assert arch not in SearchSpace(cells, max_mass=32.3)
    assert SearchSpace(cells).kind is cells
    assert SearchSpace(cells).vocabulary is cells


@pytest.mark.parametrize("ask", [SearchSpace.__contains__, SearchSpace.violations, SearchSpace.check])
def test_a_network_of_another_vocabulary(ask):
    with pytest.raises(VocabularyError, match="the space is of kind 'cnn', the network of kind 'mlp-reg'"):
        ask(SearchSpace("cnn"), mlp(8))
    arch = chain(cell_vocabulary(), [Layer("conv")])
    other = cell_vocabulary(rules=(lambda arch: (),))
    with pytest.raises(VocabularyError, match="of kind 'cells', another one of the same name"):
        ask(SearchSpace(other), arch)
    ask(SearchSpace(cell_vocabulary()), arch)  # equal is enough


def test_what_is_no_network_is_not_inside():
    assert "mlp-reg" not in SearchSpace("mlp-reg")


# -- the space as a value ----------------------------------------------------------------------------------------------


def test_spaces_are_values():
    space = SearchSpace(CNN, max_layers=30, input_shape=[3, 32, 32])
    assert space == SearchSpace("cnn", max_layers=30, input_shape=(3, 32, 32))
    assert hash(space) == hash(SearchSpace("cnn", max_layers=30, input_shape=(3, 32, 32)))
    assert space != SearchSpace("cnn", max_layers=31, input_shape=(3, 32, 32))
    assert space.kind == "cnn"
    assert dataclasses.replace(space, max_layers=20).max_layers == 20
    assert dataclasses.replace(SearchSpace(cell_vocabulary()), max_layers=20).vocabulary == cell_vocabulary()
    with pytest.raises(dataclasses.FrozenInstanceError):
        space.max_layers = 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_units": 65, "max_units": 64}, r"min_units, max_units: expected min_units <= max_units, got 65 > 64"),
        ({"min_layers": 61}, "min_layers, max_layers: expected .* got 61 > 60"),
        ({"min_layers": 2}, "min_layers: expected a whole number >= 3, got 2"),
        ({"max_layers": 0}, "max_layers: expected a whole number >= 1, got 0"),
        ({"max_layers": 60.0}, "max_layers: .* got 60.0"),
        ({"max_edges": "200"}, "max_edges: .* got '200'"),
        ({"max_in_degree": True}, "max_in_degree: .* got True"),
        ({"max_out_degree": -5}, "max_out_degree: .* got -5"),
        ({"max_mass": 0}, r"max_mass: expected a number > 0 \(infinity: no limit\), got 0"),
        ({"max_mass": math.nan}, "max_mass: .* got nan"),
        ({"max_mass": None}, "max_mass: .* got None"),
        ({"batch_size": 0}, "batch_size: .* got 0"),
        ({"n_outputs": 0}, "n_outputs: .* got 0"),
        ({"max_parameters": 10**6}, "max_parameters: expected input_shape with it, .* got input_shape=None"),
        ({"max_flops": 1e9}, "max_flops: expected input_shape with it"),
        ({"max_memory": 1e9}, "max_memory: expected input_shape with it"),
        ({"max_memory": -1, "input_shape": (9,)}, "max_memory: expected a number > 0 .* got -1"),
        ({"input_shape": (3, 32, 32)}, r"input_shape: expected \(features,\) .* for mlp-reg, got \(3, 32, 32\)"),
        ({"input_shape": 9}, r"input_shape: expected \(features,\) .* got 9"),
        ({"may_shrink_pixels": False}, "may_shrink_pixels=False: expected input_shape with it"),
        ({"may_shrink_pixels": None}, "may_shrink_pixels: expected True or False, got None"),
    ],
)
def test_limits_that_cannot_be_meant(options, message):
    with pytest.raises(OptionError, match=message):
        SearchSpace("mlp-reg", **options)


def test_input_shape_of_images_for_cnns():
    with pytest.raises(OptionError, match=r"input_shape: expected \(channels, height, width\) .* for cnn, got \(9,\)"):
        SearchSpace("cnn", input_shape=(9,))


def test_unknown_kind():
    with pytest.raises(VocabularyError, match="unknown kind of network 'rnn'"):
        SearchSpace("rnn")


def test_copies_of_a_linear_model_lie_outside():
    """A search trained four parallel linear outputs as if they were another network than one."""
    space = SearchSpace("mlp-reg")

    def linear(n):
        layers = [Layer("ip"), *[Layer("linear")] * n, Layer("op")]
        return Architecture(
            "mlp-reg", layers, {(0, u) for u in range(1, n + 1)} | {(u, n + 1) for u in range(1, n + 1)}
        )

    assert linear(1) in space
    assert repr(linear(1)) == "<Architecture mlp-reg: linear model, 2 edges>"
    assert linear(4) not in space
    assert (
        str(space.violations(linear(4))[0])
        == "a linear model has one decision layer, got 4 copies of it [linear_model]"
    )


def test_a_search_from_a_linear_model_never_proposes_its_copies():
    from nasbot.evolution import mutate

    space = SearchSpace("mlp-reg", max_layers=6)
    linear = Architecture("mlp-reg", [Layer("ip"), Layer("linear"), Layer("op")], {(0, 1), (1, 2)})
    for seed in range(40):
        changed = mutate(linear, 3, space, rng=np.random.default_rng(seed))
        assert getattr(changed, "arch", linear) in space
        assert len(getattr(changed, "arch", linear).decision_layers) == 1 or changed.arch.processing_layers

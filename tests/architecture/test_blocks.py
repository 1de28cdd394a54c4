"""Builders: what they build, written out, and what they refuse."""

import itertools
from dataclasses import replace

import pytest

from nasbot.architecture import CNN, Label, LabelPenalties, Layer, Role, Vocabulary
from nasbot.architecture.blocks import blocked_cnn, blocked_mlp, chain, residual_cnn, vgg_like
from nasbot.errors import InvalidArchitectureError, OptionError


def shown(arch):
    return [str(layer) for layer in arch.layers]


def is_chain(arch):
    return arch.edges == {(u, u + 1) for u in range(len(arch.layers) - 1)}


def test_chain_adds_the_ends_and_the_decision_layer():
    arch = chain("mlp-class", [Layer("relu", 8), Layer("tanh", 16)])
    assert shown(arch) == ["ip", "relu 8", "tanh 16", "softmax", "op"]
    assert is_chain(arch)


def test_a_chain_printed():
    """No line ends in spaces: people paste these into files that are checked for it."""
    expected = [
        "<Architecture mlp-reg: 1 hidden layer, 3 edges>",
        "   0  ip",
        "   1  relu 8             <- 0",
        "   2  linear             <- 1",
        "   3  op                 <- 2",
    ]
    assert str(chain("mlp-reg", [Layer("relu", 8)])).splitlines() == expected


def test_chain_of_nothing_is_a_linear_model():
    assert shown(chain("mlp-reg", [])) == ["ip", "linear", "op"]


def two_decisions():
    labels = (*CNN.labels, Label(name="hinge", role=Role.DECISION))
    return Vocabulary("two", labels, LabelPenalties.from_pairs([label.name for label in labels], {}))


def test_chain_takes_the_first_decision_label_or_the_one_named():
    assert shown(chain(two_decisions(), [Layer("conv3", 8)]))[-2] == "softmax"
    assert shown(chain(two_decisions(), [Layer("conv3", 8), Layer("fc", 8)], decision="hinge"))[-2] == "hinge"


def test_chain_without_decision_labels():
    labels = (Label(name="in", role=Role.INPUT), Label(name="a"), Label(name="out", role=Role.OUTPUT))
    cells = Vocabulary("cells", labels, LabelPenalties.from_pairs(["in", "a", "out"], {}))
    assert shown(chain(cells, [Layer("a"), Layer("a")])) == ["in", "a", "a", "out"]


def test_blocked_mlp_by_default():
    expected = ["ip", *["relu 64"] * 2, *["logistic 128"] * 2, *["elu 256"] * 2, *["tanh 512"] * 2, *["crelu 512"] * 2]
    arch = blocked_mlp("mlp-reg", 5, 2)
    assert shown(arch) == [*expected, "linear", "op"]
    assert is_chain(arch)


def test_blocked_mlp_as_told():
    arch = blocked_mlp("mlp-class", 2, 3, labels=["softplus", "relu"], units=(9, 1000))
    assert shown(arch) == ["ip", *["softplus 9"] * 3, *["relu 1000"] * 3, "softmax", "op"]


def test_vgg_like():
    blocks = [*["conv3 128"] * 3, "max-pool", *["conv3 256"] * 3, "max-pool", *["conv3 512"] * 3, "max-pool"]
    stem = ["ip", "conv3 64", "conv3 64", "max-pool", "conv3 128", "conv3 128", "max-pool"]
    arch = vgg_like(3)
    assert shown(arch) == [*stem, *blocks, "fc 128", "fc 256", "fc 512", "softmax", "op"]
    assert is_chain(arch)


@pytest.mark.parametrize(("build", "label"), [(blocked_cnn, "conv3"), (residual_cnn, "res3")])
def test_cnns_in_blocks(build, label):
    expected = ["ip", "conv7 64", "max-pool", f"{label} 64 /2", f"{label} 64", f"{label} 128 /2", f"{label} 128"]
    arch = build(2, 2)
    assert shown(arch) == [*expected, "avg-pool", "fc 256", "softmax", "op"]
    assert is_chain(arch)


def test_units_stop_doubling_at_512_so_that_fc_stays_within_1024():
    assert shown(blocked_cnn(6, 1))[3:] == [
        "conv3 64 /2", "conv3 128 /2", "conv3 256 /2", *["conv3 512 /2"] * 3, "avg-pool", "fc 1024", "softmax", "op"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: blocked_mlp("mlp-reg", 0, 2), "n_blocks: expected a whole number from 1 to 1000, got 0"),
        (lambda: blocked_mlp("mlp-reg", 2, 1.5), "layers_per_block: .* got 1.5"),
        (lambda: blocked_mlp("mlp-reg", True, 2), "n_blocks: .* got True"),
        (lambda: blocked_mlp("mlp-reg", 100, 100), r"n_blocks \(100\) \* layers_per_block \(100\) makes 10000 layers"),
        (lambda: blocked_mlp("mlp-reg", 10**18, 1), "n_blocks: .* got 1000000000000000000"),
        (lambda: blocked_mlp("mlp-reg", 3, 1, labels=["relu"]), "labels: .* each of the 3 blocks, got 1"),
        (lambda: blocked_mlp("mlp-reg", 4, 1, labels="relu"), "labels: .* got 'relu'"),
        (lambda: blocked_mlp("mlp-reg", 2, 1, units=64), "units: .* got 64"),
        (lambda: vgg_like(-1), "convolutions_per_block: .* got -1"),
        (lambda: blocked_cnn(3, 0), "layers_per_block: .* got 0"),
        (lambda: residual_cnn("3", 1), "n_blocks: .* got '3'"),
        (lambda: chain("mlp-reg", ["relu"]), r"layers\[0\]: expected a Layer, got str 'relu'"),
        (lambda: chain("mlp-reg", [Layer("relu", 8), Layer("linear")]), r"layers\[1\] \(linear\): .* decision label"),
        (lambda: chain("mlp-reg", itertools.repeat(Layer("relu", 8))), "at most 1000 layers, got more"),
        (lambda: chain("mlp-reg", [], decision="softmax"), r"decision label of mlp-reg \(linear\), got 'softmax'"),
    ],
)
def test_arguments_that_cannot_be_meant(build, message):
    with pytest.raises(OptionError, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: blocked_mlp("mlp-reg", 1, 1, labels=["gelu"]), "layer 1: unknown label 'gelu'"),
        (lambda: blocked_mlp("mlp-reg", 1, 1, units=[0]), r"layer 1 \(relu\) needs units.* got 0"),
        (lambda: chain("cnn", []), "may not follow the input"),
        (
            lambda: chain(replace(CNN, name="x"), [Layer("conv3", 8), Layer("fc", 8), Layer("conv3", 8)]),
            "emits a vector",
        ),
    ],
)
def test_what_the_network_itself_refuses(build, message):
    with pytest.raises(InvalidArchitectureError, match=message):
        build()

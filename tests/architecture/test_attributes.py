"""Dropout, normalisation and weight decay as part of a layer's label."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nasbot.architecture import Architecture, Attributes, Label, Layer, SearchSpace, chain, resources
from nasbot.errors import CodecError, InvalidArchitectureError
from nasbot.testing.networks import random_architecture, relabelled, with_random_attributes

KINDS = ("mlp-reg", "mlp-class+", "cnn")
# Of networks without attributes, from before there were any.
FINGERPRINTS = {
    "mlp-reg": ["3ef2a49fa816d980", "9668c9736a4dadb2", "fb2dab310a0661b9", "906f2fca104c3e70"],
    "mlp-class+": ["8596ae260b24948d", "c099ae4d7b522573", "446a0ec18925f39c", "198b142227706f56"],
    "cnn": ["c3b12aaacd7c142a", "460611cc2639d4f3", "6cdf16563565e30c", "4e7436c6f6ca90c8"],
}


def networks(kind, n=4):
    return [random_architecture(kind, rng=np.random.default_rng([i, 5]), n_layers=6 + 3 * i) for i in range(n)]


def mlp(**own):
    return chain("mlp-reg", [Layer("relu", 16, **own), Layer("tanh", 8)])


@pytest.mark.parametrize("kind", KINDS)
def test_without_attributes_everything_is_as_it_was(kind):
    for arch, fingerprint in zip(networks(kind), FINGERPRINTS[kind], strict=True):
        assert arch.fingerprint.startswith(fingerprint)
        assert all(layer.attributes is None for layer in arch.layers)
        assert json.loads(arch.to_json())["version"] == 1
        assert {key for layer in arch.to_dict()["layers"] for key in layer} == {"label", "units", "stride"}
    assert repr(Layer("relu", 3)) == "Layer(label='relu', units=3, stride=None)"


def test_what_the_label_has_anyway_is_not_an_attribute():
    assert mlp(dropout=0.0, norm="none", decay_factor=1) == mlp()
    assert mlp(dropout=0, norm="none", decay_factor=1).layers[1].attributes is None
    cnn = chain("cnn", [Layer("conv3", 8, 1, norm="batch"), Layer("fc", 8)])
    assert cnn.layers[1].attributes is None
    assert chain("cnn", [Layer("conv3", 8, 1, norm="none"), Layer("fc", 8)]) != cnn


@pytest.mark.parametrize("own", [{"dropout": 0.1}, {"norm": "layer"}, {"norm": "batch"}, {"decay_factor": 2}])
def test_each_makes_another_network(own):
    plain, other = mlp(), mlp(**own)
    assert other != plain
    assert other.fingerprint != plain.fingerprint
    assert hash(other) != hash(plain)
    assert other == mlp(**own)
    assert other.with_units({1: 24}).layers[1].attributes == other.layers[1].attributes
    assert replace(other.layers[1], units=4).attributes == other.layers[1].attributes
    assert other in SearchSpace("mlp-reg")


@pytest.mark.parametrize("kind", KINDS)
def test_numbering_does_not_matter(kind):
    rng = np.random.default_rng(3)
    for arch in networks(kind, 6):
        own = with_random_attributes(arch, rng=rng)
        renumbered = relabelled(own, rng=rng)
        assert own == renumbered
        assert own.fingerprint == renumbered.fingerprint == own.canonical().fingerprint
        assert own.canonical().layers == renumbered.canonical().layers


def test_twins_that_differ_in_an_attribute_are_told_apart():
    """Two equal branches: whichever has the dropout, the network is the same; where both have it, it is another."""

    def forked(first, second):
        layers = [Layer("ip"), Layer("relu", 8, dropout=first), Layer("relu", 8, dropout=second)]
        edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]
        return Architecture("mlp-reg", [*layers, Layer("linear"), Layer("op")], edges)

    assert forked(0.1, None) == forked(None, 0.1)
    assert forked(0.1, None).fingerprint == forked(None, 0.1).fingerprint
    assert len({forked(0.1, None), forked(0.1, 0.1), forked(None, None), forked(0.1, 0.2)}) == 4


def test_json_and_its_versions():
    arch = mlp(dropout=0.25, norm="layer", decay_factor=0.5)
    record = json.loads(arch.to_json())
    assert record["version"] == 2
    assert record["layers"][1] == {
        "label": "relu", "units": 16, "stride": None, "dropout": 0.25, "norm": "layer", "decay_factor": 0.5,
    }  # fmt: skip
    assert Architecture.from_json(arch.to_json()) == arch
    assert Architecture.from_dict(arch.to_dict()).layers == arch.layers
    with pytest.raises(CodecError, match=r"^layer 1: dropout is of version 2 of the network format, got 1$"):
        Architecture.from_json(json.dumps({**record, "version": 1}))
    with pytest.raises(CodecError, match="version 3 of the network format is unknown; this nasbot reads 1 and 2"):
        Architecture.from_json(json.dumps({**record, "version": 3}))


@pytest.mark.parametrize("kind", KINDS)
def test_json_round_trip(kind):
    rng = np.random.default_rng(8)
    for arch in networks(kind, 5):
        own = with_random_attributes(arch, rng=rng)
        assert Architecture.from_json(own.to_json()).layers == own.layers


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dropout": "much"}, r"layer 1 \(relu\): dropout must be a number, got 'much'"),
        ({"dropout": True}, r"layer 1 \(relu\): dropout must be a number, got True"),
        ({"norm": "group"}, r"layer 1 \(relu\): norm must be one of none, batch, layer, got 'group'"),
        ({"norm": ["batch"]}, r"layer 1 \(relu\): norm must be one of"),
        ({"rate": 1}, "layer 1: unknown key 'rate'; known: label, units, stride, dropout, norm, decay_factor"),
    ],
)
def test_json_is_read_strictly(change, message):
    record = mlp().to_dict()
    record["layers"][1] |= change
    with pytest.raises(CodecError, match=message):
        Architecture.from_dict(record)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Layer("relu", 8, dropout=1.0), r"layer 1 \(relu\): dropout must be at least 0 and below 1, got 1.0"),
        (Layer("relu", 8, dropout=float("nan")), "dropout must be at least 0 and below 1, got nan"),
        (Layer("relu", 8, norm="group"), "norm must be none, batch or layer, got 'group'"),
        (Layer("relu", 8, decay_factor=0), "decay_factor must lie from 1/1024 to 1024, got 0"),
    ],
)
def test_values_that_cannot_be(layer, message):
    with pytest.raises(InvalidArchitectureError, match=message):
        chain("mlp-reg", [layer])


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Layer("max-pool", norm="batch"), r"\(max-pool\) takes no norm, got 'batch'"),
        (Layer("max-pool", decay_factor=2), r"\(max-pool\) has no weights to decay, got 2"),
        (Layer("conv3", 8, 1, norm="layer"), r"\(conv3\): layer normalisation is for layers of vectors"),
    ],
)
def test_layers_that_cannot_have_it(layer, message):
    with pytest.raises(InvalidArchitectureError, match=message):
        chain("cnn", [Layer("conv3", 8, 1), layer, Layer("fc", 8)])


def test_input_and_decision_layers():
    edges = [(0, 1), (1, 2), (2, 3)]
    for first, last, message in (
        (Layer("ip", dropout=0.1), Layer("linear"), r"layer 0 \(ip\) takes no dropout"),
        (Layer("ip"), Layer("linear", norm="batch"), r"layer 2 \(linear\) takes no norm"),
    ):
        with pytest.raises(InvalidArchitectureError, match=message):
            Architecture("mlp-reg", [first, Layer("relu", 8), last, Layer("op")], edges)
    decayed = Architecture(
        "mlp-reg", [Layer("ip"), Layer("relu", 8), Layer("linear", decay_factor=4), Layer("op")], edges
    )
    assert decayed.layers[2].attributes == Attributes(decay_factor=4)


def test_words():
    assert str(Layer("relu", 16, dropout=0.1, norm="layer", decay_factor=0.5)) == (
        "relu 16 [dropout 0.1, layer norm, decay x0.5]"
    )
    assert str(Layer("conv3", 8, 2, norm="none")) == "conv3 8 /2 [no norm]"


def test_normalisation_is_counted():
    plain, batch, layer = (resources(mlp(norm=norm), (5,)).parameters for norm in ("none", "batch", "layer"))
    assert batch == layer == plain + 2 * 16


def test_labels_with_attributes():
    label = Label(name="d", takes_units=True, activation="relu")
    assert label.with_attributes(Attributes(dropout=0.2)).dropout == 0.2
    assert label.with_attributes(Attributes(norm="layer")).norm == "layer"
    conv = Label(name="c", takes_units=True, kernel_size=3, takes="image", emits="image")
    assert (conv.norm, conv.with_attributes(Attributes(norm="none")).norm) == ("batch", "none")
    assert "layer_norm" not in repr(label)

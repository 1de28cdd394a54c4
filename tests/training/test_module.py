"""Modules against PyTorch written by hand, and what holds for every network."""

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from nasbot.architecture import Architecture, Label, LabelPenalties, Layer, Role, Signal, Vocabulary, initial_pool
from nasbot.architecture.activations import ACTIVATIONS
from nasbot.architecture.blocks import chain
from nasbot.architecture.resources import resources
from nasbot.errors import OptionError, VocabularyError
from nasbot.testing.networks import random_architecture
from nasbot.training.module import build

KINDS = ("mlp-reg", "mlp-class", "cnn")
SHAPES = {"mlp-reg": (7,), "mlp-class": (7,), "cnn": (3, 9, 9)}
N_OUTPUTS = {"mlp-reg": 2, "mlp-class": 3, "cnn": 4}


def network_of(arch, *, seed=0, input_shape=None, n_outputs=None):
    shape = input_shape or SHAPES[arch.kind]
    return build(arch, input_shape=shape, n_outputs=n_outputs or N_OUTPUTS[arch.kind], seed=seed)


def samples(arch, n=5, input_shape=None):
    shape = input_shape or SHAPES[arch.kind]
    return torch.from_numpy(np.random.default_rng(9).standard_normal((n, *shape), dtype=np.float32))


def mlp(*layers, edges=None, kind="mlp-reg"):
    decision = "linear" if kind == "mlp-reg" else "softmax"
    if edges is None:
        return chain(kind, layers)
    return Architecture(kind, (Layer("ip"), *layers, Layer(decision), Layer("op")), edges)


# -- parity with PyTorch by hand ---------------------------------------------------------------------------------------


def lin(w, u, x):
    return F.linear(x, w[f"layers.{u}.weight"], w[f"layers.{u}.bias"])


def norm(w, where, x):
    """Batch normalisation as in training: the batch's own mean and variance."""
    mean, var = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    scale, shift = w[f"{where}.weight"], w[f"{where}.bias"]
    return (x - mean) / torch.sqrt(var + 1e-5) * scale[:, None, None] + shift[:, None, None]


def conv(w, u, x, k, stride=1):
    y = F.conv2d(x, w[f"layers.{u}.conv.weight"], stride=stride, padding=k // 2)
    return torch.relu(norm(w, f"layers.{u}.norm", y))


def res(w, u, x, k, stride=1):
    y = F.conv2d(x, w[f"layers.{u}.convs.0.weight"], stride=stride, padding=k // 2)
    y = torch.relu(norm(w, f"layers.{u}.norms.0", y))
    y = norm(w, f"layers.{u}.norms.1", F.conv2d(y, w[f"layers.{u}.convs.1.weight"], padding=k // 2))
    short = F.avg_pool2d(x, stride, ceil_mode=True) if stride > 1 else x
    c = min(short.shape[1], y.shape[1])
    added = y.clone()
    added[:, :c] += short[:, :c]
    return torch.relu(added)


def log_p(logits):
    return logits - torch.log(torch.exp(logits).sum(1, keepdim=True))


def by_hand_wide_decisions(w, x):
    a = torch.tanh(lin(w, 1, x))
    b = torch.relu(lin(w, 2, a))
    c = F.elu(lin(w, 3, torch.cat([x, a], 1)))
    d = torch.sigmoid(lin(w, 4, torch.cat([b, c], 1)))
    return (lin(w, 5, d) + lin(w, 6, torch.cat([b, d], 1)) + lin(w, 7, c)) / 3


WIDE_DECISIONS = Architecture(
    "mlp-reg",
    [
        Layer("ip"),
        Layer("tanh", 8),
        Layer("relu", 9),
        Layer("elu", 10),
        Layer("logistic", 11),
        Layer("linear"),
        Layer("linear"),
        Layer("linear"),
        Layer("op"),
    ],
    [(0, 1), (1, 2), (1, 3), (0, 3), (2, 4), (3, 4), (4, 5), (2, 6), (4, 6), (3, 7), (5, 8), (6, 8), (7, 8)],
)
TWO_CLASSIFIERS = Architecture(
    "mlp-class",
    [Layer("ip"), Layer("crelu", 6), Layer("softplus", 5), Layer("softmax"), Layer("softmax"), Layer("op")],
    [(0, 1), (1, 2), (1, 3), (2, 4), (0, 2), (3, 5), (4, 5)],
)
BRANCHED_CNN = Architecture(
    "cnn",
    [
        Layer("ip"),
        Layer("conv3", 4, 1),
        Layer("conv5", 5, 1),
        Layer("max-pool"),
        Layer("avg-pool"),
        Layer("res5", 6, 2),
        Layer("fc", 7),
        Layer("softmax"),
        Layer("softmax"),
        Layer("op"),
    ],
    [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6), (4, 6), (6, 7), (5, 8), (6, 8), (7, 9), (8, 9)],
)


def by_hand_two_classifiers(w, x):
    z = lin(w, 1, x)
    a = torch.cat([z.clamp(min=0), (-z).clamp(min=0)], 1)
    b = torch.log1p(torch.exp(lin(w, 2, torch.cat([x, a], 1))))
    return torch.log((torch.softmax(lin(w, 3, a), 1) + torch.softmax(lin(w, 4, b), 1)) / 2)


def by_hand_branched_cnn(w, x):
    a, b = conv(w, 1, x, 3), conv(w, 2, x, 5)
    c = F.max_pool2d(torch.cat([a, b], 1), 2, ceil_mode=True)
    d = F.avg_pool2d(b, 2, ceil_mode=True)
    e = res(w, 5, torch.cat([c, d], 1), 5, 2)
    f = torch.relu(lin(w, 6, torch.cat([d.mean((2, 3)), e.mean((2, 3))], 1)))
    first, second = lin(w, 7, f), lin(w, 8, torch.cat([e.mean((2, 3)), f], 1))
    return torch.log((torch.softmax(first, 1) + torch.softmax(second, 1)) / 2)


def one_mlp_layer(label, function):
    def by_hand(w, x):
        return lin(w, 2, function(lin(w, 1, x)))

    return pytest.param(mlp(Layer(label, 8)), by_hand, id=label)


def one_cnn_layer(label, function, **layer):
    def by_hand(w, x):
        return log_p(lin(w, 2, function(w, 1, x).mean((2, 3))))

    stride = layer.get("stride", 1)
    return pytest.param(chain("cnn", [Layer(label, 6, stride)]), by_hand, id=f"{label}/{stride}")


def pooled(label, pool):
    def by_hand(w, x):
        return log_p(lin(w, 3, pool(conv(w, 1, x, 3), 2, ceil_mode=True).mean((2, 3))))

    return pytest.param(chain("cnn", [Layer("conv3", 5), Layer(label)]), by_hand, id=label)


BY_HAND = [
    one_mlp_layer("relu", torch.relu),
    one_mlp_layer("crelu", lambda z: torch.cat([z.clamp(min=0), (-z).clamp(min=0)], 1)),
    one_mlp_layer("leaky-relu", lambda z: torch.where(z > 0, z, 0.01 * z)),
    one_mlp_layer("softplus", lambda z: torch.log1p(torch.exp(z))),
    one_mlp_layer("elu", lambda z: torch.where(z > 0, z, torch.exp(z) - 1)),
    one_mlp_layer("logistic", lambda z: 1 / (1 + torch.exp(-z))),
    one_mlp_layer("tanh", torch.tanh),
    pytest.param(
        mlp(Layer("tanh", 8), kind="mlp-class"),
        lambda w, x: log_p(lin(w, 2, torch.tanh(lin(w, 1, x)))),
        id="softmax",
    ),
    *(one_cnn_layer(f"conv{k}", lambda w, u, x, k=k: conv(w, u, x, k)) for k in (3, 5, 7)),
    one_cnn_layer("conv3", lambda w, u, x: conv(w, u, x, 3, 2), stride=2),
    *(one_cnn_layer(f"res{k}", lambda w, u, x, k=k: res(w, u, x, k)) for k in (3, 5, 7)),
    one_cnn_layer("res3", lambda w, u, x: res(w, u, x, 3, 2), stride=2),
    pooled("max-pool", F.max_pool2d),
    pooled("avg-pool", F.avg_pool2d),
    pytest.param(
        chain("cnn", [Layer("conv3", 5), Layer("res3", 2), Layer("fc", 8), Layer("fc", 6)]),
        lambda w, x: log_p(
            lin(w, 5, torch.relu(lin(w, 4, torch.relu(lin(w, 3, res(w, 2, conv(w, 1, x, 3), 3).mean((2, 3)))))))
        ),
        id="fc, and a residual layer with fewer channels than enter",
    ),
    pytest.param(WIDE_DECISIONS, by_hand_wide_decisions, id="several parents and decision layers"),
    pytest.param(TWO_CLASSIFIERS, by_hand_two_classifiers, id="probabilities averaged"),
    pytest.param(BRANCHED_CNN, by_hand_branched_cnn, id="branches, pools, residuals and fc"),
]


@pytest.mark.parametrize(("arch", "by_hand"), BY_HAND)
def test_equals_pytorch_by_hand(arch, by_hand):
    """Outputs and gradients, in double precision, so that 1e-6 is a matter of the formula and not of rounding."""
    network = network_of(arch).double().train()
    x = samples(arch).double()
    weights = {name: p.detach().clone().requires_grad_() for name, p in network.named_parameters()}
    ours, theirs = network(x), by_hand(weights, x)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    for name, p in network.named_parameters():
        torch.testing.assert_close(p.grad, weights[name].grad, rtol=1e-6, atol=1e-6, msg=lambda m, name=name: name + m)


@pytest.mark.parametrize(("arch", "by_hand"), BY_HAND)
def test_single_precision_is_as_near_as_single_precision_can_be(arch, by_hand):
    network = network_of(arch).train()
    x = samples(arch)
    with torch.no_grad():
        torch.testing.assert_close(network(x), by_hand(network.state_dict(), x), rtol=1e-4, atol=1e-5)


# -- what holds for every network --------------------------------------------------------------------------------------


def random_networks(kind, n, *, start=0):
    for i in range(start, start + n):
        rng = np.random.default_rng([i, KINDS.index(kind)])
        small = random_architecture(kind, rng=rng, n_layers=int(rng.integers(4, 25)))
        yield small.with_units({u: max(8, layer.units // 16) for u, layer in enumerate(small.layers) if layer.units})


def check_gradients(arch):
    network = network_of(arch, seed=3).train()
    out = network(samples(arch, n=32))
    assert out.shape == (32, N_OUTPUTS[arch.kind])
    assert torch.isfinite(out).all()
    # The log-likelihood of one class, or the numbers: either way not a sum that is constant.
    (out[:, 0] * torch.linspace(1, 2, 32)).sum().backward()
    for name, p in network.named_parameters():
        assert p.grad is not None, f"{name} of {arch}: no gradient"
        assert torch.isfinite(p.grad).all(), f"{name} of {arch}: a gradient that is not finite"
        assert p.grad.abs().max() > 0, f"{name} of {arch}: gradient 0"
    wanted = resources(arch, SHAPES[arch.kind], N_OUTPUTS[arch.kind])
    assert sum(p.numel() for p in network.parameters()) == wanted.parameters


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_every_parameter(kind):
    for arch in random_networks(kind, 40):
        check_gradients(arch)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_every_parameter_of_500(kind):
    for arch in random_networks(kind, 500, start=100):
        check_gradients(arch)


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides_and_nothing_global_is_touched(kind):
    (arch,) = random_networks(kind, 1)
    torch.manual_seed(5)
    before = torch.random.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002  it must not be touched
    first, again, other = (network_of(arch, seed=seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()  # noqa: NPY002
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_these_weights_are_the_same_on_any_day():
    weight = network_of(mlp(Layer("relu", 4)), seed=12).layers["1"].weight
    assert weight[0, :3].tolist() == pytest.approx([-0.16798599, 0.05978435, 0.06506426])


@pytest.mark.parametrize("kind", KINDS)
def test_names_say_the_layer(kind):
    for arch in random_networks(kind, 5):
        for name, _ in network_of(arch).named_parameters():
            start, u, *_, end = name.split(".")
            assert start == "layers"
            assert arch.role(int(u)) in (Role.PROCESSING, Role.DECISION)
            assert end in ("weight", "bias")


@pytest.mark.parametrize("kind", ["mlp-class", "cnn"])
def test_classifiers_give_logarithms_of_probabilities_however_extreme(kind):
    for arch in random_networks(kind, 10):
        network = network_of(arch).eval()
        with torch.no_grad():
            for u in arch.decision_layers:
                network.layers[str(u)].weight.mul_(300)  # probabilities that underflow
            logs = network(samples(arch))
        assert torch.isfinite(logs).all()
        torch.testing.assert_close(logs.exp().sum(1), torch.ones(5))


@pytest.mark.parametrize("arch", initial_pool("mlp-reg"), ids=lambda arch: f"{len(arch.layers)} layers")
def test_sums_begin_with_the_spread_their_activation_likes(arch):
    network = network_of(arch).eval()
    sums = {}
    for u, part in network.layers.items():
        part.register_forward_hook(
            lambda part, args, out, u=int(u): sums.__setitem__(u, F.linear(args[0], part.weight, part.bias))
        )
    with torch.no_grad():
        network(samples(arch, n=200))
    for u in arch.processing_layers:
        spread = ACTIVATIONS[arch.layers[u].label].spread
        assert 0.5 * spread < float(sums[u].square().mean().sqrt()) < 2 * spread, f"layer {u} ({arch.layers[u]})"
        # and what tells samples apart has not been lost on the way
        assert float(sums[u].std(dim=0).mean()) > 0.15 * spread, f"layer {u} ({arch.layers[u]})"


def test_evaluation_uses_the_running_statistics_and_training_the_batch():
    arch = chain("cnn", [Layer("conv3", 4)])
    network = network_of(arch)
    x = samples(arch)
    with torch.no_grad():
        assert not torch.allclose(network.train()(x), network.eval()(x))
        for _ in range(300):
            network.train()(x)
        alike = copy.deepcopy(network).train()(x), network.eval()(x)
    torch.testing.assert_close(*alike, rtol=0.02, atol=0.02)  # unbiased variance there, biased here


@pytest.mark.parametrize("size", [1, 2, 3, 31])
def test_any_size_of_image_passes_any_number_of_halvings(size):
    arch = chain(
        "cnn", [Layer("conv7", 4, 2), Layer("max-pool"), Layer("res3", 8, 2), Layer("avg-pool"), Layer("fc", 8)]
    )
    shape = (1, size, size + 1)
    out = network_of(arch, input_shape=shape)(samples(arch, input_shape=shape))
    assert out.shape == (5, 4)


def test_one_layer_may_feed_the_output_directly_from_the_input():
    linear = Architecture("mlp-reg", [Layer("ip"), Layer("linear"), Layer("op")], [(0, 1), (1, 2)])
    network, x = network_of(linear), samples(linear)
    torch.testing.assert_close(network(x), lin(network.state_dict(), 1, x))


# -- labels of one's own -----------------------------------------------------------------------------------------------


def vocabulary(*labels, decision="softmax", images=False):
    signal = Signal.IMAGE if images else Signal.VECTOR
    ends = (
        Label(name="in", role=Role.INPUT, emits=signal),
        Label(name="out", role=Role.OUTPUT),
        Label(name="say", role=Role.DECISION, takes=Signal.ANY, activation=decision),
    )
    every = (*ends, *labels)
    return Vocabulary("own", every, LabelPenalties.from_pairs(tuple(label.name for label in every), {}))


def own(label, units=None, *, decision="softmax", input_shape=(7,), n_outputs=3):
    images = len(input_shape) == 3
    arch = chain(vocabulary(label, decision=decision, images=images), [Layer(label.name, units)])
    network = build(arch, input_shape=input_shape, n_outputs=n_outputs, seed=0)
    assert sum(p.numel() for p in network.parameters()) == resources(arch, input_shape, n_outputs).parameters
    return network


IMAGES = {"takes": Signal.IMAGE, "emits": Signal.IMAGE}


def test_dropout_and_batch_normalisation_are_options_of_a_label():
    network = own(Label(name="dense", takes_units=True, activation="relu", dropout=0.5, batch_norm=True), 200)
    x = torch.randn(64, 7, generator=torch.Generator().manual_seed(0))
    assert [name for name, _ in network.named_parameters()][:4] == [
        "layers.1.dense.weight",
        "layers.1.dense.bias",
        "layers.1.norm.weight",
        "layers.1.norm.bias",
    ]
    assert torch.equal(network.eval()(x), network.eval()(x))
    with torch.random.fork_rng():
        assert not torch.equal(network.train()(x), network.train()(x))


@pytest.mark.parametrize("activation", ["", "crelu", "tanh"])
def test_convolutions_of_ones_own_may_have_any_activation(activation):
    label = Label(
        name="c",
        takes_units=True,
        kernel_size=3,
        strides=(2,),
        activation=activation,
        width_factor=2 if activation == "crelu" else 1,
        dropout=0.1,
        batch_norm=False,
        **IMAGES,
    )
    network = own(label, 5, input_shape=(2, 6, 6))
    assert network(torch.ones(4, 2, 6, 6)).shape == (4, 3)


def test_dense_at_every_pixel_and_layers_that_pass_on():
    assert own(Label(name="p", takes_units=True, activation="elu", **IMAGES), 5, input_shape=(2, 6, 6)) is not None
    x = torch.ones(4, 2, 6, 6)
    network = own(Label(name="skip", **IMAGES), input_shape=(2, 6, 6), decision="")
    torch.testing.assert_close(network(x), lin(network.state_dict(), 2, x.mean((2, 3))))


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (Label(name="x", takes_units=True, activation="maxout"), "label x: unknown activation 'maxout'"),
        (Label(name="x", shrinks=2, **IMAGES), "label x: cannot be built; a layer without units"),
        (Label(name="x", activation="relu", **IMAGES), "label x: cannot be built"),
        (Label(name="x", kernel_size=4, **IMAGES), "label x: only odd kernel sizes"),
    ],
)
def test_labels_that_do_not_say_what_to_build_are_refused(label, message):
    shape = (2, 6, 6) if label.takes is Signal.IMAGE else (7,)
    with pytest.raises(VocabularyError, match=message):
        own(label, 4 if label.takes_units else None, input_shape=shape)


def test_a_network_must_say_what_it_predicts():
    with pytest.raises(
        VocabularyError, match=r"activation 'softmax' \(classification\) or '' \(regression\), got 'tanh'"
    ):
        own(Label(name="d", takes_units=True), 4, decision="tanh")


@pytest.mark.parametrize(
    ("shape", "n_outputs", "message"),
    [((7, 7), 1, "input_shape: expected"), ((7,), 0, "n_outputs: expected a whole number >= 1, got 0")],
)
def test_wrong_shapes_are_refused(shape, n_outputs, message):
    with pytest.raises(OptionError, match=message):
        build(mlp(Layer("relu", 4)), input_shape=shape, n_outputs=n_outputs, seed=0)

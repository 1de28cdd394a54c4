"""PyTorch models as layer graphs: what comes in, as what, and what is refused by which name."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nasbot
from nasbot import Architecture, Layer, OptionError, TraceError, VocabularyError
from nasbot.architecture import BUILT_IN
from nasbot.architecture.attributes import NORMS
from nasbot.architecture.blocks import chain
from nasbot.testing.networks import random_architecture
from nasbot.training.module import build
from tests.tracing.models import Bottleneck, DenseNetLike, InceptionLike, ResNet, narrow, vgg


class Model(nn.Module):
    """A forward as a function of the model, with whatever layers it names."""

    def __init__(self, forward, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self._function = forward

    def forward(self, x):
        return self._function(self, x)


def conv(entering, units, k=3, **options):
    return nn.Conv2d(entering, units, k, padding=k // 2, **options)


def cnn(*layers):
    return chain("cnn", [Layer(*layer) for layer in layers])


def mlp(*layers, kind="mlp-reg"):
    return chain(kind, [Layer(*layer) for layer in layers])


# -- the models of the issue -------------------------------------------------------------------------------------------


def test_resnet_18_is_eight_residual_layers():
    blocks = [("res3", u, s) for u, s in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))]
    assert nasbot.trace(ResNet()) == cnn(("conv7", 64, 2), ("max-pool",), *blocks)


def test_vgg_11_is_a_chain():
    pool = ("max-pool",)
    convolutions = [("conv3", 64), pool, ("conv3", 128), pool, *[("conv3", 256)] * 2, pool]
    convolutions += [*[("conv3", 512)] * 2, pool, *[("conv3", 512)] * 2, pool]
    dense = [Layer("fc", 4096, dropout=0.5)] * 2
    assert nasbot.trace(vgg(11)) == chain("cnn", [*(Layer(*layer) for layer in convolutions), *dense])


def test_a_densenet_is_concatenations():
    labels = ["ip", *["conv3"] * 5, "avg-pool", *["conv3"] * 3, "softmax", "op"]
    units = [None, 16, 12, 12, 12, 24, None, 12, 12, 12, None, None]
    edges = [(0, 1), *((u, v) for v in range(2, 6) for u in range(1, v)), (5, 6)]
    edges += [*((u, v) for v in range(7, 11) for u in range(6, v)), (10, 11)]
    dropout = [0.2 if n == 12 else None for n in units]
    layers = [Layer(x, n, dropout=share) for x, n, share in zip(labels, units, dropout, strict=True)]
    expected = Architecture("cnn", layers, edges)
    assert nasbot.trace(DenseNetLike(), torch.zeros(2, 3, 16, 16)) == expected


def test_an_inception_is_branches_side_by_side():
    layers = [Layer("ip"), Layer("conv7", 32, 2), Layer("max-pool")]
    layers += [Layer(f"conv{k}", 16) for k in (3, 5, 7)] * 2 + [Layer("softmax"), Layer("op")]
    edges = [(0, 1), (1, 2), *((2, v) for v in (3, 4, 5)), *((u, v) for u in (3, 4, 5) for v in (6, 7, 8))]
    edges += [*((u, 9) for u in (6, 7, 8)), (9, 10)]
    assert nasbot.trace(InceptionLike(), torch.zeros(2, 3, 32, 32)) == Architecture("cnn", layers, edges)


def test_vgg_11_is_nearer_to_vgg_13_than_to_resnet_18():
    vgg_11, vgg_13, resnet = vgg(11), vgg(13), ResNet()
    near, far = nasbot.distance(vgg_11, vgg_13), nasbot.distance(vgg_11, resnet)
    assert (near.d < far.d).all()
    assert (near.d_bar < far.d_bar).all()


def test_every_front_door_takes_models_and_networks_mixed():
    a, b = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), mlp(("relu", 16))
    traced = nasbot.trace(a)
    between = nasbot.distance(traced, b)
    for found in (nasbot.distance(a, b).d, nasbot.cross([a], [b]).d[:, 0, 0], nasbot.pairwise([a, b]).d[:, 0, 1]):
        np.testing.assert_array_equal(found, between.d)
    assert nasbot.explain(a, b, structural_weight=0.1).distance == pytest.approx(between.d[0])
    assert nasbot.Otmann(structural_weights=[0.1]).distance(a, b).d == pytest.approx(between.d[:1])


@pytest.mark.parametrize("wrong", ["a.json", None, 3, nn.Linear], ids=str)
def test_what_is_neither_is_refused_by_its_type(wrong):
    with pytest.raises(OptionError, match=r"expected an Architecture or a torch\.nn\.Module, got"):
        nasbot.distance(wrong, mlp(("relu", 16)))


def test_networks_of_different_kinds_are_still_not_compared():
    with pytest.raises(VocabularyError, match="one vocabulary"):
        nasbot.distance(nn.Sequential(nn.Linear(3, 1)), cnn(("conv3", 8)))


# -- MLPs --------------------------------------------------------------------------------------------------------------

ACTIVATIONS = {
    "relu": nn.ReLU(),
    "leaky-relu": nn.LeakyReLU(),
    "elu": nn.ELU(),
    "softplus": nn.Softplus(),
    "logistic": nn.Sigmoid(),
    "tanh": nn.Tanh(),
}
FUNCTIONS = {
    "relu": F.relu,
    "leaky-relu": F.leaky_relu,
    "elu": F.elu,
    "softplus": F.softplus,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
}


@pytest.mark.parametrize("label", ACTIVATIONS)
def test_the_activation_is_the_label_of_an_mlp_layer(label):
    as_module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), ACTIVATIONS[label], nn.Dropout(), nn.Linear(8, 2))
    as_function = Model(lambda m, x: m.b(FUNCTIONS[label](m.a(x))), a=nn.Linear(4, 8), b=nn.Linear(8, 2))
    assert nasbot.trace(as_function) == mlp((label, 8))
    assert nasbot.trace(as_module) == chain("mlp-reg", [Layer(label, 8, norm="batch", dropout=0.5)])


@pytest.mark.parametrize(
    "crelu",
    [
        lambda h: torch.cat([F.relu(h), F.relu(-h)], 1),
        lambda h: F.relu(torch.cat((h, -h), dim=-1)),
        lambda h: torch.cat([h, torch.neg(h)], dim=1).relu(),
    ],
)
def test_both_halves_of_a_crelu_are_one_layer(crelu):
    model = Model(lambda m, x: m.b(crelu(m.a(x))), a=nn.Linear(4, 8), b=nn.Linear(16, 1))
    assert nasbot.trace(model, torch.zeros(3, 4)) == mlp(("crelu", 8))


def test_what_ends_in_softmax_or_sigmoid_classifies():
    body = [nn.Flatten(), nn.Linear(4, 8), nn.Tanh()]
    expected = mlp(("tanh", 8), kind="mlp-class")
    for head in (
        [nn.Linear(8, 3), nn.Softmax(dim=1)],
        [nn.Linear(8, 3), nn.LogSoftmax(dim=1)],
        [nn.Linear(8, 1), nn.Sigmoid()],
    ):
        assert nasbot.trace(nn.Sequential(*body, *head)) == expected
    logits = nn.Sequential(*body, nn.Linear(8, 3))
    assert nasbot.trace(logits) == mlp(("tanh", 8))
    assert nasbot.trace(logits, kind="mlp-class") == expected


@pytest.mark.parametrize(
    "average",
    [
        lambda a, b: (a + b) / 2,
        lambda a, b: torch.stack([a, b]).mean(0),
        lambda a, b: 0.5 * sum([a, b]),
    ],
)
def test_averaged_heads_are_decision_layers(average):
    model = Model(
        lambda m, x: average(m.b(torch.tanh(m.a(x))), m.d(torch.relu(m.c(x)))),
        a=nn.Linear(4, 8),
        b=nn.Linear(8, 1),
        c=nn.Linear(4, 16),
        d=nn.Linear(16, 1),
    )
    layers = [Layer("ip"), Layer("tanh", 8), Layer("relu", 16), Layer("linear"), Layer("linear"), Layer("op")]
    expected = Architecture("mlp-reg", layers, [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)])
    assert nasbot.trace(model) == expected


def test_averaged_probabilities_classify():
    model = Model(
        lambda m, x: torch.logsumexp(torch.stack([F.log_softmax(h(x), 1) for h in (m.a, m.b)]), 0) - 0.69,
        a=nn.Linear(4, 3),
        b=nn.Linear(4, 3),
    )
    layers = [Layer("ip"), Layer("softmax"), Layer("softmax"), Layer("op")]
    assert nasbot.trace(model) == Architecture("mlp-class", layers, [(0, 1), (0, 2), (1, 3), (2, 3)])


# -- CNNs --------------------------------------------------------------------------------------------------------------


def headed(forward, **layers):
    """A model of the given middle, from an 8-channel convolution to a flatten and a linear layer."""
    return Model(
        lambda m, x: m.head(torch.flatten(F.adaptive_avg_pool2d(forward(m, m.stem(x)), 1), 1)),
        stem=conv(3, 8),
        head=nn.LazyLinear(10),
        **layers,
    )


STEM = ("conv3", 8)


@pytest.mark.parametrize(
    "shortcut",
    [
        lambda m, x: m.project(x),
        lambda m, x: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 4, 4)),
        lambda m, x: F.pad(F.avg_pool2d(x, 2), (0, 0, 0, 0, 0, 8)),
    ],
)
def test_shortcuts_that_change_the_shape_are_part_of_the_block(shortcut):
    model = headed(
        lambda m, x: F.relu(m.b(F.relu(m.a(x))) + shortcut(m, x)),
        a=conv(8, 16, stride=2),
        b=conv(16, 16),
        project=nn.Conv2d(8, 16, 1, stride=2),
    )
    assert nasbot.trace(model, torch.zeros(1, 3, 8, 8)) == cnn(STEM, ("res3", 16, 2))


def test_a_block_that_normalises_first_is_the_same_layer():
    model = headed(
        lambda m, x: torch.add(x, m.b(F.relu(m.n(m.a(F.relu(m.n(x))))))),
        a=conv(8, 8, 5),
        b=conv(8, 8, 5),
        n=nn.BatchNorm2d(8),
    )
    assert nasbot.trace(model) == cnn(STEM, ("res5", 8))


def test_a_residual_block_may_start_from_a_concatenation():
    def middle(m, x):
        both = torch.cat([x, m.c(x)], 1)
        return m.b(m.a(both).relu()) + both

    model = headed(middle, a=conv(16, 16), b=conv(16, 16), c=conv(8, 8))
    layers = [Layer("ip"), Layer("conv3", 8), Layer("conv3", 8), Layer("res3", 16), Layer("softmax"), Layer("op")]
    assert nasbot.trace(model) == Architecture("cnn", layers, [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5)])


def test_global_pooling_in_its_many_forms():
    head = nn.Linear(8, 10)
    for pooled in (
        lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1),
        lambda x: x.mean(dim=(-2, -1)),
        lambda x: F.avg_pool2d(x, 8).view(x.shape[0], -1),
        lambda x: torch.squeeze(F.adaptive_max_pool2d(x, (1, 1))),
    ):
        model = Model(lambda m, x, pooled=pooled: m.head(pooled(m.stem(x))), stem=conv(3, 8), head=head)
        assert nasbot.trace(model) == cnn(STEM)


def test_functions_with_parameters_are_layers_too():
    model = Model(
        lambda m, x: F.linear(F.conv2d(x, m.k, None, 2, 2).mean([2, 3]), m.w),
        k=nn.Parameter(torch.zeros(16, 3, 5, 5)),
        w=nn.Parameter(torch.zeros(10, 16)),
    )
    assert nasbot.trace(model, torch.zeros(1, 3, 8, 8)) == cnn(("conv5", 16, 2))


def test_inputs_may_be_scaled_and_heads_left_unused():
    model = headed(lambda m, x: (x - 0.5) / m.scale, auxiliary=nn.Linear(8, 3))
    model.register_buffer("scale", torch.ones(()))
    assert nasbot.trace(model) == cnn(STEM)


# -- approximation -----------------------------------------------------------------------------------------------------


def test_the_nearest_label_stands_in_when_asked():
    with pytest.raises(TraceError, match=r"1x1 16, 3x3 16, 1x1 64.*approximate=True"):
        nasbot.trace(ResNet((1, 1, 1, 1), block=Bottleneck))
    blocks = [("res3", 64, 1), ("res3", 128, 2), ("res3", 256, 2), ("res3", 512, 2)]
    expected = cnn(("conv7", 64, 2), ("max-pool",), *blocks)
    assert nasbot.trace(ResNet((1, 1, 1, 1), block=Bottleneck), approximate=True) == expected


def test_a_usual_inception_comes_in_approximately():
    arch = nasbot.trace(InceptionLike(reduce=True), approximate=True)
    assert [layer.label for layer in arch.layers].count("conv3") == 4
    assert arch.parents[-2] == (7, 8, 9, 10)


@pytest.mark.parametrize(
    ("layer", "label"),
    [(conv(8, 16, 11), "conv7"), (nn.Conv2d(8, 16, 4), "conv3"), (conv(8, 16, 5, groups=8), "conv5")],
)
def test_kernels_and_groups_are_approximated(layer, label):
    model = headed(lambda m, x: m.a(x), a=layer)
    with pytest.raises(TraceError, match=r"Conv2d 'a' .*approximate=True"):
        nasbot.trace(model)
    assert nasbot.trace(model, approximate=True) == cnn(STEM, (label, 16))


def test_other_activations_of_an_mlp_are_approximated():
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
    with pytest.raises(TraceError, match=r"GELU '1' is no activation of mlp-reg, which has relu.*approximate=True"):
        nasbot.trace(model, kind="mlp-reg")
    assert nasbot.trace(model, kind="mlp-reg", approximate=True) == mlp(("relu", 8))


# -- what only the extended vocabularies have --------------------------------------------------------------------------


def test_smooth_rectifiers_are_labels_of_the_extended_vocabularies():
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 9), nn.SiLU(), nn.Linear(9, 7), nn.Mish())
    expected = mlp(("gelu", 8), ("silu", 9), ("mish", 7), kind="mlp-reg+")
    assert nasbot.trace(nn.Sequential(*model, nn.Linear(7, 1))) == expected


def test_a_layer_norm_is_a_layer_behind_an_activation_and_an_attribute_before_one():
    parts = [nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Softmax(dim=1)]
    dense = Layer("relu", 8, norm="layer")
    assert nasbot.trace(nn.Sequential(*parts)) == chain("mlp-class+", [dense, Layer("layer-norm")])
    assert nasbot.trace(nn.Sequential(*parts), kind="mlp-class") == chain("mlp-class", [dense])


def test_dropout_is_an_attribute_of_what_it_follows():
    functional = Model(
        lambda m, x: m.b(F.dropout(F.dropout(F.relu(m.a(F.dropout(x, 0.3))), 0.5), p=0.2)),
        a=nn.Linear(4, 8),
        b=nn.Linear(8, 2),
    )
    (layer,) = (x for x in nasbot.trace(functional).layers if x.attributes)
    assert (layer.label, layer.attributes.dropout) == ("relu", pytest.approx(0.6))
    off = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 2), nn.Dropout(0.1))
    assert nasbot.trace(off) == mlp(("relu", 8)), "nothing is left out, and a decision layer has none"


@pytest.mark.parametrize("kind", ["mlp-reg", "mlp-class"])
def test_our_own_networks_come_back_with_their_attributes(kind):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        arch = narrow(random_architecture(kind, rng=rng, n_layers=8))
        own = [
            Layer(x.label, x.units, dropout=float(rng.choice([0.0, 0.25])), norm=str(rng.choice(NORMS)))
            if x.units
            else x
            for x in arch.layers
        ]
        given = Architecture(kind, own, arch.edges)
        assert nasbot.trace(build(given, input_shape=(5,), n_outputs=3, seed=seed), kind=kind) == given


@pytest.mark.parametrize("width", [8, 6])
def test_a_residual_dense_block_is_one_layer(width):
    def forward(m, x):
        h = torch.tanh(m.stem(x))
        return m.head((h if width == 8 else m.short(h)) + m.b(F.relu(m.a(m.norm(h)))))

    layers = {"stem": nn.Linear(4, 8), "norm": nn.LayerNorm(8), "a": nn.Linear(8, width), "b": nn.Linear(width, width)}
    model = Model(forward, **layers, short=nn.Linear(8, width), head=nn.Linear(width, 1))
    assert nasbot.trace(model) == mlp(("tanh", 8), ("res-dense", width), kind="mlp-reg+")
    with pytest.raises(TraceError, match=r"add 'add' adds|average of heads"):
        nasbot.trace(model, kind="mlp-reg")


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (lambda m, x: m.b(torch.tanh(m.a(m.norm(x)))) + x, "a res-dense layer has relu inside"),
        (lambda m, x: m.b(torch.relu(m.norm(x))) + x, "may only follow a Linear layer"),
    ],
)
def test_other_residual_blocks_are_refused(inside, message):
    model = Model(lambda m, x: m.b(inside(m, x)), a=nn.Linear(4, 4), b=nn.Linear(4, 4), norm=nn.LayerNorm(4))
    with pytest.raises(TraceError, match=message):
        nasbot.trace(model)


# -- what cannot be expressed, by name ---------------------------------------------------------------------------------


def two_linears(forward):
    return Model(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4))


REFUSED = {
    "LSTM 'rnn'": Model(lambda m, x: m.head(m.rnn(x)), rnn=nn.LSTM(4, 8), head=nn.Linear(8, 1)),
    "ConvTranspose2d 'up'": headed(lambda m, x: m.up(x), up=nn.ConvTranspose2d(8, 8, 2)),
    "MultiheadAttention 'at'": Model(lambda m, x: m.at(x, x, x), at=nn.MultiheadAttention(4, 2)),
    "mul 'mul'": headed(lambda m, x: x * torch.sigmoid(m.a(x)), a=conv(8, 8)),
    "getitem 'getitem'": headed(lambda m, x: x[:, :4]),
    "getitem 'getitem' cannot": headed(lambda m, x: x[:, 4:]),
    "Upsample 'up'": headed(lambda m, x: m.up(x), up=nn.Upsample(scale_factor=2)),
    "permute 'permute'": headed(lambda m, x: x.permute(0, 1, 3, 2)),
    "add 'add' adds Linear 'a' and input": two_linears(lambda m, x: m.b(torch.relu(m.a(x)) + x)),
    "Linear 'b' follows Linear 'a' without an activation": two_linears(lambda m, x: m.b(m.a(x))),
    "Linear 'b' takes the negative of": two_linears(lambda m, x: m.b(torch.relu(-m.a(x)))),
    "tanh 'tanh' follows relu of Linear 'a'": two_linears(lambda m, x: m.b(torch.tanh(torch.relu(m.a(x))))),
    "ends in tanh of Linear 'b'": two_linears(lambda m, x: torch.tanh(m.b(torch.relu(m.a(x))))),
    "takes a second input": nn.Bilinear(3, 4, 5),
    "returns tuple of 2": two_linears(lambda m, x: (m.a(x), m.b(x))),
    "ends in the output of Conv2d 'stem'": Model(lambda m, x: m.stem(x), stem=conv(3, 8)),
    "torch.fx cannot follow": two_linears(lambda m, x: m.a(x) if x.sum() > 0 else m.b(x)),
    "has stride 4": headed(lambda m, x: m.a(x), a=conv(8, 8, 7, stride=4)),
    "MaxPool2d 'p' has stride 1": headed(lambda m, x: m.p(x), p=nn.MaxPool2d(3, 1)),
    "Conv2d 'a' takes images": headed(lambda m, x: m.a(F.adaptive_avg_pool2d(x, 1)), a=conv(8, 8)),
    "cat 'cat' concatenates along dimension 2": headed(lambda m, x: torch.cat([x, x], 2)),
    "cat 'cat' concatenates Conv2d 'stem' twice": headed(lambda m, x: torch.cat([x, x], 1)),
    "from inside the residual block": headed(
        lambda m, x: torch.cat([m.b(h := m.a(x)) + x, h], 1), a=conv(8, 8), b=conv(8, 8)
    ),
    "adds Conv2d 'a' and Conv2d 'b'": headed(lambda m, x: m.a(x) + m.b(x), a=conv(8, 8), b=conv(8, 8)),
    "convolutions 3x3 8; a res layer has two": headed(lambda m, x: m.a(x) + x, a=conv(8, 8)),
    "is an activation of the input": Model(lambda m, x: m.a(torch.relu(x)), a=nn.Linear(3, 1)),
    "relu_ changes a tensor in place": headed(lambda m, x: (x.relu_(), x)[1]),
    "Conv1d 'c'": Model(lambda m, x: m.head(m.c(x)), c=nn.Conv1d(3, 8, 3), head=nn.Linear(8, 1)),
}


@pytest.mark.parametrize("named", REFUSED)
def test_what_cannot_be_expressed_is_named(named):
    with pytest.raises(TraceError) as caught:
        nasbot.trace(REFUSED[named])
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_graph_that_breaks_a_rule_names_rule_and_layer():
    model = Model(lambda m, x: m.head(m.p(x).mean([2, 3])), p=nn.MaxPool2d(2), head=nn.Linear(3, 10))
    with pytest.raises(TraceError, match=r"max-pool\) may not follow the input.*MaxPool2d 'p'"):
        nasbot.trace(model, kind="cnn")


def test_with_an_example_a_forward_may_look_at_shapes():
    def forward(m, x):
        if x.ndim == 4 and x.shape[1] == 3 and x.size(2) > 4:
            x = m.stem(x)
        return m.head(x.mean((2, 3)) if len(x.size()) == 4 else x)

    model = Model(forward, stem=conv(3, 8), head=nn.Linear(8, 10))
    assert nasbot.trace(model, torch.zeros(2, 3, 8, 8)) == cnn(STEM)
    with pytest.raises(TraceError, match="an example of its inputs may help"):
        nasbot.trace(model)


def test_a_model_is_traced_as_it_evaluates():
    """Some return their auxiliary heads too while they are trained."""
    model = two_linears(lambda m, x: (m.a(x), m.b(x)) if m.training else m.a(x))
    assert nasbot.trace(model) == mlp()
    assert model.training


@pytest.mark.parametrize("kind", BUILT_IN)
def test_what_we_build_comes_back(kind):
    shape = (3, 16, 16) if kind == "cnn" else (7,)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        arch = narrow(random_architecture(kind, rng=rng, n_layers=int(rng.integers(4, 30))))
        network = build(arch, input_shape=shape, n_outputs=3, seed=seed)
        assert nasbot.trace(network, kind=kind) == arch, f"{kind} {seed}"


def test_a_model_that_does_not_run_on_the_example_is_refused_and_left_as_it_was():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(), nn.Linear(9, 1))
    model[2].eval()
    with pytest.raises(TraceError, match="cannot follow the forward of Sequential: RuntimeError: mat1"):
        nasbot.trace(model, torch.zeros(2, 4))
    assert [module.training for module in model] == [True, True, False, True]


@pytest.mark.parametrize(("arguments", "message"), [(("x",), "model:"), ((nn.Linear(1, 1), None, "rnn"), "kind:")])
def test_wrong_arguments_are_named(arguments, message):
    model, *rest = arguments
    with pytest.raises(OptionError, match=message):
        nasbot.trace(model, kind=rest[1] if rest else None)

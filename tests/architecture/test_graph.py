"""Networks as values: every rule of validity with the message it gives, immutability, and equality."""

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from nasbot.architecture import BUILT_IN, Architecture, Label, LabelPenalties, Layer, Role, Signal, Vocabulary
from nasbot.architecture.layer import MAX_EDGES, MAX_LAYERS, MAX_UNITS
from nasbot.errors import InvalidArchitectureError, NasbotError, VocabularyError
from nasbot.testing.networks import random_architecture, relabelled
from nasbot.testing.strategies import architectures, generators
from tests.architecture.cells import cell_vocabulary

IP, OP, LINEAR, SOFTMAX = Layer("ip"), Layer("op"), Layer("linear"), Layer("softmax")
RELU, CONV, POOL, FC = Layer("relu", 8), Layer("conv3", 8), Layer("max-pool"), Layer("fc", 8)


def line(n: int) -> list[tuple[int, int]]:
    return [(u, u + 1) for u in range(n - 1)]


def chain(kind: str, *layers: Layer) -> Architecture:
    return Architecture(kind, layers, line(len(layers)))


def broken(*args: Any) -> InvalidArchitectureError:
    with pytest.raises(InvalidArchitectureError) as caught:
        Architecture(*args)
    assert caught.value.violations
    return caught.value


# -- what is valid -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "layers"),
    [
        ("mlp-reg", [IP, LINEAR, OP]),
        ("mlp-reg", [IP, RELU, LINEAR, OP]),
        ("mlp-class", [IP, Layer("crelu", 1), Layer("tanh", MAX_UNITS), SOFTMAX, OP]),
        ("cnn", [IP, CONV, SOFTMAX, OP]),
        ("cnn", [IP, Layer("res7", 8, 2), POOL, Layer("avg-pool", None, 2), FC, FC, SOFTMAX, OP]),
    ],
)
def test_valid_networks_of_each_vocabulary(kind: str, layers: list[Layer]) -> None:
    arch = chain(kind, *layers)
    assert arch.kind == kind
    assert arch.vocabulary is BUILT_IN[kind]
    assert [layer.label for layer in arch.layers] == [layer.label for layer in layers]
    assert arch.role(0) is Role.INPUT
    assert arch.role(len(layers) - 1) is Role.OUTPUT
    assert arch.decision_layers == (len(layers) - 2,)
    assert arch.processing_layers == tuple(range(1, len(layers) - 2))


def test_structure_is_read_off_the_edges() -> None:
    edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 5), (4, 5)]
    arch = Architecture("mlp-reg", [IP, RELU, RELU, LINEAR, LINEAR, OP], edges)
    assert arch.parents == ((), (0,), (0, 1), (1,), (2,), (3, 4))
    assert arch.children == ((1, 2), (2, 3), (4,), (5,), (5,), ())
    assert arch.decision_layers == (3, 4)
    assert arch.edges == frozenset(edges)


def test_strides_are_stored_in_one_way_only() -> None:
    """A stride left out of a convolution is 1, and one given for a pool says nothing new."""
    assert chain("cnn", IP, CONV, SOFTMAX, OP).layers[1] == Layer("conv3", 8, 1)
    assert chain("cnn", IP, CONV, Layer("max-pool", None, 2), SOFTMAX, OP).layers[2] == Layer("max-pool")
    assert chain("cnn", IP, CONV, SOFTMAX, OP) == chain("cnn", IP, Layer("conv3", 8, 1), SOFTMAX, OP)


def test_layers_in_any_order_are_sorted() -> None:
    arch = Architecture.in_any_order("mlp-reg", [OP, RELU, IP, LINEAR], [(2, 1), (1, 3), (3, 0)])
    assert arch == chain("mlp-reg", IP, RELU, LINEAR, OP)
    assert arch.layers[0] == IP


# -- every rule --------------------------------------------------------------------------------------------------------

MLP = [IP, RELU, LINEAR, OP]
RULES: dict[str, tuple[Any, Any, Any, str, int | None, str]] = {
    "too few layers": (
        "mlp-reg",
        [IP, OP],
        [(0, 1)],
        "layers",
        None,
        "at least 3 layers (input, one more, output), got 2",
    ),
    "no layers": ("mlp-reg", [], [], "layers", None, "at least 3 layers (input, one more, output), got 0"),
    "too many layers": ("mlp-reg", [RELU] * (MAX_LAYERS + 1), [], "layers", None, "at most 1000 layers, got 1001"),
    "too many edges": (
        "mlp-reg",
        MLP,
        [(u, v) for u in range(101) for v in range(101)],
        "edges",
        None,
        f"at most {MAX_EDGES} edges, got 10201",
    ),
    "unknown label": ("mlp-reg", [IP, Layer("conv3", 8), LINEAR, OP], line(4), "label", 1, "unknown label 'conv3'"),
    "units missing": ("mlp-reg", [IP, Layer("relu"), LINEAR, OP], line(4), "units", 1, "layer 1 (relu) needs units"),
    "units zero": ("mlp-reg", [IP, Layer("relu", 0), LINEAR, OP], line(4), "units", 1, "from 1 to 1000000, got 0"),
    "units huge": ("cnn", [IP, Layer("conv3", MAX_UNITS + 1), SOFTMAX, OP], line(4), "units", 1, "got 1000001"),
    "units float": ("mlp-reg", [IP, Layer("relu", 8.0), LINEAR, OP], line(4), "units", 1, "a whole number from 1"),  # type: ignore[arg-type]
    "units boolean": ("mlp-reg", [IP, Layer("relu", True), LINEAR, OP], line(4), "units", 1, "got True"),
    "units on a pool": (
        "cnn",
        [IP, CONV, Layer("max-pool", 8), SOFTMAX, OP],
        line(5),
        "units",
        2,
        "layer 2 (max-pool) takes no units, got 8",
    ),
    "units on the input": (
        "mlp-reg",
        [Layer("ip", 3), RELU, LINEAR, OP],
        line(4),
        "units",
        0,
        "(ip) takes no units, got 3",
    ),
    "units on a decision": (
        "mlp-reg",
        [IP, RELU, Layer("linear", 1), OP],
        line(4),
        "units",
        2,
        "(linear) takes no units",
    ),
    "stride of a convolution": (
        "cnn",
        [IP, Layer("conv5", 8, 3), SOFTMAX, OP],
        line(4),
        "stride",
        1,
        "stride 1 or 2, got 3",
    ),
    "stride of a pool": (
        "cnn",
        [IP, CONV, Layer("avg-pool", None, 1), SOFTMAX, OP],
        line(5),
        "stride",
        2,
        "layer 2 (avg-pool) has stride 2, got 1",
    ),
    "stride of an activation": (
        "mlp-reg",
        [IP, Layer("relu", 8, 2), LINEAR, OP],
        line(4),
        "stride",
        1,
        "stride 1, got 2",
    ),
    "edge beyond the layers": (
        "mlp-reg",
        MLP,
        [*line(4), (1, 4)],
        "edges",
        None,
        "edge (1, 4): layers are numbered 0 to 3",
    ),
    "negative edge": ("mlp-reg", MLP, [*line(4), (-1, 2)], "edges", None, "edge (-1, 2)"),
    "backward edge": (
        "mlp-reg",
        [IP, RELU, RELU, LINEAR, OP],
        [(0, 2), (2, 1), (1, 3), (3, 4)],
        "topological order",
        2,
        "backward: (2, 1); Architecture.in_any_order renumbers them",
    ),
    "cycle": (
        "mlp-reg",
        [IP, RELU, RELU, LINEAR, OP],
        [*line(5), (2, 1)],
        "acyclic",
        1,
        "must not have a cycle; layers on or behind one: 1, 2, 3, 4",
    ),
    "loop": ("mlp-reg", MLP, [*line(4), (1, 1)], "acyclic", 1, "layers on or behind one: 1, 2, 3"),
    "two inputs": ("mlp-reg", [IP, IP, LINEAR, OP], [(0, 2), (1, 2), (2, 3)], "one input", 0, "the input (ip)"),
    "no output": ("mlp-reg", [IP, RELU, LINEAR], line(3), "one output", 2, "the output (op) must be the last layer"),
    "output in the middle": ("mlp-reg", [IP, OP, LINEAR, OP], line(4), "one output", 3, "only one of its label"),
    "orphan": (
        "mlp-reg",
        [IP, RELU, RELU, LINEAR, OP],
        [(0, 1), (1, 3), (2, 3), (3, 4)],
        "connected",
        2,
        "layer 2 (relu) has no parents, so nothing from the input reaches it",
    ),
    "dead end": (
        "mlp-reg",
        [IP, RELU, RELU, LINEAR, OP],
        [(0, 1), (1, 2), (1, 3), (3, 4)],
        "connected",
        2,
        "layer 2 (relu) has no children, so nothing it computes reaches the output",
    ),
    "processing layer feeds the output": (
        "mlp-class",
        [IP, RELU, SOFTMAX, OP],
        [*line(4), (1, 3)],
        "decision layers",
        1,
        "layer 1 (relu) feeds the output; only decision layers (softmax) may",
    ),
    "decision layer feeds another": (
        "mlp-reg",
        [IP, LINEAR, RELU, LINEAR, OP],
        [*line(5), (1, 4)],
        "decision layers",
        1,
        "layer 1 (linear) is a decision layer and feeds only the output (4); it also feeds 2",
    ),
    "pool after the input": (
        "cnn",
        [IP, POOL, SOFTMAX, OP],
        line(4),
        "after the input",
        1,
        "layer 1 (max-pool) may not follow the input; expected one of conv3, conv5, conv7, res3, res5, res7",
    ),
    "fc after the input": ("cnn", [IP, FC, SOFTMAX, OP], line(4), "after the input", 1, "layer 1 (fc) may not follow"),
    "softmax after the input": (
        "cnn",
        [IP, CONV, SOFTMAX, OP],
        [*line(4), (0, 2)],
        "after the input",
        2,
        "layer 2 (softmax) may not follow the input",
    ),
    "image layer after fc": (
        "cnn",
        [IP, CONV, FC, Layer("res3", 8), SOFTMAX, OP],
        line(6),
        "images",
        3,
        "layer 3 (res3) takes images, but its parent 2 (fc) emits a vector",
    ),
    "pool after fc": (
        "cnn",
        [IP, CONV, FC, POOL, SOFTMAX, OP],
        line(6),
        "images",
        3,
        "layer 3 (max-pool) takes images",
    ),
    "two image sizes": (
        "cnn",
        [IP, CONV, POOL, CONV, SOFTMAX, OP],
        [*line(6), (1, 3)],
        "image size",
        3,
        "layer 3 (conv3) concatenates its parents, so their images must have one size; "
        "as parts of the input's size they are {1: 1/1, 2: 1/2}",
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_a_broken_rule_is_named_with_its_layer_and_values(case: str) -> None:
    kind, layers, edges, rule, layer, message = RULES[case]
    error = broken(kind, layers, edges)
    assert (error.violations[0].rule, error.layer) == (rule, layer)
    assert message in str(error)
    assert f"[{rule}]" in str(error)
    assert isinstance(error, NasbotError)
    assert isinstance(error, ValueError)


def test_all_violations_of_a_kind_are_listed_but_only_some_printed() -> None:
    error = broken("mlp-reg", [IP, *[Layer("relu")] * 10, LINEAR, OP], line(13))
    assert [violation.layer for violation in error.violations] == list(range(1, 11))
    assert str(error).endswith("; and 7 more")


def test_a_message_stays_short_however_much_is_wrong() -> None:
    n = 400
    backward = [(v, u) for u, v in line(n)]
    assert len(str(broken("mlp-reg", [IP] * n, line(n)))) < 1_000
    assert len(str(broken("mlp-reg", [RELU] * n, [*line(n), *backward]))) < 1_000
    assert len(str(broken("mlp-reg", [Layer("x" * 10_000)] * 3, line(3)))) < 1_000


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(VocabularyError, match="unknown kind of network 'rnn'"):
        Architecture("rnn", MLP, line(4))


# -- a vocabulary of one's own -----------------------------------------------------------------------------------------


def test_a_cell_space_needs_no_decision_layers_and_brings_its_own_masses() -> None:
    cells = cell_vocabulary()
    layers = [Layer("start"), Layer("conv-3x3"), Layer("skip-connect"), Layer("avg-pool-3x3"), Layer("end")]
    arch = Architecture(cells, layers, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (1, 4)])
    assert arch.kind == "nas-bench-201"
    assert arch.decision_layers == ()
    np.testing.assert_allclose(arch.masses, [0.95, 9, 0, 0.5, 0.95])
    assert arch.path_lengths.groups == ("all", "conv")
    assert Architecture.from_json(arch.to_json(), vocabulary=cells) == arch


def test_a_vocabulary_s_own_rule_is_kept() -> None:
    layers = [Layer("start"), *[Layer("conv-1x1")] * 7, Layer("end")]
    error = broken(cell_vocabulary(), layers, line(9))
    assert str(error) == "a cell has at most 6 operations, got 7 [cell size]"
    assert error.layer == 7


def test_a_rule_that_gives_no_violations_to_go_through_is_named() -> None:
    def is_small(arch: Architecture) -> bool:
        return len(arch.layers) < 9

    cells = dataclasses.replace(cell_vocabulary(), name="judged", rules=(is_small,))
    with pytest.raises(VocabularyError, match=r"vocabulary judged: rule is_small: expected violations, .* got bool"):
        Architecture(cells, [Layer("start"), Layer("conv-1x1"), Layer("end")], line(3))


def test_a_vocabulary_s_own_labels_are_checked_like_the_built_in_ones() -> None:
    layers = [Layer("start"), Layer("conv-1x1", 16), Layer("end")]
    assert "layer 1 (conv-1x1) takes no units, got 16" in str(broken(cell_vocabulary(), layers, line(3)))


@given(architectures(cell_vocabulary(), min_layers=3, max_layers=8))
def test_random_cells_are_valid_and_small(arch: Architecture) -> None:
    assert 1 <= len(arch.processing_layers) <= 6
    assert all(layer.units is None for layer in arch.layers)


# -- values ------------------------------------------------------------------------------------------------------------


def test_a_network_cannot_be_changed() -> None:
    arch = chain("mlp-reg", *MLP)
    for field in ("layers", "edges", "vocabulary"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(arch, field, ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        arch.layers[1].units = 9  # type: ignore[misc]
    assert isinstance(arch.edges, frozenset)
    assert isinstance(arch.layers, tuple)


def test_what_was_handed_in_may_change_afterwards() -> None:
    layers, edges = list(MLP), line(4)
    arch = Architecture("mlp-reg", layers, edges)
    layers[1] = Layer("tanh", 99)
    edges.clear()
    assert arch == chain("mlp-reg", *MLP)


@given(architectures(max_layers=24), generators())
def test_equal_up_to_numbering_means_equal_hash_and_fingerprint(arch: Architecture, rng: np.random.Generator) -> None:
    copy = relabelled(arch, rng=rng)
    assert copy == arch
    assert hash(copy) == hash(arch)
    assert copy.fingerprint == arch.fingerprint
    assert len({copy, arch}) == 1


def test_different_networks_differ() -> None:
    arch = chain("mlp-reg", IP, RELU, Layer("tanh", 16), LINEAR, OP)
    others = [
        chain("mlp-reg", IP, RELU, Layer("tanh", 17), LINEAR, OP),
        chain("mlp-reg", IP, RELU, Layer("logistic", 16), LINEAR, OP),
        chain("mlp-reg", IP, Layer("tanh", 16), RELU, LINEAR, OP),
        chain("mlp-class", IP, RELU, Layer("tanh", 16), SOFTMAX, OP),
        Architecture("mlp-reg", [IP, RELU, Layer("tanh", 16), LINEAR, OP], [*line(5), (0, 2)]),
        chain("mlp-reg", IP, RELU, LINEAR, OP),
    ]
    assert len({arch, *others}) == len(others) + 1
    assert len({x.fingerprint for x in (arch, *others)}) == len(others) + 1
    assert arch != "arch"
    strided = chain("cnn", IP, Layer("conv3", 8, 2), SOFTMAX, OP)
    assert strided != chain("cnn", IP, CONV, SOFTMAX, OP)


def test_one_kind_by_name_with_other_rules_is_another_network() -> None:
    one = Architecture(cell_vocabulary(), [Layer("start"), Layer("conv-1x1"), Layer("end")], line(3))
    same = Architecture(cell_vocabulary(), [Layer("start"), Layer("conv-1x1"), Layer("end")], line(3))
    without_rules = dataclasses.replace(cell_vocabulary(), rules=())
    assert one == same
    assert one != Architecture(without_rules, one.layers, one.edges)


def test_quantities_are_computed_once() -> None:
    arch = random_architecture("cnn", rng=np.random.default_rng(0), n_layers=20)
    assert arch.masses is arch.masses
    assert arch.path_lengths is arch.path_lengths
    assert arch.fingerprint is arch.fingerprint
    assert arch.total_mass == pytest.approx(arch.masses.sum())


def test_many_networks_share_what_they_have_in_common() -> None:
    one, other = (chain("mlp-reg", IP, *[Layer("relu", units)] * 20, LINEAR, OP) for units in (8, 9))
    assert one.parents == other.parents == ((), *((u,) for u in range(22)))
    assert all(a is b for a, b in zip(one.parents + one.children, other.parents + other.children, strict=True))
    assert sys.getsizeof(one.edges) == sys.getsizeof(frozenset(set(one.edges))) < sys.getsizeof(frozenset(line(23)))
    longest = chain("mlp-reg", IP, *[RELU] * (MAX_LAYERS - 3), LINEAR, OP)
    assert (longest.parents[-1], longest.children[-2]) == ((MAX_LAYERS - 2,), (MAX_LAYERS - 1,))


def test_how_networks_print() -> None:
    arch = chain("cnn", IP, Layer("conv3", 8, 2), Layer("res5", 16), SOFTMAX, OP)
    assert repr(arch) == "<Architecture cnn: 2 hidden layers, 4 edges>"
    assert str(arch).splitlines()[1:4] == ["   0  ip", "   1  conv3 8 /2         <- 0", "   2  res5 16            <- 1"]
    assert str(Layer("conv3", 8, 1)) == "conv3 8"


@pytest.mark.parametrize(
    ("layers", "edges", "said"),
    [
        (["ip", "relu", "op"], [(0, 1), (1, 2)], "layer 0 must be a Layer"),
        ([Layer("ip"), Layer(["relu"], 8), Layer("op")], [(0, 1), (1, 2)], "layer 1 must be a Layer whose label"),  # type: ignore[arg-type]
        ([Layer("ip"), Layer("linear"), Layer("op")], [(0, 1, 2)], r"pairs of layer numbers, got \(0, 1, 2\)"),
        ([Layer("ip"), Layer("linear"), Layer("op")], [0, 1], "pairs of layer numbers"),
        ([Layer("ip"), Layer("linear"), Layer("op")], [([0], [1])], "pairs of layer numbers"),
    ],
)
def test_things_that_are_no_layers_or_edges_are_refused(layers: list[Layer], edges: list[Any], said: str) -> None:
    for build in (Architecture, Architecture.in_any_order):
        with pytest.raises(InvalidArchitectureError, match=said):
            build("mlp-reg", layers, edges)


def test_a_layer_that_takes_vectors_is_not_fed_with_images() -> None:
    labels = (
        Label(name="in", role=Role.INPUT, emits=Signal.IMAGE),
        Label(name="out", role=Role.OUTPUT),
        Label(name="dense", takes_units=True),
        Label(name="pooled", takes_units=True, takes=Signal.ANY),
        Label(name="filter", takes_units=True, takes=Signal.IMAGE, emits=Signal.IMAGE),
    )
    vocabulary = Vocabulary("images", labels, LabelPenalties.from_pairs([x.name for x in labels], {}))
    edges = [(0, 1), (1, 2)]
    said = r"layer 1 \(dense\) takes vectors, but its parent 0 \(in\) emits images"
    with pytest.raises(InvalidArchitectureError, match=said):
        Architecture(vocabulary, [Layer("in"), Layer("dense", 8), Layer("out")], edges)
    for label in ("pooled", "filter"):  # the output itself takes whatever comes
        Architecture(vocabulary, [Layer("in"), Layer(label, 8), Layer("out")], edges)

"""Labels and vocabularies: what they refuse, and what the built-in ones say."""

import math

import pytest

from nasbot.architecture import BUILT_IN, Label, LabelPenalties, Role, Signal, Vocabulary, vocabulary_of
from nasbot.errors import NasbotError, VocabularyError

IP, OP = Label(name="in", role=Role.INPUT), Label(name="out", role=Role.OUTPUT)


def free_of_charge(*names: str) -> LabelPenalties:
    return LabelPenalties.from_pairs(names, {})


@pytest.mark.parametrize("name", ["", "x" * 41, "a\nb", "bell\a"])
def test_a_label_name_is_short_and_printable(name: str) -> None:
    with pytest.raises(VocabularyError, match="1 to 40 printable characters"):
        Label(name=name)


def test_a_label_name_of_forty_characters_is_still_fine() -> None:
    assert Label(name="x" * 40).name == "x" * 40


@pytest.mark.parametrize("fields", [{"strides": (1, 0)}, {"shrinks": 0}, {"strides": (-2,)}])
def test_strides_are_positive(fields: dict) -> None:
    with pytest.raises(VocabularyError, match=r"label pool: strides must be >= 1, got .*(0|-2)"):
        Label(name="pool", **fields)


@pytest.mark.parametrize("field", ["mass_factor", "fixed_mass"])
@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_masses_are_finite_and_not_negative(field: str, value: float) -> None:
    with pytest.raises(VocabularyError, match=rf"label x: {field} must be a finite number >= 0, got {value}"):
        Label(name="x", **{field: value})


def test_a_label_is_defined_once() -> None:
    with pytest.raises(VocabularyError, match="vocabulary v: label 'in' is defined twice"):
        Vocabulary("v", (IP, OP, IP), free_of_charge("in", "out"))


@pytest.mark.parametrize(
    ("labels", "role", "n"),
    [((OP,), "input", 0), ((IP,), "output", 0), ((IP, OP, Label(name="in2", role=Role.INPUT)), "input", 2)],
)
def test_there_is_one_input_and_one_output_label(labels: tuple[Label, ...], role: str, n: int) -> None:
    with pytest.raises(VocabularyError, match=f"vocabulary v: needs exactly one {role} label, got {n}"):
        Vocabulary("v", labels, free_of_charge(*(label.name for label in labels)))


def test_penalties_list_the_labels_in_their_order() -> None:
    with pytest.raises(VocabularyError, match="labels in, out; penalties out, in"):
        Vocabulary("v", (IP, OP), free_of_charge("out", "in"))


def test_an_unknown_label_is_named_beside_the_known_ones() -> None:
    with pytest.raises(VocabularyError, match="unknown label 'conv4' in vocabulary cnn; known: ip, op, conv3"):
        BUILT_IN["cnn"]["conv4"]


def test_an_unknown_kind_is_named_beside_the_known_ones() -> None:
    with pytest.raises(NasbotError, match="unknown kind of network 'rnn'; built in: mlp-reg, mlp-class, cnn"):
        vocabulary_of("rnn")
    own = Vocabulary("own", (IP, OP), free_of_charge("in", "out"))
    assert vocabulary_of(own) is own


@pytest.mark.parametrize(
    ("kind", "labels", "decision", "groups"),
    [
        ("mlp-reg", "relu crelu leaky-relu softplus elu logistic tanh", "linear", ("rectifier", "sigmoid")),
        ("mlp-class", "relu crelu leaky-relu softplus elu logistic tanh", "softmax", ("rectifier", "sigmoid")),
        ("cnn", "conv3 conv5 conv7 res3 res5 res7 max-pool avg-pool fc", "softmax", ("conv", "pool", "fc")),
    ],
)
def test_the_built_in_vocabularies(kind: str, labels: str, decision: str, groups: tuple[str, ...]) -> None:
    vocabulary = BUILT_IN[kind]
    processing = {label.name for label in vocabulary.labels if label.role is Role.PROCESSING}
    assert processing == set(labels.split())
    assert vocabulary.decision_labels == (decision,)
    assert (vocabulary.input_label, vocabulary.output_label) == ("ip", "op")
    assert vocabulary.groups == groups
    assert [vocabulary.labels[i].name for i in vocabulary.index.values()] == list(vocabulary.index)


def test_what_the_labels_of_a_cnn_take() -> None:
    cnn = BUILT_IN["cnn"]
    for k in (3, 5, 7):
        conv, res = cnn[f"conv{k}"], cnn[f"res{k}"]
        assert (conv.kernel_size, res.kernel_size) == (k, k)
        assert (conv.mass_factor, res.mass_factor) == (1, 2)
        for label in (conv, res):
            assert label.takes_units
            assert label.strides == (1, 2)
            assert (label.takes, label.emits) == (Signal.IMAGE, Signal.IMAGE)
            assert label.may_follow_input
            assert label.group == "conv"
    for pool in (cnn["max-pool"], cnn["avg-pool"]):
        assert (pool.takes_units, pool.strides, pool.shrinks, pool.group) == (False, (), 2, "pool")
        assert not pool.may_follow_input
    assert (cnn["fc"].mass_factor, cnn["fc"].takes, cnn["fc"].emits) == (0.1, Signal.ANY, Signal.VECTOR)


def test_vocabularies_compare_by_content_and_print_briefly() -> None:
    one, same = (Vocabulary("v", (IP, OP), free_of_charge("in", "out")) for _ in range(2))
    other = Vocabulary("v", (IP, OP), LabelPenalties.from_pairs(("in", "out"), {("in", "out"): 0.5}))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert repr(one) == "Vocabulary('v', 2 labels)"

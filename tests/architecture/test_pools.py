"""The initial pools against the facts about the authors' pools in shared/reference/initial_pools.json."""

import json
from dataclasses import replace

import pytest

from nasbot.architecture import CNN, MLP_CLASS, MLP_REG, Layer, SearchSpace
from nasbot.architecture.pools import initial_pool, pool_within
from nasbot.architecture.vocabularies import RECTIFIERS, SIGMOIDS
from nasbot.errors import OutsideSpaceError, VocabularyError
from nasbot.searchers import RandomSearch

MLPS = ("mlp-reg", "mlp-class")
KINDS = (*MLPS, "cnn")


@pytest.fixture(scope="module")
def facts(shared_dir):
    return json.loads((shared_dir / "reference" / "initial_pools.json").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_ten_different_networks_of_the_kind(kind):
    pool = initial_pool(kind)
    assert len(pool) == 10
    assert len({arch.fingerprint for arch in pool}) == 10
    assert {arch.kind for arch in pool} == {kind}


def test_cnns_are_the_authors(facts):
    for arch, fact in zip(initial_pool("cnn"), facts["cnn"], strict=True):
        expected = tuple(Layer(x["label"], x["units"] and int(x["units"]), x["stride"]) for x in fact["layers"])
        assert arch.layers == expected, fact["constructor"]
        assert arch.edges == {tuple(edge) for edge in fact["edges"]}, fact["constructor"]


@pytest.mark.parametrize("kind", MLPS)
def test_mlps_have_the_authors_shape_and_intended_units(kind, facts):
    for arch, fact in zip(initial_pool(kind), facts["mlp"], strict=True):
        assert [layer.units for layer in arch.layers] == fact["intended_units"], fact["constructor"]
        assert arch.edges == {tuple(edge) for edge in fact["edges"]}, fact["constructor"]


@pytest.mark.parametrize("kind", MLPS)
def test_mlp_labels_fill_the_authors_slots(kind, facts):
    """One label per slot, different slots of a kind different labels, rectifiers in R slots and sigmoids in S slots."""
    for arch, fact in zip(initial_pool(kind), facts["mlp"], strict=True):
        label_of = {}
        for layer, slot in zip(arch.layers, fact["label_pattern"], strict=True):
            assert label_of.setdefault(slot, layer.label) == layer.label, (fact["constructor"], slot)
        slots = {slot: label for slot, label in label_of.items() if slot[0] in "RS"}
        assert len(set(slots.values())) == len(slots), fact["constructor"]
        assert all(label in (RECTIFIERS if slot[0] == "R" else SIGMOIDS) for slot, label in slots.items())


def test_every_pair_of_first_labels_occurs_once():
    firsts = []
    for arch in initial_pool("mlp-reg"):
        labels = [layer.label for layer in arch.layers]
        firsts.append((labels[1], next(label for label in labels if label in SIGMOIDS)))
    assert len(set(firsts)) == len(RECTIFIERS) * len(SIGMOIDS) == 10


def test_regression_and_classification_differ_in_the_decision_layer_only():
    for reg, classify in zip(initial_pool("mlp-reg"), initial_pool("mlp-class"), strict=True):
        assert reg.layers[:-2] == classify.layers[:-2]
        assert (reg.layers[-2].label, classify.layers[-2].label) == ("linear", "softmax")


@pytest.mark.parametrize("vocabulary", [MLP_REG, MLP_CLASS, CNN], ids=lambda v: v.name)
def test_the_vocabulary_itself_serves_as_kind(vocabulary):
    assert initial_pool(vocabulary) == initial_pool(vocabulary.name)


def test_own_vocabulary_has_no_pool_even_under_a_built_in_name():
    for own in (replace(CNN, name="my-cells"), replace(CNN, rules=(lambda arch: (),))):
        with pytest.raises(VocabularyError, match=f"no built-in initial pool for .* '{own.name}'.*pass them"):
            initial_pool(own)


def test_unknown_kind():
    with pytest.raises(VocabularyError, match="unknown kind of network 'rnn'"):
        initial_pool("rnn")


@pytest.mark.parametrize("kind", ["mlp-class", "cnn"])
def test_a_small_space_has_a_pool_too(kind):
    """Limits of one's own used to be refused, because the paper's ten networks are wide and deep."""
    space = SearchSpace(kind, max_layers=6, max_units=40, min_units=4)
    pool = pool_within(space)
    assert len(pool) == len(set(pool)) >= 3
    assert all(arch in space for arch in pool)
    assert pool_within(SearchSpace(kind)) == initial_pool(kind)


def test_a_space_that_holds_nothing_still_says_why():
    with pytest.raises(OutsideSpaceError, match=r"pool network 0: .*max_parameters"):
        RandomSearch(space=SearchSpace("mlp-reg", input_shape=(50,), max_parameters=3))

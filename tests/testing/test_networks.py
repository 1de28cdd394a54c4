"""Random networks: inside the limits they promise, reproducible, varied, and of any vocabulary."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from nasbot.architecture import Architecture, Label, LabelPenalties, Role, Signal, Vocabulary
from nasbot.errors import OptionError, VocabularyError
from nasbot.testing.networks import random_architecture, relabelled, smallest_size
from nasbot.testing.strategies import architecture_tuples, architectures, generators, transport_problems
from tests.architecture.cells import cell_vocabulary

KINDS = ("mlp-reg", "mlp-class", "cnn")


def drawn(kind: str, n: int, n_layers: int) -> list[Architecture]:
    rng = np.random.default_rng([7, n_layers])
    return [random_architecture(kind, rng=rng, n_layers=n_layers) for _ in range(n)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_layers", [8, 16, 30, 60])
def test_random_networks_lie_in_the_search_space_of_the_appendix(kind: str, n_layers: int) -> None:
    for arch in drawn(kind, 30, n_layers):
        assert len(arch.layers) == n_layers
        assert len(arch.edges) <= 200
        assert max(map(len, arch.parents)) <= 5
        assert max(map(len, arch.children)) <= 5
        assert all(8 <= layer.units <= 1024 for layer in arch.layers if layer.units is not None)
        assert arch.total_mass <= 1e8


@pytest.mark.parametrize("kind", KINDS)
def test_random_networks_are_varied(kind: str) -> None:
    archs = drawn(kind, 60, 30)
    assert len(set(archs)) == 60
    labels = {layer.label for arch in archs for layer in arch.layers}
    assert labels == {label.name for label in archs[0].vocabulary.labels}
    assert {len(arch.decision_layers) for arch in archs} == {1, 2, 3}
    assert all(len(arch.edges) > 30 for arch in archs), "more edges than a chain: branches or skips"
    if kind == "cnn":
        strides = {layer.stride for arch in archs for layer in arch.layers}
        assert strides == {None, 1, 2}


def test_equal_generators_give_equal_networks() -> None:
    one, same = (random_architecture("cnn", rng=np.random.default_rng(5), n_layers=40) for _ in range(2))
    assert (one.layers, one.edges) == (same.layers, same.edges)


@pytest.mark.parametrize(("kind", "smallest"), [("mlp-reg", 3), ("mlp-class", 3), ("cnn", 4)])
def test_sizes_that_cannot_be_are_refused(kind: str, smallest: int) -> None:
    rng = np.random.default_rng(0)
    assert len(random_architecture(kind, rng=rng, n_layers=smallest).layers) == smallest
    for n_layers in (smallest - 1, 1001):
        with pytest.raises(OptionError, match=rf"{kind} has {smallest} to 1000 layers, got {n_layers}"):
            random_architecture(kind, rng=rng, n_layers=n_layers)


@given(architectures(max_layers=24), generators())
def test_another_numbering_is_another_numbering_of_the_same(arch: Architecture, rng: np.random.Generator) -> None:
    copy = relabelled(arch, rng=rng)
    assert sorted(map(str, copy.layers)) == sorted(map(str, arch.layers))
    assert len(copy.edges) == len(arch.edges)
    assert all(u < v for u, v in copy.edges)


def test_other_numberings_do_occur() -> None:
    rng = np.random.default_rng(0)
    arch = random_architecture("cnn", rng=rng, n_layers=30)
    assert len({relabelled(arch, rng=rng).edges for _ in range(10)}) > 5


# -- vocabularies of one's own -----------------------------------------------------------------------------------------


def test_the_rules_of_a_vocabulary_are_kept_by_drawing_again() -> None:
    cells, rng = cell_vocabulary(), np.random.default_rng(0)
    assert len(random_architecture(cells, rng=rng, n_layers=8).processing_layers) == 6
    with pytest.raises(VocabularyError, match="none of 200 random networks of 9 layers kept its rules"):
        random_architecture(cells, rng=rng, n_layers=9)


def image_vocabulary() -> Vocabulary:
    """Images that must be flattened before a decision can be taken, and strides of 3."""
    labels = (
        Label(name="in", role=Role.INPUT, emits=Signal.IMAGE),
        Label(name="out", role=Role.OUTPUT),
        Label(name="mix", takes_units=True, strides=(1, 3), takes=Signal.IMAGE, emits=Signal.IMAGE),
        Label(name="flat", takes=Signal.ANY, may_follow_input=False),
        Label(name="vote", role=Role.DECISION, takes=Signal.ANY, may_follow_input=False),
    )
    return Vocabulary("images", labels, LabelPenalties.from_pairs([label.name for label in labels], {}))


@given(architectures(image_vocabulary(), max_layers=20))
def test_any_vocabulary_of_images_gives_valid_networks(arch: Architecture) -> None:
    assert arch.kind == "images"
    assert smallest_size(arch.vocabulary) == 4


def test_a_vocabulary_in_which_nothing_fits_says_so() -> None:
    vectors_only = dataclasses.replace(image_vocabulary().labels[2], takes=Signal.VECTOR)
    labels = (*image_vocabulary().labels[:2], vectors_only, *image_vocabulary().labels[3:])
    vocabulary = dataclasses.replace(image_vocabulary(), labels=labels)
    with pytest.raises(VocabularyError, match=r"no label may stand behind layer 0 \(in\), which emits image"):
        random_architecture(vocabulary, rng=np.random.default_rng(0), n_layers=6)


# -- strategies --------------------------------------------------------------------------------------------------------

QUIET = settings(database=None, derandomize=True, max_examples=2000)
NOT_SHRUNK = settings(QUIET, phases=[Phase.generate])  # it is enough to see one


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "wanted",
    [
        lambda arch: any(len(parents) > 2 for parents in arch.parents),
        lambda arch: any(len(children) > 2 for children in arch.children),
        lambda arch: len(arch.decision_layers) > 1,
        lambda arch: any(layer.units is not None and layer.units < 8 for layer in arch.layers),
        lambda arch: len(arch.layers) == 16,
    ],
)
def test_strategies_reach_what_they_promise(kind: str, wanted) -> None:
    assert wanted(find(architectures(kind), wanted, settings=NOT_SHRUNK))


def test_failing_networks_shrink_to_short_chains() -> None:
    smallest = find(architectures("cnn"), lambda arch: len(arch.layers) >= 6, settings=QUIET)
    assert [str(layer) for layer in smallest.layers] == ["ip", "conv3 8", "conv3 8", "conv3 8", "softmax", "op"]
    assert smallest.edges == {(u, u + 1) for u in range(5)}


def test_tuples_hold_equal_networks_now_and_then() -> None:
    pair = find(architecture_tuples(2), lambda pair: pair[0] == pair[1] and pair[0] is not pair[1], settings=NOT_SHRUNK)
    assert pair[0].kind == pair[1].kind


@given(st.data())
def test_transport_problems_are_well_formed(data: st.DataObject) -> None:
    problem = data.draw(transport_problems(max_size=6))
    assert problem.cost.shape == (len(problem.mass_1), len(problem.mass_2))
    assert np.isfinite(problem.mass_1).all()
    assert (problem.mass_2 >= 0).all()
    assert (problem.cost >= 0).all()


def test_only_the_strategies_need_hypothesis() -> None:
    """The generator and the reference serve benchmarks and users who have no hypothesis."""
    code = "import sys, nasbot.testing.networks, nasbot.testing.reference; sys.exit('hypothesis' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

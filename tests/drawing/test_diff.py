"""What became of one network in another."""

import numpy as np
import pytest

from nasbot.architecture import Architecture, Layer, SearchSpace, initial_pool
from nasbot.drawing.diff import Change, network_diff
from nasbot.errors import VocabularyError
from nasbot.evolution import one_step_edits
from nasbot.testing.networks import random_architecture


def chain(*names):
    layers = [Layer(label, int(units[0]) if units else None) for label, *units in (name.split() for name in names)]
    return Architecture("mlp-reg", layers, [(i, i + 1) for i in range(len(layers) - 1)])


def of(diff, change):
    return [(entry.u, entry.v, entry.words) for entry in diff.layers if entry.change is change]


@pytest.mark.parametrize("kind", ["mlp-reg", "mlp-class", "cnn"])
def test_a_network_has_no_difference_to_itself(kind):
    for arch in initial_pool(kind):
        diff = network_diff(arch, arch)
        assert diff.n_edits == 0
        assert diff.match() == {u: u for u in range(len(arch.layers))}
        assert "no difference" in str(diff)


def test_a_layer_wedged_in():
    before = chain("ip", "relu 64", "tanh 32", "linear", "op")
    after = chain("ip", "relu 64", "elu 16", "tanh 32", "linear", "op")
    diff = network_diff(before, after)
    assert of(diff, Change.ADDED) == [(None, 2, str(Layer("elu", 16)))]
    assert of(diff, Change.REMOVED) == of(diff, Change.CHANGED) == []
    assert [(e.change, e.first, e.second) for e in diff.edges if e.change is not Change.KEPT] == [
        (Change.REMOVED, (1, 2), None),
        (Change.ADDED, None, (1, 2)),
        (Change.ADDED, None, (2, 3)),
    ]
    assert diff.n_edits == 4
    back = network_diff(after, before)
    assert of(back, Change.REMOVED) == [(2, None, str(Layer("elu", 16)))]
    assert back.n_edits == 4


def test_units_and_labels_that_changed():
    diff = network_diff(
        chain("ip", "relu 64", "tanh 32", "linear", "op"), chain("ip", "relu 80", "elu 32", "linear", "op")
    )
    assert [(u, v) for u, v, _ in of(diff, Change.CHANGED)] == [(1, 1), (2, 2)]
    assert diff.n_edits == 2
    assert "->" in str(diff)
    assert all(e.change is Change.KEPT for e in diff.edges)


def most_edits(modifier, before, after):
    """What a modifier does to a network: so many layers and edges at most, and a better diff may find fewer."""
    n_layers = len(before.layers)
    n_added = len(after.layers) - n_layers
    return {
        "inc_single": 1,
        "dec_single": 1,
        "swap_label": 1,
        "wedge_layer": 4,
        "skip": 2 * n_added + 1,  # perhaps through pools
        "dup_path": 2 * n_added + 1,
        "remove_layer": 6,
        "inc_en_masse": n_layers,
        "dec_en_masse": n_layers,
    }[modifier]


@pytest.mark.parametrize("kind", ["mlp-reg", "cnn"])
def test_one_step_is_a_small_difference(kind):
    arch = initial_pool(kind)[3]
    seen = set()
    edits = sorted(one_step_edits(arch, SearchSpace(kind)), key=lambda edit: edit.modifier)
    for edit in edits[:: len(edits) // 40]:
        diff = network_diff(arch, edit.arch)
        seen.add(edit.modifier)
        assert 1 <= diff.n_edits <= most_edits(edit.modifier, arch, edit.arch), (edit, str(diff))
    assert len(seen) >= 8


def test_everything_is_accounted_for():
    rng = np.random.default_rng(3)
    for kind in ("cnn", "mlp-class"):
        a, b = (random_architecture(kind, rng=rng, n_layers=n) for n in (14, 19))
        diff = network_diff(a, b)
        assert sorted(e.u for e in diff.layers if e.u is not None) == list(range(len(a.layers)))
        assert sorted(e.v for e in diff.layers if e.v is not None) == list(range(len(b.layers)))
        assert {e.first for e in diff.edges if e.first} == a.edges
        assert {e.second for e in diff.edges if e.second} == b.edges
        match = diff.match()
        assert all((match[e.first[0]], match[e.first[1]]) == e.second for e in diff.edges if e.change is Change.KEPT)
        assert (match[0], match[len(a.layers) - 1]) == (0, len(b.layers) - 1)


def test_networks_of_two_kinds_are_refused():
    with pytest.raises(VocabularyError):
        network_diff(initial_pool("cnn")[0], initial_pool("mlp-reg")[0])

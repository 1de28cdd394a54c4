"""The rules of a layer graph against themselves said plainly, and the quick hash against the fingerprint."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from nasbot.architecture import (
    Architecture,
    Label,
    LabelPenalties,
    Layer,
    Role,
    Signal,
    Vocabulary,
    chain,
    vocabulary_of,
)
from nasbot.architecture.layer import MAX_UNITS
from nasbot.errors import InvalidArchitectureError, Violation
from nasbot.testing.networks import random_architecture, relabelled


def cell_vocabulary():
    """Images from end to end, no decision labels, an output that concatenates: unlike the built-in kinds."""
    images = {"takes": Signal.IMAGE, "emits": Signal.IMAGE}
    labels = (
        Label(name="in", role=Role.INPUT, emits=Signal.IMAGE),
        Label(name="out", role=Role.OUTPUT, takes=Signal.IMAGE),
        Label(name="conv", takes_units=True, strides=(1, 2), **images),
        Label(name="identity", fixed_mass=1.0, **images),
        Label(name="pool", shrinks=2, may_follow_input=False, **images),
    )
    return Vocabulary("cell", labels, LabelPenalties.from_pairs(tuple(label.name for label in labels), {}))


KINDS = ("mlp-reg", "mlp-class", "cnn", cell_vocabulary())


def network(kind, rng, least, most):
    """A random network; drawn again where open ends of different image sizes met at the output of a cell."""
    while True:
        try:
            return random_architecture(kind, rng=rng, n_layers=int(rng.integers(least, most)))
        except InvalidArchitectureError:
            assert isinstance(kind, Vocabulary)


def spoilt(arch, rng):
    """Layers and edges of the network after one or two blind changes, many of which break a rule."""
    layers, edges = list(arch.layers), sorted(arch.edges)
    names = [*arch.vocabulary.by_name, "unheard-of"]
    for _ in range(rng.integers(1, 3)):
        u, v = sorted(int(x) for x in rng.choice(len(layers), 2, replace=False))
        match rng.integers(7):
            case 0:
                layers[u] = replace(layers[u], label=names[rng.integers(len(names))])
            case 1:
                layers[u] = Layer(layers[u].label, (None, 0, 1, 64, MAX_UNITS, MAX_UNITS + 1, 2.0)[rng.integers(7)])
            case 2:
                layers[u] = replace(layers[u], stride=(None, 1, 2, 3, True)[rng.integers(5)])
            case 3 | 4:
                edges.append((u, v))
            case 5:
                edges.pop(rng.integers(len(edges)))
            case _:
                edges.append(((v, u), (u, u), (-1, v), (u, len(layers)), (u, np.int64(v)))[rng.integers(5)])
    return tuple(layers), frozenset(edges)


def is_valid(vocabulary, layers, edges):
    """The rules once more, plainly: what design and docs say of a valid network."""
    n, labels = len(layers), [vocabulary.by_name.get(layer.label) for layer in layers]
    if None in labels or any(type(x) is not int or not 0 <= x < n for edge in edges for x in edge):
        return False
    for label, layer in zip(labels, layers, strict=True):
        if label.takes_units != (layer.units is not None):
            return False
        if label.takes_units and (type(layer.units) is not int or not 1 <= layer.units <= MAX_UNITS):
            return False
        if layer.stride is not None and type(layer.stride) is not int:
            return False
        if layer.stride not in (None, *(label.strides or (label.shrinks,))):
            return False
    parents = [[u for u, v in edges if v == w] for w in range(n)]
    feeds = [[v for u, v in edges if u == w] for w in range(n)]
    roles = [label.role for label in labels]
    ends_fit = roles[0] is Role.INPUT and roles[-1] is Role.OUTPUT
    if not ends_fit or {Role.INPUT, Role.OUTPUT} & set(roles[1:-1]) or any(u >= v for u, v in edges):
        return False
    if not all(parents[1:]) or not all(feeds[:-1]) or not all(labels[u].may_follow_input for u in feeds[0]):
        return False
    if vocabulary.decision_labels and {roles[u] for u in parents[-1]} != {Role.DECISION}:
        return False
    if any(role is Role.DECISION and feeds[u] != [n - 1] for u, role in enumerate(roles)):
        return False
    shrunk = []
    for u, label in enumerate(labels):
        entering = {shrunk[p] for p in parents[u]}
        if label.takes is Signal.IMAGE and (None in entering or len(entering) > 1):
            return False
        if label.refuses_images and entering - {None}:
            return False
        stride = layers[u].stride or (label.strides or (label.shrinks,))[0]
        shrunk.append(max(entering - {None}, default=1) * stride if label.emits is Signal.IMAGE else None)
    return True


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_network_is_built_exactly_where_the_rules_hold(kind):
    rng = np.random.default_rng(0)
    verdicts = {True: 0, False: 0}
    vocabulary = vocabulary_of(kind)
    for _ in range(600):
        layers, edges = spoilt(network(kind, rng, 4, 16), rng)
        expected = is_valid(vocabulary, layers, edges)
        verdicts[expected] += 1
        with nullcontext() if expected else pytest.raises(InvalidArchitectureError):
            Architecture(vocabulary, layers, edges)
    assert min(verdicts.values()) > 100, verdicts


def test_a_bad_edge_is_still_a_bad_edge():
    layers = (Layer("ip"), Layer("relu", 8), Layer("linear"), Layer("op"))
    assert Architecture("mlp-reg", layers, ([0, 1], [1, 2], [2, 3])).edges == {(0, 1), (1, 2), (2, 3)}
    with pytest.raises(InvalidArchitectureError, match="pairs of layer numbers"):
        Architecture("mlp-reg", layers, ((0, 1, 2), (1, 2), (2, 3)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_hash_does_not_depend_on_the_numbering_and_tells_networks_apart(kind):
    rng = np.random.default_rng(1)
    networks = [network(kind, rng, 5, 30) for _ in range(150)]
    for arch in networks:
        other = relabelled(arch, rng=rng)
        assert hash(other) == hash(arch)
        assert other == arch
    assert len({hash(arch) for arch in networks}) == len({arch.fingerprint for arch in networks})


def test_networks_of_equal_hash_are_told_apart_by_their_fingerprints():
    rng = np.random.default_rng(2)
    a, b = (random_architecture("cnn", rng=rng, n_layers=12) for _ in range(2))
    for arch in (a, b):
        vars(arch)["_numbering_free_hash"] = 0
    assert a != b
    assert len({a, b}) == 2


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_with_units_is_the_constructor_with_other_units(kind):
    rng = np.random.default_rng(3)
    for _ in range(50):
        arch = network(kind, rng, 5, 20)
        units = {u: int(rng.integers(1, 99)) for u, layer in enumerate(arch.layers) if layer.units is not None}
        layers = [replace(layer, units=units.get(u)) for u, layer in enumerate(arch.layers)]
        changed, built = arch.with_units(units), Architecture(arch.vocabulary, layers, arch.edges)
        assert vars(changed) == vars(built)
        assert changed.fingerprint == built.fingerprint
        assert changed.total_mass == built.total_mass
        assert arch.with_units({}) == arch


def test_with_units_refuses_what_the_constructor_refuses():
    arch = chain("mlp-reg", [Layer("relu", 8)])
    for units in ({1: 0}, {1: 2.0}, {1: None}, {2: 8}, {1: MAX_UNITS + 1}, {0: 3}):
        with pytest.raises(InvalidArchitectureError, match="units"):
            arch.with_units(units)
    ruled = replace(arch.vocabulary, rules=(lambda x: [Violation("few", "too many")] * (x.layers[1].units > 8),))
    with pytest.raises(InvalidArchitectureError, match="too many"):
        Architecture(ruled, arch.layers, arch.edges).with_units({1: 9})


def test_whole_numbers_of_numpy_are_whole_numbers():
    layers = [
        Layer("ip"),
        Layer("conv3", np.int64(16), np.uint8(2)),
        Layer("fc", np.int32(8)),
        Layer("softmax"),
        Layer("op"),
    ]
    edges = [(0, 1), (1, 2), (2, 3), (3, 4)]
    arch = Architecture("cnn", layers, edges)
    plain = [Layer("ip"), Layer("conv3", 16, 2), Layer("fc", 8), Layer("softmax"), Layer("op")]
    assert arch.to_json() == Architecture("cnn", plain, edges).to_json()
    for units in (True, np.True_, np.float64(16)):
        with pytest.raises(InvalidArchitectureError, match=r"layer 2 \(fc\) needs units, a whole number"):
            Architecture("cnn", [*layers[:2], Layer("fc", units), *layers[3:]], edges)

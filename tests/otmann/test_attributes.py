"""The distance between networks whose layers have attributes, against the linear program and against itself."""

from itertools import permutations

import numpy as np
import pytest

from nasbot import Otmann
from nasbot.architecture import AttributePenalties, Layer, chain
from nasbot.errors import PenaltyError
from nasbot.otmann.matching import explain
from nasbot.otmann.packing import joined
from nasbot.otmann.presets import PAPER, RuleSet
from nasbot.testing.networks import random_architecture, with_random_attributes
from nasbot.testing.reference import reference_distance

KINDS = ("mlp-reg", "mlp-class+", "cnn")
# d between networks without attributes, from before there were any.
BEFORE = {
    "mlp-reg": ["0x1.d077333333333p+18", "0x1.8bc2a9999999bp+18", "0x1.3ae02b5493271p+17", "0x1.501621a8c5370p+17"],
    "mlp-class+": ["0x1.459d200000000p+19", "0x1.21c27b4e81b4fp+19", "0x1.72a7e468acf13p+18", "0x1.74457e2fc9630p+18"],
    "cnn": ["0x1.01fd51eb851ecp+13", "0x1.44482e147ae14p+15", "0x1.4d73f4f13579dp+20", "0x1.4f74cedcba988p+20"],
}


def network(kind, i, share=0.5):
    rng = np.random.default_rng([i, KINDS.index(kind), 21])
    arch = random_architecture(kind, rng=rng, n_layers=int(rng.integers(4, 16)))
    return with_random_attributes(arch, rng=rng, share=share)


@pytest.mark.parametrize("kind", KINDS)
def test_without_attributes_to_the_last_bit(kind):
    archs = [random_architecture(kind, rng=np.random.default_rng([i, 5]), n_layers=6 + 3 * i) for i in range(4)]
    d = Otmann().pairwise(archs).d
    found = [d[k, i, j] for k, i, j in ((0, 0, 1), (1, 1, 2), (2, 0, 3), (3, 2, 3))]
    assert [value.hex() for value in found] == BEFORE[kind]


def check_against_the_linear_program(kind, numbers):
    for i in numbers:
        a, b = network(kind, 2 * i), network(kind, 2 * i + 1, share=0.0 if i % 5 == 0 else 0.5)
        for nu, d in zip(PAPER.structural_weights, Otmann().distance(a, b).d, strict=True):
            wanted = reference_distance(a, b, structural_weight=nu)
            assert abs(d - wanted) <= 1e-9 * max(1.0, wanted), (kind, i, nu)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_against_the_linear_program(kind):
    check_against_the_linear_program(kind, range(12))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_2000_pairs_against_the_linear_program(kind):
    check_against_the_linear_program(kind, range(667))


@pytest.mark.parametrize("kind", KINDS)
def test_costs_of_packed_layers_are_the_formula_to_the_last_bit(kind):
    rules = RuleSet(name="mine", attribute_penalties=AttributePenalties(dropout=0.7, norm=0.13, decay_factor=0.3))
    otmann, penalties = Otmann(preset=rules), rules.attribute_penalties
    some, plain = (otmann.pack([network(kind, i, share) for i in range(20)]) for share in (0.5, 0.0))
    for a, b in ((some, some), (some, plain), (plain, some)):
        row, costs = a.label_rows_against(b)
        of_a, of_b = (np.zeros((3, len(x.labels))) if x.attributes is None else x.attributes for x in (a, b))
        dropout, norm, factor = np.abs(of_a[:, :, None] - of_b[:, None, :])
        more = penalties.dropout * dropout + penalties.norm * (norm > 0) + penalties.decay_factor * factor
        labels = b.label_costs[a.labels, : len(b.labels)]
        np.testing.assert_array_equal(costs[row, : len(b.labels)], np.minimum(labels + more, 2.0))
        assert (labels + more > 2.0).any()


@pytest.mark.parametrize("kind", KINDS)
def test_theorem_1(kind):
    """A pseudo-distance: symmetric, 0 between equal networks, and no way round is shorter."""
    archs = [network(kind, i) for i in range(24)]
    archs += [with_random_attributes(archs[0], rng=np.random.default_rng(i)) for i in range(12)]
    d = Otmann().pairwise(archs).d
    np.testing.assert_array_equal(d, d.transpose(0, 2, 1))
    detour = d[:, :, :, None] + d[:, None, :, :]
    assert (d[:, :, None, :] <= detour + 1e-9 * d.max()).all()
    assert Otmann().distance(archs[3], archs[3]).d.max() == 0


def one(label="relu", **own):
    return chain("mlp-reg", [Layer(label, 10, **own)])


@pytest.mark.parametrize(
    ("a", "b", "cost"),
    [
        ({"dropout": 0.3}, {"dropout": 0.1}, 0.5 * 0.2),
        ({"dropout": 0.3}, {}, 0.5 * 0.3),
        ({"norm": "layer"}, {"norm": "batch"}, 0.1),
        ({"norm": "layer"}, {}, 0.1),
        ({"decay_factor": 4}, {"decay_factor": 0.5}, 0.05 * 3),
        ({"dropout": 0.2, "norm": "batch", "decay_factor": 2}, {}, 0.1 + 0.1 + 0.05),
        ({"label": "elu", "norm": "batch"}, {}, 0.1 + 0.1),
    ],
)
def test_one_layer_by_hand(a, b, cost):
    first, second = one(**a), one(**b)
    assert Otmann().distance(first, second).d[0] == pytest.approx(10 * cost)
    found = explain(first, second)
    assert found.label_penalty == pytest.approx(10 * cost)
    assert found.distance == pytest.approx(10 * cost)


def test_coefficients_are_settable():
    rules = RuleSet(name="mine", attribute_penalties=AttributePenalties(dropout=2.0, norm=0.0, decay_factor=1.0))
    mine = Otmann(preset=rules)
    assert mine.distance(one(dropout=0.3, norm="layer"), one()).d[0] == pytest.approx(6)
    assert mine.distance(one(decay_factor=64), one(decay_factor=1 / 64)).d[0] == pytest.approx(20), "never more than 2"
    assert explain(one(decay_factor=64), one(decay_factor=1 / 64), preset=rules).distance == pytest.approx(20)
    assert "attribute_penalties" in repr(rules)
    assert "attribute_penalties" not in repr(PAPER)
    with pytest.raises(PenaltyError, match="attribute penalty norm: expected a finite number >= 0, got -1"):
        AttributePenalties(norm=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_packs_joined_and_taken(kind):
    archs = [network(kind, i, share=0.4 * (i % 2)) for i in range(8)]
    otmann = Otmann()
    whole = otmann.pairwise(archs).d
    packs = [otmann.pack(archs[:3]), otmann.pack(archs[3:4]), otmann.pack(archs[4:])]
    np.testing.assert_array_equal(otmann.pairwise(joined(packs)).d, whole)
    some = np.array([5, 0, 6])
    np.testing.assert_array_equal(
        otmann.cross(joined(packs).taken(some), archs).d, otmann.cross([archs[i] for i in some], archs).d
    )
    for first, second in permutations(packs, 2):
        between = otmann.cross(first, second).d
        np.testing.assert_allclose(between, otmann.cross(second, first).d.transpose(0, 2, 1), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_stay_below_the_distance(kind):
    otmann = Otmann()
    one, others = otmann.pack([network(kind, 0)]), otmann.pack([network(kind, i) for i in range(1, 25)])
    mean = otmann.cross(one, others).d.mean(axis=0)[0]
    bounds = otmann.bounds(one, others)
    assert (bounds <= mean * (1 + 1e-12)).all()
    assert (bounds > 0).any()

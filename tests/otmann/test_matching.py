"""``explain``: its parts add up to the distance, and it can be read."""

import json
from dataclasses import replace

import numpy as np
import pytest

import nasbot
from nasbot.architecture import Architecture, Layer
from nasbot.errors import OptionError, VocabularyError
from nasbot.testing.networks import random_architecture


def two(kind: str, seed: int = 0) -> tuple[Architecture, Architecture]:
    rng = np.random.default_rng(seed)
    return random_architecture(kind, rng=rng, n_layers=14), random_architecture(kind, rng=rng, n_layers=22)


@pytest.mark.parametrize("preset", ["paper", "release", "figure", "log-mass"])
@pytest.mark.parametrize("kind", ["mlp-reg", "mlp-class", "cnn"])
def test_the_three_penalties_add_up_to_the_distance(kind: str, preset: str) -> None:
    a, b = two(kind)
    matching = nasbot.explain(a, b, structural_weight=0.25, preset=preset)
    expected = nasbot.distance(a, b, structural_weights=(0.25,), preset=preset)
    assert matching.distance == pytest.approx(expected.d[0], rel=1e-12)
    assert matching.normalised_distance == pytest.approx(expected.d_bar[0], rel=1e-12)
    parts = sum(p.mass * (p.label_cost + p.structural_cost) for p in matching.pairs()) + matching.unassigned_mass
    assert parts == pytest.approx(matching.distance, rel=1e-12)


def test_only_labels_that_may_match_are_matched() -> None:
    a, b = two("cnn", seed=3)
    for pair in nasbot.explain(a, b).pairs():
        assert np.isfinite(pair.label_cost)
        assert pair.label_cost + pair.structural_cost <= 2


def test_the_printed_table_names_layers_and_totals() -> None:
    layers = [Layer("ip"), Layer("relu", 16), Layer("linear"), Layer("op")]
    wider = [Layer("ip"), Layer("tanh", 32), Layer("linear"), Layer("op")]
    edges = [(0, 1), (1, 2), (2, 3)]
    text = str(nasbot.explain(Architecture("mlp-reg", layers, edges), Architecture("mlp-reg", wider, edges)))
    assert "1 relu 16" in text
    assert "1 tanh 32" in text
    assert "unassigned" in text
    # relu with tanh: 16 at 0.25 + 0.4 * 12/18, for the lengths within both groups differ by 1; 16 stay unassigned.
    # input, output and decision layer: 1.6 each at 0.4 * 6/18, and 1.6 each stay unassigned. In all 29.7067.
    assert "d 29.7067" in text.splitlines()[-2], text


def test_plain_data_survives_json() -> None:
    matching = nasbot.explain(*two("mlp-class"))
    record = json.loads(json.dumps(matching.to_dict(), allow_nan=False))
    assert record["d"] == matching.distance
    assert len(record["pairs"]) == len(list(matching.pairs()))


def test_bad_input_is_refused() -> None:
    a, b = two("cnn")
    with pytest.raises(OptionError, match="finite and >= 0"):
        nasbot.explain(a, b, structural_weight=-1.0)
    with pytest.raises(VocabularyError, match="cnn"):
        nasbot.explain(a, two("mlp-reg")[0])


def test_the_normalised_distance_is_at_most_1_and_0_where_there_is_no_mass() -> None:
    linear = Architecture("mlp-reg", [Layer("ip"), Layer("linear"), Layer("op")], [(0, 1), (1, 2)])
    nothing = nasbot.explain(linear, linear)
    assert nothing.masses_1.sum() == 0.0
    assert nothing.normalised_distance == nothing.distance == 0.0
    # Matched mass costs at most 2 a unit, as much as leaving it unassigned on both sides; rounding can make it more.
    masses = np.array([0.3, 0.6, 0.9])
    far = replace(
        nothing,
        structural_weight=1.0,
        masses_1=masses,
        masses_2=masses,
        label_cost=np.full((3, 3), 1.5),
        structural_cost=np.full((3, 3), 0.5),
        matched_mass=np.diag(masses),
    )
    assert far.distance > far.masses_1.sum() + far.masses_2.sum()
    assert far.normalised_distance == 1.0


@pytest.mark.parametrize("seed", [18, 19])
def test_what_costs_as_much_unassigned_is_not_matched(seed):
    """Layers that must not be matched cost no more unassigned, so a solver may do either; shown is the latter."""
    rng = np.random.default_rng(seed)
    one, other = (random_architecture("cnn", rng=rng, n_layers=int(rng.integers(6, 20))) for _ in range(2))
    found = nasbot.explain(one, other)
    alone = nasbot.distance(one, other, structural_weights=(found.structural_weight,))
    assert found.distance == pytest.approx(alone.d, rel=1e-9)
    assert not found.matched_mass[np.isinf(found.label_cost)].any()
    assert found.matched_mass.sum(axis=1) + found.unassigned_1 == pytest.approx(found.masses_1)
    assert found.matched_mass.sum(axis=0) + found.unassigned_2 == pytest.approx(found.masses_2)
    json.dumps(found.to_dict(), allow_nan=False)

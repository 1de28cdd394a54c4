"""Places on the architecture map."""

from itertools import pairwise

import numpy as np
import pytest

from nasbot.otmann import Distances, Otmann
from nasbot.plots import embedding
from nasbot.plots.embedding import classical, embed, majorised
from nasbot.plots.series import architecture_map

from .studies import as_minimised, by_hand, grown


class Plane:
    """A distance that is exactly one of the plane: networks stand where they were told."""

    def __init__(self, places):
        self.places = places

    def pack(self, archs):
        return [archs[i] for i in range(len(archs))]

    def cross(self, a, b):
        at_a, at_b = (np.array([self.places[arch] for arch in archs]) for archs in (a, b))
        d = np.sqrt(((at_a[:, None] - at_b[None]) ** 2).sum(axis=2))[None]
        return Distances((0.0,), d, d)

    def pairwise(self, archs):
        return self.cross(archs, archs)


@pytest.mark.parametrize("max_full", [embedding.MAX_FULL, 10])
def test_what_lies_in_a_plane_is_found_again(max_full, monkeypatch):
    monkeypatch.setattr(embedding, "MAX_FULL", max_full)
    networks = [trial.arch for trial in grown(50)]
    rng = np.random.default_rng(1)
    places = rng.normal(size=(50, 2)) * (3.0, 1.0)
    found = embed(networks, distance=Plane(dict(zip(networks, places, strict=True))))
    expected = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    actual = np.sqrt(((found.places[:, None] - found.places[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    assert found.stress == pytest.approx(0.0, abs=1e-7)
    assert np.ptp(found.places[:, 0]) > np.ptp(found.places[:, 1])
    assert len(found.landmarks) == (50 if max_full > 50 else embedding.N_LANDMARKS)


def test_majorisation_never_raises_the_stress():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(30, 5))
    between = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    places = classical(between)
    stresses = []
    for _ in range(20):
        gaps = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
        stresses.append(((gaps - between) ** 2).sum())
        places = majorised(between, places, n_rounds=1)
    assert all(after <= before + 1e-9 for before, after in pairwise(stresses))
    assert stresses[-1] < 0.95 * stresses[0]


def test_landmarks_lose_little(monkeypatch):
    """Near networks stay near: measured on the pairs that neither way has compared, too."""
    networks = [trial.arch for trial in grown(100, "cnn")]
    d_bar = Otmann(structural_weights=(embedding.MAP_WEIGHT,)).pairwise(networks).d_bar[0]
    monkeypatch.setattr(embedding, "MAX_FULL", 20)
    places = embed(networks).places
    gaps = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    above = np.triu_indices(100, 1)
    assert np.corrcoef(gaps[above], d_bar[above])[0, 1] > 0.8


def test_the_same_networks_give_the_same_map():
    networks = [trial.arch for trial in grown(40)]
    np.testing.assert_array_equal(embed(networks).places, embed(networks).places)


def test_the_map_of_a_study():
    found = architecture_map(as_minimised())
    assert [point.trial for point in found.points] == [0, 1, 2, 3, 4, 5, 6]  # 7 was cancelled
    assert [point.value for point in found.points] == [-1.0, -3.0, None, -2.0, -5.0, None, None]
    assert found.path == (0, 1, 4)
    assert found.n_pairs == 21
    assert architecture_map(by_hand()[:1] and by_hand().at_proposal(1)).n_pairs == 0


def test_equal_distances_are_no_error():
    networks = [trial.arch for trial in grown(12)]
    found = embed(networks, distance=Plane(dict.fromkeys(networks, (0.0, 0.0))))
    assert np.isfinite(found.places).all()
    assert found.stress == 0.0

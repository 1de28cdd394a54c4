import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from nasbot.errors import NasbotError
from nasbot.gp import GraphGP, InvalidDistancesError, InvalidValuesError, NotFittedError
from tests.gp.problems import distances, normalised_distances, objective, points, problem


@pytest.fixture(scope="module")
def data():
    x, d, d_bar, values = problem(50)
    others = points(80, seed=8)
    return {
        "D": d,
        "D_bar": d_bar,
        "y": values,
        "D_cross": distances(others, x),
        "D_bar_cross": normalised_distances(others, x),
        "truth": objective(others),
    }


@pytest.mark.parametrize("inference", ["sample", "map"])
@pytest.mark.parametrize("warp", ["none", "rank"])
def test_fit_and_predict_in_the_units_of_y(data, inference, warp):
    model = GraphGP(inference=inference, warp=warp, n_samples=4, random_state=0)
    assert model.fit(data["D"][3], 100.0 * data["y"]) is model
    mean, std = model.predict(data["D_cross"][3], return_std=True)
    assert mean.shape == std.shape == (80,)
    truth = 100.0 * data["truth"]
    assert r2_score(truth, mean) > 0.7
    assert 0.5 < np.mean(np.abs(truth - mean) <= std) < 0.95
    assert model.score(data["D_cross"][3], truth) == pytest.approx(r2_score(truth, mean))
    noisy = model.predict(data["D_cross"][3], return_std=True, include_noise=True)[1]
    assert np.all(noisy > std)


def test_several_distances_and_a_second_kind(data):
    model = GraphGP(inference="map").fit(data["D"], data["y"], D_bar=data["D_bar"])
    mean = model.predict(data["D_cross"], D_bar_cross=data["D_bar_cross"])
    assert r2_score(data["truth"], mean) > 0.8
    assert len(model.belief_.hyperparameters[0].normalised_decay) == 4
    assert not model.repairs_
    with pytest.raises(InvalidDistancesError, match="same kinds again, got 4 distances d and 0 distances d_bar"):
        model.predict(data["D_cross"])


def test_the_seed_decides(data):
    def mean(seed):
        return GraphGP(random_state=seed, n_samples=2).fit(data["D"][0], data["y"]).predict(data["D_cross"][0])

    np.testing.assert_array_equal(mean(1), mean(1))
    np.testing.assert_array_equal(mean(1), mean(np.random.default_rng(1)))
    assert np.any(mean(1) != mean(2))


def test_behaves_in_scikit_learns_tools(data):
    model = GraphGP(inference="map", distance_power=0.5)
    copy = clone(model.fit(data["D"][3], data["y"]))
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "belief_")
    assert cross_val_score(model, data["D"][3], data["y"], cv=3).mean() > 0.6
    search = GridSearchCV(model, {"distance_power": [0.7, 1.0]}, cv=2).fit(data["D"][3], data["y"])
    assert search.best_params_["distance_power"] in (0.7, 1.0)
    assert model.set_params(warp="rank") is model
    assert model.warp == "rank"
    assert "distance_power=0.5" in repr(model)
    with pytest.raises(ValueError, match="has no parameter power; it has inference, n_samples"):
        model.set_params(power=2)


def test_init_only_stores_and_fit_refuses(data):
    with pytest.raises(ValueError, match="inference must be one of sample, map, got 'vi'"):
        GraphGP(inference="vi").fit(data["D"][0], data["y"])
    with pytest.raises(ValueError, match="warp must be one of rank, best, log, none, got 'sqrt'"):
        GraphGP(warp="sqrt").fit(data["D"][0], data["y"])
    with pytest.raises(ValueError, match="distance_power must be positive"):
        GraphGP(distance_power=0.0).fit(data["D"][0], data["y"])


def _spoiled(place, value):
    d = np.array(distances(points(4), points(4))[0])
    d[place] = value
    return d


@pytest.mark.parametrize(
    ("d", "message"),
    [
        (np.zeros((4, 3)), r"distances among the n observed points.*got \(1, 4, 3\)"),
        (np.zeros(4), r"must have shape \(n, m\) or \(weights, n, m\), got \(4,\)"),
        (np.zeros((0, 4, 4)), r"must have shape .* got \(0, 4, 4\)"),
        (_spoiled((1, 2), 9.0), r"must be symmetric; .* at \(0, 1, 2\)"),
        (_spoiled((1, 2), -1.0), r"must be >= 0; .* 1 at \(0, 1, 2\)"),
        (_spoiled((3, 1), np.nan), r"must be finite, got nan at \(weight, row, column\) = \(0, 3, 1\)"),
        (_spoiled((3, 1), np.inf), "must be finite, got inf"),
        (_spoiled((2, 2), 0.5), r"must be 0 from a point to itself; .* 0.5 at \(0, 2\)"),
        ([["a"]], "must hold numbers"),
    ],
)
def test_bad_distances_are_refused_with_their_place(d, message):
    with pytest.raises(InvalidDistancesError, match=message) as caught:
        GraphGP().fit(d, np.arange(4.0))
    assert isinstance(caught.value, NasbotError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(3.0), "one value for each of the 4 points"),
        ([0.0, 1.0, np.nan, 2.0], "got nan at index 2"),
        (np.zeros((4, 1)), r"got shape \(4, 1\)"),
    ],
)
def test_bad_values_are_refused(y, message):
    with pytest.raises(InvalidValuesError, match=message):
        GraphGP().fit(distances(points(4), points(4)), y)


def test_predicting_needs_a_fit_and_rows_of_new_points():
    with pytest.raises(NotFittedError, match=r"call fit\(D, y\) before"):
        GraphGP().predict(np.zeros((1, 1)))
    d = distances(points(4), points(4))[3]
    model = GraphGP(inference="map").fit(d, np.arange(4.0))
    with pytest.raises(InvalidDistancesError, match=r"D_cross.*looks transposed"):
        model.predict(np.zeros((4, 7)))
    with pytest.raises(InvalidDistancesError, match="D_cross must hold distances from new points"):
        model.predict(np.zeros(4))
    with pytest.raises(InvalidDistancesError, match="must be finite"):
        model.predict(np.full((2, 4), np.nan))
    with pytest.raises(InvalidDistancesError, match=r"D_cross.*\(1, m, 4\) or \(m, 4\), got \(2, 7, 4\)"):
        model.predict(np.zeros((2, 7, 4)))


def test_interpolates_what_it_was_told_when_there_is_no_noise():
    x = points(30)
    d = distances(x, x)[3]
    mean = GraphGP(inference="map").fit(d, objective(x)).predict(d)
    assert r2_score(objective(x), mean) > 0.98


def test_score_of_constant_values():
    d = np.zeros((1, 1))
    model = GraphGP(inference="map").fit(d, [2.0])
    assert model.score(d, [2.0]) == 1.0
    assert model.score(d, [3.0]) == 0.0


def test_scikit_learn_is_not_imported_by_the_package():
    code = "import sys, nasbot.gp; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

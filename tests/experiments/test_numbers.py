"""What pages are computed with, on cases that can be done by hand."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, spearmanr

from experiments.best_networks import at_least, share_of
from experiments.datasets import data_folder, prepared
from experiments.distance_map import spread_out
from experiments.experiment import Results
from experiments.fcnet import ACTIVATIONS, SPACE, WIDTHS, network_of, read_table
from experiments.figures import Curve, colours_of, step_curve
from experiments.networks import Anatomy, random_family, scaled_pool
from experiments.protocol import Protocol
from experiments.records import Places
from experiments.search_pages import _limits, curves, in_words, score_table, standings
from experiments.smoothness import Pairs, correlation
from experiments.summary import _ahead_of_optuna, _recommends
from nasbot._ranks import rank_correlation
from nasbot.architecture import Architecture, Layer, SearchSpace, initial_pool
from nasbot.otmann import Otmann

# -- networks ----------------------------------------------------------------------------------------------------------


def mlp(n_hidden: int, *more: tuple[int, int]) -> Architecture:
    layers = [Layer("ip"), *(Layer("relu", 16) for _ in range(n_hidden)), Layer("linear"), Layer("op")]
    edges = [(u, u + 1) for u in range(len(layers) - 1)]
    return Architecture("mlp-reg", layers, [*edges, *more])


def test_a_chain_has_no_skips():
    found = Anatomy.of(mlp(5))
    assert (found.layers, found.depth, found.skips, found.longest_skip, found.decision_layers) == (5, 6, 0, 0, 1)
    assert not found.has_long_skip
    assert not found.has_several_decisions


@pytest.mark.parametrize(("edge", "passed"), [((1, 3), 1), ((1, 4), 2), ((1, 5), 3), ((0, 5), 4)])
def test_a_skip_passes_by_as_many_layers_as_lie_between(edge: tuple[int, int], passed: int):
    found = Anatomy.of(mlp(5, edge))
    assert (found.skips, found.longest_skip) == (1, passed)
    assert found.has_long_skip == (passed >= 3)


def test_decision_layers_are_counted():
    layers = [Layer("ip"), Layer("relu", 8), Layer("relu", 8), Layer("linear"), Layer("linear"), Layer("op")]
    found = Anatomy.of(Architecture("mlp-reg", layers, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 5), (4, 5)]))
    assert found.decision_layers == 2
    assert found.has_several_decisions


def test_a_family_is_made_of_different_networks_with_their_parents():
    space = SearchSpace("mlp-reg")
    family = random_family(space, 25, rng=np.random.default_rng(3))
    assert [relative.arch for relative in family[:10]] == list(initial_pool("mlp-reg"))
    assert len({relative.arch.fingerprint for relative in family}) == 25
    for i, relative in enumerate(family[10:], 10):
        assert relative.parent is not None
        assert relative.parent < i
        assert 1 <= relative.steps <= 5
        assert relative.arch in space
    again = random_family(space, 25, rng=np.random.default_rng(3))
    assert [relative.arch for relative in again] == [relative.arch for relative in family]


def test_a_scaled_pool_has_the_same_shapes():
    for small, large in zip(scaled_pool("cnn", 8), initial_pool("cnn"), strict=True):
        assert small.edges == large.edges
        pairs = [(a.units, b.units) for a, b in zip(small.layers, large.layers, strict=True) if b.units is not None]
        assert all(a == max(8, b // 8) for a, b in pairs)


def test_examples_come_in_near_pairs_far_apart():
    points = np.array([0.0, 0.1, 5.0, 5.2, 9.0, 9.3])
    matrix = np.abs(points[:, None] - points[None, :])
    assert spread_out(matrix, 4) == [0, 1, 5, 4]
    assert sorted(spread_out(matrix, 10)) == [0, 1, 2, 3, 4, 5]


# -- statistics --------------------------------------------------------------------------------------------------------


def test_the_rank_correlation_is_spearmans():
    rng = np.random.default_rng(0)
    x, y = rng.integers(8, size=50).astype(float), rng.normal(size=50)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert np.isnan(rank_correlation(np.ones(5), np.arange(5.0)))


def pairs(errors: np.ndarray, distances: np.ndarray) -> Pairs:
    return Pairs(np.abs(distances[:, None] - distances[None, :]), np.abs(errors[:, None] - errors[None, :]))


def test_the_interval_tells_a_relation_from_none():
    rng = np.random.default_rng(1)
    place = rng.uniform(size=60)
    related = correlation(pairs(place + 0.05 * rng.normal(size=60), place), resamples=200)
    assert related.low > 0.5
    assert related.low < related.rho < related.high
    unrelated = correlation(pairs(rng.normal(size=60), place), resamples=200)
    assert unrelated.low < 0 < unrelated.high


def test_at_least_so_many_is_the_binomial_tail_where_chances_are_equal():
    for n, k in product((1, 5, 12), (0, 1, 4)):
        assert at_least(k, [0.3] * n) == pytest.approx(binom.sf(k - 1, n, 0.3), abs=1e-12)
    assert at_least(2, [0.5, 1.0, 0.0]) == pytest.approx(0.5)


def record_of(method: str, seed: int, *, tested: float, values=(0.5,), times=(1.0,), best=None, **proposed) -> dict:
    result = {
        "values": list(values),
        "times": list(times),
        "retrained": [{"valid": tested, "test": tested - 0.01}, {"valid": tested, "test": tested + 0.01}],
        "best": best,
        "proposed": proposed,
    }
    return {"run": {"dataset": "naval", "method": method, "seed": seed}, "result": result}


def results(records: list[dict]) -> Results:
    return Results(Protocol("regression", {"seconds": 10.0}, {"dataset": ["naval"]}, 0.0), records)


def test_the_share_of_best_networks_with_a_feature():
    skip, chain = vars(Anatomy.of(mlp(5, (0, 5)))), vars(Anatomy.of(mlp(5)))
    runs = [
        record_of("NASBOT", seed, tested=1.0, best={"anatomy": dict(anatomy)}, long_skip=0.25)
        for seed, anatomy in enumerate((skip, skip, skip, chain))
    ]
    found = share_of(runs, "long_skip")
    assert (found.found, found.n, found.share, found.expected) == (3, 4, 0.75, 0.25)
    assert found.low < 0.75 < found.high
    assert found.p == pytest.approx(binom.sf(2, 4, 0.25))


def test_standings_are_by_test_error_and_its_spread():
    methods = {"NASBOT": (0.50, 0.60), "RAND": (0.40, 0.60), "EA": (0.58, 0.60), "TreeBO": (0.80, 0.90)}
    runs = [record_of(m, seed, tested=t) for m, values in methods.items() for seed, t in enumerate(values)]
    one = standings([results(runs)], ["naval"], list(methods))[0]
    assert one.ours.mean == pytest.approx(0.55)
    assert one.best == "RAND"
    assert one.within  # 0.55 <= 0.50 + 0.10
    assert (one.ahead, one.behind) == (("EA", "TreeBO"), ("RAND",))
    assert "within one standard error of the best, which is RAND" in in_words([one])


@pytest.mark.parametrize(
    ("theirs", "verdict", "where"),
    [
        (
            {"naval": 0.60, "indoor": 0.60, "protein": 0.40},
            "holds",
            "by more than a standard error on 2 (naval, indoor)",
        ),
        ({"naval": 0.60, "indoor": 0.501, "protein": 0.40}, "holds by a hair", "on 2 of 3 (naval, indoor), by"),
        ({"naval": 0.60, "indoor": 0.499, "protein": 0.40}, "does not hold", "on 1 of 3 (naval), by"),
    ],
)
def test_a_lead_within_a_standard_error_is_said_to_be_one(theirs: dict[str, float], verdict: str, where: str):
    """Ours has mean 0.5 and standard error 0.0058 everywhere."""
    runs = []
    for dataset, mean in theirs.items():
        for method, middle in (("NASBOT", 0.5), ("Optuna TPE", mean), ("Optuna GP", 0.9)):
            for seed, shift in enumerate((-0.01, 0.0, 0.01)):
                record = record_of(method, seed, tested=middle + shift)
                runs.append({**record, "run": {**record["run"], "dataset": dataset}})
    found = _ahead_of_optuna(results(runs))
    assert found.verdict == verdict
    assert where in found.ours


def test_a_training_that_diverges_does_not_put_us_ahead():
    """Their mean is far above ours, and most of their runs are below."""
    runs = [record_of("NASBOT", seed, tested=0.5) for seed in range(3)]
    runs += [record_of("Optuna TPE", seed, tested=value) for seed, value in enumerate((0.4, 0.4, 9.0))]
    runs += [record_of("Optuna GP", seed, tested=0.9) for seed in range(3)]
    one = standings([results(runs)], ["naval"], ["NASBOT", "Optuna TPE", "Optuna GP"])[0]
    assert one.ahead == ("Optuna TPE", "Optuna GP")
    assert one.usually == one.clearly == ("Optuna GP",)
    assert _ahead_of_optuna(results(runs)).ours.startswith("ahead of both samplers, by mean and by median, on 0 of 1")


def test_what_is_recommended_has_a_row_of_its_own_and_no_say_in_the_standings():
    runs = [record_of(method, seed, tested=0.5) for method in ("NASBOT", "EA") for seed in range(3)]
    for run in runs[:3]:
        run["result"]["networks"] = 7
        run["result"]["recommended"] = {"retrained": [{"valid": 0.3, "test": 0.2}]}
    runs = [{**run, "result": {"networks": 7, "recommended": None, **run["result"]}} for run in runs]
    rows = score_table([results(runs)], ["naval"], ["NASBOT", "EA"], paper=True).splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row[1] for row in cells] == ["NASBOT", "NASBOT, as recommended", "EA"]
    assert [row[6].split(" ")[0] for row in cells] == ["0.5000", "0.2000", "0.5000"]
    assert standings([results(runs)], ["naval"], ["NASBOT", "EA"])[0].ours.mean == pytest.approx(0.5)


@pytest.mark.parametrize(("factor", "verdict"), [(0.9, "holds"), (1.1, "does not hold"), (1.0, "not seen")])
def test_recommendations_are_judged_search_by_search(factor: float, verdict: str):
    runs = [record_of("NASBOT", seed, tested=0.5) for seed in range(7)]
    for run in runs[:6]:
        run["result"]["recommended"] = {"retrained": [{"valid": 0.5, "test": 0.5 * factor}]}
    found = _recommends(results(runs))
    assert found.verdict == verdict
    assert f"{1 - factor:.1%} lower in the mean of 6 searches" in found.ours
    assert _recommends(results(runs[6:])).verdict == "not run"


def test_a_method_alone_has_no_standing():
    assert standings([results([record_of("NASBOT", 0, tested=1.0)])], ["naval"], ["NASBOT", "EA"]) == []


def test_curves_are_means_of_the_best_so_far():
    runs = [
        record_of("EA", 0, tested=1.0, times=(1.0, 4.0), values=(0.8, 0.4)),
        record_of("EA", 1, tested=1.0, times=(2.0, 3.0), values=(0.6, 0.9)),
    ]
    curve = curves([results(runs)], "naval", ["EA", "RAND"], 10.0)["EA"]
    assert curve.n == 2
    assert curve.x[0] >= 2.0
    assert curve.mean[0] == pytest.approx(0.7)
    assert curve.mean[-1] == pytest.approx(0.5)
    assert curve.se[-1] == pytest.approx(0.1)


def test_the_picture_shows_what_happens_after_the_first_networks():
    x = np.linspace(0.0, 10.0, 11)
    curve = Curve(x, np.where(x < 1.0, 9.0, 0.5 - 0.01 * x), np.full(11, 0.01), 3)
    low, high = _limits({"EA": curve}, 1.0)
    assert 0.3 < low < 0.4
    assert 0.5 <= high < 0.52
    assert _limits({}, 1.0) is None


def test_a_curve_begins_where_all_runs_have_a_value():
    curve = step_curve([np.array([1.0]), np.array([5.0])], [np.array([3.0]), np.array([1.0])], np.arange(8.0))
    assert curve.x.tolist() == [5.0, 6.0, 7.0]
    assert curve.mean.tolist() == [2.0, 2.0, 2.0]


# -- tables and data ---------------------------------------------------------------------------------------------------


def test_the_networks_of_the_fcnet_tables():
    labels = [f"{activation} {width}" for activation, width in product(ACTIVATIONS, WIDTHS)]
    small, wide, other = (network_of((labels[i], labels[j])) for i, j in ((0, 0), (5, 0), (6, 0)))
    assert all(arch in SPACE for arch in (small, wide, other))
    distances = Otmann().pairwise([small, wide, other]).d[0]
    assert 0 < distances[0, 2] < distances[0, 1]  # another activation is nearer than 32 times the width


def test_the_fcnet_tables_have_144_architectures(shared_dir: Path):
    table = read_table(shared_dir / "data" / "fcnet_tabular.npz", "protein")
    assert len(table.error) == 144
    assert min(table.error.values()) == table.optimum > 0
    key = next(iter(table.error))
    assert table(network_of(key)) == pytest.approx(np.log10(table.error[key]))


def test_data_are_prepared_once_for_each_way_of_preparing_them(tmp_path: Path):
    places = Places(tmp_path / "out", tmp_path / "work", tmp_path)
    few = Protocol("regression", {"rows": 100}, {"dataset": ["diabetes"]}, 0.0)
    folder, data = prepared(few, "diabetes", places)
    assert folder == data_folder(few, "diabetes", places)
    assert len(data.train) + len(data.valid) + len(data.test) == 100
    before = (folder / "dataset.json").stat().st_mtime_ns
    assert prepared(few, "diabetes", places)[1].fingerprint == data.fingerprint
    assert (folder / "dataset.json").stat().st_mtime_ns == before
    logs = Protocol("regression", {"rows": 100, "log_target": ["diabetes"]}, {"dataset": ["diabetes"]}, 0.0)
    assert prepared(logs, "diabetes", places)[0] != folder


def test_images_are_averaged_and_drawn(tmp_path: Path):
    places = Places(tmp_path / "out", tmp_path / "work", tmp_path)
    settings = {"image_size": 4, "images": [50, 20, 10]}
    _, data = prepared(Protocol("cifar10", settings, {"dataset": ["digits-images"]}, 0.0), "digits-images", places)
    assert data.input_shape == (1, 4, 4)
    assert [len(part) for part in (data.train, data.valid, data.test)] == [50, 20, 10]


def test_no_two_curves_of_a_figure_have_one_colour() -> None:
    names = ["NASBOT (OTMANN)", "crude", "narrow", "RAND", "uniform", "EA", "local search"]
    colours = colours_of(names)
    assert list(colours) == names
    assert len(set(colours.values())) == len(names)
    assert colours["EA"] == colours_of(["EA"])["EA"]

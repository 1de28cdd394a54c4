"""Every picture of a study compares networks by the study's own distance, the one that its search used."""

import re

import numpy as np
import pytest

import nasbot
from nasbot.architecture.pools import initial_pool
from nasbot.otmann import Otmann
from nasbot.page.figures import near_record
from nasbot.plots import series
from nasbot.plots.embedding import MAP_WEIGHT, embed
from nasbot.plots.plot import PlotOptions, plot
from nasbot.plots.snapshot import Snapshot
from nasbot.searchers import NASBOT
from nasbot.study import Budget, Study
from nasbot.trial import History


def snapshot(kind: str, **options: object) -> Snapshot:
    searcher = NASBOT(space=nasbot.SearchSpace(kind), **options)  # type: ignore[arg-type]
    study = Study.in_memory(searcher, seed=0)
    study.optimise(lambda arch: float(len(arch.layers)), Budget(4))
    return Snapshot.of(study)


@pytest.fixture(scope="module")
def cnns() -> Snapshot:
    return snapshot("cnn")


def test_the_distance_is_the_searchers(cnns: Snapshot) -> None:
    assert cnns.distance == NASBOT(space=nasbot.SearchSpace("cnn")).distance
    assert cnns.distance.rules.name == "log-mass"
    assert snapshot("mlp-reg").distance.rules.name == "paper"
    own = Otmann(preset="release", structural_weights=(0.3, 0.6))
    assert snapshot("cnn", distance=own).distance == own
    assert Snapshot(cnns.history).distance.rules.name == "log-mass"  # a bare history: as a search would compare
    assert Snapshot(History(())).distance.rules.name == "paper"


@pytest.mark.parametrize("described", [{"preset": "log-mass", "structural_weights": [-1.0]}, {"preset": ["x"]}, 7])
def test_settings_that_describe_no_distance_are_no_trouble(cnns: Snapshot, described: object) -> None:
    odd = Snapshot(cnns.history, settings={"searcher": {"distance": described}})  # type: ignore[dict-item]
    assert odd.distance.rules.name == "log-mass"


def test_the_map_uses_it(cnns: Snapshot) -> None:
    found = series.architecture_map(cnns)
    expected = embed(
        [trial.arch for trial in cnns.history],
        distance=Otmann(preset="log-mass", structural_weights=(MAP_WEIGHT,)),
    )
    np.testing.assert_array_equal([(point.x, point.y) for point in found.points], expected.places)


def test_match_and_diff_use_it(cnns: Snapshot, tmp_path) -> None:  # type: ignore[no-untyped-def]
    first, second = cnns.history[0].arch, cnns.history[1].arch
    own = nasbot.explain(first, second, preset="log-mass")
    assert own.distance != pytest.approx(nasbot.explain(first, second).distance)
    options = PlotOptions(trial=1, other=0)
    for name in ("match", "diff"):
        text = plot(cnns, name, tmp_path / f"{name}.svg", options=options).read_text()
        shown = re.search(r"normalised ([\d.]+)", text)
        assert shown is not None, name
        assert float(shown[1]) == pytest.approx(own.normalised_distance, abs=5e-4), name


def test_the_page_says_one_distance_between_two_trials() -> None:
    pool = initial_pool("cnn")
    study = Study.in_memory(NASBOT(space=nasbot.SearchSpace("cnn"), pool=pool[:3]), seed=0)
    study.optimise(lambda arch: float(len(arch.layers)), Budget(5))
    shown = Snapshot.of(study)
    child = next(trial for trial in shown.history if trial.origin.parents)
    record = near_record(shown, child.number, with_drawing=False)
    near = {nearby.trial: nearby.d_bar for nearby in record["nearest"]}
    parent = record["diff"]["parent"]
    own = nasbot.explain(shown.history[parent].arch, child.arch, preset="log-mass")
    assert f"d_bar = {own.normalised_distance:.4f}" in record["diff"]["summary"]
    assert near[parent] == pytest.approx(own.normalised_distance)

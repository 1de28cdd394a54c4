import numpy as np
import pytest

from benchmarks.many import _asked, _problem, searched
from benchmarks.scale import fill, indexed, measured, predicted
from nasbot.architecture import Layer, SearchSpace
from nasbot.architecture.blocks import chain
from nasbot.gp.warping import Warp
from nasbot.searchers import RandomSearch
from nasbot.study import Study, StudyView


def test_a_study_is_filled_with_as_many_different_networks(tmp_path):
    fill(tmp_path / "scale.db", 40)
    with StudyView.read(tmp_path / "scale.db") as study:
        assert len(study.history.completed) == len(study.history.seen) == 40


def test_the_figures_that_others_read():
    figures = measured(60, n_asks=3)
    names = ("networks", "proposal_seconds", "ask3_seconds", "resume_seconds", "peak_mb")
    assert all(figures[name] > 0 for name in names)


def test_the_index_is_measured_against_all_distances():
    figures = indexed(120, 4, k=5)
    assert figures["exact_answers"] == 4
    assert 0 < figures["exact_share"] < 1


def test_predictions_are_those_of_the_exact_belief_where_all_is_known():
    figures = predicted(60, 10)
    assert figures["local_rank_correlation"] == figures["exact_rank_correlation"]
    assert figures["local_log_density"] == figures["exact_log_density"]


def test_a_search_of_many_goes_on_where_it_was_left(tmp_path):
    options = {"function": "f2", "method": "nasbot", "batch": 8, "seed": 1}
    whole = searched(evaluations=32, **options)
    searched(evaluations=16, study=tmp_path / "many.db", **options)
    resumed = searched(evaluations=32, study=tmp_path / "many.db", **options)
    assert resumed["best"] == whole["best"]
    assert [n for n, _ in whole["curve"]] == [8, 16, 24, 32]
    assert np.all(np.diff([best for _, best in whole["curve"]]) >= 0)


@pytest.mark.parametrize("warp", Warp)
def test_values_are_warped_as_asked(warp):
    assert _problem("f1", "nasbot", 0, None, warp)[1].belief.warp is warp


def test_a_small_space_is_searched_to_its_last_network_and_none_twice():
    searcher = RandomSearch(
        space=SearchSpace("mlp-reg"), pool=[chain("mlp-reg", [Layer("relu", 16)])], modifiers=("swap_label",)
    )
    study, exhausted = Study.in_memory(searcher, seed=0), None
    while exhausted is None:
        asked, exhausted = _asked(study, 3)
        for trial in asked:
            study.tell(trial, 1.0)
    assert sorted(trial.arch.layers[1].label for trial in study.history) == sorted(
        ["crelu", "elu", "leaky-relu", "logistic", "relu", "softplus", "tanh"]
    )
    assert not study.history.pending
    assert "evaluated, pending or failed" in exhausted


def test_real_networks_are_searched_by_a_proxy_and_the_best_trained():
    found = searched("proxy", "random", 8, 4, 0, retrain=1)
    assert (found["evaluations"], found["different"], found["exhausted"]) == (8, 8, None)
    assert np.isfinite(found["best"])
    assert found["accuracy"]["best"][0] > 0.5

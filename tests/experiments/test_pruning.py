"""Optuna with its own pruners, on our trainer and clock."""

import time

import numpy as np
import optuna
import pytest

from experiments import pruning
from experiments.flat import distribution_of, from_optuna, to_optuna
from experiments.pruning import PRUNERS, _study, by_optuna, length_of, work
from nasbot.automl.tuning import params_of
from nasbot.data.dataset import dataset_of
from nasbot.domain import Choice, Float, Integer
from nasbot.errors import OptionError
from nasbot.training.recipes import FAST


@pytest.fixture(scope="module")
def line():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    return dataset_of(X, X @ [1.0, 2.0, 3.0])


@pytest.mark.parametrize("pruner", PRUNERS)
def test_a_worker_trains_until_its_time_is_up(line, tmp_path, pruner):
    line.save(tmp_path / "data")
    _study(tmp_path, pruner, 90, 0)
    until = time.monotonic() + 3
    work(tmp_path, pruner, 90, 1.0, until, "tpe", "preparation,batch_size,optimiser,momentum,beta2", 0)
    assert time.monotonic() >= until - 1
    trials = _study(tmp_path, pruner, 90, 0).trials
    ends = {trial.state.name for trial in trials}
    assert "COMPLETE" in ends <= {"COMPLETE", "PRUNED", "FAIL"}
    done = [trial for trial in trials if trial.state.name == "COMPLETE"]
    assert all(0 < trial.user_attrs["test"] < 10 for trial in done)
    searched = {"preparation", "batch_size", "optimiser", "momentum", "beta2", "width_0"}
    assert all(searched <= set(trial.params) for trial in trials)


def test_the_baseline_with_all_defaults_comes_first(line, monkeypatch):
    seen = []
    monkeypatch.setattr(pruning, "WORKERS", 0)
    monkeypatch.setattr(optuna.Study, "enqueue_trial", lambda study, params: seen.append(params))
    with pytest.raises(OptionError, match="no training"):
        by_optuna("none", line, 4.0, 0, tune="learning_rate,batch_size")
    assert seen[0]["learning_rate"] == FAST.settings((3,)).learning_rate
    assert params_of("batch_size", line, FAST)["batch_size"].values[seen[0]["batch_size"]] == 256
    assert (seen[0]["depth"], seen[0]["activation"]) == (3, "relu")


@pytest.mark.parametrize(
    "param", [Float(1e-3, 1.0, log=True), Integer(2, 9), Choice("a", "b"), Choice(8, 16, 64, ordered=True)]
)
def test_params_keep_their_ranges_and_values(param):
    value, made = param.default, distribution_of(param)
    suggested = to_optuna({"x": param}, {"x": value})
    assert made._contains(made.to_internal_repr(suggested["x"]))
    assert from_optuna({"x": param}, suggested) == {"x": value}


def test_the_length_is_found_as_a_search_finds_it(line):
    n_steps, cap = length_of(line, 4.0, 0)
    assert n_steps >= 100
    assert cap == pytest.approx(2.0)


def test_no_time_and_no_such_pruner(line, tmp_path):
    with pytest.raises(OptionError, match=r"no training came to its end in 0\.01 s .*expected more time"):
        by_optuna("asha", line, 0.01, 0)
    with pytest.raises(OptionError, match="pruner: expected one of hyperband, asha, none, got 'median'"):
        _study(tmp_path, "median", 90, 0)

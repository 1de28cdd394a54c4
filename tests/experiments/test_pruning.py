"""Optuna with its own pruners, on our trainer and clock."""

import time

import numpy as np
import pytest

from experiments.pruning import PRUNERS, _study, by_optuna, length_of, work
from nasbot.data.dataset import dataset_of
from nasbot.errors import OptionError


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
    work(tmp_path, pruner, 90, 1.0, until, 0)
    assert time.monotonic() >= until - 1
    trials = _study(tmp_path, pruner, 90, 0).trials
    ends = {trial.state.name for trial in trials}
    assert "COMPLETE" in ends <= {"COMPLETE", "PRUNED", "FAIL"}
    done = [trial for trial in trials if trial.state.name == "COMPLETE"]
    assert all(0 < trial.user_attrs["test"] < 10 for trial in done)
    assert all("preparation" in trial.params and "width_0" in trial.params for trial in trials)


def test_the_length_is_found_as_a_search_finds_it(line):
    n_steps, cap = length_of(line, 4.0, 0)
    assert n_steps >= 100
    assert cap == pytest.approx(2.0)


def test_no_time_and_no_such_pruner(line, tmp_path):
    with pytest.raises(OptionError, match=r"no training came to its end in 0\.01 s .*expected more time"):
        by_optuna("asha", line, 0.01, 0)
    with pytest.raises(OptionError, match="pruner: expected one of hyperband, asha, got 'median'"):
        _study(tmp_path, "median", 90, 0)

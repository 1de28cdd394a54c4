"""Twelve kinds of death ten times each, and forty returns that nobody should make: the study goes on."""

import numpy as np

from nasbot.study import Study
from nasbot.trial import Failed, Scored
from tests.faults.objectives import DEATHS, dying, odd, odd_returns
from tests.study.searchers import Sensitive


def test_twelve_kinds_of_death(share):
    n = len(DEATHS) * share(10)
    study = Study.in_memory(Sensitive(), seed=1)
    study.optimise(dying, n, 2, timeout_per_trial=600, max_consecutive_failures=None)
    assert len(study.history.finished) == n
    for trial in study.history:
        objective, cause = DEATHS[trial.number % len(DEATHS)]
        if cause is None:
            assert isinstance(trial.outcome, Scored), (objective, trial.outcome)
        else:
            assert isinstance(trial.outcome, Failed), objective
            assert trial.outcome.cause is cause, (objective, trial.outcome)
            assert trial.outcome.message, objective
    print(f"{n} deaths, study alive after each")


def test_forty_odd_returns():
    expected = odd_returns()
    assert len(expected) == 40
    study = Study.in_memory(Sensitive(), seed=1)
    study.optimise(odd, len(expected), 2, timeout_per_trial=600, max_consecutive_failures=None)
    for trial, (_, cause) in zip(study.history, expected, strict=True):
        found = trial.outcome.cause if isinstance(trial.outcome, Failed) else None
        assert found == cause, (trial.number, trial.outcome)
    assert np.isfinite(study.history.evaluated.values).all()
    assert len(study.history.completed) == 5

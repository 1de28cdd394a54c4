"""Runaway memory and hangs: each is ended soon, and the study goes on."""

import time

from nasbot.study import Study
from nasbot.trial import Failed, FailureCause, Scored, TrialState
from tests.faults.objectives import Runaway, hanging
from tests.faults.watching import Times
from tests.study.searchers import Sensitive

HUNDRED_MEGABYTES = 100 << 20
SECONDS = 0.5


def test_twenty_runaways(tmp_path, share):
    times = Times("runaway trials, from their first allocation to their end")
    n = 2 * share(20)

    def changed(trial):
        if trial.state.is_final and isinstance(trial.outcome, Failed):
            times.add(time.monotonic() - float((tmp_path / f"{trial.number}").read_text()))

    study = Study.in_memory(Sensitive(), seed=1)
    study.optimise(
        Runaway(str(tmp_path)),
        n,
        memory_per_trial=HUNDRED_MEGABYTES,
        timeout_per_trial=300,
        max_consecutive_failures=None,
        on_change=changed,
    )
    assert len(study.history.finished) == n
    for trial in study.history.finished:  # a small share leaves some of the pool waiting
        if trial.number % 2:
            assert isinstance(trial.outcome, Scored), trial.outcome
        else:
            assert isinstance(trial.outcome, Failed), trial.number
            assert trial.outcome.cause is FailureCause.OOM, trial.outcome
    assert len(times.pairs) == n // 2
    times.check(bar=2.0)


def test_fifty_hangs(share):
    times = Times(f"hung trials beyond their limit of {SECONDS} s")

    def changed(trial):
        if trial.state is TrialState.FAILED:
            times.add(max(0.0, trial.seconds - SECONDS))

    n = share(50)
    study = Study.in_memory(Sensitive(), seed=1)
    study.optimise(hanging, n, 2, timeout_per_trial=SECONDS, max_consecutive_failures=None, on_change=changed)
    assert [trial.outcome.cause for trial in study.history.finished] == [FailureCause.TIMEOUT] * n
    times.check(bar=6.0)

"""What a search has spent of its budget: by the study's clock, and by what that forgets."""

import time

import pytest
from sklearn.datasets import load_wine

import nasbot
from nasbot.automl import driving, plan
from nasbot.automl.driving import _Clock
from nasbot.study import Budget


class Study:
    seconds = 0.0

    def elapsed(self):
        return self.seconds


def test_what_passes_between_the_runs_of_a_study_counts():
    study, now = Study(), [100.0]
    clock = _Clock(study, lambda: now[0], 2.0)
    assert clock.spent() == 2.0  # between planning and driving
    assert clock.as_the_study_counts(Budget(5, 10.0)) == Budget(5, 8.0)
    study.seconds, now[0] = 6.0, 106.0
    clock.see()
    assert clock.spent() == 8.0
    study.seconds = 4.0  # the run is over; the study forgets what passed after its last record
    now[0] += 3.0  # and that somebody chose an ensemble
    assert clock.spent() == 11.0
    assert clock.as_the_study_counts(Budget(None, 15.0)) == Budget(None, 15.0 - 7.0)
    study.seconds, now[0] = 6.5, now[0] + 100.0  # a pause, which the study leaves out
    clock.see()
    assert clock.spent() == 13.5


def test_a_budget_in_trials_is_what_it_is():
    assert _Clock(Study(), lambda: 0.0, 2.0).as_the_study_counts(Budget(5)) == Budget(5)


def test_asking_how_long_refits_take_takes_from_the_refits(monkeypatch):
    """Whatever the machine does meanwhile: what it takes longer leaves less."""
    slow, left = 1.0, []

    def asked(*args):
        time.sleep(slow)
        return 1e6

    monkeypatch.setattr(plan, "SECONDS_FOR_A_LOOK", 1.0)
    monkeypatch.setattr(driving, "seconds_for_refits", asked)
    monkeypatch.setattr(driving, "refit_model", lambda *args, seconds, **options: left.append(seconds))
    nasbot.search(*load_wine(return_X_y=True), budget="4s", name=None, workers=1)
    assert left == [pytest.approx(0.0, abs=(1 - plan.ASSEMBLING_SHARE - plan.LOOK_SHARE) * 4.0 - slow)]

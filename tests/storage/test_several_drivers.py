"""Drivers in processes of their own on one study; tests/faults has many more of them."""

import numpy as np
import pytest

from nasbot.study import StudyView
from tests.storage.crew import Crew
from tests.study.searchers import Sensitive


@pytest.fixture
def where(request):
    return f"{request.getfixturevalue('database')}#crew"


@pytest.fixture
def crew(where, tmp_path):
    made = Crew(where, tmp_path, n=3, budget=24, seconds=0.05)
    yield made
    made.dismiss()


def test_drivers_are_killed_and_the_server_is_restarted(crew, postgres):
    rng = np.random.default_rng(0)
    crew.wait_for(4)
    crew.kill_one(rng)
    crew.wait_for(10)
    crew.wait_until_ready()
    postgres.stop("immediate")
    postgres.start()
    crew.wait_for(14)
    crew.kill_one(rng)
    crew.finish()
    found = crew.audit()
    died = found.pop("died")
    assert found == {"trials": 24, "killed": 2} | dict.fromkeys(
        ("lost", "twice", "running", "waiting", "repeated", "open runs"), 0
    )
    assert died <= 2
    with StudyView.read(crew.where, searcher=Sensitive()) as study:
        for trial, proposal in study.replay():
            assert proposal.candidate == trial.candidate, f"trial {trial.number} is not what its history gives"

"""Several drivers of one study, in one process, each with a storage of its own."""

import pytest

from nasbot.errors import ClaimLostError, OptionError, StudyError
from nasbot.storage import RequestKind, RunState, post_request
from nasbot.study import Study, StudyState, StudyView
from nasbot.trial import TrialState
from tests.study.objectives import score
from tests.study.searchers import Sensitive


@pytest.fixture
def address(database):
    return f"{database}#study"


@pytest.fixture
def drivers(address):
    opened = [Study.open(address, Sensitive(), seed=3, shared=True) for _ in range(3)]
    yield opened
    for study in opened:
        study.close()


def test_nothing_is_asked_for_twice_and_everything_can_be_replayed(drivers, address):
    asked = [study.ask() for _ in range(3) for study in drivers]
    assert [trial.number for trial in asked] == list(range(9))
    assert len({trial.candidate.fingerprint for trial in asked}) == 9
    for i, trial in reversed(list(enumerate(asked))):
        drivers[i % 3].tell(trial, score(trial.arch))
    drivers[0].ask()
    with StudyView.read(address, searcher=Sensitive()) as view:
        assert [trial.number for trial in view.history.finished] == list(range(9))[::-1]
        assert len(list(view.replay())) == 7
        assert all(proposal.candidate == trial.candidate for trial, proposal in view.replay())


def test_a_trial_is_told_by_who_asked_for_it(drivers):
    trial = drivers[0].ask()
    with pytest.raises(ClaimLostError, match="another driver's"):
        drivers[1].tell(trial, 1.0)
    assert drivers[0].tell(trial, 1.0).value == 1.0
    with pytest.raises(StudyError, match="told once"):
        drivers[1].tell(trial, 1.0)


def test_the_budget_is_the_studys(drivers):
    for study in drivers:
        study.optimise(score, 5)
    assert len(drivers[0].history) == 5
    assert [len(study.history.finished) for study in drivers] == [5, 5, 5]


def test_a_driver_stays_while_others_run(drivers, monkeypatch):
    """All the budget is begun, one of it elsewhere: whoever is left waits, because it may come back."""
    theirs = drivers[1].ask()
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            drivers[1].close()  # leaves without having told

    monkeypatch.setattr("nasbot.study.loop.time.sleep", sleep)
    drivers[0].optimise(score, 4)
    assert len(waited) >= 3
    assert drivers[0].history[theirs.number].state is TrialState.COMPLETED
    assert drivers[0].history[theirs.number].interruptions == 1
    assert len(drivers[0].history) == 4


def test_stop_is_for_all_and_cancel_for_its_own(drivers, address):
    first, second, _ = drivers
    theirs = second.ask()
    post_request(address, RequestKind.CANCEL, theirs.number)
    n_evaluated = 0

    def objective(arch):
        nonlocal n_evaluated
        n_evaluated += 1
        if n_evaluated == 2:
            post_request(address, RequestKind.STOP)
        return score(arch)

    first.optimise(objective, 50)
    assert first.was_stopped
    assert n_evaluated == 2
    assert first.history[theirs.number].state is TrialState.RUNNING  # left to its driver
    assert [request.kind for request in second._driver.requests()] == [RequestKind.CANCEL, RequestKind.STOP]


def test_status_knows_all_drivers(drivers, address):
    for study in drivers[:2]:
        study.ask()
    status = drivers[2].status()
    assert (status.state, status.n_drivers, status.n_runs) == (StudyState.RUNNING, 2, 2)
    assert status.driver.startswith("2 drivers, the last to join process")
    drivers[1].close()
    assert [run.state for run in drivers[0].runs] == [RunState.RUNNING, RunState.ENDED]
    assert drivers[2].status().state is StudyState.RUNNING
    assert drivers[2].status().n_drivers == 1


def test_a_file_has_one_driver(tmp_path):
    with pytest.raises(OptionError, match="expected the address of a database"):
        Study.open(tmp_path / "study.sqlite", Sensitive(), shared=True)
    assert not (tmp_path / "study.sqlite").exists()


def test_whoever_proposes_while_a_trial_is_added_proposes_again(address):
    """The turn to propose may be lost with the connection, and trials are also added by hand."""

    class Interfered(Sensitive):
        other = None

        def propose(self, history, *, rng):
            proposal = super().propose(history, rng=rng)
            if self.other is not None:
                other, Interfered.other = self.other, None
                other.add(proposal.candidate, 7.0)
            return proposal

    first, second = (Study.open(address, Interfered(), pool=[], shared=True) for _ in range(2))
    with first as study, second as other:
        Interfered.other = other
        trial = study.ask()
        assert trial.number == 1
        assert [t.value for t in study.history] == [7.0, None]
        assert study.history[0].candidate != trial.candidate

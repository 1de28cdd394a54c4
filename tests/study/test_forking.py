"""Other settings, a new study, and as much of the old one as still holds."""

import pytest

from nasbot.architecture.space import SearchSpace
from nasbot.errors import FileError, StudyError
from nasbot.study import Study, StudyView
from nasbot.trial import Provenance
from tests.study.objectives import score
from tests.study.searchers import Sensitive


def fails_twice(arch, trial):
    if trial.number in (1, 4):
        raise ValueError
    trial.report(1, score(arch) / 2)
    return score(arch)


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old.sqlite"
    with Study.open(path, Sensitive(), seed=1, context={"data": "mine"}) as study:
        study.optimise(fails_twice, 9)
    return path


def test_a_fork_begins_with_the_completed_trials(old, tmp_path):
    new = tmp_path / "new.sqlite"
    with pytest.raises(StudyError, match=r"seed: stored 1, given 2\n.*fork it"):
        Study.open(old, Sensitive(), seed=2, context={"data": "mine"})
    before = old.read_bytes()
    with (
        StudyView.read(old) as view,
        Study.open(old, Sensitive(n_layers=9), seed=2, context={"data": "mine"}, fork=new) as study,
    ):
        taken = study.history.completed
        assert [t.value for t in taken] == [t.value for t in view.history.completed]
        assert [t.arch for t in taken] == [t.arch for t in view.history.completed]
        assert [t.curve for t in taken] == [t.curve for t in view.history.completed]
        assert taken[1].origin == Provenance(searcher="fork", of_study=str(old), of_trial=2)
        waiting = study.history.pending
        assert [t.arch for t in waiting] == [view.history[1].arch]  # of the pool, the one that failed
        study.optimise(score, 10)
        assert len(study.history.finished) == 10
        assert all(proposal.arch == trial.arch for trial, proposal in study.replay())
    assert old.read_bytes() == before
    with Study.open(old, Sensitive(n_layers=9), seed=2, context={"data": "mine"}, fork=new) as study:
        assert len(study.history.finished) == 10  # the same call resumes


def test_values_of_another_context_are_not_valid(old, tmp_path):
    with Study.open(old, Sensitive(), seed=1, context={"data": "other"}, fork=tmp_path / "new.sqlite") as study:
        assert len(study.history.completed) == 0
        assert len(study.history.pending) == 3


def test_networks_outside_the_new_space_stay_behind(old, tmp_path):
    with StudyView.read(old) as view:
        sizes = [len(trial.arch.layers) for trial in view.history.completed]
        limit = sorted(sizes)[len(sizes) // 2]
        narrow = Sensitive(SearchSpace("mlp-reg", max_layers=limit), n_pool=0)
        fits = [trial.arch for trial in view.history.completed if len(trial.arch.layers) <= limit]
    assert 0 < len(fits) < len(sizes)
    with Study.open(old, narrow, context={"data": "mine"}, fork=tmp_path / "new.sqlite") as study:
        assert [trial.arch for trial in study.history] == fits


def test_another_direction_leaves_the_values_as_they_are(old, tmp_path):
    new = tmp_path / "new.sqlite"
    options = {"seed": 1, "context": {"data": "mine"}, "direction": "minimise"}
    with Study.open(old, Sensitive(), fork=new, **options) as study, StudyView.read(old) as view:
        assert study.best_value == min(trial.value for trial in view.history.completed)
        assert study.history[0].curve == view.history[0].curve


def test_there_must_be_something_to_fork(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        Study.open(tmp_path / "absent.sqlite", Sensitive(), fork=tmp_path / "new.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_running_study_can_be_forked(old, tmp_path):
    with Study.open(old, Sensitive(), seed=1, context={"data": "mine"}) as driver:
        driver.ask()
        with Study.open(old, Sensitive(), seed=5, context={"data": "mine"}, fork=tmp_path / "new.sqlite") as study:
            assert len(study.history.completed) == len(driver.history.completed)

"""Studies on rungs: replays, many workers, objectives that do not look, and what people get wrong."""

import logging
import math
from itertools import pairwise

import numpy as np
import pytest

import nasbot
from nasbot import Fidelity, SearchSpace, Study
from nasbot._rng import Role, stream
from nasbot.errors import OptionError, StudyError
from nasbot.execution import SimulatedExecutor
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
from nasbot.searchers.promotion import by_rank, next_rung
from nasbot.study.settings import fidelity_of_settings
from nasbot.trial import FailureCause
from tests.faults.rung_kills import survive
from tests.searchers.problems import made
from tests.study.objectives import score

RUNGS = Fidelity()
CANNOT_SEE = "the objective takes no argument named trial"


def timed(arch, trial):
    """A value that grows with the training, and the time it takes: in proportion, and by luck."""
    luck = stream(5, trial.number, Role.DURATION).lognormal(0.0, 0.5)
    return score(arch) + math.log(trial.fidelity), trial.fidelity * luck


def run(searcher, budget, workers):
    study = Study.in_memory(searcher, seed=4)
    study.optimise(timed, budget, executor=SimulatedExecutor(workers))
    return study


@pytest.mark.parametrize(
    ("kind", "trials", "fidelity"),
    [
        (NASBOT, 22, RUNGS),
        (NASBOT, 22, "boca"),
        (RandomSearch, 60, RUNGS),
        (EvolutionSearch, 60, RUNGS),
        (TreeBO, 30, RUNGS),
    ],
)
def test_the_log_of_four_workers_replays_to_the_same_promotions(kind, trials, fidelity):
    study = run(made(kind, fidelity=fidelity), trials, 4)
    replayed = list(study.replay())
    assert sum(trial.promoted_from is not None for trial, _ in replayed) >= 3
    for trial, proposal in replayed:
        asked = (proposal.candidate, proposal.fidelity, proposal.promoted_from)
        assert asked == (trial.candidate, trial.fidelity, trial.promoted_from)


@pytest.mark.parametrize(("kind", "until"), [(RandomSearch, 6.0), (EvolutionSearch, 30.0)])
def test_eight_workers_hardly_ever_wait(kind, until):
    history = run(made(kind, fidelity=RUNGS), f"{until}s", 8).history
    assert {trial.fidelity for trial in history} == set(RUNGS.rungs)
    busy = sum(min(trial.finished, until) - trial.started for trial in history.completed)
    assert busy >= 0.95 * 8 * until


def test_no_rung_is_repeated_and_the_best_of_each_go_on():
    history = run(made(RandomSearch, fidelity=RUNGS), 80, 4).history
    pairs = [(trial.candidate.fingerprint, trial.fidelity) for trial in history]
    assert len(set(pairs)) == len(pairs)
    for trial in history:
        if trial.promoted_from is not None:
            before = history.at_proposal(trial.number)
            assert by_rank(before, RUNGS).number == trial.promoted_from
            assert next_rung(RUNGS, before[trial.promoted_from].fidelity) == trial.fidelity


# -- objectives that do not look ---------------------------------------------------------------------------------------


def test_an_objective_that_ignores_fidelity_is_told_once_and_searched_without(caplog):
    space = SearchSpace("mlp-reg")
    with caplog.at_level(logging.WARNING, logger="nasbot"):
        searcher = RandomSearch(space=space, fidelity=RUNGS)
        study = nasbot.maximise(score, space, searcher=searcher, trials=25, name=None)
    assert [CANNOT_SEE in record.getMessage() for record in caplog.records] == [True]
    plain = nasbot.maximise(score, space, searcher=RandomSearch(space=space), trials=25, name=None)
    assert {trial.fidelity for trial in study.history} == {1.0}
    assert [trial.arch for trial in study.history] == [trial.arch for trial in plain.history]


def test_a_study_that_has_rungs_already_keeps_them_and_says_so(caplog):
    study = Study.in_memory(made(RandomSearch, fidelity=RUNGS))
    with caplog.at_level(logging.WARNING, logger="nasbot"):
        study.optimise(score, 6)
    assert [CANNOT_SEE in record.getMessage() for record in caplog.records] == [True]
    assert {trial.fidelity for trial in study.history} == {RUNGS.rungs[0], 1.0}
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="nasbot"):
        study.optimise(lambda arch, trial: 1.0, 7)
    assert not caplog.records


# -- what people get wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"least": 0}, "between 0 and 1, got 0"),
        ({"least": 1}, "between 0 and 1, got 1"),
        ({"least": 9}, "between 0 and 1, got 9"),
        ({"least": -1 / 9}, "between 0 and 1, got -0.1"),
        ({"least": math.nan}, "between 0 and 1, got nan"),
        ({"least": "1/9"}, "the least share of a training as a number, got '1/9'"),
        ({"least": (1 / 9, 1 / 3, 1)}, "the least share of a training as a number"),
        ({"factor": 1}, "finite factor above 1 between rungs, got 1"),
        ({"factor": 1 / 3}, "finite factor above 1 between rungs, got 0.33"),
        ({"factor": math.inf}, "finite factor above 1 between rungs, got inf"),
        ({"factor": None}, "a factor between rungs as a number, got 'None'"),
        ({"of": "epochs"}, "of='steps' or 'rows', got 'epochs'"),
    ],
)
def test_rungs_that_cannot_be_meant(options, message):
    with pytest.raises(OptionError, match=f"^fidelity: expected .*{message}"):
        Fidelity(**options)


def test_rungs_ascend_from_the_least_to_1():
    for least in (0.9, 0.5, 1 / 4, 1 / 9, 1 / 27, 0.01):
        for factor in (1.5, 2, 3, 10):
            rungs = Fidelity(least, factor).rungs
            assert rungs[0] == least
            assert rungs[-1] == 1.0
            assert all(low < high for low, high in pairwise(rungs))


@pytest.mark.parametrize(
    ("kind", "fidelity", "is_least"),
    [(NASBOT, RUNGS, False), (NASBOT, "boca", True), (RandomSearch, RUNGS, True), (RandomSearch, RUNGS, False)],
)
def test_an_objective_that_raises_at_one_fidelity_loses_nothing_else(kind, fidelity, is_least):
    def objective(arch, trial):
        is_wrong = int(arch.fingerprint[0], 16) % 2 if is_least else trial.fidelity > 0.2
        if trial.fidelity < 1 and is_wrong:
            raise ValueError("not for this long")
        return score(arch) + math.log(trial.fidelity)

    study = Study.in_memory(made(kind, fidelity=fidelity), seed=1)
    study.optimise(objective, 24, max_consecutive_failures=None)
    history = study.history
    assert len(history.finished) == 24
    assert history.failed
    for trial in history.failed:
        assert trial.outcome.cause is FailureCause.EXCEPTION
        assert "not for this long" in trial.outcome.message
        later = [t for t in history if t.candidate == trial.candidate and t.number > trial.number]
        assert later == []
    assert history.best.value == max(score(trial.arch) for trial in history.completed if trial.fidelity == 1)


def test_a_run_that_fails_at_one_fidelity_alone_says_at_which():
    def objective(arch, trial):
        if trial.fidelity < 0.2:
            raise ValueError("too few epochs for the schedule")
        return score(arch)

    study = Study.in_memory(made(RandomSearch, fidelity=RUNGS), seed=1)
    said = r"3 trials in a row failed \(3 exception, all at 1/9 of a training\); the last: .*too few epochs"
    with pytest.raises(StudyError, match=said):
        study.optimise(objective, 24, max_consecutive_failures=3)
    assert study.history.best is not None


def test_another_fidelity_is_refused_and_nothing_is_lost(tmp_path):
    path = tmp_path / "study.sqlite"
    with Study.open(path, made(RandomSearch, fidelity=RUNGS)) as study:
        study.optimise(lambda arch, trial: score(arch), 8)
        before = study.history
    for other in (None, Fidelity(1 / 4, 2), Fidelity(of="rows")):
        with pytest.raises(StudyError, match=r"(?s)begun with other settings.*fidelity.*fork"):
            Study.open(path, made(RandomSearch, fidelity=other))
    with Study.open(path, made(RandomSearch, fidelity=RUNGS)) as study:
        assert list(study.history) == list(before)


def test_a_driver_that_is_killed_on_rungs_goes_on_as_if_it_had_not_been(tmp_path):
    """Three of the kills of ``tests/faults/test_rungs.py``."""
    survive(tmp_path, np.random.default_rng(3), 3, workers=1)


def test_the_fidelity_of_stored_settings():
    assert fidelity_of_settings({}) is None
    assert fidelity_of_settings({"fidelity": None}) is None
    assert fidelity_of_settings({"fidelity": {"least": 0.25, "factor": 2.0}}) == Fidelity(0.25, 2.0)
    for forged in ({"least": 7.0}, {"other": 1}, 3):
        with pytest.raises(StudyError, match="fidelity of the stored settings"):
            fidelity_of_settings({"fidelity": forged})

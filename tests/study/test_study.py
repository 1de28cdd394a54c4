"""Asking, telling, looping, stopping: what a study does with good and bad news."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from nasbot._rng import Role, stream
from nasbot.architecture import initial_pool
from nasbot.architecture.space import SearchSpace
from nasbot.errors import (
    ExhaustedError,
    FailingError,
    NasbotError,
    OptionError,
    OutsideSpaceError,
    StudyError,
    VocabularyError,
)
from nasbot.execution import SimulatedExecutor
from nasbot.study import Budget, Study
from nasbot.testing.networks import relabelled
from nasbot.trial import Cancelled, Failed, FailureCause, Scored
from tests.study.objectives import curve, score, simulated
from tests.study.searchers import Explaining, Finite, Repeating, Sensitive, Straying

POOL = initial_pool("mlp-reg")


@pytest.fixture
def study() -> Study:
    return Study.in_memory(Sensitive(), seed=5)


# -- ask and tell ------------------------------------------------------------------------------------------------------


def test_the_pool_first_then_proposals(study):
    for n in range(5):
        trial = study.ask()
        assert (trial.number, trial.state) == (n, "running")
        assert trial.origin.searcher == ("pool" if n < 3 else "sensitive")
        if n < 3:
            assert trial.arch == POOL[n]
        assert study.tell(trial, score(trial.arch)).value == score(trial.arch)
    assert study.best.value == max(score(t.arch) for t in study.history)
    assert [t.proposed_after for t in study.history] == [0, 0, 0, 3, 4]


def test_several_may_be_asked_for_and_told_in_any_order(study):
    first, second, third, fourth = (study.ask() for _ in range(4))
    assert fourth.proposed_after == 0
    study.tell(third, 1.0)
    study.tell(first.number, 2.0)
    study.tell(fourth, Failed(FailureCause.REFUSED, "too big"))
    study.tell(second, Cancelled("not needed"))
    assert [t.number for t in study.history.finished] == [2, 0, 3, 1]


def test_telling_twice(study):
    trial = study.ask()
    study.tell(trial, 1.0)
    with pytest.raises(StudyError, match="trial 0 is completed already; an outcome is told once"):
        study.tell(trial, 2.0)
    assert study.history[0].value == 1.0


@pytest.mark.parametrize("number", [99, -1, "0", None, 1.0, True])
def test_telling_an_unknown_trial(study, number):
    with pytest.raises(StudyError, match="there is no trial"):
        study.tell(number, 1.0)


def test_telling_a_trial_that_was_not_asked_for(study):
    with pytest.raises(StudyError, match="trial 1 is waiting and was not asked for"):
        study.tell(1, 1.0)


def test_telling_a_trial_of_another_study(study):
    study.ask()
    stranger = Study.in_memory(Sensitive(), pool=POOL[5:]).ask()
    with pytest.raises(StudyError, match="not from here"):
        study.tell(stranger, 1.0)


def test_reports_make_a_curve(study):
    trial = study.ask()
    study.report(trial, 1, 0.5)
    study.report(trial, 2, math.nan)
    study.report(trial, 2, 0.75)
    study.tell(trial, 1.0)
    assert study.history[0].curve == ((1, 0.5), (2, 0.75))


def test_each_proposal_has_the_stream_of_its_number():
    draws = {}

    class Drawing(Sensitive):
        def propose(self, history, *, rng):
            draws[len(history)] = rng.bit_generator.state
            return super().propose(history, rng=rng)

    study = Study.in_memory(Drawing(), seed=21)
    for _ in range(6):  # none is told, so numbers and outcomes differ
        study.ask()
    assert draws == {n: stream(21, n, Role.PROPOSAL).bit_generator.state for n in (3, 4, 5)}


# -- odd values --------------------------------------------------------------------------------------------------------


class Odd(float):
    def __float__(self):
        raise RuntimeError("not today")


class Unshowable:
    def __repr__(self):
        raise RuntimeError("no")


ODD_FAILURES = [
    (math.nan, FailureCause.NAN),
    (math.inf, FailureCause.NAN),
    (-math.inf, FailureCause.NAN),
    (np.float32("nan"), FailureCause.NAN),
    (np.array(math.nan), FailureCause.NAN),
    (10**400, FailureCause.NAN),
    (Decimal("NaN"), FailureCause.NAN),
    (None, FailureCause.EXCEPTION),
    ("0.5", FailureCause.EXCEPTION),
    (b"0.5", FailureCause.EXCEPTION),
    (True, FailureCause.EXCEPTION),
    (np.bool_(True), FailureCause.EXCEPTION),
    (1 + 2j, FailureCause.EXCEPTION),
    ([1.0], FailureCause.EXCEPTION),
    ((1.0, 2.0), FailureCause.EXCEPTION),
    ({"value": 1.0}, FailureCause.EXCEPTION),
    (np.array([1.0]), FailureCause.EXCEPTION),
    (object(), FailureCause.EXCEPTION),
    (Unshowable(), FailureCause.EXCEPTION),
    (print, FailureCause.EXCEPTION),
    (Odd(1.0), FailureCause.EXCEPTION),
    (Failed(FailureCause.TIMEOUT, "too slow"), FailureCause.TIMEOUT),
]


@pytest.mark.parametrize(("returned", "cause"), ODD_FAILURES, ids=lambda value: type(value).__name__)
def test_odd_returns_fail_the_trial_and_the_study_goes_on(study, returned, cause):
    returns = iter([returned, 1.0])
    study.optimise(lambda arch: next(returns), Budget(trials=2))
    first, second = study.history.finished
    assert isinstance(first.outcome, Failed)
    assert first.outcome.cause is cause
    assert first.outcome.message
    assert second.value == 1.0
    assert np.isfinite(study.history.evaluated.values).all()


@pytest.mark.parametrize(
    "returned", [1, 1.0, np.float32(1), np.int64(1), np.array(1.0), Fraction(1), Decimal(1), Scored(1.0)]
)
def test_numbers_of_many_kinds_are_scores(study, returned):
    study.optimise(lambda arch: returned, 1)
    assert study.history[0].value == 1.0


def test_an_exception_is_kept_with_its_traceback(study):
    study.optimise(lambda arch: 1 / 0, 1)
    outcome = study.history[0].outcome
    assert outcome.message == "ZeroDivisionError: division by zero"
    assert "test_study.py" in outcome.details["traceback"]


# -- the loop ----------------------------------------------------------------------------------------------------------


def test_the_budget_is_a_total(study):
    study.optimise(score, 4)
    assert len(study.history.finished) == 4
    study.optimise(score, 4)
    assert len(study.history.finished) == 4
    study.optimise(score, "6 trials")
    assert len(study.history.finished) == 6


def test_a_budget_smaller_than_the_pool(study):
    study.optimise(score, 2)
    assert [t.state for t in study.history] == ["completed", "completed", "waiting"]


def test_a_budget_in_seconds_is_a_total_too(study):
    study.optimise(score, "25s", executor=SimulatedExecutor(2, duration=lambda arch: 10.0))
    assert len(study.history.finished) == 6  # begun at 0, 10 and 20, on two workers
    assert study.elapsed() == 30.0
    study.optimise(score, "25s", executor=SimulatedExecutor(2, duration=lambda arch: 10.0))
    assert len(study.history) == 6
    study.optimise(score, "35s", executor=SimulatedExecutor(1, duration=lambda arch: 10.0))
    assert [t.started for t in study.history] == [0.0, 0.0, 10.0, 10.0, 20.0, 20.0, 30.0]


def test_overtime_cuts_short_and_the_trial_waits_for_more_budget(study):
    executor = SimulatedExecutor(1, duration=lambda arch: 10.0)
    study.optimise(score, "15s", executor=executor, overtime=2.0)
    assert [t.state for t in study.history] == ["completed", "waiting", "waiting"]
    assert executor.now() == 17.0
    study.optimise(score, "1000s", executor=SimulatedExecutor(1, duration=lambda arch: 400.0))
    assert study.history[1].state == "completed"


@pytest.mark.parametrize("budget", [0, "0 trials", "0s", -1, "5 minuts"])
def test_a_budget_of_nothing(study, budget):
    with pytest.raises(OptionError, match="budget"):
        study.optimise(score, budget)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": -2}, "workers"),
        ({"workers": "2"}, "workers"),
        ({"timeout_per_trial": 0}, "limit on seconds"),
        ({"memory_per_trial": -5}, "limit on memory"),
        ({"max_consecutive_failures": 0}, "max_consecutive_failures"),
        ({"overtime": -1.0}, "overtime"),
        ({"workers": 2, "executor": SimulatedExecutor(2)}, "an executor that is given has its own"),
    ],
)
def test_options_that_cannot_be_meant(study, options, words):
    with pytest.raises(OptionError, match=words):
        study.optimise(score, 3, **options)
    assert not study.history.finished


def test_a_free_worker_gets_its_next_network_at_once(study):
    seconds = iter([100.0, 10.0, 10.0, 10.0, 10.0, 10.0])
    study.optimise(lambda arch: (score(arch), next(seconds)), 6, executor=SimulatedExecutor(2))
    assert [t.started for t in study.history] == [0.0, 0.0, 10.0, 20.0, 30.0, 40.0]
    assert [t.number for t in study.history.finished] == [1, 2, 3, 4, 5, 0]


def test_every_change_is_told(study):
    seen = []
    study.optimise(curve, 2, on_change=lambda trial: seen.append((trial.number, str(trial.state), len(trial.curve))))
    one = [("running", 0), ("running", 2), ("completed", 2)]
    assert seen == [(n, *change) for n in (0, 1) for change in one]


def test_failures_in_a_row_end_the_run(study):
    with pytest.raises(FailingError, match=r"3 trials in a row failed \(3 exception\); the last: ValueError: broken"):
        study.optimise(broken, 50)
    assert len(study.history.failed) == 3
    with pytest.raises(FailingError):  # another run has another chance
        study.optimise(broken, 50, max_consecutive_failures=2)
    assert len(study.history.failed) == 5
    study.optimise(broken, 20, max_consecutive_failures=None)
    assert len(study.history.failed) == 20


def broken(arch):
    raise ValueError("broken")


def test_failures_between_successes_do_not(study):
    values = iter([math.nan, math.nan, 1.0] * 4)
    study.optimise(lambda arch: next(values), 12)
    assert len(study.history.failed) == 8


def test_an_interrupt_leaves_nothing_running(study):
    values = iter([1.0])

    def objective(arch):
        try:
            return next(values)
        except StopIteration:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt):
        study.optimise(objective, 10)
    assert [t.state for t in study.history] == ["completed", "waiting", "waiting"]
    assert study.history[1].interruptions == 1
    study.optimise(score, 4)
    assert [t.number for t in study.history.finished] == [0, 1, 2, 3]


def test_a_broken_callback_leaves_nothing_running(study):
    executor = SimulatedExecutor(3, duration=lambda arch: 1.0)
    with pytest.raises(ZeroDivisionError):
        study.optimise(score, 10, executor=executor, on_change=lambda trial: 1 / (trial.state == "running"))
    assert study.history.finished
    assert not [t for t in study.history if t.state == "running"]


# -- searchers ---------------------------------------------------------------------------------------------------------


def test_an_exhausted_space_ends_the_run_after_what_is_running():
    study = Study.in_memory(Finite())
    with pytest.raises(ExhaustedError, match="exhausted"):
        study.optimise(simulated, 50, executor=SimulatedExecutor(4))
    assert len(study.history.completed) == 5


@pytest.mark.parametrize(("searcher", "words"), [(Repeating(), "again"), (Straying(), "outside its domain")])
def test_a_searcher_that_breaks_its_promises_is_named(searcher, words):
    study = Study.in_memory(searcher)
    with pytest.raises(StudyError, match=f"sensitive proposed a candidate .*{words}"):
        study.optimise(score, 10)
    assert len(study.history.completed) == 3


def test_a_pool_outside_the_space():
    with pytest.raises(OutsideSpaceError, match=r"pool network 1: .*\[max_layers\]"):
        Study.in_memory(Sensitive(SearchSpace("mlp-reg", max_layers=10)), pool=(POOL[0], POOL[9]))


def test_a_pool_of_another_kind():
    with pytest.raises(VocabularyError, match="pool network 0"):
        Study.in_memory(Sensitive(), pool=initial_pool("cnn"))


def test_a_pool_with_a_network_twice(rng):
    with pytest.raises(OptionError, match="pool networks 0 and 2 are the same"):
        Study.in_memory(Sensitive(), pool=(POOL[0], POOL[1], relabelled(POOL[0], rng=rng)))


def test_a_pool_of_something_else():
    with pytest.raises(OptionError, match="expected an Architecture, got str"):
        Study.in_memory(Sensitive(), pool=("relu",))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_an_empty_pool():
    study = Study.in_memory(Sensitive(), pool=())
    study.optimise(score, 2)
    assert [t.origin.searcher for t in study.history] == ["sensitive"] * 2
    assert all(t.origin.seconds["deciding"] >= 0 for t in study.history)


def test_beliefs_are_the_searchers():
    study = Study.in_memory(Explaining(), seed=3)
    study.optimise(score, 6)
    kind, n_before, number, draw = study.explain(4)
    assert (kind, n_before, number) == ("explained", 4, 4)
    assert study.explain(study.history[4])[3] == draw
    assert study.what_if() == ("what if", 6)


def test_a_searcher_without_beliefs_says_so(study):
    study.optimise(score, 1)
    with pytest.raises(StudyError, match="sensitive has no beliefs to explain"):
        study.explain(0)
    with pytest.raises(StudyError, match="no beliefs"):
        study.what_if()
    with pytest.raises(StudyError, match="there is no trial 77"):
        study.explain(77)


# -- direction ---------------------------------------------------------------------------------------------------------


def test_values_are_kept_as_the_objective_gave_them():
    study = Study.in_memory(Sensitive(), direction="minimise")
    values = iter([3.0, 1.0, 0.0, 2.0])
    study.optimise(lambda arch, trial: trial.report(1, 5.0) or next(values), 4)
    assert study.best.number == 2
    assert study.best_value == 0.0
    assert study.best.value == 0.0
    assert [t.value for t in study.history] == [3.0, 1.0, 0.0, 2.0]
    assert study.history.evaluated.values.tolist() == [-3.0, -1.0, 0.0, -2.0]
    assert study.history[0].curve == ((1, 5.0),)


def test_another_direction():
    with pytest.raises(OptionError, match="maximise or minimise"):
        Study.in_memory(Sensitive(), direction="sideways")


@pytest.mark.parametrize("seed", [-1, 1.5, "x", 2**64])
def test_another_seed(seed):
    with pytest.raises(NasbotError, match="seed"):
        Study.in_memory(Sensitive(), seed=seed)

"""Limits, defaults and last cases of what a study is made of, one by one."""

import json
import os
import socket
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.errors import OptionError, StudyError
from nasbot.execution import SimulatedExecutor
from nasbot.pacing import Bar
from nasbot.searchers import NASBOT, RandomSearch
from nasbot.storage import MemoryStorage, Presence, Request, RequestKind, Run, RunState
from nasbot.study import Budget, Study, StudyState, StudyView
from nasbot.study import loop as loop_module
from nasbot.study import view as view_module
from nasbot.study.budget import UNITS, parse_seconds
from nasbot.study.forking import Fork
from nasbot.study.loop import Loop
from nasbot.study.optimise import known_pairs, tell_known
from nasbot.study.progress import _Lines, with_progress
from nasbot.study.rebuilding import as_begun, searcher_of_study
from nasbot.study.requests import Asked, ask_study, changed_trial, check_request, how_to_go_on, in_words
from nasbot.study.runs import is_ours, new_run, numeric_differences
from nasbot.study.settled import LEAST, N_LAST, N_NEXT, Outlook
from nasbot.study.status import StudyStatus, budget_of, status_of
from nasbot.study.study import _created
from nasbot.study.view import _batch_of, known_trial
from nasbot.trial import (
    Cancelled,
    Direction,
    Failed,
    FailureCause,
    History,
    Provenance,
    Scored,
    Stopped,
    Trial,
)
from tests.searchers.problems import made
from tests.study.objectives import score, simulated
from tests.study.searchers import Sensitive

POOL = initial_pool("mlp-reg")
STOPPED = Stopped(step=2, value=1.0, bar=2.0, expected=1.5, share=0.5, place=3, among=4)
FAILED = Failed(FailureCause.EXCEPTION, "no\nand more")

# -- budgets -----------------------------------------------------------------------------------------------------------


def test_every_unit():
    seconds = {"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1}
    seconds |= {"m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60}
    seconds |= {"h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400}
    assert {**seconds, "days": 86400} == UNITS
    for unit, each in seconds.items():
        assert parse_seconds(f"3{unit}") == 3 * each


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(seconds=60), "1 minute"),
        (Budget(seconds=120), "2 minutes"),
        (Budget(seconds=61), "61 seconds"),
        (Budget(seconds=1), "1 second"),
        (Budget(seconds=0.5), "0.5 seconds"),
        (Budget(seconds=5400), "90 minutes"),
        (Budget(seconds=2 * 86400), "2 days"),
        (Budget(2, 3600.0), "2 trials or 1 hour"),
    ],
)
def test_budgets_in_words(budget, said):
    assert str(budget) == said


def test_a_budget_ends_with_the_first_of_its_two():
    assert not Budget(trials=1).is_spent(trials=0, seconds=1e9)
    assert not Budget(seconds=1.0).is_spent(trials=10**6, seconds=0.99)
    assert Budget(seconds=1.0).is_spent(trials=0, seconds=1.0)


@pytest.mark.parametrize("seconds", [True, 0, -1.0, float("inf"), float("nan")])
def test_seconds_that_are_none(seconds):
    with pytest.raises(OptionError, match="longer than 0 seconds"):
        Budget(seconds=seconds)


@pytest.mark.parametrize("trials", [True, 0, 1.0])
def test_trials_that_are_none(trials):
    with pytest.raises(OptionError, match="at least 1 trial"):
        Budget(trials=trials)


def test_what_is_quoted_of_a_mistake_is_short():
    with pytest.raises(OptionError, match="got '" + "x" * 40 + "'$"):
        Budget.of("x" * 40)
    with pytest.raises(OptionError, match="got '" + "x" * 37 + r"\.\.\.'$"):
        Budget.of("x" * 41)


# -- the loop ----------------------------------------------------------------------------------------------------------


class Standing:
    """A driver that only says how things stand."""

    def __init__(self, *, elapsed=0.0, can_be_asked=True):
        self.history, self.can_be_asked, self._elapsed = History(), can_be_asked, elapsed

    def elapsed(self):
        return self._elapsed


def loop(driver=None, executor=None, budget=None, failures=3, overtime=None):
    budget = budget or Budget(trials=1)
    return Loop(driver or Standing(), executor or SimulatedExecutor(1), budget, failures, overtime, None)


class Real:
    """An executor of real time."""


@pytest.mark.parametrize(
    ("elapsed", "asked", "executor", "expected"),
    [
        (0.0, True, Real(), 0.5),
        (11.8, True, Real(), pytest.approx(0.2)),  # until 10 + 2 seconds
        (12.0, True, Real(), 0.0),
        (99.0, True, Real(), 0.0),
        (11.8, False, Real(), pytest.approx(0.2)),
        (0.0, False, Real(), 12.0),
        (0.0, True, SimulatedExecutor(1), 12.0),
    ],
)
def test_patience_ends_with_overtime_and_when_somebody_may_have_asked(elapsed, asked, executor, expected):
    driver = Standing(elapsed=elapsed, can_be_asked=asked)
    run = loop(driver, executor, Budget(seconds=10.0), overtime=2.0)
    assert run._patience() == expected
    assert run._is_overtime() == (elapsed >= 12)


def test_patience_without_overtime():
    assert loop(Standing(), Real())._patience() == loop_module.REQUEST_SECONDS == 0.5
    assert loop(Standing(can_be_asked=False), Real())._patience() is None
    assert loop(Standing(elapsed=99.0), Real(), Budget(seconds=10.0))._time_left() is None
    assert not loop(Standing(elapsed=99.0), Real(), Budget(trials=1), overtime=2.0)._is_overtime()


@pytest.mark.parametrize(("failures", "overtime"), [(0, None), (-1, None), (3, -0.1), (3, float("nan"))])
def test_limits_of_a_run_that_cannot_be_meant(failures, overtime):
    with pytest.raises(OptionError, match=r"expected at least 1|expected seconds >= 0"):
        loop(failures=failures, overtime=overtime)


def test_limits_of_a_run_that_can():
    assert loop(failures=1, overtime=0)._is_failing() is False
    assert loop(failures=None)._is_failing() is False


def test_what_the_numbers_of_a_loop_are():
    assert {FailureCause.KILLED: 1, FailureCause.ENVIRONMENT: 3} == loop_module.RETRIES
    assert (loop_module.RECOVERY_SECONDS, loop_module.TURN_SECONDS, loop_module.FREE_FOR_BATCH) == (5.0, 0.05, 16)


def test_failures_in_a_row_are_counted_and_summed_up():
    run = loop(failures=2)
    run._failures = [(Failed(FailureCause.TIMEOUT, "\nlate"), 0.5)]
    assert not run._is_failing()
    run._failures += [(Failed(FailureCause.TIMEOUT, "\n" + "y" * 400), 0.5), (FAILED, 0.5)]
    assert run._is_failing()
    said = run._summary()
    assert said.startswith("stopped: 3 trials in a row failed (2 timeout, 1 exception, all at ")
    assert "; the last: no. 0 completed trials are kept" in said
    run._failures[-1] = (Failed(FailureCause.OOM, ""), 1.0)
    assert "all at" not in run._summary()
    assert "; the last: no message. " in run._summary()
    run._failures = [(Failed(FailureCause.OOM, "y" * 400), 1.0)]
    assert "all at" not in run._summary()
    assert "; the last: " + "y" * 300 + ". " in run._summary()


@pytest.mark.parametrize(("free", "ahead"), [(15, []), (16, [16]), (40, [30])])
def test_many_free_workers_are_proposed_for_at_once(free, ahead):
    asked = []
    driver = Standing()
    driver.propose_ahead = asked.append
    run = loop(driver, SimulatedExecutor(free), Budget(trials=30))
    run._propose_ahead()
    assert asked == ahead
    run = loop(driver, SimulatedExecutor(free), Budget(seconds=30.0))
    run._propose_ahead()
    assert asked == [*ahead, *([free] if ahead else [])]
    run.is_stopping = True
    run._propose_ahead()
    assert len(asked) == 2 * len(ahead)


def test_points_are_recorded_before_the_outcome_and_those_of_others_after_it():
    study = Study.in_memory(Sensitive(), seed=1)
    said = []
    study.optimise(simulated, 4, executor=SimulatedExecutor(2), on_change=lambda t: said.append((t.number, t.state)))
    assert [number for number, state in said if state == "running"] == [0, 1, 2, 3]
    assert [number for number, state in said if state == "completed"] == [t.number for t in study.history.finished]


def test_the_pool_is_evaluated_within_the_budget_too():
    assert len(Study.in_memory(Sensitive(), seed=1).optimise(score, 1).history.completed) == 1
    study = Study.in_memory(Sensitive(), seed=1).optimise(score, 1)
    study.optimise(score, 1)  # it is spent
    assert len(study.history.completed) == 1


# -- settled -----------------------------------------------------------------------------------------------------------


def test_what_settled_means():
    assert (N_NEXT, N_LAST, LEAST) == (20, 8, 20)
    assert not Outlook(1.0).is_settled
    assert Outlook(0.999).is_settled
    assert "at most 0.01 times" in str(Outlook(0.01))
    assert "at most less than 0.01 times" in str(Outlook(0.0099))
    assert Outlook(0.5).to_dict() == {"improvement": 0.5, "n_next": 20, "settled": True, "text": str(Outlook(0.5))}


# -- requests ----------------------------------------------------------------------------------------------------------


def history_of(*outcomes):
    """One trial for each: None one that waits, "running" one that runs."""
    trials, rank = [], 0
    for number, outcome in enumerate(outcomes):
        trial = Trial(number=number, candidate=Candidate(POOL[number]), fidelity=0.5, promoted_from=None)
        if outcome is not None:
            trial = trial.begun(float(number))
        if outcome not in (None, "running"):
            trial = trial.ended(outcome, at=number + 1.0, rank=rank)
            rank += 1
        trials.append(trial)
    return History(tuple(trials))


def retry_of(number, place, outcome):
    trial = Trial(number=place, candidate=Candidate(POOL[number]), origin=Provenance(searcher="retry", of_trial=number))
    return trial if outcome is None else trial.begun(0.0).ended(outcome, at=1.0, rank=place)


@pytest.mark.parametrize("number", [-1, 2, 99])
def test_a_request_about_no_trial(number):
    with pytest.raises(StudyError, match=f"there is no trial {number}; the study has 2, numbered from 0"):
        check_request(history_of(None, None), RequestKind.CANCEL, number)


def test_the_first_and_the_last_trial_can_be_named():
    history = history_of(None, None)
    assert [check_request(history, RequestKind.CANCEL, n).number for n in (0, 1)] == [0, 1]


@pytest.mark.parametrize("outcome", [Scored(1.0), FAILED, STOPPED, Cancelled("no")], ids=str)
def test_only_what_waits_or_runs_is_cancelled(outcome):
    with pytest.raises(StudyError, match="already; only one that waits or runs can be cancelled"):
        check_request(history_of(outcome), RequestKind.CANCEL, 0)


@pytest.mark.parametrize("outcome", [None, "running", Scored(1.0), Cancelled("no")], ids=str)
def test_only_what_failed_or_was_stopped_is_tried_again(outcome):
    with pytest.raises(StudyError, match="only one that failed or was stopped can be tried again"):
        check_request(history_of(outcome), RequestKind.RETRY, 0)


@pytest.mark.parametrize("outcome", [FAILED, STOPPED], ids=str)
def test_a_retry_is_a_trial_of_its_own(outcome):
    again, said = changed_trial(history_of(Scored(1.0), outcome), RequestKind.RETRY, 1, at=None)
    assert said == "trial 1 will be tried again, as trial 2"
    assert (again.number, again.candidate, again.fidelity, again.proposed_after) == (2, Candidate(POOL[1]), 0.5, 2)
    assert again.origin == Provenance(searcher="retry", of_trial=1)


@pytest.mark.parametrize(
    ("outcome", "may"), [(None, False), (Scored(1.0), False), (FAILED, True), (Cancelled("n"), True)]
)
def test_a_retry_of_a_retry(outcome, may):
    """Once at a time: again only after the last one failed or was cancelled."""
    history = history_of(FAILED)
    history = History((*history.trials, retry_of(0, 1, FAILED), retry_of(0, 2, outcome)))
    if may:
        assert check_request(history, RequestKind.RETRY, 0).number == 0
    else:
        with pytest.raises(StudyError, match="trial 0 is being tried again already, as trial 2"):
            check_request(history, RequestKind.RETRY, 0)


def test_the_trial_right_after_it_may_be_its_retry():
    history = History((*history_of(FAILED).trials, retry_of(0, 1, None)))
    with pytest.raises(StudyError, match="trial 0 is being tried again already, as trial 1"):
        check_request(history, RequestKind.RETRY, 0)


def test_what_runs_no_more_is_cancelled_as_interrupted():
    history = history_of(Scored(1.0), "running", None)
    cancelled, said = changed_trial(history, RequestKind.CANCEL, 1, at=None)
    assert said == "trial 1 is cancelled"
    assert (cancelled.outcome, cancelled.interruptions, cancelled.rank) == (Cancelled("on request"), 1, 1)
    assert cancelled.finished == history.elapsed == 1.0
    waiting, _ = changed_trial(history, RequestKind.CANCEL, 2, at=7.5)
    assert (waiting.interruptions, waiting.finished) == (0, 7.5)


def test_requests_in_words():
    assert in_words(RequestKind.CANCEL, 3) == "cancel trial 3"
    assert in_words(RequestKind.STOP_NOW, None) == "stop at once"
    assert in_words(RequestKind.STOP, None) == "stop"


def test_a_study_that_nobody_drives_can_be_asked_about_its_trials_only(tmp_path):
    path = tmp_path / "study.sqlite"
    with Study.open(path, Sensitive(), seed=1) as study:
        study.tell(study.ask(), Failed(FailureCause.OOM, "big"))
    for kind in ("pause", "stop", "stop-now"):
        with pytest.raises(StudyError, match=r"nobody drives this study, so there is nothing to (pause|stop)"):
            ask_study(path, kind)
    with pytest.raises(StudyError, match="so there is nothing to cancel"):
        ask_study(path, "cancel")
    assert ask_study(path, "retry", 0) == Asked(True, "trial 0 will be tried again, as trial 3")
    with pytest.raises(StudyError, match="there is no trial 9"):
        ask_study(path, "cancel", 9)


# -- status ------------------------------------------------------------------------------------------------------------


def run_of(state="running", **record):
    record = {"pid": os.getpid(), "host": socket.gethostname(), **record}
    ended = {"ended": 60.0} if state == "ended" else {}
    return Run(number=0, begun=50.0, state=RunState(state), record=record, **ended)


def seen_as(run, *, held=True, seen=55.0):
    class Seen(MemoryStorage):
        def presence(self):
            return Presence(is_held=held, seen=seen)

        def runs(self):
            return () if run is None else (run,)

    return status_of(Seen())


def a_dead_process():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return gone.pid


def test_states():
    assert seen_as(None).state is StudyState.IDLE
    assert seen_as(run_of("ended"), held=True).state is StudyState.IDLE
    assert seen_as(run_of("ended"), held=False).state is StudyState.IDLE
    assert seen_as(run_of(), held=False).state is StudyState.DIED
    dead = a_dead_process()
    assert seen_as(run_of(pid=dead)).state is StudyState.DIED  # its lock lives on in a child
    assert seen_as(run_of(pid=dead, host="elsewhere")).state is StudyState.RUNNING  # who knows
    assert seen_as(run_of(pid=None)).state is StudyState.RUNNING
    assert seen_as(run_of(pid=2**70)).state is StudyState.RUNNING
    for state in ("running", "paused", "stopping"):
        status = seen_as(run_of(state))
        assert (str(status.state), status.is_driven, status.n_drivers) == (state, True, 1)
    assert [seen_as(run_of("ended")).is_driven, seen_as(run_of(), held=False).is_driven] == [False, False]


def test_signs_of_life():
    assert seen_as(run_of(), seen=40.0).seen == 50.0  # of an earlier driver: this one was there when it began
    assert seen_as(run_of(), seen=70.0).seen == 70.0
    assert seen_as(run_of(), seen=None).seen is None
    assert seen_as(None, seen=40.0).seen == 40.0
    assert StudyStatus(StudyState.IDLE, 10.0, 4.0, None, 0).silence == 6.0
    assert StudyStatus(StudyState.IDLE, 10.0, 14.0, None, 0).silence == 0.0  # clocks differ
    assert StudyStatus(StudyState.IDLE, 10.0, None, None, 0).silence is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"trials": 3, "seconds": None}, Budget(trials=3)),
        ({"trials": None, "seconds": 2}, Budget(seconds=2)),
        ({"trials": 3, "seconds": 2.5}, Budget(3, 2.5)),
        ({"trials": "3", "seconds": "x"}, None),
        ({"trials": 0}, None),
        ({}, None),
        ("3 trials", None),
        (None, None),
    ],
)
def test_budgets_of_runs(given, expected):
    run = run_of(budget=given)
    assert budget_of(run) == expected
    assert seen_as(run).budget == expected


def test_what_a_status_says_of_nobody():
    status = seen_as(None)
    assert (status.budget, status.workers, status.plan, status.command, status.driver) == (None,) * 5
    assert {**status.to_dict(), "state": ""} == {
        **dict.fromkeys(("begun", "ended", "ending", "pid", "host", "workers", "budget", "plan", "command")),
        "state": "", "seen": 55.0, "silence": status.silence, "n_runs": 0, "n_drivers": 0,
    }  # fmt: skip


def test_what_a_status_says_of_a_driver():
    run = run_of(pid=7, host="box", workers=3, plan="p" * 600, budget={"trials": 3}, command="nasbot run x")
    status = StudyStatus(StudyState.RUNNING, 60.0, 55.0, run, 2, 1)
    assert (status.workers, status.plan, status.command) == (3, "p" * 500, "nasbot run x")
    assert status.driver == "process 7 on box"
    said = status.to_dict()
    assert (said["pid"], said["host"], said["workers"], said["begun"], said["ended"]) == (7, "box", 3, 50.0, None)
    assert (said["budget"], said["n_runs"], said["n_drivers"]) == ({"trials": 3, "seconds": None}, 2, 1)
    two = StudyStatus(StudyState.RUNNING, 60.0, 55.0, run_of(pid=7, host=None), 2, 2)
    assert two.driver == "2 drivers, the last to join process 7 on an unknown machine"
    assert how_to_go_on(status) == "; go on with it by: nasbot run x"
    forged = StudyStatus(StudyState.IDLE, 1.0, None, run_of(command="rm -rf x"), 1)
    assert how_to_go_on(forged) == "; go on with it as it was begun"


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("nasbot run data.csv", True),
        ("nasbot demo", True),
        ("nasbot export x", False),
        ("nasbot", False),
        ("python -m nasbot run x", True),
        ("python -m nasbot", False),
        ("python -m other run", False),
        ("python script.py", True),
        ("python -u script.py --x", True),
        ("python -c print", False),
        ("python", False),
        ("python -Xx.py", False),
        ("python3 script.py", False),
        ("nasbot run 'x", False),
        ("nasbot  run x", False),
        ("nasbot run x; rm y", False),
        ("nasbot run 'a\tb'", False),
        ("", False),
    ],
)
def test_commands_that_may_be_shown(command, ours):
    assert is_ours(command) is ours


def test_a_run_records_where_it_is():
    run = new_run(4, executor="serial", workers=2, budget=Budget(3, 5.0), plan="")
    assert (run.number, run.pid, run.host, run.workers, run.plan) == (4, os.getpid(), socket.gethostname(), 2, None)
    assert run.record["budget"] == {"trials": 3, "seconds": 5.0}
    assert run.record["folder"] == str(Path.cwd())
    assert new_run(0, executor="serial", workers=None, budget=None).record["budget"] is None


def test_what_differs_between_processors_is_named():
    run = new_run(0, executor="serial", workers=1, budget=None)
    assert numeric_differences(run) == []
    numerics = {**run.record["numerics"], "processor": "z" * 100, "cpu_features": ["NEW", "OLD"]}
    versions = {**run.record["versions"], "numpy": "0.1"}
    other = Run(number=0, begun=1.0, record={**run.record, "numerics": numerics, "versions": versions})
    lines = numeric_differences(other)
    assert lines[0] == f"processor: then {'z' * 60}, here {run.record['numerics']['processor']}"
    assert lines[1].startswith("cpu_features: then also NEW, OLD; here also ")
    assert lines[2].startswith("numpy: then 0.1, here ")
    assert len(lines) == 3
    fewer = {**run.record["numerics"], "cpu_features": [*run.record["numerics"]["cpu_features"], "NEW"]}
    assert numeric_differences(Run(number=0, begun=1.0, record={**run.record, "numerics": fewer})) == [
        "cpu_features: then also NEW; here also nothing"
    ]
    none = Run(number=0, begun=1.0, record={**run.record, "numerics": None})
    assert numeric_differences(none) == ["the run did not record BLAS kernels and processor features"]
    unsaid = Run(number=0, begun=1.0, record={**run.record, "versions": 1})
    assert all("then None" in line for line in numeric_differences(unsaid))


# -- lines for people --------------------------------------------------------------------------------------------------


def ended(number, outcome, took=1.5):
    return Trial(number=number, candidate=Candidate(POOL[number])).begun(1.0).ended(outcome, at=1.0 + took, rank=number)


@pytest.mark.parametrize(("direction", "second"), [("maximise", 0.5), ("minimise", 2.0)])
def test_lines_of_progress(capsys, direction, second):
    lines = _Lines(Budget(trials=9), Direction(direction))
    for number, outcome in enumerate([Scored(1.0), Scored(second), Scored(1.0), FAILED, Cancelled("no")]):
        lines.tell(ended(number, outcome))
    lines.tell(Trial(number=5, candidate=Candidate(POOL[5])))
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"trial 0: 1 in 1.5 s, the best so far: {POOL[0].depth} [budget 9 trials]"
    assert said[1] == f"trial 1: {second:g} in 1.5 s, best 1 (trial 0) [budget 9 trials]"
    assert said[2] == "trial 2: 1 in 1.5 s, best 1 (trial 0) [budget 9 trials]"
    assert said[3] == "trial 3: failed in 1.5 s (exception: no) [budget 9 trials]"
    assert len(said) == 4
    lines.tell(ended(6, Scored(5.0 if direction == "maximise" else -5.0)))
    assert "the best so far" in capsys.readouterr().err


# -- what was measured elsewhere ---------------------------------------------------------------------------------------


def test_what_is_known_comes_in_pairs():
    assert known_pairs([(POOL[0], 1.0), [Candidate(POOL[1]), 2.0]]) == [(POOL[0], 1.0), (Candidate(POOL[1]), 2.0)]
    for known, words in (
        ("text", "expected pairs of a candidate and its value, got str"),
        (3, "got int"),
        ([(POOL[0],)], "entry 0: expected"),
        ([(POOL[0], 1.0), (1.0, POOL[0])], "entry 1: expected"),
        ([POOL[0]], "entry 0: expected"),
    ):
        with pytest.raises(OptionError, match=words):
            known_pairs(known)


def test_what_is_known_is_told_once():
    study = Study.in_memory(Sensitive(n_pool=1), seed=1)
    for _ in range(2):
        tell_known(study, [(POOL[3], 1.0), (POOL[4], 2.0)])
    assert [trial.value for trial in study.history.completed] == [1.0, 2.0]


def test_trainings_may_be_stretched():
    study = Study.in_memory(Sensitive(n_pool=1), seed=1)
    study.tell(study.ask(), 1.0)
    study._driver.stretch = lambda history: 3.0
    assert study.ask().fidelity == 3.0


# -- searchers made again ----------------------------------------------------------------------------------------------


def changed(settings, path, value):
    settings = json.loads(json.dumps(settings))
    *places, last = path
    at = settings
    for place in places:
        at = at[place]
    at[last] = value
    return settings


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("space", "kind"), {"name": "none"}, "vocabular"),
        (("space", "max_layers"), "many", "expected a"),
        (("space", "max_layers"), True, "expected a"),
        (("space", "max_layers"), -1, "space: "),
        (("space", "other"), 1, "has no such option"),
        (("searcher", "type"), "Mine", "it is not one of NASBOT"),
        (("searcher", "pool"), ["00"], "is not in the study"),
        (("searcher", "pool"), 3, "pool: expected"),
        (("searcher", "cost"), 3, "NASBOT has no such option"),
        (("searcher", "name"), 3, "name: expected a str, got '3'"),
        (("searcher", "belief", "n_samples"), 2.5, "n_samples: expected a int"),
        (("searcher", "belief", "prior"), [], "prior"),
        (("searcher", "distance", "type"), "mine", "not a preset of OTMANN"),
        (("searcher", "distance", "structural_weights"), ["x"], "structural_weights"),
        (("searcher", "modifiers"), "skip", "modifiers: expected"),
        (("fidelity",), [], "fidelity"),
        (("searcher",), 3, "searcher: expected an object, got int"),
    ],
    ids=str,
)
def test_settings_of_no_searcher(path, value, words):
    study = Study.in_memory(made(NASBOT), seed=1)
    assert type(searcher_of_study(study.settings, study.history)) is NASBOT
    with pytest.raises(StudyError, match=words) as raised:
        searcher_of_study(changed(study.settings, path, value), study.history)
    assert "cannot be made again" in str(raised.value)


def test_options_that_a_study_was_begun_with():
    begun = Study.in_memory(made(NASBOT, acquisition="ucb"), seed=1).settings
    assert as_begun(made(NASBOT), begun).acquisition == made(NASBOT, acquisition="ucb").acquisition
    other = made(RandomSearch)
    assert as_begun(other, begun) is other
    plain = made(NASBOT)
    assert as_begun(plain, changed(begun, ("searcher", "pool"), ["00"])) is plain
    assert as_begun(plain, {}) is plain


# -- looking at a study ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({}, (5, 0)),
        ({"batch": 3}, (5, 0)),
        ({"batch": {"first": 3, "size": 4}}, (3, 4)),
        ({"batch": {"first": 0, "size": 2}}, (0, 2)),
        ({"batch": {"first": 5, "size": 2}}, (5, 2)),
        ({"batch": {"first": 6, "size": 4}}, (5, 0)),
        ({"batch": {"first": -1, "size": 4}}, (5, 0)),
        ({"batch": {"first": 3, "size": 1}}, (5, 0)),
        ({"batch": {"first": "3", "size": 4}}, (5, 0)),
        ({"batch": {"first": 3}}, (5, 0)),
    ],
    ids=str,
)
def test_trials_that_were_chosen_together(notes, expected):
    assert _batch_of(Trial(number=5, candidate=Candidate(POOL[0]), notes=notes)) == expected


@pytest.mark.parametrize("number", [-1, 2, "0", None, True, 1.0])
def test_trials_that_there_are_not(number):
    history = history_of(None, None)
    with pytest.raises(StudyError, match="there is no trial"):
        known_trial(history, number)
    assert known_trial(history, 1).number == 1
    assert known_trial(history, history[0]).number == 0


def test_what_a_searcher_without_beliefs_can_say():
    study = Study.in_memory(Sensitive(n_pool=1), seed=1).optimise(score, 3)
    with pytest.raises(StudyError, match="sensitive has no beliefs to explain"):
        study.explain(2)
    with pytest.raises(StudyError, match="sensitive has no beliefs to explain"):
        study.what_if()
    with pytest.raises(StudyError, match="sensitive has no beliefs about params"):
        study.param_effects()
    assert study.recommend() == study.best
    assert study.why(0) == ""
    assert study.outlook() is None
    assert repr(study).startswith("<Study: 3 completed, best ")
    assert repr(study).endswith("maximise, seed 1>")


def test_what_is_read_in_parts(tmp_path, monkeypatch):
    with Study.open(tmp_path / "s.sqlite", Sensitive(), seed=1) as study:
        study.optimise(score, 7)
    monkeypatch.setattr(view_module, "MOST_AT_ONCE", 3)
    with StudyView.read(tmp_path / "s.sqlite") as view:
        asked = []
        some = view._storage.some
        monkeypatch.setattr(view._storage, "some", lambda numbers: asked.append(list(numbers)) or some(numbers))
        assert view.to_frame().index.tolist() == list(range(7))
        assert asked == [[0, 1, 2], [3, 4, 5], [6]]
        monkeypatch.setattr(view_module, "MOST_AT_ONCE", 7)
        assert len(view.to_frame()) == 7
        assert len(asked) == 3


def test_what_waits_for_one_searcher_is_dropped():
    study = Study.in_memory(Sensitive(n_pool=2), seed=1)
    (waiting,) = study.enqueue([Candidate(POOL[5])], searcher="final", fidelity=2.0)
    assert (waiting.number, waiting.fidelity, waiting.origin.of_trial) == (2, 2.0, None)
    (again,) = study.enqueue([Candidate(POOL[0])], searcher="final")
    assert again.origin.of_trial == 0
    study.drop_waiting("final")
    assert [trial.state for trial in study.history] == ["waiting", "waiting", "cancelled", "cancelled"]
    assert [trial.rank for trial in study.history] == [None, None, 0, 1]


def test_a_fork_says_what_it_takes():
    assert str(Fork((), 3, ("one", "two"))) == "begins with 0 of 3 completed trials (one; two)"
    assert str(Fork((), 3)) == "begins with 0 of 3 completed trials"


class Strict:
    """A pacer that asks of each training what the best before it had."""

    name = "strict"

    def settings(self):
        return {}

    def bars(self, history, trial):
        return [Bar(step=1, value=history.best.value, direction=history.direction)] if history.best else []


def test_a_pacer_is_asked_with_what_was_known_when_a_trial_was_chosen():
    better = count()  # than all before
    study = Study.in_memory(made(RandomSearch), seed=0, pacer=Strict()).optimise(lambda arch: next(better), 14)
    driver = study._driver
    chosen = [trial for trial in study.history if trial.origin.was_proposed]
    assert chosen
    for trial in chosen:
        before = max(t.value for t in study.history if t.number < trial.number)
        assert driver.bars(trial) == (Bar(step=1, value=before, direction=study.history.direction),)
    told = study.history[0]
    assert not told.origin.was_proposed
    assert driver.bars(told) == ()


def test_lines_of_progress_come_before_what_else_is_told(capsys):
    told = []
    trial = ended(0, STOPPED)
    tell = with_progress(True, told.append, Budget(trials=9), Direction.MAXIMISE)
    tell(trial)
    assert told == [trial]
    assert capsys.readouterr().err == "trial 0: stopped in 1.5 s [budget 9 trials]\n"
    with_progress(True, None, Budget(trials=9), Direction.MAXIMISE)(trial)
    assert "trial 0: stopped" in capsys.readouterr().err
    assert with_progress(False, told.append, Budget(trials=9), Direction.MAXIMISE) == told.append


def test_a_study_that_cannot_be_begun_is_refused_unless_another_driver_was_quicker():
    class Quicker(MemoryStorage):
        found: dict[str, int] | None = None

        def create(self, settings, trials):
            raise StudyError("begun already")

        def settings(self):
            return self.found

    storage = Quicker()
    with pytest.raises(StudyError, match="begun already"):
        _created(storage, {"seed": 2}, [])
    storage.found = {"seed": 1}
    assert _created(storage, {"seed": 2}, []) == {"seed": 1}
    assert _created(MemoryStorage(), {"seed": 2}, []) == {"seed": 2}


def test_only_requests_about_trials_are_heeded_by_the_driver():
    study = Study.in_memory(made(RandomSearch), seed=0)
    with pytest.raises(StudyError, match="stop is not about a trial"):
        study._driver.heed(Request(number=0, kind=RequestKind.STOP, made=1.0))


def test_a_closed_study_still_says_what_it_is():
    study = Study.in_memory(made(RandomSearch), seed=3).optimise(score, 3)
    assert "3 completed" in repr(study)
    study.close()
    assert repr(study) == "<Study: RAND, maximise, seed 3>"


def test_a_run_is_recorded_again_only_where_it_has_changed(monkeypatch):
    study = Study.in_memory(Sensitive(), seed=1)
    driver, saved = study._driver, []
    save_run = driver._storage.save_run
    monkeypatch.setattr(driver._storage, "save_run", lambda run: saved.append(run.state) or save_run(run))
    driver.note_run(RunState.PAUSED)
    driver.end_run("closed")
    assert saved == []  # nobody drives
    driver.begin_run("test")
    for state in (RunState.RUNNING, RunState.PAUSED, RunState.PAUSED, RunState.RUNNING):
        driver.note_run(state)
    assert saved == [RunState.RUNNING, RunState.PAUSED, RunState.RUNNING]
    driver.end_run("closed")
    driver.end_run("closed")
    driver.note_run(RunState.PAUSED)
    assert saved[3:] == [RunState.ENDED]


def test_a_study_that_is_driven_is_not_read_in_parts(tmp_path, monkeypatch):
    """Its driver has all of it at hand."""
    monkeypatch.setattr(view_module, "MOST_AT_ONCE", 1)
    with Study.open(tmp_path / "s.sqlite", Sensitive(), seed=1) as study:
        study.optimise(score, 3)
        asked = []
        monkeypatch.setattr(study._storage, "some", lambda numbers: asked.append(numbers) or [])
        assert study.to_frame().index.tolist() == [0, 1, 2]
        assert asked == []

"""What a study refuses and how it says so, and the lines that people paste."""

import inspect
import sys
from importlib import import_module

import pytest

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.errors import StudyError, VocabularyError
from nasbot.execution import Finished, Reported, SimulatedExecutor
from nasbot.storage import Request, RequestKind, RunState
from nasbot.study import Budget, Study, StudyView
from nasbot.study import loop as loop_module
from nasbot.study.budget import UNITS
from nasbot.study.driver import Driver
from nasbot.study.loop import Loop
from nasbot.study.rebuilding import space_from_settings
from nasbot.study.runs import command_line, with_longer_budget
from nasbot.study.settings import check_same, how_to_name, naming_vocabulary
from nasbot.study.status import StudyStatus
from nasbot.trial import Failed, FailureCause, History, Point, Scored, Trial
from tests.study.objectives import score
from tests.study.searchers import Sensitive

POOL = [Candidate(arch) for arch in initial_pool("mlp-reg")]

# -- limits ------------------------------------------------------------------------------------------------------------

# What is refused, kept or shown depends on these: whoever chooses another changes it here too, and says why.
LIMITS = {
    "budget": {
        "_SECONDS": {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0},
        "WHOLE_FROM": 10.0,
    },
    "loop": {"RETRIES": {FailureCause.KILLED: 1, FailureCause.ENVIRONMENT: 3}, "FREE_FOR_BATCH": 16},
    "settings": {"SHOWN_DIFFERENCES": 10, "DIGEST_CHARACTERS": 16},
    "settled": {"N_NEXT": 20, "N_LAST": 8, "LEAST": 20},
    "view": {"MOST_AT_ONCE": 2000},
}


@pytest.mark.parametrize("module", LIMITS)
def test_limits_that_somebody_chose(module):
    found = import_module(f"nasbot.study.{module}")
    assert {name: getattr(found, name) for name in LIMITS[module]} == LIMITS[module]


DEFAULTS = {
    Study: {"seed": 0, "direction": "maximise", "pool": None, "context": None, "pacer": None, "taken_over": ()},
    Study.open: {"fork": None, "shared": False},
    Study.enqueue: {"fidelity": 1.0},
    Study.optimise: {
        "workers": 1,
        "executor": None,
        "timeout_per_trial": None,
        "memory_per_trial": None,
        "max_consecutive_failures": 3,
        "overtime": None,
        "proposes": True,
        "stop_when_settled": False,
    },
    Loop: {"proposes": True},
    Driver.begin: {"proposes": True},
    StudyStatus: {"n_drivers": 0},
}


def test_what_is_meant_where_nothing_is_said():
    for function, defaults in DEFAULTS.items():
        said = inspect.signature(function).parameters
        assert {name: said[name].default for name in defaults} == defaults, function


def test_words_for_units_of_time():
    assert [UNITS[word] for word in ("s", "secs", "mins", "hours", "hrs", "d")] == [1, 1, 60, 3600, 3600, 86_400]


# -- the loop ----------------------------------------------------------------------------------------------------------


class Noting:
    """A driver and an executor that note what they are asked; what is in ``refusing`` they refuse."""

    def __init__(self, *refusing):
        self.noted, self.refusing = [], refusing
        self.history = History((Trial(number=0, candidate=POOL[0]).begun(0.0), Trial(number=1, candidate=POOL[1])))

    def __getattr__(self, name):
        def note(*given, **_):
            if name in self.refusing:
                raise StudyError(f"{name} is refused")
            self.noted.append((name, *given))
            return self.history[given[0]] if name in ("extend", "finish") else None

        return note


def loop(noting):
    return Loop(noting, noting, Budget(trials=2), 3, None, None)


def asked(kind, trial=None, number=7):
    return Request(number=number, kind=RequestKind(kind), trial=trial, made=1.0, by="me")


def test_points_are_recorded_together_before_their_outcome_and_those_of_others_at_the_end():
    noting, points = Noting(), [Point(i, 0.5) for i in range(4)]
    late = Scored(1.0)
    loop(noting)._take(
        [
            Reported(1, points[0]),
            Reported(0, points[1]),
            Reported(0, points[2]),
            Finished(0, late, at=2.0),
            Reported(1, points[3]),
        ]
    )
    assert noting.noted == [
        ("extend", 0, points[1:3]),
        ("finish", 0, late),
        ("extend", 1, [points[0], points[3]]),
    ]


def test_what_the_driver_or_the_executor_refuses_is_answered():
    for run, request, words in (
        (loop(Noting("heed")), asked("retry", 0), "refused: heed is refused"),
        (loop(Noting("cancel")), asked("cancel", 0), "refused: cancel is refused"),
    ):
        run._running.add(0)
        run._heed_one(request)
        assert run._driver.noted == [("answer", request, words)]
        assert run._cancelling == {}
    run = loop(Noting())
    run._running.add(0)
    run._heed_one(asked("cancel", 0))
    assert (run._driver.noted, run._cancelling) == ([("cancel", 0)], {0: asked("cancel", 0)})


@pytest.mark.parametrize(
    ("kind", "stopping", "answer", "state", "flags"),
    [
        ("pause", False, "paused", RunState.PAUSED, (True, False, False)),
        ("resume", False, "running", RunState.RUNNING, (False, False, False)),
        ("stop", False, "stopping", RunState.STOPPING, (False, True, False)),
        ("stop-now", False, "stopping", RunState.STOPPING, (False, True, True)),
        ("stop-now", True, "stopping", RunState.STOPPING, (False, True, True)),
        ("pause", True, "refused: the run is stopping", None, (False, True, False)),
        ("resume", True, "refused: the run is stopping", None, (False, True, False)),
    ],
)
def test_a_run_turns_as_it_is_asked(kind, stopping, answer, state, flags):
    run = loop(Noting())
    run.is_stopping = stopping
    run._heed_one(asked(kind))
    turned = [] if state is None else [("note_run", state)]
    assert run._driver.noted == [*turned, ("answer", asked(kind), answer)]
    assert (run._is_paused, run.is_stopping, run._ends_now) == flags


def test_a_paused_run_sleeps_until_it_is_resumed(monkeypatch):
    study, slept, answers = Study.in_memory(Sensitive(n_pool=1), seed=1), [], []
    open_requests = iter([[], [asked("pause")], [], [], [asked("resume")]])
    monkeypatch.setattr(study._driver, "requests", lambda: next(open_requests, []))
    monkeypatch.setattr(study._driver, "answer", lambda request, text: answers.append(text))
    monkeypatch.setattr(loop_module.time, "sleep", slept.append)
    study.optimise(score, 2)
    assert (slept, answers) == ([0.5] * 3, ["paused", "running"])
    assert len(study.history.completed) == 2


def test_what_waits_is_dropped_in_its_order():
    study = Study.in_memory(Sensitive(n_pool=1), seed=1)
    study.tell(study.ask(), 1.0)
    waiting = study.enqueue(POOL[5:8], searcher="final")
    study.drop_waiting("final")
    assert [study.history[trial.number].rank for trial in waiting] == [1, 2, 3]


def test_failures_at_one_length_name_it():
    run = Loop(Noting(), SimulatedExecutor(1), Budget(trials=2), 3, None, None)
    failed = Failed(FailureCause.OOM, "full")
    for lengths, named in (((0.5, 0.5), True), ((0.5, 0.25), False), ((1.0, 1.0), False), ((3.0, 3.0), False)):
        run._failures = [(failed, length) for length in lengths]
        assert ("all at" in run._summary()) is named, lengths


# -- searchers and vocabularies that are not at hand -------------------------------------------------------------------


def test_a_view_without_its_searcher_recommends_the_best():
    study = Study.in_memory(Sensitive(n_pool=2), seed=1).optimise(score, 4)
    view = StudyView(study._storage)
    assert view.recommend() == study.best
    with pytest.raises(StudyError, match="cannot be made again"):
        _ = view.searcher


def test_a_space_of_a_vocabulary_that_is_not_in_use():
    words = r"its vocabulary is neither built in nor in use \(nasbot.use_vocabulary\)$"
    with pytest.raises(StudyError, match=words):
        space_from_settings({"kind": {"name": "nobody's"}})


class Stored:
    def __init__(self, settings):
        self._settings = settings

    def settings(self):
        return self._settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (None, "no such label; is it spelt so"),
        ({}, "no such label; is it spelt so"),
        ({"space": 3}, "no such label; is it spelt so"),
        ({"space": {"kind": "cnn"}}, "no such label; is it spelt so"),
        ({"space": {"kind": {}}}, "no such label; " + how_to_name({})),
        ({"space": {"kind": {}}, "vocabulary": "a.b:C"}, "no such label; " + how_to_name({"vocabulary": "a.b:C"})),
    ],
    ids=str,
)
def test_networks_of_an_unknown_vocabulary(settings, said):
    with pytest.raises(VocabularyError) as raised, naming_vocabulary(Stored(settings)):
        raise VocabularyError("no such label; is it spelt so")
    assert str(raised.value) == said


def test_how_a_vocabulary_is_named():
    told = how_to_name({"vocabulary": "a.b:C"})
    assert told.endswith(
        "--vocabulary a.b:C, in Python nasbot.use_vocabulary('a.b:C') (as it was named when the study began)"
    )
    assert how_to_name({}).endswith("--vocabulary MODULE:NAME, in Python nasbot.use_vocabulary('MODULE:NAME')")
    assert "--vocabulary " + "x" * 100 + "," in how_to_name({"vocabulary": "x" * 101})


@pytest.mark.parametrize(("n", "more"), [(1, ""), (10, ""), (11, "\n  and 1 more"), (13, "\n  and 3 more")])
def test_ten_differences_of_settings_are_shown(n, more):
    stored, given = ({f"n{i:02}": {"deep": i + by} for i in range(n)} for by in (0, 1))
    check_same({**stored, "vocabulary": "a"}, {**stored, "vocabulary": "b"})  # where it is imported from may change
    with pytest.raises(StudyError) as raised:
        check_same(stored, given)
    lines = "\n".join(f"  n{i:02}.deep: stored {i}, given {i + 1}" for i in range(min(n, 10)))
    assert str(raised.value).startswith(f"the study was begun with other settings:\n{lines}{more}\nresume it with its")


def test_that_pools_differ_is_shown_where_params_do_not():
    pools = {"pool": ["a"], "searcher": {"pool": ["aa"]}}, {"pool": ["b"], "searcher": {"pool": ["bb"]}}
    with pytest.raises(StudyError, match=r"(?s)pool: stored \['a'\].*searcher\.pool: stored \['aa'\]"):
        check_same(*pools)
    with pytest.raises(StudyError, match=r"settings:\n  params\.rate: stored nothing, given 1\nresume"):
        check_same({**pools[0], "params": {}}, {**pools[1], "params": {"rate": 1}})


def test_differences_of_settings_in_words():
    with pytest.raises(StudyError) as raised:
        check_same({"a": 1, "b": {"x": "y" * 80}}, {"c": 2, "b": {"x": "z" * 81}})
    assert str(raised.value).splitlines()[1:4] == [
        "  a: stored 1, given nothing",
        f"  b.x: stored {'y' * 80}, given {'z' * 77}...",
        "  c: stored nothing, given 2",
    ]


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "original", "command"),
    [
        (["/bin/nasbot", "run", "a b.csv"], ["python3", "/bin/nasbot", "run", "a b.csv"], "nasbot run 'a b.csv'"),
        (["/x/nasbot/__main__.py", "run"], ["python3", "-m", "nasbot", "run"], "python -m nasbot run"),
        (["my.py", "1"], ["/usr/bin/python3", "my.py", "1"], "python my.py 1"),
        (["my.py"], ["/usr/bin/python3", "-O", "my.py"], "python -O my.py"),
        (["-c"], ["python3", "-c", "pass"], None),
        ([""], ["python3", ""], None),
        ([], ["python3", "x"], None),
        (["my.py"], ["my.py"], None),
        (["/bin/nasbot", "postgresql://me:secret@h/d#s"], ["p", "n", "s"], "nasbot 'postgresql://me@h/d#s'"),
    ],
)
def test_what_to_type_to_go_on(monkeypatch, argv, original, command):
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", original)
    assert command_line() == command


@pytest.mark.parametrize(
    ("command", "spent", "longer"),
    [
        ("nasbot run a.csv --budget 10m", None, "nasbot run a.csv --budget 20m"),
        ("nasbot run a.csv --budget=10m --seed 1", None, "nasbot run a.csv --budget 20m --seed 1"),
        ("nasbot run --budget '5 trials' b.csv", Budget(trials=1), "nasbot run --budget '10 trials' b.csv"),
        ("nasbot demo", Budget(trials=5), "nasbot demo --budget '10 trials'"),
        ("nasbot demo", None, "nasbot demo"),
        ("nasbot run --budget", None, "nasbot run --budget"),
        ("nasbot run --budget soon", None, "nasbot run --budget soon"),
        ("python mine.py --budget 10m", Budget(trials=5), "python mine.py --budget 10m"),
    ],
)
def test_a_command_with_twice_the_budget(command, spent, longer):
    assert with_longer_budget(command, spent) == longer


@pytest.mark.parametrize(
    ("budget", "twice"),
    [
        (Budget(trials=1), "2 trials"),
        (Budget(trials=9, seconds=45.0), "1m30s"),
        (Budget(seconds=0.2), "1s"),
        (Budget(seconds=30.0), "1m"),
        (Budget(seconds=5400.0), "3h"),
        (Budget(seconds=3661.0), "2h2m2s"),
        (Budget(seconds=100_000.0), "55h33m20s"),
    ],
    ids=str,
)
def test_twice_a_budget(budget, twice):
    assert budget.doubled() == twice
    assert Budget.of(twice).doubled()

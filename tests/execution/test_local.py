"""Real processes, really killed. Nothing here passes or fails by the clock; tests/faults measures times."""

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nasbot.architecture import Label, LabelPenalties, Layer, Role, Vocabulary, chain
from nasbot.candidate import Candidate
from nasbot.errors import OptionError
from nasbot.execution import Finished, Job, Limits, LocalExecutor
from nasbot.execution._fork_server import ForkServer
from nasbot.testing.executor_conformance import PATIENCE, ExecutorConformance, sample_job
from nasbot.trial import Failed, FailureCause, Scored
from tests.execution import objectives
from tests.execution.objectives import Marked, WithChild, is_alive

HUNDRED_MEGABYTES = 100 << 20


class TestLocalExecutor(ExecutorConformance):
    most_slots = 2

    def make_executor(self, slots: int = 1) -> LocalExecutor:
        return LocalExecutor(slots)


@pytest.fixture
def run():
    """Evaluate one job and give its outcome; all executors are closed at the end."""
    executors = []

    def outcome(objective, **options):
        executors.append(executor := LocalExecutor(1, **options))
        executor.start(objective)
        executor.submit(sample_job(0))
        event = executor.wait(PATIENCE)[-1]
        assert isinstance(event, Finished)
        return event.outcome

    yield outcome
    for executor in executors:
        executor.close()


def wait_until(condition, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("objective", "cause", "words"),
    [
        (objectives.killed, FailureCause.KILLED, "SIGKILL"),
        (objectives.killing_its_group, FailureCause.KILLED, "SIGKILL"),  # and not whoever watches over it
        (objectives.terminated, FailureCause.KILLED, "SIGTERM"),
        (objectives.segfaulting, FailureCause.CRASHED, "SIGSEGV"),
        (objectives.aborting, FailureCause.CRASHED, "SIGABRT"),
        (objectives.leaving, FailureCause.CRASHED, "exit code 3"),
        (objectives.leaving_politely, FailureCause.CRASHED, "exit code 0"),
        (objectives.recursing, FailureCause.EXCEPTION, "RecursionError"),
        (objectives.closing_everything, FailureCause.CRASHED, "exit code"),
        (objectives.writing_to_every_descriptor, FailureCause.CRASHED, "no result"),
        (objectives.enormous, FailureCause.EXCEPTION, "20,"),
        (objectives.shouting, FailureCause.EXCEPTION, "after much noise"),
        (objectives.starting_children, FailureCause.CRASHED, "exit code 4"),
    ],
)
def test_a_death_is_an_outcome_with_its_cause(run, objective, cause, words):
    outcome = run(objective)
    assert isinstance(outcome, Failed)
    assert outcome.cause is cause, outcome
    assert words in outcome.message


@pytest.mark.parametrize("objective", [objectives.raising_on_deletion, objectives.never_leaving])
def test_a_score_counts_however_the_process_leaves(run, objective):
    assert isinstance(run(objective), Scored)


def test_nothing_comes_after_the_end():
    executor = LocalExecutor(1)
    executor.start(objectives.reporting_for_ever)
    executor.submit(sample_job(0))
    events = []
    while not any(isinstance(event, Finished) for event in events):
        events += executor.wait(PATIENCE)
    assert isinstance(events[-1], Finished)
    assert len(events) > 1
    assert not executor.wait(0.1)
    executor.close()


def test_last_words_are_kept(run):
    outcome = run(objectives.segfaulting)
    assert "the last words" in outcome.details["process"]["output"]
    assert outcome.details["process"]["signal"] == signal.SIGSEGV


@pytest.mark.parametrize("objective", [objectives.slow, objectives.spinning])
def test_too_long_is_ended(run, objective):
    outcome = run(objective, limits=Limits(seconds=0.5))
    assert isinstance(outcome, Failed)
    assert outcome.cause is FailureCause.TIMEOUT
    assert "0.5 s" in outcome.message


@pytest.mark.parametrize("objective", [objectives.hungry, objectives.hungry_for_numpy])
def test_too_much_memory_is_ended(run, objective):
    outcome = run(objective, limits=Limits(memory=HUNDRED_MEGABYTES))
    assert isinstance(outcome, Failed)
    assert outcome.cause is FailureCause.OOM, outcome


def test_too_much_memory_in_all_processes_together_is_ended(run):
    outcome = run(objectives.hungry_together, limits=Limits(memory=HUNDRED_MEGABYTES))
    assert isinstance(outcome, Failed)
    assert outcome.cause is FailureCause.OOM, outcome
    assert outcome.details["process"]["peak_memory"] > HUNDRED_MEGABYTES


@pytest.mark.parametrize("objective", [objectives.scored, objectives.mapping_much])
def test_enough_memory_is_enough(run, objective):
    assert isinstance(run(objective, limits=Limits(memory=HUNDRED_MEGABYTES, seconds=PATIENCE)), Scored)


def test_peak_memory_is_recorded(run):
    outcome = run(objectives.scored)
    assert outcome.details["process"]["peak_memory"] > 1 << 20


def test_exit_functions_are_run_and_heard(run):
    assert "said at exit" in run(objectives.exiting_with_a_handler).details["process"]["output"]


def test_an_objective_names_what_to_load_beforehand(run):
    assert run(objectives.Preloading()).value == 1.0


def test_what_cannot_be_loaded_is_a_failure_that_says_so(run):
    outcome = run(objectives.NotLoadable())
    assert outcome.cause is FailureCause.EXCEPTION
    assert "cannot be loaded in a worker process: ValueError: cannot be made again" in outcome.message


OWN_OBJECTIVE = """
from pathlib import Path
from nasbot.execution import LocalExecutor
from nasbot.testing.executor_conformance import sample_job

class Objective:
    def __call__(self, arch):
        return 7.0

def run():
    executor = LocalExecutor(1)
    executor.start(Objective())
    executor.submit(sample_job(0))
    print(executor.wait(120)[-1].outcome)
    executor.close()

{guard}run()
"""


@pytest.mark.parametrize("guard", ["if __name__ == '__main__': ", ""])
def test_an_objective_of_the_script_itself(tmp_path, guard):
    """Without the usual guard the worker leaves the script where that starts its evaluations."""
    script = tmp_path / "script.py"
    script.write_text(OWN_OBJECTIVE.format(guard=guard))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.count("value=7.0") == 1, done


def test_evaluations_are_where_the_driver_is(run, tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert run(objectives.telling_where).details["folder"] == str(tmp_path / name)


def test_a_module_that_was_changed_is_loaded_again(run, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    source = tmp_path / "changing_objective.py"
    for n in (1, 2):
        source.write_text(f"def objective(arch):\n    return {n}.0\n")
        os.utime(source, ns=(n * 10**9, n * 10**9))
        monkeypatch.delitem(sys.modules, "changing_objective", raising=False)
        importlib.invalidate_caches()
        assert run(importlib.import_module("changing_objective").objective).value == n


def test_life_goes_on_after_the_fork_server_is_killed(tmp_path):
    executor = LocalExecutor(1)
    executor.start(Marked(str(tmp_path)))
    executor.submit(sample_job(0))
    wait_until(lambda: (tmp_path / "0.pid").exists())
    os.kill(executor._server.pid, signal.SIGKILL)
    (event,) = executor.wait(PATIENCE)
    assert event.outcome.cause is FailureCause.KILLED
    wait_until(lambda: not is_alive(_pid(tmp_path, 0)))
    executor.start(objectives.scored)
    executor.submit(sample_job(1))
    assert isinstance(executor.wait(PATIENCE)[-1].outcome, Scored)
    executor.close()


def test_life_goes_on_after_a_supervisor_is_killed(tmp_path):
    executor = LocalExecutor(1)
    executor.start(Marked(str(tmp_path)))
    executor.submit(sample_job(0))
    wait_until(lambda: (tmp_path / "0.pid").exists())
    executor.wait(0)
    os.kill(executor._running[0].supervisor, signal.SIGKILL)
    (event,) = executor.wait(PATIENCE)
    assert event.outcome.cause is FailureCause.KILLED
    wait_until(lambda: not is_alive(_pid(tmp_path, 0)))
    executor.close()


def test_closing_before_anything_has_begun_waits_for_nothing(tmp_path):
    executor = LocalExecutor(2, preload=("this", "is.missing"))
    executor.start(Marked(str(tmp_path)))
    executor.submit(sample_job(0))
    executor.submit(sample_job(1))
    executor.close()
    executor.start(objectives.scored)
    executor.submit(sample_job(0))
    assert isinstance(executor.wait(PATIENCE)[-1].outcome, Scored)
    assert not [mark for mark in tmp_path.glob("*.pid") if is_alive(int(mark.read_text()))]
    executor.close()


def test_another_objective_ends_what_runs_of_the_one_before(tmp_path):
    executor = LocalExecutor(1)
    executor.start(Marked(str(tmp_path)))
    executor.submit(sample_job(0))
    wait_until((tmp_path / "0.pid").exists)
    executor.start(objectives.scored)
    wait_until(lambda: not is_alive(_pid(tmp_path, 0)))
    executor.submit(sample_job(0))
    assert isinstance(executor.wait(PATIENCE)[-1].outcome, Scored)
    executor.close()


def test_threads_are_handed_down(run):
    assert run(objectives.counting_threads, threads=1).value == 1.0


@pytest.mark.parametrize("objective", [lambda arch: 1.0, objectives.Unimportable()])
def test_what_cannot_be_sent_is_refused_at_once(objective):
    executor = LocalExecutor()
    with pytest.raises(OptionError, match="cannot be sent to a worker process"):
        executor.start(objective)
    executor.close()


def test_a_network_that_cannot_be_sent_is_refused():
    labels = (
        Label(name="in", role=Role.INPUT),
        Label(name="dense", fixed_mass=1.0),
        Label(name="out", role=Role.OUTPUT),
    )
    penalties = LabelPenalties.from_pairs(("in", "dense", "out"), {})
    toy = Vocabulary("toy", labels, penalties, rules=(lambda arch: (),))
    executor = LocalExecutor()
    executor.start(objectives.scored)
    with pytest.raises(OptionError, match="rules of the vocabulary"):
        executor.submit(Job(0, Candidate(chain(toy, [Layer("dense")]))))
    executor.close()


def test_cores_are_shared():
    cores = len(os.sched_getaffinity(0))
    assert LocalExecutor(1).threads == cores
    assert LocalExecutor(cores).threads == 1
    assert LocalExecutor(2 * cores).threads == 1


def test_one_killed_worker_leaves_the_others_alone(tmp_path):
    executor = LocalExecutor(2)
    executor.start(Marked(str(tmp_path)))
    executor.submit(sample_job(0))
    executor.submit(sample_job(1))
    wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    os.kill(_pid(tmp_path, 0), signal.SIGKILL)
    (event,) = executor.wait(PATIENCE)
    assert (event.number, event.outcome.cause) == (0, FailureCause.KILLED)
    assert is_alive(_pid(tmp_path, 1))
    executor.close()
    wait_until(lambda: not is_alive(_pid(tmp_path, 1)))


def test_the_children_of_a_timed_out_evaluation_go_with_it(tmp_path):
    executor = LocalExecutor(1, limits=Limits(seconds=20))
    executor.start(WithChild(str(tmp_path)))
    executor.submit(sample_job(0))
    wait_until(lambda: (tmp_path / "child.pid").exists() and (tmp_path / "child.pid").read_text())
    executor.cancel(0)
    executor.wait(PATIENCE)
    wait_until(lambda: not is_alive(int((tmp_path / "child.pid").read_text())))
    executor.close()


def test_evaluations_die_with_a_killed_driver(tmp_path):
    program = f"""
from nasbot.execution import LocalExecutor
from nasbot.testing.executor_conformance import sample_job
from tests.execution.objectives import WithChild
if __name__ == "__main__":
    executor = LocalExecutor(2)
    executor.start(WithChild({str(tmp_path)!r}))
    executor.submit(sample_job(0))
    executor.submit(sample_job(1))
    executor.wait()
"""
    script = tmp_path / "driver.py"
    script.write_text(program)
    driver = subprocess.Popen(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        wait_until(
            lambda: len(list(tmp_path.glob("*.pid"))) == 3 and all(p.read_text() for p in tmp_path.glob("*.pid"))
        )
    finally:
        driver.kill()
        driver.wait()
    pids = [int(file.read_text()) for file in tmp_path.glob("*.pid")]
    assert len(pids) == 3
    wait_until(lambda: not any(map(is_alive, pids)))


def test_evaluations_die_with_a_driver_whose_pipes_somebody_else_holds(tmp_path):
    """A process forked by the driver keeps its sockets open; that the fork server dies is noticed all the same."""
    program = f"""
import os, time
from nasbot.execution import LocalExecutor
from nasbot.testing.executor_conformance import sample_job
from tests.execution.objectives import WithChild
executor = LocalExecutor(1)
executor.start(WithChild({str(tmp_path)!r}))
executor.submit(sample_job(0))
if (pid := os.fork()) == 0:
    time.sleep(600)
open({str(tmp_path / "fork.pid")!r}, "w").write(str(pid))
executor.wait()
"""
    (tmp_path / "driver.py").write_text(program)
    driver = subprocess.Popen(
        [sys.executable, str(tmp_path / "driver.py")], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        wait_until(
            lambda: len(list(tmp_path.glob("*.pid"))) == 3 and all(p.read_text() for p in tmp_path.glob("*.pid"))
        )
    finally:
        driver.kill()
        driver.wait()
    try:
        wait_until(lambda: not is_alive(_pid(tmp_path, 0)) and not is_alive(_pid(tmp_path, "child")))
    finally:
        os.kill(_pid(tmp_path, "fork"), signal.SIGKILL)


def _pid(folder: Path, number: int | str) -> int:
    return int((folder / f"{number}.pid").read_text())


SCRIPT = """
import sys
from pathlib import Path

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.execution import Job, LocalExecutor
from tests.execution import objectives

with Path(sys.argv[1]).open("a") as ran:
    ran.write("ran\\n")
executor = LocalExecutor(1)  # not under if __name__ == "__main__"
executor.start(objectives.scored)
executor.submit(Job(0, Candidate(initial_pool("mlp-reg")[0])))
print([type(event.outcome).__name__ for event in executor.wait()])
executor.close()
"""


def test_a_script_without_a_guard_is_run_once(tmp_path):
    script, ran = tmp_path / "script.py", tmp_path / "ran"
    script.write_text(SCRIPT)
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    done = subprocess.run(
        [sys.executable, str(script), str(ran)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "['Scored']\n", done.stderr
    assert ran.read_text() == "ran\n"


def test_a_fork_server_that_is_ended_leaves_no_zombie():
    server = ForkServer(1, (), with_main=False)
    server._start()
    pid = server.pid
    assert is_alive(pid)
    server.end()
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)

"""The plain executor of other systems, by the suite of all executors and for what it does in its own way."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest

from nasbot.errors import OptionError
from nasbot.execution import Finished, Limits, SpawnExecutor
from nasbot.testing.executor_conformance import PATIENCE, ExecutorConformance, sample_job
from nasbot.trial import Failed, FailureCause, Scored
from tests.execution import objectives, plain_objectives


class TestSpawnExecutor(ExecutorConformance):
    most_slots = 2

    def make_executor(self, slots: int = 1) -> SpawnExecutor:
        return SpawnExecutor(slots)


def outcomes(objective, n=1, **options):
    executor = SpawnExecutor(1, **options)
    executor.start(objective)
    found = []
    try:
        for number in range(n):
            executor.submit(sample_job(number))
            event = executor.wait(PATIENCE)[-1]
            assert isinstance(event, Finished)
            found.append(event.outcome)
    finally:
        executor.close()
    return found


def test_a_process_that_dies_is_a_failure_with_its_cause():
    (outcome,) = outcomes(objectives.killed)
    assert isinstance(outcome, Failed)
    assert outcome.cause is FailureCause.KILLED
    assert "SIGKILL" in outcome.message
    assert outcome.details["process"]["signal"] == signal.SIGKILL


def test_time_limits_end_an_evaluation():
    (outcome,) = outcomes(objectives.slow, limits=Limits(seconds=0.5))
    assert isinstance(outcome, Failed)
    assert outcome.cause is FailureCause.TIMEOUT
    assert "its limit of 0.5 s" in outcome.message


def test_one_process_serves_many_and_is_replaced_after_a_failure():
    first, second = outcomes(plain_objectives.its_process, 2)
    assert isinstance(first, Scored)
    assert first.value == second.value != os.getpid()
    failed, after = outcomes(plain_objectives.raising_at_first, 2)
    assert isinstance(failed, Failed)
    assert isinstance(after, Scored)


def test_a_slow_reader_of_an_ended_process_takes_nothing_of_the_next(monkeypatch):
    """The next process's pipe may get the number of the last one's, which its reader must have left alone by then."""
    read = os.read

    def read_late(descriptor, n):
        if threading.current_thread().name == "nasbot-results":
            time.sleep(0.3)
        return read(descriptor, n)

    monkeypatch.setattr(os, "read", read_late)
    failed, *after = outcomes(plain_objectives.raising_at_first, 3)
    assert isinstance(failed, Failed)
    assert all(isinstance(outcome, Scored) for outcome in after)


def test_what_a_failed_evaluation_printed_is_kept():
    (outcome,) = outcomes(plain_objectives.printing_and_raising)
    assert "printed before" in outcome.details["process"]["output"]
    assert "traceback" in outcome.details


def test_memory_cannot_be_limited():
    with pytest.raises(OptionError, match="only Linux can limit it"):
        SpawnExecutor(1, limits=Limits(memory=1 << 30))


def test_it_ends_with_its_driver(tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(
        "from nasbot.execution import SpawnExecutor\n"
        "from nasbot.testing.executor_conformance import sample_job\n"
        "from tests.execution import objectives\n"
        "executor = SpawnExecutor(1)\n"
        "executor.start(objectives.slow)\n"
        "executor.submit(sample_job(0))\n"
        "executor.wait(1)\n"
        "print(executor._running[0].process.pid, flush=True)\n"
        "executor.wait(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    driver = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment)
    worker = int(driver.stdout.readline())
    assert objectives.is_alive(worker)
    driver.kill()
    driver.wait()
    driver.stdout.close()
    deadline = time.monotonic() + PATIENCE
    while objectives.is_alive(worker):
        assert time.monotonic() < deadline, "it outlives its driver"
        time.sleep(0.05)


@pytest.mark.parametrize("executor", ["SpawnExecutor", "LocalExecutor"])
def test_objectives_of_a_console_are_refused_before_a_trial_is_spent(executor):
    program = (
        "import nasbot\n"
        "def score(arch): return 1.0\n"
        "try:\n"
        f"    nasbot.{executor}(1).start(score)\n"
        "except nasbot.OptionError as error:\n"
        "    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert "defined in a notebook cell or on the command line" in said.stdout, said
    assert "%%writefile" in said.stdout


def test_an_objective_that_cannot_be_loaded_says_so():
    (outcome,) = outcomes(plain_objectives.Unloadable())
    assert outcome.cause is FailureCause.EXCEPTION
    assert "the objective cannot be loaded in a worker process: " in outcome.message


def test_threads_and_what_is_loaded_beforehand():
    assert outcomes(objectives.counting_threads, threads=3)[0].value == 3.0
    assert outcomes(plain_objectives.knows_module, preload=("wave", "no_such_module"))[0].value == 1.0


@pytest.mark.parametrize(
    ("received", "deadline", "has_begun", "cause", "words"),
    [
        ([{"trial": 0, "step": "x", "value": 1}], 10.0, True, "crashed", "its process sent what is no result"),
        ([{"no": 1}], 10.0, True, "crashed", "its process sent what is no result"),
        ([], -1.0, True, "timeout", "not finished within its limit of 7 s"),
        ([], -1.0, False, "timeout", "not finished within 300 s to begin"),
        ([{"trial": 5, "outcome": {"value": 1.0, "details": {}}}], -1.0, True, "timeout", "not finished"),
    ],
)
def test_what_a_process_may_say(monkeypatch, received, deadline, has_begun, cause, words):
    executor = SpawnExecutor(1, limits=Limits(seconds=7.0))
    worker = SimpleNamespace(
        job=sample_job(0), has_ended=False, received=deque(received), outcome=None,
        deadline=executor.now() + deadline, has_begun=has_begun,
    )  # fmt: skip
    executor._running = {0: worker}
    monkeypatch.setattr(executor, "_released", lambda worker, outcome: outcome)
    executor._look_at(worker)
    (event,) = executor._events
    assert event.outcome.cause == cause
    assert words in event.outcome.message
    assert executor._running == {}


@pytest.mark.parametrize(
    ("code", "known"), [(None, {}), (0, {"exit_code": 0}), (3, {"exit_code": 3}), (-9, {"signal": 9})]
)
def test_what_is_known_of_a_process_that_failed_is_kept(code, known):
    ends = []
    process = SimpleNamespace(poll=lambda: code)
    worker = SimpleNamespace(process=process, printed=lambda: "last words", end=lambda: ends.append(1))
    executor = SpawnExecutor(1)
    failed = executor._released(worker, Failed(FailureCause.CRASHED, "it", {"seen": 1}))
    assert failed.details == {"seen": 1, "process": {**known, "output": "last words"}}
    assert ends == [1]
    assert not executor._idle
    scored = executor._released(SimpleNamespace(job=sample_job(0), outcome=1, has_begun=True), Scored(1.0))
    assert scored == Scored(1.0)
    (idle,) = executor._idle
    assert (idle.job, idle.outcome, idle.has_begun) == (None, None, False)
    executor._idle.clear()


def test_its_limit_counts_from_its_beginning():
    executor = SpawnExecutor(1, limits=Limits(seconds=7.0))
    worker = SimpleNamespace(has_begun=False, deadline=0.0)
    executor._take(worker, sample_job(0), {"trial": 0, "begun": True})
    assert worker.has_begun
    assert 6.0 < worker.deadline - executor.now() <= 7.0
    free = SpawnExecutor(1)
    free._take(worker, sample_job(0), {"trial": 0, "begun": True})
    assert worker.deadline == float("inf")
    executor._running = {0: worker}
    worker.deadline = executor.now() + 0.2
    assert 0 < executor._pause(None) <= 0.2
    worker.deadline = executor.now() + 99
    assert executor._pause(None) == 0.5
    assert 0 < executor._pause(executor.now() + 0.1) <= 0.1
    assert executor._pause(executor.now() - 1) == 0.0
    executor._running = {}


@pytest.mark.parametrize(("seconds", "deadline"), [(None, 305.0), (7.0, 312.0)])
def test_a_process_has_five_minutes_to_begin_beside_its_limit(monkeypatch, seconds, deadline):
    executor = SpawnExecutor(1, limits=Limits(seconds=seconds))
    sent = []
    worker = SimpleNamespace(job=None, deadline=float("inf"), send=sent.append)
    monkeypatch.setattr(executor, "_started", lambda: worker)
    monkeypatch.setattr(executor, "now", lambda: 5.0)
    executor._objective = b""
    job = sample_job(0)
    executor.submit(job)
    assert (worker.job, worker.deadline, len(sent)) == (job, deadline, 1)
    assert executor._running == {0: worker}


def test_no_process_to_be_had_blames_nobody(monkeypatch):
    executor = SpawnExecutor(1)
    executor.start(plain_objectives.its_process)
    executor._idle.pop().end()

    def none(self):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(SpawnExecutor, "_started", none)
    executor.submit(sample_job(0))
    (event,) = executor.wait(PATIENCE)
    assert (event.number, event.outcome.cause) == (0, FailureCause.ENVIRONMENT)
    assert "its process could not be started: " in event.outcome.message
    executor.close()


def test_a_process_that_ended_while_it_was_idle_is_replaced():
    executor = SpawnExecutor(1)
    executor.start(plain_objectives.its_process)
    idle = executor._idle[0].process
    idle.kill()
    idle.wait()
    executor.submit(sample_job(0))
    assert executor.wait(PATIENCE)[-1].outcome.value != idle.pid
    executor.close()

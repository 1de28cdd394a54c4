"""The plain executor of other systems, by the suite of all executors and for what it does in its own way."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

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

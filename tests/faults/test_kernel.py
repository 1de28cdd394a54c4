"""The kernel runs out of memory, in a control group with little of it: the trial is ended, and the driver goes on."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from nasbot.study import StudyView
from nasbot.trial import Failed, FailureCause, Scored
from tests.faults.watching import wait_until
from tests.study.searchers import Sensitive

CONTROL = Path("/sys/fs/cgroup")
MEGABYTES = 600


def own_group() -> Path:
    """The control group of memory that this process is in; of version 1 or 2."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            return CONTROL / "memory" / path.lstrip("/")
    return CONTROL / next(path for _, controllers, path in lines if not controllers).lstrip("/")


@pytest.fixture
def group():
    """A control group with 600 MB and no swap, made for this test."""
    made = own_group() / f"nasbot-test-{os.getpid()}"
    try:
        made.mkdir()
        limits = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max")
        there = [made / name for name in limits if (made / name).exists()]
        if not there:
            raise OSError("memory is not limited in this group")
        for limit in there:
            limit.write_text("0" if limit.name == "memory.swap.max" else str(MEGABYTES << 20))
    except OSError as error:
        with suppress(OSError):
            made.rmdir()
        pytest.skip(f"DID NOT RUN: this machine lets nobody make a control group with a limit on memory ({error})")
    yield made
    wait_until(lambda: not (made / "cgroup.procs").read_text().strip())
    made.rmdir()


def test_ten_trials_that_the_kernel_ends(tmp_path, group, share):
    n = 2 * share(10)
    path = tmp_path / "study.sqlite"
    enter = f"echo $$ > {group / 'cgroup.procs'} && exec {sys.executable} -m tests.faults.hungry_driver {path} {n}"
    done = subprocess.run(["/bin/sh", "-c", enter], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    with StudyView.read(path, searcher=Sensitive()) as study:
        finished = study.history.finished
    assert len(finished) == n
    for trial in finished:
        if trial.number % 2:
            assert isinstance(trial.outcome, Scored), trial.outcome
        else:
            assert isinstance(trial.outcome, Failed), trial.number
            assert trial.outcome.cause is FailureCause.OOM, trial.outcome
            assert "kernel" in trial.outcome.message
    print(f"{n // 2} trials ended by the kernel for want of memory, {n - n // 2} others scored, the driver lived")

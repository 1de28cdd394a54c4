"""A hundred SIGKILLs of the driver at random instants: nothing acknowledged is lost, and nobody is left."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nasbot.execution._tree import descendants
from nasbot.study import Study, StudyView
from tests.faults.watching import PATIENCE, Times, marked, until_gone
from tests.study.objectives import score
from tests.study.searchers import Sensitive

DRIVER = str(Path(__file__).with_name("driver.py"))


class Driver:
    """The script in a process of its own, and what it has said so far."""

    def __init__(self, path, marks, budget, workers) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, DRIVER, str(path), str(marks), str(budget), str(workers)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Whoever runs the tests in the background may have had SIGINT ignored for all below.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        self.lines, self._reader = [], threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            if line.endswith("\n"):  # the last one may be cut by its death
                self.lines.append(line.split())

    def wait_for(self, word: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.said(word):
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def said(self, word: str) -> list[list[str]]:
        return [line for line in list(self.lines) if line and line[0] == word]

    def end(self) -> str:
        """Wait for it to be gone; what it said on standard error."""
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        with self.process.stdout, self.process.stderr:
            return self.process.stderr.read()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hundred_kills_of_the_driver(tmp_path, rng, share, workers):
    path, marks = tmp_path / "study.sqlite", tmp_path / "marks"
    marks.mkdir()
    stalls = Times("from a restart to its first trial")
    stalls_of_cpu = Times("the same in seconds of its own CPU time", of_cpu=True)
    leaving = Times("from the driver's death to that of all its processes")
    acknowledged: set[int] = set()
    n = share(50)  # for each number of workers
    for _ in range(n):
        driver = Driver(path, marks, 10_000, workers)
        driver.wait_for("recorded" if rng.random() < 0.7 else "begun")
        time.sleep(rng.uniform(0.0, 0.4))
        below = descendants(driver.process.pid)
        os.kill(driver.process.pid, signal.SIGKILL)
        driver.end()
        leaving.add(until_gone([*below, *marked(marks)]))
        stalls.add(float(driver.said("begun")[0][1]))
        stalls_of_cpu.add(float(driver.said("begun")[0][2]))
        acknowledged |= {int(line[1]) for line in driver.said("recorded")}
        with StudyView.read(path) as view:
            recorded = {trial.number: trial.value for trial in view.history.completed}
            assert acknowledged <= set(recorded)
            assert all(recorded[number] == score(view.history[number].arch) for number in recorded)
        check_the_next_proposal(path, tmp_path / "copy.sqlite", in_order=workers == 1)
    with Study.open(path, Sensitive(), seed=6) as study:
        assert not [trial for trial in study.history if trial.state == "running"]
        n_trials = len(study.history)
    print(f"{n} kills of the driver with {workers} workers, {n_trials} trials, {len(acknowledged)} acknowledged")
    leaving.check(bar=5.0)
    stalls.check(bar=5.0)
    stalls_of_cpu.check(bar=1.0)


def check_the_next_proposal(path, copy, *, in_order: bool) -> None:
    """Of a copy, as the dead driver left it: it is what an uninterrupted run would have proposed."""
    for ending in ("", "-wal"):
        source, target = Path(f"{path}{ending}"), Path(f"{copy}{ending}")
        target.unlink(missing_ok=True)
        if source.exists():
            shutil.copy(source, target)
    Path(f"{copy}-shm").unlink(missing_ok=True)
    with Study.open(copy, Sensitive(), seed=6) as study:
        assert all(proposal.arch == trial.arch for trial, proposal in study.replay())
        if in_order:  # with several workers the order in which trials end is part of the question
            whole = Study.in_memory(Sensitive(), seed=6)
            if study.history.finished:
                whole.optimise(score, len(study.history.finished))
            assert study.ask().arch == whole.ask().arch

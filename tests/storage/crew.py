"""Several drivers of one study in processes of their own, some of which are killed."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from nasbot.storage.postgres.storage import PostgresStorage
from nasbot.study import StudyView
from nasbot.trial import TrialState
from tests.study.searchers import Sensitive

SCRIPT = str(Path(__file__).with_name("shared_driver.py"))
PATIENCE = 3000.0  # seconds, to end what hangs


class Crew:
    """``n`` drivers of the study ``where``, each writing what was acknowledged into a file of its own."""

    def __init__(self, where, folder: Path, *, n: int, budget: int, seconds: float) -> None:
        self.where, self.folder = str(where), folder
        self.marks, self.logs = folder / "marks", folder / "logs"
        self.marks.mkdir()
        self.logs.mkdir()
        self._rest = [str(self.marks), str(budget), str(seconds)]
        self.budget, self.n_killed, self.n_begun = budget, 0, 0
        self.processes, self._numbers = [], {}
        for _ in range(n):
            self.hire()

    def hire(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        name = self.logs / str(self.n_begun)
        with name.with_suffix(".out").open("wb") as out, name.with_suffix(".err").open("wb") as err:
            command = [sys.executable, SCRIPT, self.where, *self._rest]
            self.processes.append(subprocess.Popen(command, env=environment, stdout=out, stderr=err))
            self._numbers[self.processes[-1].pid] = self.n_begun
        self.n_begun += 1

    def kill_one(self, rng) -> None:
        """A driver that has begun, and another in its place."""
        living = [process for process in self.processes if process.poll() is None]
        victim = living[int(rng.integers(len(living)))]
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self.processes.remove(victim)
        self.n_killed += 1
        self.hire()

    def recorded(self) -> Counter:
        """How often each outcome was acknowledged, as (number, value)."""
        found = Counter()
        for file in self.logs.glob("*.out"):
            lines = [line.split() for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
            found.update((int(words[1]), words[2]) for words in lines if words[0] == "recorded")
        return found

    def wait_for(self, n: int) -> None:
        """Until that many outcomes were acknowledged."""
        deadline = time.monotonic() + PATIENCE
        while len(self.recorded()) < n:
            self.check()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def wait_until_ready(self) -> None:
        """Until every driver has opened the study; one that begins while the server is away fails at once."""
        deadline = time.monotonic() + PATIENCE
        while any("ready" not in self._out(process).read_text() for process in self.processes):
            self.check()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def _out(self, process) -> Path:
        return self.logs / f"{self._numbers[process.pid]}.out"

    def check(self) -> None:
        """No driver has failed."""
        for process in self.processes:
            assert process.poll() in (None, 0), self.errors()

    def finish(self) -> None:
        for process in self.processes:
            process.wait(PATIENCE)
        self.check()

    def errors(self) -> str:
        return "\n".join(file.read_text()[-3000:] for file in sorted(self.logs.glob("*.err")))

    def dismiss(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def audit(self) -> dict[str, int]:
        """What became of everything that was begun; all but the first two must be 0."""
        PostgresStorage(self.where, shared=True, grace=0.1).close()  # buries whoever died last, with nothing to run
        with StudyView.read(self.where, searcher=Sensitive()) as study:
            history = study.history
            runs = study.runs
        values = {(trial.number, trial.value.hex()) for trial in history.completed}
        acknowledged = self.recorded()
        candidates = Counter(trial.candidate.fingerprint for trial in history)
        ends = Counter(int(mark.name.split("-")[0]) for mark in self.marks.iterdir())
        return {
            "trials": len(history),
            "killed": self.n_killed,
            "lost": len(set(acknowledged) - values),
            "twice": sum(n > 1 for n in acknowledged.values()) + sum(n > 1 for n in candidates.values()),
            "running": sum(trial.state is TrialState.RUNNING for trial in history),
            "waiting": sum(trial.state is TrialState.WAITING for trial in history),
            # An evaluation that came to its end is repeated only where its driver died before it was recorded.
            "repeated": sum(n - 1 > history[number].interruptions for number, n in ends.items()),
            "open runs": sum(run.ended is None for run in runs),
            "died": sum(run.ending == "died" for run in runs),
        }

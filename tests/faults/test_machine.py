"""Fifty failures of the machine: no descriptors, a full disk, no process, a supervisor that dies by itself.

No network is held responsible, and no score is lost.
"""

import errno
import os
import resource
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from nasbot.execution import LocalExecutor
from nasbot.study import Study, StudyView, loop
from nasbot.trial import FailureCause, TrialState
from tests.study.objectives import score
from tests.study.searchers import Sensitive


@dataclass(frozen=True)
class Failing:
    """Meets an error of the machine in the first evaluation of each trial."""

    folder: str
    numbers: tuple[int, ...]

    def __call__(self, arch, trial):
        mark = Path(self.folder) / str(trial.number)
        if trial.number < len(self.numbers) and not mark.exists():
            mark.touch()
            number = self.numbers[trial.number]
            raise OSError(number, os.strerror(number))
        return score(arch)


@dataclass(frozen=True)
class Slow:
    """Says that it has begun, and takes its time."""

    folder: str

    def __call__(self, arch, trial):
        (Path(self.folder) / f"{trial.number}-{os.getpid()}").touch()
        time.sleep(0.3)
        return score(arch)


class Starved(LocalExecutor):
    """Has no descriptors at every second submission, so many times."""

    def __init__(self, n_times):
        super().__init__(1)
        self.n_left, self._is_next = n_times, True

    def submit(self, job):
        if not self._is_next or self.n_left == 0:
            self._is_next = True
            super().submit(job)
            return
        self._is_next, self.n_left = False, self.n_left - 1
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        fillers = []
        try:
            highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 10, limits[1]))
            with suppress(OSError):
                while True:
                    fillers.append(os.open(os.devnull, os.O_RDONLY))
            super().submit(job)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for filler in fillers:
                os.close(filler)


@pytest.fixture(autouse=True)
def short_pause(monkeypatch):
    monkeypatch.setattr(loop, "RECOVERY_SECONDS", 0.05)


def check(path, n_failures):
    """Every trial has its score, after so many further attempts."""
    with StudyView.read(path) as view:
        history = view.history
        assert [trial.state for trial in history] == [TrialState.COMPLETED] * len(history)
        assert [trial.value for trial in history] == [score(trial.arch) for trial in history]
        assert sum(trial.attempts - 1 for trial in history) == n_failures


def test_errors_of_the_machine_in_evaluations(tmp_path, rng, share):
    n = share(30)
    numbers = tuple(int(k) for k in rng.choice([errno.EMFILE, errno.ENOSPC, errno.EAGAIN, errno.EDQUOT], n))
    (tmp_path / "marks").mkdir()
    with Study.open(tmp_path / "study.sqlite", Sensitive(n_layers=12), seed=1) as study:
        study.optimise(Failing(str(tmp_path / "marks"), numbers), n + 2, 2, timeout_per_trial=300)
    check(tmp_path / "study.sqlite", n)
    print(f"{n} errors of the machine: 0 networks banned, 0 scores lost")


def test_no_descriptors_when_a_trial_begins(tmp_path, share):
    n = share(10)
    executor = Starved(n)
    with Study.open(tmp_path / "study.sqlite", Sensitive(n_layers=12), seed=2) as study:
        study.optimise(score, n + 2, executor=executor)
    assert executor.n_left == 0
    check(tmp_path / "study.sqlite", n)
    print(f"{n} trials begun without descriptors: 0 networks banned, 0 scores lost")


def test_supervisors_that_die_by_themselves(tmp_path, share):
    n = share(10)
    marks = tmp_path / "marks"
    marks.mkdir()
    killed, done = set(), threading.Event()

    def kill():
        while not done.is_set():
            for mark in marks.iterdir():
                number, worker = mark.name.split("-")
                if number not in killed and len(killed) < n:
                    with suppress(OSError, IndexError, ValueError):
                        status = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
                        os.kill(int(status[1]), 9)  # its parent is its supervisor
                        killed.add(number)
            time.sleep(0.01)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        with Study.open(tmp_path / "study.sqlite", Sensitive(n_layers=12), seed=3) as study:
            study.optimise(Slow(str(marks)), n + 2, 2, timeout_per_trial=300)
    finally:
        done.set()
        killer.join()
    check(tmp_path / "study.sqlite", len(killed))
    assert len(killed) == n
    print(f"{n} supervisors killed: 0 networks banned, 0 scores lost")


def always_full(arch):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_the_machine_fails_every_time_is_not_banned_either(tmp_path, share):
    with Study.open(tmp_path / "study.sqlite", Sensitive(n_layers=12), seed=4) as study:
        study.optimise(always_full, share(4), max_consecutive_failures=None)
        failed = study.history.finished
        assert {trial.outcome.cause for trial in failed} == {FailureCause.ENVIRONMENT}
        assert not {trial.candidate.fingerprint for trial in failed} & set(study.history.seen)

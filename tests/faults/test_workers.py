"""Two hundred SIGKILLs of workers at random instants: nothing lost, nothing twice, each killed trial tried again."""

import os
import signal
import threading
import time
from contextlib import suppress

from nasbot.study import Study, StudyView
from nasbot.trial import Failed, FailureCause, TrialState
from tests.faults.objectives import Timed
from tests.faults.watching import marked, until_gone
from tests.study.objectives import score
from tests.study.searchers import Sensitive


class Killer(threading.Thread):
    """Kills about half of the workers that begin, each after a moment of its own, until it has killed enough."""

    def __init__(self, folder, rng, n_kills) -> None:
        super().__init__(daemon=True)
        self.folder, self.rng, self.n_kills = folder, rng, n_kills
        self.kills, self.enough = 0, threading.Event()

    def run(self):
        seen, due = set(), []
        while self.kills < self.n_kills:
            for pid in marked(self.folder) - seen:
                seen.add(pid)
                if self.rng.random() < 0.5:
                    due.append((time.monotonic() + self.rng.uniform(0.0, 0.1), pid))
            for when, pid in list(due):
                if time.monotonic() >= when:
                    due.remove((when, pid))
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        self.kills += 1
            time.sleep(0.003)
        self.enough.set()


def test_two_hundred_kills_of_workers(tmp_path, rng, share):
    path, marks = tmp_path / "study.sqlite", tmp_path / "marks"
    marks.mkdir()
    killer = Killer(marks, rng, share(200))
    killer.start()
    acknowledged = {}

    def changed(trial):
        if trial.state.is_final:
            assert trial.number not in acknowledged
            acknowledged[trial.number] = trial.outcome

    with Study.open(path, Sensitive(n_layers=12), seed=6) as study:
        while not killer.enough.is_set():
            budget = len(study.history) + 20
            study.optimise(
                Timed(str(marks)), budget, 2, timeout_per_trial=300, max_consecutive_failures=None, on_change=changed
            )
    with Study.open(path, Sensitive(n_layers=12), seed=6) as study:
        assert not [trial for trial in study.history if trial.state is TrialState.RUNNING]
    with StudyView.read(path) as view:
        history = view.history
    assert {trial.number: trial.outcome for trial in history.finished} == acknowledged
    assert len({trial.arch for trial in history}) == len(history)
    killed = again = 0
    for trial in history:
        if isinstance(trial.outcome, Failed):
            assert trial.outcome.cause is FailureCause.KILLED
            assert trial.attempts == 2
            killed += 1
        else:
            assert trial.value == score(trial.arch)
            assert trial.attempts <= 2
        again += trial.attempts == 2
    assert again + killed <= killer.kills  # a worker may be killed when it has said its result already
    assert again
    until_gone(marked(marks))
    print(f"{killer.kills} kills of workers, {len(history)} trials: {again} tried once more, {killed} killed twice")

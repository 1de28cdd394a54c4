"""Kills of a driver on rungs, and what must be true after each; the default suite has a few, the faults hundreds."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from nasbot.study import Study, StudyView
from nasbot.trial import FINAL, TrialState
from tests.faults.rungs_driver import LONGER, SEED, finals, quick, searcher, value_of

DRIVER = str(Path(__file__).with_name("rungs_driver.py"))
N_TRIALS, N_FINALS = 60, 8


def survive(folder, rng, n_kills, workers):
    """That many kills; whenever a study comes to its end before its kill, another one is begun."""
    uninterrupted = whole()
    n_done, n_studies, acknowledged = 0, 0, set()
    stages = {"rungs": 0, "finals": 0}
    path = folder / "study-0.sqlite"
    while n_done < n_kills:
        said, was_killed = killed(path, workers, rng)
        acknowledged |= {int(line.split()[1]) for line in said if line.startswith("recorded ")}
        with StudyView.read(path) as view:
            history = view.history
        check(history, acknowledged)
        check_next_decisions(path, folder / "copy.sqlite", uninterrupted if workers == 1 else None)
        if was_killed:
            n_done += 1
            stages["finals" if any(trial.origin.searcher == FINAL for trial in history) else "rungs"] += 1
        else:
            assert len(history.finished) == N_TRIALS + N_FINALS
            n_studies, acknowledged = n_studies + 1, set()
            path = folder / f"study-{n_studies}.sqlite"
    print(f"{n_done} kills with {workers} workers: {stages}; {n_studies} studies came to their end")
    return stages


def killed(path, workers, rng):
    """What a driver said until it was killed at some moment, and whether that was before its end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    arguments = [str(path), str(N_TRIALS), str(N_FINALS), str(workers)]
    driver = subprocess.Popen(
        [sys.executable, DRIVER, *arguments], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    said, until = [], int(rng.integers(1, 14))  # lines of what it says
    with driver.stdout as lines:
        for line in lines:
            said.append(line.strip())
            if len(said) >= until:
                time.sleep(float(rng.uniform(0.0, 0.02)))
                break
        driver.kill()
        said += [line.strip() for line in lines if line.endswith("\n")]
    driver.wait()
    return said, driver.returncode == -signal.SIGKILL and "done" not in said


def check(history, acknowledged):
    """Nothing that was said to be recorded is lost, values are right, and no candidate has a rung twice."""
    recorded = {trial.number for trial in history.completed}
    assert acknowledged <= recorded
    assert all(trial.value == value_of(trial.arch, trial.fidelity) for trial in history.completed)
    pairs = [(t.candidate.fingerprint, t.fidelity) for t in history if t.origin.searcher != FINAL]
    assert len(set(pairs)) == len(pairs)
    last = [trial for trial in history if trial.origin.searcher == FINAL]
    assert len(last) <= N_FINALS
    assert {trial.fidelity for trial in last} <= {LONGER}


def check_next_decisions(path, copy, uninterrupted):
    """Of a copy, as the dead driver left it: what it did replays, and it goes on as if nobody had killed it."""
    for ending in ("", "-wal"):
        source, target = Path(f"{path}{ending}"), Path(f"{copy}{ending}")
        target.unlink(missing_ok=True)
        if source.exists():
            shutil.copy(source, target)
    Path(f"{copy}-shm").unlink(missing_ok=True)
    with Study.open(copy, searcher(), seed=SEED) as study:
        for trial, proposal in study.replay():
            asked = (proposal.candidate, proposal.fidelity, proposal.promoted_from)
            assert asked == (trial.candidate, trial.fidelity, trial.promoted_from)
        if uninterrupted is None:  # the order in which trials end is part of the question
            return
        history = study.history
        assert decisions(history) == decisions(uninterrupted)[: len(history)]
        is_over = len(history.finished) >= N_TRIALS
        if not is_over and not any(trial.state is TrialState.WAITING for trial in history):
            study.ask()
        elif is_over:
            finals(study, N_FINALS)
        assert decisions(study.history) == decisions(uninterrupted)[: len(study.history)]


def decisions(history):
    return [(t.candidate, t.fidelity, t.promoted_from, t.origin.searcher, t.origin.of_trial) for t in history]


def whole():
    """The history of the same study that nobody has killed."""
    study = Study.in_memory(searcher(), seed=SEED)
    study.optimise(quick, N_TRIALS)
    finals(study, N_FINALS)
    study.optimise(quick, N_TRIALS + N_FINALS, proposes=False)
    return study.history

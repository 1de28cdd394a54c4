"""Ctrl-C at fifty random instants, with one and with two workers: exit 130, no traceback, nobody left."""

import signal
import time

import pytest

from nasbot.execution._tree import descendants
from nasbot.study import StudyView
from tests.faults.test_drivers import Driver
from tests.faults.watching import Times, marked, until_gone


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_at_fifty_instants(tmp_path, rng, share, workers):
    path, marks = tmp_path / "study.sqlite", tmp_path / "marks"
    marks.mkdir()
    leaving, gone = Times("from Ctrl-C to exit"), Times("from exit to the end of all processes")
    for _ in range(share(50)):
        driver = Driver(path, marks, 10_000, workers)
        driver.wait_for("ready" if rng.random() < 0.3 else "begun")
        time.sleep(rng.uniform(0.0, 0.5))
        below = descendants(driver.process.pid)
        sent = time.monotonic()
        driver.process.send_signal(signal.Signals(rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])))
        said = driver.end()
        leaving.add(time.monotonic() - sent)
        assert driver.process.returncode == 130, said
        assert "Traceback" not in said
        gone.add(until_gone([*below, *marked(marks)]))
        if driver.said("begun"):
            assert "best so far: " in said
            assert "resume: the same again" in said
            with StudyView.read(path) as view:
                assert not [trial for trial in view.history if trial.state == "running"]
    print(f"{len(leaving.pairs)} signals with {workers} workers")
    leaving.check(bar=5.0)
    gone.check(bar=1.0)

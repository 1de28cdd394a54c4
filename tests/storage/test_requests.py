"""Who drives, whether they live, and what others ask of them."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from nasbot.errors import NasbotError, StorageError, StudyError
from nasbot.storage import Answer, Presence, Request, RequestKind, Run, RunState, SqliteStorage, _lock, post_request
from nasbot.testing.storage_conformance import SETTINGS, sample_trial


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.sqlite"


@pytest.fixture
def driver(path):
    storage = SqliteStorage(path)
    storage.create(SETTINGS, [sample_trial(0)])
    yield storage
    storage.close()


# -- requests ----------------------------------------------------------------------------------------------------------


def test_requests_reach_the_driver_in_order_and_once(driver, path):
    assert driver.requests() == ()
    made = [post_request(path, "pause"), post_request(path, RequestKind.CANCEL, 0), post_request(path, "resume")]
    assert list(driver.requests()) == made
    assert [request.number for request in made] == [0, 1, 2]
    driver.save(sample_trial(1), answers=[Answer(made[1], "trial 0 is cancelled")])
    assert list(driver.requests()) == [made[0], made[2]]
    driver.save(answers=[Answer(made[0], "paused"), Answer(made[2], "running")])
    assert driver.requests() == ()
    assert len(driver.history()) == 2
    again = post_request(path, "stop")
    assert list(driver.requests()) == [again]


def test_requests_are_kept_until_the_next_driver(driver, path):
    made = post_request(path, "retry", 0)
    driver.close()
    assert f"process {os.getpid()}" in made.by
    second = SqliteStorage(path)
    assert list(second.requests()) == [made]
    second.close()


def test_an_answer_is_given_with_its_trial_or_not_at_all(driver, path):
    made = post_request(path, "cancel", 0)
    with pytest.raises(StudyError):
        driver.save(sample_trial(5), answers=[Answer(made, "done")])
    assert list(driver.requests()) == [made]


@pytest.mark.parametrize(("kind", "trial"), [("pause", 1), ("cancel", None), ("explode", None), ("retry", -1)])
def test_requests_that_make_no_sense(driver, path, kind, trial):
    with pytest.raises((NasbotError, ValueError)):
        post_request(path, kind, trial)
    assert driver.requests() == ()


def test_a_damaged_request_is_noticed(driver, path):
    post_request(path, "pause")
    driver._db.execute("UPDATE requests SET kind = 'stop'")
    with pytest.raises(StorageError, match="request 0 is damaged"):
        driver.requests()


def test_a_record_is_whole():
    with pytest.raises(StudyError, match="expected a trial number"):
        Request(number=0, kind="cancel", made=0.0)
    with pytest.raises(StudyError, match="ended says when"):
        Run(number=0, begun=0.0, state="ended")
    assert Run(number=0, begun=0.0, record={"pid": "12", "host": 3, "workers": True}).pid is None
    assert Run(number=0, begun=0.0, record={"workers": True}).workers is None


# -- presence ----------------------------------------------------------------------------------------------------------


def test_presence_of_a_driver(driver, path):
    reader = SqliteStorage(path, read_only=True)
    assert reader.presence().is_held
    driver.close()
    assert not reader.presence().is_held
    assert reader.presence().seen is not None
    reader.close()
    _lock.lock_path(path).unlink()
    assert _lock.presence(path) == Presence(is_held=False, seen=None)
    assert not _lock.lock_path(path).exists()  # looking makes no file


def test_signs_of_life_while_a_run_is_open(driver, path, monkeypatch):
    monkeypatch.setattr(_lock, "BEAT_SECONDS", 0.01)
    run = Run(number=0, begun=1.0)
    lock = _lock.lock_path(path)
    driver.save_run(run)
    for _ in range(2):  # two signs, each after the one before
        os.utime(lock, (1.0, 1.0))
        wait_for(lambda: lock.stat().st_mtime > 1.0)
    driver.save_run(run.over("finished", at=2.0))
    os.utime(lock, (1.0, 1.0))
    assert driver._lock._beating is None


def wait_for(condition):
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_looking_never_refuses_a_driver(path):
    """Whoever looks holds the lock for a moment: a driver tries again."""
    looking = os.open(_lock.lock_path(path), os.O_RDWR | os.O_CREAT)
    fcntl.flock(looking, fcntl.LOCK_SH)
    timer = threading.Timer(0.03, lambda: fcntl.flock(looking, fcntl.LOCK_UN))
    timer.start()
    original, _lock.TRIES = _lock.TRIES, 100_000
    try:
        SqliteStorage(path).close()
    finally:
        _lock.TRIES = original
        timer.join()
        os.close(looking)


DYING = """
import os, sys
from nasbot.storage import Run, SqliteStorage
from nasbot.testing.storage_conformance import SETTINGS
storage = SqliteStorage({path!r})
storage.create(SETTINGS)
storage.save_run(Run(number=0, begun=5.0, record={{"pid": os.getpid()}}))
if os.fork() == 0:          # as an objective might: the child outlives the driver and must not hold its place
    sys.stdout.write(f"{{os.getpid()}}\\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)
import signal
signal.pause()
"""


def test_a_driver_that_dies_is_recorded_as_dead_by_the_next(path):
    process = subprocess.Popen(
        [sys.executable, "-c", DYING.format(path=str(path))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().strip().isdigit()
    assert _lock.presence(path).is_held
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not _lock.presence(path).is_held  # though its child lives
    driver = SqliteStorage(path)
    (run,) = driver.runs()
    assert (run.state, run.ending) == (RunState.ENDED, "died")
    assert run.ended > 5.0  # its last sign of life
    driver.close()
    process.stdin.close()
    process.stdout.close()

"""A run followed on the page from its start to its end; the server's end and return; the driver's death."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from nasbot.storage import SqliteStorage
from nasbot.trial import Provenance, Trial
from tests.page.conftest import PATIENCE, ROOT, SETTINGS, serving, write_study
from tests.plots.studies import grown

# A driver whose trials wait for files, so that the test and not the clock decides how far it is.
DRIVER = """
import sys, time
from pathlib import Path
from nasbot import RandomSearch, SearchSpace, Study

gate = Path(sys.argv[2])

def objective(arch, trial):
    while not (gate / f"{trial.number}").exists():
        time.sleep(0.02)
    trial.report(1, 0.5)
    if trial.number == 1:
        raise ValueError("trial one is made to fail")
    return 1.0 + trial.number

with Study.open(Path(sys.argv[1]), RandomSearch(space=SearchSpace("mlp-reg")), seed=1) as study:
    study.optimise(objective, int(sys.argv[3]))
"""


class Driver:
    """A search in a process of its own, each of its trials ending when ``let`` allows it."""

    def __init__(self, folder, n_trials):
        self.file, self.gate = folder / "followed.sqlite", folder / "gate"
        self.gate.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(self.file), str(self.gate), str(n_trials)],
            env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def let(self, *numbers):
        for n in numbers:
            (self.gate / str(n)).touch()

    def wait_for_file(self):
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.file.exists():
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(120)
        self.process.stderr.close()


@pytest.fixture
def driven(tmp_path):
    drivers = []

    def begin(n_trials):
        drivers.append(Driver(tmp_path, n_trials))
        return drivers[-1]

    yield begin
    for driver in drivers:
        driver.close()


def says(words):
    """JavaScript: the strip says this."""
    return f"document.querySelector('header').innerText.replace(/\\s+/g, ' ').includes({words!r})"


def test_a_run_is_followed_from_start_to_finish_and_its_drivers_death_and_return(watched, driven):
    driver = driven(6)
    driver.wait_for_file()
    with serving(driver.file) as served:
        page = watched.page
        watched.show(served.url)
        watched.wait(says("running"))
        watched.wait(says("1 running"))
        driver.let(0)
        watched.wait(says("1 completed"))
        driver.let(1, 2)
        watched.wait(says("2 completed"))
        watched.wait(says("1 exception"))
        page.evaluate("location.hash = '#/trials'")
        watched.wait("document.querySelectorAll('#trials .badge.completed').length === 2")
        driver.let(3)  # the table follows by itself
        watched.wait("document.querySelectorAll('#trials .badge.completed').length === 3")

        driver.process.send_signal(signal.SIGKILL)
        driver.process.wait(120)
        watched.wait(says("died"))
        again = driven(6)
        watched.wait(says("running"))
        again.let(4, 5)
        watched.wait(says("5 completed"))
        assert again.process.wait(120) == 0
        watched.wait(says("idle"))  # although nothing is written after the driver's last word
        watched.wait("document.querySelectorAll('#trials .badge.completed').length === 5")


LOST = "!document.getElementById('lost').hidden"


def test_the_page_says_that_the_connection_is_lost_and_goes_on_when_it_is_back(watched, tmp_path):
    file = write_study(tmp_path / "lost.sqlite", grown(12))
    with serving(file) as served:
        watched.show(served.url)
        assert not watched.page.evaluate(LOST)
        served.process.send_signal(signal.SIGSTOP)
        try:
            watched.wait(LOST)
        finally:
            served.process.send_signal(signal.SIGCONT)
        watched.wait(f"!({LOST})")
        add_waiting(file)
        watched.wait(says("1 waiting"))
    watched.wait(LOST)
    watched.complaints.clear()  # the browser's own words for a server that is gone


@pytest.mark.slow  # by default no test needs a port that it has let go of
def test_a_server_that_begins_again_is_found_again(watched, tmp_path):
    file = write_study(tmp_path / "again.sqlite", grown(12))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(file, port=port) as served:
        watched.show(served.url)
    watched.wait(LOST)
    add_waiting(file)
    with serving(file, port=port):
        watched.wait(f"!({LOST})")
        watched.wait(says("1 waiting"))
    watched.wait(LOST)
    watched.complaints.clear()


def add_waiting(file):
    """A thirteenth trial, by a driver that comes and goes."""
    storage = SqliteStorage(file)
    storage.save(Trial(number=12, candidate=grown(13)[12].candidate, origin=Provenance(searcher="NASBOT")))
    storage.close()


def test_without_events_the_page_asks(watched, tmp_path):
    file = write_study(tmp_path / "asked.sqlite", grown(12))
    watched.page.add_init_script("delete window.EventSource")
    with serving(file) as served:
        watched.show(served.url)
        add_waiting(file)
        watched.wait(says("1 waiting"))
        assert any(url.endswith("api/tick") for url in watched.requests)


def test_a_study_that_is_not_there_yet_appears_when_it_begins(watched, tmp_path):
    file = tmp_path / "later.sqlite"
    SqliteStorage(file).close()  # tables, and no study
    with serving(file) as served:
        watched.page.goto(served.url)
        watched.wait(says("unreadable"))
        watched.wait(says("no study"))
        for page in ("trials", "map", "lineage", "surrogate", "compare", "about"):
            watched.page.evaluate(f"location.hash = '#/{page}'")
            watched.settle()
            assert "could not be shown" not in watched.text(), page
        storage = SqliteStorage(file)
        storage.create(SETTINGS)
        storage.close()
        watched.wait(says("idle"))

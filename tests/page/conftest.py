"""A browser, servers of their own port, and studies written without searching."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from nasbot.storage import SqliteStorage
from tests.conftest import browser_or_skip
from tests.plots.studies import grown

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120_000  # milliseconds; nothing here passes or fails by the clock
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SETTINGS = {
    "seed": 3,
    "direction": "maximise",
    "space": {"kind": "mlp-reg", "max_layers": 60},
    "searcher": {"name": "NASBOT", "type": "NASBOT", "acquisition": "log-ei", "belief": {"warp": "rank"}},
    "pool": ["a", "b"],
    "context": {},
}


def write_study(path, history, **settings):
    """A study's file with these trials, as a driver that has ended leaves it."""
    storage = SqliteStorage(path)
    begun = [replace(t, outcome=None, rank=None, finished=None, started=t.started or 0.0) for t in history.finished]
    begun = {trial.number: trial for trial in begun}
    storage.create(SETTINGS | settings, [begun.get(trial.number, trial) for trial in history])
    storage.save(*history.finished)  # in the order in which outcomes were recorded
    storage.close()
    return path


@pytest.fixture(scope="module")
def study_file(tmp_path_factory):
    """Forty trials in a file."""
    return write_study(tmp_path_factory.mktemp("studies") / "forty.sqlite", grown(40))


# -- servers -----------------------------------------------------------------------------------------------------------


@contextmanager
def serving(*arguments, port=0):
    """``nasbot serve`` with these arguments, on a port of its own; gives the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nasbot", "serve", *map(str, arguments), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        line = process.stdout.readline()
        assert " at http" in line, f"{line}{process.stderr.read() if process.poll() is not None else ''}"
        yield Served(line.split(" at ")[1].split()[0], process)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(120)
        process.stdout.close()
        process.stderr.close()


class Served:
    """A server that runs, and where."""

    def __init__(self, url, process):
        self.url, self.process = url, process
        self.port = int(url.split(":")[2].split("/")[0])


@pytest.fixture(scope="module")
def server(study_file):
    """One server for the tests of a module that only ask."""
    with serving(study_file) as served:
        yield served


# -- the browser -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium. Of one module, because while it is there no other test of the process can run asyncio."""
    executable = browser_or_skip()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=list(FLAGS), timeout=PATIENCE)
        yield chromium
        chromium.close()


class Watched:
    """A page, and everything it complained about."""

    def __init__(self, page):
        self.page, self.complaints, self.requests = page, [], []
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda m: m.type in ("error", "warning") and self.complaints.append(m.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._dismiss)
        page.on("request", lambda request: self.requests.append(request.url))

    def _dismiss(self, dialog):
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def show(self, url):
        """Go there and wait until the page is drawn."""
        self.page.goto(url)
        self.settle()

    def wait(self, expression):
        """Until this JavaScript is true; Playwright's own wait evaluates strings, which the page's policy forbids."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, f"never true: {expression}; the page says {self.text()[:2000]}"
            self.page.wait_for_timeout(30)

    def text(self):
        return self.page.inner_text("body")

    def settle(self):
        self.wait(
            "document.querySelector('main h2') !== null "
            "&& !document.getElementById('main').textContent.includes('computing…')"
        )


@pytest.fixture
def watched(browser):
    """A fresh profile and page; the test fails where the page has complained."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    watched = Watched(context.new_page())
    yield watched
    complaints = list(watched.complaints)
    context.close()
    assert not complaints, complaints

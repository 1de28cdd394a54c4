"""The live page of a study of 1,000 trials: first paint, updates, memory, and what it costs the search it shows.

The search's cost is a ratio within one run: turns of a search with nobody watching and with the page open, in
alternation, each in a process of its own. Without chromium only the server is measured.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.bars import Bar
from nasbot._typing import Json
from nasbot.architecture import SearchSpace, initial_pool
from nasbot.candidate import Candidate
from nasbot.evolution import Mutation, MutationOperator
from nasbot.storage import open_storage
from nasbot.storage.records import Run
from nasbot.trial import Forecast, Point, Provenance, Scored, Trial

N_TRIALS = 1000
N_UPDATES = 5
FIRST_PAINT, UPDATE, MEMORY, SLOWED = 1.0, 0.2, 100.0, 0.02
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
SETTINGS: dict[str, Json] = {
    "seed": 0,
    "direction": "maximise",
    "space": {"kind": "cnn"},
    "searcher": {"name": "NASBOT"},
    "context": {},
}

SEARCH = """
import sys, time
from nasbot import NASBOT, SearchSpace, Study
from nasbot.synthetic import f1

def objective(arch):
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    return f1(arch)

with Study.open(sys.argv[1], NASBOT(space=SearchSpace("cnn")), seed=0) as study:
    study.optimise(objective, 12)
    print("ready", flush=True)
    sys.stdin.readline()  # until the page is open, or at once
    begun = time.perf_counter()
    study.optimise(objective, 12 + int(sys.argv[2]))
    print(time.perf_counter() - begun)
"""


def trials(n: int) -> list[Trial]:
    """Finished trials whose networks descend from the pool, with curves and forecasts as a search leaves them."""
    rng = np.random.default_rng(0)
    operator, networks = MutationOperator(SearchSpace("cnn")), list(initial_pool("cnn"))
    while len(networks) < n:
        made = operator(networks[int(rng.integers(max(0, len(networks) - 50), len(networks)))], rng=rng)
        if isinstance(made, Mutation):
            networks.append(made.arch)
    found = []
    for number, arch in enumerate(networks[:n]):
        value = float(rng.normal(len(arch.layers) / 10, 0.3))
        running = Trial(
            number=number,
            candidate=Candidate(arch),
            origin=Provenance(
                searcher="NASBOT",
                parents=(number - 3,) if number > 9 else (),
                modifiers=("skip", "inc_single"),
                changes=("skip: 3 to 7", "inc_single: layer 3, 64 to 80 units"),
                seconds={"distances": 0.2, "fitting": 0.2, "maximising": 0.1, "deciding": 0.5},
            ),
            forecast=Forecast(median=value, lower=value - 0.4, upper=value + 0.4, mean=0.4, sd=0.3, utility=-2.0),
            proposed_after=number,
            attempts=1,
            started=10.0 * number,
            curve=tuple(Point(step, value * step / 20) for step in range(20)),
        )
        found.append(running.ended(Scored(value, {"parameters": 1000 + number}), at=10.0 * number + 9, rank=number))
    return found


def write_study(path: Path, ended: list[Trial]) -> None:
    """The file that a driver of these trials would leave."""
    storage = open_storage(path)
    storage.create(SETTINGS, ended)
    storage.save_run(Run(number=0, begun=time.time(), record={"workers": 1}).over("finished", at=time.time()))
    storage.close()


@contextmanager
def serving(path: Path) -> Iterator[tuple[str, int]]:
    """``nasbot serve``; gives its address and process."""
    command = [sys.executable, "-m", "nasbot", "serve", str(path), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split(" at ")[1].split()[0], process.pid
    finally:
        process.terminate()
        process.wait()


def memory(pid: int) -> float:
    """The most that a process has held, in MB (Linux)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser's page; None where there is no chromium."""
    executable = shutil.which("chromium")
    if executable is None:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser.new_page(viewport={"width": 1440, "height": 900})
        browser.close()


def measure_page(folder: Path) -> dict[str, Any]:
    """First paint and updates of a study that grows by one trial at a time."""
    path, ended = folder / "page.sqlite", trials(N_TRIALS + N_UPDATES)
    write_study(path, ended[:N_TRIALS])
    measured: dict[str, Any] = {"first_paint": [], "updates": []}
    with serving(path) as (url, pid), browsing() as page:
        if page is None:
            import urllib.request

            urllib.request.urlopen(url).read()
        else:
            for _ in range(4):
                page.goto("about:blank")
                page.goto(url)
                page.wait_for_selector("figure.chart circle")
                measured["first_paint"].append(page.evaluate("performance.now()") / 1000)
            measured["first_paint"] = measured["first_paint"][1:]  # the first reads the study
            storage = open_storage(path)
            for trial in ended[N_TRIALS:]:
                storage.save(trial)
                shown = f"source.trials.length > {trial.number}"
                while not page.evaluate(shown):
                    time.sleep(0.05)
                page.wait_for_timeout(500)
                measured["updates"].append(page.evaluate("source.updateTook") / 1000)
            storage.close()
        measured["memory"] = memory(pid)
    return measured


def measure_search(folder: Path, repetitions: int, n_trials: int = 50) -> dict[str, list[float]]:
    """Seconds of the same search, alone and with the page open, in alternation."""
    seconds: dict[str, list[float]] = {"alone": [], "watched": []}
    for i in range(repetitions):
        for kind in ("alone", "watched"):
            path = folder / f"search-{kind}-{i}.sqlite"
            command = [sys.executable, "-c", SEARCH, str(path), str(n_trials)]
            driver = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert driver.stdout is not None
            driver.stdout.readline()
            if kind == "alone":
                output, _ = driver.communicate("go\n")
            else:
                with serving(path) as (url, _), browsing() as page:
                    if page is not None:
                        page.goto(url)
                        page.wait_for_selector("figure.chart circle")
                    output, _ = driver.communicate("go\n")
            seconds[kind].append(float(output))
    return seconds


def run(repetitions: int) -> tuple[dict[str, Any], list[Bar]]:
    """Measure, print, and return the raw numbers and the bars."""
    with tempfile.TemporaryDirectory() as folder:
        page = measure_page(Path(folder))
        search = measure_search(Path(folder), repetitions)
    slowed = median(w / a for w, a in zip(search["watched"], search["alone"], strict=True)) - 1
    bars = [Bar(f"server's memory, {N_TRIALS:,} trials", page["memory"], MEMORY, 1.5 * MEMORY, False, " MB")]
    if page["updates"]:
        paint, update = median(page["first_paint"]), median(page["updates"])
        print(f"page: first paint {paint:.2f} s, update {1000 * update:.0f} ms, server {page['memory']:.0f} MB")
        bars.append(Bar("first paint of the page", paint, FIRST_PAINT, 4 * FIRST_PAINT, False, " s"))
        bars.append(Bar("update of the page", update, UPDATE, 4 * UPDATE, False, " s"))
    print(f"search: slowed by {100 * slowed:.1f} % while the page is open\n")
    bars.append(Bar("search slowed by the page, share", slowed, SLOWED, None, False))
    return {"page": page, "search": search}, bars

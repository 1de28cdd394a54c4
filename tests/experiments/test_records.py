"""Records: a run is done once, whatever happens, and never mixed with runs under other settings."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.runs import ROOT, revision
from experiments import records
from experiments.experiment import results_of
from experiments.protocol import Protocol
from experiments.records import Places, machine, run_missing, versions

PROTOCOL = Protocol("squares", {"power": 2}, {"seed": [0, 1, 2]}, 0.0)


def squares(protocol: Protocol, run: dict, places: Places) -> dict:
    """A run that leaves a trace, so that one done twice is seen."""
    with places.draft("done", str(run["seed"])).open("a") as trace:
        trace.write("x")
    return {"value": run["seed"] ** protocol.settings["power"]}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "out", tmp_path / "work", tmp_path / "data")


def run_all(protocol: Protocol, places: Places, processes: int = 1) -> int:
    return run_missing(protocol, squares, places, processes=processes, say=lambda text: None)


def test_a_record_says_what_it_is_of_and_who_made_it(places: Places):
    assert run_all(PROTOCOL, places) == 3
    record = list(places.records("squares").records())[2]
    assert record["run"] == {"seed": 2}
    assert record["result"] == {"value": 4}
    assert record["settings"] == {"power": 2}
    assert (record["revision"], record["machine"]) == (revision(), machine())
    assert record["versions"] == versions()
    assert {"python", "numpy", "torch", "optuna"} <= set(record["versions"])


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_is_done_once_and_more_seeds_may_be_added(places: Places, processes: int):
    assert run_all(PROTOCOL, places, processes) == 3
    more = replace(PROTOCOL, axes={"seed": [1, 2, 3, 4]})
    assert run_all(more, places, processes) == 2
    assert run_all(more, places, processes) == 0
    done = {path.name: path.read_text() for path in (places.work / "done").iterdir()}
    assert done == dict.fromkeys("01234", "x")


def test_other_settings_are_other_results(places: Places):
    run_all(PROTOCOL, places)
    other = replace(PROTOCOL, settings={"power": 3})
    assert run_all(other, places) == 3
    for protocol, last in ((PROTOCOL, 4), (other, 8)):
        found = results_of(protocol, places)
        assert [record["result"]["value"] for record in found.records] == [0, 1, last]
        assert found.values("seed") == [0, 1, 2]
        assert [record["result"]["value"] for record in found.where(seed=2)] == [last]


def test_a_torn_last_line_costs_that_run_alone(places: Places):
    run_all(PROTOCOL, places)
    path = places.records("squares").path
    path.write_text(path.read_text()[:-20])
    assert run_all(PROTOCOL, places) == 1
    assert len(results_of(PROTOCOL, places).records) == 3


def test_an_error_keeps_what_was_done(places: Places):
    def failing(protocol: Protocol, run: dict, where: Places) -> dict:
        if run["seed"] == 1:
            raise ValueError("broken")
        return squares(protocol, run, where)

    with pytest.raises(ValueError, match="broken"):
        run_missing(PROTOCOL, failing, places, processes=1, say=lambda text: None)
    assert run_all(PROTOCOL, places) == 2


SLOW = """
import time
from pathlib import Path
from experiments.protocol import Protocol
from experiments.records import Places, run_missing

def do(protocol, run, places):
    if run["seed"] == 2:
        Path({here!r}, "reached").touch()
        time.sleep(600)
    return {{"value": run["seed"]}}

here = Path({here!r})
run_missing(Protocol("squares", {{"power": 2}}, {{"seed": [0, 1, 2]}}, 0.0), do,
            Places(here / "out", here / "work", here / "data"), processes=1, say=print)
"""


def test_a_kill_costs_the_run_under_way(tmp_path: Path, places: Places):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    process = subprocess.Popen([sys.executable, "-c", SLOW.format(here=str(tmp_path))], env=environment)
    until = time.monotonic() + 240
    while not (tmp_path / "reached").exists() and time.monotonic() < until and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [record["run"]["seed"] for record in places.records("squares").records()] == [0, 1]
    assert run_all(PROTOCOL, places) == 1


WORKERS = """
import os, time
from pathlib import Path
from experiments.protocol import Protocol
from experiments.records import Places, run_missing

def do(protocol, run, places):
    Path({here!r}, f"worker-{{os.getpid()}}").touch()
    time.sleep(600)

if __name__ == "__main__":
    here = Path({here!r})
    run_missing(Protocol("squares", {{}}, {{"seed": [0, 1]}}, 0.0), do,
                Places(here / "out", here / "work", here / "data"), processes=2, say=print)
"""


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended; one that nobody has asked after yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_end_with_their_driver(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(WORKERS.format(here=str(tmp_path)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    process = subprocess.Popen([sys.executable, str(script)], env=environment)
    until = time.monotonic() + 240
    while len(list(tmp_path.glob("worker-*"))) < 2 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.05)
    workers = [int(path.name.partition("-")[2]) for path in tmp_path.glob("worker-*")]
    process.kill()
    process.wait()
    assert len(workers) == 2
    while any(map(is_running, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, workers))


def test_lines_are_plain_json(places: Places):
    run_all(PROTOCOL, places)
    for line in places.records("squares").path.read_text().splitlines():
        assert json.loads(line)["experiment"] == "squares"


def test_the_work_folder_is_not_the_results_folder():
    for quick in (False, True):
        found = records.default_places(quick=quick)
        assert found.work == ROOT / "paper-work"
        assert (found.out == ROOT / "docs" / "results") is not quick

"""What was run, one line of JSON a run, only ever added to. Pages and figures are drawn from these and nothing else.

A record says what it is of (``run``), under which settings (``settings``, and ``protocol``, which stands for them), by
which code (``revision``, ``versions``), where (``machine``), how long it took, and what came out (``result``).
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.runs import ROOT, Record, RunFile, revision
from experiments.protocol import Protocol, Run
from nasbot._versions import version_of

SECONDS_BETWEEN_LOOKS = 0.5
PACKAGES = ("nasbot", "numpy", "scipy", "scikit-learn", "torch", "optuna")


@dataclass(frozen=True)
class Places:
    """Where an experiment reads and writes."""

    out: Path  # pages, figures/ and records/
    work: Path  # prepared data and studies, which may be thrown away
    data: Path  # the paper's data sets and the tables of other people's experiments

    def records(self, experiment: str) -> RunFile:
        """The file of an experiment's records."""
        return RunFile(self.out / "records" / f"{experiment}.jsonl")

    def figure(self, name: str) -> Path:
        """Where a figure goes."""
        path = self.out / "figures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def draft(self, *parts: str) -> Path:
        """A path in the work folder, its parent made."""
        path = self.work.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def default_places(*, quick: bool) -> Places:
    """``docs/results`` for what is to be read; quick runs stay in the work folder, for they show nothing."""
    work = ROOT / "paper-work"
    data = Path(os.environ.get("NASBOT_DATA") or ROOT.parent / "shared" / "data")
    return Places(work / "quick" if quick else ROOT / "docs" / "results", work, data)


def known(records: Iterable[Record], protocol: Protocol) -> dict[tuple[Any, ...], Record]:
    """The records under these settings by what they are of; the first of several is the one that counts."""
    found: dict[tuple[Any, ...], Record] = {}
    for record in records:
        if record["protocol"] == protocol.digest:
            found.setdefault(identity(record["run"]), record)
    return found


def identity(run: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells a run from others, whatever the order of its entries."""
    return tuple(sorted(run.items()))


def missing_runs(protocol: Protocol, places: Places) -> list[Run]:
    """The runs of the protocol that have no record."""
    done = known(places.records(protocol.name).records(), protocol)
    return [run for run in protocol.runs() if identity(run) not in done]


Do = Callable[[Protocol, Run, Places], Mapping[str, Any]]


def run_missing(protocol: Protocol, do: Do, places: Places, *, processes: int, say: Callable[[str], None]) -> int:
    """Do and record the runs of the protocol that have no record; the number of those done."""
    file, missing, planned = places.records(protocol.name), missing_runs(protocol, places), len(protocol.runs())
    say(f"{protocol.name}: {planned - len(missing)} of {planned} runs are recorded")
    for record in _each(protocol, do, missing, places, processes):
        file.append(record)
        say(f"{protocol.name}: {_shown(record['run'])} in {record['seconds']:.0f} s")
    return len(missing)


def _each(protocol: Protocol, do: Do, runs: list[Run], places: Places, processes: int) -> Iterator[Record]:
    if processes == 1 or len(runs) < 2:
        for run in runs:
            yield record_of(protocol, do, run, places)
        return
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_leave_with, initargs=(os.getpid(),)
    )
    try:
        begun = [pool.submit(record_of, protocol, do, run, places) for run in runs]
        for ended in as_completed(begun):  # whichever it is: what is done is recorded at once
            yield ended.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_with(driver: int) -> None:
    """End this process soon after its driver has ended, however that happened: a kill leaves nothing behind."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def record_of(protocol: Protocol, do: Do, run: Run, places: Places) -> Record:
    """Do one run; its record."""
    begun = time.perf_counter()
    result = do(protocol, run, places)
    return {
        "experiment": protocol.name,
        "run": run,
        "protocol": protocol.digest,
        "settings": dict(protocol.settings),
        "revision": revision(),
        "versions": versions(),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 1),  # who else was there: it matters where the clock is the budget
        "seconds": round(time.perf_counter() - begun, 2),
        "result": dict(result),
    }


@cache
def versions() -> dict[str, str]:
    """Of what the results depend on."""
    found = {package: version_of(package) or "not installed" for package in PACKAGES}
    return {"python": platform.python_version(), **found}


@cache
def machine() -> str:
    """The processor and how many cores there are; nothing that names this machine."""
    model = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{len(os.sched_getaffinity(0))} cores, {model}"


def _shown(run: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in run.items())

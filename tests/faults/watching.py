"""What the fault tests share: whose processes still run, and how long things take on a machine that has other work."""

import os
import statistics
import time
from pathlib import Path

from tests.execution.objectives import is_alive

PATIENCE = 300.0  # seconds; whoever waits this long has failed


def load() -> float:
    """How many processes want a core, per core; at least 1."""
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


class Times:
    """Seconds measured, each with the load of its moment. A bar is for a machine that has nothing else to do.

    Seconds of CPU time are the same whatever else runs, so they are compared as they are.
    """

    def __init__(self, what: str, *, of_cpu: bool = False) -> None:
        self.what, self.of_cpu, self.pairs = what, of_cpu, []

    def add(self, seconds: float) -> None:
        self.pairs.append((seconds, 1.0 if self.of_cpu else load()))

    def check(self, bar: float) -> None:
        """Print them, and compare each, divided by its load, with the bar."""
        seconds = [pair[0] for pair in self.pairs]
        worst = max(pair[0] / pair[1] for pair in self.pairs)
        print(
            f"{self.what}: {len(seconds)} times, median {statistics.median(seconds):.2f} s, most {max(seconds):.2f} s, "
            f"most divided by the load {worst:.2f} s (bar {bar:g} s), load {max(pair[1] for pair in self.pairs):.1f}"
        )
        assert worst <= bar, self.pairs


def wait_until(condition, seconds=PATIENCE) -> float:
    """How long it took to come true."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, "it never happened"
        time.sleep(0.01)
    return time.monotonic() - begun


def until_gone(pids) -> float:
    """How long these processes took to be gone."""
    return wait_until(lambda: not any(map(is_alive, pids)))


def marked(folder: Path) -> set[int]:
    """The processes that have left a mark, NUMBER-PID."""
    return {int(mark.name.split("-")[1]) for mark in folder.iterdir()}

"""Objectives for the studies here, in a module that a worker process imports quickly."""

import os
import signal
import time
from pathlib import Path


def score(arch):
    """Deterministic, different for different networks."""
    return len(arch.layers) + int(arch.fingerprint[:8], 16) / 2**32


def simulated(arch):
    """The same with a duration that has nothing to do with the value."""
    return score(arch), 1.0 + int(arch.fingerprint[8:12], 16) / 2**16


def curve(arch, trial):
    trial.report(1, 0.5)
    trial.report(2, 0.75)
    return score(arch)


class Watched:
    """Takes a moment, and leaves a mark with the number of its process."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, arch, trial):
        (self.folder / f"{trial.number}-{os.getpid()}").touch()
        time.sleep(0.1)
        return score(arch)


class KilledOnce:
    """The worker of trial 1 is killed, the first time it runs."""

    def __init__(self, folder: str, times: int) -> None:
        self.folder, self.times = Path(folder), times

    def __call__(self, arch, trial):
        done = len(list(self.folder.glob("killed-*")))
        if trial.number == 1 and done < self.times:
            (self.folder / f"killed-{done}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return score(arch)

"""Objectives of the tests of SpawnExecutor, importable by its processes."""

import os
import sys


def its_process(arch):
    """The number of the process that evaluates it."""
    return os.getpid()


def raising_at_first(arch, trial):
    """A failure for trial 0 alone."""
    if trial.number == 0:
        raise ValueError("the first")
    return 1.0


def printing_and_raising(arch):
    """As a training does that logs before it fails."""
    print("printed before")
    raise ValueError("after a line")


def knows_module(arch):
    """Whether a module was loaded that nothing here imports."""
    return float("wave" in sys.modules)


def _refused():
    raise ValueError("not here")


class Unloadable:
    """Can be sent, and not be loaded."""

    def __reduce__(self):
        return _refused, ()

    def __call__(self, arch):
        return 1.0

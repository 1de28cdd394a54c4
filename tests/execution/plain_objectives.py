"""Objectives of the tests of SpawnExecutor, importable by its processes."""

import os


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

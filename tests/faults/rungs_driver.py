"""A driver on rungs, to be killed: STUDY TRIALS FINALS WORKERS. It searches, then evaluates finals."""

import os
import sys
import time

from nasbot import Fidelity, RandomSearch, SearchSpace, Study
from nasbot.architecture import initial_pool
from nasbot.automl.finals import finals_of
from nasbot.trial import FINAL

SEED, LONGER = 6, 3.0


def searcher():
    """Random networks, promoted by rank."""
    return RandomSearch(space=SearchSpace("mlp-reg"), pool=initial_pool("mlp-reg")[:3], fidelity=Fidelity())


def quick(arch, trial):
    """A few milliseconds, more of them on higher rungs."""
    time.sleep(0.01 * trial.fidelity)
    return value_of(arch, trial.fidelity)


def value_of(arch, fidelity):
    return len(arch.layers) + int(arch.fingerprint[:8], 16) / 2**32 + fidelity


def finals(study, n):
    """The finals that are missing, as a search on data lets them wait."""

    def missing(history):
        known = sum(trial.origin.searcher == FINAL for trial in history)
        return finals_of(history, max(0, n - known), fidelity=LONGER)

    return study.enqueue(missing, searcher=FINAL, fidelity=LONGER)


def main() -> None:
    path, n_trials, n_finals, workers = sys.argv[1], *map(int, sys.argv[2:])

    def changed(trial) -> None:
        if trial.state.is_final:
            os.write(1, f"recorded {trial.number}\n".encode())

    with Study.open(path, searcher(), seed=SEED) as study:
        os.write(1, b"begun\n")
        run = {"workers": workers, "on_change": changed}
        study.optimise(quick, n_trials, **run)
        finals(study, n_finals)
        study.optimise(quick, n_trials + n_finals, proposes=False, **run)
    os.write(1, b"done\n")


if __name__ == "__main__":
    main()

"""One of several drivers of a study, to be killed: STUDY MARKS BUDGET SECONDS; says what was acknowledged."""

import os
import sys
import time
from pathlib import Path

from nasbot.study import Study
from tests.faults.driver import said
from tests.study.objectives import score
from tests.study.searchers import Sensitive


class Marking:
    """Takes a moment, and leaves a mark of every evaluation that came to its end."""

    def __init__(self, folder: str, seconds: float) -> None:
        self.folder, self.seconds = Path(folder), seconds

    def __call__(self, arch, trial):
        time.sleep(self.seconds)
        (self.folder / f"{trial.number}-{os.getpid()}").touch()
        return score(arch)


def main() -> None:
    where, marks, budget, seconds = sys.argv[1:]

    def changed(trial) -> None:
        if trial.state.is_final:
            said("recorded", trial.number, trial.value.hex())

    with Study.open(where, Sensitive(), seed=6, shared=True) as study:
        said("ready")
        study.optimise(Marking(marks, float(seconds)), int(budget), on_change=changed)


if __name__ == "__main__":
    main()

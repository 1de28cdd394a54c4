"""A driver to be killed or interrupted: STUDY MARKS BUDGET WORKERS; on standard output it says how it gets on."""

import os
import sys
import time


def said(*words) -> None:
    """One line, in one write: whoever reads it sees all of it, or none."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main() -> int:
    begun = time.monotonic()
    path, marks, budget, workers = sys.argv[1:]
    from nasbot.execution.interruption import Interrupted, leaving_on_signals

    try:
        with leaving_on_signals(second_kills=True):
            said("ready")
            from nasbot.study import Study
            from nasbot.study.interrupted_message import interrupted_message
            from tests.faults.objectives import Timed
            from tests.study.searchers import Sensitive

            is_first = True

            def changed(trial) -> None:
                nonlocal is_first
                if is_first:
                    said("begun", time.monotonic() - begun, time.process_time())
                    is_first = False
                if trial.state.is_final:
                    said("recorded", trial.number)

            with Study.open(path, Sensitive(), seed=6) as study:
                try:
                    study.optimise(Timed(marks), int(budget), int(workers), timeout_per_trial=300, on_change=changed)
                except Interrupted as stop:
                    print(interrupted_message(study, stop, resume="the same again"), file=sys.stderr)
                    raise
    except Interrupted:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A driver in a control group that is short of memory: STUDY BUDGET; every other trial eats until somebody ends it."""

import sys


def main() -> int:
    from nasbot.study import Study
    from tests.faults.objectives import hungry_without_limit
    from tests.study.searchers import Sensitive

    with Study.open(sys.argv[1], Sensitive(), seed=6) as study:
        study.optimise(hungry_without_limit, int(sys.argv[2]), 1, timeout_per_trial=300, max_consecutive_failures=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Hundreds of faults of each kind, from seeded schedules; they run when NASBOT_FAULTS=1 (``make test-faults``).

Short forms of the same are in the default suite. Environment:
    NASBOT_FAULTS=1        run them
    NASBOT_FAULTS_SEED=…   the seed of all schedules; drawn afresh otherwise, and printed where a test fails
    NASBOT_FAULTS_SHARE=…  that share of each number of faults, 0.1 for a tenth

Times are measured on whatever this machine does besides. What a bar in seconds is compared with is therefore the time
measured divided by the load of that moment: processes that want a core, per core (tests/faults/watching.py).
"""

import os
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
SWITCH = "NASBOT_FAULTS"
PATIENCE = 6000  # seconds; a test of one minute takes ten with twenty other processes at work


def pytest_collection_modifyitems(items):
    is_on = os.environ.get(SWITCH, "").strip().lower() in {"1", "true", "yes", "on"}
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(PATIENCE))  # where the test names no other
            if not is_on:
                item.add_marker(pytest.mark.skip(reason=f"faults; `make test-faults` ({SWITCH}=1) runs it"))


@pytest.fixture
def rng(request):
    """The schedule's generator: of the seed, and of the test's own name."""
    seed = int(os.environ.get("NASBOT_FAULTS_SEED") or np.random.SeedSequence().entropy % 2**32)
    print(f"{SWITCH}_SEED={seed}")
    return np.random.default_rng([seed, *request.node.name.encode()])


@pytest.fixture
def share():
    """How many of ``n`` faults to make."""
    part = float(os.environ.get("NASBOT_FAULTS_SHARE") or 1.0)
    return lambda n: max(1, round(n * part))

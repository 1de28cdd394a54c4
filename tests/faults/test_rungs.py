"""Two hundred SIGKILLs of a driver on rungs and in finals: nothing lost, no rung repeated, decisions the same."""

import pytest

from tests.faults.rung_kills import survive


@pytest.mark.parametrize("workers", [1, 2])
def test_two_hundred_kills_across_rungs_and_finals(tmp_path, rng, share, workers):
    survive(tmp_path, rng, share(100), workers)

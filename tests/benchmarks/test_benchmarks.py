"""The benchmark compares like with like, and its verdicts are the right way round."""

import numpy as np
import pytest

from benchmarks.bars import Bar
from benchmarks.otmann import Contest, fresh, networks


@pytest.fixture(scope="module", params=["mlp-reg", "cnn"])
def contest(request: pytest.FixtureRequest) -> Contest:
    small = pytest.MonkeyPatch()
    small.setattr("benchmarks.otmann.N_SIDE", {8: 3})
    yield Contest(request.param, 8)
    small.undo()


def test_every_contestant_solves_the_same_problems(contest: Contest):
    ours = contest.ours()
    assert ours.shape == (4, 3, 3)
    assert ours.min() > 0
    for other in (contest.emd2(shared=True), contest.emd2(shared=False), contest.emd_c()):
        np.testing.assert_allclose(other, ours, rtol=1e-9)
    assert contest.largest_difference() < 1e-12


def test_networks_are_the_same_at_every_call_and_copies_remember_nothing():
    archs = networks("cnn", 8, 2, seed=1)
    assert archs == networks("cnn", 8, 2, seed=1)
    assert archs != networks("cnn", 8, 2, seed=2)
    assert archs[0].masses.sum() > 0
    assert "masses" in vars(archs[0])
    assert "masses" not in vars(fresh(archs)[0])


@pytest.mark.parametrize(
    ("measured", "at_least", "passed", "through"),
    [
        (10.0, True, True, True),
        (9.0, True, False, True),
        (4.0, True, False, False),
        (10.0, False, True, True),
        (11.0, False, False, False),
    ],
)
def test_verdicts(measured: float, at_least: bool, passed: bool, through: bool):
    bar = Bar("speed", measured, 10.0, 5.0 if at_least else 10.0, at_least)
    assert (bar.passed, bar.through_gate) == (passed, through)
    assert ("PASS" in str(bar)) == passed

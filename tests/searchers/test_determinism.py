"""The same seed and the same history give the same proposal: later, elsewhere, on other threads, in a replay."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from nasbot.architecture import SearchSpace
from nasbot.execution import SimulatedExecutor
from nasbot.otmann import Otmann
from nasbot.searchers import NASBOT, EvolutionSearch
from nasbot.searchers.memory import DistanceMemory
from nasbot.searchers.threads import on_one_blas_thread
from nasbot.study import Study
from tests.searchers.problems import SEARCHERS, follow, made, mlp_pool, propose, value_of

ASKING = """
from nasbot.searchers import *
from nasbot.study import Study
from tests.searchers.problems import made
study = Study.open({path!r}, made({kind}), seed=5)
print(study.ask().arch.to_json())
"""


def simulated(arch):
    """A value, and a duration that has nothing to do with it."""
    return value_of(arch), 1.0 + int(arch.fingerprint[8:12], 16) / 2**16


@pytest.mark.parametrize("kind", SEARCHERS)
def test_the_next_proposal_is_the_same_in_another_process(kind, tmp_path):
    """With other hashes of strings, other places in memory and another number of threads; exactly, not only up to
    numbering."""
    path = tmp_path / "study.sqlite"
    with Study.open(path, made(kind), seed=5) as study:
        study.optimise(simulated, 8, executor=SimulatedExecutor(2))
    here = Study.in_memory(made(kind), seed=5).optimise(simulated, 8, executor=SimulatedExecutor(2)).ask()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONHASHSEED": "12345",
        "OPENBLAS_NUM_THREADS": "3",
    }
    program = ASKING.format(path=str(path), kind=kind.__name__)
    there = subprocess.run([sys.executable, "-c", program], env=environment, text=True, capture_output=True, check=True)
    assert there.stdout.strip() == here.arch.to_json()


@pytest.mark.parametrize("kind", SEARCHERS)
def test_a_resumed_study_replays_as_one(kind, tmp_path):
    """Each piece had a searcher that remembered nothing of the one before."""
    for budget in (6, 9, 12):
        with Study.open(tmp_path / "study.sqlite", made(kind), seed=2) as study:
            study.optimise(simulated, budget, executor=SimulatedExecutor(3))
    with Study.open(tmp_path / "study.sqlite", made(kind), seed=2) as study:
        assert [t.number for t in study.history.finished] != list(range(12))
        for trial, proposal in study.replay():
            assert proposal.arch == trial.arch


@pytest.mark.parametrize("kind", SEARCHERS)
def test_a_parallel_run_replayed_from_its_completion_order_gives_the_same_proposals(kind):
    run = Study.in_memory(made(kind), seed=4).optimise(simulated, 13, executor=SimulatedExecutor(4))
    assert [t.number for t in run.history.finished] != list(range(13))
    fresh = made(kind)  # its caches know nothing of the order in which networks arrived
    for n in reversed(range(run.n_pool, 13)):
        proposal = propose(fresh, run.history.at_proposal(n), seed=4)
        assert proposal.arch.layers == run.history[n].arch.layers
        assert proposal.arch.edges == run.history[n].arch.edges


def test_distances_do_not_depend_on_who_arrived_first():
    networks = [trial.arch for trial in follow(made(EvolutionSearch), 9)]
    one, other = DistanceMemory(Otmann()), DistanceMemory(Otmann())
    for n in range(1, len(networks) + 1):
        one.between(networks[:n])
    other.between(networks[:0:-1])
    for a, b in zip(one.between(networks), other.between(networks), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, a.transpose(0, 2, 1))
        assert not a.diagonal(axis1=1, axis2=2).any()


def test_remembered_distances_are_those_of_the_solver():
    networks = mlp_pool()
    d, d_bar = DistanceMemory(Otmann()).between(networks)
    expected = Otmann().pairwise(networks)
    np.testing.assert_allclose(d, expected.d, rtol=1e-12)
    np.testing.assert_allclose(d_bar, expected.d_bar, rtol=1e-12)


def test_deciding_takes_one_thread_and_gives_the_others_back():
    assert scipy.linalg  # its BLAS is loaded

    def n_threads():
        return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = n_threads()
        inside = on_one_blas_thread(n_threads)()
        assert set(inside) == {1}
        assert n_threads() == before
        with pytest.raises(ZeroDivisionError):
            on_one_blas_thread(lambda: 1 / 0)()
        assert n_threads() == before


def test_a_default_searcher_on_any_number_of_threads():
    """Sixty networks are enough for OpenBLAS to share the work out."""
    space = SearchSpace("mlp-reg")
    history = follow(EvolutionSearch(space=space), 50)
    proposals = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            proposals.append(propose(NASBOT(space=space), history))
    assert proposals[0].arch.to_json() == proposals[1].arch.to_json()
    assert proposals[0].forecast.utility == proposals[1].forecast.utility

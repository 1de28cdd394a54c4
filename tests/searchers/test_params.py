"""Params searched together with the network: never the same candidate, resumes, the prior, points told."""

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import nasbot
from nasbot import Candidate, Choice, Fidelity, Float, Integer, OptionError, SearchSpace
from nasbot.errors import OutsideSpaceError, StudyError
from nasbot.gp import BeliefOptions
from nasbot.otmann import Otmann
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO, evolution_search
from nasbot.searchers.knowledge import Stopwatch
from nasbot.searchers.memory import CrossMemory
from nasbot.study import Study
from nasbot.study.rebuilding import searcher_of_study
from nasbot.trial import Scored
from tests.conftest import THOROUGH
from tests.searchers.problems import SEARCHERS, follow, made, mlp_pool, propose, scored, value_of

PARAMS = {
    "rate": Float(1e-4, 1e-1, log=True, default=1e-2),
    "batch": Choice(8, 16, 32, 64, ordered=True, default=32),
    "schedule": Choice("cosine", "step"),
    "drops": Integer(1, 4, when=("schedule", "step")),
}
joint = partial(made, params=PARAMS)
N_IN_A_ROW = {NASBOT: 25, RandomSearch: 40, EvolutionSearch: 100, TreeBO: 15}  # 500 of each in a thorough run


def score(arch, params, trial):
    assert trial.params == params
    return value_of(arch) - abs(PARAMS["rate"].unit(params["rate"]) - 0.3) - 0.1 * (params["schedule"] == "step")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", SEARCHERS)
def test_proposals_in_a_row_without_a_duplicate_and_inside(kind):
    searcher = joint(kind)
    history = follow(searcher, 500 if THOROUGH else N_IN_A_ROW[kind])
    assert len({trial.candidate.fingerprint for trial in history}) == len(history)
    for trial in history:
        searcher.domain.check(trial.candidate)
    assert len({trial.candidate.params["rate"] for trial in history}) >= 3


@pytest.mark.parametrize("kind", SEARCHERS)
def test_the_same_after_a_resume(kind, tmp_path):
    whole = Study.in_memory(joint(kind), seed=1).optimise(score, 10)
    with Study.open(tmp_path / "study.db", joint(kind), seed=1) as study:
        study.optimise(score, 6)
    with Study.open(tmp_path / "study.db", joint(kind), seed=1) as study:
        study.optimise(score, 10)
        assert [t.candidate for t in study.history] == [t.candidate for t in whole.history]


REPLAYING = """
from nasbot.study import StudyView
with StudyView.read({path!r}) as view:
    for trial, proposal in view.replay():
        print(trial.number, (trial.candidate, trial.fidelity) == (proposal.candidate, proposal.fidelity))
"""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fidelity", [None, "steps"])
@pytest.mark.parametrize("kind", SEARCHERS)
def test_the_same_in_another_process(kind, fidelity, tmp_path):
    """With other hashes of strings, other places in memory and another number of threads."""
    n = 100 if THOROUGH else 10
    with Study.open(tmp_path / "study.db", joint(kind, fidelity=fidelity), seed=1) as study:
        study.optimise(score, study.n_pool + n // 2)
    with Study.open(tmp_path / "study.db", joint(kind, fidelity=fidelity), seed=1) as study:
        study.optimise(score, study.n_pool + n)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONHASHSEED": "12345",
        "OPENBLAS_NUM_THREADS": "3",
    }
    program = REPLAYING.format(path=str(tmp_path / "study.db"))
    there = subprocess.run([sys.executable, "-c", program], env=environment, text=True, capture_output=True, check=True)
    answers = [line.split() for line in there.stdout.splitlines()]
    assert len(answers) == n
    assert [number for number, is_same in answers if is_same != "True"] == []


def test_distances_to_a_network_are_computed_once_while_its_params_are_tuned():
    counted = CountedDistance()
    known, asked = nasbot.initial_pool("mlp-reg")[:3], nasbot.initial_pool("mlp-reg")[3:6]
    memory = CrossMemory(counted, counted.pack(known))
    d, d_bar = memory.to(asked)
    again, again_bar = memory.to([asked[2], asked[0]])
    more, _ = memory.to([asked[1], known[0]])
    assert counted.asked == [3, 1]
    np.testing.assert_array_equal(again, d[:, :, [2, 0]])
    np.testing.assert_array_equal(again_bar, d_bar[:, :, [2, 0]])
    np.testing.assert_array_equal(more[:, :, 0], d[:, :, 1])
    np.testing.assert_allclose(more[:, 0, 1], 0, atol=1e-9)


class CountedDistance:
    """OTMANN that remembers how many networks it was asked about."""

    def __init__(self):
        self.asked = []

    def pack(self, archs):
        return list(archs)

    def cross(self, a, b):
        self.asked.append(len(b))
        return Otmann().cross(a, b)


def test_a_resume_with_another_domain_shows_the_difference(tmp_path):
    Study.open(tmp_path / "study.db", joint(NASBOT)).close()
    wider = {**PARAMS, "rate": Float(1e-4, 1.0, log=True, default=1e-2)}
    with pytest.raises(StudyError, match=r"params\.rate\.high: stored 0\.1, given 1\.0(.|\n)*--fork"):
        Study.open(tmp_path / "study.db", joint(NASBOT, params=wider))


# -- the prior ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [{}, None, {"rate": 1e-3, "schedule": "step", "drops": 2}])
def test_a_searcher_with_this_prior_is_made_again_from_its_settings(prior):
    searcher = joint(NASBOT, prior=prior)
    study = Study.in_memory(searcher)
    again = searcher_of_study(json.loads(json.dumps(study.settings)), study.history)
    assert again.prior == prior
    history = follow(searcher, 0)
    assert propose(again, history).candidate == propose(searcher, history).candidate


def test_the_prior_moves_proposals():
    history = follow(joint(NASBOT), 0)
    rates = {name: _rate(history, prior) for name, prior in (("low", {"rate": 1e-4}), ("high", {"rate": 1e-1}))}
    assert rates["low"] < rates["high"]


def _rate(history, prior):
    return propose(joint(NASBOT, prior=prior), history).candidate.params["rate"]


def test_networks_alone_are_described_as_before():
    assert "prior" not in made(NASBOT).settings()
    assert made(NASBOT, prior=None).settings()["prior"] is None


@pytest.mark.parametrize(
    ("prior", "said"), [({"size": 1}, "unknown here"), ({"rate": 5.0}, "param rate"), ("low", "by name, or None")]
)
def test_a_prior_that_cannot_be_meant(prior, said):
    with pytest.raises(OptionError, match=said):
        joint(NASBOT, prior=prior)


# -- points measured elsewhere -----------------------------------------------------------------------------------------


def test_what_was_measured_elsewhere_is_known(tmp_path):
    searcher = joint(NASBOT)
    tuned = Candidate(mlp_pool()[0], {"rate": 1e-3, "batch": 8, "schedule": "cosine"})
    with Study.open(tmp_path / "study.db", searcher) as study:
        added = study.add(tuned, 100.0)
        assert (added.value, added.origin.searcher, study.best.number) == (100.0, "added", added.number)
        with pytest.raises(StudyError, match=f"trial {added.number} has this candidate already"):
            study.add(tuned, 3.0)
        with pytest.raises(StudyError, match="trial 0 has this candidate already"):
            study.add(mlp_pool()[0], 3.0)  # waiting
        with pytest.raises(OptionError, match="param batch"):
            study.add(Candidate(mlp_pool()[0], {**tuned.params, "batch": 9}), 3.0)
        with pytest.raises(OutsideSpaceError):
            study.add(Candidate(nasbot.initial_pool("mlp-reg")[2], tuned.params), 3.0)
        study.optimise(score, 6)
    with Study.open(tmp_path / "study.db", searcher) as again:
        assert again.best.candidate == tuned
        assert [trial.candidate for trial, proposal in again.replay()] == [p.candidate for _, p in again.replay()]


@pytest.mark.parametrize("kind", SEARCHERS)
def test_what_was_measured_elsewhere_is_of_full_fidelity_and_never_proposed(kind):
    tuned = Candidate(mlp_pool()[0], {"rate": 1e-3, "batch": 8, "schedule": "cosine"})
    study = Study.in_memory(joint(kind, fidelity=Fidelity()), seed=3)
    added = study.add(tuned, 100.0)
    assert (added.fidelity, study.best) == (1.0, added)
    study.optimise(score, 16)
    assert [trial.number for trial in study.history if trial.candidate == tuned] == [added.number]
    evaluated = [(trial.candidate.fingerprint, trial.fidelity) for trial in study.history]
    assert len(set(evaluated)) == len(evaluated)


# -- in one call -------------------------------------------------------------------------------------------------------


def test_maximise_searches_params_too():
    study = nasbot.maximise(
        score, "mlp-reg", params={"rate": PARAMS["rate"], "schedule": PARAMS["schedule"]}, **_few(13)
    )
    assert set(study.best.candidate.params) == {"rate", "schedule"}
    assert len(study.history.completed) == 13
    seen = []
    nasbot.minimise(lambda arch, params: seen.append(params) or len(params), "mlp-reg", params=PARAMS, **_few(1))
    assert seen[0]["rate"] == 1e-2


def test_params_need_an_objective_that_takes_them_and_no_other_searcher():
    with pytest.raises(OptionError, match="batch, drops, rate, schedule: searched, but the objective takes neither"):
        nasbot.maximise(value_of, "mlp-reg", params=PARAMS, **_few(1))
    with pytest.raises(OptionError, match="the searcher that is given has its own"):
        nasbot.maximise(score, "mlp-reg", params=PARAMS, searcher=NASBOT(space=SearchSpace("mlp-reg")), **_few(1))


def _few(trials):
    return {"trials": trials, "name": None}


def test_an_objective_may_take_params_by_the_trial_alone():
    def by_trial(arch, trial):
        return Scored(trial.params["rate"])

    study = nasbot.maximise(by_trial, "mlp-reg", params=PARAMS, **_few(1))
    assert study.best.value == 1e-2


# -- the incumbent -----------------------------------------------------------------------------------------------------


def test_where_params_are_searched_an_improvement_must_exceed_the_best_mean_not_the_luckiest_value():
    """One value far above its neighbours: what is near it is still worth more than what is bad and unknown."""
    searcher, rng = joint(NASBOT, belief=BeliefOptions(n_samples=3)), np.random.default_rng(0)
    study = Study.in_memory(searcher, seed=1)
    for trial in Study.in_memory(joint(RandomSearch), seed=1).optimise(score, 40).history:
        if trial.candidate.fingerprint not in study.history.seen:
            study.add(trial.candidate, trial.value + rng.normal())
    view = searcher._knowledge.view(study.history, np.random.default_rng(2), Stopwatch())
    full = view.belief.denoised
    np.testing.assert_array_equal(view.incumbent, full.max(axis=1, keepdims=True))
    assert view.incumbent.max() < view.belief.best_value
    alone = made(NASBOT)
    networks = Study.in_memory(alone, seed=1).optimise(value_of, 6).history
    unchanged = alone._knowledge.view(networks, np.random.default_rng(2), Stopwatch())
    assert unchanged.incumbent == unchanged.belief.best_value


def test_evolution_that_finds_no_change_proposes_any_new_candidate(monkeypatch):
    monkeypatch.setattr(evolution_search, "TRIES", 0)
    history = scored(mlp_pool())
    proposal = propose(joint(EvolutionSearch), history)
    assert proposal.candidate.fingerprint not in history.seen
    assert set(proposal.candidate.params) >= {"rate", "schedule"}

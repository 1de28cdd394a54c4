"""Many workers at once: one belief, a Thompson draw for each."""

import numpy as np
import pytest

from nasbot.acquisition import thompson_choices
from nasbot.domain import Choice
from nasbot.errors import OptionError
from nasbot.execution import SimulatedExecutor
from nasbot.searchers import NASBOT, RandomSearch
from nasbot.searchers import knowledge as module
from nasbot.searchers.base import ProposesMany
from nasbot.study import Study
from tests.searchers.problems import made, scored
from tests.searchers.test_thousands import KNOWN, searcher


def propose_many(one, history, n, seed=3):
    return one.propose_many(history, n, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("local_above", [20, 800])
def test_all_are_new_and_different_and_the_same_again(local_above, monkeypatch):
    for name, value in {"N_REMEMBERED": 40, "N_BEST": 10, "N_CLOSER": 3, "N_PER_FIT": 32}.items():
        monkeypatch.setattr(module, name, value)
    history = scored(KNOWN)
    proposals = propose_many(searcher(local_above), history, 30)
    fingerprints = [proposal.candidate.fingerprint for proposal in proposals]
    assert len(set(fingerprints)) == 30
    assert not set(fingerprints) & set(history.seen)
    assert all(proposal.forecast.sd > 0 and proposal.origin.modifiers for proposal in proposals)
    again = propose_many(searcher(local_above), history, 30)
    assert [proposal.candidate.fingerprint for proposal in again] == fingerprints


def test_with_params_too_all_are_new_and_of_the_domain():
    rates = {"rate": Choice(1, 2, 3, 4, 5, 6, 7, 8, ordered=True), "schedule": Choice("cosine", "step")}
    study = _study(params=rates, prior=None)
    proposals = propose_many(study.searcher, study.history, 12)
    fingerprints = {proposal.candidate.fingerprint for proposal in proposals}
    assert len(fingerprints) == 12
    assert not fingerprints & set(study.history.seen)
    assert all(proposal.candidate in study.searcher.domain for proposal in proposals)
    assert len({proposal.candidate.params["rate"] for proposal in proposals}) > 1


def test_nothing_is_chosen_at_once_while_nothing_is_believed():
    assert propose_many(searcher(800), scored([]), 5) == []


def test_draws_choose_what_may_be_best_and_not_what_is_alike():
    """Ten copies of one candidate share its chances; three others have their own."""
    n_alike = 10
    covariance = np.zeros((1, 13, 13))
    covariance[0, :n_alike, :n_alike] = 1.0
    covariance[0, range(n_alike, 13), range(n_alike, 13)] = 1.0
    mean = np.zeros((1, 13))
    first = [thompson_choices(mean, covariance, np.zeros(13), 1, rng=np.random.default_rng(s))[0] for s in range(400)]
    assert np.mean([choice < n_alike for choice in first]) == pytest.approx(0.25, abs=0.08)
    mean[0, 12] = -50.0
    chosen = thompson_choices(mean, covariance, np.zeros(13), 12, rng=np.random.default_rng(0))
    assert sorted(chosen) == list(range(12)), "the hopeless one is not among the first twelve"
    impossible = np.where(np.arange(13) == 3, -np.inf, 0.0)
    assert 3 not in thompson_choices(mean, covariance, impossible, 11, rng=np.random.default_rng(0))


def _study(**options):
    study = Study.in_memory(made(NASBOT, **options))
    for trial in study.ask(len(study.searcher.initial_pool())):
        study.tell(trial, -abs(trial.arch.total_mass - 5e5))
    return study


def test_a_study_is_asked_for_many_and_replays_them():
    study = _study()
    trials = study.ask(20)
    assert [trial.state for trial in trials] == ["running"] * 20
    assert len({trial.candidate.fingerprint for trial in trials}) == 20
    for trial in trials[::-1]:
        study.tell(trial, 1.0)
    study.tell(study.ask(), 2.0)
    replayed = list(study.replay())
    assert len(replayed) == 21
    assert all(trial.candidate == proposal.candidate for trial, proposal in replayed)


def test_others_are_asked_one_after_the_other():
    study = Study.in_memory(made(RandomSearch))
    assert not isinstance(study.searcher, ProposesMany)
    assert len({trial.candidate.fingerprint for trial in study.ask(25)}) == 25
    with pytest.raises(OptionError, match="n: expected at least 1 trial to ask for, got 0"):
        study.ask(0)


def test_a_thousand_simulated_workers():
    study = Study.in_memory(made(NASBOT))
    largest = []
    study.optimise(_n_layers, 3, executor=SimulatedExecutor(1000, duration=_second))
    study.optimise(
        _n_layers,
        60,
        executor=SimulatedExecutor(1000, duration=_second),
        on_change=lambda trial: largest.append(len(study.history.pending)),
    )
    assert study.history.n_begun == 60 == len(study.history)
    assert max(largest) == 57, "all ran at the same time"
    assert [trial.notes.get("batch") for trial in study.history[3:]] == [{"first": 3, "size": 57}] * 57


def _n_layers(arch):
    return float(len(arch.layers))


def _second(arch):
    return 1.0

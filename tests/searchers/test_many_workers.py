"""Many workers at once: one belief, and choices that add to each other."""

import numpy as np
import pytest

from nasbot.acquisition import improving_choices
from nasbot.domain import Choice
from nasbot.errors import OptionError
from nasbot.execution import SimulatedExecutor
from nasbot.searchers import NASBOT, RandomSearch
from nasbot.searchers import knowledge as module
from nasbot.searchers import nasbot as nasbot_module
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


def test_the_networks_looked_at_in_all_rounds_are_counted_together(monkeypatch):
    looked_at, maximise = [], NASBOT._maximise

    def counted(*args, **options):
        maximum = maximise(*args, **options)
        looked_at.append(maximum.n_evaluations)
        return maximum

    monkeypatch.setattr(NASBOT, "_maximise", counted)
    monkeypatch.setattr(nasbot_module, "evaluation_schedule", lambda step: 16)
    monkeypatch.setattr(nasbot_module, "N_PER_ROUND", 2)
    proposals = propose_many(searcher(800), scored(KNOWN[:12]), 4)
    assert len(looked_at) == 2
    assert {proposal.forecast.n_utilities for proposal in proposals} == {sum(looked_at)}


def test_nothing_is_chosen_at_once_while_nothing_is_believed():
    assert propose_many(searcher(800), scored([]), 5) == []


def choices(mean, covariance, n, *, added=None, best_value=0.0, seed=0):
    none = np.zeros(mean.shape[1])
    rng = np.random.default_rng(seed)
    return improving_choices(mean, covariance, none if added is None else added, best_value, n, rng=rng)


def ten_alike_and_three_others():
    """Of unit variance, the ten perfectly correlated."""
    covariance = np.eye(13)[None]
    covariance[0, :10, :10] = 1.0
    return np.zeros((1, 13)), covariance


def test_of_candidates_believed_alike_one_is_chosen_before_the_others():
    mean, covariance = ten_alike_and_three_others()
    for seed in range(20):
        first = choices(mean, covariance, 4, seed=seed)
        assert sorted(first)[1:] == [10, 11, 12]
        assert min(first) < 10


def test_the_hopeless_and_the_impossible_come_last():
    mean, covariance = ten_alike_and_three_others()
    mean[0, 12] = -50.0
    assert sorted(choices(mean, covariance, 12)) == list(range(12))
    impossible = np.where(np.arange(13) == 3, -np.inf, 0.0)
    chosen = choices(mean, covariance, 13, added=impossible)
    assert chosen[-1] == 3
    assert sorted(chosen) == list(range(13))
    assert len(choices(mean, covariance, 99)) == 13


def test_each_adds_most_to_the_expected_gain_of_all():
    """Against a hundred times as many draws of the twin's own, by two beliefs that differ."""
    rng = np.random.default_rng(5)
    roots = rng.normal(size=(2, 6, 6)) / 2
    mean, covariance, best_value = rng.normal(size=(2, 6)) / 2, roots @ roots.swapaxes(1, 2), np.array([[0.3], [0.8]])
    added = rng.normal(size=6) / 2
    draws = [rng.multivariate_normal(mean[s], covariance[s], size=50_000) - best_value[s] for s in range(2)]
    gains = np.maximum(np.concatenate(draws), 0.0)
    chosen = choices(mean, covariance, 4, added=added, best_value=best_value)
    for k, one in enumerate(chosen):
        before = gains[:, chosen[:k]].max(axis=1, initial=0.0)
        adds = np.exp(added) * (np.maximum(gains, before[:, None]) - before[:, None]).mean(axis=0)
        assert adds[one] > 0.9 * adds.max(), f"choice {k}"


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
    with pytest.raises(OptionError, match="n: expected at least 1 trial to ask for, as a whole number, got 0"):
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

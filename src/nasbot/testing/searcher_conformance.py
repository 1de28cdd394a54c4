"""The promises of ``nasbot.searchers.base.Searcher`` as tests. Inherit, say how to make one, and let pytest collect it.

class TestMySearcher(SearcherConformance):
    def make_searcher(self) -> Searcher:
        return MySearcher(SearchSpace("mlp-reg"))
"""

from __future__ import annotations

import json
import random

import numpy as np

from nasbot._json import plain_json
from nasbot._rng import Role, stream
from nasbot.candidate import Candidate
from nasbot.searchers.base import Proposal, Recommends, Searcher
from nasbot.trial import Failed, FailureCause, History, Outcome, Point, Scored, Trial

SEED = 17


class SearcherConformance:
    """Tests for any Searcher; ``make_searcher`` gives equal ones at every call."""

    n_in_a_row = 6  # how many proposals are made one after the other

    def make_searcher(self) -> Searcher:
        """A new searcher; any two made here have the same settings."""
        raise NotImplementedError

    def candidates(self, searcher: Searcher, n: int) -> list[Candidate]:
        """Different candidates of the domain to make histories of: its pool, then its first proposals."""
        found = list(searcher.initial_pool())[:n]
        while len(found) < n:
            history = History(tuple(Trial(number=i, candidate=one) for i, one in enumerate(found)))
            found.append(propose(searcher, history).candidate)
        return found

    # -- tests ---------------------------------------------------------------------------------------------------------

    def test_it_says_what_it_is(self) -> None:
        searcher = self.make_searcher()
        assert searcher.name
        assert searcher.name.isprintable()
        settings = plain_json(searcher.settings())
        assert json.loads(json.dumps(settings, allow_nan=False)) == settings
        assert plain_json(self.make_searcher().settings()) == settings

    def test_the_pool_is_in_the_domain(self) -> None:
        searcher = self.make_searcher()
        pool = searcher.initial_pool()
        assert all(candidate in searcher.domain for candidate in pool)
        assert len({candidate.fingerprint for candidate in pool}) == len(pool)
        assert searcher.initial_pool() == pool

    def test_proposals_are_new_and_in_the_domain(self) -> None:
        searcher = self.make_searcher()
        history = scored(self.candidates(searcher, 5))
        for _ in range(self.n_in_a_row):
            proposal = propose(searcher, history)
            check(searcher, history, proposal)
            history = history.with_trial(proposal.trial(history))  # left pending
        for _ in range(self.n_in_a_row):
            proposal = propose(searcher, history)
            check(searcher, history, proposal)
            trial = proposal.trial(history).begun(1.0)
            history = history.with_trial(trial.ended(score(trial.candidate), at=2.0, rank=len(history.finished)))

    def test_any_history_is_answered(self) -> None:
        searcher = self.make_searcher()
        networks = self.candidates(searcher, 5)
        for history in (
            History(),
            scored(networks[:1]),
            scored(networks, values=[1.0] * len(networks)),
            scored(networks, values=[1e300, -1e300, 0.0, 1e-300, 5.0]),
            failed(networks),
            History(tuple(Trial(number=n, candidate=one) for n, one in enumerate(networks))),
        ):
            check(searcher, history, propose(searcher, history))

    def test_the_same_question_has_the_same_answer(self) -> None:
        searcher = self.make_searcher()
        networks = self.candidates(searcher, 5)
        history = scored(networks)
        first = propose(searcher, history).candidate
        propose(searcher, failed(networks[:3]))  # another question in between
        assert propose(searcher, history).candidate == first
        assert propose(self.make_searcher(), history).candidate == first

    def test_luck_of_the_pending_does_not_matter(self) -> None:
        searcher = self.make_searcher()
        networks = self.candidates(searcher, 6)
        history = scored(networks[:4])
        waiting = [Trial(number=n, candidate=networks[n], proposed_after=4) for n in (4, 5)]
        running = [trial.begun(1.0).with_points([Point(1, 9.0)]) for trial in waiting]
        one, other = (history.with_trial(a).with_trial(b) for a, b in (waiting, running))
        assert propose(searcher, one).candidate == propose(self.make_searcher(), other).candidate

    def test_what_it_recommends_is_completed(self) -> None:
        searcher = self.make_searcher()
        if not isinstance(searcher, Recommends):
            return  # it need not
        networks = self.candidates(searcher, 5)
        for history in (History(), failed(networks)):
            assert recommend(searcher, history) is None
        pending = Trial(number=4, candidate=networks[4], proposed_after=4)
        for values in ([0.0, 3.0, 1.0, 2.0], [1.0] * 4, [1e300, -1e300, 0.0, 1e-300]):
            history = scored(networks[:4], values=values).with_trial(pending)
            found = recommend(searcher, history)
            assert found in history.completed
            assert recommend(searcher, history) == found

    def test_it_draws_from_its_own_generator_only(self) -> None:
        searcher = self.make_searcher()
        history = scored(self.candidates(searcher, 4))
        before = (random.getstate(), json.dumps(np.random.get_state(legacy=False), default=str))  # noqa: NPY002
        propose(searcher, history)
        assert (random.getstate(), json.dumps(np.random.get_state(legacy=False), default=str)) == before  # noqa: NPY002


def propose(searcher: Searcher, history: History) -> Proposal:
    """The next proposal, as a study would ask for it."""
    return searcher.propose(history, rng=stream(SEED, len(history), Role.PROPOSAL))


def recommend(searcher: Recommends, history: History) -> Trial | None:
    """What to train again, as a study would ask for it."""
    return searcher.recommend(history, rng=stream(SEED, len(history), Role.PROPOSAL))


def check(searcher: Searcher, history: History, proposal: Proposal) -> None:
    """In the domain, and new; a promotion is a known candidate at a new fidelity."""
    searcher.domain.check(proposal.candidate)
    fingerprint = proposal.candidate.fingerprint
    if proposal.origin.of_trial is not None:
        repeated = history[proposal.origin.of_trial]
        assert (repeated.candidate, repeated.fidelity) == (proposal.candidate, proposal.fidelity)
        assert repeated.value is not None, "repeats what has no value"
        return
    assert (fingerprint, proposal.fidelity) not in history.seen_at, "proposed again"
    if proposal.promoted_from is None:
        assert fingerprint not in history.seen, "proposed again"
    else:
        assert history[proposal.promoted_from].candidate == proposal.candidate
        assert history[proposal.promoted_from].fidelity < proposal.fidelity


def score(candidate: Candidate) -> Scored:
    """A value that depends on the network."""
    return Scored(len(candidate.arch.layers) - 0.1 * len(candidate.arch.edges))


def scored(networks: list[Candidate], values: list[float] | None = None) -> History:
    """A history in which these were evaluated."""
    outcomes = [score(candidate) for candidate in networks] if values is None else [Scored(value) for value in values]
    return _ended(networks, list(outcomes))


def failed(networks: list[Candidate]) -> History:
    """A history in which all of these failed."""
    causes = list(FailureCause)
    return _ended(networks, [Failed(causes[n % len(causes)], "no luck") for n in range(len(networks))])


def _ended(networks: list[Candidate], outcomes: list[Outcome]) -> History:
    pairs = enumerate(zip(networks, outcomes, strict=True))
    trials = [Trial(number=n, candidate=one).begun(float(n)).ended(end, at=n + 1.0, rank=n) for n, (one, end) in pairs]
    return History(tuple(trials))

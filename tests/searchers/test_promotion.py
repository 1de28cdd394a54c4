"""Promotion over rungs: who may be promoted, who is, and what is left to pay."""

import pytest

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.domain import Fidelity
from nasbot.searchers import NASBOT
from nasbot.searchers.promotion import by_rank, next_rung, promotable, promoted_as, remaining_cost
from nasbot.study import Study
from nasbot.trial import Direction, History, Scored, Trial
from tests.searchers.problems import SEARCHERS, made, propose, value_of

FIDELITY = Fidelity()
LOW, MIDDLE, HIGH = FIDELITY.rungs
POOL = initial_pool("mlp-reg")


def trials(*entries, direction="maximise"):
    """A history of (network, rung, value), None for a pending one."""
    made, rank = [], 0
    for number, (i, rung, value) in enumerate(entries):
        trial = Trial(number=number, candidate=Candidate(POOL[i]), fidelity=rung)
        if value is not None:
            trial = trial.begun(0.0).ended(Scored(value), at=1.0, rank=rank)
            rank += 1
        made.append(trial)
    return History(tuple(made), Direction(direction))


def test_rungs():
    assert FIDELITY.rungs == pytest.approx((1 / 9, 1 / 3, 1))
    assert next_rung(FIDELITY, LOW) == MIDDLE
    assert next_rung(FIDELITY, HIGH) is None
    assert remaining_cost(FIDELITY, None) == pytest.approx(1 / 9 + 1 / 3 + 1)
    assert remaining_cost(FIDELITY, MIDDLE) == 1


def test_the_best_third_of_a_rung_is_promoted_and_only_once():
    history = trials((0, LOW, 1.0), (1, LOW, 3.0), (2, LOW, 2.0))
    assert by_rank(history, FIDELITY).number == 1
    promoted = trials((0, LOW, 1.0), (1, LOW, 3.0), (2, LOW, 2.0), (1, MIDDLE, None))
    assert by_rank(promoted, FIDELITY) is None
    assert [trial.number for trial in promotable(promoted, FIDELITY)] == [2, 0]


def test_a_minimised_value_is_better_when_lower():
    history = trials((0, LOW, 1.0), (1, LOW, 3.0), (2, LOW, 2.0), direction="minimise")
    assert by_rank(history, FIDELITY).number == 0


def test_higher_rungs_come_first():
    low = [(i, LOW, float(i)) for i in range(9)]
    middle = [(8, MIDDLE, 1.0), (7, MIDDLE, 2.0), (6, MIDDLE, 3.0)]
    found = by_rank(trials(*low, *middle), FIDELITY)
    assert (found.fidelity, found.candidate.arch) == (MIDDLE, POOL[6])


def test_too_few_to_choose_from():
    assert by_rank(trials((0, LOW, 1.0), (1, LOW, 2.0)), FIDELITY) is None
    assert by_rank(History(), FIDELITY) is None


# -- searchers on rungs ------------------------------------------------------------------------------------------------


def outcome_at(trial):
    """Better networks are better at every rung, and longer trainings are better."""
    return Scored(value_of(trial.arch) + trial.fidelity)


def searched(kind, n, **options):
    searcher = made(kind, fidelity=FIDELITY, **options)
    study = Study.in_memory(searcher, seed=1)
    for _ in range(n):
        trial = study.ask()
        study.tell(trial, outcome_at(trial))
    return study


@pytest.mark.parametrize("kind", SEARCHERS)
def test_every_searcher_promotes(kind):
    study = searched(kind, 22)
    history = study.history
    promoted = [trial for trial in history if trial.promoted_from is not None]
    assert promoted
    for trial in promoted:
        before = history[trial.promoted_from]
        assert (before.candidate, next_rung(FIDELITY, before.fidelity)) == (trial.candidate, trial.fidelity)
    pairs = [(trial.candidate.fingerprint, trial.fidelity) for trial in history]
    assert len(set(pairs)) == len(pairs)
    new = [trial for trial in history if trial.promoted_from is None and trial.origin.searcher != "pool"]
    assert {trial.fidelity for trial in new} == {LOW}
    assert history.best.fidelity == 1
    assert all((p.candidate, p.fidelity) == (t.candidate, t.fidelity) for t, p in study.replay())


def test_the_belief_learns_from_lower_rungs():
    history = searched(NASBOT, 16).history
    assert {trial.fidelity for trial in history} >= {LOW, HIGH}
    proposal = propose(made(NASBOT, fidelity=FIDELITY), history)
    assert proposal.forecast is None or proposal.forecast.mean is not None


def test_a_promotion_to_any_higher_rung_counts():
    history = trials((0, 0.4, 1.0), (1, 0.4, 2.0), (0, 0.6, 3.0))
    assert [promoted_as(history, trial) for trial in history] == [2, None, None]

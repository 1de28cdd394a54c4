"""The end of a budget: the best candidates once more, round and round."""

from nasbot.architecture import Layer, chain
from nasbot.automl.finals import DISTINCT, finals_of
from nasbot.candidate import Candidate
from nasbot.trial import Direction, Failed, FailureCause, History, Scored, Trial


def candidate(i):
    return Candidate(chain("mlp-reg", [Layer("relu", 8 + i)]))


def history(*outcomes, fidelities=()):
    """One trial for each (candidate's number, value or None for a failure)."""
    trials = []
    for n, (i, value) in enumerate(outcomes):
        outcome = Failed(FailureCause.EXCEPTION, "nan") if value is None else Scored(value)
        fidelity = fidelities[n] if fidelities else 1.0
        trial = Trial(number=n, candidate=candidate(i), fidelity=fidelity).begun(float(n))
        trials.append(trial.ended(outcome, at=n + 1.0, rank=n))
    return History(tuple(trials), Direction.MINIMISE)


def test_the_best_go_round():
    known = history((0, 0.5), (1, 0.1), (2, None), (3, 0.3))
    assert finals_of(known, 5) == [candidate(i) for i in (1, 3, 0, 1, 3)]
    assert finals_of(known, 0) == finals_of(known, -3) == []


def test_a_candidate_that_was_trained_twice_has_one_place():
    assert finals_of(history((0, 0.2), (1, 0.3), (0, 0.1)), 2) == [candidate(0), candidate(1)]


def test_only_the_best_few_and_none_of_short_trainings():
    many = history(*((i, float(i)) for i in range(DISTINCT + 3)))
    assert set(finals_of(many, 50)) == {candidate(i) for i in range(DISTINCT)}
    assert finals_of(history((0, 0.1), (1, 0.2), fidelities=(1 / 3, 1.0)), 1) == [candidate(1)]


def test_where_nothing_has_a_value_there_are_none():
    assert finals_of(History(), 3) == finals_of(history((0, None)), 3) == []

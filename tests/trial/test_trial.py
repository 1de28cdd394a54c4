import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.errors import OptionError, StudyError
from nasbot.trial import Cancelled, Failed, FailureCause, History, Point, Scored, Trial, TrialState, plain_json

POOL = initial_pool("mlp-reg")


def waiting(number: int, **more) -> Trial:
    return Trial(number=number, candidate=Candidate(POOL[number]), **more)


def ended(number: int, outcome, rank: int) -> Trial:
    return waiting(number).begun(float(number)).ended(outcome, at=number + 1.0, rank=rank)


@pytest.fixture
def history() -> History:
    """Six trials, recorded in another order than they were begun."""
    return History(
        (
            ended(0, Scored(1.0), 2),
            ended(1, Scored(3.0), 0),
            ended(2, Failed(FailureCause.OOM, "too big"), 1),
            waiting(3).begun(3.0),
            ended(4, Scored(3.0), 3),
            waiting(5),
        )
    )


def test_state_follows_from_the_record():
    trial = waiting(0)
    assert trial.state is TrialState.WAITING
    running = trial.begun(2.0)
    assert (running.state, running.attempts) == (TrialState.RUNNING, 1)
    assert running.requeued(interrupted=True).state is TrialState.WAITING
    for outcome, state in (
        (Scored(1), TrialState.COMPLETED),
        (Failed(FailureCause.NAN), TrialState.FAILED),
        (Cancelled(), TrialState.CANCELLED),
    ):
        done = running.ended(outcome, at=5.0, rank=0)
        assert (done.state, done.state.is_final, done.seconds) == (state, True, 3.0)


def test_a_trial_without_a_rank_has_no_outcome():
    with pytest.raises(StudyError, match="given together"):
        Trial(number=0, candidate=Candidate(POOL[0]), outcome=Scored(1.0))


def test_views_are_in_the_order_of_recording(history):
    assert [t.number for t in history.finished] == [1, 2, 0, 4]
    assert [t.number for t in history.completed] == [1, 0, 4]
    assert [t.number for t in history.failed] == [2]
    assert [t.number for t in history.pending] == [3, 5]
    assert [candidate.arch for candidate in history.evaluated.candidates] == [POOL[1], POOL[0], POOL[4]]
    assert history.evaluated.values.tolist() == [3.0, 1.0, 3.0]
    assert history.best.number == 1  # the first recorded of the two
    assert history.seen == {arch.fingerprint for arch in POOL[:6]}
    assert repr(history) == "<History: 1 waiting, 1 running, 3 completed, 1 failed>"


def test_values_cannot_be_overwritten(history):
    with pytest.raises(ValueError, match="read-only"):
        history.evaluated.values[0] = 9.0


def test_empty():
    history = History()
    assert (len(history), history.best, history.pending, history.evaluated.candidates) == (0, None, (), ())


def test_cancelled_networks_may_come_again():
    assert History((ended(0, Cancelled(), 0),)).seen == frozenset()


def test_at_proposal_forgets_what_came_later():
    trials = (
        waiting(0).begun(0.0).ended(Scored(1.0), at=1.0, rank=0),
        waiting(1).begun(0.0).with_points([Point(1, 1.0)]).ended(Scored(2.0), at=9.0, rank=2),
        waiting(2, proposed_after=1).begun(1.0).ended(Scored(3.0), at=2.0, rank=1),
        waiting(3, proposed_after=2),
    )
    seen_by_2 = History(trials).at_proposal(2)
    assert [t.state for t in seen_by_2] == ["completed", "waiting"]
    assert seen_by_2[1].curve == ()
    assert [t.number for t in History(trials).at_proposal(3).completed] == [0, 2]
    assert len(History(trials).at_proposal(0)) == 0


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        (ended(0, Scored(2.0), 2), "completed already"),
        (waiting(2), "failed already"),
        (waiting(7), "there is no trial 7"),
        (waiting(5).begun(0.0).ended(Scored(1.0), at=1.0, rank=4), "it cannot become completed"),
        (waiting(3).begun(3.0).ended(Scored(1.0), at=4.0, rank=7), "next outcome has rank 4, got 7"),
        (waiting(3, notes={"searcher": "other"}).begun(3.0), "never change"),
        (Trial(number=3, candidate=Candidate(POOL[9])).begun(3.0), "never change"),
    ],
)
def test_impossible_steps_are_refused(history, trial, words):
    with pytest.raises(StudyError, match=words):
        history.with_trial(trial)


def test_possible_steps(history):
    after = history.with_trial(history[3].ended(Scored(7.0), at=9.0, rank=4)).with_trial(waiting(6))
    assert (after.best.number, len(after), len(history)) == (3, 7, 6)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "1", True, 10**400, 1j, [1.0]])
def test_a_score_is_a_finite_number(value):
    with pytest.raises(OptionError, match="finite number"):
        Scored(value)


def test_notes_become_plain_data():
    notes = plain_json(
        {"a": np.float64(1.5), "b": np.arange(3), "c": (1, None), "d": {"e": float("nan")}, "f": "\ud800"}
    )
    assert notes == {"a": 1.5, "b": [0, 1, 2], "c": [1, None], "d": {"e": None}, "f": "?"}
    json.dumps(notes, allow_nan=False)


@pytest.mark.parametrize("notes", [{"a": object()}, {1: 2}, {"a": {1, 2}}, {"a": b"x"}, [1]])
def test_what_is_no_data_is_refused(notes):
    with pytest.raises(OptionError, match="notes and details"):
        plain_json(notes)


def test_deep_notes_are_refused():
    deep: dict = {}
    for _ in range(50):
        deep = {"a": deep}
    with pytest.raises(OptionError, match="nested deeper"):
        plain_json(deep)


def test_notes_are_copied():
    notes = {"parents": [1]}
    trial = waiting(0, notes=notes)
    notes["parents"].append(2)
    assert trial.notes == {"parents": [1]}


# -- a history grown trial by trial ------------------------------------------------------------------------------------

STEPS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["begin", "requeue", "score", "fail", "cancel"])))


def stepped(history: History, number: int, step: str) -> History:
    """The history after this step of that trial, or of a new one; itself where there is no such step."""
    is_new = number >= len(history)
    new = len(history)
    trial = Trial(number=new, candidate=Candidate(POOL[new % len(POOL)])) if is_new else history[number]
    rank = len(history.finished)
    match step, str(trial.state):
        case "begin", "waiting":
            trial = trial.begun(1.0)
        case "requeue", "running":
            trial = trial.requeued(interrupted=False)
        case "score", "running":
            trial = trial.ended(Scored(float(number)), at=2.0, rank=rank)
        case "fail", "running":
            trial = trial.ended(Failed(FailureCause.NAN), at=2.0, rank=rank)
        case "cancel", "running" | "waiting":
            trial = trial.ended(Cancelled(), at=2.0, rank=rank)
        case _ if not is_new:
            return history
    return history.with_trial(trial)


def assert_as_whole(grown: History, trials: tuple[Trial, ...]) -> None:
    """``with_trial`` shares what histories have in common; the slow twin has and derives everything anew."""
    whole = History(trials)
    assert grown == whole
    assert (grown.trials, tuple(grown), len(grown)) == (trials, trials, len(trials))
    for name in ("finished", "completed", "failed", "pending", "seen", "seen_at", "best", "ranked"):
        assert getattr(grown, name) == getattr(whole, name), name
    assert len(grown.seen) == len(set(whole.seen))
    for mine, others in zip(grown.evaluated, whole.evaluated, strict=True):
        assert list(mine) == list(others)


@given(STEPS)
def test_what_a_grown_history_derives_is_what_a_whole_one_does(steps):
    grown = History()
    for number, step in steps:
        grown = stepped(grown, number, step)
    assert_as_whole(grown, grown.trials)


@given(STEPS, st.data())
def test_a_history_is_as_it_was_whatever_grew_from_it(steps, data):
    versions = [(History(), ())]
    for number, step in steps:
        before = versions[data.draw(st.integers(max(0, len(versions) - 3), len(versions) - 1))][0]
        after = stepped(before, number, step)
        versions.append((after, tuple(after)))  # and not ``trials``, which would be remembered
    for version, trials in versions:
        assert_as_whole(version, trials)


def test_a_trial_more_costs_no_copy():
    history = stepped(stepped(History(), 0, "begin"), 0, "score")
    after = stepped(stepped(history, 1, "begin"), 1, "score")
    assert after._ledger is history._ledger
    assert (len(history.finished), len(after.finished)) == (1, 2)
    aside = stepped(stepped(history, 1, "begin"), 1, "fail")
    assert aside._ledger is not history._ledger
    assert after[1].value == 1.0
    assert aside[1].value is None


def test_a_history_knows_the_last_moment_of_its_clock(history):
    assert History().elapsed == 0.0
    assert History((waiting(0),)).elapsed == 0.0
    assert History((waiting(0).begun(2.5),)).elapsed == 2.5
    assert history.elapsed == 5.0

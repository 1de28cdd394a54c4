"""The rungs of a study, who stands where, and why: worked out by hand."""

import pytest

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.domain import Fidelity, share_in_words
from nasbot.plots import series
from nasbot.plots.plot import figure, plot
from nasbot.plots.rungs import rungs
from nasbot.searchers.promotion import Standing, standing_of, why
from nasbot.trial import FINAL, Direction, History, Provenance, Scored, Stopped, Trial

FIDELITY = Fidelity()
LOW, MIDDLE, HIGH = FIDELITY.rungs
POOL = initial_pool("mlp-reg")
MISSED = Stopped(step=30, value=0.5, bar=0.9, expected=0.6, share=1 / 3, place=3, among=3)


def trial(number, network, rung, outcome, *, promoted_from=None, searcher="a searcher", of_trial=None):
    return Trial(
        number=number,
        candidate=Candidate(POOL[network]),
        fidelity=rung,
        promoted_from=promoted_from,
        origin=Provenance(searcher=searcher, of_trial=of_trial),
        proposed_after=number,
        started=float(number),
        finished=number + 1.0,
        rank=number,
        outcome=outcome if isinstance(outcome, Stopped) else Scored(outcome),
    )


def history(direction=Direction.MAXIMISE):
    """Six networks at the lowest rung, of which two may go on; one is stopped; two are promoted, one to the top."""
    turned = direction.turned
    return History(
        (
            trial(0, 0, LOW, turned(1.0)),
            trial(1, 1, LOW, turned(5.0)),
            trial(2, 2, LOW, turned(3.0)),
            trial(3, 3, LOW, MISSED),
            trial(4, 1, MIDDLE, turned(6.0), promoted_from=1),
            trial(5, 4, LOW, turned(4.0)),
            trial(6, 5, LOW, turned(2.0)),
            trial(7, 1, HIGH, turned(7.0), promoted_from=4),
            trial(8, 1, HIGH, turned(8.0), searcher=FINAL, of_trial=7),
        ),
        direction,
    )


@pytest.mark.parametrize("direction", list(Direction))
def test_standings(direction):
    past = history(direction)
    stands = [standing_of(past, each, FIDELITY) for each in past]
    assert stands == [
        Standing.DISCARDED,
        Standing.PROMOTED,
        Standing.DISCARDED,
        Standing.STOPPED,
        Standing.PROMOTED,
        Standing.PROMOTABLE,
        Standing.DISCARDED,
        Standing.FULL,
        Standing.FINAL,
    ]


def test_why():
    past = history()
    said = [why(past, each, FIDELITY) for each in past]
    assert said[0] == "discarded: place 5 of 6 at 1/9 of a training, the best 2 go on"
    assert said[1] == "promoted as trial 4: place 1 of 6 at 1/9 of a training, the best 2 go on"
    assert said[3] == "discarded at step 30, 33% of a training: 0.5 was place 3 of 3 there, and the bar 0.9"
    assert said[4].startswith(
        "promoted from trial 1 at 1/9 of a training, where it was place 1 of 4; promoted as trial 7"
    )
    assert said[5].startswith("promotable: place 2 of 6")
    assert said[7] == "promoted from trial 4 at 1/3 of a training, where it was place 1 of 1"
    assert said[8] == "final: the candidate of trial 7, trained again with another seed"
    assert why(past, trial(9, 6, HIGH, 1.0), None) == ""


@pytest.mark.parametrize("direction", list(Direction))
def test_rungs_by_hand(direction):
    found = rungs(history(direction))
    assert [rung.name for rung in found.rungs] == [
        "1/9 of a training", "1/3 of a training", "a full training", "finals"
    ]  # fmt: skip
    assert [rung.n_trials for rung in found.rungs] == [6, 1, 1, 1]
    assert [(rung.n_promoted, rung.n_discarded) for rung in found.rungs] == [(1, 4), (1, 0), (0, 0), (0, 0)]
    assert found.rungs[0].cut == direction.turned(4.0)  # the second best of six
    assert [rung.cut for rung in found.rungs[1:]] == [None] * 3
    assert [point.trial for point in found.points if point.rung == 0] == [0, 1, 2, 3, 5, 6]
    assert next(point.value for point in found.points if point.trial == 3) == 0.5


def test_a_study_of_full_trainings_has_no_rungs():
    found = rungs(History((trial(0, 0, HIGH, 1.0),)))
    assert "no rungs" in found.message
    figure(History((trial(0, 0, HIGH, 1.0),)), "rungs")


def test_shares_of_boca_are_shown_at_the_nearest_rung():
    past = History((trial(0, 0, 0.12, 1.0), trial(1, 1, 0.3, 2.0), trial(2, 1, HIGH, 2.5)))
    assert [point.rung for point in rungs(past).points] == [0, 1, 2]


def test_the_plot_says_who_stands_where(tmp_path):
    path = plot(history(), "rungs", tmp_path / "rungs.svg")
    text = path.read_text()
    for word in ("promoted", "promotable", "discarded", "stopped", "final", "cut 4"):
        assert f">{word}" in text or word in text, word
    (axes,) = figure(history(), "rungs").axes
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {str(each) for each in Standing}


def test_short_trainings_are_hollow_in_the_history():
    points = series.history(history()).points
    assert [point.fidelity for point in points if point.value is not None] == pytest.approx(
        [LOW, LOW, LOW, MIDDLE, LOW, LOW, HIGH, HIGH]
    )
    (axes,) = figure(history(), "history").axes
    faces = [tuple(c.get_facecolor()[0]) for c in axes.collections if len(c.get_offsets()) == 6]
    assert (1.0, 1.0, 1.0, 1.0) in faces  # the six of the rungs


def test_rungs_alone_are_no_best():
    past = History((trial(0, 0, LOW, 1.0), trial(1, 1, LOW, 2.0)))
    assert series.history(past).message == "no full training has ended yet"
    figure(past, "history")


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (1 / 9, "1/9 of a training"),
        (1.0, "a full training"),
        (3.0, "3 full trainings"),
        (0.3, "30% of a training"),
        (1 / 27, "1/27 of a training"),
    ],
)
def test_shares_in_words(share, words):
    assert share_in_words(share) == words

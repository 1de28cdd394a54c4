"""Pacers: what they ask of a training, and what becomes of one that falls behind, from its report to a resume."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from nasbot import MedianPacer, NoPacer, SearchSpace, maximise
from nasbot._ranks import rank_correlation
from nasbot.errors import OptionError, StudyError
from nasbot.execution import LocalExecutor, SimulatedExecutor
from nasbot.pacing import Bar, best_until, pacer_of
from nasbot.searchers.promotion import by_rank
from nasbot.storage import MemoryStorage
from nasbot.study import Study, StudyView, ask_study
from nasbot.testing.pacer_conformance import PacerConformance, proposed, trained
from nasbot.trial import FINAL, Direction, Point, Scored, Stopped, Trial, TrialState
from tests.pacing.objectives import STEPS, falling, merit, rising
from tests.study.searchers import Sensitive

MLP = SearchSpace("mlp-reg")


class TestNoPacer(PacerConformance):
    def make_pacer(self):
        return NoPacer()


class TestMedianPacer(PacerConformance):
    def make_pacer(self):
        return MedianPacer()


class TestStrictPacer(PacerConformance):
    def make_pacer(self):
        return MedianPacer(shares=(0.1, 0.5, 0.9), quantile=0.9, least=2)


def paced(objective=rising, n=60, **options):
    study = Study.in_memory(Sensitive(), pacer=MedianPacer(least=8), **options)
    return study.optimise(objective, n)


# -- bars --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", list(Direction))
def test_the_bar_is_the_median_of_what_others_had_reached(direction):
    history = trained(21, direction=direction)
    first, second = MedianPacer().bars(history, proposed(history))
    assert (first.step, second.step) == (200, 400)
    reached = sorted(best_until(trial.curve, 200, direction) for trial in history)
    assert first.value == pytest.approx(reached[10])
    assert first.gain == pytest.approx(direction.turned(1 / 3))  # all of them rise by as much
    assert first.stopped(200, first.value) is None
    worse = first.value - direction.turned(0.01)
    assert first.stopped(199, worse) is None
    stopped = first.stopped(250, worse)
    assert (stopped.step, stopped.bar, stopped.among, stopped.place) == (250, first.value, 22, 12)
    assert stopped.expected == pytest.approx(worse + first.gain)


def test_nobody_is_stopped_before_enough_have_completed():
    pacer = MedianPacer(least=9)
    assert not pacer.bars(trained(8), proposed(trained(8)))
    assert pacer.bars(trained(9), proposed(trained(9)))


def test_only_trainings_of_the_same_fidelity_are_compared():
    history = trained(30, fidelity=1 / 9)
    assert not MedianPacer().bars(history, proposed(history))
    assert MedianPacer().bars(history, proposed(history, fidelity=1 / 9))


def test_no_bar_where_values_say_nothing_about_the_ends():
    """As where losses are reported and an accuracy is returned: the order of the curves is the reverse."""
    history = trained(30)
    turned = [
        Trial(number=t.number, candidate=t.candidate, origin=t.origin, proposed_after=t.proposed_after)
        .begun(0.0)
        .with_points([Point(p.step, -p.value) for p in t.curve])
        .ended(t.outcome, at=1.0, rank=t.rank)
        for t in history
    ]
    assert not MedianPacer().bars(type(history)(turned), proposed(history))


def test_a_training_that_completed_early_counts_and_one_stopped_before_does_not():
    history = trained(20)
    end = Stopped(step=200, value=-5.0, bar=0.0, expected=-5.0, share=1 / 3, place=21, among=21)
    trial = proposed(history).begun(50.0).with_points([Point(100, -6.0), Point(200, -5.0)])
    longer = history.with_trial(trial.ended(end, at=51.0, rank=20))
    before, after = (MedianPacer().bars(h, proposed(h)) for h in (history, longer))
    assert len(after[0].others) == len(before[0].others) + 1  # at step 200 it was there
    assert after[1] == before[1]  # not at 400


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30))
def test_rank_correlation_is_spearmans(pairs):
    a, b = (np.array(column, float) for column in zip(*pairs, strict=True))
    expected = spearmanr(a, b).statistic if len(set(a)) > 1 and len(set(b)) > 1 else np.nan
    assert rank_correlation(a, b) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": (0.5, 0.3)}, "ascending"),
        ({"shares": ()}, "ascending"),
        ({"shares": (0.5, 1.0)}, "between 0 and 1"),
        ({"quantile": 1.0}, "quantile: expected"),
        ({"least": 1}, "least: expected a whole number"),
        ({"least": 2.5}, "least: expected a whole number"),
    ],
)
def test_options_that_cannot_be_meant(options, message):
    with pytest.raises(OptionError, match=message):
        MedianPacer(**options)


def test_names():
    assert pacer_of(None) == NoPacer() == pacer_of("none")
    assert pacer_of("median") == MedianPacer()
    with pytest.raises(OptionError, match="expected none or median, got 'hyperband'"):
        pacer_of("hyperband")
    with pytest.raises(OptionError, match="an object with bars"):
        pacer_of(3)
    with pytest.raises(OptionError, match="expected finite numbers"):
        Bar(step=1, value=math.nan, direction=Direction.MAXIMISE)


# -- studies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("objective", "direction"), [(rising, "maximise"), (falling, "minimise")])
def test_those_that_fall_behind_are_stopped_and_only_those(objective, direction):
    study = paced(objective, direction=direction)
    history = study.history
    assert len(history.stopped) > 10
    assert not [t for t in history.stopped if t.number < study.n_pool]
    assert history.best.value == pytest.approx(
        max((Scored(objective(t.arch, _Silent())).value for t in history), key=history.direction.turned)
    )
    for trial in history.stopped:
        assert trial.state is TrialState.STOPPED
        assert trial.value is None
        assert trial.outcome.expected == pytest.approx(objective(trial.arch, _Silent()), abs=0.5)
        assert trial.curve[-1].step < STEPS[-1]
    assert not {t.number for t in history.stopped} & {t.number for t in history.ranked}
    assert len(history.evaluated.values) == len(history.completed) + len(history.stopped) == 60
    assert history.n_begun == 60


class _Silent:
    def report(self, step, value):
        pass


def test_the_baseline_and_finals_are_trained_to_their_ends():
    study = paced(n=40)
    worst = min(study.history, key=lambda t: merit(t.arch))
    study.enqueue([worst.candidate], searcher=FINAL)
    study.optimise(rising, 41)
    assert study.history[40].value == merit(worst.arch)
    assert not study._driver.bars(study.history[40])
    assert not study._driver.bars(study.history[0])


def test_a_study_that_is_resumed_decides_as_one_that_was_not(tmp_path):
    whole = paced(n=50)
    where = tmp_path / "study.sqlite"
    for n in (20, 35, 50):
        with Study.open(where, Sensitive(), pacer=MedianPacer(least=8)) as study:
            study.optimise(rising, n)
    with StudyView.read(where) as read:
        assert [(t.candidate, t.outcome, t.curve) for t in read.history] == [
            (t.candidate, t.outcome, t.curve) for t in whole.history
        ]
        assert read.history.stopped
        tally = read._storage.tally()
        assert tally.states[TrialState.STOPPED] == len(read.history.stopped)
        assert "stopped" in str(tally)
        assert not tally.causes
        assert read.to_frame().message[read.history.stopped[0].number] == read.history.stopped[0].outcome.reason


def test_a_trial_that_is_begun_again_is_asked_the_same():
    study = paced(n=30)
    trial = study.history[25]
    then = study._driver.bars(trial)
    study.optimise(rising, 60)
    assert study._driver.bars(study.history[25]) == then
    assert then


def test_another_pacer_is_refused():
    storage = MemoryStorage()
    Study(storage, Sensitive(), pacer="median")
    with pytest.raises(StudyError, match=r"pacer: stored .*median.* given nothing"):
        Study(storage, Sensitive())
    with pytest.raises(StudyError, match=r"pacer\.quantile: stored 0\.5, given 0\.3"):
        Study(storage, Sensitive(), pacer=MedianPacer(quantile=0.3))


def test_a_stopped_one_can_be_tried_again_and_is_then_trained_to_its_end(tmp_path):
    where = tmp_path / "study.sqlite"
    with Study.open(where, Sensitive(), pacer=MedianPacer(least=8)) as study:
        study.optimise(rising, 40)
        number = study.history.stopped[0].number
    ask_study(where, "retry", number)
    with Study.open(where, Sensitive(), pacer=MedianPacer(least=8)) as study:
        study.optimise(rising, 41)
        again = study.history[40]
        assert again.value == merit(again.arch)
        assert again.origin.of_trial == number


def test_other_processes_decide_as_this_one_does():
    here = paced(n=24)
    assert here.history.stopped
    study = Study.in_memory(Sensitive(), pacer=MedianPacer(least=8))
    executor = LocalExecutor(1)
    try:
        study.optimise(rising, 24, executor=executor)
    finally:
        executor.close()
    there, here = ([(t.candidate, t.value, t.curve) for t in s.history] for s in (study, here))
    assert there == here


def test_a_simulated_training_that_is_stopped_takes_its_share_of_the_time():
    study = Study.in_memory(Sensitive(), pacer=MedianPacer(least=8))
    study.optimise(rising, 40, executor=SimulatedExecutor(4, duration=lambda arch: 90.0))
    assert study.history.stopped
    for trial in study.history.stopped:
        assert trial.seconds == pytest.approx(90.0 * trial.outcome.share)
    assert all(trial.seconds == 90.0 for trial in study.history.completed)


def test_a_pair_of_value_and_seconds_is_cut_short_too():
    study = Study.in_memory(Sensitive(), pacer=MedianPacer(least=8))
    study.optimise(lambda arch, trial: (rising(arch, trial), 90.0), 40, executor=SimulatedExecutor(2))
    assert {round(trial.seconds) for trial in study.history.stopped} <= {30, 60}
    assert study.history.stopped


def test_repeats_are_not_begun_where_the_first_fell_behind():
    looks = []

    def counted(arch, trial):
        looks.append(trial.number)
        return rising(arch, trial)

    study = maximise(counted, MLP, name=None, trials=30, searcher=Sensitive(), pacer=MedianPacer(least=8), repeats=3)
    stopped = {trial.number for trial in study.history.stopped}
    assert stopped
    assert all(looks.count(number) == (1 if number in stopped else 3) for number in range(30))


def test_a_stopped_one_is_never_promoted_and_counts_as_seen_at_its_rung():
    from nasbot.domain import Fidelity

    rungs = Fidelity()
    history = trained(2, fidelity=rungs.rungs[0])
    assert by_rank(history, rungs) is None  # a third of two is none
    end = Stopped(step=200, value=0.0, bar=1.0, expected=9.0, share=1 / 3, place=3, among=3)
    trial = proposed(history, fidelity=rungs.rungs[0]).begun(9.0)
    history = history.with_trial(trial.ended(end, at=9.5, rank=2))
    assert by_rank(history, rungs).number == 1

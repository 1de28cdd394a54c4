"""When it is enough: by forecasts made by hand, and by searches on objectives that saturate and that do not."""

import math

import pytest

from nasbot.architecture import SearchSpace, initial_pool
from nasbot.candidate import Candidate
from nasbot.errors import OptionError
from nasbot.searchers import NASBOT, RandomSearch
from nasbot.study import Study
from nasbot.study.settled import LEAST, N_LAST, N_NEXT, outlook_of
from nasbot.trial import Forecast, History, Provenance, Scored, Trial
from tests.searchers.problems import made

NETWORK = Candidate(initial_pool("mlp-reg")[0])


def promising(*improvements, n_before=LEAST, noise=0.5):
    """A history whose last proposals were expected to improve the best by so much, in standardised units."""
    forecasts = [None] * n_before + [
        None if each is None else Forecast(mean=0.0, sd=0.3, observed_sd=math.hypot(0.3, noise), improvement=each)
        for each in improvements
    ]
    return History(
        tuple(
            Trial(
                number=n,
                candidate=NETWORK,
                origin=Provenance(searcher="a searcher"),
                forecast=forecast,
                started=0.0,
                finished=1.0,
                rank=n,
                outcome=Scored(1.0),
            )
            for n, forecast in enumerate(forecasts)
        )
    )


def test_twenty_times_what_the_last_ones_promised_in_units_of_the_noise():
    outlook = outlook_of(promising(9.0, *[0.02] * N_LAST))  # what was promised before counts no more
    assert outlook.improvement == pytest.approx(N_NEXT * 0.02 / 0.5)
    assert outlook.is_settled
    assert str(outlook) == "settled: the next 20 trials are expected to improve the best by at most 0.8 times the noise"
    assert not outlook_of(promising(0.026, *[0.0] * (N_LAST - 1))).is_settled  # the most that one of them promised
    assert str(outlook_of(promising(*[0.1] * N_LAST))).startswith("not settled: the next 20 trials")
    assert "less than 0.01 times" in str(outlook_of(promising(*[0.0] * N_LAST)))


def test_nobody_can_say_without_forecasts_or_with_few_trials():
    assert outlook_of(History()) is None
    assert outlook_of(promising(*[None] * N_LAST)) is None
    assert outlook_of(promising(*[0.0] * (N_LAST - 1))) is None
    assert outlook_of(promising(*[0.0] * N_LAST, n_before=LEAST - N_LAST - 1)) is None
    assert outlook_of(promising(*[0.0] * N_LAST, n_before=LEAST - N_LAST)) is not None
    assert outlook_of(promising(*[0.0] * N_LAST, noise=0.0)) is None


def saturating(arch, trial):
    """As good as it gets from two layers on, and noisy."""
    return min(2, len(arch.processing_layers)) + 0.1 * trial.rng.standard_normal()


def growing(arch, trial):
    """Always better with more units, and hardly noisy."""
    return math.log(sum(layer.units or 0 for layer in arch.layers)) + 0.01 * trial.rng.standard_normal()


def searcher():
    return made(NASBOT, space=SearchSpace("mlp-reg"))


def searched(objective, budget):
    return Study.in_memory(searcher(), seed=1).optimise(objective, budget, stop_when_settled=True)


def test_a_search_that_saturates_ends_and_one_that_does_not_goes_on():
    flat, steep = searched(saturating, 50), searched(growing, 32)
    assert flat.was_settled
    assert LEAST <= len(flat.history) < 50
    assert flat.runs[-1].ending == "settled"
    assert flat.outlook().is_settled
    assert not steep.was_settled
    assert len(steep.history) == 32
    assert not steep.outlook().is_settled


def test_it_ends_at_the_same_trial_however_often_it_was_resumed():
    whole = searched(saturating, 50)
    study = Study.in_memory(searcher(), seed=1)
    for n in (10, 22, 50, 50):
        study.optimise(saturating, n, stop_when_settled=True)
    assert [t.candidate for t in study.history] == [t.candidate for t in whole.history]
    assert study.was_settled


def test_a_searcher_without_beliefs_is_refused():
    with pytest.raises(OptionError, match="has no beliefs to tell by; expected a searcher with a surrogate"):
        Study.in_memory(made(RandomSearch)).optimise(saturating, 3, stop_when_settled=True)

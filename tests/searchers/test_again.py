"""Repeats of the best two: when one is due, of which, what it is worth, and that deterministic studies have none."""

import numpy as np
import pytest

from nasbot.architecture import Layer, chain, initial_pool
from nasbot.candidate import Candidate
from nasbot.domain import Fidelity
from nasbot.errors import OptionError
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
from nasbot.searchers.again import LEAST, MOST_EACH, MOST_SHARE, repeat_due
from nasbot.searchers.promotion import why
from nasbot.study import Study
from nasbot.trial import Direction, History, Scored, Trial
from tests.searchers.problems import made, value_of

POOL = [Candidate(arch) for arch in initial_pool("mlp-reg")]


def told(*entries, direction="maximise"):
    """A history of (candidate, value), or of (candidate, value, fidelity); a value of None is pending."""
    trials, rank = [], 0
    for number, (candidate, value, *fidelity) in enumerate(entries):
        trial = Trial(number=number, candidate=candidate, fidelity=fidelity[0] if fidelity else 1.0)
        if value is not None:
            trial, rank = trial.begun(0.0).ended(Scored(value), at=1.0, rank=rank), rank + 1
        trials.append(trial)
    return History(tuple(trials), Direction(direction))


PLAIN = [(candidate, float(i)) for i, candidate in enumerate(POOL)]  # the best are 9.0 and 8.0
assert len(PLAIN) == LEAST


def test_the_best_is_repeated_once_to_learn_the_noise():
    repeat = repeat_due(told(*PLAIN))
    assert (repeat.of.number, repeat.rival) == (9, None)
    assert "to learn how much" in str(repeat)
    assert repeat_due(told(*PLAIN[1:])) is None
    low = repeat_due(told(*PLAIN, direction="minimise"))
    assert low.of.number == 0


def test_the_same_value_again_means_that_nothing_is_repeated():
    assert repeat_due(told(*PLAIN, (POOL[9], 9.0))) is None


def test_the_best_two_are_told_apart_where_the_noise_hides_which_is_better():
    # The mean of the best is 8.5; pooled variance 0.5, standard error of the difference 0.87, above 0.5.
    repeat = repeat_due(told(*PLAIN, (POOL[9], 8.0)))
    assert (repeat.of.number, repeat.rival.number) == (8, 9)
    assert (repeat.difference, repeat.error) == (pytest.approx(0.5), pytest.approx(np.sqrt(0.5 * 1.5)))
    assert repeat.error_after == pytest.approx(np.sqrt(0.5))
    assert "differ by 0.5, within the standard error of 0.866; this brings it to 0.707" in str(repeat)


def test_a_difference_above_the_noise_needs_no_repeat():
    assert repeat_due(told(*PLAIN, (POOL[9], 8.9))) is None


def test_what_is_pending_is_waited_for():
    assert repeat_due(told(*PLAIN, (POOL[9], None))) is None
    assert repeat_due(told(*PLAIN, (POOL[9], 8.0), (POOL[8], None))) is None


def test_shorter_trainings_and_longer_finals_do_not_count():
    assert repeat_due(told(*PLAIN, (POOL[9], 8.0, 1 / 9), (POOL[9], 8.0, 3.0))).rival is None


def test_repeats_are_few():
    best = [(POOL[9], 9.0 + noise) for noise in (1.0, -1.0, 0.5)]
    assert repeat_due(told(*PLAIN, *best[:2])) is not None
    assert repeat_due(told(*PLAIN, *best)) is None  # a fifth of thirteen is spent
    others = [(Candidate(chain("mlp-reg", [Layer("relu", units)])), 0.0) for units in range(8, 33)]
    repeated = [(POOL[i], i + noise) for i in (8, 9) for noise in (2.0, -2.0, 0.0)]
    assert len(repeated) == 2 * (MOST_EACH - 1) < 0.99 * MOST_SHARE * 41
    assert repeat_due(told(*PLAIN, *others, *repeated)) is None
    assert repeat_due(told(*PLAIN, *others, *repeated[:-1])) is not None


def noisy(arch, trial):
    return value_of(arch) + 0.5 * trial.rng.normal()


@pytest.mark.parametrize("kind", [NASBOT, RandomSearch, EvolutionSearch, TreeBO])
def test_every_searcher_repeats_and_replays(kind):
    study = Study.in_memory(made(kind, repeats_best=True), seed=2)
    study.optimise(noisy, 14)
    history = study.history
    repeats = [trial for trial in history if trial.origin.of_trial is not None]
    assert repeats
    for trial in repeats:
        assert trial.candidate == history[trial.origin.of_trial].candidate
        assert trial.value != history[trial.origin.of_trial].value  # another seed
        assert why(history, trial, None).startswith(f"repeats trial {trial.origin.of_trial}")
    for trial, proposal in study.replay():
        assert (proposal.candidate, proposal.origin.of_trial) == (trial.candidate, trial.origin.of_trial)


def test_a_deterministic_objective_is_repeated_once_and_by_default_never():
    for option, times in ((True, 1), (False, 0)):
        study = Study.in_memory(made(RandomSearch, repeats_best=option), seed=2)
        study.optimise(value_of, 30)
        assert sum(trial.origin.of_trial is not None for trial in study.history) == times


def test_studies_from_before_the_option_go_on():
    assert "repeats_best" not in made(RandomSearch).settings()
    assert made(RandomSearch, repeats_best=True).settings()["repeats_best"] is True
    with pytest.raises(OptionError, match="repeats_best: expected True or False, got '3'"):
        made(RandomSearch, repeats_best=3)


def test_a_promotion_has_the_seed_of_the_training_below_it():
    seeds = {}

    def objective(arch, trial):
        seeds[trial.number] = (trial.seed, trial.rng.normal())
        return value_of(arch) + trial.fidelity

    study = Study.in_memory(made(RandomSearch, fidelity=Fidelity()), seed=3)
    study.optimise(objective, 40)
    promoted = [trial for trial in study.history if trial.promoted_from is not None]
    assert {study.history[trial.promoted_from].fidelity for trial in promoted} == set(Fidelity().rungs[:2])
    assert all(seeds[trial.number] == seeds[trial.promoted_from] for trial in promoted)
    others = [trial.number for trial in study.history if trial.promoted_from is None]
    assert len({seeds[number] for number in others}) == len(others)

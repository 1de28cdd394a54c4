"""Plans: how a budget is divided, how long a training is, and what is searched on given data."""

import pytest

from nasbot.architecture import Layer, chain
from nasbot.architecture.resources import resources
from nasbot.automl.plan import (
    COST_OVER_BASELINE,
    DEFAULT_SECONDS,
    LEAST_STEPS,
    LEAST_TRAININGS,
    LONGEST_TRAINING,
    SEARCH_SHARE,
    SHORTEST_TRAINING,
    Plan,
    fitting_baseline,
    full_training_seconds,
    most_steps,
    planned,
    space_for,
)
from nasbot.domain import Fidelity
from nasbot.study import Budget


@pytest.mark.parametrize("budget", ["3s", "100s", "2h"])
def test_a_time_budget_is_for_search_then_finals_then_assembling(budget):
    total = Budget.of(budget)
    plan = Plan(total, 2, 500, 10.0)
    assert 0.5 * total.seconds < plan.search.seconds < plan.end.seconds < total.seconds
    assert plan.n_finals == 0
    assert "then finals; a full training has 500 steps; 2 at a time" in str(plan)


def test_a_budget_too_short_for_one_full_training_says_what_it_can_do_instead():
    rest = {"n_steps": 100, "stored": None, "seconds": None, "most_steps": 10**6}
    said = planned(Budget.of("4s"), 1, **rest, training_seconds=3.0).shortfall
    assert "too short for one full training, which takes about 3 s here, where 2.6 s are left" in said
    assert "with what they have reached by then" in said
    assert 'give 10 s or more, or a budget in trials ("3 trials")' in said
    assert planned(Budget.of("10s"), 1, **rest, training_seconds=3.0).shortfall is None
    assert planned(Budget.of("1s"), 1, **rest).shortfall is None
    assert planned(Budget(3), 1, **rest, training_seconds=3.0).shortfall is None


@pytest.mark.parametrize(("trials", "finals"), [(1, 0), (3, 0), (4, 1), (20, 5)])
def test_a_budget_in_trials_keeps_a_quarter_of_them_for_finals(trials, finals):
    plan = Plan(Budget(trials), 1, None, 30.0)
    assert (plan.search.trials, plan.n_finals, plan.end) == (trials - finals, finals, Budget(trials))
    assert "as the recipe says" in str(plan)


@pytest.mark.parametrize("rungs", [Fidelity(), Fidelity(1 / 4, 2), Fidelity(1 / 2, 5, rule="boca")])
def test_on_rungs_a_budget_in_trials_is_what_so_many_full_trainings_cost(rungs):
    plan = planned(Budget(40), 2, n_steps=None, stored=None, seconds=None, most_steps=99, rungs=rungs, n_pool=7)
    n = plan.search.trials - 7
    # Of all that begin at the lowest rung 1/factor reach the next, and so on.
    counts = [rungs.factor**-i for i in range(len(rungs.rungs))]
    full = n / sum(counts) * sum(count * rung for count, rung in zip(counts, rungs.rungs, strict=True))
    assert 7 + full == pytest.approx(30, abs=1)
    assert n > 23
    assert (plan.n_finals, plan.end.trials) == (10, plan.search.trials + 10)
    assert f"{plan.search.trials} trials, which cost as much as 30 full trainings, of search" in str(plan)
    again = planned(
        Budget(40), 2, n_steps=None, stored=plan.to_dict(), seconds=None, most_steps=99, rungs=rungs, n_pool=7
    )
    assert again.end == plan.end
    few = planned(Budget(4), 2, n_steps=None, stored=None, seconds=None, most_steps=99, rungs=rungs, n_pool=7)
    assert (few.search.trials, few.end.trials) == (3, 4)  # the pool alone, which is trained in full
    both = Plan(Budget(40, 100.0), 2, 500, 10.0, refit_seconds=9.0, rungs=rungs, n_pool=7)
    assert both.look.trials == both.search.trials == both.end.trials > 40


def test_trainings_grow_with_the_budget_and_the_workers_and_so_does_their_number():
    lengths = [full_training_seconds(Budget.of(budget), 2) for budget in ("100s", "20m", "5h")]
    assert lengths == sorted(lengths)
    assert [seconds / length for seconds, length in zip((100, 1200, 18000), lengths, strict=True)] == sorted(
        seconds / length for seconds, length in zip((100, 1200, 18000), lengths, strict=True)
    )
    assert full_training_seconds(Budget.of("100s"), 2) == pytest.approx(2 * full_training_seconds(Budget.of("100s"), 1))
    assert full_training_seconds(Budget.of("1s"), 1) == SHORTEST_TRAINING
    assert full_training_seconds(Budget.of("30d"), 2) == LONGEST_TRAINING
    assert full_training_seconds(Budget(50), 2) is None


def test_networks_of_images_are_trained_for_longer_and_a_dozen_fit_all_the_same():
    for budget in ("30s", "5m", "1h"):
        seconds = Budget.of(budget).seconds
        vectors, images = (full_training_seconds(Budget.of(budget), 2, takes_images) for takes_images in (False, True))
        assert images > vectors
        assert 2 * SEARCH_SHARE * seconds / images >= LEAST_TRAININGS - 1e-9
    rest = {"n_steps": 9, "stored": None, "seconds": None, "most_steps": 99}
    vectors, images = (planned(Budget.of("5m"), 2, takes_images=images, **rest) for images in (False, True))
    assert images.seconds_per_trial > vectors.seconds_per_trial


def test_few_rows_are_not_read_for_ever():
    assert most_steps(100, 16) > most_steps(50, 16) > LEAST_STEPS
    assert most_steps(1, 16) >= LEAST_STEPS


def test_a_stored_plan_goes_on_whatever_the_budget_is_by_now():
    rest = {"stored": None, "seconds": None, "most_steps": 10**6}
    first = planned(Budget.of("100s"), 2, n_steps=700, **rest)
    again = planned(Budget.of("5h"), 1, n_steps=None, **{**rest, "stored": first.to_dict()})
    assert (again.n_steps, again.seconds_per_trial) == (700, first.seconds_per_trial)
    assert planned(Budget(9), 1, n_steps=None, **rest).seconds_per_trial == DEFAULT_SECONDS
    assert planned(Budget(9), 1, n_steps=None, **{**rest, "seconds": 2.5}).seconds_per_trial == 2.5
    damaged = planned(Budget(9), 1, n_steps=None, **{**rest, "stored": {"n_steps": "many"}})
    assert (damaged.n_steps, damaged.seconds_per_trial) == (None, DEFAULT_SECONDS)


@pytest.mark.parametrize(
    ("kind", "shape", "n_outputs"),
    [
        ("mlp-reg", (9,), 1),
        ("mlp-class", (61,), 10),
        ("mlp-reg", (5000,), 3),
        ("cnn", (1, 8, 8), 10),
        ("cnn", (3, 32, 32), 10),
    ],
)
@pytest.mark.parametrize("n_rows", [40, 50_000])
def test_the_space_has_the_baseline_and_nothing_that_costs_many_times_as_much(kind, shape, n_outputs, n_rows):
    space = space_for(kind, shape, n_outputs, n_rows=n_rows, batch_size=64)
    baseline = fitting_baseline(kind, n_rows)
    assert baseline in space
    flops = resources(baseline, shape, n_outputs).flops
    assert space.max_flops == pytest.approx(COST_OVER_BASELINE * flops, rel=0.01)


def test_few_rows_need_few_parameters():
    few, many = (space_for("mlp-reg", (9,), 1, n_rows=n, batch_size=64) for n in (100, 50_000))
    large = chain("mlp-reg", [Layer("relu", 256)] * 4)
    assert large not in few
    assert large in many


def test_a_search_is_asked_on_its_way_how_long_refits_take():
    total = Budget.of("100s")
    plan = Plan(total, 2, 500, 10.0, refit_seconds=20.0)
    assert plan.look == Budget(None, 60.0)
    assert "1 minute or more of search, then the model's networks once more" in str(plan)
    assert plan.with_refits(8.0).search.seconds == pytest.approx(97 - 8)
    assert plan.with_refits(30.0).search.seconds == pytest.approx(97 - 30)
    assert plan.with_refits(400.0).search.seconds == pytest.approx(60)  # what is spent is spent
    assert plan.with_refits(30.0).look == plan.look
    assert Plan(total, 2, 500, 10.0).look is None
    assert Plan(Budget(20), 2, 500, 10.0, refit_seconds=20.0).look is None
    assert Plan(Budget.of("30s"), 2, 500, 10.0, refit_seconds=5.0).look is None
    assert Plan(total, 2, 500, 10.0, refit_seconds=20.0, stretch=2.0).look is None


def test_refits_get_the_time_they_need_and_no_more_than_finals_would():
    total = Budget.of("100s")
    short, long = (Plan(total, 2, 500, 10.0, refit_seconds=seconds) for seconds in (10.0, 80.0))
    assert short.search.seconds == pytest.approx(97.0 - 10.0)
    assert long.search.seconds == pytest.approx(65.0)
    for plan in (short, long):
        assert plan.search.seconds < plan.search_end < plan.end.seconds  # trials that run then may end, in part of it
        assert "then the model's networks once more, on all rows" in str(plan)
    assert Plan(total, 2, 500, 10.0).search_end == 97.0
    assert Plan(Budget(20), 2, 500, 10.0, refit_seconds=5.0).search_end is None

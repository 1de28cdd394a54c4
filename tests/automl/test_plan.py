"""Plans: a trial's share of the budget, spaces that a laptop can train, pools that fit them."""

import pytest

from nasbot.architecture import Layer, chain, initial_pool
from nasbot.automl.plan import FLOPS_PER_SECOND, PASSES, STEPS_AT_LEAST, pool_for, seconds_per_trial, space_for
from nasbot.errors import OptionError
from nasbot.study import Budget

SHAPES = [
    ("mlp-reg", (9,), 1),
    ("mlp-class", (61,), 10),
    ("mlp-reg", (5000,), 3),
    ("cnn", (1, 8, 8), 10),
    ("cnn", (3, 32, 32), 10),
]


@pytest.mark.parametrize(
    ("budget", "workers", "seconds"),
    [("2m", 2, 4.8), ("2m", 1, 2.4), ("10s", 1, 1.0), ("20m", 2, 48.0), ("30d", 2, 300.0), (50, 2, 10.0)],
)
def test_a_trials_share_of_the_budget(budget, workers, seconds):
    assert seconds_per_trial(Budget.of(budget), workers) == pytest.approx(seconds)


@pytest.mark.parametrize(("kind", "shape", "n_outputs"), SHAPES)
@pytest.mark.parametrize("seconds", [1.0, 48.0])
def test_there_is_a_pool_in_every_space(kind, shape, n_outputs, seconds):
    space = space_for(kind, shape, n_outputs, n_rows=100, seconds=seconds, batch_size=64)
    pool = pool_for(space)
    assert all(arch in space for arch in pool)
    assert len(pool) >= 5
    assert len({arch.fingerprint for arch in pool}) == len(pool)


def test_networks_of_the_space_can_be_trained_in_a_trial():
    space = space_for("mlp-reg", (9,), 1, n_rows=10_000, seconds=5.0, batch_size=64)
    assert space.max_flops == pytest.approx(5.0 * FLOPS_PER_SECOND / (PASSES * 64 * STEPS_AT_LEAST), rel=0.01)
    assert chain("mlp-reg", [Layer("relu", 1024)] * 3) not in space
    assert chain("mlp-reg", [Layer("relu", 64)] * 3) in space


def test_with_time_enough_the_pool_is_the_papers():
    space = space_for("mlp-reg", (9,), 1, n_rows=10_000, seconds=300.0, batch_size=64)
    assert set(pool_for(space)) == set(initial_pool("mlp-reg"))


def test_own_networks_come_first_and_must_fit():
    space = space_for("mlp-reg", (9,), 1, n_rows=10_000, seconds=5.0, batch_size=64)
    mine = chain("mlp-reg", [Layer("tanh", 20)])
    assert pool_for(space, first=[mine])[0] == mine
    assert len(pool_for(space, first=[mine, mine])) == 1 + len(pool_for(space))
    with pytest.raises(OptionError, match="start_from: network 0 does not fit"):
        pool_for(space, first=[chain("mlp-reg", [Layer("tanh", 1024)] * 5)])


def test_few_rows_need_few_parameters():
    few, many = (space_for("mlp-reg", (9,), 1, n_rows=n, seconds=60.0, batch_size=64) for n in (100, 50_000))
    large = chain("mlp-reg", [Layer("relu", 512)] * 3)
    assert large not in few
    assert large in many

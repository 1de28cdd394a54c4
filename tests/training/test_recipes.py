"""Recipes say what they do, and refuse what cannot be meant."""

import json
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest

from nasbot.architecture import Architecture, Layer
from nasbot.architecture.blocks import chain
from nasbot.architecture.resources import resources
from nasbot.errors import CodecError, OptionError, RefusedError
from nasbot.training.estimates import check_affordable, estimate
from nasbot.training.loop import learning_rate
from nasbot.training.recipes import FAST, PAPER, Recipe, Settings, depth, recipe_of


def test_the_papers_protocol():
    """Appendix C.2, and the sum that its step size presumes."""
    mlp, cnn = PAPER.settings((9,)), PAPER.settings((3, 32, 32))
    assert (mlp.optimiser, mlp.learning_rate, mlp.schedule, mlp.sum_loss) == ("sgd", 1e-5, "constant", True)
    assert (mlp.batch_size, mlp.n_steps, mlp.check_every, mlp.score) == (256, 20_000, 100, "loss")
    assert (cnn.optimiser, cnn.learning_rate, cnn.sum_loss) == ("sgd", 1e-2, False)
    assert (cnn.batch_size, cnn.n_steps, cnn.check_every, cnn.score) == (32, 60_000, 4_000, "error")
    for settings in (mlp, cnn):
        assert settings.patience is None
        assert settings.steps(10**6, 1e15) == settings.n_steps
        assert settings.batch_size_for(10**6) == settings.batch_size
    assert [learning_rate(mlp, s, 20_000, s / 20_000) for s in (0, 10, 19_999)] == [1e-5] * 3
    reduced = [learning_rate(cnn, s, 60_000, s / 60_000) for s in (0, 20_999, 21_001, 59_999)]
    assert reduced == pytest.approx([1e-2, 1e-2, 1e-3, 1e-4])


def test_the_fast_recipe_rises_and_falls():
    settings = Settings(learning_rate=1.0, warm_up=0.1)
    sizes = [learning_rate(settings, s, 100, s / 100) for s in range(100)]
    assert sizes[0] == pytest.approx(0.1)
    assert max(sizes) == pytest.approx(sizes[9], rel=0.01)
    assert all(a > b for a, b in pairwise(sizes[10:]))
    assert sizes[-1] < 0.001
    assert learning_rate(settings, 50, 100, 1.5) == pytest.approx(0.0), "time ran out before the steps did"


@pytest.mark.parametrize(
    ("n_samples", "flops", "batch", "steps"),
    [
        (100_000, 1e6, 256, 3000),  # many samples: the most steps
        (1_000, 1e6, 125, 320),  # 40 epochs of 8 batches
        (100, 1e6, 16, 300),  # few samples: small batches, and no fewer steps than this
        (10, 1e6, 10, 300),
        (100_000, 1.2e9, 256, 500),  # a large network: as many as its share of work allows
        (100_000, 1e12, 256, 150),  # and never fewer than half the fewest
    ],
)
def test_batches_and_steps_follow_the_data_and_the_network(n_samples, flops, batch, steps):
    settings = FAST.vectors
    assert settings.batch_size_for(n_samples) == batch
    assert settings.steps(n_samples, flops) == steps
    assert settings.interval(steps) == steps // 15


def test_changes_are_checked_and_shown_in_the_name():
    changed = FAST.changed(n_steps=10, patience=None)
    assert (changed.name, changed.vectors.n_steps, changed.images.n_steps) == ("fast+", 10, 10)
    assert changed.images.patience is None
    assert changed.changed(batch_size=8).name == "fast+"
    assert changed != FAST
    assert json.loads(json.dumps(changed.to_dict()))["vectors"]["n_steps"] == 10
    with pytest.raises(OptionError, match="recipe: unknown setting 'lr'; known: optimiser, learning_rate"):
        FAST.changed(lr=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimiser": "adam"}, "optimiser: expected adamw or sgd, got 'adam'"),
        ({"schedule": "linear"}, "schedule: expected cosine or constant or steps"),
        ({"score": "f1"}, "score: expected loss or error"),
        ({"learning_rate": 0}, "learning_rate: expected a number > 0, got '0'"),
        ({"n_steps": -1}, "n_steps: expected a number > 0"),
        ({"batch_size": True}, "batch_size: expected a whole number, got 'True'"),
        ({"batch_size": 64.0}, "batch_size: expected a whole number, got '64.0'"),
        ({"learning_rate": "a"}, "learning_rate: expected a number, got 'a'"),
        ({"n_steps": "10"}, "n_steps: expected a whole number or None, got '10'"),
        ({"dropout": None}, "dropout: expected a number, got 'None'"),
        ({"drops": (0.5, "x")}, "drops: expected several numbers, got"),
        ({"momentum": 1.0}, "momentum: expected at least 0 and less than 1"),
        ({"beta2": 1}, "beta2: expected at least 0 and less than 1"),
        ({"mixup": -1}, "mixup: expected a number >= 0, got -1"),
        ({"augmentation": "turns"}, "augmentation: expected none or flips or crops or flips.crops, got 'turns'"),
        ({"max_flops": float("nan")}, "max_flops: expected a number > 0"),
    ],
)
def test_settings_that_cannot_be_meant(settings, message):
    with pytest.raises(OptionError, match=message):
        Settings(**settings)


def test_the_documentation_has_every_setting():
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "training.md").read_text(encoding="utf-8")
    assert [field.name for field in fields(Settings) if f"`{field.name}`" not in page] == []


def test_recipes_by_name():
    assert recipe_of("paper") is PAPER
    assert recipe_of(FAST) is FAST
    with pytest.raises(OptionError, match="recipe: expected fast or paper, got 'slow'"):
        recipe_of("slow")


def test_deep_networks_take_smaller_steps():
    wide = Architecture(
        "mlp-reg",
        [Layer("ip"), Layer("relu", 8), Layer("tanh", 8), Layer("relu", 8), Layer("linear"), Layer("op")],
        [(0, 1), (0, 2), (2, 3), (0, 3), (1, 4), (3, 4), (4, 5)],
    )
    pooled = chain("cnn", [Layer("conv3", 8), Layer("max-pool"), Layer("res3", 8), Layer("fc", 8)])
    assert (depth(wide), depth(pooled), depth(chain("mlp-reg", [Layer("relu", 8)] * 12))) == (2, 3, 12)
    factors = [FAST.vectors.depth_factor(chain("mlp-reg", [Layer("relu", 8)] * n)) for n in (1, 3, 6, 12)]
    assert factors == pytest.approx([1, 1, 0.5, 0.25])
    assert FAST.images.depth_factor(pooled) == PAPER.vectors.depth_factor(wide) == 1.0


# -- estimates ---------------------------------------------------------------------------------------------------------

ARCH = chain("mlp-reg", [Layer("relu", 1000), Layer("relu", 1000)])


def expected(settings=FAST.vectors):
    return estimate(ARCH, settings, input_shape=(10,), n_outputs=1, n_samples=50_000)


def test_estimates_are_those_of_the_graph():
    needs = resources(ARCH, (10,), 1)
    found = expected()
    assert found.parameters == needs.parameters == 10 * 1000 + 1000 + 1000 * 1000 + 1000 + 1000 + 1
    assert found.flops_per_step == 3 * 256 * needs.flops
    assert found.memory_bytes == needs.memory_bytes(256)
    assert found.steps == round(6e11 / found.flops_per_step)
    assert 1 < found.seconds < 1000
    assert expected(Settings(batch_size=64)).memory_bytes < found.memory_bytes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            Settings(max_parameters=1e6),
            r"parameters 1.013e\+06 > 1e\+06 \(1,013,001 .* raise max_parameters",
        ),
        (Settings(max_memory=1e7), "memory .* > 1e[+]07 .* raise max_memory of the recipe, or lower batch_size"),
        (
            Settings(max_seconds=0.5),
            "seconds .* > 0.5 .* raise max_seconds of the recipe, or lower n_steps",
        ),
    ],
)
def test_refusals_have_the_numbers_and_the_setting_to_change(settings, message):
    with pytest.raises(RefusedError, match=message):
        check_affordable(expected(settings), settings)


def test_what_is_within_the_limits_or_without_limits_passes():
    check_affordable(expected(), FAST.vectors)
    free = Settings(max_parameters=None, max_memory=None)
    check_affordable(expected(free), free)


@pytest.mark.parametrize("recipe", [FAST, PAPER, FAST.changed(dropout=0.1, n_steps=7, mixup=0.2, beta2=0.9)])
def test_a_recipe_comes_back_from_json(recipe):
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": "fast"}, "recipe, vectors: expected learning_rate as float, got 'fast'"),
        ({"n_steps": 1.5}, r"expected n_steps as int \| None, got 1.5"),
        ({"sum_loss": 1}, "expected sum_loss as bool, got 1"),
        ({"batch_size": True}, "expected batch_size as int, got True"),
        ({"drops": [0.5, "x"]}, "expected drops as tuple"),
        ({"momentum": 2}, "recipe, vectors: momentum: expected at least 0"),
        ({"work": 1}, "recipe, vectors: expected an object with optimiser, learning_rate"),
    ],
)
def test_json_of_recipes_is_read_strictly(change, message):
    record = FAST.to_dict()
    with pytest.raises(CodecError, match=message):
        Recipe.from_dict({**record, "vectors": {**record["vectors"], **change}})
    for other in (None, {**record, "name": 1}, {**record, "more": 1}):
        with pytest.raises(CodecError, match="recipe: expected"):
            Recipe.from_dict(other)


def test_params_of_a_candidate_change_the_recipe():
    assert FAST.with_params({}) is FAST
    changed = FAST.with_params({"learning_rate": 1e-3, "schedule": "constant", "batch_size": 32})
    assert (changed.vectors.learning_rate, changed.images.schedule, changed.vectors.batch_size) == (
        1e-3,
        "constant",
        32,
    )
    with pytest.raises(OptionError, match=r"params: expected learning_rate, .*, got 'n_steps'"):
        FAST.with_params({"n_steps": 3})


def test_patience_is_a_share_of_the_steps():
    assert [FAST.vectors.patient_validations(n) for n in (3000, 1119, 600, 300, 7)] == [5, 5, 5, 5, 2]
    assert PAPER.vectors.patient_validations(100) == float("inf")


def test_a_recipe_of_an_older_study_is_the_same_one():
    """What was added since is not written where it is off, and need not be there."""
    record = FAST.to_dict()
    assert not {"beta2", "mixup", "augmentation"} & set(record["vectors"])
    assert Recipe.from_dict(record) == FAST
    assert FAST.changed(mixup=0.1).to_dict()["images"]["mixup"] == 0.1

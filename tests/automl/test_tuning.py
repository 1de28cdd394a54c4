"""Which params are searched with the networks."""

import numpy as np
import pytest

from nasbot.automl.tuning import params_of
from nasbot.data.dataset import dataset_of
from nasbot.domain import Choice, Float
from nasbot.errors import OptionError
from nasbot.training.params import TUNABLE, tunable
from nasbot.training.recipes import FAST, PAPER, PARAMS

RNG = np.random.default_rng(0)
NUMBERS = dataset_of(RNG.normal(size=(40, 3)), RNG.normal(size=40), task="regression")
CLASSES = dataset_of(RNG.normal(size=(40, 3)), np.arange(40) % 2, task="classification")
IMAGES = dataset_of(RNG.integers(0, 255, size=(40, 8, 8), dtype=np.uint8), np.arange(40) % 2)


def test_auto_searches_the_preparation_of_numbers_and_what_is_done_to_images():
    assert set(params_of("auto", NUMBERS, FAST)) == {"preparation"}
    assert set(params_of("auto", IMAGES, FAST)) == {"augmentation", "mixup"}
    assert params_of("auto", IMAGES, FAST.changed(augmentation="flips"))["augmentation"].default == "flips"


def test_auto_searches_the_loss_where_the_recipe_has_that_of_heavy_tails():
    amounts = dataset_of(RNG.normal(size=(40, 3)), RNG.exponential(size=40) ** 2, task="regression")
    found = params_of("auto", amounts, FAST.changed(loss="poisson"))
    assert found["loss"].default == "poisson"
    assert set(found) == {"preparation", "loss"}
    assert set(params_of("auto", amounts, FAST)) == {"preparation"}
    assert set(params_of("loss", amounts, FAST)) == {"loss"}
    with pytest.raises(OptionError, match=r"got 'loss'$"):
        params_of("loss", NUMBERS, FAST)  # some are negative


@pytest.mark.parametrize("tune", [None, "none"])
def test_none(tune):
    assert params_of(tune, NUMBERS, FAST) == {}


def test_by_name_or_by_range():
    assert set(params_of("learning_rate, dropout", NUMBERS, FAST)) == {"learning_rate", "dropout"}
    assert set(params_of(["label_smoothing"], CLASSES, FAST)) == {"label_smoothing"}
    mine = {"learning_rate": Float(1e-3, 1e-2)}
    assert params_of(mine, IMAGES, FAST) == mine


@pytest.mark.parametrize(
    ("data", "name"), [(NUMBERS, "label_smoothing"), (NUMBERS, "mixup"), (IMAGES, "preparation"), (NUMBERS, "speed")]
)
def test_what_these_data_have_not(data, name):
    with pytest.raises(OptionError, match=rf"^tune: expected auto, none, or some of .*; got '{name}'$"):
        params_of(name, data, FAST)


@pytest.mark.parametrize(
    ("tune", "message"),
    [
        ({"speed": Float(0, 1)}, "tune: expected auto, none, or some of .*; got 'speed'"),
        ({"dropout": 0.5}, "tune: dropout: expected Float, Integer or Choice, got float"),
        (
            {"dropout": Float(0, 1)},
            "tune: dropout may be 1.0, which training refuses: dropout: expected at least 0 and less than 1, got 1.0",
        ),
        ({"schedule": Choice("cosine", "linear")}, "tune: schedule may be 'linear', which training refuses: .*"),
        ({"preparation": Choice("standard", "ranks")}, "tune: preparation may be 'ranks', which training refuses: .*"),
        ({"batch_size": Float(8, 64)}, r"tune: batch_size may be 8\.0, which training refuses: .* whole number, .*"),
        ({"learning_rate": Choice("low", "high")}, "tune: learning_rate may be 'low', which training refuses: .*"),
        (3, "tune: expected auto, none, names, or params by name; got 3"),
        (("dropout", 3), "tune: expected auto, none, or some of .*; got '3'"),
    ],
)
def test_ranges_that_training_would_refuse(tune, message):
    with pytest.raises(OptionError, match=f"^{message}$"):
        params_of(tune, NUMBERS, FAST)


def test_every_setting_that_can_be_searched_has_a_range_and_a_source():
    assert set(TUNABLE) == set(PARAMS)
    assert all(row.source and (row.vectors or row.images) for row in TUNABLE.values())


@pytest.mark.parametrize("recipe", [FAST, PAPER, FAST.changed(learning_rate=3e-3, batch_size=48, dropout=0.6)])
@pytest.mark.parametrize("shape", [(3,), (1, 8, 8)])
def test_defaults_are_the_recipes_own(recipe, shape):
    settings = recipe.settings(shape)
    for name, param in tunable(recipe, shape, classifies=True).items():
        param.check(param.default)
        own = getattr(settings, name)
        if (name, own) != ("weight_decay", 0.0) and not (name == "momentum" and settings.optimiser == "adamw"):
            assert param.default == own, name
    assert tunable(FAST, (3,), classifies=False)["learning_rate"] == Float(5e-3, 6e-2, log=True, default=2e-2)
    assert tunable(FAST, (3,), classifies=False)["batch_size"] == Choice(64, 128, 256, 512, ordered=True, default=256)


def test_a_condition_counts_only_where_the_other_param_is_searched():
    assert params_of("momentum", NUMBERS, FAST)["momentum"].when is None
    both = params_of("optimiser,momentum,beta2", NUMBERS, FAST)
    assert (both["momentum"].when, both["beta2"].when) == (("optimiser", "sgd"), ("optimiser", "adamw"))

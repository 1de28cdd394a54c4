"""Which params are searched with the networks."""

import numpy as np
import pytest

from nasbot.automl.tuning import params_of
from nasbot.data.dataset import dataset_of
from nasbot.domain import Float
from nasbot.errors import OptionError

RNG = np.random.default_rng(0)
NUMBERS = dataset_of(RNG.normal(size=(40, 3)), RNG.normal(size=40), task="regression")
CLASSES = dataset_of(RNG.normal(size=(40, 3)), np.arange(40) % 2, task="classification")
IMAGES = dataset_of(RNG.integers(0, 255, size=(40, 8, 8), dtype=np.uint8), np.arange(40) % 2)


def test_auto_searches_the_preparation_of_numbers_and_nothing_of_images():
    assert set(params_of("auto", NUMBERS)) == {"preparation"}
    assert params_of("auto", IMAGES) == {}


@pytest.mark.parametrize("tune", [None, "none"])
def test_none(tune):
    assert params_of(tune, NUMBERS) == {}


def test_by_name_or_by_range():
    assert set(params_of("learning_rate,dropout", NUMBERS)) == {"learning_rate", "dropout"}
    assert set(params_of(["label_smoothing"], CLASSES)) == {"label_smoothing"}
    mine = {"learning_rate": Float(1e-3, 1e-2)}
    assert params_of(mine, IMAGES) == mine


@pytest.mark.parametrize(("data", "name"), [(NUMBERS, "label_smoothing"), (IMAGES, "preparation"), (NUMBERS, "speed")])
def test_what_these_data_have_not(data, name):
    with pytest.raises(OptionError, match=rf"^tune: expected auto, none, or some of .*; got '{name}'$"):
        params_of(name, data)

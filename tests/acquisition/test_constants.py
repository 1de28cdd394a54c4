"""Constants and defaults of acquisition: whoever chooses another changes it here too, and says why."""

import inspect
from importlib import import_module

import numpy as np
import pytest

from nasbot.acquisition.maximise import Settings, _Candidates, by_evolution_and_climbing

LIMITS = {
    "choices": {"N_DRAWS": 512},
    "feasibility": {
        "PRIOR_MEAN": 1.0,
        "NOISE_VARIANCE": 0.01,
        "LOCAL_SHARE": 0.1,
        "TO_THE_NEAREST": 0.2,
        "SAME": 1.0 - 1e-9,
    },
    "functions": {
        "_LOG_SQRT_2_PI": 0.5 * np.log(2 * np.pi),
        "_HALF_LOG_PI_OVER_2": 0.5 * np.log(np.pi / 2),
        "_FAR": -1e5,
    },
    "maximise": {
        "CLIMBERS": 3,
        "EDITS_PER_STEP": 16,
        "SHORT_LIST": 32,
        "N_SETTINGS": 16,
        "N_ROUGH_SETTINGS": 4,
        "TUNED": 4,
        "TUNING_ROUNDS": 4,
        "UTILITY_BITS": 27,
        "N_PRIOR_TRIALS": 10.0,
    },
}


@pytest.mark.parametrize("module", LIMITS)
def test_constants_that_somebody_chose(module):
    found = import_module(f"nasbot.acquisition.{module}")
    for name, value in LIMITS[module].items():
        assert np.array_equal(getattr(found, name), value), name


DEFAULTS = {
    Settings: {"prior_weight": 0.0},
    _Candidates._best_settings: {"known_too": False},
    by_evolution_and_climbing: {"n_first": 0},
}


def test_what_is_meant_where_nothing_is_said():
    for function, defaults in DEFAULTS.items():
        said = inspect.signature(function).parameters
        assert {name: said[name].default for name in defaults} == defaults, function

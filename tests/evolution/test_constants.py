"""Constants and defaults of evolution: whoever chooses another changes it here too, and says why."""

import inspect
from importlib import import_module

import numpy as np
import pytest

from nasbot.evolution.algorithm import Evolution
from nasbot.evolution.selection import selection_probabilities
from nasbot.evolution.structure import new_layer, relabelled

LIMITS = {
    "algorithm": {"TRIES": 100, "TRIES_EACH": 20, "TRIES_IN_VAIN": 40},
    "attributes": {"DROPOUTS": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5), "MOST": 64.0},
    "branching": {"LEAST_WALK": 4, "STOP": 0.2, "COPIED": 0.5},
    "modifiers": {"SAMPLE_TRIES": 10},
    "mutation": {"STEP_PROBABILITIES": (0.5, 0.25, 0.125, 0.075, 0.05), "MAX_TRIES": 50},
    "structure": {"OTHER_STRIDE": 0.05, "STOP": 1 / 3, "MAX_PATHS": 200, "MAX_WIRINGS": 16, "SKIP_DRAWS": 30},
    "wiring": {"FALLBACK_UNITS": 16},
}


@pytest.mark.parametrize("module", LIMITS)
def test_constants_that_somebody_chose(module):
    found = import_module(f"nasbot.evolution.{module}")
    for name, value in LIMITS[module].items():
        assert np.array_equal(getattr(found, name), value), name


DEFAULTS = {
    Evolution: {"temperature": 1.0},
    selection_probabilities: {"temperature": 1.0},
    relabelled: {"other_stride": 0},
    new_layer: {"other_stride": 0},
}


def test_what_is_meant_where_nothing_is_said():
    for function, defaults in DEFAULTS.items():
        said = inspect.signature(function).parameters
        assert {name: said[name].default for name in defaults} == defaults, function

"""Constants and defaults of gp: whoever chooses another changes it here too, and says why."""

import inspect
from dataclasses import fields
from importlib import import_module

import numpy as np
import pytest

from nasbot.gp import calibration, fit, kernel, slice_sampler
from nasbot.gp.belief import Belief, BeliefOptions
from nasbot.gp.graph_gp import GraphGP
from nasbot.gp.hyperparameters import Hyperparameters, KernelForm, Prior
from nasbot.gp.likelihood import LogPosterior
from nasbot.gp.repair import Repairs

LIMITS = {
    "belief": {
        "BURN_IN": 2,
        "MODE_STEPS_BEFORE_SAMPLING": 15,
        "FULL_ENSEMBLE_UP_TO": 150,
        "ROUGH_SIZE": 150,
        "SMOOTH": 1.5,
        "LOCAL_ABOVE": 800,
    },
    "calibration": {
        "FIRST_WIDENING": 1.3,
        "WIDENING_STEP": 0.3,
        "MOST_FORECASTS": 200,
        "LEAST_WIDENING": 0.5,
        "MOST_WIDENING": 4.0,
    },
    "evidence": {"MOST_STEPS": 20},
    "fidelity": {"_UNIT": np.log(9.0)},
    "fit": {
        "PENALTY": 100.0,
        "LOWEST": -1e12,
        "OBJECTIVE_TOLERANCE": 1e-3,
        "DENSITY_BITS": 16,
        "PLACE_BITS": 30,
        "LARGEST_START": 30.0,
    },
    "hyperparameters": {"FEATURE_POWER": 2.0, "PARAM_POWER": 1.5, "PARAM_SPREAD": 1.0, "N_FIDELITY": 4},
    "likelihood": {"LOG_2_PI": np.log(2.0 * np.pi), "LARGEST_LOG": 230.0, "SUM": -1},
    "posterior": {"CHUNK": 4_000_000},
    "repair": {"SEMIDEFINITE_TOLERANCE": 1e-8, "VARIANCE_FLOOR": 1e-10},
    "rows": {"LARGEST_POWERED": 1e100, "SYMMETRY_TOLERANCE": 1e-8},
    "slice_sampler": {"MOST_STEPS": 8, "MOST_SHRINKS": 200},
    "warping": {"LEVEL": 0.5},
}


@pytest.mark.parametrize("module", LIMITS)
def test_constants_that_somebody_chose(module):
    found = import_module(f"nasbot.gp.{module}")
    for name, value in LIMITS[module].items():
        assert np.array_equal(getattr(found, name), value), name


DEFAULTS = {
    BeliefOptions: {
        "warp": "best",
        "distance_power": 1.5,
        "normalised_power": 1.5,
        "n_samples": 10,
        "sample_up_to": 300,
        "n_restarts": 2,
        "local_above": 800,
    },
    Belief.interval: {"level": 0.9, "widening": 1.0},
    Belief.calibration: {"level": 0.9},
    calibration.widening: {"level": 0.9},
    calibration.Calibration: {"level": 0.9},
    calibration.leave_one_out: {"level": 0.9},
    fit.Estimate: {"n_evaluations": 0, "n_rejected": 0},
    fit.posterior_mode: {"most_steps": 60},
    fit.posterior_samples: {"thin": 1, "burn_in": 0},
    GraphGP: {"n_samples": 10, "sample_up_to": 300, "distance_power": 1.0, "normalised_power": 1.0},
    GraphGP.predict: {"return_std": False, "include_noise": False},
    GraphGP.get_params: {"deep": True},
    KernelForm: {
        "n_weights": 4,
        "n_normalised_weights": 4,
        "n_features": 0,
        "n_params": 0,
        "distance_power": 1.0,
        "normalised_power": 1.0,
        "has_fidelities": False,
    },
    Hyperparameters: {"feature_scale": 0.0},
    Prior: {"scale_spread": 1.0, "decay_spread": 1.0, "noise_median": 0.02, "noise_spread": 2.0},
    kernel.otmann_kernel: {"distance_power": 1.0, "normalised_power": 1.0},
    Repairs: {"rejected_draws": 0, "jittered_grams": 0, "clipped_grams": 0, "floored_variances": 0},
    slice_sampler.slice_walk: {"thin": 1, "burn_in": 0},
}


def test_what_is_meant_where_nothing_is_said():
    for function, defaults in DEFAULTS.items():
        said = inspect.signature(function).parameters
        assert {name: said[name].default for name in defaults} == defaults, function


def test_a_density_does_not_show_what_it_remembers():
    assert [field.name for field in fields(LogPosterior) if not field.repr] == ["_memory"]

"""Constants and defaults of searchers: whoever chooses another changes it here too, and says why."""

import inspect
from importlib import import_module

import numpy as np
import pytest

from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
from nasbot.searchers.again import Repeat
from nasbot.searchers.base import Proposal
from nasbot.searchers.boca import informative_share
from nasbot.searchers.knowledge import View
from nasbot.searchers.memory import DistanceMemory

LIMITS = {
    "again": {"LEAST": 10, "MOST_EACH": 4, "MOST_SHARE": 0.2},
    "boca": {"SHARES_PER_RUNG": 4},
    "choosing": {"FIRST_CHOICE": 20, "LAST_CHOICE": 160, "EXPECTED_MORE": 2.0},
    "effect": {"N_NEAREST": 5, "IN_NOTEBOOKS": 20},
    "evolution_search": {"NETWORK": 0.5, "BOTH": 0.2, "TRIES": 200},
    "knowledge": {
        "N_LANDMARKS": 32,
        "N_PER_FIT": 64,
        "N_REMEMBERED": 500,
        "N_BEST": 64,
        "N_CLOSER": 32,
        "N_FINALISTS": 8,
        "N_PENDING": 256,
    },
    "memory": {"MOST_REMEMBERED": 1500, "MOST_FEATURES": 20_000},
    "nasbot": {"N_INCUMBENTS": 10, "N_PROMOTABLE": 20, "N_PER_ROUND": 25, "N_COMPARED": 4},
    "param_effects": {"N_SLICE": 13, "FACTORS": (0.25, 0.5, 2.0, 4.0), "TAILS": (0.05, 0.5, 0.95)},
    "tree_kernel": {
        "PRIOR_MEAN": np.log([1.0, 2.0, 0.7, 0.3, 5.0, 0.05]),
        "PRIOR_SPREAD": [1.0, 1.0, 1.0, 1.0, 1.0, 1.5],
        "N_OF_CHAINS": 5,
        "JITTER": 1e-8,
        "MAX_STEPS": 20,
    },
    "treebo": {"N_INCUMBENTS": 10},
}


@pytest.mark.parametrize("module", LIMITS)
def test_constants_that_somebody_chose(module):
    found = import_module(f"nasbot.searchers.{module}")
    for name, value in LIMITS[module].items():
        assert np.array_equal(getattr(found, name), value), name


DEFAULTS = {
    Repeat: {"difference": 0.0, "error": 0.0, "error_after": 0.0},
    Proposal: {"fidelity": 1.0},
    informative_share: {"n_params": 0},
    EvolutionSearch: {"n_mutations": 10, "repeats_best": False},
    View: {"is_local": False},
    DistanceMemory: {"keeps_d": True, "keeps_d_bar": True},
    NASBOT: {"cost_weight": 0.0, "repeats_best": False},
    NASBOT._maximise: {"n_first": 0},
}


def test_what_is_meant_where_nothing_is_said():
    for function, defaults in DEFAULTS.items():
        said = inspect.signature(function).parameters
        assert {name: said[name].default for name in defaults} == defaults, function


def test_which_searchers_have_a_belief_over_shares():
    assert [kind.__name__ for kind in (NASBOT, TreeBO, EvolutionSearch, RandomSearch) if kind.has_belief] == ["NASBOT"]

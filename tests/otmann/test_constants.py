"""Constants and defaults of otmann: whoever chooses another changes it here too, and says why."""

import inspect
from importlib import import_module

import numpy as np
import pytest

from nasbot.architecture.vocabularies import cnn_penalties
from nasbot.otmann.matching import explain
from nasbot.otmann.neighbours import NeighbourIndex
from nasbot.otmann.presets import _CNN_LABELS, PRESETS, RuleSet
from nasbot.otmann.solver import PLAIN

LIMITS = {
    "_kernels.bitset_simplex": {
        "ZERO": 0,
        "ONE": 1,
        "COLUMNS": 64,
        "MOST_LAYERS": 63,
        "N_NODES": 128,
        "OUT_OF_REACH": -1e9,
    },
    "_kernels.compiled": {"BOUNDS": {"numba": ((0, 61), (0, 69)), "llvmlite": ((0, 44), (0, 51))}},
    "_kernels.lanes": {"LANES": 16, "HOPS": 4, "WALKS": 2},
    "_kernels.network_simplex": {
        "REDUCED_COST_TOLERANCE": 1e-12,
        "PIVOTS_PER_NODE": 1000,
        "NOT_CONVERGED": -1,
        "PARENT": 0,
        "FIRST_CHILD": 1,
        "NEXT_SIBLING": 2,
        "PREVIOUS_SIBLING": 3,
        "STACK": 0,
        "MARK": 1,
    },
    "_kernels.pairs": {"LINE": 8, "TILE": 128},
    "_kernels.path_pass": {
        "INPUT": 0,
        "PROCESSING": 1,
        "DECISION": 2,
        "OUTPUT": 3,
        "NO_UNITS": -1,
        "N_KINDS_AND_ENDS": 6,
    },
    "costs": {"NORM": 1},
    "distances": {"WORTH_A_THREAD": 200_000, "CHUNKS_PER_THREAD": 8},
    "learned": {"WIDE_WEIGHTS": (0.1, 0.4, 1.6, 6.4), "ROOT": 0.5, "HEAVY_ENDS": 0.3},
    "neighbours": {
        "N_FARTHEST": 16,
        "N_SPREAD": 32,
        "N_PER_PACK": 8192,
        "MAPPED_FROM": 16_384,
        "STEP": 4,
        "ROUNDING": 1e-9,
    },
    "packing": {"N_KINDS_AND_ENDS": 6, "ROWS_IN_CACHE": 32},
    "presets": {"PAPER_WEIGHTS": (0.1, 0.2, 0.4, 0.8)},
    "solver": {"PLAIN_WORK": 150_000, "WORK_PER_PACKED_LAYER": 20},
}


@pytest.mark.parametrize("module", LIMITS)
def test_constants_that_somebody_chose(module):
    found = import_module(f"nasbot.otmann.{module}")
    for name, value in LIMITS[module].items():
        assert np.array_equal(getattr(found, name), value), name


DEFAULTS = {
    explain: {"structural_weight": 0.4},
    NeighbourIndex.query: {"normalised": False},
    RuleSet: {"within_groups": 1.0, "between_groups": 1.0},
}


def test_what_is_meant_where_nothing_is_said():
    for function, defaults in DEFAULTS.items():
        said = inspect.signature(function).parameters
        assert {name: said[name].default for name in defaults} == defaults, function


def test_the_rules_of_the_presets():
    assert {name: rules.structural_weights for name, rules in PRESETS.items()} == {
        "paper": (0.1, 0.2, 0.4, 0.8),
        "release": (0.1, 0.25, 0.61, 1.5),
        "figure": (0.5,),
        "log-mass": (0.1, 0.2, 0.4, 0.8),
    }
    assert [rules.mass_rules.logarithmic for rules in PRESETS.values()] == [False, False, False, True]
    assert PRESETS["release"].mass_rules.nonprocessing_floor == 100.0
    assert set(PRESETS["release"].mass_rules.factors.values()) == {1.0}
    assert PRESETS["figure"].mass_rules.factors == {"fc": 1.0}
    release, figure = (PRESETS[name].penalties["cnn"] for name in ("release", "figure"))
    assert release == cnn_penalties(_CNN_LABELS, near=0.2, far=0.2 * 2**0.5, pools=0.5)
    assert figure == cnn_penalties(_CNN_LABELS, near=0.1, far=0.14, pools=0.25)
    assert not PLAIN.is_compiled

"""Every experiment, in the order of the paper and then beyond it."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.ablations import ABLATIONS
from experiments.distance_map import DISTANCE_MAP
from experiments.experiment import Experiment
from experiments.fcnet import FCNET
from experiments.nasbench201 import NAS_BENCH_201

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment for experiment in (ABLATIONS, DISTANCE_MAP, NAS_BENCH_201, FCNET)
}

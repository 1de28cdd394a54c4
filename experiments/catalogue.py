"""Every experiment, in the order of the paper and then beyond it; those that others are drawn from come first."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.ablations import ABLATIONS
from experiments.best_networks import BEST_NETWORKS
from experiments.distance_map import DISTANCE_MAP
from experiments.experiment import Experiment
from experiments.fcnet import FCNET
from experiments.nasbench201 import NAS_BENCH_201
from experiments.searches import ALTERNATIVES, CIFAR10, REGRESSION
from experiments.smoothness import SMOOTHNESS

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        REGRESSION,
        CIFAR10,
        ABLATIONS,
        DISTANCE_MAP,
        SMOOTHNESS,
        BEST_NETWORKS,
        NAS_BENCH_201,
        FCNET,
        ALTERNATIVES,
    )
}

"""The synthetic objectives of Appendix C.4: cheap functions of an architecture, to compare searchers on.

The paper's text gives f3 to CNNs and f1, f2 to MLPs, its formulas say otherwise: f1 uses strides and conv3, which only
a CNN has, so here f1 is for CNNs and f2, f3 are for MLPs. ``released_cnn`` and ``released_mlp`` are the two functions
that the authors' 2018 code has instead, with other constants. All are to be maximised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import exp
from statistics import fmean

import numpy as np

from nasbot.architecture import Architecture, PathEnd, PathKind
from nasbot.architecture.vocabularies import SIGMOIDS
from nasbot.errors import VocabularyError

Objective = Callable[[Architecture], float]


def f1(arch: Architecture) -> float:
    """For CNNs: f0 plus terms in stride, depth, mass and the share of conv3 layers."""
    _require(arch, ("cnn",), "f1")
    return (
        _f0(arch)
        + _peak(3.0, _mean_stride(arch), 1.5)
        + _peak(0.3, len(arch.layers), 50)
        + _peak(0.001, _mean_mass(arch), 500)
        + _share(arch, ("conv3",))
    )


def f2(arch: Architecture) -> float:
    """For MLPs: f0 plus terms in mass, edges and the share of sigmoidal layers."""
    _require(arch, ("mlp-reg", "mlp-class"), "f2")
    return _f0(arch) + _peak(0.001, _mean_mass(arch), 2000) + _peak(0.1, len(arch.edges), 50) + _share(arch, SIGMOIDS)


def f3(arch: Architecture) -> float:
    """For MLPs: f0 plus the share of sigmoidal layers."""
    _require(arch, ("mlp-reg", "mlp-class"), "f3")
    return _f0(arch) + _share(arch, SIGMOIDS)


def released_cnn(arch: Architecture) -> float:
    """cnn_syn_func1 of the authors' code."""
    _require(arch, ("cnn",), "released_cnn")
    kernels = [arch.vocabulary[layer.label].kernel_size for layer in arch.layers]
    n_convolutional = sum(k is not None for k in kernels)
    return (
        _released_common(arch)
        + _peak(0.001, _mean_units(arch), 500)
        + _peak(0.3, len(arch.layers), 50)
        + _peak(3.0, _mean_stride(arch), 1.5)
        + sum(k == 3 for k in kernels) / (n_convolutional + 1)
    )


def released_mlp(arch: Architecture) -> float:
    """mlp_syn_func1 of the authors' code."""
    _require(arch, ("mlp-reg", "mlp-class"), "released_mlp")
    n_favoured = sum(layer.label in ("logistic", "relu") for layer in arch.layers)
    return (
        _released_common(arch)
        + _peak(0.1, len(arch.edges), 50)
        + _peak(0.001, _mean_units(arch), 2000)
        + n_favoured / (len(arch.processing_layers) + 1)
    )


SYNTHETIC: Mapping[str, Objective] = {f.__name__: f for f in (f1, f2, f3, released_cnn, released_mlp)}


class Noisy:
    """An objective with independent Gaussian noise; the same network gets the same noise however often it is asked."""

    def __init__(self, objective: Objective, sd: float, seed: int) -> None:
        self.objective, self.sd, self.seed = objective, sd, seed

    def __call__(self, arch: Architecture) -> float:
        words = [int(arch.fingerprint[i : i + 8], 16) for i in range(0, 32, 8)]
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, *words]))
        return self.objective(arch) + self.sd * float(rng.standard_normal())


def _f0(arch: Architecture) -> float:
    """What f1, f2 and f3 share: mass, degrees, shortest way through, numbers of layers and edges."""
    mean_degree = len(arch.edges) / len(arch.layers)  # in and out alike: every edge enters one layer and leaves one
    return (
        _peak(0.001, _mean_mass(arch), 1000)
        + 2 * _peak(0.5, mean_degree, 5)
        + _peak(0.1, _shortest_way(arch), 5)
        + _peak(0.1, len(arch.layers), 30)
        + _peak(0.05, len(arch.edges), 100)
    )


def _released_common(arch: Architecture) -> float:
    mean_degree = len(arch.edges) / len(arch.layers)
    return (
        _peak(0.002, _mean_units(arch), 1000)
        + _peak(0.4, mean_degree, 5)
        + _peak(0.2, _shortest_way(arch), 10)
        + _peak(0.5, len(arch.parents[-1]), 3)
        + _peak(0.5, len(arch.children[0]), 4)
        + _peak(0.1, len(arch.layers), 30)
        + _peak(0.05, len(arch.edges), 100)
    )


def _peak(rate: float, value: float, at: float) -> float:
    return exp(-rate * abs(value - at))


def _mean_mass(arch: Architecture) -> float:
    return arch.total_mass / len(arch.layers)


def _mean_units(arch: Architecture) -> float:
    units = [layer.units for layer in arch.layers if layer.units is not None]
    return fmean(units) if units else 0.0


def _mean_stride(arch: Architecture) -> float:
    """Over the layers that take a stride, that is convolutions; pools always halve and say nothing."""
    strides = [layer.stride for layer in arch.layers if layer.stride is not None]
    return fmean(strides) if strides else 0.0


def _shortest_way(arch: Architecture) -> float:
    return float(arch.path_lengths.of(PathKind.SHORTEST, PathEnd.TO_OUTPUT)[0])


def _share(arch: Architecture, labels: Iterable[str]) -> float:
    """Of all layers, the share that has one of these labels."""
    wanted = set(labels)
    return sum(layer.label in wanted for layer in arch.layers) / len(arch.layers)


def _require(arch: Architecture, kinds: tuple[str, ...], name: str) -> None:
    if arch.kind not in kinds:
        raise VocabularyError(f"{name} is defined for networks of kind {' or '.join(kinds)}, got {arch.kind}")

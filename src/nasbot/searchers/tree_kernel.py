"""The tree-structured kernel of Jenatton et al. (2017), as the paper's Appendix C.1 used it: for chains only.

A chain of n processing layers is a path from the root of a tree to depth n; the parameters of layer l sit at the node
of depth l and are shared by all chains that reach it. Two chains covary through what they share:

    k(x, x') = Σ_{l <= min(n, n')} amplitude * agreement(x_l, x'_l)  +  depth_amplitude * exp(-|n - n'| / depth_scale)

with agreement = exp(-label_disagreement [labels differ] - |log2 units - log2 units'| / units_scale). The amplitude of a
node is divided by the typical number of layers, so that the prior variance of a typical chain is about one. Params, if
searched, are a factor exp(-Σ l_j δ_j^1.5) of all of it, as they are of NASBOT's kernel (``gp/kernel.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from nasbot.architecture import Architecture
from nasbot.gp.conditioning import conditioned, explained_variance
from nasbot.gp.hyperparameters import PARAM_POWER, PARAM_SPREAD

Floats = NDArray[np.float64]

# log of amplitude, units_scale, label_disagreement (= -log agreement), depth_amplitude, depth_scale, noise variance;
# the decays of params stand before the noise
PRIOR_MEAN = np.log([1.0, 2.0, 0.7, 0.3, 5.0, 0.05])
PRIOR_SPREAD = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.5])
N_OF_CHAINS = 5
JITTER = 1e-8
MAX_STEPS = 20


def is_chain(arch: Architecture) -> bool:
    """Whether no layer has two parents or two children; each has one at least, but for the ends."""
    return len(arch.edges) == len(arch.layers) - 1


@dataclass(frozen=True, eq=False)
class Chains:
    """Chains as arrays padded to one depth: label numbers (-1 beyond the end) and log2 units, both (m, depth)."""

    labels: NDArray[np.int64]
    log_units: Floats

    @classmethod
    def of(cls, archs: Sequence[Architecture], depth: int) -> Chains:
        """The processing layers of each chain, in order; those beyond ``depth`` are cut off."""
        labels = np.full((len(archs), depth), -1, np.int64)
        log_units = np.zeros((len(archs), depth))
        for i, arch in enumerate(archs):
            for place, u in enumerate(arch.processing_layers[:depth]):
                layer = arch.layers[u]
                labels[i, place] = arch.vocabulary.index[layer.label] * 2 + (layer.stride == 2)
                log_units[i, place] = np.log2(layer.units) if layer.units else 0.0
        return cls(labels, log_units)

    @cached_property
    def depths(self) -> Floats:
        """Number of processing layers of each."""
        return np.asarray((self.labels >= 0).sum(axis=1), np.float64)


def prior(n_params: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the log hyper-parameters; those of params as in NASBOT's belief."""
    if not n_params:
        return PRIOR_MEAN, PRIOR_SPREAD
    decays = np.full(n_params, np.log(0.5 / np.sqrt(n_params)))
    mean = np.concatenate([PRIOR_MEAN[:-1], decays, PRIOR_MEAN[-1:]])
    return mean, np.concatenate([PRIOR_SPREAD[:-1], np.full(n_params, PARAM_SPREAD), PRIOR_SPREAD[-1:]])


def params_factor(theta: Floats, rows: Floats) -> Floats:
    """exp(-Σ l_j δ_j^1.5) (n, m) for the differences of params (params, n, m)."""
    factor: Floats = np.exp(-np.tensordot(np.exp(theta[N_OF_CHAINS:-1]), rows**PARAM_POWER, 1))
    return factor


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything about two sets of chains that the kernel needs whatever its hyper-parameters."""

    shared: Floats  # (n, m, depth): 1 where both chains have this layer, else 0
    labels_differ: Floats  # likewise where their labels differ
    units_gap: Floats
    depth_gap: Floats  # (n, m)
    typical_depth: float
    params: Floats | None = None  # differences (params, n, m) where params are compared, too

    @classmethod
    def of(cls, a: Chains, b: Chains, typical_depth: float, params: Floats | None = None) -> Comparison:
        """Layer by layer, down to where one of the sets has none any more."""
        deepest = int(min(a.depths.max(), b.depths.max()))
        labels, others = a.labels[:, None, :deepest], b.labels[None, :, :deepest]
        return cls(
            ((labels >= 0) & (others >= 0)).astype(np.float64),
            (labels != others).astype(np.float64),
            np.abs(a.log_units[:, None, :deepest] - b.log_units[None, :, :deepest]),
            np.abs(a.depths[:, None] - b.depths[None]),
            typical_depth,
            params,
        )

    def kernel(self, theta: Floats) -> Floats:
        """The formula at the head of this file, (n, m)."""
        amplitude, _, _, depth_amplitude, depth_scale = np.exp(theta[:N_OF_CHAINS])
        along_the_path = self._agreement(theta).sum(axis=-1) * (amplitude / self.typical_depth)
        values: Floats = along_the_path + depth_amplitude * np.exp(-self.depth_gap / depth_scale)
        return values if self.params is None else values * params_factor(theta, self.params)

    def gradient(self, theta: Floats) -> Iterator[Floats]:
        """The derivative (n, m) of the kernel by each entry of ``theta`` but the noise."""
        if self.params is None:
            yield from self._gradient_of_chains(theta)
            return
        factor = params_factor(theta, self.params)
        yield from (change * factor for change in self._gradient_of_chains(theta))
        kernel = self.kernel(theta)
        for decay, row in zip(np.exp(theta[N_OF_CHAINS:-1]), self.params, strict=True):
            yield -decay * row**PARAM_POWER * kernel

    def _gradient_of_chains(self, theta: Floats) -> Iterator[Floats]:
        amplitude, units_scale, label_disagreement, depth_amplitude, depth_scale = np.exp(theta[:N_OF_CHAINS])
        agreement = self._agreement(theta) * (amplitude / self.typical_depth)
        yield agreement.sum(axis=-1)
        yield np.einsum("nml,nml->nm", agreement, self.units_gap) / units_scale
        yield np.einsum("nml,nml->nm", agreement, self.labels_differ) * -label_disagreement
        by_depth = depth_amplitude * np.exp(-self.depth_gap / depth_scale)
        yield by_depth
        yield by_depth * self.depth_gap / depth_scale

    def _agreement(self, theta: Floats) -> Floats:
        """How well each layer agrees (n, m, depth), 0 where one chain has no such layer."""
        units_scale, label_disagreement = np.exp(theta[1:3])
        agreement: Floats = np.exp(-label_disagreement * self.labels_differ - self.units_gap / units_scale)
        agreement *= self.shared
        return agreement


@dataclass(frozen=True, eq=False)
class TreeBelief:
    """A Gaussian process over chains, with params where there are some; hyper-parameters at their posterior mode."""

    chains: Chains
    theta: Floats
    typical_depth: float
    lower: Floats
    weights: Floats
    params: Floats | None = None  # differences (params, known, known)

    @classmethod
    def fit(cls, archs: Sequence[Architecture], values: Floats, depth: int, params: Floats | None = None) -> TreeBelief:
        """Condition on standardised ``values`` of the chains, with their params' differences (params, n, n)."""
        chains = Chains.of(archs, depth)
        typical_depth = max(1.0, float(np.median(chains.depths)))
        comparison = Comparison.of(chains, chains, typical_depth, params)
        start, _ = prior(0 if params is None else len(params))

        def loss(theta: Floats) -> tuple[float, Floats]:
            height, slope = log_posterior(comparison, values, theta)
            return -height, -slope

        options = {"maxiter": MAX_STEPS, "ftol": 1e-3}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        theta = found.x if found.fun <= loss(start)[0] else start
        return cls(chains, theta, typical_depth, *conditioned(_gram(comparison, theta), values), params)

    def predict(self, archs: Sequence[Architecture], settings: Floats | None = None) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the objective at other chains (m,).

        With the differences (params, known, s) of s settings: at every chain with every one of them, (s, m).
        """
        chains = Chains.of(archs, self.chains.labels.shape[1])
        cross = Comparison.of(self.chains, chains, self.typical_depth).kernel(self.theta)
        amplitude, depth_amplitude = np.exp(self.theta[[0, 3]])
        prior_variance = amplitude * chains.depths / self.typical_depth + depth_amplitude
        if settings is None:
            return self._given(cross, prior_variance)
        factor = params_factor(self.theta, settings)
        together = (factor[:, :, None] * cross[:, None, :]).reshape(len(cross), -1)
        mean, sd = self._given(together, np.tile(prior_variance, factor.shape[1]))
        return mean.reshape(-1, len(archs)), sd.reshape(-1, len(archs))

    def _given(self, cross: Floats, prior_variance: Floats) -> tuple[Floats, Floats]:
        variance = np.maximum(prior_variance - explained_variance(self.lower, cross), 1e-10 * prior_variance)
        return cross.T @ self.weights, np.sqrt(variance)

    def at_known(self, archs: Sequence[Architecture], params: Floats | None) -> Floats:
        """Means at chains, each with params of its own, by their differences (params, known, m) to the known ones."""
        chains = Chains.of(archs, self.chains.labels.shape[1])
        mean: Floats = (
            Comparison.of(self.chains, chains, self.typical_depth, params).kernel(self.theta).T @ self.weights
        )
        return mean

    def hallucinated(self, archs: Sequence[Architecture], among: Floats | None = None) -> TreeBelief:
        """The belief that also knows these pending chains, at the values it expects of them.

        ``among``: the differences of params (params, known and pending, known and pending).
        """
        if not archs:
            return self
        n = len(self.chains.labels)
        mean = self.at_known(archs, None if among is None else among[:, :n, n:])
        depth = self.chains.labels.shape[1]
        pending = Chains.of(archs, depth)
        chains = Chains(
            np.concatenate([self.chains.labels, pending.labels]),
            np.concatenate([self.chains.log_units, pending.log_units]),
        )
        comparison = Comparison.of(chains, chains, self.typical_depth, among)
        known = self.lower @ (self.lower.T @ self.weights)
        given = conditioned(_gram(comparison, self.theta), np.concatenate([known, mean]))
        return TreeBelief(chains, self.theta, self.typical_depth, *given, among)


def _gram(comparison: Comparison, theta: Floats) -> Floats:
    gram = comparison.kernel(theta)
    gram[np.diag_indices_from(gram)] += np.exp(theta[-1]) + JITTER
    return gram


def log_posterior(comparison: Comparison, values: Floats, theta: Floats) -> tuple[float, Floats]:
    """log p(theta | values) up to a constant, and its gradient."""
    middle, spread = prior(0 if comparison.params is None else len(comparison.params))
    from_prior = (theta - middle) / spread
    try:
        lower, _ = cho_factor(_gram(comparison, theta), lower=True)
    except LinAlgError:  # cannot happen in exact arithmetic: the kernel is a sum of products of valid ones
        return -1e12, np.zeros_like(theta)
    weights = cho_solve((lower, True), values)
    fit = -0.5 * float(values @ weights) - float(np.log(np.diagonal(lower)).sum())
    # d fit / d theta_i = tr((w w' - K^-1) dK_i) / 2
    outer = 0.5 * (np.outer(weights, weights) - cho_solve((lower, True), np.eye(len(values))))
    slope = [float((outer * change).sum()) for change in comparison.gradient(theta)]
    slope.append(float(np.trace(outer) * np.exp(theta[-1])))
    return fit - 0.5 * float(from_prior @ from_prior), np.array(slope) - from_prior / spread

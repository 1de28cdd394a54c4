"""Temperature scaling (Guo et al., 2017): how sure a classifier is of what it says follows from the validation rows.

A long training is surer than it is right, and one with label smoothing less sure, so the likelihood of the validation
rows ends trainings too soon and speaks against smoothing, though both get more classes right. One number, the
sharpness 1/T, times the logits mends that. It is found at each validation, before anything is compared, and in the end
it is part of the weights of the decision layer: what reads, stores or exports a network knows nothing of it. It
belongs to networks with one decision layer; of several the probabilities are averaged. A refit, which has no rows left
to find it by, takes that of its trial.

The mean of classifiers that are as sure as they should be is less sure than it should be, so those of an ensemble are
sharpened once more, all alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from nasbot.architecture import Architecture
from nasbot.training.module import Network
from nasbot.training.operations import DecisionLayer

SPREAD = 1.0  # standard deviation of the logarithm that is expected, which few rows hardly change
MOST = 20.0  # times as sure, or as little
SMALLEST = 1e-300  # a probability of which a logarithm is taken
N_STEPS, PRECISE = 20, 1e-4  # of Newton's method, and of the logarithm


def can_be_sharpened(arch: Architecture) -> bool:
    """Whether a classifier has one decision layer."""
    return len(arch.decision_layers) == 1


def sharpness_of(out: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> float:
    """What log-probabilities (n, classes) are to be multiplied by so that the truth y (n,) is likeliest.

    The most probable one a posteriori, its logarithm being normal with mean 0. The negative logarithm of the likelihood
    is convex in the sharpness, and of each row it is cheap: Newton's method needs some four steps.
    """
    logs = np.maximum(np.asarray(out, dtype=np.float64), -1e4)  # what is impossible for a network stays so
    true = np.take_along_axis(logs, y[:, None], axis=1)
    share = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64) / weights.mean()
    low, high = -math.log(MOST), math.log(MOST)
    at = 0.0
    for _ in range(N_STEPS):
        sharpness = math.exp(at)
        p = np.exp(sharpness * (logs - logs.max(axis=1, keepdims=True)))
        p /= p.sum(axis=1, keepdims=True)
        expected = (p * logs).sum(axis=1, keepdims=True)
        slope = float((share * (expected - true)[:, 0]).sum())
        variance = float((share * (p * (logs - expected) ** 2).sum(axis=1)).sum())
        # By the logarithm, and with what is expected of it.
        first = sharpness * slope + at / SPREAD**2
        second = sharpness**2 * variance + max(0.0, sharpness * slope) + 1 / SPREAD**2
        if first > 0:
            high = at
        else:
            low = at
        step = at - first / second
        before, at = at, step if low < step < high else 0.5 * (low + high)
        if abs(at - before) < PRECISE:
            break
    return math.exp(at)


def shared_sharpness(
    outs: Sequence[np.ndarray],
    shares: Sequence[float],
    can_be: Sequence[bool],
    y: np.ndarray,
    weights: np.ndarray | None = None,
) -> float:
    """The same for networks whose probabilities are averaged by these shares: one sharpness for all that can have it.

    Here the likelihood is not convex, so the minimum is found by a bracketing search.
    """
    counts = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64) / weights.mean()

    def cost(at: float) -> float:
        mean = averaged(outs, shares, can_be, math.exp(at))
        true = np.take_along_axis(mean, y[:, None], axis=1)[:, 0]
        return float(-(counts * true).sum()) + 0.5 * (at / SPREAD) ** 2

    edge = math.log(MOST)
    return math.exp(minimize_scalar(cost, bounds=(-edge, edge), method="bounded", options={"xatol": PRECISE}).x)


def averaged(
    outs: Sequence[np.ndarray], shares: Sequence[float], can_be: Sequence[bool], sharpness: float = 1.0
) -> np.ndarray:
    """The logarithm of the mean probability of networks that are sharpened where they can be; float64."""
    mean = np.zeros(outs[0].shape)
    for out, share, can in zip(outs, shares, can_be, strict=True):
        mean += share * np.exp((sharpened(out, sharpness) if can else out).astype(np.float64))
    return np.asarray(np.log(np.maximum(mean, SMALLEST)))


def sharpened(out: np.ndarray, sharpness: float) -> np.ndarray:
    """The log-probabilities with that sharpness; float32."""
    logs = sharpness * np.asarray(out, dtype=np.float64)
    highest = logs.max(axis=1, keepdims=True)
    logs -= highest + np.log(np.exp(logs - highest).sum(axis=1, keepdims=True))
    return logs.astype(np.float32)


@torch.no_grad()
def sharpen(network: Network, sharpness: float) -> None:
    """Let the network say so itself, if it can be."""
    if sharpness == 1.0 or not can_be_sharpened(network.arch):
        return
    [decision] = network.arch.decision_layers
    part = network.layers[str(decision)]
    assert isinstance(part, DecisionLayer)
    tensors: tuple[Tensor, ...] = (part.weight, part.bias)
    for tensor in tensors:
        tensor.mul_(sharpness)

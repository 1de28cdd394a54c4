"""Temperature scaling (Guo et al., 2017): how sure a classifier is of what it says follows from the validation rows.

A long training is surer than it is right, and one with label smoothing less sure, so the likelihood of the validation
rows ends trainings too soon and speaks against smoothing, though both get more classes right. One number, the
sharpness 1/T, times the logits mends that. It is found at each validation, before anything is compared, and in the end
it is part of the weights of the decision layer: what reads, stores or exports a network knows nothing of it. It
belongs to networks with one decision layer; of several the probabilities are averaged. A refit, which has no rows left
to find it by, takes that of its trial.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from nasbot.training.module import Network
from nasbot.training.operations import DecisionLayer

SPREAD = 1.0  # standard deviation of the logarithm that is expected, which few rows hardly change
MOST = 20.0  # times as sure, or as little
N_STEPS, PRECISE = 20, 1e-4  # of Newton's method, and of the logarithm


def can_be_sharpened(network: Network) -> bool:
    """Whether the network is a classifier with one decision layer."""
    return network.classifies and len(network.arch.decision_layers) == 1


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


def sharpened(out: np.ndarray, sharpness: float) -> np.ndarray:
    """The log-probabilities with that sharpness; float32."""
    logs = sharpness * np.asarray(out, dtype=np.float64)
    highest = logs.max(axis=1, keepdims=True)
    logs -= highest + np.log(np.exp(logs - highest).sum(axis=1, keepdims=True))
    return logs.astype(np.float32)


@torch.no_grad()
def sharpen(network: Network, sharpness: float) -> None:
    """Let the network say so itself."""
    if sharpness == 1.0:
        return
    [decision] = network.arch.decision_layers
    part = network.layers[str(decision)]
    assert isinstance(part, DecisionLayer)
    tensors: tuple[Tensor, ...] = (part.weight, part.bias)
    for tensor in tensors:
        tensor.mul_(sharpness)

"""What a network says of rows, in its own units and in people's, and what that is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nasbot.data.dataset import Dataset, Part
from nasbot.data.metrics import METRICS, Metric, truth_of
from nasbot.data.preprocessing import ClassTarget
from nasbot.training.module import Network
from nasbot.training.steps import tensor_of

CHUNK_NUMBERS = 2_000_000  # inputs that are validated together, so that a validation needs little memory
MAX_CHUNK = 4096


@dataclass(frozen=True)
class Validation:
    """The validation part as it was after a step."""

    step: int
    loss: float
    score: float
    cost: tuple[float, float]  # lower is better; second the loss of metrics, which often have equal values


def scored(
    step: int,
    out: np.ndarray,
    losses: tuple[float, float | None],
    data: Dataset,
    part: Part,
    metric: Metric | None,
    by_error: bool = False,
) -> Validation:
    """What outputs for the rows of a part are worth, their loss and share of wrong classes being known."""
    loss, error = losses
    if metric is not None:
        value = metric(truth_of(data, part.y), answers(out, data), part.weights)
        return Validation(step, loss, value, (metric.cost(value), loss))
    value = error if by_error and error is not None else loss
    return Validation(step, loss, value, (value, 0.0))


def predictions(network: Network, X: Tensor) -> Tensor:
    """What the network gives for all of X, a part at a time; leaves it in evaluation mode."""
    network.eval()
    chunk = max(1, min(MAX_CHUNK, CHUNK_NUMBERS // max(1, math.prod(network.input_shape) * (16 if X.ndim == 4 else 1))))
    outs = []
    with torch.inference_mode():
        for x in torch.split(X, chunk):
            outs.append(network(x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x))
    return outs[0] if len(outs) == 1 else torch.cat(outs)


def answers(out: np.ndarray, data: Dataset) -> np.ndarray:
    """A network's outputs as metrics take them: probabilities, or numbers in people's units, (n, outputs)."""
    exact = np.asarray(out, dtype=np.float64)
    return np.exp(exact) if data.is_classification else data.preprocessing.predicted(exact).reshape(exact.shape)


def people_predictions(network: Network, data: Dataset, part: Part) -> np.ndarray:
    """(n, outputs): numbers in people's units, within the target's limits, or log-probabilities of classes."""
    out = predictions(network, tensor_of(part.X)).numpy() if len(part) else np.zeros((0, data.n_outputs))
    return people_answers(out, data)


def people_answers(out: np.ndarray, data: Dataset) -> np.ndarray:
    """The same of a network's outputs."""
    target = data.preprocessing.target
    if isinstance(target, ClassTarget):
        return np.asarray(out, dtype=np.float32)
    return np.asarray(data.preprocessing.predicted(out).reshape(out.shape), dtype=target.kept_as)


def metrics_of(network: Network, data: Dataset, part: Part) -> dict[str, float]:
    """What people ask about, in their units: mse, rmse and r2, or log_loss, error and accuracy; {} of no samples."""
    if not len(part):
        return {}
    predicted, truth = answers(predictions(network, tensor_of(part.X)).numpy(), data), truth_of(data, part.y)
    names = ("log-loss", "error", "accuracy") if data.is_classification else ("mse", "rmse", "r2")
    varies = data.is_classification or bool((truth.var(axis=0) > 0).all())
    wanted = [name for name in names if name != "r2" or varies]
    return {name.replace("-", "_"): METRICS[name](truth, predicted, part.weights) for name in wanted}

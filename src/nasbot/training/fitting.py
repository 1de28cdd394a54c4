"""Models of a network that a search has found: trained anew, or with the weights that the search kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from nasbot.architecture import Architecture
from nasbot.candidate import Params
from nasbot.data.dataset import Dataset, Part
from nasbot.data.splitting import split_rows
from nasbot.errors import OptionError
from nasbot.training.loop import train
from nasbot.training.module import RATE_SCALE, Network, build
from nasbot.training.objective import trained_as
from nasbot.training.recipes import Recipe, recipe_of
from nasbot.training.weights import read_weights, set_weights

FOR_STOPPING = 0.2


def fit(
    arch: Architecture,
    data: Dataset,
    X: Any = None,
    y: Any = None,
    *,
    recipe: str | Recipe,
    params: Params | None = None,
    seed: int,
    seconds: float | None,
    targets: np.ndarray | None = None,
) -> nn.Module:
    """The network trained on the data, or on X and y prepared like them, with a fifth of the rows kept to stop by.

    ``targets`` are what is learned of the data's training rows instead of the truth.
    """
    if (X is None) != (y is None):
        raise OptionError("fit: expected inputs and target, or neither for the data of the search")
    chosen = data if X is None else _prepared(data, X, y, seed)
    changed, prepared = trained_as(recipe_of(recipe), chosen, params or {})
    learned = targets if X is None else None
    return train(arch, prepared, changed, seed=seed, seconds=seconds, targets=learned).network


def with_weights(arch: Architecture, data: Dataset, path: Path) -> Network:
    """The network with the weights of a file; ``data`` prepared as they were for it."""
    state = read_weights(path)
    network = build(
        arch, input_shape=data.input_shape, n_outputs=data.n_outputs, seed=0, rate_scale=state.get(RATE_SCALE)
    )
    set_weights(network, state, path)
    return network.eval()


def _prepared(data: Dataset, X: Any, y: Any, seed: int) -> Dataset:
    inputs, target = data.preprocessing.X(X), data.preprocessing.y(y)
    if len(inputs) != len(target):
        raise OptionError(f"fit: expected one target for each of {len(inputs)} rows, got {len(target)}")
    classes = target if data.is_classification else None
    rows = split_rows(len(inputs), (1 - FOR_STOPPING, FOR_STOPPING, 0.0), seed=seed, classes=classes)
    train_part, valid, test = (Part(inputs[chosen], target[chosen]) for chosen in rows)
    return replace(data, train=train_part, valid=valid, test=test)

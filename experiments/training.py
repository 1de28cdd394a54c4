"""Trainings as protocols ask for them, and what a network is worth on data that nothing was chosen by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nasbot import Architecture
from nasbot.data.dataset import Dataset
from nasbot.training.loop import Trained, train
from nasbot.training.recipes import Recipe, recipe_of

RETRAINING = 1_000_000  # added to seeds: weights and batches that no search has seen


def recipe_from(settings: Mapping[str, Any]) -> Recipe:
    """``[settings.recipe]`` of a protocol: a recipe's name, and what is changed in it."""
    # The protocols keep the name under which the records were made: their digest is part of them.
    changes = {"max_flops" if name == "work" else name: value for name, value in settings.items()}
    recipe = recipe_of(changes.pop("name"))
    return recipe.changed(**changes) if changes else recipe


def retrained(arch: Architecture, folder: Path, recipe: Recipe, *, seed: int) -> dict[str, float]:
    """Train again, from other weights; scores on validation and test data (``scores_of``)."""
    data = Dataset.load(folder)
    trained = train(arch, data, recipe, seed=RETRAINING + seed)
    return {**scores_of(trained, data), "seconds": round(trained.seconds, 2)}


def scores_of(trained: Trained, data: Dataset) -> dict[str, float]:
    """As the paper reports: mean squared error of the standardised target, or the share of wrong classes."""
    if data.is_classification:
        return {part: float(trained.metrics[f"{part}_error"]) for part in ("valid", "test")}
    scale = scale_of(data)
    return {part: float(trained.metrics[f"{part}_mse"]) / scale**2 for part in ("valid", "test")}


def scale_of(data: Dataset) -> float:
    """What one unit of the standardised target is in people's."""
    two = data.preprocessing.target.restored(np.array([[0.0], [1.0]], dtype=np.float64))
    return float(np.ravel(two)[1] - np.ravel(two)[0])

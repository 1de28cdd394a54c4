"""What else follows from the metric and the rows: a training loss, class weights, augmentation, and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from nasbot._typing import Json
from nasbot.automl.calibration import means_the_same_mirrored
from nasbot.automl.plan import fitting_baseline
from nasbot.data.metrics import Metric, majority_of
from nasbot.data.parts import NO_RATES
from nasbot.data.weighting import BALANCED, class_weights_of
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.training.recipes import Recipe

ABSOLUTE = ("mae", "mape")  # of absolute errors, so training goes down these: see docs/results/metrics.md
MIRROR_SHARE, MIRROR_SECONDS = 0.03, 5.0  # of a budget in time, and of one in trials, for asking about mirrored images
FOR_RARE_CLASSES = ("f1", "balanced-accuracy")  # every class counts alike there, however few rows it has


def as_needed(
    recipe: Recipe,
    metric: Metric | None,
    data: Dataset,
    *,
    few_rows: bool,
    begun_with: Mapping[str, Json] | None,
    seconds: float | None,
    seed: int,
) -> Recipe:
    """FAST as few rows need it, with the loss that the metric and a heavy-tailed target ask for; others as they are.

    Images that mean the same mirrored are mirrored in training: some of the budget's ``seconds`` find out. A study that
    goes on keeps the loss and the augmentation that it began with, and what FAST of its day said otherwise.
    """
    from nasbot.training.recipes import CHANGED_SINCE, FAST, FEW_ROWS, POISSON, Recipe

    if recipe != FAST:
        return recipe
    loss, augmentation = recipe.vectors.loss, recipe.images.augmentation
    if begun_with is not None and isinstance(before := begun_with.get("recipe"), Mapping):
        begun_as = Recipe.from_dict(before)
        loss, augmentation = begun_as.vectors.loss, begun_as.images.augmentation
        as_then = {name: getattr(begun_as.vectors, name) for name in CHANGED_SINCE}
        recipe = Recipe(recipe.name, replace(recipe.vectors, **as_then), recipe.images)
    elif data.has_images:
        baseline = fitting_baseline(data.kind, len(data.train))
        longest = MIRROR_SECONDS if seconds is None else MIRROR_SHARE * seconds
        if means_the_same_mirrored(baseline, data, recipe, seconds=longest, seed=seed):
            augmentation = "flips"
    elif metric is not None and metric.name in ABSOLUTE:
        loss = "absolute"
    elif data.is_heavy_tailed:
        loss = POISSON
    changes = {
        **(FEW_ROWS if few_rows else {}),
        **({} if loss == recipe.vectors.loss else {"loss": loss}),
        **({} if augmentation == recipe.images.augmentation else {"augmentation": augmentation}),
    }
    return recipe.changed(**changes) if changes else recipe


def check_loss(recipe: Recipe, data: Dataset) -> None:
    """OptionError for a loss that no network could be trained with, before a study is begun."""
    from nasbot.training.recipes import POISSON

    if recipe.settings(data.input_shape).loss == POISSON and not data.is_classification and data.rate_scale is None:
        raise OptionError(NO_RATES)


def balanced_for(metric: Metric | None, data: Dataset) -> Dataset:
    """The data with classes that count alike in the loss, where the metric asks for it and one class is most rows.

    Weights that were asked for stay as they are.
    """
    if metric is None or metric.name not in FOR_RARE_CLASSES or data.class_weights is not None:
        return data
    if majority_of(data) is None:
        return data
    weights = class_weights_of(BALANCED, data.preprocessing.target, data.train.y, data.train.weights)
    return replace(data, class_weights=weights)

"""How long a full training of given data is, and how much time its refits need: as this machine was seen to train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from nasbot._typing import Json
from nasbot.architecture import Vocabulary
from nasbot.automl.calibration import Calibration, calibrated
from nasbot.automl.ensemble import MAX_MEMBERS
from nasbot.automl.plan import LEAST_STEPS, SECONDS_FOR_CARE, fitting_baseline, full_training_seconds, most_steps
from nasbot.automl.refits import expected_seconds
from nasbot.automl.teaching import Lessons
from nasbot.automl.tuning import SHARES
from nasbot.storage import Address, is_begun
from nasbot.study import Budget, StudyView

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.training.recipes import Recipe

CROWDING = 1.4  # how much longer a step takes while two workers train: cores share caches and more
TAUGHT = tuple(share for share in SHARES if share)


def length_of(
    budget: Budget,
    workers: int,
    data: Dataset,
    recipe: Recipe,
    stored: Mapping[str, Json] | None,
    seed: int,
    folds: int,
    lessons: Lessons | None = None,
) -> Calibration | None:
    """How long a full training is; None where the recipe or the study says it, or the budget is in trials."""
    settings = recipe.settings(data.input_shape)
    full = full_training_seconds(budget, workers, data.has_images)
    if stored is not None or full is None or settings.n_steps is not None:
        return None
    batch = settings.batch_size_for(len(data.train))
    longest = most_steps(len(data.train), batch)
    arch = fitting_baseline(data.kind, len(data.train))
    return calibrated(
        arch,
        data,
        recipe,
        seconds=full / folds,
        most_steps=longest,
        least_steps=min(LEAST_STEPS, longest),
        tries_full=(budget.seconds or 0.0) >= SECONDS_FOR_CARE and not data.has_images,
        crowding=CROWDING if workers > 1 else 1.0,
        targets=() if lessons is None else [lessons.targets(data, share) for share in TAUGHT],
        seed=seed,
    )


def that_help(lessons: Lessons, length: Calibration | None) -> Lessons | None:
    """The lessons, as much of them as a training was best with; None where the truth alone was better."""
    best = None if length is None else length.best_targets
    return None if best is None else replace(lessons, share=TAUGHT[best])


def seconds_for_refits(
    path: Path | Address | None,
    vocabulary: Vocabulary,
    data: Dataset,
    budget: Budget,
    workers: int,
    length: Calibration | None,
    folds: int,
) -> float:
    """Seconds to keep for refits: of a new study by the baseline's training, else as long as trainings took there."""
    from nasbot.training.refitting import rows_ratio

    training = (full_training_seconds(budget, workers, data.has_images) or 0.0) / folds
    if length is not None:
        training = length.n_steps * length.seconds_per_step * (CROWDING if workers > 1 else 1.0)
    elif path is not None and is_begun(path):
        with StudyView.read(path, vocabulary=vocabulary) as view:
            training = median([(t.seconds or 0.0) / folds for t in view.history.ranked[:MAX_MEMBERS]] or [0.0])
    return expected_seconds(training, rows_ratio(data, folds), workers)

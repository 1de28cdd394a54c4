"""A network of a search trained once more, on training and validation rows together, for the model a person takes away.

How long is settled before, by the trial that it repeats: the same schedule with as many epochs, stopped where that
trial's best validation was; twice as long where it was still getting better and has an ensemble to learn from. So the
validation rows choose nothing here; they are learned from. On tables divided 60 : 20 : 20 that is a third more to learn
from: test errors were 2 to 11 % lower on Protein and Indoor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from nasbot._files import file_errors
from nasbot.architecture import Architecture
from nasbot.candidate import Params
from nasbot.data.dataset import Dataset
from nasbot.training.folds import joined
from nasbot.training.objective import (
    Live,
    TrainingObjective,
    computing_threads,
    full_steps,
    share_from_trees,
    trained_as,
)
from nasbot.training.recipes import recipe_of
from nasbot.trial import Scored, Trial

STILL_BETTER = 0.85  # of a training: best so near its end it was not over


@dataclass(frozen=True)
class Length:
    """How a trial was trained: the steps of its schedule, the share of them before its best, and how sure it was."""

    steps: int
    stop_after: float
    sharpness: float = 1.0  # of a classifier: no rows are left that could say it of the refit

    @property
    def is_short(self) -> bool:
        """Whether it was still getting better at its end."""
        return self.stop_after >= STILL_BETTER


@dataclass(frozen=True)
class RefitObjective:
    """``objective(arch, params, trial)``: the network of that trial on all rows; leaves its weights and predictions.

    ``base`` says how the search trained; ``lengths`` how long each trial was; ``lesson``, if any, what the ensemble
    says of training and validation rows, and how much its word counts (``distilling``). The score is the loss on rows
    that it was trained on, and good for nothing.
    """

    preload: ClassVar[tuple[str, ...]] = (*TrainingObjective.preload, "nasbot.training.refitting")
    carries: ClassVar[tuple[str, ...]] = ("data_folder",)
    leaves: ClassVar[tuple[str, ...]] = ("weights",)

    base: TrainingObjective
    data_folder: str | Path
    weights: str | Path
    lengths: Mapping[int, Length]
    lesson: tuple[np.ndarray, float] | None = None

    def __call__(self, arch: Architecture, params: Params, trial: Live) -> Scored:
        """Train, and write what is left of it."""
        from nasbot.training.loop import train
        from nasbot.training.predictions import people_predictions
        from nasbot.training.weights import save_predictions, save_weights

        stored = Dataset.load(self.data_folder)
        length = self.lengths[trial.number]
        steps = max(1, round(length.steps * rows_ratio(stored, self.base.folds)))
        recipe, data = trained_as(recipe_of(self.base.recipe).changed(n_steps=steps), stored, params)
        with computing_threads(self.base.threads):
            trained = train(
                arch,
                with_all_rows(data),
                recipe,
                seed=trial.seed,
                seconds=self.base.seconds,
                device=self.base.device,
                stop_after=length.stop_after,
                targets=self.targets_of(data, params),
                sharpness=length.sharpness,
            )
            # The validation rows' are missing on purpose: what is said of rows that were learned judges nothing.
            test = people_predictions(trained.network, data, data.test)
            save_predictions(test[:0], test, refit_predictions_path(self.weights, trial.number))
            about = {"data": stored.fingerprint}
            save_weights(trained.network, refit_weights_path(self.weights, trial.number), about=about)
        return Scored(trained.loss)

    def targets_of(self, data: Dataset, params: Params) -> np.ndarray | None:
        """What the ensemble says, which knows what trees told its networks, and else what the trial learned.

        By no less than the trial learned from trees: with more of the truth it would learn the noise sooner.
        """
        from nasbot.training import distilling

        from_trees = share_from_trees(params)
        if self.lesson is None:
            return distilling.targets_of(data, self.data_folder, from_trees, all_rows=True)
        said, share = self.lesson
        truth = distilling.truth_of(data, joined(data.train, data.valid))
        return distilling.blended(truth, said, max(share, from_trees))


def with_all_rows(data: Dataset) -> Dataset:
    """The data with the validation rows among those to learn from."""
    return replace(data, train=joined(data.train, data.valid))


def rows_ratio(data: Dataset, folds: int = 1) -> float:
    """How many times the rows that a trial learned from all rows to learn from are."""
    return folds / (folds - 1) if folds > 1 else (len(data.train) + len(data.valid)) / len(data.train)


def length_of(trial: Trial, data: Dataset, base: TrainingObjective) -> Length | None:
    """How long a completed trial was trained; None where it does not say."""
    details = trial.details
    steps, best = details.get("steps"), details.get("best_step")
    if not isinstance(steps, int) or not isinstance(best, int) or not 1 <= best <= steps:
        return None
    schedule = steps
    if details.get("stopped") != "time":  # else the schedule was as long as the time
        full = recipe_of(base.recipe).settings(data.input_shape).n_steps
        if full is None:
            recipe, prepared = trained_as(recipe_of(base.recipe), data, trial.candidate.params)
            full = full_steps(trial.arch, recipe, prepared, base.folds)
        schedule = max(steps, round(trial.fidelity * full))
    return Length(schedule, best / schedule, float(details.get("sharpness", 1.0)))


def refit_weights_path(folder: str | Path, number: int) -> Path:
    """Where the weights of trial ``number`` are after its refit."""
    return Path(folder) / f"refit-{number}.safetensors"


def refit_predictions_path(folder: str | Path, number: int) -> Path:
    """Where what the refit of trial ``number`` says of the test rows is."""
    return Path(folder) / f"refit-{number}.predictions.npy"


def discard_refits(folder: str | Path, numbers: set[int]) -> None:
    """Remove what was left of the refits of other trials than these."""
    keep = {path(folder, n).name for n in numbers for path in (refit_weights_path, refit_predictions_path)}
    for path in Path(folder).glob("refit-*"):
        if path.name not in keep:
            path.unlink(missing_ok=True)


def has_refit(folder: str | Path, number: int) -> bool:
    """Whether a refit of the trial is there, whole: its weights are written last."""
    with file_errors(f"{folder}: cannot be read"):
        return refit_weights_path(folder, number).is_file()

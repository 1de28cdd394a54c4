"""Trees as teachers: what gradient boosting says of rows that it has not seen, for networks to learn from.

Training rows are divided into folds; of each fold those trees speak that have grown on all the others, and of the
validation rows all of them together. So nothing that is said of a row knows its truth, and validation judges what came
of it as ever.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot import _json
from nasbot._system import n_cores
from nasbot._typing import Json
from nasbot.automl.tuning import SHARES
from nasbot.errors import FileError, StorageError

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset

FOLDS = 5
SHARE, MOST_SECONDS = 0.08, 30.0  # of a budget
LEAST_BUDGET = 20.0  # seconds; with less there is no time for it
# How many rounds of boosting at most, and as few as there is time for: each the larger the fewer they are.
ROUNDS, GROWTH = (400, 200, 100), 24.0
TIMED_ROUNDS = (1, 11)
EXPECTED = 0.5  # of these rounds, after which trees have mostly stopped by themselves
LEAST_OF_A_CLASS = 20  # training rows
TREES_OF_STUDY = "trees"  # in the context of a study


@dataclass(frozen=True)
class Lessons:
    """What trees say after so many rounds of boosting, of the training rows and then the validation rows."""

    rounds: int
    said: np.ndarray  # (n, outputs): standardised numbers, or probabilities
    share: float  # by default, of what they say in what is learned

    def targets(self, data: Dataset, share: float) -> np.ndarray:
        """What a network would learn of the training rows that learns by ``share`` from them."""
        from nasbot.training.distilling import blended, truth_of

        return blended(truth_of(data, data.train), self.said[: len(data.train)], share)

    def save(self, folder: Path, data: Dataset) -> None:
        """Beside the data, where trainings look for it."""
        from nasbot.training.distilling import save_trees

        save_trees(folder, data, self.said)

    def to_dict(self) -> dict[str, Json]:
        """What a study must go on with: whoever has lost what trees say lets them say it again."""
        return {TREES_OF_STUDY: {"rounds": self.rounds, "share": self.share}}


def rounds_and_share(begun_with: Mapping[str, Json] | None) -> tuple[int, float] | None:
    """Of a study that goes on; None where its networks learn from no trees."""
    stored = (begun_with or {}).get(TREES_OF_STUDY)
    if stored is None:
        return None
    fields = _json.fields(stored, f"context: {TREES_OF_STUDY}", ("rounds", "share"))
    rounds, share = _json.whole(fields["rounds"], "rounds"), _json.number(fields["share"], "share")
    if rounds not in ROUNDS or share not in SHARES:
        raise StorageError(f"context: {TREES_OF_STUDY}: expected rounds among {ROUNDS}, a share among {SHARES}")
    return rounds, share


def lessons_for(
    data: Dataset,
    budget: float | None,
    begun_with: Mapping[str, Json] | None,
    *,
    folds: int,
    is_named: bool,
    loss: str,
    seed: int,
    folder: Path | None = None,
) -> Lessons | None:
    """What trees say of these data, in their share of a budget in seconds; None where there is no time for it.

    Those that are asked for by name take the time that they need. A study that goes on has the trees it began with:
    what they said is in its ``folder``, or they say it again.
    """
    from nasbot.training.distilling import read_trees

    rounds, share = rounds_and_share(begun_with) or (None, SHARES[-1])
    if rounds is not None and folder is not None:
        with suppress(FileError, StorageError):
            return Lessons(rounds, read_trees(folder, data), share)
    if begun_with is None and can_teach(data, folds):
        rounds = affordable_rounds(data, budget, loss=loss, seed=seed) or (ROUNDS[-1] if is_named else None)
    return None if rounds is None else Lessons(rounds, what_trees_say(data, rounds, loss=loss, seed=seed), share)


def can_teach(data: Dataset, folds: int) -> bool:
    """Whether trees may speak of these data: a table with one target, without rare classes, judged by validation."""
    if folds > 1 or data.has_images:
        return False
    if data.is_classification:
        return bool(np.bincount(data.train.y, minlength=data.n_outputs).min() >= LEAST_OF_A_CLASS)
    return data.n_outputs == 1


def affordable_rounds(data: Dataset, budget: float | None, *, loss: str, seed: int) -> int | None:
    """How many rounds trees can grow for in their share of a budget in seconds; None: not enough to be worth it."""
    if budget is None or budget < LEAST_BUDGET:
        return None

    def seconds_of(rounds: int) -> float:
        started = time.monotonic()
        with _one_thread_each():
            _fitted(_boosting(data, rounds, loss, seed), data, np.arange(len(data.train)))
        return time.monotonic() - started

    end = time.monotonic() + min(MOST_SECONDS, SHARE * budget)
    seconds_of(1)  # what loads and compiles at first is no part of it
    times = []
    for n in TIMED_ROUNDS:
        if time.monotonic() >= end:  # a crowded machine, or a table that is too large for this
            return None
        times.append(seconds_of(n))
    first, more = times
    a_round = max(0.0, more - first) / (TIMED_ROUNDS[1] - TIMED_ROUNDS[0])
    left = end - time.monotonic()
    fits = math.ceil(FOLDS / n_cores()) * (1 - 1 / FOLDS)  # of all training rows, one after the other
    return next((rounds for rounds in ROUNDS if fits * (first + EXPECTED * rounds * a_round) <= left), None)


def what_trees_say(data: Dataset, rounds: int, *, loss: str, seed: int) -> np.ndarray:
    """Of the training rows and then the validation rows, (n, outputs): standardised numbers, or probabilities."""
    from nasbot.training.folds import fold_numbers

    fold = fold_numbers(len(data.train), FOLDS, data.train.y if data.is_classification else None)

    def of_fold(i: int) -> tuple[np.ndarray, np.ndarray]:
        model = _fitted(_boosting(data, rounds, loss, seed), data, np.flatnonzero(fold != i))
        return _said(model, data, data.train.X[fold == i]), _said(model, data, data.valid.X)

    train = np.zeros((len(data.train), data.n_outputs))
    with _one_thread_each(), ThreadPoolExecutor(n_cores()) as cores:
        found = list(cores.map(of_fold, range(FOLDS)))
    for i, (unseen, _) in enumerate(found):
        train[fold == i] = unseen
    return np.concatenate([train, np.mean([valid for _, valid in found], axis=0)]).astype(np.float32)


def _one_thread_each() -> AbstractContextManager[object]:
    """Folds beside each other; threads of one fit wait for each other at every small step."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="openmp")
    return limits


def _boosting(data: Dataset, rounds: int, loss: str, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    options: dict[str, Any] = {"max_iter": rounds, "learning_rate": GROWTH / max(rounds, ROUNDS[-1])}
    options |= {"early_stopping": rounds >= ROUNDS[-1], "validation_fraction": 0.15, "random_state": seed}
    if data.is_classification:
        return HistGradientBoostingClassifier(**options)
    return HistGradientBoostingRegressor(loss="absolute_error" if loss == "absolute" else "squared_error", **options)


def _fitted(model: Any, data: Dataset, rows: np.ndarray) -> Any:
    weights = data.loss_weights(data.train)
    y = data.train.y[rows] if data.is_classification else data.train.y[rows, 0]
    return model.fit(data.train.X[rows], y, sample_weight=None if weights is None else weights[rows])


def _said(model: Any, data: Dataset, X: np.ndarray) -> np.ndarray:
    if not data.is_classification:
        return np.asarray(model.predict(X))[:, None]
    said = np.zeros((len(X), data.n_outputs))
    said[:, model.classes_] = model.predict_proba(X)
    return said

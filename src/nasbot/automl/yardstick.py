"""A yardstick beside every search on a table: trees of scikit-learn, in a few seconds. Never part of the model.

ExtraTrees and gradient boosting grow as far as their share of the time reaches; the better one by validation is then
trained once more on training and validation rows, as a search's own networks are, and predicts the test rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nasbot.data.metrics import metric_of, truth_of
from nasbot.errors import FileError, StorageError

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset, Part
    from nasbot.data.metrics import Metric

SHARE, MOST_SECONDS = 0.04, 20.0  # of a budget
LEAST_BUDGET = 20.0  # seconds; with less there is no time for it
MOST_TREES, MOST_ROUNDS = 100, 400
FIRST_TREES, FIRST_ROUNDS = 4, 25
WORTH_THREADS = 1_000_000  # numbers in a table from which gradient boosting computes with all cores
KINDS = ("ExtraTrees", "gradient boosting")

Grown: TypeAlias = Callable[[int], Any]  # a fresh model with so many trees


@dataclass(frozen=True)
class Yardstick:
    """What the trees said of validation and test rows: numbers in people's units, or log-probabilities."""

    name: str
    valid: np.ndarray
    test: np.ndarray

    def save(self, folder: Path) -> None:
        """Beside the study."""
        from nasbot.training.weights import save_predictions

        save_predictions(self.valid, self.test, _place(folder, self.name))

    @classmethod
    def load(cls, folder: Path, n_valid: int) -> Yardstick | None:
        """What was saved; None where nothing was, or it is broken."""
        from nasbot.training.weights import read_predictions

        for name in KINDS:
            with suppress(FileError, StorageError):
                return cls(name, *read_predictions(_place(folder, name), n_valid))
        return None


def seconds_for(budget: float | None) -> float | None:
    """How much of a budget in seconds the yardstick takes; None: there is no time for it."""
    return None if budget is None or budget < LEAST_BUDGET else min(MOST_SECONDS, SHARE * budget)


def measured(data: Dataset, *, seconds: float, seed: int, metric: Metric | None = None) -> Yardstick | None:
    """The better of the two by validation, after about so many seconds; None for images, which are not theirs."""
    if len(data.input_shape) != 1:
        return None
    judge = metric or metric_of("log-loss" if data.is_classification else "mse")
    found = []
    for name, first, most in ((KINDS[0], FIRST_TREES, MOST_TREES), (KINDS[1], FIRST_ROUNDS, MOST_ROUNDS)):
        if name == KINDS[1] and not data.is_classification and data.n_outputs > 1:
            continue
        grown = _grower(name, classifies=data.is_classification, seed=seed)
        end, n, took = time.monotonic() + 0.3 * seconds, first, 0.0
        best: tuple[float, int, np.ndarray] | None = None
        while n <= most and (best is None or time.monotonic() + 2 * took <= end):
            begun = time.monotonic()
            said = _said(_fitted(grown(n), data, [data.train]), data, data.valid)
            took = time.monotonic() - begun
            cost = judge.cost(judge(truth_of(data, data.valid.y), _as_metrics_take(said, data), data.valid.weights))
            if best is not None and cost >= best[0]:
                break
            best, n = (cost, n, said), 2 * n
        assert best is not None
        found.append((best[0], name, best[1], best[2], grown))
    _, name, n, valid, grown = min(found, key=lambda each: each[0])
    model = _fitted(grown(n), data, [data.train, data.valid])
    return Yardstick(name, valid, _said(model, data, data.test))


def _grower(name: str, *, classifies: bool, seed: int) -> Grown:
    from sklearn import ensemble

    if name == KINDS[0]:
        kind = ensemble.ExtraTreesClassifier if classifies else ensemble.ExtraTreesRegressor
        return lambda n: kind(n, random_state=seed, n_jobs=-1)
    boosting = ensemble.HistGradientBoostingClassifier if classifies else ensemble.HistGradientBoostingRegressor
    return lambda n: boosting(max_iter=n, early_stopping=False, random_state=seed)


def _fitted(model: Any, data: Dataset, parts: list[Part]) -> Any:
    from threadpoolctl import threadpool_limits

    X, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y"))
    weights = [data.loss_weights(part) for part in parts]
    given = [array for array in weights if array is not None]
    y = y if data.is_classification or data.n_outputs > 1 else y[:, 0]
    # Threads of gradient boosting wait for each other at every small step: where others use the machine's cores, twenty
    # times as long for a few thousand rows as one thread takes.
    with threadpool_limits(1 if X.size < WORTH_THREADS else None, user_api="openmp"):
        return model.fit(X, y, sample_weight=np.concatenate(given) if given else None)


def _said(model: Any, data: Dataset, part: Part) -> np.ndarray:
    """As networks say it: numbers in people's units, or log-probabilities of all classes."""
    from nasbot.training.predictions import people_answers

    if not len(part):
        return np.zeros((0, data.n_outputs), np.float32)
    if not data.is_classification:
        said = np.asarray(model.predict(part.X)).reshape(len(part), -1)
        return people_answers(said, data)
    shares = np.full((len(part), data.n_outputs), LEAST_PROBABILITY)
    shares[:, model.classes_] = np.maximum(model.predict_proba(part.X), LEAST_PROBABILITY)
    return np.asarray(np.log(shares / shares.sum(axis=1, keepdims=True)), dtype=np.float32)


LEAST_PROBABILITY = 1e-3  # trees that all agree would be infinitely wrong once


def _as_metrics_take(said: np.ndarray, data: Dataset) -> np.ndarray:
    exact = said.astype(np.float64)
    return np.exp(exact) if data.is_classification else exact


def _place(folder: Path, name: str) -> Path:
    return folder / f"yardstick-{name.replace(' ', '-')}.predictions.npy"

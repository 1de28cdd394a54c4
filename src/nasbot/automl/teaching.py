"""Trees as teachers: what they say of rows that they have not seen, for networks to learn from.

With gradient boosting, training rows are divided into folds; of each fold those trees speak that have grown on all the
others, and of the validation rows all of them together. Of many classes or columns there is no time for that; then
ExtraTrees teach classes, each tree grown on rows drawn with replacement: of a training row those speak that did not
draw it, of a validation row all. So nothing that is said of a row knows its truth, and validation judges what came of
it as ever.
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
OVERDUE = 3.0  # times that share, after which no more trees are begun
# How many rounds of boosting at most, and as few as there is time for: each the larger the fewer they are.
ROUNDS, GROWTH = (400, 200, 100), 24.0
TIMED_ROUNDS = (1, 6)
EXPECTED = 0.5  # of these rounds, after which trees have mostly stopped by themselves
TREES, TIMED_TREES = (200, 100, 50), 6  # of ExtraTrees
LEAST_OF_A_CLASS = 20  # training rows
TREES_OF_STUDY = "trees"  # in the context of a study


@dataclass(frozen=True)
class Teacher:
    """Gradient boosting by its rounds, or ExtraTrees by its trees: one of them is 0."""

    rounds: int = 0
    trees: int = 0

    def say(self, data: Dataset, *, loss: str, seed: int, end: float = math.inf) -> np.ndarray:
        """Of the training rows and then the validation rows, (n, outputs): standardised numbers, or probabilities.

        TimeoutError where not all trees have been begun by ``end``, of ``time.monotonic``.
        """
        if self.rounds:
            return what_boosting_says(data, self.rounds, loss=loss, seed=seed, end=end)
        return what_extra_trees_say(data, self.trees, seed=seed, end=end)

    def to_dict(self) -> dict[str, int]:
        """What there is of it."""
        return {name: size for name, size in (("rounds", self.rounds), ("trees", self.trees)) if size}


@dataclass(frozen=True)
class Lessons:
    """What trees say of the training rows and then the validation rows."""

    teacher: Teacher
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
        return {TREES_OF_STUDY: {**self.teacher.to_dict(), "share": self.share}}


def teacher_and_share(begun_with: Mapping[str, Json] | None) -> tuple[Teacher, float] | None:
    """Of a study that goes on; None where its networks learn from no trees."""
    stored = (begun_with or {}).get(TREES_OF_STUDY)
    if stored is None:
        return None
    fields = _json.fields(stored, f"context: {TREES_OF_STUDY}", ("share",), optional=("rounds", "trees"))
    sizes = {name: _json.whole(fields[name], name) for name in ("rounds", "trees") if name in fields}
    share, known = _json.number(fields["share"], "share"), {"rounds": ROUNDS, "trees": TREES}
    if len(sizes) != 1 or share not in SHARES or any(size not in known[name] for name, size in sizes.items()):
        raise StorageError(
            f"context: {TREES_OF_STUDY}: expected rounds among {ROUNDS} or trees among {TREES}, a share among {SHARES}"
        )
    return Teacher(**sizes), share


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

    end = math.inf
    teacher, share = teacher_and_share(begun_with) or (None, SHARES[-1])
    if teacher is not None and folder is not None:
        with suppress(FileError, StorageError):
            return Lessons(teacher, read_trees(folder, data), share)
    if begun_with is None and can_teach(data, folds):
        if budget is not None and not is_named:
            end = time.monotonic() + OVERDUE * _seconds_for(budget)
        teacher = affordable_teacher(data, budget, loss=loss, seed=seed)
        if teacher is None and is_named:
            teacher = Teacher(rounds=ROUNDS[-1])
    if teacher is not None:
        with suppress(TimeoutError):
            return Lessons(teacher, teacher.say(data, loss=loss, seed=seed, end=end), share)
    return None


def can_teach(data: Dataset, folds: int) -> bool:
    """Whether trees may speak of these data: a table with one target, without rare classes, judged by validation."""
    if folds > 1 or data.has_images:
        return False
    if data.is_classification:
        return bool(np.bincount(data.train.y, minlength=data.n_outputs).min() >= LEAST_OF_A_CLASS)
    return data.n_outputs == 1


def affordable_teacher(data: Dataset, budget: float | None, *, loss: str, seed: int) -> Teacher | None:
    """The trees that can grow in their share of a budget in seconds; None: too few to be worth it."""
    if budget is None or budget < LEAST_BUDGET:
        return None
    end = time.monotonic() + _seconds_for(budget)
    rounds = _affordable_rounds(data, end, loss=loss, seed=seed)
    if rounds is not None:
        return Teacher(rounds=rounds)
    # Leaves of fully grown trees hold one class, whatever its rows weigh; numbers gained nothing (Indoor).
    if not data.is_classification or data.loss_weights(data.train) is not None:
        return None
    trees = _affordable_trees(data, end, seed=seed)
    return None if trees is None else Teacher(trees=trees)


def _affordable_rounds(data: Dataset, end: float, *, loss: str, seed: int) -> int | None:
    def seconds_of(rounds: int) -> float:
        started = time.monotonic()
        with _one_thread_each():
            _fitted(_boosting(data, rounds, loss, seed), data, np.arange(len(data.train)))
        return time.monotonic() - started

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


def _affordable_trees(data: Dataset, end: float, *, seed: int) -> int | None:
    started = time.monotonic()
    if started >= end:
        return None
    what_extra_trees_say(data, TIMED_TREES, seed=seed)
    a_tree, left = (time.monotonic() - started) / TIMED_TREES, end - time.monotonic()
    return next((trees for trees in TREES if trees * a_tree <= left), None)


def _seconds_for(budget: float) -> float:
    return min(MOST_SECONDS, SHARE * budget)


def what_boosting_says(data: Dataset, rounds: int, *, loss: str, seed: int, end: float = math.inf) -> np.ndarray:
    """Of the training rows and then the validation rows, (n, outputs): standardised numbers, or probabilities.

    TimeoutError where not all trees have been begun by ``end``, of ``time.monotonic``.
    """
    from nasbot.training.folds import fold_numbers

    fold = fold_numbers(len(data.train), FOLDS, data.train.y if data.is_classification else None)

    def of_fold(i: int) -> tuple[np.ndarray, np.ndarray]:
        # On a crowded machine fits of hundredths of a second, which are timed, are as quick as ever, and longer ones
        # are not: what should have taken 2.4 s took 3 to 7 with eleven processes on two cores.
        if time.monotonic() >= end:
            raise TimeoutError
        with _one_thread_each():  # such a limit holds for the thread that sets it
            model = _fitted(_boosting(data, rounds, loss, seed), data, np.flatnonzero(fold != i))
            return _said(model, data, data.train.X[fold == i]), _said(model, data, data.valid.X)

    train = np.zeros((len(data.train), data.n_outputs))
    with ThreadPoolExecutor(n_cores()) as cores:
        found = list(cores.map(of_fold, range(FOLDS)))
    for i, (unseen, _) in enumerate(found):
        train[fold == i] = unseen
    return np.concatenate([train, np.mean([valid for _, valid in found], axis=0)]).astype(np.float32)


def what_extra_trees_say(data: Dataset, trees: int, *, seed: int, end: float = math.inf) -> np.ndarray:
    """The same of classes, by ExtraTrees: of a training row by those that did not draw it. None of them is kept."""
    from sklearn.tree import ExtraTreeClassifier

    n = len(data.train)

    def of_tree(i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if time.monotonic() >= end:
            raise TimeoutError
        drawn = np.bincount(np.random.default_rng([seed, i]).integers(n, size=n), minlength=n)
        tree = ExtraTreeClassifier(max_features="sqrt", random_state=i)
        tree.fit(data.train.X, data.train.y, sample_weight=drawn)
        unseen = np.flatnonzero(drawn == 0)
        return unseen, _said(tree, data, data.train.X[unseen]), _said(tree, data, data.valid.X)

    train, asked = np.zeros((n, data.n_outputs)), np.zeros((n, 1))
    valid = np.zeros((len(data.valid), data.n_outputs))
    with ThreadPoolExecutor(n_cores()) as cores:
        for unseen, said, said_of_valid in cores.map(of_tree, range(trees)):
            train[unseen] += said
            asked[unseen] += 1
            valid += said_of_valid / trees
    # Who was drawn by all of many trees, one row in billions, is told as much of each class.
    told = np.divide(train, asked, out=np.full_like(train, 1 / data.n_outputs), where=asked > 0)
    return np.concatenate([told, valid]).astype(np.float32)


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

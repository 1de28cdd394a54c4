"""Cross-validation, for tables of few rows: a fifth of them says little about a network, all of them say more.

Training and validation rows together are divided into folds; a network is trained once for each, on all the others,
and what it says of the fold that it did not see is kept. Its value is the loss over all these rows. The test rows stay
out, as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from nasbot._rng import Role, stream
from nasbot.data.dataset import Dataset, Part
from nasbot.data.metrics import Metric
from nasbot.data.splitting import nested_rows
from nasbot.training.loop import OnValidation, Trained
from nasbot.training.losses import losses_of
from nasbot.training.predictions import Validation, people_answers, predictions, scored
from nasbot.trial import Point

Folds = Sequence[tuple[Dataset, np.ndarray]]
Training = Callable[[Dataset, int, OnValidation], Trained]  # of the data of a fold, and its number


@dataclass(frozen=True)
class CrossValidated:
    """What came of the folds: one training that stands for all, and what networks said of rows that they had not seen.

    The network of ``trained`` is that of the first fold; its loss, score and curve are those of all rows, and its best
    step is one for all folds.
    """

    trained: Trained
    predictions: np.ndarray  # (rows of training and validation, outputs), as of ``people_predictions``


def judged_part(data: Dataset, folds: int) -> Part:
    """The rows by which networks are compared: the validation rows, or with folds the training rows, then those."""
    return data.valid if folds == 1 else joined(data.train, data.valid)


def joined(first: Part, second: Part) -> Part:
    """The rows of both."""
    weights = [part.weights for part in (first, second) if part.weights is not None]
    return Part(
        np.concatenate([first.X, second.X]),
        np.concatenate([first.y, second.y]),
        np.concatenate(weights) if len(weights) == 2 else None,
    )


def fold_numbers(n: int, folds: int, classes: np.ndarray | None = None) -> np.ndarray:
    """(n,), the fold of each row: of equal sizes, and with ``classes`` each of them divided alike."""
    order = stream(n, folds, Role.SPLIT).permutation(n)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    numbers = np.empty(n, dtype=np.int64)
    numbers[order] = np.arange(n) % folds
    return numbers


def folded(data: Dataset, folds: int) -> list[tuple[Dataset, np.ndarray]]:
    """For each fold the data with it for validation and all others to learn from, and the numbers of its rows."""
    together = joined(data.train, data.valid)
    numbers = fold_numbers(len(together), folds, together.y if data.is_classification else None)
    return [
        (replace(data, train=_rows(together, numbers != fold), valid=_rows(together, numbers == fold)), rows)
        for fold in range(folds)
        for rows in [np.flatnonzero(numbers == fold)]
    ]


def cross_validated(data: Dataset, folds: int, train: Training, metric: Metric | None) -> CrossValidated:
    """Train once for each fold, and stop all where they are best together; a divergence of one is one of all.

    Each fold alone would stop where its few rows happen to be predicted best, which promises far too much.
    """
    parts = folded(data, folds)
    together = joined(data.train, data.valid)
    said: dict[int, dict[int, np.ndarray]] = {}  # by step, by fold

    def listener(fold: int) -> OnValidation:
        return lambda step, out: said.setdefault(step, {}).update({fold: out})

    trainings = [train(part, fold, listener(fold)) for fold, (part, _) in enumerate(parts)]
    known = [step for step in sorted(said) if len(said[step]) == folds]
    if not known:  # time ran out of one at a step that the others do not know: each as it was best
        known = [min(said)]
        said[known[0]] = {
            fold: predictions(t.network, torch.from_numpy(np.array(part.valid.X))).numpy()
            for fold, (t, (part, _)) in enumerate(zip(trainings, parts, strict=True))
        }
    outputs = {step: _gathered(said[step], parts, len(together), data.n_outputs) for step in known}
    validations = [_validation(step, out, data, together, metric) for step, out in outputs.items()]
    best = min(validations, key=lambda validation: validation.cost)
    steps = max(t.steps for t in trainings)
    first = trainings[0]
    summary = replace(
        first,
        loss=best.loss,
        score=best.score,
        curve=tuple(Point(validation.step, validation.score) for validation in validations),
        steps=steps,
        best_step=best.step,
        seconds=sum(t.seconds for t in trainings),
        stopped="time" if any(t.stopped == "time" for t in trainings) else "steps",
    )
    return CrossValidated(summary, people_answers(outputs[best.step], data))


def _gathered(said: Mapping[int, np.ndarray], parts: Folds, n: int, n_outputs: int) -> np.ndarray:
    outputs = np.empty((n, n_outputs), dtype=np.float32)
    for fold, (_, rows) in enumerate(parts):
        outputs[rows] = said[fold]
    return outputs


def _validation(step: int, out: np.ndarray, data: Dataset, rows: Part, metric: Metric | None) -> Validation:
    weights = data.loss_weights(rows)
    losses = losses_of(
        torch.from_numpy(out),
        torch.from_numpy(np.array(rows.y)),
        None if weights is None else torch.from_numpy(weights),
        classifies=data.is_classification,
    )
    return scored(step, out, losses, data, rows, metric)


def with_share(data: Dataset, share: float) -> Dataset:
    """The data with that share of the training rows; the same rows whoever asks, and the other parts as they are."""
    return replace(data, train=_rows(data.train, rows_of_share(data, share)))


def rows_of_share(data: Dataset, share: float) -> np.ndarray:
    """The numbers of these training rows."""
    return nested_rows(len(data.train), share, classes=data.train.y if data.is_classification else None)


def _rows(part: Part, chosen: np.ndarray) -> Part:
    return Part(part.X[chosen], part.y[chosen], None if part.weights is None else part.weights[chosen])

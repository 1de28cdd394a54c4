"""Which networks to average: greedy selection with replacement from their predictions for the validation rows.

A choice among many on few rows is partly luck. So how long to go on choosing is decided on rows that the selection did
not see, each half of them once. Where there are few rows at all the better half of the networks is averaged, alike: the
best of them by a hundred rows is the luckiest, and often too sure of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nasbot.data.metrics import Metric
from nasbot.errors import DataError

START = 3  # members that the selection begins with: the best
MAX_ROUNDS = 25
MAX_MEMBERS = 8  # different ones
MIN_ROWS = 500  # below this nothing is chosen
SMALLEST = 1e-12  # a probability of the truth from which a logarithm is taken

Loss = Callable[[np.ndarray], np.ndarray]  # of what is averaged; see ``_rows_and_loss``
ALL, EVEN, ODD = slice(None), slice(0, None, 2), slice(1, None, 2)


@dataclass(frozen=True)
class Selection:
    """Members by their place among the predictions, and their weights, which add up to 1."""

    members: tuple[int, ...]
    weights: tuple[float, ...]
    # The metric, turned so that lower is better.
    loss: float  # expected: on validation rows that did not choose, or on all where there are few
    single_loss: float  # of the best single network, on all validation rows


def select(
    predictions: np.ndarray,
    truth: np.ndarray,
    *,
    scales: Sequence[float] | None = None,
    metric: Metric | None = None,
    row_weights: np.ndarray | None = None,
    max_members: int = MAX_MEMBERS,
) -> Selection:
    """Choose an ensemble by the validation rows. Deterministic; among equals the earlier network wins.

    Args:
        predictions: (networks, n, outputs) numbers, or log-probabilities of classes.
        truth: (n, outputs) numbers, judged by mean squared error, or (n,) classes as whole numbers, by log-loss.
        scales: what to divide the errors of each output by; with those of the target the loss is a trial's.
        metric: what to judge by instead.
        row_weights: (n,), how much each row counts; None: all alike.
        max_members: different networks at most.

    Returns:
        Members, weights and losses. On the validation rows it is never worse than the best single network.

    Raises:
        DataError: where the shapes do not fit, or a prediction is not a number.
    """
    given, loss_on = _rows_and_loss(np.asarray(predictions), np.asarray(truth), scales, metric, row_weights)
    single = float(loss_on(ALL)(given).min())

    def path_on(rows: slice) -> list[list[int]]:
        return _greedy(given[:, rows], loss_on(rows), max_members)

    if given.shape[1] < MIN_ROWS:
        return _of_few_rows(given, loss_on(ALL), single, max_members)
    path = path_on(ALL)
    checks = [
        [float(loss_on(unseen)(given[chosen][:, unseen].mean(axis=0))) for chosen in path_on(seen)]
        for seen, unseen in ((EVEN, ODD), (ODD, EVEN))
    ]
    n_rounds = min(len(path), *map(len, checks))
    expected = np.mean([check[:n_rounds] for check in checks], axis=0)
    best = int(np.argmin(expected))
    return _selection(path[best], float(expected[best]), single)


def _of_few_rows(given: np.ndarray, loss: Loss, single: float, max_members: int) -> Selection:
    """The better half alike, or as many of the best as are no worse together than the best one alone."""
    order = np.argsort(loss(given), kind="stable")
    for n in range(min(max(START, len(given) // 2), max_members, len(given)), 1, -1):
        together = float(loss(given[order[:n]].mean(axis=0)))
        if together < single:
            return _selection(order[:n].tolist(), together, single)
    return _selection(order[:1].tolist(), single, single)


def _greedy(given: np.ndarray, loss: Loss, max_members: int) -> list[list[int]]:
    """The choice after each round: the best few, or the best alone where those are worse; then who helps most."""
    singles = loss(given)
    order = np.argsort(singles, kind="stable")
    chosen = [int(i) for i in order[: min(START, max_members)]]
    reached = float(loss(given[chosen].mean(axis=0)))
    if reached >= singles[order[0]]:
        chosen, reached = chosen[:1], float(singles[order[0]])
    path = [chosen]
    total = given[chosen].sum(axis=0)
    for n in range(len(chosen) + 1, MAX_ROUNDS + 1):
        members = sorted(set(chosen))
        offered = np.arange(len(given)) if len(members) < max_members else np.array(members)
        losses = np.array([float(loss((total + given[i]) / n)) for i in offered])
        if losses.min() >= reached:
            break
        taken = int(offered[np.argmin(losses)])
        chosen, reached = [*chosen, taken], float(losses.min())
        total += given[taken]
        path.append(chosen)
    return path


def _rows_and_loss(
    predictions: np.ndarray,
    truth: np.ndarray,
    scales: Sequence[float] | None,
    metric: Metric | None,
    row_weights: np.ndarray | None,
) -> tuple[np.ndarray, Callable[[slice], Loss]]:
    """What is averaged, and its loss on some of the rows.

    Errors (networks, n, outputs), or probabilities of the truth (networks, n); for a metric whole predictions.
    """
    n = len(truth)
    if predictions.ndim != 3 or not len(predictions) or predictions.shape[1] != n or not n:
        raise DataError(f"predictions: expected (networks, {n}, outputs), got {predictions.shape}")
    is_class = truth.ndim == 1 and truth.dtype.kind in "iu"
    if np.isnan(predictions).any() or not (is_class or np.isfinite(predictions).all()):  # a probability may be 0
        raise DataError("predictions: some are not finite numbers; leave out the networks that they come from")
    if not is_class and truth.shape != predictions.shape[1:]:
        raise DataError(f"truth: expected {predictions.shape[1:]} numbers or ({n},) classes, got {truth.shape}")
    if metric is not None:
        whole = predictions.astype(np.float64)
        return np.exp(whole) if is_class else whole, lambda rows: _loss_by(
            metric, truth[rows], None if row_weights is None else row_weights[rows]
        )
    if is_class:
        of_truth = np.take_along_axis(predictions.astype(np.float64), truth[None, :, None], axis=2)[:, :, 0]
        return np.exp(of_truth), lambda rows: lambda p: _mean_row(-np.log(np.maximum(p, SMALLEST)), row_weights, rows)
    errors = (predictions.astype(np.float64) - truth) / (1.0 if scales is None else np.asarray(scales))
    if row_weights is None:
        return errors, lambda _: lambda e: np.square(e).mean(axis=(-2, -1))
    return errors, lambda rows: lambda e: _mean_row(np.square(e).mean(axis=-1), row_weights, rows)


def _mean_row(losses: np.ndarray, row_weights: np.ndarray | None, rows: slice) -> np.ndarray:
    """Of losses (..., n) the mean over these rows, each as heavy as it is."""
    return np.asarray(
        losses.mean(axis=-1) if row_weights is None else np.average(losses, axis=-1, weights=row_weights[rows])
    )


def _loss_by(metric: Metric, truth: np.ndarray, row_weights: np.ndarray | None) -> Loss:
    def loss(given: np.ndarray) -> np.ndarray:
        if given.ndim == 2:
            return np.asarray(metric.cost(metric(truth, given, row_weights)))
        return np.array([metric.cost(metric(truth, one, row_weights)) for one in given])

    return loss


def _selection(chosen: Sequence[int], loss: float, single: float) -> Selection:
    members, counts = np.unique(chosen, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    weights = tuple(float(counts[i]) / len(chosen) for i in order)
    return Selection(tuple(int(members[i]) for i in order), weights, loss, single)

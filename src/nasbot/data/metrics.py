"""What predictions are judged by: each metric with its name, its sense and the task that it is for.

truth      regression: (n, outputs) numbers in people's units       classification: (n,) classes by number
predicted  regression: (n, outputs) numbers in people's units       classification: (n, classes) probabilities

Several outputs, and classes one against the rest, are averaged with equal weights. No class is special: with two
classes ``f1`` and ``average-precision`` are the mean over both, so that it does not matter which one is called
positive. Values agree with scikit-learn's; ``log-loss`` takes probabilities as they are down to 1e-308. Where rows have
weights they are scikit-learn's with ``sample_weight``: a row of weight 2 counts as two rows.

A metric of one's own is a function, named as ``module:function`` or ``file.py:function`` by whoever calls. A study
keeps the name, never the code: what is read from its file is not imported, the caller names it again.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot._own_code import own_function
from nasbot._ranks import average_ranks
from nasbot.errors import DataError, OptionError, StudyError

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset

Weights = np.ndarray | None  # (n,): how much each row counts; None: all alike
Formula = Callable[[np.ndarray, np.ndarray, Weights], float]  # of truth and predictions; NaN where it is not defined
REGRESSION, CLASSIFICATION = "regression", "classification"
IMBALANCED = 0.8  # a majority's share of the training rows from which it is named
SQUARED = ("mse", "rmse", "r2")
FEW_ROWS, FEW_OF = 10, 0.01  # rows, and of all training rows, that are few to make up half of a variance
SMALLEST = float(np.finfo(np.float64).tiny)  # a probability from which a logarithm is taken
OWN = "expected MODULE:FUNCTION or FILE.py:FUNCTION, where FUNCTION(truth, predicted) returns a number"
HIGH, LOW = ("score", "accuracy"), ("error", "loss", "deviance")  # how names end of what is good when high, or low


@dataclass(frozen=True)
class Metric:
    """One way to judge predictions."""

    name: str
    task: str
    higher_is_better: bool
    formula: Formula

    def __call__(self, truth: np.ndarray, predicted: np.ndarray, weights: Weights = None) -> float:
        """The value in the metric's own sense; NaN where it is not defined for this truth."""
        exact = None if weights is None else np.asarray(weights, dtype=np.float64)
        if exact is not None and not (exact > 0).all():  # a row that does not count is not there
            truth, predicted, exact = (np.asarray(values)[exact > 0] for values in (truth, predicted, exact))
        return self.formula(np.asarray(truth), np.asarray(predicted, dtype=np.float64), exact)

    def cost(self, value: float) -> float:
        """The value turned so that lower is better; infinite for NaN."""
        if math.isnan(value):
            return math.inf
        return -value if self.higher_is_better else value

    @property
    def sense(self) -> str:
        """For people."""
        return f"{'higher' if self.higher_is_better else 'lower'} is better"


def metric_of(name: str | Metric) -> Metric:
    """The metric of this name; OptionError with the nearest where there is none."""
    if isinstance(name, Metric):
        return name
    if name in METRICS:
        return METRICS[name]
    near = difflib.get_close_matches(str(name), METRICS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise OptionError(f"metric: expected one of {', '.join(METRICS)}, or MODULE:FUNCTION, got {str(name)[:40]!r}{hint}")


def named_metric(name: str | Metric, task: str) -> Metric:
    """The same, and what ``module:function`` names: the caller's own code, which is run."""
    return own_metric(name, task) if isinstance(name, str) and is_own(name) else metric_of(name)


def default_metric(data: Dataset) -> Metric:
    """What results are shown in where no metric is asked for."""
    return METRICS["log-loss" if data.is_classification else "mse"]


def metric_for(name: str | Metric, data: Dataset) -> Metric:
    """The metric of this name, if it fits the data; OptionError, saying which do, where it does not."""
    task = task_of(data)
    metric = named_metric(name, task)
    if metric.task != task:
        fitting = ", ".join(other.name for other in METRICS.values() if other.task == task)
        raise OptionError(f"metric: {metric.name} is for {metric.task}, the target asks for {task}; expected {fitting}")
    truth = truth_of(data, data.valid.y)
    if metric.name == "mape":
        # Training rows judge, too, where there are folds. A restored 0 is not exactly 0: rows are in single precision.
        values = np.abs(np.concatenate([truth_of(data, data.train.y), truth]))
        if n_zeros := int((values < 1e-6 * values.max()).sum()):
            raise OptionError(
                f"metric: mape divides by the target, which is 0 in {n_zeros:,} training and validation rows; try mae"
            )
    baseline = _shares(data, len(truth)) if data.is_classification else np.zeros_like(truth)
    if math.isnan(metric(truth, baseline, data.valid.weights)):
        what = "classes" if data.is_classification else "rows"
        raise OptionError(
            f"metric: {metric.name} needs at least two {what} among the {len(truth)} validation rows; "
            "give more rows, another split, or another metric"
        )
    return metric


def task_of(data: Dataset) -> str:
    """What the target asks for."""
    return CLASSIFICATION if data.is_classification else REGRESSION


def truth_of(data: Dataset, y: np.ndarray) -> np.ndarray:
    """A prepared target as metrics take it: classes by number, or numbers in people's units, (n, outputs)."""
    if data.is_classification:
        return np.asarray(y)
    return np.asarray(data.preprocessing.restored(y), dtype=np.float64).reshape(len(y), data.n_outputs)


@dataclass(frozen=True)
class Majority:
    """The most frequent class, where it is most rows."""

    name: str
    share: float  # of the training rows
    predicted: np.ndarray  # (classes,): the shares of all classes, which is what knowing no inputs predicts


def majority_of(data: Dataset) -> Majority | None:
    """The class that makes up more than ``IMBALANCED`` of the training rows, if there is one."""
    if not data.is_classification:
        return None
    shares = _shares(data, 1)[0]
    most = int(shares.argmax())
    if shares[most] <= IMBALANCED:
        return None
    return Majority(str(data.preprocessing.classes[most]), float(shares[most]), shares)


def imbalance_line(data: Dataset, metric: Metric) -> str | None:
    """What to know where one class is most rows, with what knowing only that scores on the validation rows."""
    majority = majority_of(data)
    if majority is None:
        return None
    answer = np.tile(majority.predicted, (len(data.valid), 1))
    score = metric(data.valid.y, answer, data.valid.weights)
    blind = metric.name in ("accuracy", "error", "log-loss")
    advice = "; --metric f1, average-precision or balanced-accuracy looks at the others" if blind else ""
    return (
        f"imbalance: {majority.name!r} is {majority.share:.1%} of the training rows, so an accuracy of "
        f"{majority.share:.3f} needs no network, nor does {metric.name} {score:.4g} (validation){advice}"
    )


def tail_line(data: Dataset, metric: Metric) -> str | None:
    """What to know where so few rows are half of what a target varies by that squared errors are theirs alone."""
    if data.is_classification or metric.name not in SQUARED:
        return None
    n = len(data.train)
    squares = np.sort(np.square(data.train.y.astype(np.float64)), axis=0)[::-1]  # standardised: from the mean
    n_half = (np.cumsum(squares, axis=0) < squares.sum(axis=0) / 2).sum(axis=0) + 1
    where = int(np.argmin(n_half))
    few = int(n_half[where])
    if few > min(FEW_ROWS, FEW_OF * n):
        return None
    name = data.preprocessing.target.names[where]
    return (
        f"long tail: {few} of {n:,} training rows make up half of what {name} varies by, so {metric.name} is that of a "
        "few rows; --metric mae counts all alike, or give its logarithm as the target"
    )


def notices(data: Dataset, metric: Metric) -> list[str]:
    """What to know of the target before results are believed."""
    return [line for line in (imbalance_line(data, metric), tail_line(data, metric)) if line is not None]


def _shares(data: Dataset, n: int) -> np.ndarray:
    """(n, classes): how frequent each class is among the training rows, for each of n rows."""
    counts = np.bincount(data.train.y, minlength=data.n_outputs)
    return np.tile(counts / counts.sum(), (n, 1))


# -- numbers -----------------------------------------------------------------------------------------------------------


def _mean(values: np.ndarray, weights: Weights) -> float:
    """Over rows and outputs."""
    return float(values.mean() if weights is None else np.average(values, axis=0, weights=weights).mean())


def _by_output(values: np.ndarray, weights: Weights) -> np.ndarray:
    return np.asarray(values.mean(axis=0) if weights is None else np.average(values, axis=0, weights=weights))


def _mse(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    return _mean(np.square(predicted - truth), weights)


def _rmse(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    return float(np.sqrt(_by_output(np.square(predicted - truth), weights)).mean())


def _mae(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    return _mean(np.abs(predicted - truth), weights)


def _mape(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    return _mean(np.abs(predicted - truth) / np.maximum(np.abs(truth), np.finfo(np.float64).eps), weights)


def _r2(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    """1 - residual / variance of each output; of a constant one 1 where it is met exactly, 0 elsewhere."""
    if len(truth) < 2:
        return math.nan
    each = 1.0 if weights is None else weights[:, None]
    residual = (each * np.square(predicted - truth)).sum(axis=0)
    spread = (each * np.square(truth - _by_output(truth, weights))).sum(axis=0)
    share = residual / np.where(spread > 0, spread, 1.0)
    return float(np.where(spread > 0, 1.0 - share, np.where(residual > 0, 0.0, 1.0)).mean())


# -- classes -----------------------------------------------------------------------------------------------------------


def _log_loss(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    of_truth = np.take_along_axis(predicted, truth[:, None], axis=1)
    return 0.0 - _mean(np.log(np.maximum(of_truth, SMALLEST)), weights)  # of a perfect one 0, not -0


def _accuracy(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    return _mean(predicted.argmax(axis=1) == truth, weights)


def _error(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    return _mean(predicted.argmax(axis=1) != truth, weights)


def _counts(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each class: rows of it that are predicted as such, rows predicted as such, rows of it."""
    n, said = predicted.shape[1], predicted.argmax(axis=1)
    is_hit = said == truth
    of_hits = None if weights is None else weights[is_hit]
    hits = np.bincount(truth[is_hit], of_hits, minlength=n)
    return hits, np.bincount(said, weights, minlength=n), np.bincount(truth, weights, minlength=n)


def _balanced_accuracy(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    """The mean share of each class's rows that is found, over the classes that there are."""
    hits, _, rows = _counts(truth, predicted, weights)
    return float((hits[rows > 0] / rows[rows > 0]).mean())


def _f1_of_classes(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """F1 and rows of each class that is there or predicted."""
    hits, claims, rows = _counts(truth, predicted, weights)
    named = claims + rows > 0
    return 2 * hits[named] / (claims + rows)[named], rows[named]


def _f1(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    return float(_f1_of_classes(truth, predicted, weights)[0].mean())


def _f1_weighted(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
    f1, rows = _f1_of_classes(truth, predicted, weights)
    return float((f1 * rows).sum() / rows.sum())


def _one_against_rest(curve: Formula) -> Formula:
    """The mean over the classes that some rows, but not all, have."""

    def mean(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
        present = np.unique(truth)
        if len(present) < 2:
            return math.nan
        if predicted.shape[1] == 2 and curve is _area:  # the same from both sides
            present = present[1:]
        return float(np.mean([curve(truth == label, predicted[:, label], weights) for label in present]))

    return mean


def _area(is_class: np.ndarray, score: np.ndarray, weights: Weights) -> float:
    """Under the ROC curve: how often a row of the class scores higher than another, ties counting half."""
    if weights is not None:
        _, place = np.unique(score, return_inverse=True)
        inside, outside = (np.bincount(place, weights * side) for side in (is_class, ~is_class))
        below = np.cumsum(outside) - outside / 2
        return float((inside * below).sum() / (inside.sum() * outside.sum()))
    n_class = int(is_class.sum())
    above = float(average_ranks(score)[is_class].sum()) - n_class * (n_class + 1) / 2
    return above / (n_class * (len(score) - n_class))


def _average_precision(is_class: np.ndarray, score: np.ndarray, weights: Weights) -> float:
    """The mean precision at the thresholds of the scores, weighted by the recall that each adds."""
    order = np.argsort(-score, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))  # of equal scores the last
    if weights is None:
        hits, rows = np.cumsum(is_class[order])[ends], ends + 1
    else:
        hits, rows = np.cumsum((weights * is_class)[order])[ends], np.cumsum(weights[order])[ends]
    return float((np.diff(hits, prepend=0) * hits / rows).sum() / hits[-1])


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("mse", REGRESSION, False, _mse),
        Metric("rmse", REGRESSION, False, _rmse),
        Metric("mae", REGRESSION, False, _mae),
        Metric("r2", REGRESSION, True, _r2),
        Metric("mape", REGRESSION, False, _mape),
        Metric("log-loss", CLASSIFICATION, False, _log_loss),
        Metric("error", CLASSIFICATION, False, _error),
        Metric("accuracy", CLASSIFICATION, True, _accuracy),
        Metric("balanced-accuracy", CLASSIFICATION, True, _balanced_accuracy),
        Metric("auc", CLASSIFICATION, True, _one_against_rest(_area)),
        Metric("average-precision", CLASSIFICATION, True, _one_against_rest(_average_precision)),
        Metric("f1", CLASSIFICATION, True, _f1),
        Metric("f1-weighted", CLASSIFICATION, True, _f1_weighted),
    )
}


# -- metrics of one's own ----------------------------------------------------------------------------------------------


def is_own(name: str) -> bool:
    """Whether a metric of this name is somebody's function."""
    return ":" in name


def own_metric(where: str, task: str) -> Metric:
    """The metric that a function is, for this task; its code is run."""
    function = own_function(where, what="metric", expected=OWN)
    return Metric(where, task, _is_higher_better(function, where), _formula(function, where))


def unnamed_metric(name: str, task: str, *, higher_is_better: bool) -> Metric:
    """A study's metric that nobody has named again: its sense is known, its values cannot be computed."""

    def formula(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
        raise StudyError(
            f"the study is judged by {name}, a function that is not run unless it is named again: metric={name!r}, or "
            f"--metric {name}; the best network alone (--single, single=True) does not need it"
        )

    return Metric(name, task, higher_is_better, formula)


def _is_higher_better(function: Callable[..., Any], where: str) -> bool:
    """Said by the function's attribute ``higher_is_better``, or by how its name ends, as scikit-learn's do."""
    said = getattr(function, "higher_is_better", None)
    name = where.rpartition(":")[2]
    if isinstance(said, bool):
        return said
    if name.endswith(HIGH) or name.endswith(LOW):
        return name.endswith(HIGH)
    raise OptionError(
        f"metric: is a high or a low {name} good? Say it in its file: {name}.higher_is_better = True (or False); "
        f"names that end in {' or '.join(HIGH)} are taken for high, in {', '.join(LOW)} for low"
    )


def _formula(function: Callable[..., Any], where: str) -> Formula:
    takes_weights = _takes_weights(function)

    def formula(truth: np.ndarray, predicted: np.ndarray, weights: Weights) -> float:
        if weights is not None and not takes_weights:
            raise OptionError(f"metric: rows have weights, and {where} does not take sample_weight; give it one")
        options = {} if weights is None else {"sample_weight": weights}
        try:
            value = float(function(truth, predicted, **options))
        except Exception as error:  # noqa: BLE001  somebody's own code
            raise DataError(f"metric {where}: {type(error).__name__}: {str(error)[:160]}") from None
        return value if math.isfinite(value) else math.nan

    return formula


def _takes_weights(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return False
    return any(p.name == "sample_weight" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)

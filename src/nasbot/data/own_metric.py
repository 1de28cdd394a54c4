"""A metric of one's own: a function, named as ``module:function`` or ``file.py:function`` by whoever calls.

A study keeps the name, never the code: what is read from its file is not imported, the caller names it again.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nasbot._own_code import own_function
from nasbot.data.metrics import Metric, Weights
from nasbot.errors import DataError, OptionError, StudyError

EXPECTED = "expected MODULE:FUNCTION or FILE.py:FUNCTION, where FUNCTION(truth, predicted) returns a number"
HIGH, LOW = ("score", "accuracy"), ("error", "loss", "deviance")


def is_own(name: str) -> bool:
    """Whether a metric of this name is somebody's function."""
    return ":" in name


def own_metric(where: str, task: str) -> Metric:
    """The metric that a function is, for this task; its code is run."""
    function = own_function(where, what="metric", expected=EXPECTED)
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


def _formula(function: Callable[..., Any], where: str) -> Callable[[np.ndarray, np.ndarray, Weights], float]:
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

"""What the recommended model goes by and where it errs: importance of columns, residuals or confusion, calibration.

Of validation rows while a study runs, of test rows once it has ended. Networks that were trained once more have learned
from the validation rows, so of these the networks of the search speak, and with cross-validation for each row those
that did not see it. A column's importance is how much worse the metric becomes when the column is shuffled among the
rows; it is measured on the prepared inputs, so that a column's parts (categories, parts of a date, marks of gaps) move
together. Work is bounded by ``MOST_ROWS`` and ``PREDICTIONS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nasbot._files import write_whole
from nasbot._rng import Role, stream
from nasbot._typing import Json
from nasbot.data.metrics import truth_of
from nasbot.data.preprocessing import Table
from nasbot.errors import StudyError

if TYPE_CHECKING:
    from nasbot.automl.found import FoundStudy
    from nasbot.data.dataset import Dataset, Part
    from nasbot.exporting.model_file import Model

PARTS = ("validation", "test")
MOST_ROWS = 2000
PREDICTIONS = 300_000  # rows that are predicted in all
REPEATS = 5
MOST_COLUMNS = 1000  # whose importance is measured: the first
BINS = 10
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_CLASSES = 30  # that a confusion matrix is shown for
FILE = "understanding.json"


@dataclass(frozen=True)
class Understanding:
    """What is known about the recommended model, measured on rows of one part."""

    part: str
    n_rows: int
    metric: str
    importance: tuple[tuple[str, float], ...]  # the most important first; none for images
    # Of each number that is predicted: quantiles (``LEVELS``) of truth - prediction, in its units.
    residuals: Mapping[str, tuple[float, ...]]
    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]  # rows of each class (down) predicted as each (across); none for numbers
    # Mean prediction, mean truth and rows of each bin: of the most probable class how probable, how often right.
    calibration: tuple[tuple[float, float, int], ...]

    @property
    def calibration_error(self) -> float:
        """The mean distance of the two, rows counted; in the target's units, or as a probability."""
        n = sum(rows for _, _, rows in self.calibration)
        return sum(abs(said - true) * rows for said, true, rows in self.calibration) / n if n else 0.0

    def to_dict(self) -> dict[str, Json]:
        """As plain data."""
        return {
            "rows": self.part,
            "n_rows": self.n_rows,
            "metric": self.metric,
            "importance": [{"column": name, "worse": worse} for name, worse in self.importance],
            "residuals": {name: list(levels) for name, levels in self.residuals.items()},
            "levels": list(LEVELS),
            "classes": list(self.classes),
            "confusion": [list(row) for row in self.confusion],
            "calibration": [list(row) for row in self.calibration],
            "calibration_error": self.calibration_error,
        }

    def lines(self) -> list[str]:
        """A few lines for people."""
        found = []
        if self.importance:
            shown = ", ".join(f"{name} {_short(worse)}" for name, worse in self.importance[:6])
            found.append(f"columns that matter ({self.metric} of {self.part} rows worse by, when shuffled): {shown}")
        for name, levels in self.residuals.items():
            middle, low, high = (_short(levels[i]) for i in (2, 0, -1))
            found.append(f"residuals of {name}: median {middle}, 90 % between {low} and {high}")
        if self.confusion and len(self.classes) <= 4:
            rows = "; ".join(
                f"{name}: {', '.join(f'{n} as {other}' for n, other in zip(row, self.classes, strict=True) if n)}"
                for name, row in zip(self.classes, self.confusion, strict=True)
                if any(row)
            )
            found.append(f"predicted ({self.part} rows): {rows}")
        first = f" of {next(iter(self.residuals))}" if len(self.residuals) > 1 else ""
        off = _short(self.calibration_error)
        found.append(f"calibration{first}: off by {off} on average ({self.n_rows:,} {self.part} rows)")
        return found


def understanding_of(study: FoundStudy, *, rows: str = "test", single: bool = False) -> Understanding:
    """Of the recommended model, on validation or on test rows (validation where there are no test rows).

    Raises StudyError while no trial is completed. Deterministic, by the study's seed.
    """
    if rows not in PARTS:
        raise StudyError(f"rows: expected {' or '.join(PARTS)}, got {rows[:40]!r}")
    from nasbot.automl.model import model_of

    data = study.dataset
    name = rows if rows == "validation" or len(data.test) else "validation"
    answers = _answering(model_of(study, single=single, refit=name == "test"), data)
    part = _some(data.test if name == "test" else _unseen(study))
    truth, said = truth_of(data, part.y), answers(part.X)
    importance = _importance(study, data, part, truth, said, answers)
    if name == "validation" and (kept := _kept(study, single=single)) is not None:
        truth, said = kept
    return Understanding(
        name,
        len(truth),
        study.metric.name,
        importance,
        {} if data.is_classification else _residuals(data, truth, said),
        tuple(str(value) for value in data.preprocessing.classes),
        _confusion(truth, said) if data.is_classification else (),
        _class_calibration(truth, said) if data.is_classification else _number_calibration(truth, said),
    )


def save_understanding(study: FoundStudy) -> None:
    """Keep it beside the study, for its page and its report."""
    record = json.dumps(shown_of(study), allow_nan=False)
    write_whole(Path(study.files) / FILE, record.encode())


def _unseen(study: FoundStudy) -> Part:
    """The rows that no network of the search has learned from: of a cross-validation those of its first fold."""
    from nasbot.training.folds import folded

    data = study.dataset
    return data.valid if study.folds == 1 else folded(data, study.folds)[0][0].valid


def _kept(study: FoundStudy, *, single: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Truth and answers for the rows that trials are judged by, of networks that did not see them; thinned."""
    from nasbot.automl.model import validation_predictions

    predictions = validation_predictions(study, single=single)
    if predictions is None:
        return None
    data, chosen = study.dataset, _evenly(len(predictions))
    said = predictions[chosen].astype(np.float64)
    return truth_of(data, study.judged.y[chosen]), np.exp(said) if data.is_classification else said


def _evenly(n: int) -> np.ndarray:
    """At most ``MOST_ROWS`` of n rows."""
    return np.linspace(0, n - 1, min(n, MOST_ROWS)).round().astype(int)


def shown_of(study: FoundStudy) -> dict[str, Json]:
    """What the page and the report show of the recommended model: what it goes by, where it errs, what it scores."""
    return {**understanding_of(study).to_dict(), "results": study.results().to_dict()}


def _some(part: Part) -> Part:
    """At most ``MOST_ROWS`` of the rows, evenly."""
    from nasbot.data.dataset import Part

    chosen = _evenly(len(part))
    weights = None if part.weights is None else part.weights[chosen]
    return Part(np.array(part.X[chosen]), np.array(part.y[chosen]), weights)


def _answering(model: Model, data: Dataset) -> Callable[[np.ndarray], np.ndarray]:
    """From standardised rows to probabilities, or numbers in people's units, (n, outputs)."""
    from nasbot.training.objective import computing_threads
    from nasbot.training.predicting import outputs_of
    from nasbot.training.predictions import answers

    step = None if model.preprocessing is None else model.preprocessing.preparation

    def answer(X: np.ndarray) -> np.ndarray:
        # Asked hundreds of times: threads that wait for each other take minutes on a machine that is busy.
        with computing_threads(1):
            return answers(outputs_of(model.network, X if step is None else step.applied(X), exact=False), data)

    return answer


def _importance(
    study: FoundStudy,
    data: Dataset,
    part: Part,
    truth: np.ndarray,
    said: np.ndarray,
    answers: Callable[[np.ndarray], np.ndarray],
) -> tuple[tuple[str, float], ...]:
    inputs, metric = data.preprocessing.inputs, study.metric
    if not isinstance(inputs, Table) or len(part) < 2:
        return ()
    ends = np.cumsum([column.width for column in inputs.columns])
    blocks = [
        (c.name, slice(int(end) - c.width, int(end))) for c, end in zip(inputs.columns, ends, strict=True) if c.width
    ]
    n = min(len(part), max(50, PREDICTIONS // max(1, len(blocks))))
    repeats = max(1, min(REPEATS, PREDICTIONS // max(1, n * len(blocks))))
    rng = stream(int(str(study.settings.get("seed", 0))), 0, Role.SPLIT)
    X, true, weights = part.X[:n], truth[:n], None if part.weights is None else part.weights[:n]
    before = metric.cost(metric(true, said[:n], weights))
    found = []
    for name, block in blocks[:MOST_COLUMNS]:
        worse = []
        for _ in range(repeats):
            shuffled = X.copy()
            shuffled[:, block] = X[rng.permutation(n), block]
            worse.append(metric.cost(metric(true, answers(shuffled), weights)) - before)
        found.append((name, float(np.mean(worse))))
    finite = [(name, worse) for name, worse in found if np.isfinite(worse)]
    return tuple(sorted(finite, key=lambda entry: -entry[1]))


def _residuals(data: Dataset, truth: np.ndarray, said: np.ndarray) -> dict[str, tuple[float, ...]]:
    names = data.preprocessing.target.names
    levels = np.quantile(truth - said, LEVELS, axis=0)
    return {name: tuple(map(float, levels[:, i])) for i, name in enumerate(names)}


def _confusion(truth: np.ndarray, said: np.ndarray) -> tuple[tuple[int, ...], ...]:
    n = said.shape[1]
    if n > MOST_CLASSES:
        return ()
    counts = np.zeros((n, n), dtype=int)
    np.add.at(counts, (truth, said.argmax(axis=1)), 1)
    return tuple(tuple(map(int, row)) for row in counts)


def _class_calibration(truth: np.ndarray, said: np.ndarray) -> tuple[tuple[float, float, int], ...]:
    sure, right = said.max(axis=1), said.argmax(axis=1) == truth
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    return tuple(
        (float(sure[bins == b].mean()), float(right[bins == b].mean()), int((bins == b).sum())) for b in np.unique(bins)
    )


def _number_calibration(truth: np.ndarray, said: np.ndarray) -> tuple[tuple[float, float, int], ...]:
    """Of the first target: rows in equal shares, by what is predicted."""
    order = np.argsort(said[:, 0], kind="stable")
    shares = [rows for rows in np.array_split(order, BINS) if len(rows)]
    return tuple((float(said[rows, 0].mean()), float(truth[rows, 0].mean()), len(rows)) for rows in shares)


def _short(value: float) -> str:
    """Three digits, or all before the point: 0.0836, 571, 1,504."""
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e9 else f"{value:.3g}"

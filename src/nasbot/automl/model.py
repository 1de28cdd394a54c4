"""What a person takes away from a search: the best networks averaged, or the best one alone; and what each is worth.

model = study.model()                # an ensemble by default, single=True for one network
model.predict(new_rows)              # numbers in their own units, or classes by name
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nasbot._typing import Json
from nasbot.automl.files import WEIGHTS
from nasbot.automl.members import Members, kept, members_of
from nasbot.automl.yardstick import Yardstick
from nasbot.data.metrics import METRICS, Metric, majority_of, truth_of
from nasbot.errors import FileError, StorageError, StudyError
from nasbot.trial import POOL, History, Trial

if TYPE_CHECKING:
    from nasbot.automl.found import FoundStudy
    from nasbot.data.dataset import Dataset, Part
    from nasbot.data.intervals import Intervals
    from nasbot.exporting.model_file import Model
    from nasbot.storage import Address

GROUPS = 20  # of test rows, each left out once to see how noisy a gain is


# -- taking it away ---------------------------------------------------------------------------------------------------


def model_of(study: FoundStudy, *, single: bool = False, refit: bool = True) -> Model:
    """The recommended model of a study; without ``refit`` its networks as the search left them.

    StudyError while no trial is completed, FileError where weights are gone.
    """
    from nasbot.exporting.model_file import averaged
    from nasbot.training.temperature import sharpen

    best = study.history.best_here
    if best is None:
        raise StudyError("no trial is completed yet, so there is no model to take away")
    chosen = None if single else members_of(study)
    intervals = _intervals(study, single=single)
    if chosen is None or len(chosen.trials) == 1:
        alone = member_of(study, best if chosen is None else study.history[chosen.trials[0]], refit=refit)
        return replace(alone, intervals=intervals)
    members = [member_of(study, study.history[number], refit=refit) for number in chosen.trials]
    for network in (network for member in members for network in member.networks):
        sharpen(network, chosen.sharpness)
    details: dict[str, Json] = {
        "data": study.dataset.name,
        "trials": list(chosen.trials),
        "loss": chosen.loss,
    }
    return replace(averaged(members, chosen.weights, details), intervals=intervals)


def _intervals(study: FoundStudy, *, single: bool) -> Intervals | None:
    """What the model's predictions were off by before it learned from the rows; None for classes, and if not kept."""
    from nasbot.data.intervals import Intervals

    data = study.dataset
    predicted = None if data.is_classification else validation_predictions(study, single=single)
    return None if predicted is None else Intervals.of(truth_of(data, study.judged.y), predicted.astype(np.float64))


def member_of(study: FoundStudy, trial: Trial, *, refit: bool = True) -> Model:
    """The network of a trial with its weights, after its refit where there was one, and its inputs' preparation."""
    from nasbot.exporting.model_file import Model
    from nasbot.training.fitting import with_weights
    from nasbot.training.objective import as_seen, weights_path
    from nasbot.training.refitting import has_refit, refit_weights_path

    data = as_seen(study.dataset, trial.candidate.params)
    folder = study.files / WEIGHTS
    place = refit_weights_path if refit and has_refit(folder, trial.number) else weights_path
    network = with_weights(trial.arch, data, place(folder, trial.number))
    details: dict[str, Json] = {"data": data.name, "trials": [trial.number], "loss": trial.value}
    return Model(network, data.preprocessing, details)


def refitted_trials(study: FoundStudy) -> tuple[int, ...]:
    """Of the networks of the model and the best alone, those that were trained once more on all rows."""
    from nasbot.training.refitting import has_refit

    best, members = study.history.best_here, members_of(study)
    numbers = () if members is None else members.trials
    numbers = numbers if best is None else tuple(dict.fromkeys((*numbers, best.number)))
    return tuple(number for number in numbers if has_refit(study.files / WEIGHTS, number))


# -- what each is worth ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What a model scores on the validation rows, which chose it, and on the test rows, which did not."""

    metric: str
    validation: float
    test: float | None
    details: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Json]:
        """As plain data."""
        return {"metric": self.metric, "validation": self.validation, "test": self.test, **self.details}


@dataclass(frozen=True)
class Gain:
    """By how much the recommended model is better than the baseline on the test rows, in the metric's units."""

    value: float
    noise: float  # its standard error, over other test rows

    def to_dict(self) -> dict[str, Json]:
        """As plain data."""
        return {"value": self.value, "noise": self.noise}


@dataclass(frozen=True)
class Results:
    """The baseline, the best single network, the ensemble, and the one that is recommended."""

    baseline: Result | None
    single: Result | None
    ensemble: Result | None
    trees: Result | None = None  # a yardstick: ExtraTrees or gradient boosting, never part of the model
    majority: Result | None = None  # of knowing only how frequent classes are, where one of them is most rows
    gain: Gain | None = None  # of the recommended model over the baseline, on test rows

    @property
    def model(self) -> Result | None:
        """Of the recommended model."""
        return self.ensemble or self.single

    def to_dict(self) -> dict[str, Json]:
        """As plain data, None for what there is not."""
        parts = {name: getattr(self, name) for name in ("baseline", "single", "ensemble", "model", "trees", "majority")}
        found: dict[str, Json] = {name: None if part is None else part.to_dict() for name, part in parts.items()}
        return found | {"gain": None if self.gain is None else self.gain.to_dict()}


def results_of(study: FoundStudy) -> Results:
    """What came of a search, by the predictions that were kept."""
    history = study.history
    baseline, best = baseline_trial(history), history.best_here
    # The baseline is what one would have without a search: its refit, if it had one, is the search's.
    without = None if baseline is None else _said(study, baseline, refit=False)
    single = None if best is None else _said(study, best)
    several = _of_ensemble(study)
    recommended = several or single
    shown = [None if said is None else _result(study, *said) for said in (without, single, several)]
    return Results(
        shown[0],
        shown[1],
        shown[2],
        _of_trees(study),
        _of_majority(study),
        None if without is None or recommended is None else _gain(study, without[1], recommended[1]),
    )


def validation_predictions(study: FoundStudy, *, single: bool = False) -> np.ndarray | None:
    """What the recommended model said of the rows that trials are judged by, before it learned from them.

    (n, outputs): numbers in people's units, or log-probabilities; None where they were not kept.
    """
    best = study.history.best_here
    found = None if single else _of_ensemble(study)
    if found is None and best is not None:
        found = _said(study, best)
    return None if found is None else found[0]


def _of_ensemble(study: FoundStudy) -> tuple[np.ndarray, np.ndarray] | None:
    """What the ensemble says of the rows that judge and of the test rows; None where there is none."""
    chosen = members_of(study)
    parts = [] if chosen is None else [_said(study, study.history[number]) for number in chosen.trials]
    known = [part for part in parts if part is not None]
    if chosen is None or len(known) < len(parts):
        return None
    valid, test = (_averaged(study, chosen, [part[i] for part in known]) for i in (0, 1))
    return valid, test


def baseline_trial(history: History) -> Trial | None:
    """The first network that the search began with, if it has a value."""
    return next((t for t in history if t.origin.searcher == POOL and t.value is not None and t.fidelity >= 1), None)


def _said(study: FoundStudy, trial: Trial, *, refit: bool = True) -> tuple[np.ndarray, np.ndarray] | None:
    """What a trial said of the validation rows, and it or its refit says of the test rows."""
    from nasbot.training.refitting import has_refit, refit_predictions_path
    from nasbot.training.weights import read_predictions

    predictions = kept(study.files, trial, len(study.judged))
    folder = study.files / WEIGHTS
    if predictions is None or not refit or not has_refit(folder, trial.number):
        return predictions
    with suppress(FileError, StorageError):
        _, test = read_predictions(refit_predictions_path(folder, trial.number), 0)
        if len(test) == len(predictions[1]):
            return predictions[0], test
    return predictions


def _of_trees(study: FoundStudy) -> Result | None:
    data = study.dataset
    trees = Yardstick.load(study.files, len(data.valid))
    if trees is None or len(trees.test) != len(data.test):
        return None
    return _result(study, trees.valid, trees.test, data.valid)


def _of_majority(study: FoundStudy) -> Result | None:
    data = study.dataset
    majority = majority_of(data)
    if majority is None:
        return None
    logs = np.log(np.maximum(majority.predicted, 1e-300))
    valid, test = (np.tile(logs, (len(part), 1)) for part in (study.judged, data.test))
    return _result(study, valid, test)


def _averaged(study: FoundStudy, chosen: Members, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Of numbers the mean; of log-probabilities the logarithm of the mean probability."""
    from nasbot.training.temperature import averaged, can_be_sharpened

    if study.dataset.is_classification:
        can_be = [can_be_sharpened(study.history[number].arch) for number in chosen.trials]
        return averaged(parts, chosen.weights, can_be, chosen.sharpness)
    return np.asarray(sum(weight * part.astype(np.float64) for weight, part in zip(chosen.weights, parts, strict=True)))


def _gain(study: FoundStudy, without: np.ndarray, recommended: np.ndarray) -> Gain | None:
    """The gain, its noise by the jackknife: what it is where each of a few groups of rows is left out in turn."""
    data, metric, n = study.dataset, study.metric, len(study.dataset.test)
    if metric.name not in METRICS or n < 2:  # somebody's own may take long
        return None
    truth, weights = truth_of(data, data.test.y), data.test.weights
    exact = [said.astype(np.float64) for said in (without, recommended)]
    answers = [np.exp(said) for said in exact] if data.is_classification else exact
    group = np.random.default_rng(0).permutation(n) % min(n, GROUPS)

    def gained(rows: np.ndarray) -> float:
        own = None if weights is None else weights[rows]
        before, after = (metric.cost(metric(truth[rows], said[rows], own)) for said in answers)
        return before - after

    value = gained(group >= 0)
    left_out = [gained(group != i) for i in range(int(group.max()) + 1)]
    if not np.isfinite([value, *left_out]).all():  # the metric is not defined for so few rows
        return None
    return Gain(value, math.sqrt((len(left_out) - 1) * float(np.var(left_out))))


def _result(study: FoundStudy, valid: np.ndarray, test: np.ndarray, judged: Part | None = None) -> Result:
    data, metric = study.dataset, study.metric
    on_valid = _metrics(data, metric, valid, judged or study.judged)
    on_test = _metrics(data, metric, test, data.test) if len(data.test) else {}
    details = {f"test_{key}": value for key, value in on_test.items() if key != metric.name}
    return Result(metric.name, on_valid[metric.name], on_test.get(metric.name), details)


def _metrics(data: Dataset, metric: Metric, predictions: np.ndarray, part: Part) -> dict[str, float]:
    """The metric, and what else people ask about where it is defined."""
    names = ("log-loss", "accuracy", "balanced-accuracy", "f1") if data.is_classification else ("mse", "rmse", "r2")
    truth, exact = truth_of(data, part.y), predictions.astype(np.float64)
    answers = np.exp(exact) if data.is_classification else exact
    found = {name: METRICS[name](truth, answers, part.weights) for name in names if name != metric.name}
    found[metric.name] = metric(truth, answers, part.weights)
    if not data.is_classification:
        scales = np.asarray(data.preprocessing.target.scales)  # type: ignore[union-attr]  # a NumberTarget's
        found["standardised_mse"] = METRICS["mse"](truth / scales, answers / scales, part.weights)
    return {name: value for name, value in found.items() if math.isfinite(value)}


def file_name(place: Path | Address) -> str:
    """A name for what is exported from a study: that of its file, such that Python can import it."""
    name = re.sub(r"\W", "_", place.stem, flags=re.ASCII) or "network"
    return f"network_{name}" if name[0].isdigit() else name

"""Which trials are averaged, with which weights: chosen by the validation rows, and written down once it is settled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nasbot import _json
from nasbot._files import write_whole
from nasbot.automl.ensemble import MAX_MEMBERS, select
from nasbot.automl.files import WEIGHTS
from nasbot.automl.limits import ModelLimits, file_overhead
from nasbot.data.metrics import truth_of
from nasbot.errors import CodecError, FileError, StorageError
from nasbot.training.objective import share_from_trees
from nasbot.trial import History, Trial

if TYPE_CHECKING:
    from nasbot.automl.found import FoundStudy
    from nasbot.data.dataset import Dataset
    from nasbot.data.metrics import Metric


@dataclass(frozen=True)
class Members:
    """Which trials are averaged, with which weights, and the loss that is expected of it."""

    trials: tuple[int, ...]
    weights: tuple[float, ...]
    loss: float
    taught: float = 0.0  # the share of an ensemble's word in what their refits learned
    sharpness: float = 1.0  # of classifiers: what their logits are multiplied by, for their mean (``temperature``)


def learned_from_trees(study: FoundStudy) -> dict[int, float]:
    """Of the networks of the model and the best alone, those that learned from trees, and the share of the trees."""
    best, members = study.history.best_here, members_of(study)
    numbers = () if members is None else members.trials
    shares = {
        n: share_from_trees(study.history[n].candidate.params) for n in (*numbers, *([best.number] if best else ()))
    }
    return {number: share for number, share in shares.items() if share}


def members_of(study: FoundStudy) -> Members | None:
    """The ensemble of a search's own networks; None where fewer than two have kept their predictions."""
    settled = _settled(study.files, study.history)
    if settled is not None:
        return settled
    metric, limits = study.metric if study.has_metric else None, ModelLimits.of(study.context.get("limits"))
    return chosen_members(study.history, study.files, study.dataset, metric, folds=study.folds, limits=limits)


def chosen_members(
    history: History,
    files: Path,
    data: Dataset,
    metric: Metric | None,
    *,
    folds: int = 1,
    max_members: int = MAX_MEMBERS,
    limits: ModelLimits | None = None,
) -> Members | None:
    """The same, chosen by the validation rows, or by all rows of a cross-validation; together they hold the limits."""
    from nasbot.training.folds import judged_part

    judged = judged_part(data, folds)
    n = len(judged)
    known = [(trial, predictions[0]) for trial in history.ranked if (predictions := kept(files, trial, n)) is not None]
    if len(known) < 2:
        return None
    target = data.preprocessing.target
    truth = truth_of(data, judged.y)
    scales = None if data.is_classification else target.scales  # type: ignore[union-attr]  # a NumberTarget's
    found = select(
        np.stack([valid for _, valid in known]),
        truth,
        scales=scales,
        metric=metric,
        row_weights=judged.weights if metric is not None else data.loss_weights(judged),
        max_members=max_members,
    )
    members = Members(tuple(known[i][0].number for i in found.members), found.weights, found.loss)
    if limits:
        single = Members((known[0][0].number,), (1.0,), found.single_loss)
        members = _within(limits, file_overhead(data), members, history, single=single)
    if not data.is_classification or folds > 1 or metric is not None or len(members.trials) < 2:
        return members
    by_number = {trial.number: valid for trial, valid in known}
    return replace(members, sharpness=_sharpness(members, history, by_number, truth, data.loss_weights(judged)))


def _sharpness(
    members: Members, history: History, known: Mapping[int, np.ndarray], truth: np.ndarray, weights: np.ndarray | None
) -> float:
    """As sure as their mean should be by the validation rows."""
    from nasbot.training.temperature import can_be_sharpened, shared_sharpness

    can_be = [can_be_sharpened(history[number].arch) for number in members.trials]
    found = shared_sharpness([known[number] for number in members.trials], members.weights, can_be, truth, weights)
    return float(f"{found:.4g}")


def _within(limits: ModelLimits, overhead: int, members: Members, history: History, *, single: Members) -> Members:
    """As many of the members, the heaviest first, as hold the limits together; else the best network alone."""
    trials: list[Trial] = []
    for number in members.trials:
        if limits.holds([*trials, history[number]], overhead):
            trials.append(history[number])
    if len(trials) == len(members.trials):
        return members
    if len(trials) < 2:
        return single
    weights = [members.weights[members.trials.index(trial.number)] for trial in trials]
    return replace(
        members, trials=tuple(t.number for t in trials), weights=tuple(weight / sum(weights) for weight in weights)
    )


def kept(files: Path, trial: Trial, n_valid: int) -> tuple[np.ndarray, np.ndarray] | None:
    """The predictions of a trial for validation and test rows, where they were kept."""
    from nasbot.training.objective import predictions_path
    from nasbot.training.weights import read_predictions

    try:
        return read_predictions(predictions_path(files / WEIGHTS, trial.number), n_valid)
    except (FileError, StorageError):
        return None


# -- the record --------------------------------------------------------------------------------------------------------

RECORD = "model.json"
MAX_BYTES = 100_000


def _settled(files: Path, history: History) -> Members | None:
    """What was chosen at the end of the search; None where nothing was, or the search has gone on since."""
    try:
        with (files / RECORD).open("rb") as file:
            text = file.read(MAX_BYTES)
    except OSError:
        return None
    try:
        return _read(_json.parsed(text, RECORD), history)
    except CodecError:  # half of a record, or somebody else's: the choice is made again
        return None


def _read(value: object, history: History) -> Members | None:
    record = _json.fields(value, RECORD, ("trials", "weights", "loss", "completed"), optional=("taught", "sharpness"))
    trials = tuple(_json.whole(number, "trial") for number in _json.items(record["trials"], "trials"))
    weights = _json.scales(record["weights"])
    known = {trial.number for trial in history.completed}
    if not trials or len(trials) != len(weights) or not known >= set(trials):
        return None
    if _json.whole(record["completed"], "completed") != len(known) or abs(sum(weights) - 1) > 1e-6:
        return None
    taught, sharpness = (_json.number(record.get(name, no), name) for name, no in (("taught", 0.0), ("sharpness", 1.0)))
    return Members(trials, weights, _json.number(record["loss"], "loss"), taught, sharpness)


def settle(files: Path, members: Members, history: History) -> None:
    """Write down what is chosen."""
    record = {
        "trials": list(members.trials),
        "weights": list(members.weights),
        "loss": members.loss,
        "taught": members.taught,
        "sharpness": members.sharpness,
        "completed": len(history.completed),
    }
    with suppress(OSError):  # a full disk: the choice is made again by whoever asks
        write_whole(files / RECORD, json.dumps(record).encode())

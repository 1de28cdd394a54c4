"""The objective of a search on data: train the network, return its best validation loss, to be minimised.

PyTorch is loaded where a network is trained, not where an objective is made.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.candidate import Params
from nasbot.data.metrics import is_own, metric_of, named_metric, task_of
from nasbot.domain import SHORTENED
from nasbot.errors import FileError, OptionError, RefusedError
from nasbot.training.recipes import FAST, Recipe, recipe_of
from nasbot.trial import History, Scored

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.training.loop import OnValidation, Trained

# The params that are not the recipe's: how numbers are prepared, and the share of what trees say in what is learned.
PREPARATION, FROM_TREES = "preparation", "from_trees"

_KEPT, _KEPT_OF_EACH = 20, 2
LOOKS_OF_FOLDS = 30  # validations of a training: few rows are over-learned after few steps
SHORTEST = 0.05  # seconds of a training, however little time is left
# With a dot and a process's number: not finished.
_FILES = re.compile(r"\.?trial-(\d+)\.(?:safetensors|predictions\.npy)(\.\d+)?")


class Live(Protocol):
    """What a study gives an objective that asks for ``trial``."""

    number: int
    seed: int
    fidelity: float
    params: Params

    def report(self, step: int, value: float) -> None: ...


@dataclass(frozen=True)
class TrainingObjective:
    """``objective(arch, params)``: train on the data of a folder (``Dataset.save``), return the validation loss.

    Mean squared error of the standardised target, or mean negative log-likelihood; the share of wrong classes where
    the recipe says so. To be minimised. With ``metric`` that one's value for the validation rows, in its own sense,
    which then also chooses the best validation of a training. Holds paths and plain values only, so any process can be
    handed one; all else is loaded where it is called.

    ``params`` are the candidate's: those of ``recipes.PARAMS``, ``preparation`` of the inputs, and ``from_trees``, the
    share of what trees say of the rows in what is learned (``distilling``). The trial's fidelity is the share of the
    recipe's steps that it is trained for; with ``fidelity_of`` "rows" also the share of the training rows that it
    sees, so as many epochs of fewer rows. More than 1 means more steps in either case.

    ``weights`` is a folder for ``trial-N.safetensors`` and, for ensembles, ``trial-N.predictions.npy``: validation
    rows, then test rows, numbers in people's units or log-probabilities. None keeps none; ``keep_best`` tidies it.
    ``seconds`` ends a training with what it has (of a fidelity above 1 after as many times that). ``threads`` is how
    many this process computes with: one each, and as many processes as cores, is faster than the other way round.

    With ``folds`` above 1 the value is that of a cross-validation over training and validation rows, whose predictions
    are those kept; the weights are those of the first fold.
    """

    # What every training needs, for executors that load it once for all.
    preload: ClassVar[tuple[str, ...]] = ("torch", "nasbot.training.loop", "nasbot.training.weights")
    carries: ClassVar[tuple[str, ...]] = ("data_folder",)  # what goes with it to another machine
    leaves: ClassVar[tuple[str, ...]] = ("weights",)  # and what comes back

    data_folder: str | Path
    recipe: Recipe | str = FAST
    weights: str | Path | None = None
    seconds: float | None = None
    threads: int = field(default=1, kw_only=True)
    device: str = field(default="cpu", kw_only=True)
    metric: str | None = field(default=None, kw_only=True)
    folds: int = field(default=1, kw_only=True)
    fidelity_of: str = field(default="steps", kw_only=True)  # or "rows"
    max_latency: float | None = field(default=None, kw_only=True)  # seconds for one row; slower networks are refused

    def __post_init__(self) -> None:
        recipe_of(self.recipe)
        if type(self.folds) is not int or self.folds < 1:
            raise OptionError(f"folds: expected a whole number >= 1, got {self.folds!r}")
        if self.fidelity_of not in SHORTENED:
            raise OptionError(f"fidelity_of: expected {' or '.join(SHORTENED)}, got {self.fidelity_of!r}")
        if self.metric is not None and not is_own(self.metric):
            metric_of(self.metric)
        if type(self.threads) is not int or self.threads < 1:
            raise OptionError(f"threads: expected a whole number >= 1, got {self.threads!r}")

    def __call__(self, arch: Architecture, params: Params | None = None, trial: Live | None = None) -> Scored:
        """Train; a divergence or a refusal is raised, and becomes a failed trial with its cause."""
        from nasbot.data.dataset import Dataset
        from nasbot.training.distilling import targets_of
        from nasbot.training.folds import cross_validated, rows_of_share, with_share
        from nasbot.training.loop import train
        from nasbot.training.predictions import people_predictions
        from nasbot.training.weights import save_predictions, save_weights

        chosen = (params or {}) if params is not None or trial is None else trial.params
        stored = Dataset.load(self.data_folder)
        fidelity = 1.0 if trial is None else trial.fidelity
        recipe, data = trained_as(recipe_of(self.recipe), stored, chosen)
        latency = None if self.max_latency is None else checked_latency(arch, data, self.max_latency)
        metric = None if self.metric is None else named_metric(self.metric, task_of(data))
        end = None if self.seconds is None else time.monotonic() + self.seconds * max(1.0, fidelity)

        sees_fewer = self.fidelity_of == "rows" and fidelity < 1
        if sees_fewer and self.folds == 1:  # a share of what all rows would take, not a share of what these few would
            recipe = recipe.changed(n_steps=full_steps(arch, recipe, data, 1))
        targets = targets_of(data, self.data_folder, share_from_trees(chosen))
        if targets is not None and sees_fewer:
            targets = targets[rows_of_share(data, fidelity)]

        def trained_on(part: Dataset, fold: int, on_validation: OnValidation | None = None) -> Trained:
            return train(
                arch,
                with_share(part, fidelity) if sees_fewer else part,
                recipe,
                seed=0 if trial is None else trial.seed,
                report=None if trial is None or fold else trial.report,
                seconds=None if end is None else max(SHORTEST, (end - time.monotonic()) / (self.folds - fold)),
                device=self.device,
                steps_share=fidelity,
                metric=metric,
                on_validation=on_validation,
                targets=targets,
            )

        with computing_threads(self.threads):
            if self.folds == 1:
                trained = trained_on(data, 0)
                said = people_predictions(trained.network, data, data.valid)
            else:
                # All look at the same steps, though their numbers of rows may differ by one.
                steps = full_steps(arch, recipe, data, self.folds)
                recipe = recipe.changed(n_steps=steps, patience=None, n_validations=LOOKS_OF_FOLDS)
                found = cross_validated(data, self.folds, trained_on, metric)
                trained, said = found.trained, found.predictions
            details = dict(details_of(trained)) | ({} if latency is None else {"latency": latency})
            if self.weights is not None:
                number = 0 if trial is None else trial.number
                test = people_predictions(trained.network, data, data.test)
                try:
                    about = {"data": stored.fingerprint}
                    save_weights(trained.network, weights_path(self.weights, number), about=about)
                    save_predictions(said, test, predictions_path(self.weights, number))
                except FileError as error:  # a full disk must not cost the score
                    details["weights_not_kept"] = str(error)
        return Scored(trained.score, details)


def checked_latency(arch: Architecture, data: Dataset, longest: float) -> float:
    """Seconds that the network takes for one row, measured before it is trained; RefusedError for too many."""
    from nasbot.training.latency import latency_of
    from nasbot.training.module import build

    network = build(arch, input_shape=data.input_shape, n_outputs=data.n_outputs, seed=0)
    latency = latency_of(network, data.preprocessing.preparation)
    if latency > longest:
        raise RefusedError(f"it takes {latency * 1e3:.3g} ms for one row, more than {longest * 1e3:.3g} ms")
    return latency


def weights_path(folder: str | Path, number: int) -> Path:
    """Where the weights of trial ``number`` are."""
    return Path(folder) / f"trial-{number}.safetensors"


def predictions_path(folder: str | Path, number: int) -> Path:
    """Where the predictions of trial ``number`` are."""
    return Path(folder) / f"trial-{number}.predictions.npy"


def trained_as(recipe: Recipe, data: Dataset, params: Params) -> tuple[Recipe, Dataset]:
    """The recipe and the data as a candidate's params change them; OptionError for params that neither knows."""
    others = {name: value for name, value in params.items() if name not in (PREPARATION, FROM_TREES)}
    return recipe.with_params(others), as_seen(data, params)


def as_seen(data: Dataset, params: Params) -> Dataset:
    """The data as a candidate's params have their numbers prepared."""
    return data.prepared_as(preparation_of(params))


def preparation_of(params: Params) -> str:
    """The name of it."""
    return str(params.get(PREPARATION, "standard"))


def share_from_trees(params: Params) -> float:
    """How much of what a candidate learns is what trees say (``distilling``)."""
    return float(params.get(FROM_TREES, 0.0))


def full_steps(arch: Architecture, recipe: Recipe, data: Dataset, folds: int) -> int:
    """The steps of a full training, of one fold where there are several."""
    from nasbot.training.estimates import estimate

    n_rows = len(data.train) if folds == 1 else (len(data.train) + len(data.valid)) * (folds - 1) // folds
    settings = recipe.settings(data.input_shape)
    expected = estimate(arch, settings, input_shape=data.input_shape, n_outputs=data.n_outputs, n_samples=n_rows)
    return expected.steps


def keep_best(folder: str | Path, history: History, n: int = _KEPT) -> None:
    """Remove what was kept of finished trials but the first, the best ``n``, and the best two of each preparation.

    Of full fidelity. The first is the baseline that results are shown against. Those that see their inputs otherwise
    than the best make other mistakes: an ensemble may want them, however few of them are among the best.
    """
    place = Path(folder)
    if not place.is_dir():
        return
    wanted = {trial.number for trial in history.pending}
    wanted |= {0, *(trial.number for trial in history.ranked[:n])}
    by_preparation: dict[object, list[int]] = {}
    for trial in history.ranked:
        if (preparation := trial.candidate.params.get(PREPARATION)) is not None:
            by_preparation.setdefault(preparation, []).append(trial.number)
    wanted.update(number for numbers in by_preparation.values() for number in numbers[:_KEPT_OF_EACH])
    for path in place.iterdir():
        name = _FILES.fullmatch(path.name)
        if name is not None and int(name[1]) < len(history) and int(name[1]) not in wanted:
            path.unlink(missing_ok=True)  # somebody else may be tidying, too


def details_of(trained: Trained) -> Mapping[str, Json]:
    """What is worth keeping of a training beside its score, as plain JSON.

    Nothing about the test rows: they judge what is recommended in the end, and nobody should choose by them meanwhile.
    """
    return {
        "metrics": {name: value for name, value in trained.metrics.items() if not name.startswith("test_")},
        "loss": trained.loss,
        "parameters": sum(p.numel() for p in trained.network.parameters()),
        "steps": trained.steps,
        "best_step": trained.best_step,
        "seconds": round(trained.seconds, 3),
        "stopped": trained.stopped,
        **({} if trained.sharpness == 1 else {"sharpness": round(trained.sharpness, 4)}),
        "training_curve": [[point.step, round(point.value, 6)] for point in trained.training_curve],
    }


@contextmanager
def computing_threads(n: int) -> Iterator[None]:
    """Let PyTorch compute with so many threads, for the time of this ``with``."""
    import torch

    before = torch.get_num_threads()
    if before == n:
        yield
        return
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)

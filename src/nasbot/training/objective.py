"""The objective of a search on data: train the network, return its best validation loss, to be minimised.

PyTorch is loaded where a network is trained, not where an objective is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.errors import OptionError
from nasbot.training.recipes import FAST, Recipe, recipe_of
from nasbot.trial import History, Scored

if TYPE_CHECKING:
    from nasbot.training.loop import Trained


_WEIGHTS = re.compile(r"\.?trial-(\d+)\.safetensors(\.\d+)?")  # with a dot and a process's number: not finished


class Live(Protocol):
    """What a study gives an objective that asks for ``trial``."""

    number: int
    seed: int

    def report(self, step: int, value: float) -> None: ...


@dataclass(frozen=True)
class TrainingObjective:
    """``objective(arch)``: train on the data of a folder (``Dataset.save``) and return the loss on its validation part.

    Mean squared error of the standardised target, or mean negative log-likelihood; the share of wrong classes where
    the recipe says so. To be minimised. Holds paths and plain values only, so any process can be handed one; all else
    is loaded where it is called.

    ``weights`` is a folder for ``trial-N.safetensors``, None to keep none; ``keep_best`` tidies it. ``seconds`` ends a
    training with what it has. ``threads`` is how many this process computes with: one each, and as many processes as
    cores, is faster than the other way round.
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

    def __post_init__(self) -> None:
        recipe_of(self.recipe)
        if type(self.threads) is not int or self.threads < 1:
            raise OptionError(f"threads: expected a whole number >= 1, got {self.threads!r}")

    def __call__(self, arch: Architecture, trial: Live | None = None) -> Scored:
        """Train; a divergence or a refusal is raised, and becomes a failed trial with its cause."""
        from nasbot.data.dataset import Dataset
        from nasbot.training.loop import train
        from nasbot.training.weights import save_weights

        data = Dataset.load(self.data_folder)
        with _threads(self.threads):
            trained = train(
                arch,
                data,
                self.recipe,
                seed=0 if trial is None else trial.seed,
                report=None if trial is None else trial.report,
                seconds=self.seconds,
                device=self.device,
            )
            if self.weights is not None:
                number = 0 if trial is None else trial.number
                save_weights(trained.network, weights_path(self.weights, number), about={"data": data.fingerprint})
        return Scored(trained.score, details_of(trained))


def weights_path(folder: str | Path, number: int) -> Path:
    """Where the weights of trial ``number`` are."""
    return Path(folder) / f"trial-{number}.safetensors"


def keep_best(folder: str | Path, history: History) -> None:
    """Remove the weights of trials that are finished and not the best; those running may still be it."""
    place = Path(folder)
    if not place.is_dir():
        return
    wanted = {trial.number for trial in history.pending}
    if history.best is not None:
        wanted.add(history.best.number)
    for path in place.iterdir():
        name = _WEIGHTS.fullmatch(path.name)
        if name is not None and int(name[1]) < len(history) and int(name[1]) not in wanted:
            path.unlink(missing_ok=True)  # somebody else may be tidying, too


def details_of(trained: Trained) -> Mapping[str, Json]:
    """What is worth keeping of a training beside its score, as plain JSON."""
    return {
        "metrics": dict(trained.metrics),
        "loss": trained.loss,
        "parameters": sum(p.numel() for p in trained.network.parameters()),
        "steps": trained.steps,
        "best_step": trained.best_step,
        "seconds": round(trained.seconds, 3),
        "stopped": trained.stopped,
    }


@contextmanager
def _threads(n: int) -> Iterator[None]:
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

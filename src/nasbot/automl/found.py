"""What a search on data gives back: a study whose best trial can be drawn, trained again and used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot._typing import Json
from nasbot.automl.files import DATA, FILES, WEIGHTS, Temporary, files_of
from nasbot.errors import FileError, OptionError, StudyError
from nasbot.storage import Address, Storage, is_begun, open_storage
from nasbot.storage.addresses import place_of
from nasbot.storage.paths import FOLDER_VARIABLE
from nasbot.study import StudyView
from nasbot.study.budget import parse_seconds
from nasbot.trial import Direction, Trial

if TYPE_CHECKING:
    from torch import nn

    from nasbot.automl.members import Members
    from nasbot.automl.model import Results
    from nasbot.automl.understanding import Understanding
    from nasbot.data.dataset import Dataset, Part, Preprocessing
    from nasbot.data.metrics import Metric
    from nasbot.exporting.model_file import Model
    from nasbot.searchers.base import Searcher
    from nasbot.training.module import Network
    from nasbot.training.recipes import Recipe


@dataclass(frozen=True, kw_only=True, repr=False)
class FoundTrial(Trial):
    """A trial of a search on data: the network, and what is needed to make a model of it."""

    files: Path  # of the study: its data and weights
    recipe: Recipe
    keep: Temporary | None = field(default=None, repr=False, compare=False)  # of a study that keeps nothing

    @property
    def dataset(self) -> Dataset:
        """The data it was trained on, as prepared."""
        from nasbot.data.dataset import Dataset

        return Dataset.load(self.files / DATA)

    def draw(self, path: str | Path | None = None, **options: Any) -> Any:
        """The network as a picture; see ``Architecture.draw``."""
        return self.arch.draw(path, **options) if path is not None else self.arch.draw(**options)

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        recipe: Recipe | str | None = None,
        seed: int = 0,
        seconds: float | str | None = None,
    ) -> nn.Module:
        """The network trained anew: a plain ``nn.Module`` on inputs as ``study.preprocessing.X`` prepares them.

        On X and y, prepared as the search's own data were, a fifth of them kept to stop by; without them on the
        search's own. ``recipe`` is the search's by default, without the search's limit on time unless ``seconds`` says
        one. Of the search's own data it learns what the trial did, of others the truth.
        """
        from nasbot.training.distilling import targets_of
        from nasbot.training.fitting import fit
        from nasbot.training.objective import share_from_trees

        limit = parse_seconds(seconds) if isinstance(seconds, str) else seconds
        params, data = self.candidate.params, self.dataset
        return fit(
            self.arch,
            data,
            X,
            y,
            params=params,
            recipe=recipe or self.recipe,
            seed=seed,
            seconds=limit,
            targets=None if X is not None else targets_of(data, self.files / DATA, share_from_trees(params)),
        )

    def model(self) -> Network:
        """The network with the weights of the trial itself, as the search scored it; FileError where they are gone."""
        from nasbot.training.fitting import with_weights
        from nasbot.training.objective import weights_path

        return with_weights(self.arch, self._prepared, weights_path(self.files / WEIGHTS, self.number))

    def predict(self, X: Any) -> np.ndarray:
        """What ``model()`` says of raw rows or images: numbers in their own units, or classes by name."""
        from nasbot.training.predicting import outputs_of

        prepared = self._prepared.preprocessing
        return prepared.predicted(outputs_of(self.model(), prepared.X(X)))

    @property
    def _prepared(self) -> Dataset:
        """The data as this trial's candidate has them prepared."""
        from nasbot.training.objective import as_seen

        return as_seen(self.dataset, self.candidate.params)


class FoundStudy(StudyView):
    """A search on data, for reading; the same call of ``nasbot.search`` goes on with it."""

    def __init__(
        self,
        storage: Storage,
        files: Path,
        searcher: Searcher | None = None,
        keep: Temporary | None = None,
        *,
        metric: Metric | None = None,
    ) -> None:
        super().__init__(storage, searcher)
        self.files = files
        self._keep = keep
        self._named_metric = metric

    @classmethod
    def open(cls, where: str | Path, *, metric: str | None = None) -> FoundStudy:
        """The study of this name, file or address, that ``nasbot.search`` or ``nasbot run`` began.

        ``metric`` is needed only where the study is judged by a function of somebody's own, which a study's file alone
        never runs: it must be the name that the study has.
        """
        place = place_of(where)
        files = files_of(place)
        storage = open_storage(place, read_only=True)  # which reports a study that is not there, or is none
        if is_begun(place) and not files.is_dir():
            storage.close()
            hint = f"; {FOLDER_VARIABLE} names the folder that holds it" if isinstance(place, Address) else ""
            raise FileError(f"{files}: no such folder; expected the data and weights of a search on data there{hint}")
        found = cls(storage, files)
        if metric is not None:
            found._name_metric(metric)
        return found

    def _name_metric(self, name: str) -> None:
        from nasbot.data.metrics import metric_for

        if name != self.context.get("metric"):
            raise StudyError(f"the study is judged by {self.context.get('metric', 'validation loss')}, not by {name}")
        self._named_metric = metric_for(name, self.dataset)

    @property
    def dataset(self) -> Dataset:
        """The data, as prepared and divided."""
        from nasbot.data.dataset import Dataset

        return Dataset.load(self.files / DATA)

    @property
    def preprocessing(self) -> Preprocessing:
        """How raw rows become inputs, and outputs become answers."""
        return self.dataset.preprocessing

    @property
    def context(self) -> Mapping[str, Json]:
        """The data, recipe and time per trial that the study was begun with."""
        stored = self.settings.get("context")
        return stored if isinstance(stored, Mapping) else {}

    @property
    def folds(self) -> int:
        """Of the cross-validation by which trials are judged; 1: by the validation rows."""
        stored = self.context.get("folds", 1)
        return stored if isinstance(stored, int) and stored >= 1 else 1

    @property
    def judged(self) -> Part:
        """The rows by which trials are judged."""
        from nasbot.training.folds import judged_part

        return judged_part(self.dataset, self.folds)

    @property
    def has_metric(self) -> bool:
        """Whether trials are judged by a metric that was asked for; else by the validation loss."""
        return "metric" in self.context

    @property
    def metric(self) -> Metric:
        """What results are shown in: the metric asked for, or mse or log-loss."""
        from nasbot.data.metrics import default_metric, is_own, metric_of, task_of, unnamed_metric

        if not self.has_metric:
            return default_metric(self.dataset)
        name = str(self.context["metric"])
        if not is_own(name):
            return metric_of(name)
        is_high = self.direction is Direction.MAXIMISE
        return self._named_metric or unnamed_metric(name, task_of(self.dataset), higher_is_better=is_high)

    @property
    def best(self) -> FoundTrial | None:
        """The best trial of this study so far, None while none is completed; not one whose value it was told."""
        best = self.history.best_here
        return None if best is None else self.found(best)

    def recommend(self) -> FoundTrial | None:
        """The trial whose network to train again: see ``StudyView.recommend``. ``best`` has the best weights."""
        recommended = super().recommend()
        return None if recommended is None else self.found(recommended)

    def found(self, trial: Trial | int) -> FoundTrial:
        """Any trial as one that can be drawn, trained again and used."""
        known = self._known_trial(trial)
        record = {entry.name: getattr(known, entry.name) for entry in fields(Trial)}
        return FoundTrial(**record, files=self.files, recipe=self.recipe, keep=self._keep)

    @property
    def recipe(self) -> Recipe:
        """How its networks are trained; a study of an older nasbot knows only the recipe's name."""
        from nasbot.training.recipes import Recipe, recipe_of

        stored = self.context.get("recipe", "fast")
        return recipe_of(stored) if isinstance(stored, str) else Recipe.from_dict(stored)

    def metrics(self) -> Mapping[str, Json]:
        """What was measured of the best network, in people's units; raises StudyError while there is none."""
        if self.history.best_here is None:
            raise StudyError("no trial is completed yet, so there is nothing to measure")
        metrics = self.history.best_here.details.get("metrics")
        return metrics if isinstance(metrics, Mapping) else {}

    def report(self, path: str | Path | None = None) -> Path:
        """Write the study as one HTML page with plots and every network, and return where: beside it unless told."""
        from nasbot.automl.understanding import shown_of
        from nasbot.page.beside import Beside
        from nasbot.page.html import report_html, write_report
        from nasbot.plots.snapshot import Snapshot
        from nasbot.storage.paths import SUFFIX

        name = self.files.name.removesuffix(FILES)
        if path is None and self._keep is not None:
            raise OptionError("report: the study keeps nothing, so there is no place beside it; say where to write")
        model = None if self.history.best_here is None else shown_of(self)
        place = self.files.with_name(f"{name}{SUFFIX}")
        file = str(place) if self._keep is None and place.exists() else name
        beside = Beside.of(place, model=model)
        html = report_html(Snapshot.of(self, name=name), file=file, status=self.status(), beside=beside)
        return write_report(html, self.files.with_name(f"{name}-report.html") if path is None else path)

    def ensemble(self) -> Members | None:
        """Which trials are averaged, with which weights; None where fewer than two have kept their predictions."""
        from nasbot.automl.members import members_of

        return members_of(self)

    def model(self, *, single: bool = False) -> Model:
        """The recommended model, ready to predict: an ensemble of the best networks, or the best one alone."""
        from nasbot.automl.model import model_of

        return model_of(self, single=single)

    def results(self) -> Results:
        """What baseline, best network and ensemble score on validation and test rows."""
        from nasbot.automl.model import results_of

        return results_of(self)

    def understanding(self, *, rows: str = "test", single: bool = False) -> Understanding:
        """What the recommended model goes by and where it errs: importance of columns, residuals or confusion.

        On test rows, or on those for validation (``rows="validation"``), which are fit to be looked at meanwhile.
        """
        from nasbot.automl.understanding import understanding_of

        return understanding_of(self, rows=rows, single=single)

    def export(
        self,
        path: str | Path,
        *,
        to: str | None = None,
        single: bool = False,
        raw: bool = False,
        card: bool = False,
        overwrite: bool = False,
    ) -> tuple[Path, ...]:
        """Write the recommended model for use elsewhere: as code, ONNX or safetensors; see ``nasbot.export``.

        ``single`` is the best network alone; so is JSON, which holds one layer graph. ``raw`` lets ONNX take numbers or
        images as they are. ``card`` writes a model card beside it, as Markdown: data, metric, split, members, scores
        and limits, as Hugging Face's hub reads it.
        """
        from nasbot.automl.card import Card
        from nasbot.exporting.export import export, form_of

        form = form_of(path, to)
        if card and form == "json":
            raise OptionError("card: a layer graph has no weights to describe; expected code, onnx or safetensors")
        model = self.model(single=single or form == "json")
        members, n = len(model.networks), len(self.history.completed)
        which = "The best" if members == 1 else f"The weighted mean of {members}"
        trials, loss = str(model.details["trials"]).strip("[]"), model.details["loss"]
        title = (
            f"{which} of {n} networks that nasbot tried on {self.dataset.name}: "
            f"trial{'s' * (members > 1)} {trials}, "
            f"validation {self.metric.name if self.has_metric else 'loss'} {loss:.5g}."
        )
        described = Card.of(self, path, form=form, single=single, overwrite=overwrite) if card else None
        files = export(model, path, to=to, title=title, raw=raw, overwrite=overwrite)
        return files if described is None else (*files, described.written())

    def summary(self) -> str:
        """A few lines for people: the data, the trials, the best network and what was measured of it."""
        from nasbot.automl.summary import summary_of

        return summary_of(self)

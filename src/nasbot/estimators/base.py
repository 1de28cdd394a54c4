"""What both estimators share: a search in ``fit``, a network afterwards, and a file for it that is not pickled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.errors import OptionError, StorageError, StudyError
from nasbot.otmann.models import as_architecture

MAX_SEED = 2**31 - 1


@dataclass(kw_only=True, eq=False, repr=False)
class SearchEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A search for a network, as a scikit-learn estimator; its subclasses say what is predicted.

    scikit-learn finds the parameters in the signature of ``__init__``, which a dataclass has from its fields.
    """

    _task: ClassVar[str]
    _takes_images: ClassVar[bool]

    budget: int | str = 20
    metric: str | None = None
    study: str | Path | None = None
    workers: int = 1
    searcher: str = "nasbot"
    recipe: str = "fast"
    steps: int | None = None
    seconds_per_trial: float | None = None
    start_from: Iterable[Any] = ()
    validation_fraction: float = 0.2
    ensemble: bool = True
    folds: int | str = "auto"
    refit: bool = True
    tune: Any = "auto"
    attributes: Any = None
    fidelity: Any = None
    pool: Any = "default"
    random_state: Any = 0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # gaps are filled and marked
        tags.non_deterministic = False
        return tags

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _search(self, X: Any, y: Any, sample_weight: Any, class_weight: Any = None) -> None:
        """Prepare, search, keep the model; everything that a person can get wrong is found out here."""
        from nasbot.automl import search
        from nasbot.data.dataset import dataset_of
        from nasbot.training.recipes import recipe_of

        share = self._checked_share()
        seed = self._seed()
        data = dataset_of(
            X,
            y,
            task=self._task,
            seed=seed,
            split=(1 - share, share, 0.0),
            name=type(self).__name__,
            sample_weight=None if sample_weight is None else _check_sample_weight(sample_weight, X),
            class_weight=class_weight,
        )
        recipe = recipe_of(self.recipe)
        found = search(
            data,
            budget=self.budget,
            metric=self.metric,
            workers=self.workers,
            seed=seed,
            name=self.study,
            recipe=recipe if self.steps is None else recipe.changed(n_steps=self.steps),
            searcher=self.searcher,
            tune=self.tune,
            attributes=self.attributes,
            fidelity=self.fidelity,
            pool=self.pool,
            folds=self.folds,
            refit=self.refit,
            yardstick=False,
            start_from=[_copied(as_architecture(network)) for network in self.start_from],
            seconds_per_trial=self.seconds_per_trial,
        )
        try:
            best = found.best
            if best is None or best.value is None:
                tried = len(found.history.finished)
                raise StudyError(f"none of {tried} networks could be trained: {_cause(found.history)}")
            self.architecture_: Architecture = best.arch
            self.loss_ = float(best.value)
            self.n_trials_ = len(found.history.finished)
            self.losses_ = np.array([trial.value for trial in found.history.completed])
            self._model: Any = found.model(single=not self.ensemble)
        finally:
            found.close()

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer) and self.random_state >= 0:
            return int(self.random_state)
        if self.random_state is None:  # a new one every time, from the system and not from numpy's global state
            return int(np.random.default_rng().integers(MAX_SEED))
        return int(check_random_state(self.random_state).randint(MAX_SEED))

    def _checked_share(self) -> float:
        share: object = self.validation_fraction
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise OptionError(f"validation_fraction: expected a number between 0 and 1, got {share!r}")
        return float(share)

    # -- inputs and outputs ------------------------------------------------------------------------------------------

    def _inputs(self, X: Any, *, reset: bool) -> Any:
        """X as the data layer takes it: frames as they are, so that columns keep their kinds; arrays checked."""
        if hasattr(X, "columns") and hasattr(X, "iloc"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if len(X) == 0:
                raise OptionError("Found array with 0 sample(s) while a minimum of 1 is required")
            return X
        return validate_data(
            self,
            X,
            reset=reset,
            dtype="numeric",
            ensure_all_finite="allow-nan",
            ensure_min_samples=1 + reset,
            allow_nd=self._takes_images and getattr(X, "ndim", 2) in (3, 4),
        )

    def _outputs(self, X: Any) -> np.ndarray:
        """What the network gives for raw rows."""
        check_is_fitted(self)
        outputs: np.ndarray = self._model.outputs(self._inputs(X, reset=False))
        return outputs

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    @property
    def network_(self) -> Any:
        """The trained network or ensemble, a ``torch.nn.Module`` on prepared inputs."""
        check_is_fitted(self)
        return self._model.network

    # -- files and other processes -----------------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fitted estimator to one safetensors file; nothing is pickled. ``load`` reads it back."""
        from nasbot.exporting.export import export

        check_is_fitted(self)
        return export(self._described(), path, to="safetensors", overwrite=overwrite)[0]

    def export(self, path: str | Path, *, to: str | None = None, overwrite: bool = False) -> tuple[Path, ...]:
        """Write the model for use elsewhere, as ``nasbot.export`` does; as JSON the best network's layer graph."""
        from nasbot.exporting.export import export, form_of

        check_is_fitted(self)
        what = self.architecture_ if form_of(path, to) == "json" else self._model
        return export(what, path, to=to, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The estimator that ``save`` wrote; StorageError where the file holds anything else."""
        from nasbot.exporting.model_file import load_model

        model = load_model(path)
        estimator = cls()
        try:
            estimator._restore(model)
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(f"{path}: not an estimator that nasbot saved: {str(error)[:120]}") from None
        return estimator

    def _described(self) -> Any:
        """The model with what the estimator knows beside it, as plain data."""
        names = getattr(self, "feature_names_in_", None)
        fitted: dict[str, Json] = {
            "n_features_in_": self.n_features_in_,
            "feature_names_in_": None if names is None else [str(name) for name in names],
            "loss_": self.loss_,
            "losses_": self.losses_.tolist(),
            "n_trials_": self.n_trials_,
            "architecture_": self.architecture_.to_dict(),
        }
        settings = {name: value for name, value in self.get_params(deep=False).items() if _is_plain(value)}
        details: Mapping[str, Json] = {"estimator": type(self).__name__, "settings": settings, "fitted": fitted}
        return replace(self._model, details=details)

    def _restore(self, model: Any) -> None:
        details = model.details
        if details.get("estimator") != type(self).__name__:
            said = str(details.get("estimator"))[:40]
            raise StorageError(f"expected a saved {type(self).__name__}, got {said!r}")
        fitted, settings = details["fitted"], details["settings"]
        known = {name: value for name, value in settings.items() if name in self.get_params(deep=False)}
        self.set_params(**known)
        self._model = model
        drawn = fitted.get("architecture_")  # older files have one network, and nothing else to say here
        self.architecture_ = model.network.arch if drawn is None else Architecture.from_dict(drawn)
        self.n_features_in_ = int(fitted["n_features_in_"])
        if fitted["feature_names_in_"] is not None:
            self.feature_names_in_ = np.array(fitted["feature_names_in_"], dtype=object)
        self.loss_, self.n_trials_ = float(fitted["loss_"]), int(fitted["n_trials_"])
        self.losses_ = np.array(fitted["losses_"], dtype=np.float64)

    def __getstate__(self) -> dict[str, Any]:
        """For whoever pickles estimators to reach other processes (joblib): the network as bytes of a file."""
        state = dict(super().__getstate__())
        if "_model" in state:
            state["_model"] = state["_model"].to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        from nasbot.exporting.model_file import model_from

        if isinstance(state.get("_model"), bytes):
            state = {**state, "_model": model_from(state["_model"])}
        super().__setstate__(state)


def _copied(arch: Architecture) -> Architecture:
    """Another object: what a search computes about a network stays with it, and parameters must not change in fit."""
    return Architecture(arch.vocabulary, arch.layers, arch.edges)


def _is_plain(value: object) -> bool:
    """Whether JSON can say it; what it cannot (a path, a network, a random state) is the default again when loaded."""
    return value is None or (isinstance(value, bool | int | float | str) and value == value)


def _cause(history: Any) -> str:
    messages = [getattr(trial.outcome, "message", "") for trial in history.failed]
    return messages[0] if messages else "the budget ended before the first"

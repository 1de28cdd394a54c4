"""A search for a network that tells classes apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length

from nasbot.errors import DataError
from nasbot.estimators.base import SearchEstimator


@dataclass(kw_only=True, eq=False, repr=False)
class NASBOTClassifier(ClassifierMixin, SearchEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Predict classes, and how likely each is, with the best network of a search.

    X is a table, or images of shape (n, height, width) or (n, height, width, channels): then the network is a CNN.

    Parameters
    ----------
    budget : trials, or time ("10m", "1h30m"), that the search may spend, the pool and the finals among it.
    metric : what networks are chosen by, a name such as "mae" or "auc"; None for the validation loss.
    class_weight : how much a row of each class counts in the loss: "balanced" for all classes alike, or a table.
    study : name or file to keep the search under, so that ``fit`` on the same data goes on with it; None keeps nothing.
    workers : how many networks are trained at a time, each in a process of its own where there are several.
    searcher : "nasbot", "random", "evolution" or "treebo".
    recipe : how networks are trained, "fast" or "paper".
    steps : how many steps each training takes; None leaves it to the recipe.
    seconds_per_trial : how long a training may take; None follows from the budget.
    start_from : networks to evaluate first: Architectures, or PyTorch models.
    validation_fraction : the share of rows that networks are compared by; the others they learn from.
    ensemble : whether the best networks of the search are averaged; otherwise the best one answers alone.
    folds : of a cross-validation that judges networks; 1 for none, "auto" for five where rows are few.
    refit : whether the model's networks are at last trained on the validation rows, too.
    tune : params that are searched with the networks: "auto", names, ``{"learning_rate": Float(...)}``, or None.
    attributes : options of single layers that are searched: some of dropout, norm, weight_decay, or "all".
    fidelity : short trainings that decide who gets a full one: "steps", "rows", "boca" or ``Fidelity(...)``; None: no.
    pool : the networks to begin with: "default" (strong plain ones), "paper", or a list of networks.
    random_state : a whole number makes everything repeatable.

    Attributes
    ----------
    architecture_ : the best network as a layer graph. network_ : the same as a trained ``torch.nn.Module``.
    classes_ : the classes in the order of the columns of ``predict_proba``.
    loss_ : mean negative log-likelihood on the validation rows. losses_ : those of all trials. n_trials_ : how many.
    """

    _task: ClassVar[str] = "classification"
    _takes_images: ClassVar[bool] = True

    class_weight: str | Mapping[Any, float] | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search for the network that tells the classes y, of shape (n,), from the rows of X.

        ``sample_weight``, of shape (n,), says how much each row counts, in the loss and in the choice of networks.
        """
        inputs = self._inputs(X, reset=True)
        if y is None:
            raise ValueError("This NASBOTClassifier estimator requires y to be passed, but the target y is None")
        target = column_or_1d(y, warn=True)
        check_array(target, ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(target)
        check_consistent_length(inputs, target)
        classes = np.unique(target)
        if len(classes) < 2:
            raise DataError(f"y: every row is of one class, {str(classes[0])[:40]!r}; expected at least two classes")
        self._search(inputs, target, sample_weight, self.class_weight)
        self.classes_ = classes
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row."""
        most_likely = self._outputs(X).argmax(axis=1)
        return np.asarray(self.classes_[most_likely])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, (n, classes)."""
        logs = self._outputs(X)
        return np.asarray(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))  # single precision's last digit

    def predict_proba(self, X: Any) -> np.ndarray:
        """How likely each class of ``classes_`` is, (n, classes); rows sum to 1."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def _restore(self, model: Any) -> None:
        super()._restore(model)
        self.classes_ = np.array(list(model.preprocessing.target.classes))

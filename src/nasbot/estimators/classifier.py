"""A search for a network that tells classes apart."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length

from nasbot.errors import DataError
from nasbot.estimators.base import SearchEstimator


class NASBOTClassifier(ClassifierMixin, SearchEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Predict classes, and how likely each is, with the best network of a search.

    X is a table, or images of shape (n, height, width) or (n, height, width, channels): then the network is a CNN.

    Parameters are those of ``NASBOTRegressor``. Attributes too; ``loss_`` is the mean negative log-likelihood, and
    ``classes_`` are the classes in the order of the columns of ``predict_proba``.
    """

    _task: ClassVar[str] = "classification"
    _takes_images: ClassVar[bool] = True

    def fit(self, X: Any, y: Any) -> Self:
        """Search for the network that tells the classes y, of shape (n,), from the rows of X."""
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
        self._search(inputs, target)
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

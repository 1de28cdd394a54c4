"""A search for a network that predicts numbers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_consistent_length

from nasbot.estimators.base import SearchEstimator


class NASBOTRegressor(RegressorMixin, SearchEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Predict one or several numbers with the best network of a search.

    Parameters
    ----------
    budget : trials, or time ("10m", "1h30m"), that the search may spend, the pool and the finals among it.
    metric : what networks are chosen by, a name such as "mae" or "auc"; None for the validation loss.
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
    architecture_ : the best network as a layer graph. network_ : the model as a trained ``torch.nn.Module``.
    loss_ : its validation loss, of the standardised target; with ``metric`` that one's value.
    losses_ : those of all trials. n_trials_ : how many ended.
    """

    _task: ClassVar[str] = "regression"
    _takes_images: ClassVar[bool] = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search for the network that predicts y, of shape (n,) or (n, outputs), from the rows of X.

        ``sample_weight``, of shape (n,), says how much each row counts, in the loss and in the choice of networks.
        """
        inputs = self._inputs(X, reset=True)
        if y is None:
            raise ValueError("This NASBOTRegressor estimator requires y to be passed, but the target y is None")
        target = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
        check_consistent_length(inputs, target)
        self._search(inputs, target, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Numbers in the units of the target: (n,), or (n, outputs) where there are several."""
        outputs = self._outputs(X)
        return np.asarray(self._model.preprocessing.predicted(outputs))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """(n, 2) or (n, outputs, 2): what the truth lies between for this share of rows; see ``Model``."""
        return np.stack(self._model.bounds(self.predict(X), coverage), axis=-1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

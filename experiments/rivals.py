"""scikit-learn in our place: its MLP as an objective for the same workers, and gradient boosting as the yardstick."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, exp, log
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from experiments.training import RETRAINING
from nasbot import Architecture
from nasbot.data.dataset import Dataset, Part
from nasbot.execution.evaluation import LiveTrial
from nasbot.trial import Scored

ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "logistic": "logistic"}  # ours -> scikit-learn's
STEP_SIZES = (1e-4, 1e-2)
PENALTIES = (1e-6, 1e-2)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ScikitMLP:
    """An objective: an MLPRegressor of the chain's widths and activation; step size and penalty drawn for the trial.

    As many steps as our own trainer may take, a look at the validation part after each epoch, the best one counts.
    """

    preload: ClassVar[tuple[str, ...]] = ("sklearn.neural_network",)  # loaded once for all workers
    folder: Path
    max_steps: int
    batch_size: int = 256
    patience: int = 5

    def __call__(self, arch: Architecture, trial: LiveTrial) -> Scored:
        """The lowest validation error."""
        rng = trial.rng
        drawn = {"step_size": _log_uniform(rng, *STEP_SIZES), "alpha": _log_uniform(rng, *PENALTIES)}
        found = self.fitted(arch, drawn, seed=int(rng.integers(2**31)))
        return Scored(found["valid"], {**drawn, **found})

    def fitted(self, arch: Architecture, drawn: Mapping[str, Any], *, seed: int) -> dict[str, float]:
        """Validation error of the best epoch, and the test error then."""
        from sklearn.neural_network import MLPRegressor

        data = Dataset.load(self.folder)
        hidden = [arch.layers[u] for u in arch.processing_layers]
        model = MLPRegressor(
            hidden_layer_sizes=tuple(int(layer.units or 1) for layer in hidden),
            activation=ACTIVATIONS[hidden[0].label],
            alpha=float(drawn["alpha"]),
            learning_rate_init=float(drawn["step_size"]),
            batch_size=min(self.batch_size, len(data.train)),
            random_state=seed,
        )
        best = {"valid": np.inf, "test": np.inf, "epochs": 0.0}
        for epoch in range(1, ceil(self.max_steps * self.batch_size / len(data.train)) + 1):
            model.partial_fit(np.asarray(data.train.X), np.ravel(data.train.y))
            valid = squared_error(model, data.valid)
            if not np.isfinite(valid):
                break
            if valid < best["valid"]:
                best = {"valid": valid, "test": squared_error(model, data.test), "epochs": float(epoch)}
            elif epoch - best["epochs"] >= self.patience:
                break
        return best


def boosted(folder: Path, *, seed: int, max_iterations: int) -> dict[str, Any]:
    """Gradient boosting with scikit-learn's defaults, as many trees as the validation part likes best."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    begun = time.perf_counter()
    data = Dataset.load(folder)
    model = HistGradientBoostingRegressor(max_iter=max_iterations, early_stopping=False, random_state=seed)
    model.fit(np.asarray(data.train.X), np.ravel(data.train.y))
    errors = [_mean_square(found, data.valid) for found in model.staged_predict(np.asarray(data.valid.X))]
    best = int(np.argmin(errors))
    tested = [_mean_square(found, data.test) for found in model.staged_predict(np.asarray(data.test.X))]
    return {
        "valid": float(errors[best]),
        "test": float(tested[best]),
        "trees": best + 1,
        "seconds": time.perf_counter() - begun,
    }


def refitted(objective: ScikitMLP, arch: Architecture, details: Mapping[str, Any], *, seed: int) -> dict[str, float]:
    """The same model again from other weights."""
    begun = time.perf_counter()
    found = objective.fitted(arch, details, seed=(RETRAINING + seed) % 2**31)
    return {"valid": found["valid"], "test": found["test"], "seconds": round(time.perf_counter() - begun, 2)}


def squared_error(model: Any, part: Part) -> float:
    """Of the standardised target."""
    return _mean_square(model.predict(np.asarray(part.X)), part)


def _mean_square(predicted: Floats, part: Part) -> float:
    return float(np.mean((np.asarray(predicted, dtype=np.float64) - np.ravel(part.y)) ** 2))


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(exp(rng.uniform(log(low), log(high))))

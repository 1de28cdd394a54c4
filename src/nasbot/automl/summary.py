"""What came of a search, in words and as one JSON value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nasbot._typing import Json
from nasbot.architecture.resources import resources
from nasbot.automl.found import metrics_of
from nasbot.trial import POOL, Failed, Trial

if TYPE_CHECKING:
    from nasbot.automl.found import FoundStudy

REGRESSION_LOSS = "mean squared error of the standardised target, validation rows"
CLASSIFICATION_LOSS = "mean negative log-likelihood, validation rows"


def summary_of(study: FoundStudy) -> str:
    """A few lines for people."""
    data, history, best = study.dataset, study.history, study.best
    causes = Counter(str(t.outcome.cause) for t in history.failed if isinstance(t.outcome, Failed))
    failures = ", ".join(f"{n} {cause}" for cause, n in causes.most_common())
    lines = [
        *data.summary(),
        f"trials: {len(history.completed)} completed, {len(history.failed)} failed{f' ({failures})' * bool(failures)}",
    ]
    if best is None:
        return "\n".join([*lines, "best: none yet"])
    size = resources(best.arch, data.input_shape, data.n_outputs)
    pool = best_of_pool(study)
    lines.append(f"best: trial {best.number}, loss {study.best_value:.5g} ({loss_name(study)})")
    if pool is not None and pool.value is not None and pool.number != best.number:
        lines.append(f"      the best of the initial pool, trial {pool.number}, has {pool.value:.5g}")
    n_processing = len(best.arch.processing_layers)
    lines.append(f"      {n_processing} layers, {len(best.arch.edges)} connections, {size.parameters:,} parameters")
    lines += [f"      {name}: {_shown(value)}" for name, value in _flat(metrics_of(best)).items()]
    again = study.recommend()
    if again is not None and again.value is not None and again.number != best.number:
        said = f"trial {again.number}, loss {again.value:.5g} (highest posterior mean)"
        lines.append(f"recommended for retraining: {said}")
    return "\n".join(lines)


def record_of(study: FoundStudy) -> dict[str, Json]:
    """The same as JSON."""
    history, best, again = study.history, study.best, study.recommend()
    causes = Counter(str(t.outcome.cause) for t in history.failed if isinstance(t.outcome, Failed))
    pool = best_of_pool(study)
    return {
        "best_value": study.best_value,
        "best_trial": None if best is None else best.number,
        "recommended_trial": None if again is None else again.number,
        "best_of_pool": None if pool is None else pool.value,
        "loss": loss_name(study),
        "metrics": {} if best is None else dict(metrics_of(best)),
        "trials": len(history.finished),
        "completed": len(history.completed),
        "failed": dict(causes),
    }


def loss_name(study: FoundStudy) -> str:
    """What is minimised, in words."""
    return CLASSIFICATION_LOSS if study.dataset.is_classification else REGRESSION_LOSS


def best_of_pool(study: FoundStudy) -> Trial | None:
    """The best of the networks that the search began with."""
    return next((trial for trial in study.history.ranked if trial.origin.searcher == POOL), None)


def _flat(metrics: Mapping[str, Json], prefix: str = "") -> dict[str, Json]:
    flat: dict[str, Json] = {}
    for name, value in metrics.items():
        label = f"{prefix} {name}".strip()
        if isinstance(value, Mapping):
            flat |= _flat(value, label)
        else:
            flat[label] = value
    return flat


def _shown(value: Json) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)

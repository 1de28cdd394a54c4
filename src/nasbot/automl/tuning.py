"""Which params are searched together with the networks, by default and by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nasbot.domain import Choice, Float, Param
from nasbot.errors import OptionError

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset

# Ranges around the recipe's own settings, which are the defaults.
VECTORS: Mapping[str, Param] = {
    "preparation": Choice("standard", "robust", "quantile", "ple"),
    "learning_rate": Float(5e-3, 6e-2, log=True, default=2e-2),
    "weight_decay": Float(1e-6, 1e-1, log=True, default=1e-4),
    "dropout": Float(0.0, 0.4, default=0.0),
    "batch_size": Choice(64, 128, 256, 512, ordered=True, default=256),
    "schedule": Choice("cosine", "constant"),
}
IMAGES: Mapping[str, Param] = {
    "learning_rate": Float(5e-3, 6e-2, log=True, default=2e-2),
    "weight_decay": Float(1e-6, 1e-1, log=True, default=5e-4),
    "dropout": Float(0.0, 0.4, default=0.0),
    "batch_size": Choice(32, 64, 128, ordered=True, default=64),
}
CLASSES: Mapping[str, Param] = {"label_smoothing": Float(0.0, 0.2, default=0.0)}
# What "auto" searches: what was measured to be worth it.
AUTO = ("preparation",)


def params_of(tune: str | Sequence[str] | Mapping[str, Param] | None, data: Dataset) -> dict[str, Param]:
    """The params to search on these data."""
    if tune is None or tune == "none":
        return {}
    if isinstance(tune, Mapping):
        return dict(tune)
    known = _known(data)
    if tune == "auto":
        return {name: known[name] for name in AUTO if name in known}
    names = tune.split(",") if isinstance(tune, str) else list(tune)
    if unknown := [name for name in names if name not in known]:
        raise OptionError(f"tune: expected auto, none, or some of {', '.join(known)}; got {str(unknown[0])[:40]!r}")
    return {name: known[name] for name in names}


def _known(data: Dataset) -> dict[str, Param]:
    """What can be searched on these data."""
    found = dict(IMAGES if len(data.input_shape) == 3 else VECTORS)
    if not getattr(data.preprocessing.inputs, "number_inputs", ()):
        found.pop("preparation", None)
    return found | (dict(CLASSES) if data.is_classification else {})

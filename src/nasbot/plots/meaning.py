"""What the values of a study are: which metric, in which unit, and of which data; read from its settings alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nasbot._json import table
from nasbot._typing import Json

SHARE, OF_TARGET = "share of rows", "unit of the target"
UNITS: Mapping[str, str] = {
    "mse": "squared unit of the target",
    "rmse": OF_TARGET,
    "mae": OF_TARGET,
    "r2": "share of variance",
    "mape": "share of the target",
    "log-loss": "nats",
    "error": SHARE,
    "accuracy": SHARE,
    "balanced-accuracy": "share of rows, classes alike",
    "auc": "0 to 1",
    "average-precision": "0 to 1",
    "f1": "0 to 1",
    "f1-weighted": "0 to 1",
}
STANDARDISED = "of the standardised target"


class Meaning(NamedTuple):
    """A value's name and unit; no unit where only the objective knows it."""

    name: str
    unit: str = ""

    def __str__(self) -> str:
        """``validation log-loss [nats]``."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


def meaning_of(settings: Mapping[str, Json]) -> Meaning:
    """Of a search on data its metric, else the loss by which it chooses; "value" of any other objective."""
    context = table(settings.get("context"))
    if "data" not in context:
        return Meaning("value")
    if "metric" in context:
        name = str(context["metric"])[:80]
        return Meaning(f"validation {name}", UNITS.get(name, ""))
    kind = table(settings.get("space")).get("kind")
    recipe = context.get("recipe")
    if kind == "mlp-reg":
        return Meaning("validation mse", STANDARDISED)
    if kind not in ("mlp-class", "cnn"):
        return Meaning("validation loss")
    part = table(table(recipe).get("images" if kind == "cnn" else "vectors"))
    return (
        Meaning("validation error", SHARE) if part.get("score") == "error" else Meaning("validation log-loss", "nats")
    )


def data_of(settings: Mapping[str, Json]) -> str:
    """The name of the data of a search on data; empty for any other objective."""
    context = table(settings.get("context"))
    return str(context.get("data_name", ""))[:80] if "data" in context else ""


def axis_of(settings: Mapping[str, Json]) -> tuple[str, ...]:
    """Studies whose values may stand on one axis have this in common: data, metric and direction.

    Of an objective of one's own the kind of networks and what it noted of itself stand for the data.
    """
    context = table(settings.get("context"))
    if "data" in context:
        what = str(context["data"])
    else:
        what = f"{table(settings.get('space')).get('kind')} {context}"
    return what, str(meaning_of(settings)), str(settings.get("direction", ""))

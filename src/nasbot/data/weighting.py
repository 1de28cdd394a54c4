"""How much each row and each class counts, as people say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nasbot.data.preprocessing import ClassTarget, NumberTarget
from nasbot.data.tables import listed
from nasbot.errors import DataError, OptionError

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset

WEIGHT = "sample_weight"
BALANCED, ALIKE = "balanced", "none"


def sample_weights_of(series: Any, rows: Sequence[np.ndarray]) -> np.ndarray:
    """float32 (n,), none negative, some above 0 in each part that has rows; DataError for anything else."""
    try:
        weights: np.ndarray = series.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{WEIGHT}: expected numbers, got such as {str(series.iloc[0])[:40]!r}") from None
    if not np.isfinite(weights).all():
        raise DataError(f"{WEIGHT}: {int((~np.isfinite(weights)).sum()):,} rows have a weight that is not finite")
    if n := int((weights < 0).sum()):
        raise DataError(f"{WEIGHT}: negative in {n:,} rows, such as {weights.min():g}; expected 0 or more")
    names = ("training", "validation", "test")
    for name, part in zip(names, rows, strict=True):
        if len(part) and not weights[part].any():
            raise DataError(f"{WEIGHT}: 0 in every one of {len(part):,} {name} rows; expected some above 0")
    if weights.max() > 1e30 or weights[weights > 0].min() < 1e-30:
        raise DataError(f"{WEIGHT}: expected numbers between 1e-30 and 1e30, or 0")
    return weights.astype(np.float32)


def class_weights_of(
    given: str | Mapping[Any, Any],
    target: NumberTarget | ClassTarget,
    train: np.ndarray,
    weights: np.ndarray | None,
) -> tuple[float, ...]:
    """A weight for each class: those of the table (1 for a class that it leaves out), or such that all count alike.

    Args:
        given: "balanced", "none" for 1 each, or weights by class; classes as they are or as text.
        target: what is predicted.
        train: the classes of the training rows, by number.
        weights: of these rows, if they have some.
    """
    if not isinstance(target, ClassTarget):
        raise OptionError("class_weight: the target is a number: regression; expected classes, or sample_weight")
    if isinstance(given, str):
        if given == ALIKE:
            return (1.0,) * target.n_outputs
        if given != BALANCED:
            raise OptionError(
                f"class_weight: expected {BALANCED!r}, {ALIKE!r} or a weight for each class, such as "
                f"{target.classes[0]}=1,{target.classes[1]}=5, got {given[:40]!r}"
            )
        shares = np.bincount(train, weights, minlength=target.n_outputs)
        mean = shares.sum() / np.count_nonzero(shares)
        return tuple(float(mean / share) if share > 0 else 1.0 for share in shares)
    by_name = {str(key): value for key, value in given.items()}
    names = [str(value) for value in target.classes]
    if unknown := sorted(set(by_name) - set(names)):
        raise OptionError(f"class_weight: no class {unknown[0][:40]!r}; there are {listed(names)}")
    for name, value in by_name.items():
        if not isinstance(value, int | float) or not 0 < value < 1e30:
            raise OptionError(f"class_weight: expected a number above 0 for {name[:40]!r}, got {str(value)[:40]}")
    return tuple(float(by_name.get(name, 1.0)) for name in names)


def parsed_class_weight(text: str) -> str | dict[str, float]:
    """ "balanced", "none", or "rare=5,common=1" as a table; OptionError for anything else."""
    if "=" not in text:
        return text
    table: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        try:
            table[name] = float(number)
        except ValueError:
            raise OptionError(
                f"class_weight: expected {BALANCED}, or weights such as rare=5,common=1, got {text[:60]!r}"
            ) from None
    return table


def weights_lines(data: Dataset) -> list[str]:
    """What is said about weights, for people; nothing where all rows count alike."""
    parts = []
    if data.train.weights is not None:
        low, high = float(data.train.weights.min()), float(data.train.weights.max())
        parts.append(f"rows count {low:.3g} to {high:.3g}")
    if data.class_weights is not None:
        names = data.preprocessing.classes
        shown = [f"{name} {weight:.3g}" for name, weight in zip(names, data.class_weights, strict=True)]
        parts.append(f"classes count {listed(shown, most=6)} in the loss")
    return [f"weights: {'; '.join(parts)}"] if parts else []

"""Which traits of networks and of their training go with good values: depth, width, layer type, parameters, params.

``weight`` of a trait is the share of the variance of the values' ranks that it explains alone, networks being sorted
into up to five groups of equal size by it (a choice: by what was chosen), corrected for the number of groups. It says
what went together in this search, not what causes what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture
from nasbot.plots.snapshot import Snapshot, Source, number_of
from nasbot.trial import Trial

N_GROUPS = 5
FEWEST = 8  # trials with a value from which weights are given
MOST_LINES = 300  # trials whose traits are listed

Cell = float | str | None


class Trait(NamedTuple):
    """One trait: its name, whether it is a choice among words, and how much of the values' order it explains."""

    name: str
    is_choice: bool
    weight: float | None  # None where there are too few trials, or all have the same


class TraitLine(NamedTuple):
    """One trial's value and traits, in the order of ``Traits.traits``."""

    trial: int
    value: float
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Traits:
    """Traits, those that explain most first, and trials: the best, and others evenly."""

    traits: tuple[Trait, ...]
    lines: tuple[TraitLine, ...]
    n_all: int
    message: str = ""


def traits(source: Source) -> Traits:
    """The traits of all trials with a value at full fidelity."""
    ranked = Snapshot.of(source).history.ranked
    if not ranked:
        return Traits((), (), 0, "no trial has a value yet")
    rows = [_traits_of(trial) for trial in ranked]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    found = [Trait(name, _is_choice(cells), _weight(cells)) for name, cells in columns.items()]
    found.sort(key=lambda trait: -1.0 if trait.weight is None else trait.weight, reverse=True)
    chosen = _some(len(ranked))
    lines = [
        TraitLine(ranked[i].number, ranked[i].value or 0.0, tuple(columns[trait.name][i] for trait in found))
        for i in chosen
    ]
    return Traits(tuple(found), tuple(lines), len(ranked))


def _traits_of(trial: Trial) -> dict[str, Cell]:
    arch = trial.arch
    labels = Counter(arch.layers[u].label for u in arch.processing_layers)
    units = [arch.layers[u].units for u in arch.processing_layers]
    widths = [width for width in units if width]
    found: dict[str, Cell] = {
        "depth": float(_depth(arch)),
        "layers": float(len(arch.processing_layers)),
        "mean width": float(np.mean(widths)) if widths else None,
        "layer type": min(labels, key=lambda label: (-labels[label], label)) if labels else "none",
        **_size(trial),
    }
    for name, value in trial.candidate.params.items():
        found[name] = value if isinstance(value, str) else float(value)
    return found


def _size(trial: Trial) -> dict[str, Cell]:
    """Parameters where the objective reported them, else the mass."""
    parameters = number_of(trial.details, "parameters")
    return {"mass": float(trial.arch.total_mass)} if parameters is None else {"parameters": parameters}


def _depth(arch: Architecture) -> int:
    """Processing layers on the longest path."""
    processing, longest = set(arch.processing_layers), [0] * len(arch.layers)
    for u, v in sorted(arch.edges, key=lambda edge: edge[1]):
        longest[v] = max(longest[v], longest[u] + (u in processing))
    return longest[-1]


def _is_choice(cells: Sequence[Cell]) -> bool:
    return any(isinstance(cell, str) for cell in cells)


def _weight(cells: Sequence[Cell]) -> float | None:
    """Of cells in the order of the values' ranks; cells that a trial does not have are left out."""
    known = [(rank, cell) for rank, cell in enumerate(cells) if cell is not None]
    if len(known) < FEWEST:
        return None
    ranks = np.array([rank for rank, _ in known], dtype=float)
    groups = _groups([cell for _, cell in known])
    n, k = len(ranks), len(np.unique(groups))
    if k < 2 or n <= k:
        return None
    within = sum(float(((ranks[groups == g] - ranks[groups == g].mean()) ** 2).sum()) for g in np.unique(groups))
    explained = 1 - (within / (n - k)) / (float(((ranks - ranks.mean()) ** 2).sum()) / (n - 1))
    return max(0.0, explained)


def _groups(cells: Sequence[Cell]) -> NDArray[np.int64]:
    """Choices by what was chosen, numbers by quantiles; equal numbers are in one group."""
    if _is_choice(cells):
        words = [str(cell) for cell in cells]
        return np.array([sorted(set(words)).index(word) for word in words])
    numbers = np.array([float(cell or 0.0) for cell in cells])
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, N_GROUPS + 1)[1:-1]))
    return np.searchsorted(edges, numbers, side="right")


def _some(n: int) -> list[int]:
    """All, or half of ``MOST_LINES`` the best and half of the others evenly."""
    if n <= MOST_LINES:
        return list(range(n))
    half = MOST_LINES // 2
    return [*range(half), *np.linspace(half, n - 1, half).round().astype(int).tolist()]

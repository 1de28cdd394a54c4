"""The four modifiers that change units and leave the structure alone (the upper half of the appendix's table).

dec_single    one layer at random: units decreased by 1/8
inc_single    one layer at random: units increased by 1/8
dec_en_masse  an eighth of the layers, neighbours in topological order: units of each decreased by 1/8
inc_en_masse  the same, increased

"Layers" are those that have units to change. Of all layers an eighth may be the input and a pool, with nothing to
change, and a network of four layers has only two besides input and output; the authors' release counts as here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from nasbot.architecture import Architecture
from nasbot.evolution.modifier import NO_SITE, Modifier, Rejected, UnitsDraft, below

Run = tuple[int, ...]  # layers changed together


def eighth(units: int) -> int:
    """1/8 of the units, rounded to the nearest whole number (halves up), and at least 1 so that there is a change."""
    return max(1, (units + 4) // 8)


def decreased(units: int) -> int:
    """Units less an eighth."""
    return units - eighth(units)


def increased(units: int) -> int:
    """Units and an eighth."""
    return units + eighth(units)


def run_length(n_layers: int) -> int:
    """How many of ``n_layers`` are changed en masse: 1/8, of eight or fewer 1/4, of four or fewer 1/2, rounded up.

    Up, because "en masse" of one layer would be the modifier of single layers again. The authors' release draws from
    runs of 1/2, 1/4 and 1/8 of the layers alike.
    """
    part = 2 if n_layers <= 4 else 4 if n_layers <= 8 else 8
    return -(-n_layers // part)


def changeable(arch: Architecture, change: Callable[[int], int]) -> list[int]:
    """Layers whose units can change: all that have them, but for a decrease of a single unit."""
    return [u for u, layer in enumerate(arch.layers) if layer.units is not None and change(layer.units) >= 1]


def _with_units(arch: Architecture, run: Run, change: Callable[[int], int]) -> UnitsDraft:
    before = [arch.layers[u].units or 0 for u in run]  # "or 0" never comes up: a run has only layers with units
    after = [change(units) for units in before]
    if len(run) == 1:
        where = f"layer {run[0]} {arch.layers[run[0]].label}"
    else:
        where = f"layers {_listed(run)}"
    return UnitsDraft(f"{where}: {_listed(before)} -> {_listed(after)} units", dict(zip(run, after, strict=True)))


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _units_modifier(name: str, change: Callable[[int], int], length: Callable[[int], int]) -> Modifier[Run]:
    """The modifier that changes runs of ``length(n)`` neighbours among the n layers whose units can change."""

    def sites(arch: Architecture) -> Iterator[Run]:
        layers = changeable(arch, change)
        size = length(len(layers))
        return (tuple(layers[i : i + size]) for i in range(len(layers) - size + 1) if size)

    def draw(arch: Architecture, rng: np.random.Generator) -> Run | Rejected:
        layers = changeable(arch, change)
        if not layers:
            return Rejected(name, NO_SITE, "no layer has units to change")
        size = length(len(layers))
        first = below(len(layers) - size + 1, rng)
        return tuple(layers[first : first + size])

    def draft(arch: Architecture, run: Run) -> UnitsDraft:
        return _with_units(arch, run, change)

    return Modifier(name, sites, draw, draft)


def _one(n_layers: int) -> int:
    return min(n_layers, 1)


dec_single = _units_modifier("dec_single", decreased, _one)
inc_single = _units_modifier("inc_single", increased, _one)
dec_en_masse = _units_modifier("dec_en_masse", decreased, run_length)
inc_en_masse = _units_modifier("inc_en_masse", increased, run_length)

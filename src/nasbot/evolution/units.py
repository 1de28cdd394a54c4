"""The modifiers that change units and leave the structure alone: four of the appendix's table, and two of ours.

dec_single    one layer at random: units decreased by 1/8
inc_single    one layer at random: units increased by 1/8
dec_en_masse  an eighth of the layers, neighbours in topological order: units of each decreased by 1/8
inc_en_masse  the same, increased
halve_units   one layer, or an eighth, a quarter, half or all of them, neighbours in topological order: half the units
double_units  the same, twice the units

By eighths it takes 18 steps from 64 units to 512, by doubling three; eighths then find what lies between.

"Layers" are those that have units to change. Of all layers an eighth may be the input and a pool, with nothing to
change, and a network of four layers has only two besides input and output; the authors' release counts as here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from nasbot.architecture import Architecture
from nasbot.evolution.modifier import NO_SITE, Modifier, Rejected, UnitsDraft, below, pick

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


def halved(units: int) -> int:
    """Half the units, rounded down."""
    return units // 2


def doubled(units: int) -> int:
    """Twice the units."""
    return 2 * units


def run_length(n_layers: int) -> int:
    """How many of ``n_layers`` are changed en masse: 1/8, of eight or fewer 1/4, of four or fewer 1/2, rounded up.

    Up, because "en masse" of one layer would be the modifier of single layers again. The authors' release draws from
    runs of 1/2, 1/4 and 1/8 of the layers alike.
    """
    part = 2 if n_layers <= 4 else 4 if n_layers <= 8 else 8
    return -(-n_layers // part)


def doubling_lengths(n_layers: int) -> list[int]:
    """How many of ``n_layers`` change together: one, and an eighth, a quarter, half and all of them, rounded up."""
    return sorted({min(n_layers, 1), *(-(-n_layers // part) for part in (8, 4, 2, 1))} - {0})


def changeable(arch: Architecture, change: Callable[[int], int]) -> list[int]:
    """Layers whose units can change: all that have them, but for a single unit, which cannot get fewer."""
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


def _units_modifier(name: str, change: Callable[[int], int], lengths: Callable[[int], Sequence[int]]) -> Modifier[Run]:
    """The modifier that changes runs of one of ``lengths(n)`` neighbours among the n layers whose units can change."""

    def sites(arch: Architecture) -> Iterator[Run]:
        layers = changeable(arch, change)
        for size in lengths(len(layers)):
            yield from (tuple(layers[i : i + size]) for i in range(len(layers) - size + 1))

    def draw(arch: Architecture, rng: np.random.Generator) -> Run | Rejected:
        layers = changeable(arch, change)
        if not layers:
            return Rejected(name, NO_SITE, "no layer has units to change")
        sizes = lengths(len(layers))
        size = sizes[0] if len(sizes) == 1 else pick(sizes, rng)  # a number is drawn only where it decides
        first = below(len(layers) - size + 1, rng)
        return tuple(layers[first : first + size])

    def draft(arch: Architecture, run: Run) -> UnitsDraft:
        return _with_units(arch, run, change)

    return Modifier(name, sites, draw, draft)


def _one(n_layers: int) -> list[int]:
    return [1] if n_layers else []


def _en_masse(n_layers: int) -> list[int]:
    return [run_length(n_layers)] if n_layers else []


dec_single = _units_modifier("dec_single", decreased, _one)
inc_single = _units_modifier("inc_single", increased, _one)
dec_en_masse = _units_modifier("dec_en_masse", decreased, _en_masse)
inc_en_masse = _units_modifier("inc_en_masse", increased, _en_masse)
halve_units = _units_modifier("halve_units", halved, doubling_lengths)
double_units = _units_modifier("double_units", doubled, doubling_lengths)

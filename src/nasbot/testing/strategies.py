"""Hypothesis strategies: valid networks of any vocabulary, pairs and triples of one, and transport problems.

Everything is valid by construction, so nothing is filtered, and smaller choices mean plainer examples: a failing
network shrinks to a short chain of the vocabulary's first label with 8 units, a transport problem to few small numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from numpy.typing import NDArray

from nasbot.architecture import BUILT_IN, Architecture, Vocabulary, vocabulary_of
from nasbot.errors import InvalidArchitectureError
from nasbot.testing.networks import grow, relabelled, smallest_size

Array = NDArray[np.float64]


class _DrawnChoices:
    """Decisions by hypothesis."""

    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


def kinds() -> SearchStrategy[str]:
    """The names of the built-in vocabularies."""
    return st.sampled_from(sorted(BUILT_IN))


@st.composite
def architectures(
    draw: DrawFn,
    kind: str | Vocabulary | None = None,
    *,
    min_layers: int = 4,
    max_layers: int = 16,
    tiny_units: bool = True,
) -> Architecture:
    """Valid networks of this kind (None: any built-in one): branches, merges, skips, several decision layers.

    Units lie in 8..1024, and rarely, with ``tiny_units``, in 1..7. A vocabulary with rules of its own is honoured by
    rejecting the networks that break them.
    """
    vocabulary = vocabulary_of(draw(kinds()) if kind is None else kind)
    n_layers = draw(st.integers(max(min_layers, smallest_size(vocabulary)), max_layers))
    try:
        return grow(vocabulary, n_layers, _DrawnChoices(draw), tiny_units=tiny_units)
    except InvalidArchitectureError:
        if not vocabulary.rules:
            raise
        reject()


@st.composite
def architecture_tuples(
    draw: DrawFn,
    n: int,
    *,
    kind: str | Vocabulary | None = None,
    min_layers: int = 4,
    max_layers: int = 16,
    tiny_units: bool = True,
) -> tuple[Architecture, ...]:
    """n networks of one kind; now and then one is the same as another, or the same under another numbering."""
    of_kind = draw(kinds()) if kind is None else kind
    networks = architectures(of_kind, min_layers=min_layers, max_layers=max_layers, tiny_units=tiny_units)
    drawn = [draw(networks)]
    while len(drawn) < n:
        source = draw(st.sampled_from(["new", "new", "new", "new", "same", "renumbered"]))
        earlier = drawn[draw(st.integers(0, len(drawn) - 1))] if source != "new" else None
        if earlier is None:
            drawn.append(draw(networks))
        else:
            drawn.append(earlier if source == "same" else relabelled(earlier, rng=draw(generators())))
    return tuple(drawn)


def generators() -> SearchStrategy[np.random.Generator]:
    """numpy generators, by their seeds."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


@dataclass(frozen=True, eq=False)
class TransportProblem:
    """Masses of two networks and what it costs to match a unit between their layers; infinite: never."""

    mass_1: Array  # (n1,)
    mass_2: Array  # (n2,)
    cost: Array  # (n1, n2)

    def __repr__(self) -> str:
        return f"TransportProblem({self.mass_1.tolist()}, {self.mass_2.tolist()}, {self.cost.tolist()})"


def _masses(scale: str) -> SearchStrategy[float]:
    """Few different values, so that ties and degenerate pivots are common, or any; zero among them."""
    if scale == "ties":
        return st.sampled_from([1.0, 0.0, 2.0, 3.0, 1.5])
    return st.one_of(st.just(0.0), st.floats(1e-3, 1e8, allow_nan=False, allow_subnormal=False))


def _costs(scale: str) -> SearchStrategy[float]:
    if scale == "ties":
        return st.sampled_from([0.0, 1.0, 0.25, 0.5, 2.0, np.inf])
    return st.one_of(st.just(0.0), st.floats(0.0, 3.0, allow_subnormal=False), st.just(np.inf))


@st.composite
def transport_problems(draw: DrawFn, *, max_size: int = 12) -> TransportProblem:
    """Problems with ties, zero masses, repeated rows and columns, and costs on both sides of 2, infinity included."""
    n1, n2 = draw(st.integers(1, max_size)), draw(st.integers(1, max_size))
    scale = draw(st.sampled_from(["ties", "any"]))
    mass_1 = draw(st.lists(_masses(scale), min_size=n1, max_size=n1))
    mass_2 = draw(st.lists(_masses(scale), min_size=n2, max_size=n2))
    row = st.lists(_costs(scale), min_size=n2, max_size=n2)
    rows = draw(st.lists(row, min_size=n1, max_size=n1))
    if draw(st.booleans()):  # a repeated layer: a whole row of ties
        rows[-1], mass_1[-1] = rows[0], mass_1[0]
    if draw(st.booleans()):  # equal totals and equal layers, as between a network and itself
        mass_2 = [mass_1[j % n1] for j in range(n2)]
    return TransportProblem(np.array(mass_1), np.array(mass_2), np.array(rows))

"""Ways to prepare numbers beyond standardising them: a second step, from standardised inputs to what a network sees.

``standard``   no second step
``robust``     median and interquartile range instead of mean and deviation, then a smooth clip at 3
``quantile``   normal scores: linear between at most 256 quantiles of the training rows
``ple``        piecewise-linear encoding: each number becomes up to 16 inputs, one for each bin between quantiles

Fitted on training rows only; frozen, and strict JSON. Inputs that are not numbers (categories, marks of gaps) pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np
from scipy.special import ndtri

from nasbot import _json
from nasbot._typing import Json
from nasbot.errors import CodecError, DataError, OptionError

STANDARD = "standard"
CLIP = 3.0
MAX_KNOTS = 256
MAX_BINS = 16
MAX_BIN_INPUTS = 1024  # tables with many numbers have fewer bins for each, but at least two
ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Robust:
    """(x - centre) / scale, smoothly clipped: nothing leaves (-3, 3)."""

    form: ClassVar[str] = "robust"
    width: ClassVar[int] = 1
    input: int
    centre: float
    scale: float

    def applied(self, x: np.ndarray) -> np.ndarray:
        """One column of standardised numbers, (n,), as (n, 1)."""
        z = (x - np.float32(self.centre)) / np.float32(self.scale)
        clipped: np.ndarray = z / np.sqrt(1 + np.square(z / np.float32(CLIP)))
        return clipped[:, None]

    @classmethod
    def fitted(cls, input: int, ordered: np.ndarray, n_bins: int) -> Robust:
        """From the training rows' values in ascending order; half of the range where most values are equal."""
        low, centre, high = np.quantile(ordered, (0.25, 0.5, 0.75))
        spread = high - low or (ordered[-1] - ordered[0]) / 2
        return cls(input, float(centre), float(spread))


@dataclass(frozen=True)
class Quantile:
    """Linear between ``knots``, where it has ``scores``; constant beyond them."""

    form: ClassVar[str] = "quantile"
    width: ClassVar[int] = 1
    input: int
    knots: tuple[float, ...]
    scores: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.knots) != len(self.scores):
            raise CodecError(f"quantile: expected a score for each of {len(self.knots)} knots, got {len(self.scores)}")
        _check_ascending(self.knots, "knots")

    def applied(self, x: np.ndarray) -> np.ndarray:
        """One column of standardised numbers, (n,), as (n, 1)."""
        scores: np.ndarray = np.interp(x, self.knots, self.scores)
        return scores[:, None]

    @classmethod
    def fitted(cls, input: int, ordered: np.ndarray, n_bins: int) -> Quantile:
        """From the training rows' values in ascending order; equal values share the mean of their ranks."""
        quantiles = _evenly(ordered, MAX_KNOTS)
        knots, first, counts = np.unique(quantiles, return_index=True, return_counts=True)
        n = len(quantiles)
        levels = (first + 0.5 * (counts - 1)) / (n - 1)
        scores = ndtri(np.clip(levels, 0.5 / n, 1 - 0.5 / n))
        return cls(input, tuple(map(float, knots)), tuple(round(float(score), 6) for score in scores))


@dataclass(frozen=True)
class Bins:
    """For each bin between two ``edges`` how far the number is through it: -1 below it, 1 above it."""

    form: ClassVar[str] = "ple"
    input: int
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_ascending(self.edges, "edges")

    @property
    def width(self) -> int:
        """How many inputs of the network it takes."""
        return len(self.edges) - 1

    def applied(self, x: np.ndarray) -> np.ndarray:
        """One column of standardised numbers, (n,), as (n, bins)."""
        edges = np.asarray(self.edges, dtype=np.float32)
        through: np.ndarray = (x[:, None] - edges[:-1]) / np.diff(edges)
        return 2 * through.clip(0, 1) - 1

    @classmethod
    def fitted(cls, input: int, ordered: np.ndarray, n_bins: int) -> Bins:
        """From the training rows' values in ascending order; by distinct values where most rows share a few."""
        edges = np.unique(_evenly(ordered, n_bins + 1))
        if len(edges) <= max(2, n_bins // 2):
            edges = _evenly(np.unique(ordered), n_bins + 1)
        return cls(input, tuple(map(float, edges)))


PreparedNumber: TypeAlias = Robust | Quantile | Bins
_FORMS: dict[str, type[Robust] | type[Quantile] | type[Bins]] = {form.form: form for form in (Robust, Quantile, Bins)}
PREPARATIONS = (STANDARD, *_FORMS)


@dataclass(frozen=True)
class Preparation:
    """The second step of one table: what becomes of each input that is a number, in ascending order of inputs."""

    name: str
    n_inputs: int  # standardised ones, that it takes
    numbers: tuple[PreparedNumber, ...]

    def __post_init__(self) -> None:
        places = [-1, *(number.input for number in self.numbers), self.n_inputs]
        if any(a >= b for a, b in pairwise(places)):
            raise CodecError(f"preparation: expected ascending inputs below {self.n_inputs}")
        if any(number.form != self.name for number in self.numbers):
            raise CodecError(f"preparation: expected numbers of the form {self.name!r}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row as the network sees it."""
        return (self.n_inputs - len(self.numbers) + sum(number.width for number in self.numbers),)

    def applied(self, X: np.ndarray) -> np.ndarray:
        """Standardised rows (n, n_inputs) as float32 (n, *shape)."""
        if X.shape[1:] != (self.n_inputs,):
            raise DataError(f"preparation: expected rows of {self.n_inputs} standardised inputs, got {X.shape[1:]}")
        out = np.empty((len(X), *self.shape), dtype=np.float32)
        for start in range(0, len(X), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            columns = np.ascontiguousarray(X[rows].T)
            for at, end, part in self.parts():
                if isinstance(part, range):
                    out[rows, at:end] = columns[part.start : part.stop].T
                else:
                    out[rows, at:end] = part.applied(columns[part.input])
        return out

    def parts(self) -> Iterator[tuple[int, int, range | PreparedNumber]]:
        """From left to right: (start, end) in the prepared row, and the standardised inputs that stand there."""
        at = taken = 0
        for number in (*self.numbers, None):
            passing = range(taken, self.n_inputs if number is None else number.input)
            if passing:
                yield at, at + len(passing), passing
                at += len(passing)
            if number is not None:
                yield at, at + number.width, number
                at, taken = at + number.width, number.input + 1

    def to_dict(self) -> dict[str, Json]:
        """As JSON; ``from_dict`` gives an equal value."""
        return {"form": self.name, "n_inputs": self.n_inputs, "numbers": [*map(_json.record_of, self.numbers)]}

    @classmethod
    def from_dict(cls, record: object) -> Preparation:
        """What ``to_dict`` wrote; raises CodecError, naming the place, for anything else."""
        name = _json.form(record, "preparation", tuple(_FORMS))
        fields = _json.fields(record, "preparation", ("form", "n_inputs", "numbers"))
        numbers = [
            _json.read_as(_FORMS[name], item, f"number {i}", input=_place, scale=_json.scale)
            for i, item in enumerate(_json.items(fields["numbers"], "numbers"))
        ]
        return cls(name, _json.whole(fields["n_inputs"], "n_inputs", at_least=1), tuple(numbers))


def preparation_of(name: str, train: np.ndarray, numbers: Sequence[int]) -> Preparation | None:
    """Fitted on the standardised training rows; ``numbers`` are the inputs that are numbers. None for "standard"."""
    check_preparation(name)
    if name == STANDARD:
        return None
    n_bins = min(MAX_BINS, max(2, MAX_BIN_INPUTS // max(1, len(numbers))))
    columns = np.sort(train[:, list(numbers)].T, axis=1)
    fitted = [
        _FORMS[name].fitted(input, column, n_bins)
        for input, column in zip(numbers, columns, strict=True)
        if column[0] < column[-1]  # one value and gaps: it passes
    ]
    return Preparation(name, train.shape[1], tuple(fitted))


def check_preparation(name: object) -> None:
    """Raise OptionError unless it is the name of a preparation."""
    if name not in PREPARATIONS:
        raise OptionError(f"preparation: expected one of {', '.join(PREPARATIONS)}, got {str(name)[:40]!r}")


def _evenly(ordered: np.ndarray, n: int) -> np.ndarray:
    """At most n of these values at equal distances, the first and the last among them."""
    places = np.linspace(0, len(ordered) - 1, min(n, len(ordered))).round().astype(int)
    chosen: np.ndarray = ordered[places]
    return chosen


def _check_ascending(values: Sequence[float], where: str) -> None:
    if len(values) < 2 or any(not a < b for a, b in pairwise(values)):
        raise CodecError(f"{where}: expected at least 2 ascending numbers")


def _place(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CodecError(f"{where}: expected the number of an input, got {str(value)[:40]!r}")
    return value

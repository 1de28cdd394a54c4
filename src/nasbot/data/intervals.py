"""How far predictions of numbers may be off: intervals that hold a stated share of the truth, by conformal prediction.

The residuals (truth - prediction) are of the validation rows, which the networks had not learned from when they said
it. An interval reaches from a low to a high quantile of them around the prediction, with the correction for few rows
that makes the share right on average for rows of the same kind (Vovk et al. 2005). Where there are rows enough the
quantiles are of the rows with predictions of a similar size: errors often grow with what is predicted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nasbot import _json
from nasbot._typing import Json
from nasbot.errors import CodecError, OptionError

MOST_BINS, ROWS_OF_A_BIN = 5, 200
MOST_KEPT = 501  # residuals of a bin, evenly spaced by rank
Bins = tuple["Bin", ...]


@dataclass(frozen=True)
class Bin:
    """Rows with predictions up to ``upper``: how many, and their residuals at evenly spaced ranks, ascending."""

    upper: float  # infinite for the last
    n: int
    residuals: tuple[float, ...]

    def quantiles(self, coverage: float) -> tuple[float, float]:
        """What to add to a prediction; OptionError where there are too few rows for this coverage."""
        tail = (1 - coverage) / 2
        low, high = math.floor(round((self.n + 1) * tail, 9)), math.ceil(round((self.n + 1) * (1 - tail), 9))
        if low < 1:
            most = 1 - 2 / (self.n + 1)
            raise OptionError(
                f"coverage: {self.n:,} validation rows are too few for {coverage:g}; expected at most {most:.3g}"
            )
        ranks = _ranks(self.n)
        at = np.searchsorted(ranks, low, side="right") - 1, np.searchsorted(ranks, high)  # the wider neighbours
        return self.residuals[at[0]], self.residuals[at[1]]

    def to_dict(self) -> dict[str, Json]:
        """As JSON, which has no infinity."""
        return {
            "upper": self.upper if math.isfinite(self.upper) else None,
            "n": self.n,
            "residuals": list(self.residuals),
        }


@dataclass(frozen=True)
class Intervals:
    """By output, the residuals of the validation rows."""

    outputs: tuple[Bins, ...]

    @classmethod
    def of(cls, truth: np.ndarray, predicted: np.ndarray) -> Intervals:
        """From (n, outputs) numbers in people's units."""
        return cls(tuple(_bins(truth[:, i], predicted[:, i]) for i in range(truth.shape[1])))

    def bounds(self, predicted: np.ndarray, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and highest values around predictions (n, outputs), each of the same shape.

        OptionError for a coverage that is no share, or that there are too few rows for.
        """
        if not 0 < coverage < 1:
            raise OptionError(f"coverage: expected a share between 0 and 1, such as 0.9, got {coverage!r}")
        low, high = (np.empty(predicted.shape) for _ in range(2))
        for i, bins in enumerate(self.outputs):
            added = np.array([part.quantiles(coverage) for part in bins])
            at = np.searchsorted([part.upper for part in bins[:-1]], predicted[:, i])
            low[:, i], high[:, i] = (predicted[:, i] + added[at, side] for side in (0, 1))
        return low, high

    def to_dict(self) -> list[Json]:
        """As JSON; ``from_dict`` gives an equal value."""
        return [[part.to_dict() for part in bins] for bins in self.outputs]

    @classmethod
    def from_dict(cls, record: object) -> Intervals:
        """What ``to_dict`` wrote; CodecError for anything else."""
        outputs = [_json.items(bins, "intervals") for bins in _json.items(record, "intervals")]
        read = tuple(tuple(_bin(part) for part in bins) for bins in outputs)
        for bins in read:
            uppers = [part.upper for part in bins]
            if not bins or uppers != sorted(uppers) or uppers[-1] != math.inf:
                raise CodecError("intervals: expected bins in the order of predictions, of which the last has no end")
        return cls(read)


def _ranks(n: int) -> np.ndarray:
    """Of the residuals that are kept, from 1 to n."""
    return np.unique(np.round(np.linspace(1, n, min(n, MOST_KEPT))).astype(np.int64))


def _bins(truth: np.ndarray, predicted: np.ndarray) -> Bins:
    n_bins = max(1, min(MOST_BINS, len(truth) // ROWS_OF_A_BIN))
    uppers = np.unique(np.quantile(predicted, np.linspace(0, 1, n_bins + 1)[1:-1]))
    at = np.searchsorted(uppers, predicted)
    found = []
    for i, upper in enumerate([*uppers.tolist(), math.inf]):
        residuals = np.sort((truth - predicted)[at == i])
        if len(residuals):
            found.append(Bin(upper, len(residuals), tuple(residuals[_ranks(len(residuals)) - 1].tolist())))
    return (*found[:-1], Bin(math.inf, found[-1].n, found[-1].residuals))


def _bin(record: object) -> Bin:
    fields: Any = _json.fields(record, "interval", ("upper", "n", "residuals"))
    upper = math.inf if fields["upper"] is None else _json.number(fields["upper"], "upper")
    n = _json.whole(fields["n"], "n", at_least=1)
    residuals = _json.numbers(fields["residuals"], "residuals")
    if n > 10**12 or len(residuals) != len(_ranks(n)) or list(residuals) != sorted(residuals):
        raise CodecError(f"residuals: expected {min(n, MOST_KEPT)} ascending numbers, got {len(residuals)}")
    return Bin(upper, n, residuals)

"""What a searcher believes of a network, for people: one ``Effect``, or a table of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbot._json import plain_json
from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate
from nasbot.trial import POOL

Value = float | int | str
N_NEAREST = 5  # evaluated networks shown beside a prediction
IN_NOTEBOOKS = 20  # changes that a cell shows


class Near(NamedTuple):
    """An evaluated network near the one in question."""

    trial: int
    d: float
    d_bar: float


def nearest(numbers: Sequence[int], d: NDArray[np.float64], d_bar: NDArray[np.float64]) -> tuple[Near, ...]:
    """The networks of these trials that are nearest by d_bar (weights, n), as the middle weight has it."""
    middle = len(d) // 2
    order = np.argsort(d_bar[middle], kind="stable")[:N_NEAREST]
    return tuple(Near(numbers[i], float(d[middle, i]), float(d_bar[middle, i])) for i in order)


class Effect(NamedTuple):
    """What is believed of one network: predicted value with an interval, EI, and what evaluated networks are near."""

    candidate: Candidate
    change: str  # in words, empty for a candidate as it is
    median: float  # in the objective's own units, as are lower and upper: 90 % of evaluations would lie between them
    lower: float
    upper: float
    mean: float  # in standardised units, larger being better, in which the belief is Gaussian; as are sd and log_ei
    sd: float  # of the value itself
    observed_sd: float  # of what an evaluation would give: with its noise
    log_ei: float
    feasible: float  # probability that it can be evaluated at all; 1 as long as no network has failed
    nearest: tuple[Near, ...]  # by d_bar

    @property
    def arch(self) -> Architecture:
        """The candidate's network."""
        return self.candidate.arch

    def to_dict(self) -> dict[str, Json]:
        """As plain data; a number that is not finite as null."""
        record = self._asdict()
        del record["candidate"]
        described = {"arch": self.arch.to_dict(), "params": dict(self.candidate.params)}
        return plain_json(record | {"nearest": [near._asdict() for near in self.nearest], **described})

    def __str__(self) -> str:
        lines = [
            f"{self.change or 'the network as it is'}",
            f"  predicted   {self.median:.6g}, 90 % between {self.lower:.6g} and {self.upper:.6g}",
            f"  belief      mean {self.mean:.3f}, sd {self.sd:.3f} (standardised)",
            f"  log EI      {self.log_ei:.3f}",
            f"  feasible    {self.feasible:.2f}",
        ]
        for i, near in enumerate(self.nearest):
            lines.append(
                f"  {'' if i else 'nearest':<11} trial {near.trial}: d = {near.d:.6g}, d_bar = {near.d_bar:.4f}"
            )
        return "\n".join(lines)


class SlicePoint(NamedTuple):
    """What an evaluation of the best candidate would give with this value of one param: 90 % within the interval."""

    value: Value
    unit: float  # where the value lies on the param's scale, from 0 to 1
    median: float
    lower: float
    upper: float


class ParamEffect(NamedTuple):
    """One param. Its importance is the share of correlation that is lost from one end of its range to the other."""

    name: str
    importance: float  # 1 - exp(-l), the median of the posterior samples; 0: it has no say
    importance_low: float  # 90 % of the samples lie between these two
    importance_high: float
    is_log: bool
    is_choice: bool
    at: Value | None  # of the best candidate; None where it is inactive there
    points: tuple[SlicePoint, ...]  # along its range, all else as the best candidate has it; none where inactive


class Start(NamedTuple):
    """A network chosen before any was evaluated, as those of the pool are: nothing was believed of it."""

    candidate: Candidate
    searcher: str  # what chose it
    value: float | None  # what it gave; None where it has no value yet
    rank: int | None  # among the completed trials, 1 the best
    n_completed: int
    children: tuple[int, ...]  # trials that were made from it

    @property
    def arch(self) -> Architecture:
        """The candidate's network."""
        return self.candidate.arch

    def to_dict(self) -> dict[str, Json]:
        """As plain data."""
        record = self._asdict()
        del record["candidate"]
        return plain_json({**record, "arch": self.arch.to_dict(), "params": dict(self.candidate.params)})

    def __str__(self) -> str:
        chosen = "a starting network, part of the pool" if self.searcher == POOL else f"chosen by {self.searcher}"
        lines = [f"{chosen}, before any network was evaluated", "  predicted   nothing, since nothing was known yet"]
        if self.value is not None:
            lines.append(f"  got         {self.value:.6g}, rank {self.rank} of {self.n_completed} completed trials")
        children = ", ".join(map(str, self.children))
        lines.append(f"  led to      {f'trial {children}, made from it' if children else 'no other trial so far'}")
        return "\n".join(lines)


class Effects(tuple[Effect, ...]):
    """Effects of several changes, the most promising first; ``str`` is a table."""

    __slots__ = ()

    def top(self, n: int) -> Effects:
        """The first ``n``."""
        return Effects(self[:n])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} changes; print() shows them, .top(10) the first ten>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first of them."""
        more = f"\n… and {len(self) - IN_NOTEBOOKS:,} more" if len(self) > IN_NOTEBOOKS else ""
        return f"<pre>{escape(str(self.top(IN_NOTEBOOKS)) + more)}</pre>"

    def __str__(self) -> str:
        rows = [("change", "median", "lower", "upper", "sd", "log EI", "nearest"), *map(_cells, self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(_aligned(row, widths) for row in rows)


def _cells(effect: Effect) -> tuple[str, ...]:
    near = effect.nearest[0] if effect.nearest else Near(-1, math.nan, math.nan)
    numbers = (f"{x:.4g}" for x in (effect.median, effect.lower, effect.upper, effect.sd, effect.log_ei))
    return (effect.change, *numbers, f"{near.trial} ({near.d_bar:.3f})" if effect.nearest else "")


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    """The first column to the left, numbers to the right."""
    first, *others = (
        cell.ljust(width) if i == 0 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join((first, *others))

"""Which trainings to end early: bars that a training must reach at certain steps, computed when it is begun.

A pacer is asked once for each trial, with the history as it was when the trial was chosen. Its bars travel with the
job, and ``trial.report`` compares in the worker: a training that falls behind ends itself, as ``Stopped``. The driver
need not be asked, so every executor can do it, and a resumed study asks the same question and gets the same bars.

``nasbot.testing.pacer_conformance`` checks the promises below on any implementation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from nasbot._json import plain_json
from nasbot._ranks import rank_correlation
from nasbot._typing import Json
from nasbot.errors import OptionError
from nasbot.trial import Direction, History, Point, Stopped, Trial

AGREEMENT = 0.3  # rank correlation of values at a step with those at the end, below which nobody is stopped there
MAX_COMPARED = 500  # the last so many trainings


@dataclass(frozen=True, kw_only=True)
class Bar:
    """What a training must have reached when it first reports at this step or a later one."""

    step: int
    value: float  # in the objective's own sense: a training that has reached less than this is stopped
    direction: Direction
    share: float = 1.0  # of the steps of a whole training
    gain: float = 0.0  # what others gained from there to their ends; added to what a stopped one had reached
    others: tuple[float, ...] = ()  # what they had reached there

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and math.isfinite(self.gain) and 0 < self.share <= 1):
            raise OptionError(
                f"bar at step {self.step}: expected finite numbers and a share in (0, 1], got value {self.value}, "
                f"gain {self.gain}, share {self.share}"
            )

    def stopped(self, step: int, best: float) -> Stopped | None:
        """How a training ends that has reached ``best`` by this step; None: it goes on."""
        turned = self.direction.turned
        if step < self.step or turned(best) >= turned(self.value):
            return None
        n_better = sum(turned(other) > turned(best) for other in self.others)
        return Stopped(
            step=step,
            value=best,
            bar=self.value,
            expected=best + self.gain if math.isfinite(best + self.gain) else best,
            share=self.share,
            place=n_better + 1,
            among=len(self.others) + 1,
        )


class Pacer(Protocol):
    """Says how far a training must have come at which steps. Every implementation promises:

    - Stateless and deterministic: bars are a function of its settings, the history and the trial. No clock, no chance.
    - Merciful: none for a trial that no searcher proposed. Pools, which have the baseline, finals and what people ask
      for are trained to their ends.
    - In order: bars are sorted by step, and their values are finite.
    - Total: any history is answered, also an empty one, one in which all failed and one without a single curve.
    """

    @property
    def name(self) -> str:
        """A short name; "none" is that of the pacer that stops nothing."""
        ...

    def settings(self) -> Mapping[str, Json]:
        """Everything its bars depend on, as plain data; compared when a study is resumed."""
        ...

    def bars(self, history: History, trial: Trial) -> Sequence[Bar]:
        """The bars for a trial that was chosen after this history."""
        ...


@dataclass(frozen=True)
class NoPacer:
    """Stops nothing."""

    name = "none"

    def settings(self) -> Mapping[str, Json]:
        """None."""
        return {}

    def bars(self, history: History, trial: Trial) -> Sequence[Bar]:
        """None."""
        return ()


@dataclass(frozen=True, kw_only=True)
class MedianPacer:
    """Stops a training that is worse, at a share of its steps, than the trainings before it were there.

    Only trainings of the same fidelity are compared, each by the best it had reported until then.

    Args:
        shares: of a training's steps, at which it is compared.
        quantile: the share of trainings, from the worst, that falls below the bar; 0.5 is the median.
        least: completed trainings of its fidelity before the first may be stopped. By default more than an ensemble
            takes, so that enough whole trainings remain for it.

    No bar is set at a step where values say little about the ends: where the rank correlation of the two, over the
    completed trainings, is below 0.3. So an objective that reports something else than its value is left alone.
    """

    shares: tuple[float, ...] = (1 / 3, 2 / 3)
    quantile: float = 0.5
    least: int = 12
    name = "median"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", tuple(map(float, self.shares)))
        ascending = (0.0, *self.shares, 1.0)
        if not self.shares or any(not low < high for low, high in pairwise(ascending)):
            raise OptionError(f"shares: expected ascending numbers between 0 and 1, got {self.shares}")
        if not 0 < self.quantile < 1:
            raise OptionError(f"quantile: expected a number between 0 and 1, got {self.quantile}")
        if type(self.least) is not int or self.least < 2:
            raise OptionError(f"least: expected a whole number of trainings >= 2, got {self.least!r}")

    def settings(self) -> Mapping[str, Json]:
        """Its options."""
        return plain_json(asdict(self))

    def bars(self, history: History, trial: Trial) -> Sequence[Bar]:
        """One for each share at which values say something about the ends."""
        if not trial.origin.was_proposed:
            return ()
        alike = [t for t in history.evaluated.trials if t.curve and math.isclose(t.fidelity, trial.fidelity)]
        alike = alike[-MAX_COMPARED:]
        completed = [t for t in alike if t.value is not None]
        if len(completed) < self.least:
            return ()
        length = float(np.median([t.curve[-1].step for t in completed]))
        found = (self._bar(math.ceil(share * length), share, alike, history.direction) for share in self.shares)
        return tuple(bar for bar in found if bar is not None)

    def _bar(self, step: int, share: float, alike: Sequence[Trial], direction: Direction) -> Bar | None:
        reached = {t.number: best_until(t.curve, step, direction) for t in alike}
        # One that was stopped earlier would have to be guessed; one that completed earlier had no better to come.
        seen = [t for t in alike if t.value is not None or t.curve[-1].step >= step]
        there = {t.number: value for t in seen if (value := reached[t.number]) is not None}
        ends = {t.number: t.value for t in seen if t.value is not None and t.number in there}
        at, end = (np.array([values[number] for number in ends]) for values in (there, ends))
        if len(ends) < self.least or not rank_correlation(at, end) >= AGREEMENT:
            return None
        merits = [direction.turned(value) for value in there.values()]
        bar = direction.turned(float(np.quantile(merits, self.quantile)))
        others = tuple(there.values())
        gain = float(np.median(end - at))
        return Bar(step=step, value=bar, direction=direction, share=share, gain=gain, others=others)


PACERS: Mapping[str, type[NoPacer] | type[MedianPacer]] = {"none": NoPacer, "median": MedianPacer}


def pacer_of(given: Pacer | str | None) -> Pacer:
    """The pacer itself, or that of this name; OptionError for another name."""
    if given is None:
        return NoPacer()
    if not isinstance(given, str):
        if not callable(getattr(given, "bars", None)):
            raise OptionError(f"pacer: expected {' or '.join(PACERS)}, or an object with bars(), got {given!r:.60}")
        return given
    if given not in PACERS:
        raise OptionError(f"pacer: expected {' or '.join(PACERS)}, got {given[:40]!r}")
    return PACERS[given]()


def best_until(curve: Sequence[Point], step: int, direction: Direction) -> float | None:
    """The best value reported until this step; None where nothing was."""
    values = (point.value for point in curve if point.step <= step)
    return max(values, key=direction.turned, default=None)

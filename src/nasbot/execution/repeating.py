"""An objective that is looked at several times: k evaluations of each candidate, with k seeds, make one trial.

Its value is their mean, whose noise has a variance k times smaller; the belief needs no word of it, for it finds the
noise by itself. The details keep the values, their standard deviation, and what one more look would be worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import mean, stdev

import numpy as np

from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.candidate import Params
from nasbot.errors import OptionError
from nasbot.execution.base import Objective
from nasbot.execution.evaluation import LiveTrial, called, outcome_of
from nasbot.trial import Outcome, Scored


class Repeated:
    """``objective``, evaluated ``repeats`` times for each trial; the first look is what it would be alone."""

    def __init__(self, objective: Objective, repeats: int) -> None:
        if type(repeats) is not int or repeats < 1:
            raise OptionError(f"repeats: expected a whole number >= 1, got {repeats!r}")
        self.objective = objective
        self.repeats = repeats

    def __call__(self, arch: Architecture, params: Params, trial: LiveTrial) -> Outcome:
        """The mean of all looks; a look that fails fails the trial."""
        values: list[float] = []
        details: Mapping[str, Json] = {}
        for look in range(self.repeats):
            outcome = outcome_of(called(self.objective, _Look(trial, look) if look else trial))
            if not isinstance(outcome, Scored):
                return outcome
            values.append(outcome.value)
            details = details or outcome.details
        return Scored(mean(values), {**details, **repeats_shown(values)})


class _Look(LiveTrial):
    """A trial as its second look or a later one sees it: with a seed of its own; the first one draws the curve."""

    def __init__(self, trial: LiveTrial, look: int) -> None:
        self.__dict__.update(trial.__dict__)
        self.seed = int(np.random.SeedSequence([trial.seed, look]).generate_state(1)[0])

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator that is the same whenever and wherever this look is taken."""
        return np.random.default_rng(self.seed)

    def report(self, step: int, value: float) -> None:
        """Nothing: a trial has one curve."""


def repeats_shown(values: list[float]) -> dict[str, Json]:
    """The values of a trial's looks, their spread, the standard error of their mean and that after one look more."""
    if len(values) < 2:
        return {}
    sd = stdev(values)
    n = len(values)
    after = sd / math.sqrt(n + 1)
    return {"repeats": {"values": [*values], "sd": sd, "se": sd / math.sqrt(n), "se_after_one_more": after}}

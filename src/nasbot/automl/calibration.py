"""How long to train: this machine's speed and the data's appetite, from two short trainings of the baseline.

A long cosine is wasted on data that are learned, and over-learned, in a few hundred steps; a short one on data that go
on teaching for thousands. The clock decides only how many steps fit; it is asked once, and the study keeps the answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nasbot.architecture import Architecture

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.training.recipes import Recipe

WARM_UP_STEPS, TIMED_STEPS, TIMINGS = 20, 40, 3
RUNGS = (1 / 9, 1 / 3)
# The longer training must be better by this much to make a still longer one likely to be.
CLEARLY = 0.02


@dataclass(frozen=True)
class Calibration:
    """What was found out, for people; ``n_steps`` is the length of a full training."""

    n_steps: int
    seconds_per_step: float
    losses: tuple[tuple[int, float], ...]  # of the baseline, by the number of steps
    seconds: float  # that finding out took


def calibrated(
    arch: Architecture, data: Dataset, recipe: Recipe, *, seconds: float, most_steps: int, least_steps: int, seed: int
) -> Calibration:
    """The length of a full training of about ``seconds``, or of less where the data have no use for it."""
    from nasbot.training.objective import computing_threads

    begun = time.monotonic()
    with computing_threads(1):  # as a worker has
        return _calibrated(arch, data, recipe, seconds, most_steps, least_steps, seed, begun)


def _calibrated(
    arch: Architecture,
    data: Dataset,
    recipe: Recipe,
    seconds: float,
    most_steps: int,
    least_steps: int,
    seed: int,
    begun: float,
) -> Calibration:
    from nasbot.training.loop import train

    per_step = train(arch, data, recipe.changed(n_steps=WARM_UP_STEPS), seed=seed).seconds / WARM_UP_STEPS
    if per_step * TIMED_STEPS * TIMINGS < seconds:  # else there is no time for timings, either
        # The quickest of a few: what else the machine was doing meanwhile must not shorten a whole search.
        timed = [train(arch, data, recipe.changed(n_steps=TIMED_STEPS), seed=seed).seconds for _ in range(TIMINGS)]
        per_step = min(timed) / TIMED_STEPS
    longest = _round(min(max(seconds / per_step, least_steps), most_steps))
    lengths = [max(least_steps, round(share * longest)) for share in RUNGS]
    if lengths[0] >= lengths[1]:
        return Calibration(longest, per_step, (), time.monotonic() - begun)
    short, long = (train(arch, data, recipe.changed(n_steps=n), seed=seed).loss for n in lengths)
    if long < (1 - CLEARLY) * short:
        n_steps = longest
    elif long <= short:
        n_steps = lengths[1]
    else:
        n_steps = lengths[0]
    losses = tuple(zip(lengths, (short, long), strict=True))
    return Calibration(_round(n_steps), per_step, losses, time.monotonic() - begun)


def _round(n: float) -> int:
    """To two digits: what nobody could tell apart is the same."""
    return max(1, int(float(f"{n:.2g}")))

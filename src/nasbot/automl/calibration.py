"""How to train these data: this machine's speed, the data's appetite and symmetry, by short trainings of the baseline.

A long cosine is wasted on data that are learned, and over-learned, in a few hundred steps; a short one on data that go
on teaching for thousands. The clock decides only how many steps fit; it is asked once, and the study keeps the answer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nasbot.architecture import Architecture

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset
    from nasbot.training.recipes import Recipe

WARM_UP_STEPS, TIMINGS = 20, 3
LENGTHS = (10, 70)  # steps of trainings that are timed
TIMED_STEPS = sum(LENGTHS)
FACTOR = 3  # between the lengths that are tried
CLEARLY = 0.02  # by how much a longer training must be better to make a still longer one likely to be
LONGEST_BEYOND = 0.5  # powers of FACTOR by which the best length may lie beyond the longest that was tried
MIRROR_STEPS = 200  # of a training after which mirrored images are asked about
MIRROR_LOSS = 0.1  # the share of what was learned that may be lost on mirrored images


@dataclass(frozen=True)
class Calibration:
    """What was found out, for people; ``n_steps`` is the length of a full training."""

    n_steps: int
    seconds_per_step: float
    losses: tuple[tuple[int, float], ...]  # of the baseline, by the number of steps, with the best targets
    seconds: float  # that finding out took
    best_targets: int | None = None  # those of the other targets with which a third of a training came out best


def calibrated(
    arch: Architecture,
    data: Dataset,
    recipe: Recipe,
    *,
    seconds: float,
    most_steps: int,
    least_steps: int,
    tries_full: bool,
    crowding: float = 1.0,
    targets: Sequence[np.ndarray] = (),
    seed: int,
) -> Calibration:
    """The length of a full training of about ``seconds``, or of less where the data have no use for it.

    A ninth and a third of that length are tried; with ``tries_full`` the whole too, beside them. ``crowding`` is how
    much longer a step takes when all workers are at it. Where the machine is so busy that a trial takes longer than a
    full training should, or with ``tries_full`` than two, what it took for a step says the length. ``targets`` are
    others than the truth, of the training rows: whether some of these are better to learn from is tried with the
    third, and the other lengths then with the best.
    """
    from nasbot.training.loop import Trained, train
    from nasbot.training.objective import computing_threads

    def trained(n_steps: int, learned: np.ndarray | None = None) -> Trained:
        limit = seconds * (2 if tries_full else 1)
        return train(arch, data, recipe.changed(n_steps=n_steps), seed=seed, seconds=limit, targets=learned)

    def seconds_of(n_steps: int) -> float:
        started = time.perf_counter()
        train(arch, data, recipe.changed(n_steps=n_steps, check_every=n_steps), seed=seed)
        return time.perf_counter() - started

    begun = time.monotonic()
    with computing_threads(1):  # as a worker has
        per_step = seconds_of(WARM_UP_STEPS) / WARM_UP_STEPS
        if per_step * TIMED_STEPS * TIMINGS < seconds:  # else there is no time for timings, either
            # The quickest of a few: what else the machine was doing meanwhile must not shorten a whole search. What a
            # training costs whatever its length (building, the validation at its end) is in both and drops out.
            short, long = (min(seconds_of(n) for _ in range(TIMINGS)) for n in LENGTHS)
            per_step = max(long - short, 0.1 * long) / (LENGTHS[1] - LENGTHS[0])
        longest = min(max(seconds / (crowding * per_step), least_steps), most_steps)
        lengths = [round(longest / FACTOR**i) for i in ((2, 1, 0) if tries_full else (2, 1))]
        if lengths[0] < least_steps:  # there is no room to choose in
            return Calibration(_round(longest), per_step, (), time.monotonic() - begun)
        with ThreadPoolExecutor(2) as two:  # PyTorch lets both compute
            learned, best, known = (None, *targets), 0, dict[int, Trained]()
            if targets:
                thirds = list(two.map(partial(trained, lengths[1]), learned))
                best = int(np.argmin([third.loss for third in thirds]))
                known[lengths[1]] = thirds[best]
            others = [n for n in reversed(lengths) if n not in known]  # the longest first, the others beside it
            known |= zip(others, two.map(partial(trained, learned=learned[best]), others), strict=True)
    if any(one.stopped == "time" for one in known.values()):
        per_step = max(one.seconds / one.steps for one in known.values())
        longest = min(max(seconds / per_step, least_steps), most_steps)
        return Calibration(_round(longest), per_step, (), time.monotonic() - begun)
    losses = [known[n].loss for n in lengths]
    n_steps = min(_best_length(lengths, losses), longest)
    losses_of = tuple(zip(lengths, losses, strict=True))
    return Calibration(_round(n_steps), per_step, losses_of, time.monotonic() - begun, best - 1 if best else None)


def means_the_same_mirrored(arch: Architecture, data: Dataset, recipe: Recipe, *, seconds: float, seed: int) -> bool:
    """Whether images may be mirrored: a network that has never seen mirrored ones knows them nearly as well.

    So it is with photographs, and not with digits. ``seconds`` end a training that would take longer.
    """
    from nasbot.training.loop import train
    from nasbot.training.objective import computing_threads
    from nasbot.training.predictions import metrics_of

    plain = recipe.changed(n_steps=MIRROR_STEPS, check_every=MIRROR_STEPS, augmentation="none")
    mirrored = replace(data.valid, X=np.ascontiguousarray(data.valid.X[..., ::-1]))
    with computing_threads(1):
        network = train(arch, data, plain, seed=seed, seconds=seconds).network
        loss, loss_mirrored = (metrics_of(network, data, part)["log_loss"] for part in (data.valid, mirrored))
    return loss_mirrored - loss < MIRROR_LOSS * (_loss_of_a_constant(data) - loss)


def _loss_of_a_constant(data: Dataset) -> float:
    """The loss on the validation rows of knowing how frequent the classes are, and nothing else."""
    shares = (np.bincount(data.train.y, minlength=data.n_outputs) + 1) / (len(data.train) + data.n_outputs)
    return float(-np.log(shares[data.valid.y]).mean())


def _best_length(lengths: list[int], losses: list[float]) -> float:
    """Of three the lowest point of a parabola through them; of two the longer, and beyond it if that was worth it."""
    if len(losses) == 2:
        if losses[1] < (1 - CLEARLY) * losses[0]:
            return float(lengths[1] * FACTOR)
        return float(lengths[1] if losses[1] <= losses[0] else lengths[0])
    first, second, third = losses
    bend = 0.5 * (third - 2 * second + first)
    if bend <= 0:
        return float(lengths[2] if third < first else lengths[0])
    place = -(second - first - bend) / (2 * bend)
    return float(lengths[0] * FACTOR ** min(max(place, 0.0), 2.0 + LONGEST_BEYOND))


def _round(n: float) -> int:
    """To two digits: what nobody could tell apart is the same."""
    return max(1, int(float(f"{n:.2g}")))

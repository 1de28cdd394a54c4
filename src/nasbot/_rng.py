"""The only place where a seed becomes a stream of random numbers.

A stream is addressed by (seed, trial, role). The order in which trials arrive, the process they run in and what other
trials drew change nothing about it, so a study that is resumed or replayed draws what it would have drawn.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from nasbot.errors import OptionError

MAX_SEED = 2**64 - 1  # what fits a line of text and every library's idea of a seed


class Role(IntEnum):
    """What a stream is for. The numbers are part of every address: never renumber, only append."""

    PROPOSAL = 0  # choosing the network of a trial
    OBJECTIVE = 1  # evaluating it: initial weights, batches, noise
    DURATION = 2  # how long it takes on a simulated clock
    EXPERIMENT = 3  # benchmarks and figures
    SPLIT = 4  # which rows are for training, validation and test
    WEIGHTS = 5  # what a network's weights begin as
    BATCHES = 6  # the order in which training shows the samples
    AUGMENTATION = 7  # how training changes and mixes them


def stream(seed: int, trial: int, role: Role) -> np.random.Generator:
    """The generator for one purpose in one trial; equal arguments give equal streams, in any process."""
    checked_seed(seed)
    if trial < 0:
        raise OptionError(f"trial: expected a trial number >= 0, got {trial}")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(trial, int(role))))


def derived_seed(seed: int, trial: int, role: Role) -> int:
    """A seed for libraries that want a whole number (torch): the first 63 bits of the stream of the same address."""
    return int(stream(seed, trial, role).integers(2**63))


def checked_seed(seed: object) -> int:
    """The seed, if it is a whole number between 0 and 2^64 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= MAX_SEED:
        raise OptionError(f"seed: expected a whole number between 0 and 2^64 - 1, got {str(seed)[:40]!r}")
    return int(seed)

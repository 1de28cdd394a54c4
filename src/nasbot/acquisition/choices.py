"""Acquisitions as objects: what a network is worth evaluating for. Write your own by deriving from `Acquisition`.

@dataclass(frozen=True)
class Mean(Acquisition):
    def __call__(self, outlook, *, rng):
        return outlook.mean.mean(axis=0)

NASBOT(space=space, acquisition=Mean())
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from nasbot._typing import Json
from nasbot.acquisition.functions import (
    averaged,
    expected_improvement,
    log_averaged,
    log_expected_improvement,
    uniform,
    upper_confidence_bound,
)
from nasbot.errors import OptionError

Floats = NDArray[np.float64]
N_DRAWS = 512  # joint ones, by which candidates for many workers are compared


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is believed of a batch of m networks, in standardised units, by each of s hyper-parameter samples."""

    mean: Floats  # (s, m)
    sd: Floats  # (s, m), without noise
    best_value: float | Floats  # the incumbent; of each sample, (s, 1), where its noise is taken out
    n_evaluated: int
    sample: int  # one of the s, drawn at random and the same for a whole proposal
    covariance: Callable[[], Floats]  # (s, m, m) on demand: it takes the distances within the batch


class Acquisition:
    """The utility of networks. A frozen value: equal ones decide equally, and all randomness comes from ``rng``."""

    def __call__(self, outlook: Outlook, *, rng: np.random.Generator) -> Floats:
        """Utilities (m,), finite, the larger the better."""
        raise NotImplementedError

    def weighed(self, utility: Floats, log_feasible: Floats) -> Floats:
        """Utilities (m,) of networks that may fail, from log P(feasible) (m,): lowered by as many units."""
        return utility + log_feasible


@dataclass(frozen=True)
class LogEI(Acquisition):
    """The logarithm of expected improvement, averaged over samples before taking it."""

    def __call__(self, outlook: Outlook, *, rng: np.random.Generator) -> Floats:
        """log EI."""
        return log_averaged(log_expected_improvement(outlook.mean, outlook.sd, outlook.best_value))


@dataclass(frozen=True)
class EI(Acquisition):
    """Expected improvement, the paper's choice; 0 where it underflows."""

    def __call__(self, outlook: Outlook, *, rng: np.random.Generator) -> Floats:
        """EI."""
        return averaged(expected_improvement(outlook.mean, outlook.sd, outlook.best_value))

    def weighed(self, utility: Floats, log_feasible: Floats) -> Floats:
        """An improvement counts by its probability of happening at all."""
        return utility * np.exp(log_feasible)


@dataclass(frozen=True)
class UCB(Acquisition):
    """Upper confidence bound, mean + sqrt(beta) sd; without ``beta`` 0.5 log(2 n + 1) after n evaluations."""

    beta: float | None = None

    def __post_init__(self) -> None:
        beta = self.beta
        if beta is not None and not (type(beta) in (int, float) and 0 <= beta < np.inf):
            raise OptionError(f"acquisition: beta of UCB must be a finite number >= 0 or None, got {str(beta)[:40]!r}")

    def __call__(self, outlook: Outlook, *, rng: np.random.Generator) -> Floats:
        """The bound."""
        if self.beta is None:
            return averaged(upper_confidence_bound(outlook.mean, outlook.sd, outlook.n_evaluated))
        return averaged(outlook.mean + math.sqrt(self.beta) * outlook.sd)


@dataclass(frozen=True)
class Thompson(Acquisition):
    """Thompson sampling: one hyper-parameter sample for a proposal, one joint draw from its belief for each batch."""

    def __call__(self, outlook: Outlook, *, rng: np.random.Generator) -> Floats:
        """A draw of the objective at the networks of the batch."""
        root = _root(outlook.covariance()[outlook.sample])
        draw: Floats = outlook.mean[outlook.sample] + root @ rng.standard_normal(len(root))
        return draw


def improving_choices(
    mean: Floats, covariance: Floats, added: Floats, best_value: float | Floats, n: int, *, rng: np.random.Generator
) -> list[int]:
    """Which n of m candidates to evaluate at once: one by one that which adds most to what they gain together.

    The gain is the expected improvement of the best of them over ``best_value``, by joint draws from mean (s, m) and
    covariance (s, m, m) of s hyper-parameter samples; what a candidate adds counts exp(``added``) (m,) times. Of
    candidates that are believed alike a second one adds nothing, which is what makes the choices diverse. Where no draw
    gains any more, the others are each the best left under a draw of its own.
    """
    n_each = math.ceil(N_DRAWS / len(mean))
    means = zip(mean, covariance, strict=True)
    drawn = np.concatenate([at + rng.standard_normal((n_each, len(at))) @ _root(about).T for at, about in means])
    reached = np.repeat(np.broadcast_to(np.ravel(best_value), len(mean)), n_each)
    weights, added = np.exp(added), np.maximum(added, -1e300)  # what cannot be comes last, and only once
    left = np.ones(mean.shape[1], dtype=bool)
    chosen: list[int] = []
    for draw in itertools.cycle(drawn[rng.permutation(len(drawn))]):
        if len(chosen) >= min(n, len(left)):
            break
        adds = np.maximum(drawn - reached[:, None], 0.0).mean(axis=0) * weights
        best = int(np.where(left, adds, -np.inf).argmax())
        if adds[best] <= 0.0:
            best = int(np.where(left, draw + added, -np.inf).argmax())
        left[best] = False
        chosen.append(best)
        reached = np.maximum(reached, drawn[:, best])
    return chosen


def _root(covariance: Floats) -> Floats:
    """R with R Rᵀ the covariance, what is negative in it taken as 0: eq. (7) need not be positive definite."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    root: Floats = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    return root


@dataclass(frozen=True)
class Uniform(Acquisition):
    """Uniform(0, 1) whatever is believed."""

    def __call__(self, outlook: Outlook, *, rng: np.random.Generator) -> Floats:
        """Random numbers."""
        return uniform(outlook.mean[0], rng=rng)


ACQUISITIONS: Mapping[str, type[Acquisition]] = {
    "log-ei": LogEI,
    "ei": EI,
    "ucb": UCB,
    "thompson": Thompson,
    "uniform": Uniform,
}


def acquisition_of(value: object) -> Acquisition:
    """An acquisition itself, by its name, or by its `description`; OptionError lists the names."""
    if isinstance(value, Acquisition):
        return value
    options = dict(value) if isinstance(value, Mapping) else {}
    name = options.pop("type", None) if options else value
    kind = ACQUISITIONS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise OptionError(f"acquisition: expected one of {', '.join(ACQUISITIONS)}, got {str(value)[:40]!r}")
    try:
        return kind(**options)
    except TypeError:
        raise OptionError(f"acquisition: {name} has no option {', '.join(map(str, options))[:40]}") from None


def description(acquisition: Acquisition) -> Json:
    """A built-in one as plain data: its name, with its options where they are not the defaults; None for others."""
    names = [name for name, kind in ACQUISITIONS.items() if type(acquisition) is kind]
    if not names:
        return None
    given = {entry.name: getattr(acquisition, entry.name) for entry in fields(acquisition)}  # type: ignore[arg-type]
    changed = {name: value for name, value in given.items() if value is not None}
    return {"type": names[0], **changed} if changed else names[0]

"""The mutation operators of Appendix B.2: one step, k steps, and a random number of steps.

``mutate_once`` applies one modifier picked at random, ``mutate`` does so k times, and ``MutationOperator``, the
compound operator, picks k with the probabilities that the paper calls the analogue of a Gaussian's width.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, count

import numpy as np

from nasbot.architecture import Architecture
from nasbot.architecture.resources import check_whole
from nasbot.architecture.space import SearchSpace
from nasbot.errors import OptionError
from nasbot.evolution.modifier import Edit, Rejected, pick
from nasbot.evolution.modifiers import MODIFIERS, AnyModifier, modifiers_of

STEP_PROBABILITIES = (0.5, 0.25, 0.125, 0.075, 0.05)  # of 1, ..., 5 steps
# Modifications tried for one step. The release tries 20; a space in which only swaps are legal, with all nine
# modifiers picked from, would still fail one step in ten then, and one in 360 with 50.
MAX_TRIES = 50


@dataclass(frozen=True)
class Step:
    """One modification in the making of a network: by which modifier, and in words."""

    modifier: str
    description: str

    def __str__(self) -> str:
        return f"{self.modifier}: {self.description}"


@dataclass(frozen=True)
class Mutation:
    """A network, the one it was made from, and how; layer numbers in a step are those of the network before it."""

    arch: Architecture
    parent: Architecture
    steps: tuple[Step, ...]


class MutationOperator:
    """The compound operator: ``operator(arch, rng=rng)`` is a Mutation of one to five steps that stays in the space.

    ``modifiers`` are picked from with equal probability; one that stands there twice is twice as likely. Every step
    leads to a network in the space; a modification that would not is rejected and another one tried, and ``rejections``
    counts them by modifier and reason (the rule or the limit broken). Where one step finds nothing in ``max_tries``,
    the mutation ends with the steps it has; where it has none, it is Rejected.
    """

    def __init__(
        self,
        space: SearchSpace,
        modifiers: Iterable[str | AnyModifier] = tuple(MODIFIERS),
        step_probabilities: Sequence[float] = STEP_PROBABILITIES,
        *,
        max_tries: int = MAX_TRIES,
    ) -> None:
        self.space = space
        self.modifiers = modifiers_of(modifiers)
        self.step_probabilities = _checked_probabilities("step_probabilities", step_probabilities)
        check_whole("max_tries", max_tries)
        self.max_tries = max_tries
        self.rejections: Counter[tuple[str, str]] = Counter()
        self._until_steps = tuple(accumulate(self.step_probabilities))

    def __call__(self, arch: Architecture, *, rng: np.random.Generator) -> Mutation | Rejected:
        return self.mutate(arch, 1 + _drawn(self._until_steps, rng), rng=rng)

    def mutate(self, arch: Architecture, k: int, *, rng: np.random.Generator) -> Mutation | Rejected:
        """The k-step operator."""
        check_whole("k", k)
        steps: list[Step] = []
        current = arch
        for _ in range(k):
            edit = self._step(current, rng)
            if isinstance(edit, Rejected):
                if not steps:
                    return edit
                break
            steps.append(Step(edit.modifier, edit.description))
            current = edit.arch
        return Mutation(current, arch, tuple(steps))

    def _step(self, arch: Architecture, rng: np.random.Generator) -> Edit | Rejected:
        """One modification that leads into the space; the last rejection where none of ``max_tries`` does."""
        for n_tries in count(1):
            edit = pick(self.modifiers, rng).edit(arch, rng=rng)
            if isinstance(edit, Edit):
                if edit.arch in self.space:
                    return edit
                edit = outside(edit, self.space)
            self.rejections[edit.modifier, edit.reason] += 1
            if n_tries == self.max_tries:
                break
        return edit


def mutate_once(
    arch: Architecture,
    space: SearchSpace,
    *,
    rng: np.random.Generator,
    modifiers: Iterable[str | AnyModifier] = tuple(MODIFIERS),
) -> Mutation | Rejected:
    """The one-step operator: one modification picked at random that leads to another network of the space."""
    return mutate(arch, 1, space, rng=rng, modifiers=modifiers)


def mutate(
    arch: Architecture,
    k: int,
    space: SearchSpace,
    *,
    rng: np.random.Generator,
    modifiers: Iterable[str | AnyModifier] = tuple(MODIFIERS),
) -> Mutation | Rejected:
    """The k-step operator: k modifications one after the other, every network on the way in the space."""
    return MutationOperator(space, modifiers).mutate(arch, k, rng=rng)


def outside(edit: Edit, space: SearchSpace) -> Rejected:
    """The rejection of an edit that leads out of the space, by the first limit it breaks."""
    violation = space.violations(edit.arch)[0]
    return Rejected(edit.modifier, violation.rule, f"{edit.description}: {violation.message}")


def _checked_probabilities(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Finite, not negative and not all zero; they need not sum to one."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any() or not array.sum() > 0:
        raise OptionError(f"{name}: expected numbers >= 0 that are not all 0, got {list(values)!r}")
    return tuple(float(value) for value in array)


def _drawn(cumulative: Sequence[float], rng: np.random.Generator) -> int:
    """An index, each as likely as its share of the weights."""
    point = rng.random() * cumulative[-1]
    return min(bisect_right(cumulative, point), len(cumulative) - 1)

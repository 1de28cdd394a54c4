"""Looking for the network of highest utility (Appendix B.2), always in batches: utilities of many networks at once.

``by_evolution`` is the paper's way: selection and mutation from the initial pool, n_EA evaluations of the acquisition
in all. ``by_evolution_and_climbing``, the default, also starts from the best networks evaluated, and then climbs over
one-step edits of the best it found; deciding is cheap here, so it may look at more networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from nasbot.architecture import Architecture
from nasbot.evolution import Edit, Evolution, MutationOperator, Step, mutation_schedule, sample_edits

Floats = NDArray[np.float64]
Utility = Callable[[Sequence[Architecture]], Floats]

CLIMBERS = 3  # networks from which climbing starts, of those evaluated and of those found by evolution each
EDITS_PER_STEP = 16  # one-step edits looked at around each climber before it moves
SHORT_LIST = 32  # of those found by a rough utility, how many are looked at exactly


@dataclass(frozen=True)
class Found:
    """A network not yet known, its utility, and how it came about: from ``origin`` by ``steps``."""

    arch: Architecture
    utility: float
    origin: Architecture
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Maximum:
    """The best network found, and how many utilities it took; ``by_phase`` is the best after each phase."""

    best: Found | None
    n_evaluations: int
    by_phase: tuple[tuple[str, float], ...]


class _Candidates:
    """All networks looked at in one maximisation; knows which may be proposed."""

    def __init__(self, utility: Utility, seen: Collection[str]) -> None:
        self._utility, self._seen = utility, seen
        self.found: dict[Architecture, Found] = {}
        self.n_evaluations = 0

    def look_at(self, origins: Iterable[tuple[Architecture, Architecture, tuple[Step, ...]]]) -> Floats:
        """Utilities of (network, its parent, steps from it) and remember them with their whole lineage."""
        entries = list(origins)
        utilities = self._utility([arch for arch, _, _ in entries])
        self.n_evaluations += len(entries)
        for (arch, parent, steps), value in zip(entries, utilities, strict=True):
            earlier = self.found.get(parent)
            origin, before = (earlier.origin, earlier.steps) if earlier else (parent, ())
            self.found[arch] = Found(arch, float(value), origin, (*before, *steps))
        return utilities

    def short_list(self, utility: Utility) -> _Candidates:
        """The best of these under another utility; lineage and number of evaluations go on."""
        best = self.proposable(SHORT_LIST)
        listed = _Candidates(utility, self._seen)
        listed.n_evaluations = self.n_evaluations + len(best)
        values = utility([found.arch for found in best]) if best else np.zeros(0)
        listed.found = {f.arch: replace(f, utility=float(value)) for f, value in zip(best, values, strict=True)}
        return listed

    def proposable(self, n: int) -> list[Found]:
        """The n best that may be proposed, the best first; of equals the one looked at first.

        Fingerprints are asked for in that order, and no more than are needed: they cost more than a utility.
        """
        new = (found for found in self.found.values() if found.utility > -math.inf)
        ranked = sorted(new, key=lambda found: -found.utility)
        return list(islice((found for found in ranked if found.arch.fingerprint not in self._seen), n))

    def best(self) -> Found | None:
        """The best that may be proposed."""
        return next(iter(self.proposable(1)), None)


def by_evolution(
    utility: Utility,
    operator: MutationOperator,
    population: Sequence[Architecture],
    *,
    seen: Collection[str],
    n_evaluations: int,
    rng: np.random.Generator,
) -> Maximum:
    """The paper's evolution from ``population``; ``seen`` are fingerprints that must not be proposed."""
    candidates = _Candidates(utility, seen)
    _evolve(candidates, operator, population, n_evaluations, rng)
    best = candidates.best()
    return Maximum(best, candidates.n_evaluations, _phases(("evolution", best)))


def by_evolution_and_climbing(
    utility: Utility,
    operator: MutationOperator,
    population: Sequence[Architecture],
    *,
    incumbents: Sequence[Architecture],
    exact_utility: Utility | None = None,
    seen: Collection[str],
    n_evaluations: int,
    rng: np.random.Generator,
) -> Maximum:
    """Evolution from pool and incumbents, then as many evaluations again spent on climbing from the best of both.

    Where ``utility`` is a rough one, the best found by it are looked at again under the ``exact_utility``. With half
    as many evaluations climbing was worth less on f2 (60 evaluations, 4 seeds: 2.85 against 3.20) and hardly less on f1
    (3.69 against 3.76); with twice as many no more (f2: 3.09).
    """
    candidates = _Candidates(utility, seen)
    _evolve(candidates, operator, tuple(dict.fromkeys((*incumbents, *population))), n_evaluations, rng)
    after_evolution = candidates.best()
    starts = [*incumbents[:CLIMBERS], *(found.arch for found in candidates.proposable(CLIMBERS))]
    _climb(candidates, operator, tuple(dict.fromkeys(starts)), n_evaluations, rng)
    if exact_utility is not None:
        candidates = candidates.short_list(exact_utility)
    best = candidates.best()
    return Maximum(best, candidates.n_evaluations, _phases(("evolution", after_evolution), ("climbing", best)))


def _phases(*phases: tuple[str, Found | None]) -> tuple[tuple[str, float], ...]:
    return tuple((name, found.utility) for name, found in phases if found is not None)


def _evolve(
    candidates: _Candidates,
    operator: MutationOperator,
    population: Sequence[Architecture],
    n_evaluations: int,
    rng: np.random.Generator,
) -> None:
    evolution = Evolution(operator, population)
    evolution.tell(population, candidates.look_at((arch, arch, ()) for arch in population))
    left = n_evaluations
    while left > 0:
        mutations = evolution.ask(min(left, mutation_schedule(n_evaluations)), rng=rng)
        if not mutations:
            return
        utilities = candidates.look_at((m.arch, m.parent, m.steps) for m in mutations)
        evolution.tell([m.arch for m in mutations], utilities)
        left -= len(mutations)


def _climb(
    candidates: _Candidates,
    operator: MutationOperator,
    starts: Sequence[Architecture],
    n_evaluations: int,
    rng: np.random.Generator,
) -> None:
    """Every climber moves to the best of a sample of its one-step edits while that is better; all in one batch."""
    climbers = list(starts)
    left = n_evaluations
    while climbers and left > 0:
        edits: list[tuple[Architecture, Edit]] = []
        taken = set(candidates.found)
        for climber in climbers:
            for edit in sample_edits(climber, operator.space, EDITS_PER_STEP, rng=rng, modifiers=operator.modifiers):
                if edit.arch not in taken:
                    taken.add(edit.arch)
                    edits.append((climber, edit))
        edits = edits[:left]
        if not edits:
            return
        candidates.look_at((edit.arch, climber, (Step(edit.modifier, edit.description),)) for climber, edit in edits)
        left -= len(edits)
        climbers = _moved(candidates, climbers, edits)


def _moved(
    candidates: _Candidates, climbers: Sequence[Architecture], edits: Sequence[tuple[Architecture, Edit]]
) -> list[Architecture]:
    """Each climber's best edit where that beats it; climbers that cannot move drop out."""
    moved = []
    for climber in climbers:
        around = [candidates.found[edit.arch] for at, edit in edits if at is climber]
        best = max(around, key=lambda found: found.utility, default=None)
        if best is not None and best.utility > candidates.found[climber].utility:
            moved.append(best.arch)
    return list(dict.fromkeys(moved))

"""Looking for the network of highest utility (Appendix B.2), always in batches: utilities of many networks at once.

``by_evolution`` is the paper's way: selection and mutation from the initial pool, n_EA evaluations of the acquisition
in all. ``by_evolution_and_climbing``, the default, also starts from the best networks evaluated, and then climbs over
one-step edits of the best it found; deciding is cheap here, so it may look at more networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from nasbot._rounding import to_bits
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate, Params
from nasbot.domain import Domain
from nasbot.evolution import Edit, Evolution, MutationOperator, Step, mutation_schedule, sample_edits
from nasbot.trial import History

Floats = NDArray[np.float64]
# (settings, networks) of some networks, each with every one of some settings of the params; one empty setting where no
# params are searched.
Utility = Callable[[Sequence[Architecture], Sequence[Params]], Floats]

CLIMBERS = 3  # networks from which climbing starts, of those evaluated and of those found by evolution each
EDITS_PER_STEP = 16  # one-step edits looked at around each climber before it moves
SHORT_LIST = 32  # of those found by a rough utility, how many are looked at exactly
N_SETTINGS = 16  # of the params that the best networks are looked at with
N_ROUGH_SETTINGS = 4  # and those that evolution makes
TUNED = 4  # networks whose params are then changed one by one
TUNING_ROUNDS = 4
UTILITY_BITS = 27  # of a utility that count, eight decimal digits: the last ones depend on the processor
N_PRIOR_TRIALS = 10.0  # for which what is known beforehand about good params counts


@dataclass(frozen=True)
class Settings:
    """The params that networks are looked at with in one maximisation, and which candidates are known already."""

    values: tuple[Params, ...]
    seen: Collection[str]  # fingerprints of candidates
    known: Mapping[Architecture, Collection[str]] = field(default_factory=dict)  # by network, keys of their params
    best: tuple[Candidate, ...] = ()  # of these, around which params are changed one by one
    domain: Domain | None = None  # where there are params that may be changed further
    prior: Params | None = None  # where good params are expected
    prior_weight: float = 0.0  # it fades as trials come in

    @classmethod
    def of(
        cls,
        domain: Domain,
        history: History,
        pool: Sequence[Candidate],
        rng: np.random.Generator,
        *,
        prior: Params | None = None,
    ) -> Settings:
        """Those of the best candidates, the pool's and the default, then changes of them and draws."""
        if not domain.params:
            return cls(({},), history.seen)
        best = tuple(trial.candidate for trial in history.ranked[: N_SETTINGS // 4])
        made: dict[str, Params] = {}
        for params in (
            *(candidate.params for candidate in best),
            domain.default(),
            *(candidate.params for candidate in pool),
        ):
            made.setdefault(_key(params), params)
        first = list(made.values())[: N_SETTINGS // 2]
        made = {_key(params): params for params in first}
        for i in range(8 * N_SETTINGS):
            if len(made) == N_SETTINGS:
                break
            params = domain.drawn(rng) if i % 4 == 3 else domain.changed(first[i % len(first)], rng)
            made.setdefault(_key(params), params)
        weight = N_PRIOR_TRIALS / max(1.0, len(history.finished) - len(pool))
        return cls(tuple(made.values()), history.seen, known_params(history), best, domain, prior, weight)

    def few(self) -> Settings:
        """The first of them, for looking at many networks."""
        return replace(self, values=self.values[:N_ROUGH_SETTINGS])

    def around(self, chosen: Iterable[Params]) -> Settings:
        """Every change of one param of the chosen ones by a step."""
        assert self.domain is not None
        changed = (other for params in chosen for _, other in self.domain.neighbours(params))
        return replace(self, values=tuple({_key(params): params for params in changed}.values()))

    def without(self, keys: Collection[str]) -> Settings:
        """The values that have other keys than these."""
        kept = zip(self.values, self.keys, strict=True)
        return replace(self, values=tuple(params for params, key in kept if key not in keys))

    @cached_property
    def keys(self) -> list[str]:
        """What tells each of the values from others."""
        return [_key(params) for params in self.values]

    @cached_property
    def log_prior(self) -> Floats:
        """What is added to the utility of each of the values."""
        if self.domain is None or self.prior is None:
            return np.zeros(len(self.values))
        return self.prior_weight * np.array([self.domain.log_prior(params, self.prior) for params in self.values])


def known_params(history: History) -> dict[Architecture, set[str]]:
    """Of each network the keys of the params with which it must not be proposed anew."""
    known: dict[Architecture, set[str]] = {}
    for trial in history:
        if trial.candidate.fingerprint in history.seen:
            known.setdefault(trial.arch, set()).add(_key(trial.candidate.params))
    return known


def _key(params: Params) -> str:
    return repr(sorted(params.items()))


@dataclass(frozen=True)
class Found:
    """A network, its best params and their utility, and how it came about: from ``origin`` by ``steps``."""

    arch: Architecture
    params: Params
    utility: float
    origin: Architecture
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Maximum:
    """The best network found, and how many utilities it took; ``by_phase`` is the best after each phase."""

    best: Found | None
    n_evaluations: int
    by_phase: tuple[tuple[str, float], ...]
    first: tuple[Found, ...] = ()  # the best under the utility that looked at all of them, where more are wanted


class _Candidates:
    """All networks looked at in one maximisation; knows which may be proposed."""

    def __init__(self, utility: Utility, settings: Settings) -> None:
        self._utility, self._settings = utility, settings
        self.found: dict[Architecture, Found] = {}
        self.n_evaluations = 0

    def look_at(self, origins: Iterable[tuple[Architecture, Architecture, tuple[Step, ...]]]) -> Floats:
        """Utilities of (network, its parent, steps from it) and remember them with their whole lineage."""
        entries = list(origins)
        params, utilities = self._best_settings([arch for arch, _, _ in entries], known_too=True)
        self.n_evaluations += len(entries)
        for (arch, parent, steps), chosen, value in zip(entries, params, utilities, strict=True):
            earlier = self.found.get(parent)
            origin, before = (earlier.origin, earlier.steps) if earlier else (parent, ())
            self.found[arch] = Found(arch, chosen, float(value), origin, (*before, *steps))
        return utilities

    def _best_settings(
        self, archs: Sequence[Architecture], among: Settings | None = None, *, known_too: bool = False
    ) -> tuple[list[Params], Floats]:
        """The setting of highest utility for each network, of those with which it is not known yet.

        Where it is known with all of them: -inf, or with ``known_too`` the highest utility that a known one has.
        """
        settings = among or self._settings
        if not archs:
            return [], np.zeros(0)
        values = to_bits(self._utility(archs, settings.values) + settings.log_prior[:, None], UTILITY_BITS)
        for i, arch in enumerate(archs if settings.known else ()):
            if (known := settings.known.get(arch)) is not None:
                seen = [key in known for key in settings.keys]
                if not (known_too and all(seen)):
                    values[seen, i] = -math.inf
        best = values.argmax(axis=0)
        return [settings.values[j] for j in best], values[best, np.arange(len(archs))]

    def tune(self) -> None:
        """Change the params of the best networks one by one, as long as that makes one of them better.

        At first also those of the best candidates that are known: what is best may lie right beside one of them.
        Utilities only grow here, so the best networks were among those of every round before, and what was tried there
        cannot be better than what they have.
        """
        known: tuple[Candidate, ...] = self._settings.best
        tried: set[str] = set()
        for _ in range(TUNING_ROUNDS):
            best = self.proposable(TUNED)
            networks = list(dict.fromkeys([found.arch for found in best] + [candidate.arch for candidate in known]))
            around = self._settings.around([found.params for found in best] + [each.params for each in known])
            around = around.without(tried)
            if not around.values:
                return
            tried.update(around.keys)
            params, values = self._best_settings(networks, around)
            better = [
                replace(self.found[arch], params=chosen, utility=float(value))
                for arch, chosen, value in zip(networks, params, values, strict=True)
                if value > self.found[arch].utility
            ]
            known = ()
            self.found.update({found.arch: found for found in better})
            if not better:
                return

    def short_list(self, utility: Utility, settings: Settings) -> _Candidates:
        """The best of these under another utility, with more settings; lineage and number of evaluations go on.

        Those of the best known candidates are among them: their networks may be known with all of the few settings.
        """
        best = self.proposable(SHORT_LIST)
        listed_already = {found.arch for found in best}
        networks = dict.fromkeys(candidate.arch for candidate in settings.best)
        best += [self.found[arch] for arch in networks if arch not in listed_already]
        listed = _Candidates(utility, settings)
        listed.n_evaluations = self.n_evaluations + len(best)
        params, values = listed._best_settings([found.arch for found in best])
        listed.found = {
            found.arch: replace(found, params=chosen, utility=float(value))
            for found, chosen, value in zip(best, params, values, strict=True)
        }
        return listed

    def proposable(self, n: int) -> list[Found]:
        """The n best that may be proposed."""
        return list(islice(self._ranked(), n))

    def best(self) -> Found | None:
        """The best that may be proposed."""
        return next(self._ranked(), None)

    def _ranked(self) -> Iterator[Found]:
        """All that may be proposed, the best first; equals in the order of their fingerprints.

        Fingerprints are asked for in that order, and no more than are needed: they cost more than a utility.
        """
        new = (found for found in self.found.values() if found.utility > -math.inf)
        ranked = sorted(new, key=lambda found: -found.utility)
        named = (
            pair
            for _, equals in groupby(ranked, key=lambda found: found.utility)
            for pair in sorted(((Candidate(f.arch, f.params).fingerprint, f) for f in equals), key=lambda pair: pair[0])
        )
        return (found for name, found in named if name not in self._settings.seen)


def by_evolution(
    utility: Utility,
    operator: MutationOperator,
    population: Sequence[Architecture],
    *,
    settings: Settings,
    n_evaluations: int,
    rng: np.random.Generator,
) -> Maximum:
    """The paper's evolution from ``population``."""
    candidates = _Candidates(utility, settings)
    _evolve(candidates, operator, population, n_evaluations, rng)
    best = candidates.best()
    return Maximum(best, candidates.n_evaluations, _phases(("evolution", best)))


def by_evolution_and_climbing(
    utility: Utility,
    operator: MutationOperator,
    population: Sequence[Architecture],
    *,
    incumbents: Sequence[Architecture],
    exact_utility: Utility,
    is_rough: bool,
    settings: Settings,
    n_evaluations: int,
    n_first: int = 0,
    rng: np.random.Generator,
) -> Maximum:
    """Evolution from pool and incumbents, then as many evaluations again spent on climbing from the best of both.

    Where ``utility`` is a rough one, and where there are params, the best found by it are looked at again under the
    ``exact_utility``, with all settings, and the params of the best of them are changed one by one. Where ``n_first``
    are wanted they are the result, as the first utility has them throughout. With half as many
    evaluations climbing was worth less on f2 (60 evaluations, 4 seeds: 2.85 against 3.20) and hardly less on f1 (3.69
    against 3.76); with twice as many no more (f2: 3.09).
    """
    candidates = _Candidates(utility, settings.few())
    _evolve(candidates, operator, tuple(dict.fromkeys((*incumbents, *population))), n_evaluations, rng)
    after_evolution = candidates.best()
    starts = [*incumbents[:CLIMBERS], *(found.arch for found in candidates.proposable(CLIMBERS))]
    _climb(candidates, operator, tuple(dict.fromkeys(starts)), n_evaluations, rng)
    if n_first and settings.domain is not None:
        tuned = candidates.short_list(utility, settings)
        tuned.tune()
        candidates.found.update(tuned.found)
        candidates.n_evaluations = tuned.n_evaluations
    first = tuple(candidates.proposable(n_first)) if n_first else ()
    if first:
        return Maximum(first[0], candidates.n_evaluations, _phases(("evolution", after_evolution)), first)
    if is_rough or len(settings.values) > 1:
        candidates = candidates.short_list(exact_utility, settings)
    if settings.domain is not None:
        candidates.tune()
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

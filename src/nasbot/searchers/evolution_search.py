"""EA of Appendix C.1: evolution on the objective itself, with N_mut = 10 networks to a generation."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nasbot.acquisition import Found
from nasbot.architecture import Architecture
from nasbot.architecture.resources import check_whole
from nasbot.candidate import Candidate
from nasbot.evolution import Evolution
from nasbot.evolution.modifier import Rejected
from nasbot.evolution.selection import selection_probabilities
from nasbot.searchers.base import Proposal
from nasbot.searchers.pool import PoolSearcher
from nasbot.trial import Direction, History, Trial

NETWORK, BOTH = 0.5, 0.2  # shares of mutations that change the network alone, and network and params
TRIES = 200


@dataclass(frozen=True, kw_only=True)
class EvolutionSearch(PoolSearcher):
    """Parents are drawn by their values, exp(value / sd), from all networks evaluated before this generation."""

    n_mutations: int = 10
    name: str = "EA"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("n_mutations", self.n_mutations)

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """A mutation of a network drawn by its value."""
        if (promoted := self.promoted(history)) is not None:
            return promoted
        parents = self._parents(history)
        if self.params:
            return self._joint(history, parents, rng)
        evolution, first_trials = self._told(history, parents)
        mutations = evolution.copy(avoid=_Among(history.seen)).ask(1, rng=rng)
        if mutations:
            arch, origin, steps = mutations[0].arch, mutations[0].parent, mutations[0].steps
        else:
            candidate = self.any_new(history, rng=rng)
            return Proposal(candidate, self.first_rung, origin=self.lineage(history, candidate, None))
        made = Found(arch, {}, math.nan, origin, steps)
        made_of = [first_trials[origin]] if origin in first_trials else history
        return Proposal(Candidate(arch), self.first_rung, origin=self.lineage(made_of, Candidate(arch), made))

    def _told(self, history: History, parents: list[Trial]) -> tuple[Evolution, dict[Architecture, Trial]]:
        """Evolution that was told of these parents, and the first trial of each: remembered for their next child."""
        remembered = self._generation.get(history.direction)
        if remembered is None or remembered[0] != parents:
            evolution = Evolution(self.operator(), self.pool_networks)
            evolution.tell([trial.arch for trial in parents], [history.merit(trial) for trial in parents])
            by_number = sorted(parents, key=lambda trial: -trial.number)
            remembered = (parents, evolution, {trial.arch: trial for trial in by_number})
            self._generation[history.direction] = remembered
        return remembered[1:]

    @cached_property
    def _generation(self) -> dict[Direction, tuple[list[Trial], Evolution, dict[Architecture, Trial]]]:
        return {}

    def _joint(self, history: History, parents: Sequence[Trial], rng: np.random.Generator) -> Proposal:
        """A mutation of a candidate drawn by its value: of its network in half of the cases, its params, or both."""
        values = np.array([history.merit(trial) for trial in parents])
        weights = selection_probabilities(values) if len(values) else None
        pool = self.initial_pool()
        for _ in range(TRIES):
            drawn = None if weights is None else parents[int(rng.choice(len(parents), p=weights))]
            parent = pool[int(rng.integers(len(pool)))] if drawn is None else drawn.candidate
            kind = rng.random()
            mutation = self.operator()(parent.arch, rng=rng) if kind < NETWORK or kind >= 1 - BOTH else None
            params = self.domain.changed(parent.params, rng) if kind >= NETWORK else parent.params
            if isinstance(mutation, Rejected):
                continue
            candidate = Candidate(parent.arch if mutation is None else mutation.arch, params)
            if candidate.fingerprint not in history.seen:
                steps = () if mutation is None else mutation.steps
                made = Found(candidate.arch, params, math.nan, parent.arch, steps)
                return Proposal(candidate, self.first_rung, origin=self.lineage(history, candidate, made))
        candidate = self.any_new(history, rng=rng)
        return Proposal(candidate, self.first_rung, origin=self.lineage(history, candidate, None))

    def _parents(self, history: History) -> list[Trial]:
        """A generation is made from the ones before: what its own members found out is not looked at yet."""
        n_pool = len(self.initial_pool())
        n_done = max(0, len(history) - n_pool)
        end = n_pool + n_done - n_done % self.n_mutations
        return [trial for trial in history.completed if trial.number < end] or list(history.completed)


@dataclass(frozen=True)
class _Among:
    """Networks by their fingerprints: of thousands only those that are asked about are looked at."""

    fingerprints: Set[str]

    def __contains__(self, arch: object) -> bool:
        return isinstance(arch, Architecture) and arch.fingerprint in self.fingerprints

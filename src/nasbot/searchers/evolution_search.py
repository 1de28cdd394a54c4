"""EA of Appendix C.1: evolution on the objective itself, with N_mut = 10 networks to a generation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nasbot.architecture.resources import check_whole
from nasbot.candidate import Candidate
from nasbot.evolution import Evolution
from nasbot.searchers.base import Proposal
from nasbot.searchers.pool import PoolSearcher, lineage
from nasbot.trial import History, Trial


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
        parents = self._parents(history)
        evolution = Evolution(
            self.operator(),
            self.pool_networks,
            avoid=[trial.arch for trial in history if trial.arch.fingerprint in history.seen],
        )
        evolution.tell([trial.arch for trial in parents], [history.merit(trial) for trial in parents])
        mutations = evolution.ask(1, rng=rng)
        if mutations:
            arch, origin, steps = mutations[0].arch, mutations[0].parent, mutations[0].steps
        else:
            found = self.any_new(history)
            arch, origin, steps = found.arch, found.origin, found.steps
        return Proposal(Candidate(arch), origin=lineage(history, self.name, origin, steps))

    def _parents(self, history: History) -> list[Trial]:
        """A generation is made from the ones before: what its own members found out is not looked at yet."""
        n_pool = len(self.initial_pool())
        n_done = max(0, len(history) - n_pool)
        end = n_pool + n_done - n_done % self.n_mutations
        return [trial for trial in history.completed if trial.number < end] or list(history.completed)

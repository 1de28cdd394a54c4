"""EA of Appendix C.1: evolution on the objective itself, with N_mut = 10 networks to a generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nasbot._typing import Json
from nasbot.architecture import Architecture, SearchSpace, initial_pool
from nasbot.errors import ExhaustedError
from nasbot.evolution import MODIFIERS, Evolution, MutationOperator
from nasbot.search.base import Proposal
from nasbot.search.nasbot import checked_pool
from nasbot.trial import History


@dataclass(frozen=True, kw_only=True)
class EvolutionSearch:
    """Parents are drawn by their values, exp(value / sd), from all networks evaluated before this generation."""

    space: SearchSpace
    pool: tuple[Architecture, ...] | None = None
    modifiers: tuple[str, ...] = tuple(MODIFIERS)
    n_mutations: int = 10
    name: str = "EA"

    def __post_init__(self) -> None:
        checked_pool(self.space, self.initial_pool())

    def initial_pool(self) -> tuple[Architecture, ...]:
        """The first generation."""
        return initial_pool(self.space.kind) if self.pool is None else self.pool

    def settings(self) -> Mapping[str, Json]:
        """Everything a proposal depends on besides space and history."""
        pool = [arch.fingerprint for arch in self.initial_pool()]
        return {"searcher": self.name, "modifiers": self.modifiers, "pool": pool, "n_mutations": self.n_mutations}

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """A mutation of a network drawn by its value."""
        n_pool = len(self.initial_pool())
        n_done = max(0, len(history) - n_pool)
        # A generation is made from the one before: what its own members found out is not looked at yet.
        parents_end = n_pool + n_done - n_done % self.n_mutations
        parents = [trial for trial in history.completed if trial.number < parents_end] or list(history.completed)
        evolution = Evolution(
            MutationOperator(self.space, self.modifiers),
            self.initial_pool(),
            avoid=[trial.arch for trial in history if trial.arch.fingerprint in history.seen],
        )
        evolution.tell([trial.arch for trial in parents], [trial.value or 0.0 for trial in parents])
        mutations = evolution.ask(1, rng=rng)
        if not mutations:
            raise ExhaustedError(f"no new network was found near those evaluated; {len(history.seen)} are known")
        mutation = mutations[0]
        numbers = [trial.number for trial in parents if trial.arch == mutation.parent][:1]
        return Proposal(
            mutation.arch,
            {
                "searcher": self.name,
                "parents": numbers,
                "modifiers": [step.modifier for step in mutation.steps],
                "changes": [str(step) for step in mutation.steps],
            },
        )

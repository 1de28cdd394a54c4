"""RAND of Appendix C.1: the same evolution as NASBOT's, fed with Uniform(0, 1) instead of an acquisition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbot._typing import Json
from nasbot.acquisition import by_evolution
from nasbot.architecture import Architecture, SearchSpace, initial_pool
from nasbot.errors import ExhaustedError
from nasbot.evolution import MODIFIERS, MutationOperator, evaluation_schedule
from nasbot.search.base import Proposal
from nasbot.search.nasbot import checked_pool
from nasbot.trial import History


@dataclass(frozen=True, kw_only=True)
class RandomSearch:
    """Networks from the same neighbourhoods that NASBOT looks at, chosen without looking."""

    space: SearchSpace
    pool: tuple[Architecture, ...] | None = None
    modifiers: tuple[str, ...] = tuple(MODIFIERS)
    name: str = "RAND"

    def __post_init__(self) -> None:
        checked_pool(self.space, self.initial_pool())

    def initial_pool(self) -> tuple[Architecture, ...]:
        """The networks evaluated first, and from which evolution starts."""
        return initial_pool(self.space.kind) if self.pool is None else self.pool

    def settings(self) -> Mapping[str, Json]:
        """Everything a proposal depends on besides space and history."""
        pool = [arch.fingerprint for arch in self.initial_pool()]
        return {"searcher": self.name, "modifiers": self.modifiers, "pool": pool}

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """The network to which chance gave the highest fitness."""
        for_fitness, for_evolution = rng.spawn(2)

        def fitness(archs: Sequence[Architecture]) -> NDArray[np.float64]:
            return for_fitness.random(len(archs))

        step = max(1, len(history) - len(self.initial_pool()))
        maximum = by_evolution(
            fitness,
            MutationOperator(self.space, self.modifiers),
            self.initial_pool(),
            seen=history.seen,
            n_evaluations=evaluation_schedule(step),
            rng=for_evolution,
        )
        if maximum.best is None:
            raise ExhaustedError(f"no new network was found near the pool; {len(history.seen)} are known")
        changes = [str(step) for step in maximum.best.steps]
        return Proposal(maximum.best.arch, {"searcher": self.name, "changes": changes})

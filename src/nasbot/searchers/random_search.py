"""RAND of Appendix C.1: the same evolution as NASBOT's, fed with Uniform(0, 1) instead of an acquisition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbot.acquisition import by_evolution
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate, Params
from nasbot.evolution import evaluation_schedule
from nasbot.searchers.base import Proposal
from nasbot.searchers.pool import PoolSearcher
from nasbot.trial import History


@dataclass(frozen=True, kw_only=True)
class RandomSearch(PoolSearcher):
    """Networks from the same neighbourhoods that NASBOT looks at, chosen without looking."""

    name: str = "RAND"

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """The network to which chance gave the highest fitness."""
        if (promoted := self.promoted(history)) is not None:
            return promoted
        for_fitness, for_evolution = rng.spawn(2)

        def fitness(archs: Sequence[Architecture], settings: Sequence[Params]) -> NDArray[np.float64]:
            return for_fitness.random((len(settings), len(archs)))

        maximum = by_evolution(
            fitness,
            self.operator(),
            self.pool_networks,
            settings=self.drawn_setting(history, for_evolution),
            n_evaluations=evaluation_schedule(self.step(history)),
            rng=for_evolution,
        )
        found = maximum.best
        candidate = self.any_new(history, rng=rng) if found is None else Candidate(found.arch, found.params)
        return Proposal(candidate, self.first_rung, origin=self.lineage(history, candidate, found))

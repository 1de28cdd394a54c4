"""TreeBO of Appendix C.1: Bayesian optimisation over chains, with Jenatton et al.'s tree-structured kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbot._typing import Json
from nasbot.acquisition import by_evolution, log_expected_improvement, uniform
from nasbot.architecture import Architecture, SearchSpace, initial_pool
from nasbot.errors import ExhaustedError, OptionError
from nasbot.evolution import MutationOperator, evaluation_schedule
from nasbot.gp.warping import Warp, warp_values
from nasbot.search.base import Proposal
from nasbot.search.nasbot import checked_pool
from nasbot.search.tree_kernel import TreeBelief, is_chain
from nasbot.trial import History, Trial

# Modifiers under which a chain stays a chain.
CHAIN_MODIFIERS = (
    "dec_single",
    "inc_single",
    "dec_en_masse",
    "inc_en_masse",
    "remove_layer",
    "swap_label",
    "wedge_layer",
)


@dataclass(frozen=True, kw_only=True)
class TreeBO:
    """Proposes chains only. The same schedule, warp and acquisition as NASBOT's, another kernel and a smaller space."""

    space: SearchSpace
    pool: tuple[Architecture, ...] | None = None
    warp: Warp = Warp.RANK
    name: str = "TreeBO"

    def __post_init__(self) -> None:
        object.__setattr__(self, "warp", Warp(self.warp))
        checked_pool(self.space, self.initial_pool())
        for i, arch in enumerate(self.initial_pool()):
            if not is_chain(arch):
                raise OptionError(f"TreeBO searches chains only; network {i} of the pool branches")

    def initial_pool(self) -> tuple[Architecture, ...]:
        """The networks evaluated first, chains all of them."""
        return initial_pool(self.space.kind) if self.pool is None else self.pool

    def settings(self) -> Mapping[str, Json]:
        """Everything a proposal depends on besides space and history."""
        return {"searcher": self.name, "warp": self.warp, "pool": [arch.fingerprint for arch in self.initial_pool()]}

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """The chain of highest log EI among those evolution finds."""
        for_utility, for_evolution = rng.spawn(2)
        chains = [trial for trial in history.completed if is_chain(trial.arch)]
        belief, best_value = self._belief(history, chains)

        def utility(archs: Sequence[Architecture]) -> NDArray[np.float64]:
            if belief is None:
                return uniform(np.zeros(len(archs)), rng=for_utility)
            return log_expected_improvement(*belief.predict(archs), best_value)

        ranked = sorted(chains, key=lambda trial: (-(trial.value or 0.0), trial.rank))
        starts = dict.fromkeys((*(trial.arch for trial in ranked[:10]), *self.initial_pool()))
        step = max(1, len(history) - len(self.initial_pool()))
        maximum = by_evolution(
            utility,
            MutationOperator(self.space, CHAIN_MODIFIERS),
            tuple(starts),
            seen=history.seen,
            n_evaluations=2 * evaluation_schedule(step),
            rng=for_evolution,
        )
        if maximum.best is None:
            raise ExhaustedError(f"no new chain was found; {len(history.seen)} networks are known")
        return Proposal(maximum.best.arch, {"searcher": self.name, "utility": maximum.best.utility})

    def _belief(self, history: History, chains: Sequence[Trial]) -> tuple[TreeBelief | None, float]:
        if not chains:
            return None, 0.0
        values = warp_values(np.array([trial.value for trial in chains], dtype=np.float64), self.warp).standardised
        pending = [trial.arch for trial in history.pending if is_chain(trial.arch)]
        belief = TreeBelief.fit([trial.arch for trial in chains], values, self.space.max_layers)
        return belief.hallucinated(pending), float(values.max())

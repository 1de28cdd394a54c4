"""TreeBO of Appendix C.1: Bayesian optimisation over chains, with Jenatton et al.'s tree-structured kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbot.acquisition import Settings, by_evolution, log_expected_improvement, uniform
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate, Params
from nasbot.errors import OptionError
from nasbot.evolution import evaluation_schedule
from nasbot.evolution.modifiers import AnyModifier
from nasbot.gp.warping import Warp, warp_values
from nasbot.searchers.base import Proposal
from nasbot.searchers.pool import PoolSearcher, member
from nasbot.searchers.threads import on_one_blas_thread
from nasbot.searchers.tree_kernel import TreeBelief, is_chain
from nasbot.trial import Forecast, History, Trial

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
N_INCUMBENTS = 10  # best chains evaluated, from which evolution also starts


@dataclass(frozen=True, kw_only=True)
class TreeBO(PoolSearcher):
    """Proposes chains only. The same schedule, warp and acquisition as NASBOT's, another kernel and a smaller space."""

    modifiers: tuple[str | AnyModifier, ...] = CHAIN_MODIFIERS
    warp: Warp = Warp.RANK
    name: str = "TreeBO"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "warp", member(Warp, self.warp, "warp"))
        if branching := [name for name in self.modifiers if name not in CHAIN_MODIFIERS]:
            expected = ", ".join(CHAIN_MODIFIERS)
            raise OptionError(f"modifiers: TreeBO searches chains; expected some of {expected}, got {branching[0]!r}")
        for i, candidate in enumerate(self.initial_pool()):
            if not is_chain(candidate.arch):
                raise OptionError(
                    f"pool network {i}: TreeBO searches chains; expected one, got a network that branches"
                )

    @on_one_blas_thread
    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """The chain of highest log EI among those evolution finds."""
        if (promoted := self.promoted(history)) is not None:
            return promoted
        for_utility, for_evolution = rng.spawn(2)
        chains = [trial for trial in history.completed if is_chain(trial.arch)]
        belief, best_value = self._belief(history, chains)
        known = [trial.candidate.params for trial in (*chains, *_pending_chains(history))]

        def utility(archs: Sequence[Architecture], settings: Sequence[Params]) -> NDArray[np.float64]:
            if belief is None:
                return uniform(np.zeros((len(settings), len(archs))), rng=for_utility)
            if not self.params:
                return log_expected_improvement(*belief.predict(archs), best_value)[None]
            rows = self.domain.differences(known, settings)
            return log_expected_improvement(*belief.predict(archs, rows), best_value)

        incumbents = [trial.arch for trial in history.ranked if is_chain(trial.arch)]
        starts = dict.fromkeys((*incumbents[:N_INCUMBENTS], *self.pool_networks))
        maximum = by_evolution(
            utility,
            self.operator(),
            tuple(starts),
            settings=Settings.of(self.domain, history, self.initial_pool(), for_evolution),
            n_evaluations=2 * evaluation_schedule(self.step(history)),
            rng=for_evolution,
        )
        found = maximum.best
        if found is None:
            candidate = self.any_new(history, rng=rng)
            return Proposal(candidate, self.first_rung, origin=self.lineage(history, candidate, None))
        candidate = Candidate(found.arch, found.params)
        forecast = Forecast(utility=found.utility)
        return Proposal(candidate, self.first_rung, origin=self.lineage(history, candidate, found), forecast=forecast)

    @on_one_blas_thread
    def recommend(self, history: History, *, rng: np.random.Generator) -> Trial | None:
        """The completed chain of the highest mean; the best value where no chain is completed."""
        chains = [trial for trial in history.completed if is_chain(trial.arch)]
        belief, _ = self._belief(history, chains)
        if belief is None:
            return history.best
        settings = [trial.candidate.params for trial in chains]
        known = [*settings, *(trial.candidate.params for trial in _pending_chains(history))]
        rows = self.domain.differences(known, settings) if self.params else None
        mean = belief.at_known([trial.arch for trial in chains], rows)
        return chains[int(np.argmax(mean))]

    def _belief(self, history: History, chains: Sequence[Trial]) -> tuple[TreeBelief | None, float]:
        if not chains:
            return None, 0.0
        values = warp_values(np.array([history.merit(trial) for trial in chains]), self.warp).standardised
        pending = _pending_chains(history)
        among = None
        if self.params:
            settings = [trial.candidate.params for trial in (*chains, *pending)]
            among = self.domain.differences(settings, settings)
        first = None if among is None else among[:, : len(chains), : len(chains)]
        belief = TreeBelief.fit([trial.arch for trial in chains], values, self.space.max_layers, first)
        return belief.hallucinated([trial.arch for trial in pending], among), float(values.max())


def _pending_chains(history: History) -> list[Trial]:
    return [trial for trial in history.pending if is_chain(trial.arch)]

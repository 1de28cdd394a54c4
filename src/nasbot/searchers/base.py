"""The seam between a study and whatever chooses the next network.

``nasbot.testing.searcher_conformance`` checks the promises below on any implementation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from nasbot._json import plain_json
from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate
from nasbot.searchers.effect import Effect, Effects, ParamEffect
from nasbot.trial import Forecast, History, Provenance, Trial

if TYPE_CHECKING:
    from nasbot.domain import Domain


@dataclass(frozen=True)
class Proposal:
    """A candidate to evaluate, at which fidelity, where it came from and what is believed of it.

    ``promoted_from`` is the trial of the same candidate at a lower fidelity. ``notes`` are a searcher's own.
    """

    candidate: Candidate
    fidelity: float = 1.0
    promoted_from: int | None = None
    origin: Provenance = field(default_factory=Provenance)
    forecast: Forecast | None = None
    notes: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", plain_json(self.notes))

    @property
    def arch(self) -> Architecture:
        """The candidate's network."""
        return self.candidate.arch

    def trial(self, history: History) -> Trial:
        """The trial that follows this history, if the proposal is taken."""
        return Trial(
            number=len(history),
            candidate=self.candidate,
            fidelity=self.fidelity,
            promoted_from=self.promoted_from,
            origin=self.origin,
            forecast=self.forecast,
            notes=self.notes,
            proposed_after=len(history.finished),
        )


class Searcher(Protocol):
    """Chooses the next candidate to evaluate. Every implementation promises:

    - Stateless: all it knows is in ``history`` and its own settings. It may keep caches, and asking it in another
      order, in another process or after a resume gives the same answers. What it wants to remember from one proposal
      to the next goes into the notes.
    - Deterministic: equal settings, equal histories and equal generators give equal proposals. It draws from nothing
      but ``rng``, and no clock has a say: times, measured now or found in the history, are for people.
    - Of a pending trial it uses only the candidate, its fidelity, its origin and the notes. Whether one waits or
      already runs, and its curve so far, depend on luck.
    - New: the proposal lies in ``domain`` and is not, up to isomorphism, in ``history.seen``; a promotion is a known
      candidate at a fidelity that is not in ``history.seen_at``. A repeat, one of the best again with another seed,
      says of which completed trial: ``origin.of_trial``.
    - Total: any history of candidates of the domain is answered, also an empty one, one in which all failed, and one
      with equal values. Where nothing new is left, it raises ExhaustedError.
    - It changes neither history nor global state.
    """

    @property
    def name(self) -> str:
        """A short name for tables and figures."""
        ...

    @property
    def domain(self) -> Domain:
        """Where its proposals lie."""
        ...

    def initial_pool(self) -> tuple[Candidate, ...]:
        """The candidates to evaluate before the first proposal, in this order; may be empty."""
        ...

    def settings(self) -> Mapping[str, Json]:
        """Everything its proposals depend on beside the space, as plain data; compared when a study is resumed."""
        ...

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """The candidate to evaluate next."""
        ...


@runtime_checkable
class ProposesMany(Protocol):
    """A searcher that chooses for many workers at once. Promises as of ``propose``; all are new and differ."""

    def propose_many(self, history: History, n: int, *, rng: np.random.Generator) -> Sequence[Proposal]:
        """Up to ``n`` >= 1 candidates to evaluate at the same time; fewer, or none, where it finds no more."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A searcher that can say what it believes. Promises as of ``propose``; values are in the objective's own sense."""

    def explain(self, history: History, trial: Trial, *, rng: np.random.Generator) -> Effect:
        """What was believed of ``trial`` when it was proposed; ``history`` and ``rng`` are as ``propose`` had them."""
        ...

    def what_if(self, history: History, *, rng: np.random.Generator) -> Effects:
        """The predicted effect of every legal one-step edit of the best network so far, the most promising first."""
        ...


@runtime_checkable
class ExplainsParams(Protocol):
    """A searcher that can say what it believes of params. Promises as of ``propose``."""

    def param_effects(self, history: History, *, rng: np.random.Generator) -> tuple[ParamEffect, ...]:
        """How much each param matters, and what its values would give the best candidate; most important first."""
        ...


@runtime_checkable
class Recommends(Protocol):
    """A searcher that knows better than the best value which evaluated network is best. Promises as of ``propose``."""

    def recommend(self, history: History, *, rng: np.random.Generator) -> Trial | None:
        """The completed trial whose network is believed best, noise taken out of the values; None while there is none.

        The best of many noisy values is partly luck, which training the network again does not repeat.
        """
        ...

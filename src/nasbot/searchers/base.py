"""The seam between a study and whatever chooses the next network.

``nasbot.testing.searcher_conformance`` checks the promises below on any implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from nasbot._typing import Json
from nasbot.architecture import Architecture
from nasbot.searchers.effect import Effect, Effects
from nasbot.trial import History, Trial, plain_json

if TYPE_CHECKING:
    from nasbot.architecture.space import SearchSpace


@dataclass(frozen=True)
class Proposal:
    """A network to evaluate, and where it came from (``Trial.notes`` lists the usual keys)."""

    arch: Architecture
    notes: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", plain_json(self.notes))


class Searcher(Protocol):
    """Chooses the next network to evaluate. Every implementation promises:

    - Stateless: all it knows is in ``history`` and its own settings. It may keep caches, and asking it in another
      order, in another process or after a resume gives the same answers. What it wants to remember from one proposal
      to the next goes into the notes.
    - Deterministic: equal settings, equal histories and equal generators give equal proposals. It draws from nothing
      but ``rng``, and no clock has a say: times, measured now or found in the history, are for people.
    - Of a pending trial it uses only the network and the notes. Whether one waits or already runs, and its curve so
      far, depend on luck.
    - New: the proposal lies in ``space`` and is not, up to isomorphism, in ``history.seen``.
    - Total: any history of networks of the space is answered, also an empty one, one in which all failed, and one
      with equal values. Where nothing new is left, it raises ExhaustedError.
    - It changes neither history nor global state.
    """

    @property
    def name(self) -> str:
        """A short name for tables and figures."""
        ...

    @property
    def space(self) -> SearchSpace:
        """Where its proposals lie."""
        ...

    def initial_pool(self) -> tuple[Architecture, ...]:
        """The networks to evaluate before the first proposal, in this order; may be empty."""
        ...

    def settings(self) -> Mapping[str, Json]:
        """Everything its proposals depend on beside the space, as plain data; compared when a study is resumed."""
        ...

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """The network to evaluate next."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A searcher that can say what it believes. Same promises as ``propose``; values in answers are to be maximised."""

    def explain(self, history: History, trial: Trial, *, rng: np.random.Generator) -> Effect:
        """What was believed of ``trial`` when it was proposed; ``history`` and ``rng`` are as ``propose`` had them."""
        ...

    def what_if(self, history: History, *, rng: np.random.Generator) -> Effects:
        """The predicted effect of every legal one-step edit of the best network so far, the most promising first."""
        ...


@runtime_checkable
class Recommends(Protocol):
    """A searcher that knows better than the best value which evaluated network is best. Promises as of ``propose``."""

    def recommend(self, history: History, *, rng: np.random.Generator) -> Trial | None:
        """The completed trial whose network is believed best, noise taken out of the values; None while there is none.

        The best of many noisy values is partly luck, which training the network again does not repeat.
        """
        ...

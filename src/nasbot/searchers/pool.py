"""What the four searchers share: they begin from a pool of candidates and make others from it by modifiers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from nasbot._typing import Json
from nasbot.acquisition import Found
from nasbot.architecture import Architecture, SearchSpace, initial_pool
from nasbot.candidate import Candidate
from nasbot.domain import Domain, Fidelity, Param, check_pool
from nasbot.errors import ExhaustedError, OptionError
from nasbot.evolution import MODIFIERS, MutationOperator, Step, one_step_edits
from nasbot.searchers.settings import described
from nasbot.trial import History, Provenance

Kind = TypeVar("Kind", bound=StrEnum)


@dataclass(frozen=True, kw_only=True)
class PoolSearcher:
    """Where to search, from which networks to begin, and by which modifiers others are made of them."""

    space: SearchSpace
    params: Mapping[str, Param] = field(default_factory=dict)  # searched together with the network
    fidelity: Fidelity | None = None
    # The initial pool of the space's kind by default; networks are taken with default params.
    pool: tuple[Candidate | Architecture, ...] | None = None
    modifiers: tuple[str, ...] = tuple(MODIFIERS)

    def __post_init__(self) -> None:
        if not self.initial_pool():
            raise OptionError("pool: expected at least one network, got none")
        check_pool(self.initial_pool(), self.domain)
        self.operator()  # which knows what modifiers there are
        object.__setattr__(self, "modifiers", tuple(self.modifiers))

    @cached_property
    def domain(self) -> Domain:
        """What is searched."""
        return Domain(self.space, self.params, self.fidelity)

    def initial_pool(self) -> tuple[Candidate, ...]:
        """The candidates evaluated first, and from whose networks evolution starts."""
        pool = initial_pool(self.space.kind) if self.pool is None else self.pool
        return tuple(map(self.domain.candidate, pool))

    @cached_property
    def pool_networks(self) -> tuple[Architecture, ...]:
        """The networks of the pool, each once."""
        return tuple(dict.fromkeys(candidate.arch for candidate in self.initial_pool()))

    def settings(self) -> Mapping[str, Json]:
        """Everything a proposal depends on besides space and history."""
        return described(self)

    def operator(self) -> MutationOperator:
        """How one network is made of another."""
        return MutationOperator(self.space, self.modifiers)

    def step(self, history: History) -> int:
        """t of the paper's schedules: how many networks have been proposed, at least 1."""
        return max(1, len(history) - len(self.initial_pool()))

    def any_new(self, history: History) -> Found:
        """A network one step from one that is known, or of the pool; for when evolution has found nothing new.

        A small space is thus searched to its last network: ExhaustedError says that no edit of any known network leads
        to another one.
        """
        known = dict.fromkeys((*self.pool_networks, *(trial.arch for trial in history)))
        for arch in known:
            if arch.fingerprint not in history.seen:
                return Found(arch, math.nan, arch, ())
        for arch in known:
            for edit in one_step_edits(arch, self.space, modifiers=self.modifiers):
                if edit.arch.fingerprint not in history.seen:
                    return Found(edit.arch, math.nan, arch, (Step(edit.modifier, edit.description),))
        raise ExhaustedError(
            f"all of the {len(history.seen)} networks that the modifiers lead to are evaluated, pending or failed"
        )


def lineage(
    history: History,
    searcher: str,
    origin: Architecture,
    steps: Sequence[Step],
    seconds: Mapping[str, float] | None = None,
) -> Provenance:
    """Of which trial a network was made, and how; of none where the pool was never evaluated."""
    return Provenance(
        searcher=searcher,
        parents=tuple(trial.number for trial in history if trial.arch == origin)[:1],
        modifiers=tuple(step.modifier for step in steps),
        changes=tuple(str(step) for step in steps),
        seconds=seconds or {},
    )


def best_networks(history: History, n: int) -> list[Architecture]:
    """The networks of the ``n`` best trials, the best first; of equals the one recorded first."""
    return [trial.arch for trial in history.ranked[:n]]


def member(kind: type[Kind], value: str, option: str) -> Kind:
    """The member of an enumeration with this value, or an error that lists them."""
    try:
        return kind(value)
    except ValueError:
        raise OptionError(f"{option}: expected one of {', '.join(kind)}, got {str(value)[:40]!r}") from None

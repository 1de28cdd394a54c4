"""What the four searchers share: they begin from a pool of networks and make others from it by modifiers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from nasbot._typing import Json
from nasbot.acquisition import Found
from nasbot.architecture import Architecture, SearchSpace, initial_pool
from nasbot.errors import ExhaustedError, NasbotError, OptionError
from nasbot.evolution import MODIFIERS, MutationOperator, Step, one_step_edits
from nasbot.searchers.settings import described
from nasbot.trial import History, Trial

Kind = TypeVar("Kind", bound=StrEnum)


@dataclass(frozen=True, kw_only=True)
class PoolSearcher:
    """Where to search, from which networks to begin, and by which modifiers others are made of them."""

    space: SearchSpace
    pool: tuple[Architecture, ...] | None = None  # the initial pool of the space's kind by default
    modifiers: tuple[str, ...] = tuple(MODIFIERS)

    def __post_init__(self) -> None:
        if self.pool is not None:
            object.__setattr__(self, "pool", tuple(self.pool))
        _check_pool(self.space, self.initial_pool())
        self.operator()  # which knows what modifiers there are
        object.__setattr__(self, "modifiers", tuple(self.modifiers))

    def initial_pool(self) -> tuple[Architecture, ...]:
        """The networks evaluated first, and from which evolution starts."""
        return initial_pool(self.space.kind) if self.pool is None else self.pool

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
        known = dict.fromkeys((*self.initial_pool(), *(trial.arch for trial in history)))
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


def lineage(history: History, origin: Architecture, steps: Sequence[Step]) -> dict[str, Json]:
    """For the notes: of which trial a network was made, and how; of none where the pool was never evaluated."""
    return {
        "parents": [trial.number for trial in history if trial.arch == origin][:1],
        "modifiers": [step.modifier for step in steps],
        "changes": [str(step) for step in steps],
    }


def best_networks(completed: Sequence[Trial], n: int) -> list[Architecture]:
    """The ``n`` networks of highest value, the best first; of equals the one recorded first."""
    ranked = sorted(completed, key=lambda trial: (-(trial.value or 0.0), trial.rank))
    return [trial.arch for trial in ranked[:n]]


def member(kind: type[Kind], value: str, option: str) -> Kind:
    """The member of an enumeration with this value, or an error that lists them."""
    try:
        return kind(value)
    except ValueError:
        raise OptionError(f"{option}: expected one of {', '.join(kind)}, got {str(value)[:40]!r}") from None


def _check_pool(space: SearchSpace, pool: Sequence[Architecture]) -> None:
    """Raise unless the pool has a network and all of them lie in the space."""
    if not pool:
        raise OptionError("pool: expected at least one network, got none")
    for i, arch in enumerate(pool):
        if not isinstance(arch, Architecture):
            raise OptionError(f"pool network {i}: expected an Architecture, got {type(arch).__name__}")
        try:
            space.check(arch)
        except NasbotError as error:
            error.args = (f"pool network {i}: {error}",)
            raise

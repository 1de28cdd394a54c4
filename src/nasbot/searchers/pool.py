"""What the four searchers share: they begin from a pool of candidates and make others from it by modifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from nasbot._typing import Json
from nasbot.acquisition import Found, Settings
from nasbot.acquisition.maximise import known_params
from nasbot.architecture import Architecture, SearchSpace
from nasbot.architecture.pools import pool_within
from nasbot.candidate import Candidate
from nasbot.domain import BOCA, PROMOTION, Domain, Fidelity, Param, check_pool, fidelity_of
from nasbot.errors import ExhaustedError, OptionError
from nasbot.evolution import MODIFIERS, MutationOperator, one_step_edits
from nasbot.evolution.modifiers import AnyModifier
from nasbot.searchers.again import repeat_due
from nasbot.searchers.base import Proposal
from nasbot.searchers.promotion import by_rank, next_rung
from nasbot.searchers.settings import described
from nasbot.trial import History, Provenance, Trial

RETUNE = "retune"  # the modifier that changes params
Kind = TypeVar("Kind", bound=StrEnum)


@dataclass(frozen=True, kw_only=True)
class PoolSearcher:
    """Where to search, from which networks to begin, and by which modifiers others are made of them."""

    space: SearchSpace
    params: Mapping[str, Param] = field(default_factory=dict)  # searched together with the network
    fidelity: Fidelity | None = None  # or a word for one, as of ``fidelity_of``
    # The initial pool of the space's kind as far as it fits by default; networks are taken with default params.
    pool: tuple[Candidate | Architecture, ...] | None = None
    modifiers: tuple[str | AnyModifier, ...] = tuple(MODIFIERS)
    # Whether one of the best two is evaluated again, with another seed, where they differ by less than the noise.
    repeats_best: bool = False
    name: str = ""
    has_belief: ClassVar[bool] = False  # over candidates and fidelities

    def __post_init__(self) -> None:
        self._check_space()
        object.__setattr__(self, "fidelity", fidelity_of(self.fidelity))
        if self.fidelity is not None and self.fidelity.rule == BOCA and not self.has_belief:
            raise OptionError(
                f"fidelity: rule 'boca' asks a belief at every share, which {self.name} has not; expected NASBOT, or "
                "rule 'promotion'"
            )
        if type(self.repeats_best) is not bool:
            raise OptionError(f"repeats_best: expected True or False, got {str(self.repeats_best)[:40]!r}")
        if not self.initial_pool():
            raise OptionError("pool: expected at least one network, got none")
        check_pool(self.initial_pool(), self.domain)
        self.operator()  # which knows what modifiers there are
        object.__setattr__(self, "modifiers", tuple(self.modifiers))

    def _check_space(self) -> None:
        given: object = self.space
        if not isinstance(given, SearchSpace):
            expected = "expected a SearchSpace, such as SearchSpace('cnn')"
            raise OptionError(f"space: {expected}, got {str(given)[:40]!r} ({type(given).__name__})")

    @cached_property
    def domain(self) -> Domain:
        """What is searched."""
        return Domain(self.space, self.params, self.fidelity)

    def initial_pool(self) -> tuple[Candidate, ...]:
        """The candidates evaluated first, and from whose networks evolution starts."""
        pool = pool_within(self.space) if self.pool is None else self.pool
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

    @property
    def first_rung(self) -> float:
        """The fidelity at which a new candidate is evaluated."""
        return 1.0 if self.fidelity is None else self.fidelity.rungs[0]

    def promoted(self, history: History) -> Proposal | None:
        """The known candidate to train next, once more or, by successive halving, longer; None: a new one is due."""
        if self.repeats_best and (repeat := repeat_due(history)) is not None:
            origin = Provenance(searcher=self.name, of_trial=repeat.of.number)
            return Proposal(repeat.of.candidate, origin=origin)
        if self.fidelity is None or self.fidelity.rule != PROMOTION:
            return None
        trial = by_rank(history, self.fidelity)
        return None if trial is None else self.promotion(trial)

    def promotion(self, trial: Trial, rung: float | None = None) -> Proposal:
        """The trial's candidate at the next rung, unless another one is given."""
        assert self.fidelity is not None
        rung = rung or next_rung(self.fidelity, trial.fidelity)
        assert rung is not None
        origin = Provenance(searcher=self.name, parents=(trial.number,))
        return Proposal(trial.candidate, rung, trial.number, origin=origin)

    def lineage(
        self,
        history: Sequence[Trial],
        candidate: Candidate,
        found: Found | None,
        seconds: Mapping[str, float] | None = None,
    ) -> Provenance:
        """Of which trial a candidate was made, and how; of none where the pool was never evaluated."""
        if found is None:
            return Provenance(searcher=self.name, seconds=seconds or {})
        parents = [trial for trial in history if trial.arch == found.origin]
        parent = next((trial for trial in parents if trial.candidate.params == candidate.params), None)
        parent = parent or next(iter(parents), None)
        before = self.domain.default() if parent is None else parent.candidate.params
        retuned = [f"{name} {shown(value)}" for name, value in candidate.params.items() if before.get(name) != value]
        return Provenance(
            searcher=self.name,
            parents=() if parent is None else (parent.number,),
            modifiers=(*(step.modifier for step in found.steps), *([RETUNE] if retuned else [])),
            changes=(*map(str, found.steps), *([f"{RETUNE}: {', '.join(retuned)}"] if retuned else [])),
            seconds=seconds or {},
        )

    def drawn_setting(self, history: History, rng: np.random.Generator) -> Settings:
        """One setting of the params, uniformly drawn; the empty one where none are searched."""
        if not self.params:
            return Settings(({},), history.seen)
        return Settings((self.domain.drawn(rng),), history.seen, known_params(history))

    def any_new(self, history: History, *, rng: np.random.Generator) -> Candidate:
        """A network one step from one that is known, or of the pool; for when evolution has found nothing new.

        A small space is thus searched to its last network: ExhaustedError says that no edit of any known network leads
        to another one. Where params are searched, a known network with other ones will do.
        """
        known = dict.fromkeys((*self.initial_pool(), *(trial.candidate for trial in history)))
        for candidate in known:
            if candidate.fingerprint not in history.seen:
                return candidate
        for candidate in known:
            for edit in one_step_edits(candidate.arch, self.space, modifiers=self.modifiers):
                made = Candidate(edit.arch, candidate.params)
                if made.fingerprint not in history.seen:
                    return made
        for candidate in known if self.params else ():
            made = Candidate(candidate.arch, self.domain.drawn(rng))
            if made.fingerprint not in history.seen:
                return made
        raise ExhaustedError(
            f"all of the {len(history.seen)} networks that the modifiers lead to are evaluated, pending or failed"
        )


def shown(value: float | int | str) -> str:
    """The value of a param, for people."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def best_networks(history: History, n: int) -> list[Architecture]:
    """The networks of the ``n`` best trials, the best first; of equals the one recorded first."""
    return [trial.arch for trial in history.ranked[:n]]


def member(kind: type[Kind], value: str, option: str) -> Kind:
    """The member of an enumeration with this value, or an error that lists them."""
    try:
        return kind(value)
    except ValueError:
        raise OptionError(f"{option}: expected one of {', '.join(kind)}, got {str(value)[:40]!r}") from None

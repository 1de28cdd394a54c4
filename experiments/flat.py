"""What people use instead: a flat space of depth, widths and one activation, searched by Optuna or at random.

Both are searchers like any other, so that trainer, workers, clock and records are the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np
import optuna

from nasbot import Architecture, Layer, SearchSpace
from nasbot.architecture import chain
from nasbot.candidate import Candidate
from nasbot.domain import Choice, Domain, Float, Param
from nasbot.errors import ExhaustedError, OptionError
from nasbot.searchers import Proposal
from nasbot.trial import History, Scored, Trial

optuna.logging.set_verbosity(optuna.logging.WARNING)

SAMPLERS = ("tpe", "gp")
MOST_TRIES = 50  # for a network that is not known yet
Params = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class FlatSpace:
    """Chains: how many layers, a width for each, one activation for all."""

    max_depth: int = 8
    min_width: int = 8
    max_width: int = 256
    activations: tuple[str, ...] = ("relu", "leaky-relu", "elu", "softplus", "tanh", "logistic")

    def distributions(self) -> dict[str, optuna.distributions.BaseDistribution]:
        """As Optuna has them. Widths of layers that are not there are not looked at."""
        width = optuna.distributions.IntDistribution(self.min_width, self.max_width, log=True)
        return {
            "depth": optuna.distributions.IntDistribution(1, self.max_depth),
            "activation": optuna.distributions.CategoricalDistribution(self.activations),
            **{f"width_{i}": width for i in range(self.max_depth)},
        }

    def network(self, kind: str, params: Mapping[str, Any]) -> Architecture:
        """The chain of these parameters."""
        widths = [int(params[f"width_{i}"]) for i in range(int(params["depth"]))]
        return chain(kind, [Layer(str(params["activation"]), width) for width in widths])

    def of_network(self, arch: Architecture) -> Params:
        """The parameters of a chain of one activation, within the space; further widths are that of its last layer."""
        hidden = [arch.layers[u] for u in arch.processing_layers]
        widths = [min(max(int(layer.units or 1), self.min_width), self.max_width) for layer in hidden]
        widths = (widths + widths[-1:] * self.max_depth)[: self.max_depth]
        depth = min(len(hidden), self.max_depth)
        return {"depth": depth, "activation": hidden[0].label, **{f"width_{i}": w for i, w in enumerate(widths)}}

    def drawn(self, rng: np.random.Generator) -> Params:
        """Uniformly, widths on a logarithmic scale."""
        low, high = log(self.min_width), log(self.max_width + 1)
        widths = {f"width_{i}": int(exp(rng.uniform(low, high))) for i in range(self.max_depth)}
        depth, activation = int(rng.integers(1, self.max_depth + 1)), str(rng.choice(self.activations))
        return {"depth": depth, "activation": activation, **widths}


def distribution_of(param: Param) -> optuna.distributions.BaseDistribution:
    """A param of a search with its range, as Optuna has it; an ordered choice of numbers by its places."""
    if isinstance(param, Choice):
        if param.ordered:
            return optuna.distributions.IntDistribution(0, len(param.values) - 1)
        return optuna.distributions.CategoricalDistribution(param.values)
    if isinstance(param, Float):
        return optuna.distributions.FloatDistribution(param.low, param.high, log=param.log)
    return optuna.distributions.IntDistribution(param.low, param.high, log=param.log)


def to_optuna(params: Mapping[str, Param], values: Mapping[str, Any]) -> Params:
    """Values of params as ``distribution_of`` has them."""
    return {name: _place(params[name], value) for name, value in values.items()}


def from_optuna(params: Mapping[str, Param], values: Mapping[str, Any]) -> Params:
    """The values of these params again, of what Optuna suggests."""
    return {
        name: param.values[values[name]] if isinstance(param, Choice) and param.ordered else values[name]
        for name, param in params.items()
    }


def _place(param: Param, value: Any) -> Any:
    return param.values.index(value) if isinstance(param, Choice) and param.ordered else value


@dataclass(frozen=True, kw_only=True)
class FlatRandom:
    """Random search in the flat space."""

    space: SearchSpace
    flat: FlatSpace = FlatSpace()
    name: str = "flat random"

    @property
    def domain(self) -> Domain:
        """Networks alone: here the params are theirs."""
        return Domain(self.space)

    def initial_pool(self) -> tuple[Candidate, ...]:
        """None: people begin with nothing."""
        return ()

    def settings(self) -> Mapping[str, Any]:
        """Everything a proposal depends on besides space and history."""
        flat = {**vars(self.flat), "activations": list(self.flat.activations)}
        return {"searcher": self.name, "flat": flat}

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """A network that is not known yet."""
        for _ in range(MOST_TRIES):
            params = self.suggested(history, rng)
            arch = self.flat.network(str(self.space.kind), params)
            if arch.fingerprint not in history.seen and arch in self.space:
                return Proposal(Candidate(arch), notes={"params": params})
        raise ExhaustedError(f"{self.name}: {MOST_TRIES} networks in a row were known or outside the space")

    def suggested(self, history: History, rng: np.random.Generator) -> Params:
        """Parameters to try."""
        return self.flat.drawn(rng)


@dataclass(frozen=True, kw_only=True)
class OptunaSearch(FlatRandom):
    """Optuna's samplers with their own defaults. The Optuna study is made anew from the history each time."""

    sampler: str = "tpe"
    name: str = "Optuna"

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise OptionError(f"sampler: expected one of {', '.join(SAMPLERS)}, got {self.sampler!r}")

    def settings(self) -> Mapping[str, Any]:
        """Everything a proposal depends on besides space and history."""
        return {**super().settings(), "sampler": self.sampler}

    def suggested(self, history: History, rng: np.random.Generator) -> Params:
        """What Optuna asks for after this history, its pending trials running."""
        with without_notices():
            study = optuna.create_study(direction="maximize", sampler=self._sampler(int(rng.integers(2**31))))
            distributions = self.flat.distributions()
            for trial in history:
                if (known := _known(history, trial, distributions)) is not None:
                    study.add_trial(known)
            return dict(study.ask(distributions).params)

    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        if self.sampler == "gp":
            return optuna.samplers.GPSampler(seed=seed)
        return optuna.samplers.TPESampler(seed=seed, constant_liar=True)


def _known(history: History, trial: Trial, distributions: Mapping[str, Any]) -> optuna.trial.FrozenTrial | None:
    """A trial as Optuna knows it; failed and cancelled ones are left out, and so are those of other searchers."""
    params = trial.notes.get("params")
    if not isinstance(params, Mapping) or (trial.outcome is not None and not isinstance(trial.outcome, Scored)):
        return None
    state = optuna.trial.TrialState.RUNNING if trial.outcome is None else optuna.trial.TrialState.COMPLETE
    value = None if trial.value is None else history.merit(trial)
    return optuna.trial.create_trial(params=dict(params), distributions=dict(distributions), value=value, state=state)


@contextmanager
def without_notices() -> Iterator[None]:
    """Optuna says of some options that they may change; results carry its version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield

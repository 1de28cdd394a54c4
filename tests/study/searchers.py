"""A searcher for tests: random MLPs, but drawn so that any difference in the history gives another network."""

import zlib
from dataclasses import dataclass, field

import numpy as np

from nasbot.architecture import initial_pool
from nasbot.architecture.space import SearchSpace
from nasbot.candidate import Candidate
from nasbot.domain import Domain
from nasbot.errors import ExhaustedError
from nasbot.searchers import Proposal
from nasbot.testing.networks import random_architecture
from nasbot.trial import Forecast


@dataclass(frozen=True)
class Sensitive:
    """Its proposals depend on values, their order and the pending networks, and on nothing else."""

    space: SearchSpace = field(default_factory=lambda: SearchSpace("mlp-reg"))
    n_layers: int = 8
    n_pool: int = 3
    name: str = "sensitive"

    @property
    def domain(self):
        return Domain(self.space)

    def initial_pool(self):
        return tuple(Candidate(arch) for arch in initial_pool("mlp-reg")[: self.n_pool])

    def settings(self):
        return {"n_layers": self.n_layers, "nested": {"power": 1.0}}

    def propose(self, history, *, rng):
        known = (
            [(t.arch.fingerprint, t.value) for t in history.completed],
            [t.arch.fingerprint for t in history.pending],
            [t.arch.fingerprint for t in history.failed],
        )
        mixed = np.random.default_rng([zlib.crc32(repr(known).encode()), int(rng.integers(2**31))])
        for _ in range(100):
            arch = random_architecture("mlp-reg", rng=mixed, n_layers=self.n_layers)
            if arch in self.space and arch.fingerprint not in history.seen:
                return Proposal(Candidate(arch), forecast=Forecast(mean=0.5))
        raise ExhaustedError("nothing new was found")


class Explaining(Sensitive):
    def explain(self, history, trial, *, rng):
        return ("explained", len(history), trial.number, rng.integers(2**31))

    def what_if(self, history, *, rng):
        return ("what if", len(history))


class Finite(Sensitive):
    """Has nothing to propose beyond its pool until something is completed, and then only ``n`` networks."""

    n_networks = 2

    def propose(self, history, *, rng):
        if not history.completed or len(history) >= self.n_pool + self.n_networks:
            raise ExhaustedError("the space is exhausted")
        return super().propose(history, rng=rng)


class Repeating(Sensitive):
    def propose(self, history, *, rng):
        return Proposal(history[0].candidate)


class Straying(Sensitive):
    def propose(self, history, *, rng):
        return Proposal(Candidate(random_architecture("mlp-reg", rng=rng, n_layers=100)))

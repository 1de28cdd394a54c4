"""Evolution of Appendix B.2 as ask and tell: select by fitness, mutate, evaluate, repeat.

The fitness is the caller's: the acquisition (many cheap evaluations, a batch at a time), the objective itself (the EA
baseline) or Uniform(0, 1) (RAND).

    evolution = Evolution(MutationOperator(space), initial_pool(kind))
    evolution.tell(pool, fitness_of(pool))
    while evaluations are left:
        mutations = evolution.ask(n_mutations, rng=rng)
        evolution.tell([mutation.arch for mutation in mutations], fitness_of(mutations))
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nasbot.architecture import Architecture
from nasbot.architecture.resources import check_whole
from nasbot.errors import OptionError
from nasbot.evolution.modifier import Rejected
from nasbot.evolution.mutation import Mutation, MutationOperator
from nasbot.evolution.selection import select, selection_probabilities

# Mutations tried by one ask: some, and more for each one asked for. Duplicates are rare in the paper's spaces; in a
# small one, where nearly everything near the best has been seen, asking must come to an end.
TRIES = 100
TRIES_EACH = 20
TRIES_IN_VAIN = 40  # one after the other, and as many as are asked for: then as good as all is used up


def evaluation_schedule(step: int) -> int:
    """n_EA, the evaluations of the acquisition at step t of the search: 25 sqrt(t), between 50 and 500.

    The paper says O(sqrt(t)); the numbers are the authors' release's.
    """
    check_whole("step", step, at_least=0)
    return int(min(max(25 * math.sqrt(step), 50), 500))


def mutation_schedule(n_evaluations: int) -> int:
    """N_mut, the mutations between two selections: 3 sqrt(n_EA), between 5 and 100 (the paper: O(sqrt(n_EA)))."""
    check_whole("n_evaluations", n_evaluations, at_least=0)
    return int(min(max(3 * math.sqrt(n_evaluations), 5), 100))


class Evolution:
    """Selection and mutation over a growing population, one batch at a time.

    ``ask`` never gives a network that was told, asked for before, in the initial population or in ``avoid``, nor the
    same twice, all up to the numbering of layers. Parents are drawn from the networks told, by their fitness; until
    something is told, from the initial population, all being equal. What is drawn depends on the order in which
    networks were told, and on nothing else but ``rng``.
    """

    def __init__(
        self,
        operator: MutationOperator,
        initial_population: Iterable[Architecture],
        *,
        avoid: Container[Architecture] = (),
        temperature: float = 1.0,
    ) -> None:
        self.operator = operator
        self.temperature = temperature
        self._initial = tuple(initial_population)
        if not self._initial:
            raise OptionError("initial_population: expected at least one network, got none")
        self._fitness: dict[Architecture, float] = {}  # in the order of telling
        self._taken = set(self._initial)
        self._avoid = avoid  # asked, never gone through: it may be thousands
        self.n_duplicates = 0  # mutations thrown away because their network was known

    def copy(self, *, avoid: Container[Architecture]) -> Evolution:
        """Another one that has been told the same, avoids these, and goes on by itself."""
        made = Evolution(self.operator, self._initial, avoid=avoid, temperature=self.temperature)
        made._fitness, made._taken, made.n_duplicates = dict(self._fitness), set(self._taken), self.n_duplicates
        return made

    @property
    def population(self) -> tuple[Architecture, ...]:
        """The networks told so far, in order; parents are drawn from these."""
        return tuple(self._fitness)

    @property
    def fitness(self) -> NDArray[np.float64]:
        """The fitness of each network of ``population``."""
        return np.array(list(self._fitness.values()), dtype=np.float64)

    def best(self) -> tuple[Architecture, float]:
        """The fittest network told so far, the first of equals, and its fitness."""
        if not self._fitness:
            raise OptionError("nothing has been told yet, so no network is the best")
        return max(self._fitness.items(), key=lambda item: item[1])

    def tell(self, networks: Sequence[Architecture], fitness: ArrayLike) -> None:
        """Add networks and their fitness to the population; a network told again has its new fitness from now on.

        -inf marks a network that must not be selected. NaN, +inf and a wrong number of values raise OptionError, and
        then nothing is added.
        """
        values = np.asarray(fitness, dtype=np.float64)
        if values.shape != (len(networks),):
            raise OptionError(f"fitness: expected one value for each of {len(networks)} networks, got {values.shape}")
        if np.isnan(values).any() or (values == np.inf).any():
            raise OptionError(f"fitness: expected finite numbers or -inf, got {values[~(values < np.inf)][0]}")
        self._fitness.update(zip(networks, values.tolist(), strict=True))
        self._taken.update(networks)

    def ask(self, n_mutations: int, *, rng: np.random.Generator) -> list[Mutation]:
        """``n_mutations`` new networks with their lineage; fewer, or none, where the neighbourhood is used up."""
        check_whole("n_mutations", n_mutations, at_least=0)
        parents, probabilities = self._parents()
        found: list[Mutation] = []
        n_tries = TRIES + TRIES_EACH * n_mutations
        n_in_vain = 0
        while len(found) < n_mutations and n_tries > 0 and n_in_vain < TRIES_IN_VAIN + n_mutations:
            n_draws = min(n_mutations - len(found), n_tries)
            n_tries -= n_draws
            drawn = [self.operator(parents[i], rng=rng) for i in select(probabilities, n_draws, rng=rng)]
            new = [mutation for mutation in drawn if self._is_new(mutation)]
            n_in_vain = 0 if new else n_in_vain + n_draws
            found += new
        return found

    def _parents(self) -> tuple[tuple[Architecture, ...], NDArray[np.float64]]:
        if not self._fitness:
            return self._initial, selection_probabilities(np.zeros(len(self._initial)))
        return self.population, selection_probabilities(self.fitness, temperature=self.temperature)

    def _is_new(self, mutation: Mutation | Rejected) -> TypeGuard[Mutation]:
        """Whether this is a network not known so far; it is known from now on."""
        if isinstance(mutation, Rejected):
            return False
        if mutation.arch in self._taken or mutation.arch in self._avoid:
            self.n_duplicates += 1
            return False
        self._taken.add(mutation.arch)
        return True

"""Microseconds for a mutation: ``python -m benchmarks.mutation``.

Times the compound operator alone, and Evolution.ask, which also recognises duplicates, on the initial pools and on
random networks of 15 to 30 layers. Processor time, the best of several rounds, since the machine is shared.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from nasbot.architecture import Architecture, initial_pool
from nasbot.architecture.space import SearchSpace
from nasbot.evolution import Evolution, Mutation, MutationOperator
from nasbot.testing.networks import random_architecture

N_MUTATIONS = 500
ROUNDS = 20


def main() -> None:
    """Print one line for each set of networks."""
    print(f"{'networks':24} {'us/mutation':>11} {'us/step':>8} {'us/candidate asked for':>23} {'rejected':>9}")
    for kind in ("mlp-reg", "cnn"):
        space = SearchSpace(kind)
        print(_line(f"{kind}, initial pool", initial_pool(kind), space))
        for n_layers in (15, 22, 30):
            print(_line(f"{kind}, {n_layers} layers", _random_networks(kind, n_layers, space), space))


def _random_networks(kind: str, n_layers: int, space: SearchSpace) -> list[Architecture]:
    rng = np.random.default_rng(0)
    drawn = [random_architecture(kind, rng=rng, n_layers=n_layers) for _ in range(100)]
    return [arch for arch in drawn if arch in space]


def _line(name: str, networks: Sequence[Architecture], space: SearchSpace) -> str:
    mutating, asking, n_steps, n_rejected = [], [], 0, 0
    for _ in range(ROUNDS):
        operator, rng = MutationOperator(space), np.random.default_rng(1)
        start = time.process_time()
        outcomes = [operator(networks[i % len(networks)], rng=rng) for i in range(N_MUTATIONS)]
        mutating.append(time.process_time() - start)
        n_steps = sum(len(outcome.steps) for outcome in outcomes if isinstance(outcome, Mutation))
        n_rejected = sum(operator.rejections.values())
        evolution = Evolution(operator, networks)
        start = time.process_time()
        evolution.ask(N_MUTATIONS, rng=rng)
        asking.append(time.process_time() - start)
    mutation, asked = 1e6 * min(mutating) / N_MUTATIONS, 1e6 * min(asking) / N_MUTATIONS
    step = 1e6 * min(mutating) / n_steps
    return f"{name:24} {mutation:11.0f} {step:8.0f} {asked:23.0f} {n_rejected / (n_steps + n_rejected):9.1%}"


if __name__ == "__main__":
    main()

"""How long NASBOT takes to decide: one ``propose`` with 20, 50, 150 and 500 evaluated networks of 10 to 60 layers.

``python -m benchmarks.deciding``. A study is gone on with: the searcher has proposed before, so it remembers the
distances between old networks, and each proposal is evaluated and told before the next. The first proposal after a
resume, which has to compute them all, is reported apart.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.bars import Bar
from nasbot._rng import Role, stream
from nasbot.architecture import Architecture, SearchSpace
from nasbot.candidate import Candidate
from nasbot.searchers import NASBOT, Proposal
from nasbot.synthetic import SYNTHETIC
from nasbot.testing.networks import random_architecture
from nasbot.trial import History, Scored

SIZES = (20, 50, 150, 500)
FUNCTIONS = {"mlp-reg": "f2", "cnn": "f1"}
LAYERS = (10, 60)
P95_SECONDS = {150: 1.0}
BUSY_FACTOR = 4.0  # on a machine that others use
PURPOSES = ("distances", "fitting", "maximising")


@dataclass(frozen=True)
class Decision:
    """One proposal: seconds by the wall and of the processor, the seconds of each part, utilities computed."""

    wall: float
    cpu: float
    parts: tuple[float, ...]
    n_utilities: int


def evaluated(kind: str, n: int) -> History:
    """A history of n random networks of the paper's search space, of mixed sizes."""
    rng = stream(0, n, Role.EXPERIMENT)
    space, history = SearchSpace(kind), History()
    while len(history) < n:
        arch = random_architecture(kind, rng=rng, n_layers=int(rng.integers(*LAYERS, endpoint=True)))
        if arch in space and arch.fingerprint not in history.seen:
            history = told(history, Proposal(Candidate(arch)))
    return history


def told(history: History, proposal: Proposal) -> History:
    """The history in which the proposal is evaluated."""
    n = len(history)
    trial = proposal.trial(history).begun(float(n))
    return history.with_trial(trial.ended(Scored(_value(proposal.arch)), at=n + 1.0, rank=n))


def _value(arch: Architecture) -> float:
    return SYNTHETIC[FUNCTIONS[arch.kind]](arch)


def decide(searcher: NASBOT, history: History) -> tuple[Proposal, Decision]:
    """One measured proposal."""
    rng = stream(0, len(history), Role.PROPOSAL)
    wall, cpu = time.perf_counter(), time.process_time()
    proposal = searcher.propose(history, rng=rng)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    parts = tuple(proposal.origin.seconds[purpose] for purpose in PURPOSES)
    said = proposal.forecast
    n_utilities = 0 if said is None or said.n_utilities is None else said.n_utilities
    return proposal, Decision(wall, cpu, parts, n_utilities)


def measure(kind: str, n: int, n_proposals: int) -> dict[str, float]:
    """All figures at n evaluations and a few more."""
    searcher = NASBOT(space=SearchSpace(kind))
    history = evaluated(kind, n)
    proposal, first = decide(searcher, history)
    decisions = []
    for _ in range(n_proposals):
        history = told(history, proposal)
        proposal, decision = decide(searcher, history)
        decisions.append(decision)
    wall = np.array([decision.wall for decision in decisions])
    cpu = np.array([decision.cpu for decision in decisions])
    parts = np.mean([decision.parts for decision in decisions], axis=0)
    return {
        "p50": float(np.quantile(wall, 0.5)),
        "p95": float(np.quantile(wall, 0.95)),
        "p50 CPU": float(np.quantile(cpu, 0.5)),
        "p95 CPU": float(np.quantile(cpu, 0.95)),
        **{purpose: float(part) for purpose, part in zip(PURPOSES, parts, strict=True)},
        "resumed": first.wall,
        "utilities": float(np.mean([decision.n_utilities for decision in decisions])),
    }


def run(repetitions: int) -> tuple[dict[str, Any], list[Bar]]:
    """Measure, print, and return the raw numbers and the bars; four proposals for each repetition."""
    decide(NASBOT(space=SearchSpace("mlp-reg")), evaluated("mlp-reg", 5))  # once, so that everything is compiled
    figures = {(kind, n): measure(kind, n, 4 * repetitions) for kind in FUNCTIONS for n in SIZES}
    names = list(next(iter(figures.values())))
    print("seconds to decide".ljust(22) + "".join(f"{name:>12}" for name in names))
    for (kind, n), row in figures.items():
        cells = [f"{row[name]:12.0f}" if name == "utilities" else f"{row[name]:12.3f}" for name in names]
        print(f"{kind}, n = {n}".ljust(22) + "".join(cells))
    print()
    bars = [
        Bar(f"deciding: p95 at {n} evaluations, {kind}", row["p95"], limit, BUSY_FACTOR * limit, False, "s")
        for (kind, n), row in figures.items()
        if (limit := P95_SECONDS.get(n)) is not None
    ]
    return {f"{kind} {n}": row for (kind, n), row in figures.items()}, bars


if __name__ == "__main__":
    print(*run(repetitions=5)[1], sep="\n")

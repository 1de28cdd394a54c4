"""How long NASBOT takes to decide: one ``propose`` with 20, 50, 150 and 500 evaluated networks of 10 to 60 layers.

``python -m benchmarks.deciding``. A study is gone on with: the searcher has proposed before, so it remembers the
distances between old networks, and each proposal is evaluated and told before the next. The first proposal after a
resume, which has to compute them all, is reported apart. So is the processor time with six params searched beside the
networks over that without, both asked by turns after the same networks: ``python -m benchmarks.deciding --params``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bars import Bar
from nasbot._rng import Role, stream
from nasbot.architecture import Architecture, SearchSpace
from nasbot.candidate import Candidate
from nasbot.domain import Choice, Domain, Float, Param
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
PARAMS: Mapping[str, Param] = {
    "learning_rate": Float(1e-4, 1e-1, log=True),
    "weight_decay": Float(1e-6, 1e-1, log=True),
    "dropout": Float(0.0, 0.4),
    "label_smoothing": Float(0.0, 0.2),
    "batch_size": Choice(16, 32, 64, 128, ordered=True),
    "schedule": Choice("cosine", "constant"),
}
WITH_PARAMS_AT = 150  # evaluations
TIMES_WITH_PARAMS = 1.3  # as much processor time, at the 95th percentile
ARMS = ("networks", "joint")
N_HISTORIES = 4
N_ROUNDS = 2


@dataclass(frozen=True)
class Decision:
    """One proposal: seconds by the wall and of the processor, the seconds of each part, utilities computed."""

    wall: float
    cpu: float
    parts: tuple[float, ...]
    n_utilities: int


def evaluated(kind: str, n: int, seed: int = 0) -> History:
    """A history of n random networks of the paper's search space, of mixed sizes."""
    rng = stream(seed, n, Role.EXPERIMENT)
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


def with_params(kind: str, n_proposals: int) -> dict[str, float]:
    """Processor time of a proposal with six params and without, after the same networks and by turns.

    Of several histories, since which networks a search looks at, and so how large they are, differs between the two as
    between any two searches. All is done twice and the shorter time counts: what else the machine does only adds.
    """
    times = [
        np.min([_by_turns(kind, history, -(-n_proposals // N_HISTORIES)) for _ in range(N_ROUNDS)], axis=0)
        for history in range(N_HISTORIES)
    ]
    cpu = dict(zip(ARMS, np.concatenate(times, axis=1), strict=True))
    at = {f"{name} p{q}": float(np.quantile(took, q / 100)) for name, took in cpu.items() for q in (50, 95)}
    return {**at, **{f"ratio p{q}": at[f"joint p{q}"] / at[f"networks p{q}"] for q in (50, 95)}}


def _by_turns(kind: str, history: int, n_proposals: int) -> NDArray[np.float64]:
    """Seconds (arms, proposals) of the processor after one history."""
    space = SearchSpace(kind)
    domain, rng = Domain(space, PARAMS), stream(history, 0, Role.EXPERIMENT)
    searchers = dict(zip(ARMS, (NASBOT(space=space), NASBOT(space=space, params=PARAMS)), strict=True))
    networks, joint = evaluated(kind, WITH_PARAMS_AT, history), History()
    for trial in networks:
        joint = told(joint, Proposal(Candidate(trial.arch, domain.drawn(rng))))
    histories = dict(zip(ARMS, (networks, joint), strict=True))
    seconds: list[list[float]] = []
    for i in range(n_proposals + 1):
        turns = ARMS if i % 2 else ARMS[::-1]
        made = {name: decide(searchers[name], histories[name]) for name in turns}
        arch = made["networks"][0].arch
        for name, (proposal, _) in made.items():
            histories[name] = told(histories[name], Proposal(Candidate(arch, proposal.candidate.params)))
        seconds.append([made[name][1].cpu for name in ARMS])
    return np.array(seconds[1:]).T  # the first computes all distances and is not counted


def params_bars(n_proposals: int) -> tuple[dict[str, Any], list[Bar]]:
    """Measure, print, and return what params add to deciding, and its bars."""
    figures = {kind: with_params(kind, n_proposals) for kind in FUNCTIONS}
    for kind, row in figures.items():
        print(f"{kind}, processor seconds:", ", ".join(f"{name} {value:.3f}" for name, value in row.items()))
    bars = [
        Bar(f"deciding: six params over none, p95, {kind}", row["ratio p95"], TIMES_WITH_PARAMS, 2.0, False, "x")
        for kind, row in figures.items()
    ]
    return {f"{kind} with params": row for kind, row in figures.items()}, bars


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
    joint, joint_bars = params_bars(4 * repetitions)
    return {f"{kind} {n}": row for (kind, n), row in figures.items()} | joint, bars + joint_bars


if __name__ == "__main__":
    print(*(params_bars(40) if "--params" in sys.argv else run(repetitions=5))[1], sep="\n")

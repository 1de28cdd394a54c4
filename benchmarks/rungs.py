"""What rungs of shorter trainings cost and risk: ``python -m benchmarks.rungs deciding`` or ``... deceptive``.

deciding     CPU seconds of a proposal after 150 evaluations on three rungs, against 150 full ones, in turns in one run
deceptive    f1 where a fifth of the networks have their order reversed on lower rungs: what the search with rungs finds
             for the same cost, in full trainings, as the search without
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Sequence

import numpy as np

from benchmarks import deciding
from nasbot._rng import Role, stream
from nasbot.architecture import Architecture, SearchSpace
from nasbot.domain import Fidelity
from nasbot.searchers import NASBOT, Proposal
from nasbot.study import Study
from nasbot.synthetic import SYNTHETIC
from nasbot.trial import History, Scored, Trial

RUNGS = Fidelity()
P95_RATIO = 1.3  # of deciding with three rungs against none
BEHIND = 0.15  # how far deceptive rungs may leave a search behind the one without
MIDDLE = 2.8  # of f1: half-way between its worst random networks and the best that searches find


# -- deciding ----------------------------------------------------------------------------------------------------------


def on_rungs(history: History) -> History:
    """As many evaluations of fewer networks: the best third of each rung has been evaluated on the next one, too."""
    n = len(history)
    sizes = [round(n * share) for share in (9 / 13, 3 / 13)]
    sizes.append(n - sum(sizes))
    networks, found = [trial.candidate for trial in history.completed[: sizes[0]]], History()
    for rung, size in zip(RUNGS.rungs, sizes, strict=True):
        networks = sorted(networks, key=lambda candidate: -_value(candidate.arch))[:size]
        for candidate in networks:
            found = told(found, Proposal(candidate, rung))
    return found


def told(history: History, proposal: Proposal) -> History:
    """The history in which the proposal is evaluated, worse on lower rungs."""
    n = len(history)
    trial = proposal.trial(history).begun(float(n))
    value = _value(proposal.arch) + 0.2 * np.log(proposal.fidelity)
    return history.with_trial(trial.ended(Scored(value), at=n + 1.0, rank=n))


def _value(arch: Architecture) -> float:
    return SYNTHETIC[deciding.FUNCTIONS[arch.kind]](arch)


def times(kind: str, n: int, n_proposals: int) -> dict[str, list[float]]:
    """CPU seconds of proposals without rungs and with them, in turns, the first of each left out."""
    space = SearchSpace(kind)
    searchers = {"full": NASBOT(space=space), "rungs": NASBOT(space=space, fidelity=RUNGS)}
    full = deciding.evaluated(kind, n)
    histories, seconds = {"full": full, "rungs": on_rungs(full)}, {"full": [], "rungs": []}  # type: ignore[var-annotated]
    for i in range(n_proposals + 1):
        for name, searcher in searchers.items():
            begun = time.process_time()
            proposal = searcher.propose(histories[name], rng=stream(0, n + i, Role.PROPOSAL))
            if i:
                seconds[name].append(time.process_time() - begun)
            histories[name] = told(histories[name], proposal)
    return seconds


def measure_deciding(n: int, n_proposals: int) -> bool:
    """Print the figures; whether the bar is held for each kind of network."""
    passed = True
    for kind in deciding.FUNCTIONS:
        found = times(kind, n, n_proposals)
        p50, p95 = ({name: float(np.quantile(s, q)) for name, s in found.items()} for q in (0.5, 0.95))
        ratio = p95["rungs"] / p95["full"]
        passed &= ratio <= P95_RATIO
        figures = {"kind": kind, "evaluations": n, "proposals": n_proposals, "p50": p50, "p95": p95, "ratio": ratio}
        print(json.dumps({"deciding": figures, "bar": P95_RATIO, "passed": ratio <= P95_RATIO}))
    return passed


# -- deceptive rungs ---------------------------------------------------------------------------------------------------


def deceptive(arch: Architecture, fidelity: float) -> float:
    """f1, but below full fidelity a fifth of the networks, by their fingerprints, are as bad as they are good."""
    value = SYNTHETIC["f1"](arch)
    deceives = int(hashlib.sha256(arch.fingerprint.encode()).hexdigest(), 16) % 5 == 0
    return 2 * MIDDLE - value if deceives and fidelity < 1 else value


def best_for(cost: float, seed: int, fidelity: Fidelity | None) -> float:
    """The best full training that a search has found for so many full trainings' cost, pool included."""
    study = Study.in_memory(NASBOT(space=SearchSpace("cnn"), fidelity=fidelity), seed=seed)
    spent = 0.0
    while True:
        trial: Trial = study.ask()
        spent += trial.fidelity
        if spent > cost + 1e-9:
            break
        study.tell(trial, deceptive(trial.arch, trial.fidelity))
    assert study.best is not None
    assert study.best.value is not None
    return study.best.value


def measure_deceptive(cost: float, seeds: Sequence[int], rule: str) -> bool:
    """Print the figures; whether the mean with rungs is at most ``BEHIND`` of that without behind it."""
    found: dict[str, list[float]] = {"full": [], rule: []}
    for seed in seeds:
        for name, fidelity in (("full", None), (rule, Fidelity(rule=rule))):
            found[name].append(best_for(cost, seed, fidelity))
        print(json.dumps({"seed": seed, "cost": cost, **{name: best[-1] for name, best in found.items()}}), flush=True)
    mean = {name: float(np.mean(best)) for name, best in found.items()}
    behind = 1.0 - mean[rule] / mean["full"]
    print(json.dumps({"deceptive": mean, "behind": behind, "bar": BEHIND, "passed": behind <= BEHIND}))
    return behind <= BEHIND


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.rungs", description=__doc__)
    parser.add_argument("what", choices=("deciding", "deceptive"))
    parser.add_argument("--evaluations", type=int, default=150)
    parser.add_argument("--proposals", type=int, default=20)
    parser.add_argument("--cost", type=float, default=40.0, help="budget in full trainings")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rule", choices=("promotion", "boca"), default="promotion")
    options = parser.parse_args(arguments)
    if options.what == "deciding":
        return 0 if measure_deciding(options.evaluations, options.proposals) else 1
    return 0 if measure_deceptive(options.cost, range(9000, 9000 + options.seeds), options.rule) else 1


if __name__ == "__main__":
    raise SystemExit(main())

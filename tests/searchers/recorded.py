"""What searchers decided in short studies of many kinds, as the beginnings of fingerprints.

``test_recorded.py`` decides it again. Where decisions are meant to change, ``python -m tests.searchers.recorded``
writes them anew; a difference that nobody meant is a fault.
"""

import json
from dataclasses import replace
from pathlib import Path

from nasbot import Choice, Fidelity, Float, Integer
from nasbot.architecture import SearchSpace
from nasbot.gp import BeliefOptions
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch, TreeBO
from nasbot.study import Study
from nasbot.trial import Failed, FailureCause, Scored
from tests.searchers.problems import QUICK, made, value_of

FILE = Path(__file__).with_name("recorded.json")
PARAMS = {
    "rate": Float(1e-4, 1e-1, log=True, default=1e-2),
    "batch": Choice(8, 16, 32, 64, ordered=True, default=32),
    "schedule": Choice("cosine", "step"),
    "drops": Integer(1, 4, when=("schedule", "step")),
}
BY_RANKS = replace(QUICK, warp="rank")  # the default when most of NASBOT's cases were recorded
MANY = BeliefOptions(inference="map", n_restarts=1, local_above=12, warp="rank")
COSTLY = SearchSpace("mlp-reg", max_layers=12, input_shape=(8,))
# searcher, its options, trials, how many are pending at a time, which trials fail
CASES = {
    "EA": (EvolutionSearch, {}, 40, 0, ()),
    "EA, params": (EvolutionSearch, {"params": PARAMS}, 40, 2, (5,)),
    "EA, rungs": (EvolutionSearch, {"fidelity": Fidelity(), "n_mutations": 4}, 40, 1, (7,)),
    "EA, repeats": (EvolutionSearch, {"repeats_best": True}, 40, 0, ()),
    "RAND": (RandomSearch, {}, 25, 1, (4,)),
    "RAND, params": (RandomSearch, {"params": PARAMS}, 20, 0, ()),
    "TreeBO": (TreeBO, {}, 20, 2, (6,)),
    "TreeBO, params": (TreeBO, {"params": PARAMS}, 14, 1, (6,)),
    "TreeBO, rungs": (TreeBO, {"fidelity": Fidelity()}, 20, 0, ()),
    "NASBOT": (NASBOT, {}, 16, 2, (5, 9)),
    "NASBOT, the best farther apart": (NASBOT, {"belief": QUICK}, 16, 2, (5, 9)),
    "NASBOT, params": (NASBOT, {"params": PARAMS}, 14, 1, (6,)),
    "NASBOT, a prior": (NASBOT, {"params": PARAMS, "prior": {"rate": 0.05}}, 10, 0, ()),
    "NASBOT, rungs": (NASBOT, {"fidelity": Fidelity()}, 24, 1, (8,)),
    "NASBOT, BOCA": (NASBOT, {"fidelity": Fidelity(rule="boca")}, 18, 1, (8,)),
    "NASBOT, cost": (NASBOT, {"space": COSTLY, "cost_weight": 0.5}, 12, 0, ()),
    "NASBOT, many networks": (NASBOT, {"belief": MANY}, 22, 1, (5, 9)),
    "NASBOT, the paper's maximiser": (NASBOT, {"maximiser": "paper", "acquisition": "ucb"}, 14, 0, ()),
    "NASBOT, Thompson": (NASBOT, {"acquisition": "thompson"}, 12, 0, ()),
}


def outcome_of(trial, fails):
    """Longer trainings and rates of about 0.01 are better; a little luck, the same every time."""
    if trial.number in fails:
        return Failed(FailureCause.EXCEPTION, "no")
    rate = trial.candidate.params.get("rate", 0.01)
    return Scored(value_of(trial.arch) + trial.fidelity - abs(rate - 0.01) * 20 + 0.1 * (trial.number * 7 % 5))


def decisions(case):
    """Of each trial after the pool: candidate, fidelity and where it comes from; at the end what is recommended."""
    kind, options, n, n_pending, fails = CASES[case]
    options = {"belief": BY_RANKS, **options} if kind is NASBOT else options
    study = Study.in_memory(made(kind, **options), seed=11)
    pending, found = [], []
    for _ in range(n):
        trial = study.ask()
        if trial.origin.searcher != "pool":
            parents = ",".join(map(str, trial.origin.parents))
            found.append(f"{trial.candidate.fingerprint[:10]} {trial.fidelity:.4g} {parents or '-'}")
        pending.append(trial)
        while len(pending) > n_pending:
            study.tell(first := pending.pop(0), outcome_of(first, fails))
    return [*found, f"recommended {study.recommend().number}"]


if __name__ == "__main__":
    FILE.write_text(json.dumps({case: decisions(case) for case in CASES}, indent=1) + "\n", encoding="utf-8")

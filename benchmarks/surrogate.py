"""How well the belief ranks networks that it has not seen, with the paper's masses and with their logarithms.

``python -m benchmarks.surrogate``. Networks with known values are divided at random; the belief is fitted to one part
and asked about the other. Trained networks come from the records of the experiment ``smoothness`` (120 MLPs on each of
two data sets, the logarithm of the error); the others are families grown from the initial pool, the better ones having
more children, with the values of the synthetic functions. ``--json`` prints the numbers as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from benchmarks.runs import ROOT, Floats, RunFile
from benchmarks.synthetic import KINDS
from nasbot._rng import Role, stream
from nasbot.architecture import Architecture, SearchSpace, initial_pool
from nasbot.evolution import Mutation, MutationOperator
from nasbot.gp import BeliefOptions, Rows, fit_belief
from nasbot.otmann import Otmann
from nasbot.synthetic import SYNTHETIC

RECORDS = ROOT / "docs" / "results" / "records" / "smoothness.jsonl"
PRESETS = ("paper", "log-mass")
N_FAMILY = 140
N_KNOWN = (30, 60)
N_BEST = 40  # of the networks asked about: a search has to tell the good ones apart


class Problem(NamedTuple):
    """Networks, and the value of each, to be maximised."""

    name: str
    networks: Sequence[Architecture]
    values: Floats


class Skill(NamedTuple):
    """Rank correlation of predicted with true values: of all networks asked about, and of the best of them."""

    of_all: float
    of_best: float


def problems(records: Path) -> Iterator[Problem]:
    """Trained networks first, where there are records of them, then the synthetic functions."""
    trained = [record for record in RunFile(records).records() if record["experiment"] == "smoothness"]
    for data in sorted({record["run"]["dataset"] for record in trained}):
        results = [record["result"] for record in trained if record["run"]["dataset"] == data]
        networks = [Architecture.from_dict(result["arch"]) for result in results]
        yield Problem(data, networks, -np.log([result["error"] for result in results]))
    for name, kind in KINDS.items():
        yield _family(name, kind)


def _family(name: str, kind: str) -> Problem:
    rng = stream(0, 0, Role.EXPERIMENT)
    operator, networks = MutationOperator(SearchSpace(kind)), list(initial_pool(kind))
    values = [SYNTHETIC[name](arch) for arch in networks]
    while len(networks) < N_FAMILY:
        rank = int(len(values) * rng.random() ** 2)
        mutation = operator(networks[int(np.argsort(values)[::-1][rank])], rng=rng)
        if isinstance(mutation, Mutation):
            networks.append(mutation.arch)
            values.append(SYNTHETIC[name](mutation.arch))
    return Problem(name, networks, np.array(values))


def skill(problem: Problem, preset: str, n_splits: int) -> Skill:
    """Means over random divisions, with 30 and with 60 networks known in turn; the same divisions for every preset."""
    table, found = Otmann(preset=preset).pairwise(problem.networks), []
    for split in range(n_splits):
        order = stream(split, 0, Role.EXPERIMENT).permutation(len(problem.networks))
        known, asked = np.split(order, [N_KNOWN[split % len(N_KNOWN)]])
        rows, rng = known[:, None], stream(split, 1, Role.EXPERIMENT)
        d, d_bar, values = table.d[:, rows, known], table.d_bar[:, rows, known], problem.values[known]
        belief = fit_belief(Rows.of(d, d_bar), values, options=BeliefOptions(), rng=rng)
        cross = Rows.of(table.d[:, rows, asked], table.d_bar[:, rows, asked])
        predicted = belief.predict(cross).mean.mean(axis=0)
        true = problem.values[asked]
        best = np.argsort(-true, kind="stable")[:N_BEST]
        found.append([spearmanr(predicted[asked_of], true[asked_of])[0] for asked_of in (slice(None), best)])
    return Skill(*(float(mean) for mean in np.mean(found, axis=0)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each problem."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.surrogate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--splits", metavar="N", type=int, default=20, help="random divisions of each set of networks")
    parser.add_argument("--records", metavar="FILE", type=Path, default=RECORDS, help="trained networks")
    parser.add_argument("--json", action="store_true", help="the numbers as JSON")
    options = parser.parse_args(arguments)
    if options.splits < 1:
        parser.error(f"--splits: expected a whole number >= 1, got {options.splits}")
    found = {
        problem.name: {preset: skill(problem, preset, options.splits) for preset in PRESETS}
        for problem in problems(options.records)
    }
    if options.json:
        print(json.dumps({name: {p: s._asdict() for p, s in row.items()} for name, row in found.items()}))
        return 0
    print(f"| rank correlation, all (best {N_BEST}) | " + " | ".join(PRESETS) + " |\n|---|" + "---|" * len(PRESETS))
    for name, row in found.items():
        print(f"| {name} | " + " | ".join(f"{s.of_all:.3f} ({s.of_best:.3f})" for s in row.values()) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

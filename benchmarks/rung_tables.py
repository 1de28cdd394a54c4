"""Do short trainings pay? Networks trained once for a ninth, a third and all of a training, then searched by look-up.

    python -m benchmarks.rung_tables record --set protein --data ../shared/data    # appends; goes on where it was
    python -m benchmarks.rung_tables replay --set protein --seeds 20

The space is small enough to be trained whole: three layers, each relu or tanh of 32, 64 or 128 units. The clock of a
replay counts FLOPs: a full training of the mean network of the table costs 1, on two workers half a second of virtual
time. So a budget of 20 is that of 20 full trainings; what deciding costs is not in it. Printed are the lowest loss of a
full training over the lowest of the table, minus 1, in per cent: means over seeds and their standard errors, and seed
by seed against NASBOT without short trainings.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runs import average
from nasbot._rng import Role, stream
from nasbot.architecture import Architecture, LabelPenalties, Layer, SearchSpace, Vocabulary, chain
from nasbot.architecture.resources import resources
from nasbot.architecture.vocabularies import MLP_REG
from nasbot.domain import Fidelity
from nasbot.execution import SimulatedExecutor
from nasbot.execution.evaluation import LiveTrial
from nasbot.gp import BeliefOptions, Inference
from nasbot.pacing import MedianPacer, NoPacer
from nasbot.searchers import NASBOT, RandomSearch
from nasbot.study import Budget, Study

RECORDS = Path(__file__).parent.parent / "docs" / "results" / "records"
ACTIVATIONS, WIDTHS, DEPTH = ("relu", "tanh"), (32, 64, 128), 3
RECTIFIER_FOR_SIGMOID = 0.25  # the paper's penalty
FIDELITY = Fidelity()
FULL_STEPS = 1350
N_INPUTS = {"protein": 9, "naval": 16, "indoor": 520}
SPLIT = 100  # the seed that divides the rows; results elsewhere use those from 0 on
POOL_SIZE, WORKERS = 5, 2
COST_WEIGHT = 0.2  # as of nasbot.search
# What is left of a weight of 1 after so many full trainings of the pool's mean network is 0.
COOLED: Mapping[str, Any] = {"cost_weight": 1.0, "cost_horizon": 20.0}
BUDGETS = (8, 12, 16, 20, 30)  # full trainings of the mean network, the pool among them
METHODS: Mapping[str, Mapping[str, Any]] = {
    "nasbot": {},
    "nasbot+promotion": {"fidelity": FIDELITY},
    "nasbot+boca": {"fidelity": Fidelity(rule="boca")},
    "nasbot+pacer": {"pacer": MedianPacer()},
    "nasbot+no-cost": {"cost_weight": 0.0},
    "nasbot+cost-1": {"cost_weight": 1.0},
    "nasbot+cooled": COOLED,
    "random": {},
    "random+promotion": {"fidelity": FIDELITY},
    "random+pacer": {"pacer": MedianPacer()},
}


# -- the space ---------------------------------------------------------------------------------------------------------


def _vocabulary() -> Vocabulary:
    known = ("ip", "op", "linear", *ACTIVATIONS)
    labels = tuple(label for label in MLP_REG.labels if label.name in known)
    first, second = ACTIVATIONS
    penalties = LabelPenalties.from_pairs([label.name for label in labels], {(first, second): RECTIFIER_FOR_SIGMOID})
    return Vocabulary("rung-tables", labels, penalties)


SMALL = _vocabulary()


def networks() -> Iterator[tuple[str, Architecture]]:
    """All of them by name, in an order that a table cut short is a fair sample of."""
    every = list(product(product(ACTIVATIONS, WIDTHS), repeat=DEPTH))
    for i in range(len(every)):
        arch = chain(SMALL, [Layer(activation, units) for activation, units in every[i * 101 % len(every)]])
        yield name_of(arch), arch


def name_of(arch: Architecture) -> str:
    """``relu32-tanh64-relu128``."""
    hidden = (arch.layers[u] for u in arch.processing_layers)
    return "-".join(f"{layer.label}{layer.units}" for layer in hidden)


# -- recording ---------------------------------------------------------------------------------------------------------


def record(name: str, folder: str, path: Path) -> None:
    """Train what is missing, one line of JSON for each network: losses by share, and the curve of the full training."""
    from nasbot.data.dataset import named_dataset
    from nasbot.training.loop import train
    from nasbot.training.objective import computing_threads
    from nasbot.training.recipes import FAST

    data = named_dataset(name, folder=folder, seed=SPLIT)
    recipe = FAST.changed(n_steps=FULL_STEPS, patience=None)
    done = set(read(path)) if path.exists() else set()
    with path.open("a", encoding="utf-8") as file, computing_threads(1):
        for network, arch in networks():
            if network in done:
                continue
            begun = time.process_time()
            trained = [train(arch, data, recipe, seed=0, steps_share=share) for share in FIDELITY.rungs]
            losses = [float(f"{each.score:.5g}") for each in trained]
            seen = [[point.step, float(f"{point.value:.5g}")] for point in trained[-1].curve]
            line = {"network": network, "losses": losses, "curve": seen, "cpu": round(time.process_time() - begun, 2)}
            file.write(json.dumps(line) + "\n")
            file.flush()


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The lines of a table by their networks."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {line["network"]: line for line in lines}


# -- searching ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table:
    """An objective by look-up: (loss, seconds) of a network trained for a share."""

    lines: Mapping[str, Mapping[str, Any]]
    n_inputs: int

    def __call__(self, arch: Architecture, trial: LiveTrial) -> tuple[float, float]:
        """Shares between rungs, which BOCA asks for, lie between their losses, on logarithmic scales."""
        line = self.lines[name_of(arch)]
        if trial.fidelity == 1:
            for step, value in line["curve"]:
                trial.report(step, value)
        loss = np.interp(math.log(trial.fidelity), np.log(FIDELITY.rungs), np.log(line["losses"]))
        return math.exp(loss), trial.fidelity * self.flops(arch) / self.mean_flops

    @property
    def space(self) -> SearchSpace:
        """The networks of the table."""
        n_layers = DEPTH + 3  # with input, output and decision
        return SearchSpace(
            SMALL,
            min_layers=n_layers,
            max_layers=n_layers,
            min_units=WIDTHS[0],
            max_units=WIDTHS[-1],
            input_shape=(self.n_inputs,),
        )

    @cached_property
    def lowest(self) -> float:
        """The lowest loss of a full training."""
        return min(float(line["losses"][-1]) for line in self.lines.values())

    @cached_property
    def mean_flops(self) -> float:
        """Of one sample, over all networks."""
        return float(np.mean([self.flops(arch) for _, arch in networks()]))

    def flops(self, arch: Architecture) -> float:
        """Of one sample."""
        return resources(arch, (self.n_inputs,), 1).flops


def searched(table: Table, method: str, seed: int, inference: str) -> list[float]:
    """The lowest loss of full trainings over the lowest of the table, less 1, for each budget."""
    options = dict(METHODS[method])
    pacer = options.pop("pacer", NoPacer())
    every = [arch for _, arch in networks()]
    chosen = stream(seed, 0, Role.EXPERIMENT).choice(len(every), POOL_SIZE, replace=False)
    shared = {"space": table.space, "pool": tuple(every[i] for i in chosen), **options}
    shared["modifiers"] = ("swap_label", "halve_units", "double_units")
    belief = BeliefOptions(inference=Inference(inference))
    searcher = (
        NASBOT(**{"cost_weight": COST_WEIGHT, **shared}, belief=belief)
        if method.startswith("nasbot")
        else RandomSearch(**shared)
    )
    study = Study.in_memory(searcher, seed=seed, direction="minimise", pacer=pacer)
    study.optimise(table, Budget(seconds=max(BUDGETS) / WORKERS), executor=SimulatedExecutor(WORKERS))
    full = [(t.finished or 0.0, t.value) for t in study.history.completed if t.fidelity == 1 and t.value is not None]
    found = []
    for budget in BUDGETS:
        known = [value for at, value in full if at <= budget / WORKERS]
        found.append(min(known) / table.lowest - 1 if known else math.nan)
    return found


def replay(table: Table, methods: Sequence[str], seeds: Sequence[int], inference: str) -> dict[str, list[list[float]]]:
    """By method the results of each seed; each is printed as it comes."""
    found: dict[str, list[list[float]]] = {method: [] for method in methods}
    for seed in seeds:
        for method in methods:
            begun = time.process_time()
            found[method].append(searched(table, method, seed, inference))
            cpu = round(time.process_time() - begun, 1)
            print(json.dumps({"method": method, "seed": seed, "over": found[method][-1], "cpu": cpu}), flush=True)
    return found


def summary(found: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """A Markdown table: per cent over the lowest loss, mean and standard error, and the difference to plain NASBOT."""
    lines = ["| method | " + " | ".join(f"cost {b}" for b in BUDGETS) + " |", "|---" * (len(BUDGETS) + 1) + "|"]
    for method, runs in found.items():
        over = 100 * np.asarray(runs)
        cells = [f"{m:.2f} ± {e:.2f}" for m, e in (average(column) for column in over.T)]
        lines.append(f"| {method} | {' | '.join(cells)} |")
        if method != "nasbot" and "nasbot" in found:
            behind = over - 100 * np.asarray(found["nasbot"])
            cells = [f"{m:+.2f} ± {e:.2f}" for m, e in (average(column) for column in behind.T)]
            lines.append(f"| … less nasbot | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or replay."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.rung_tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("record", "replay"))
    parser.add_argument("--set", choices=tuple(N_INPUTS), default="protein")
    parser.add_argument("--data", default="../shared/data", help="folder of the data sets")
    parser.add_argument("--table", default="", help="file of the table; by default among the records of docs/results")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--inference", choices=("sample", "map"), default="sample")
    options = parser.parse_args(arguments)
    path = Path(options.table or RECORDS / f"rungs-{options.set}.jsonl")
    if options.what == "record":
        record(options.set, options.data, path)
        return 0
    lines = read(path)
    if missing := [name for name, _ in networks() if name not in lines]:
        print(f"{path}: {len(missing)} networks are missing; record them first", file=sys.stderr)
        return 1
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    found = replay(Table(lines, N_INPUTS[options.set]), options.methods.split(","), seeds, options.inference)
    print(summary(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What seeing costs: CPU seconds of every plot, from a snapshot to the file, at 1,000 trials.

``python -m benchmarks.plots``. Networks descend from the pool of CNNs by mutation, up to the 60 layers of the space; no
search is run. The first plot of a process also imports matplotlib, and the first distance numba's kernels: both are
done before the clock starts, and printed.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.bars import Bar
from nasbot.architecture import SearchSpace, initial_pool
from nasbot.candidate import Candidate
from nasbot.evolution import MutationOperator, Rejected
from nasbot.plots.plot import PLOTS, plot
from nasbot.plots.snapshot import Snapshot
from nasbot.trial import POOL, Failed, FailureCause, Forecast, History, Outcome, Point, Provenance, Scored, Trial

N_TRIALS = 1000
SECONDS = 2.0
BUSY_FACTOR = 2.5  # on a machine that others use, CPU seconds stretch as caches and memory are shared
N_WORKERS, N_POINTS, N_RECENT = 4, 10, 40
DECIDING = {"distances": 0.1, "fitting": 0.05, "maximising": 0.05}


def study(n: int, kind: str = "cnn", seed: int = 0) -> Snapshot:
    """``n`` trials with everything that a plot can show: values, failures, curves, predictions, descent, times."""
    rng = np.random.default_rng(seed)
    operator = MutationOperator(SearchSpace(kind))
    networks = list(initial_pool(kind))[:n]
    origins = [Provenance(searcher=POOL) for _ in networks]
    seen = {arch.fingerprint for arch in networks}
    while len(networks) < n:
        parent = int(rng.integers(max(0, len(networks) - N_RECENT), len(networks)))
        made = operator(networks[parent], rng=rng)
        if isinstance(made, Rejected) or made.arch.fingerprint in seen:
            continue
        seen.add(made.arch.fingerprint)
        networks.append(made.arch)
        origins.append(
            Provenance(
                searcher="NASBOT",
                parents=(parent,),
                modifiers=tuple(step.modifier for step in made.steps),
                changes=tuple(map(str, made.steps)),
            )
        )
    free = [0.0] * N_WORKERS
    trials = []
    for number, arch in enumerate(networks):
        worker = int(np.argmin(free))
        start, free[worker] = free[worker], free[worker] + float(rng.uniform(20, 60))
        value = len(arch.layers) / 10 + len(arch.edges) / 20 + float(rng.normal(0, 0.1))
        origin, forecast = origins[number], None
        if origin.was_proposed:
            forecast = _believed(value, rng)
            origin = replace(origin, seconds={**DECIDING, "deciding": float(rng.uniform(0.2, 1.0))})
        is_failed = number % 12 == 11
        outcome: Outcome = Failed(FailureCause.OOM, "too large") if is_failed else Scored(value)
        curve = () if is_failed else tuple(Point(step, value - 0.7**step) for step in range(1, N_POINTS + 1))
        known = max(0, number - N_WORKERS)
        trials.append(
            Trial(
                number=number,
                candidate=Candidate(arch),
                origin=origin,
                forecast=forecast,
                proposed_after=known,
                attempts=1,
                started=start,
                finished=free[worker],
                rank=number,
                outcome=outcome,
                curve=curve,
            )
        )
    return Snapshot(History(tuple(trials)), name="a thousand")


def _believed(value: float, rng: np.random.Generator) -> Forecast:
    middle, utility = value + float(rng.normal(0, 0.2)), float(rng.normal(-3, 0.5))
    return Forecast(median=middle, lower=middle - 0.3, upper=middle + 0.3, mean=0.5, sd=0.4, utility=utility)


def run(repetitions: int, n_trials: int = N_TRIALS) -> tuple[dict[str, Any], list[Bar]]:
    """Measure, print, and return the raw numbers and the bars."""
    shown = study(n_trials)
    with tempfile.TemporaryDirectory() as folder:
        warm = {name: _cpu_seconds(study(12), name, Path(folder) / "warm.svg") for name in ("history", "map", "diff")}
        figures = {
            name: median(_cpu_seconds(shown, name, Path(folder) / f"{name}.png") for _ in range(min(repetitions, 3)))
            for name in PLOTS
        }
        sizes = {name: _size(shown, name, Path(folder) / f"{name}.svg") for name in PLOTS}
    first = ", ".join(f"{name} {seconds:.2f}" for name, seconds in warm.items())
    print(f"first in its process, 12 trials, CPU seconds (imports included): {first}")
    print(f"{n_trials} trials".ljust(18) + f"{'CPU seconds, .png':>18}{'size of .svg':>16}")
    for name, seconds in figures.items():
        print(f"{name:18}{seconds:18.2f}{sizes[name] / 1e3:13.0f} kB")
    slowest = max(figures, key=figures.__getitem__)
    name = f"plots: the slowest at {n_trials} trials ({slowest}), CPU"
    bars = [Bar(name, figures[slowest], SECONDS, BUSY_FACTOR * SECONDS, at_least=False, unit="s")]
    return {"seconds": figures, "bytes": sizes, "first": warm}, bars


def _cpu_seconds(shown: Snapshot, name: str, path: Path) -> float:
    start = time.process_time()
    plot(shown, name, path)
    return time.process_time() - start


def _size(shown: Snapshot, name: str, path: Path) -> int:
    return plot(shown, name, path).stat().st_size


if __name__ == "__main__":
    print(*run(repetitions=3)[1], sep="\n")

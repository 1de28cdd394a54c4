"""Beyond the paper: OTMANN against the plain distances under which NASBOT is usually reimplemented, by look-up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import nasbench201 as bench
from benchmarks.runs import average, paired
from experiments.experiment import Body, Experiment, Results
from experiments.figures import Curve, draw_curves, panels, save
from experiments.markdown import table
from experiments.protocol import Protocol, Run
from experiments.records import Places

NAMES = {
    "nasbot": "NASBOT (OTMANN)",
    "narrow": "NASBOT (OTMANN, the paper's weights)",
    "crude": "NASBOT with Hamming and operation counts",
    "random": "RAND",
    "uniform": "uniform random",
    "evolution": "EA",
    "local": "local search",
}
SIGNIFICANT = 0.05


@cache
def _table(path: Path, dataset: str) -> bench.Table:
    return bench.read_table(path, dataset)


def do(protocol: Protocol, run: Run, places: Places) -> Mapping[str, Any]:
    """One search in the table."""
    lookup = _table(places.data / "nasbench201.npz", run["dataset"])
    # What the records of this experiment call nasbot is the distance alone.
    method = "otmann" if run["method"] == "nasbot" else run["method"]
    best = bench.best_so_far(lookup, method, run["seed"], protocol.settings["queries"])
    return {"best": [round(value, 6) for value in best], "optimum": lookup.optimum}


def _curves(results: Results, dataset: str, method: str) -> dict[int, list[float]]:
    n = results.protocol.settings["queries"]
    found = {}
    for record in results.where(dataset=dataset, method=method):
        best = record["result"]["best"]
        found[record["run"]["seed"]] = [*best, *[best[-1]] * (n - len(best))]
    return found


def write(results: Results, places: Places) -> Body:
    """Accuracy still missing after each query, and NASBOT against each method seed by seed."""
    datasets = results.values("dataset")
    figure, axes = panels(len(datasets), width=5.4, height=3.8)
    n = results.protocol.settings["queries"]
    rows = []
    for place, dataset in enumerate(datasets):
        optimum = results.where(dataset=dataset)[0]["result"]["optimum"]
        curves = {}
        ours = _curves(results, dataset, "nasbot")
        for method in results.values("method"):
            runs = _curves(results, dataset, method)
            if not runs:
                continue
            mean, se = average(optimum - np.array(list(runs.values())))
            curves[NAMES[method]] = Curve(np.arange(1.0, n + 1), np.maximum(mean, 1e-3), se, len(runs))
            rows.append(_row(dataset, method, runs, ours, n))
        draw_curves(axes[place], curves, title=dataset, x="queries", y="accuracy missing to the best cell", log=True)
    save(figure, places.figure("nasbench201.svg"))
    half = n // 2
    columns = ("data", "method", "seeds", f"best at {half}", f"best at {n}", f"p at {half}", f"p at {n}")
    picture = "![Accuracy missing after each query: mean, shaded by one s.e.](figures/nasbench201.svg)"
    return Body(f"{picture}\n\n{table(columns, rows)}", _shows(results))


def _row(dataset: str, method: str, runs: dict[int, list[float]], ours: dict[int, list[float]], n: int) -> list[object]:
    mean, se = average(np.array(list(runs.values())))
    row: list[object] = [dataset, NAMES[method], len(runs)]
    row += [f"{mean[at - 1]:.3f} ± {se[at - 1]:.3f}" for at in (n // 2, n)]
    seeds = sorted(set(ours) & set(runs))
    for at in (n // 2, n):
        result = None
        if method != "nasbot" and seeds:
            result = paired(np.array([ours[s][at - 1] for s in seeds]), np.array([runs[s][at - 1] for s in seeds]))
        row.append("" if result is None else f"{result.p:.2g} ({result.wins} : {result.losses})")
    return row


def against(results: Results, method: str, at: int) -> dict[str, Any]:
    """NASBOT against a method after ``at`` queries, for each data set that has both."""
    found = {}
    for dataset in results.values("dataset"):
        ours, theirs = (_curves(results, dataset, name) for name in ("nasbot", method))
        if seeds := sorted(set(ours) & set(theirs)):
            found[dataset] = paired(
                np.array([ours[s][at - 1] for s in seeds]), np.array([theirs[s][at - 1] for s in seeds])
            )
    return found


def _shows(results: Results) -> str:
    at = results.protocol.settings["queries"] // 2
    said = []
    for dataset, result in against(results, "crude", at).items():
        decided = "" if result.p < SIGNIFICANT else ", which these seeds cannot tell from chance"
        word = "ahead of" if result.mean > 0 else "behind"
        said.append(
            f"On {dataset} after {at} queries NASBOT with OTMANN is {word} itself with Hamming and counts by "
            f"{abs(result.mean):.3f} ± {result.se:.3f} points ({result.wins} wins, {result.losses} losses{decided})."
        )
    return (
        " ".join(said) + " How a cell becomes a network was chosen while looking at CIFAR-100 "
        "(told above, with more runs), so CIFAR-10 is the fairer half. Accuracies "
        "are on validation data, by look-up."
    )


NAS_BENCH_201 = Experiment(
    name="nasbench201",
    title="NAS-Bench-201: OTMANN against the plain distances published under the name NASBOT",
    question=(
        "Other people's comparisons have run NASBOT with Hamming-like distances in the place of OTMANN. Does the real "
        "distance find good cells sooner, and how do both do against random search, evolution and local search?"
    ),
    method=(
        "`benchmarks/nasbench201.py`: each seed begins with the same ten random cells; p is the two-sided sign test of "
        "NASBOT against the method on the same seeds, with wins : losses."
    ),
    do=do,
    write=write,
    hosted_by="nas-bench-201",
)

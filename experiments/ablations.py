"""Figure 4: NASBOT against itself with one thing changed, on the synthetic functions of Appendix C.4.

All of it with the paper's masses and modifiers, as the paper has it; our default has others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks import synthetic
from benchmarks.runs import average, paired
from experiments.experiment import Body, Experiment, Results
from experiments.figures import Curve, draw_curves, panels, save
from experiments.markdown import mean_and_error, table
from experiments.protocol import Protocol, Run
from experiments.records import Places

BASE = synthetic.PAPERS_MASSES
# The three rows of the paper's figure; what they change is in each.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "kernel": ("kernel of d", "kernel of d_bar"),
    "modifiers": ("units only", "structure only"),
    "powers": ("p=1 p_bar=1", "p=1 p_bar=2", "p=2 p_bar=1", "p=2 p_bar=2"),
}
SIGNIFICANT = 0.05


def do(protocol: Protocol, run: Run, places: Places) -> Mapping[str, Any]:
    """One search on one function: the best value after each evaluation."""
    one = synthetic.Run(run["function"], run["method"], protocol.settings["workers"], run["seed"])
    best, deciding = synthetic.search(one, protocol.settings["evaluations"])
    return {"best": [round(value, 6) for value in best], "deciding": round(float(np.mean(deciding or [0.0])), 4)}


def write(results: Results, places: Places) -> Body:
    """Curves, a row of panels for each group, and the last values seed by seed against those of what is changed."""
    functions = results.values("function")
    figure, axes = panels(len(GROUPS) * len(functions), columns=max(1, len(functions)))
    for i, (group, names) in enumerate(GROUPS.items()):
        for j, function in enumerate(functions):
            curves = {name: _curve(results, function, name) for name in (BASE, *names)}
            draw_curves(
                axes[i * len(functions) + j],
                {name: curve for name, curve in curves.items() if curve is not None},
                title=f"{group}: {function}",
                x="evaluations",
                y="best value",
            )
    save(figure, places.figure("ablations.svg"))
    picture = "![Best value after each evaluation: mean over seeds, shaded by one s.e.](figures/ablations.svg)"
    return Body(f"{picture}\n\n{_table(results)}", _shows(results))


def _runs(results: Results, function: str, method: str) -> dict[int, list[float]]:
    return {r["run"]["seed"]: r["result"]["best"] for r in results.where(function=function, method=method)}


def _curve(results: Results, function: str, method: str) -> Curve | None:
    runs = list(_runs(results, function, method).values())
    if not runs:
        return None
    mean, se = average(np.array(runs))
    return Curve(np.arange(1, len(mean) + 1, dtype=np.float64), mean, se, len(runs))


def comparisons(results: Results) -> Iterator[tuple[str, str, Any]]:
    """(function, what is changed, the base against it seed by seed) for each pair that has seeds in common."""
    for function in results.values("function"):
        ours = _runs(results, function, BASE)
        for method in (name for names in GROUPS.values() for name in names):
            theirs = _runs(results, function, method)
            if seeds := sorted(set(ours) & set(theirs)):
                last = [np.array([runs[seed][-1] for seed in seeds]) for runs in (ours, theirs)]
                yield function, method, paired(last[0], last[1])


def _table(results: Results) -> str:
    against = {(function, method): result for function, method, result in comparisons(results)}
    rows = []
    for function in results.values("function"):
        for method in results.values("method"):
            last = [best[-1] for best in _runs(results, function, method).values()]
            cells: tuple[str, ...] = ("", "", "")
            if (found := against.get((function, method))) is not None:
                cells = (f"{found.mean:+.3f} ± {found.se:.3f}", f"{found.wins} : {found.losses}", f"{found.p:.2g}")
            rows.append((function, method, mean_and_error(last, 3), *cells))
    columns = (
        "function",
        "search",
        "best at the end (seeds)",
        f"{BASE}: ahead by",
        "wins : losses",
        "sign test p",
    )
    return table(columns, rows)


def _shows(results: Results) -> str:
    said = []
    for group, names in GROUPS.items():
        found = [(f, m, result) for f, m, result in comparisons(results) if m in names]
        ahead = [f"{m} on {f}" for f, m, result in found if result.mean > 0 and result.p < SIGNIFICANT]
        behind = [f"{m} on {f}" for f, m, result in found if result.mean < 0 and result.p < SIGNIFICANT]
        said.append(
            f"{group.capitalize()}: of {len(found)} comparisons the search with the {BASE} and nothing else changed is "
            f"ahead at p < {SIGNIFICANT} in {len(ahead)}{_listed(ahead)} and behind in {len(behind)}{_listed(behind)}."
        )
    return (
        " ".join(said) + " The paper's NASBOT has the powers p = 1 and p_bar = 2; which ours has by default, "
        "[how it decides](../explanation/how-it-decides.md) says. The p of the sign test is not corrected for the "
        "number of comparisons. Values of synthetic functions say nothing of trained networks."
    )


def _listed(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


ABLATIONS = Experiment(
    name="ablations",
    title="Ablations: NASBOT against parts of itself (Figure 4)",
    question=(
        "On functions of an architecture that cost nothing (f1, f2, f3 of Appendix C.4), is NASBOT better with both "
        "terms of the kernel than with one, better with all nine modifiers than with those of units or of structure "
        "alone, and does it matter which powers p and p_bar are?"
    ),
    method=(
        "The searchers of `benchmarks/synthetic.py`: NASBOT by the distance with the paper's masses and by its nine "
        "modifiers ([our default has others](../deviations.md)), and the same with one thing changed. "
        "The initial pool of ten counts as evaluations. Compared is the best value after the last evaluation, seed by "
        "seed, by the two-sided sign test."
    ),
    do=do,
    write=write,
)

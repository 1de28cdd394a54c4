"""Curves, tables and verdicts of searches: Figure 3, Table 3, the time to decide, and the comparison with rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from benchmarks.runs import Record
from experiments.experiment import Results
from experiments.figures import Curve, draw_curves, panels, save, step_curve
from experiments.markdown import mean_and_error, table
from experiments.records import Places

# Table 3: test error after retraining, mean and standard error; Slice is not available to us.
PAPER: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "blog": {"RAND": (0.780, 0.034), "EA": (0.806, 0.040), "TreeBO": (0.928, 0.053), "NASBOT": (0.731, 0.029)},
    "indoor": {"RAND": (0.115, 0.023), "EA": (0.147, 0.010), "TreeBO": (0.168, 0.023), "NASBOT": (0.117, 0.008)},
    "naval": {"RAND": (0.0103, 0.002), "EA": (0.0079, 0.004), "TreeBO": (0.0102, 0.002), "NASBOT": (0.0075, 0.002)},
    "protein": {"RAND": (0.948, 0.024), "EA": (1.010, 0.038), "TreeBO": (0.998, 0.007), "NASBOT": (0.902, 0.033)},
    "news": {"RAND": (0.762, 0.013), "EA": (0.758, 0.038), "TreeBO": (0.866, 0.085), "NASBOT": (0.752, 0.024)},
    "cifar10": {"RAND": (0.1342, 0.002), "EA": (0.1411, 0.002), "TreeBO": (0.1533, 0.004), "NASBOT": (0.1209, 0.003)},
}
PAPER_DECIDING = {"NASBOT": 46.13, "RAND": 26.43, "EA": 0.19, "TreeBO": 7.83}  # seconds
PAPER_METHODS = ("NASBOT", "RAND", "EA", "TreeBO")
OURS = "NASBOT"
POINTS = 200
SETTLED = 0.1  # of the budget: what curves do before is not in the picture


class Score(NamedTuple):
    """Mean over seeds, standard error, and how many seeds."""

    mean: float
    se: float
    n: int


def score_of(values: Sequence[float]) -> Score:
    """Of one number for each seed."""
    numbers = np.array(values, dtype=np.float64)
    se = float(numbers.std(ddof=1) / sqrt(len(numbers))) if len(numbers) > 1 else float("nan")
    return Score(float(numbers.mean()), se, len(numbers))


def validation(record: Record) -> float:
    """The lowest validation value within the budget."""
    return float(min(record["result"]["values"]))


def tested(record: Record) -> float:
    """The test error, the mean of the retrainings."""
    return float(np.mean([one["test"] for one in record["result"]["retrained"]]))


def validated(record: Record) -> float:
    """The validation error, the mean of the retrainings: how much of the best one was luck."""
    return float(np.mean([one["valid"] for one in record["result"]["retrained"]]))


def recommended(records: Sequence[Record]) -> list[Record]:
    """The same searches with what the belief recommends in place of the best value, where it was trained again too."""
    return [
        {**record, "result": {**record["result"], "retrained": record["result"]["recommended"]["retrained"]}}
        for record in records
        if record["result"].get("recommended")
    ]


def usable(records: Sequence[Record]) -> list[Record]:
    """Those that found a network at all."""
    return [record for record in records if record["result"]["values"] and record["result"]["retrained"]]


def curves(results: Sequence[Results], dataset: str, methods: Sequence[str], seconds: float) -> dict[str, Curve]:
    """Best validation value against time, by method."""
    found = {}
    grid = np.linspace(0.0, seconds, POINTS)
    for method in methods:
        runs = usable(where(results, dataset=dataset, method=method))
        if runs:
            times = [np.array(run["result"]["times"]) for run in runs]
            best = [np.minimum.accumulate(run["result"]["values"]) for run in runs]
            found[method] = step_curve(times, best, grid)
    return {method: curve for method, curve in found.items() if len(curve.x)}


def where(results: Sequence[Results], **wanted: object) -> list[Record]:
    """The records of several experiments with these entries."""
    return [record for one in results for record in one.where(**wanted)]


def draw(
    results: Sequence[Results], datasets: Sequence[str], methods: Sequence[str], places: Places, name: str, *, y: str
) -> str:
    """A panel for each data set; the link to the figure."""
    seconds = results[0].protocol.settings["seconds"]
    figure, axes = panels(len(datasets))
    for place, dataset in enumerate(datasets):
        found = curves(results, dataset, methods, seconds)
        draw_curves(axes[place], found, title=dataset, x="seconds, deciding included", y=y, log=dataset == "naval")
        if limits := _limits(found, SETTLED * seconds):
            axes[place].set_ylim(*limits)
    save(figure, places.figure(f"{name}.svg"))
    return f"![Best validation value against time: mean over seeds, shaded by one s.e.](figures/{name}.svg)"


def _limits(found: Mapping[str, Curve], since: float) -> tuple[float, float] | None:
    """What all curves do after ``since`` seconds: the first networks are so bad that nothing else would be seen."""
    late = [
        (curve.mean + sign * curve.se)[curve.x >= min(since, curve.x[-1])]
        for curve in found.values()
        for sign in (-1, 1)
    ]
    if not late:
        return None
    low, high = min(float(part.min()) for part in late), max(float(part.max()) for part in late)
    margin = 0.06 * (high - low)
    return (max(low - margin, 0.9 * low), high + margin) if high > low > 0 else None


def score_table(results: Sequence[Results], datasets: Sequence[str], methods: Sequence[str], *, paper: bool) -> str:
    """Validation and test error for each data set and method, the paper's test error beside ours."""
    rows = []
    for dataset in datasets:
        for method in methods:
            records = usable(where(results, dataset=dataset, method=method))
            if not records:
                continue
            networks = _least_to_most([record["result"]["networks"] for record in records])
            row = [dataset, method, len(records), networks, *_scores(records)]
            if paper:
                theirs = PAPER.get(dataset, {}).get(method)
                row.append(f"{theirs[0]:g} ± {theirs[1]:g}" if theirs else "–")
            rows.append(row)
            if paper and (by_belief := recommended(records)):
                scores = ["–", *_scores(by_belief)[1:]]
                rows.append([dataset, f"{method}, as recommended", len(by_belief), "the same", *scores, "–"])
    columns = [
        "data",
        "method",
        "seeds",
        "networks a run",
        "best validation",
        "retrained: validation",
        "retrained: test",
    ]
    return table([*columns, "test, the paper's"] if paper else columns, rows)


def _least_to_most(counts: Sequence[int]) -> str:
    """``5``, or ``3 to 5``."""
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _scores(records: Sequence[Record]) -> list[str]:
    return [
        mean_and_error([value(record) for record in records]).split(" (")[0]
        for value in (validation, validated, tested)
    ]


def deciding_table(results: Sequence[Results], methods: Sequence[str]) -> str:
    """Seconds to choose a network, and to train one, as in Section 5."""
    rows = []
    for method in methods:
        records = [r for r in where(results, method=method) if r["result"]["networks"]]
        if records:
            means = [float(np.mean([r["result"][key] for r in records])) for key in ("deciding", "training")]
            theirs = PAPER_DECIDING.get(method)
            rows.append((method, f"{means[0]:.3f}", "–" if theirs is None else f"{theirs:g}", f"{means[1]:.2f}"))
    return table(("method", "seconds to decide", "in the paper", "seconds to train a network"), rows)


def belief_table(results: Sequence[Results], datasets: Sequence[str]) -> str:
    """How well NASBOT foresaw the values of its own proposals, and how much it gained over the pool."""
    rows = []
    for dataset in datasets:
        records = [r for r in usable(where(results, dataset=dataset, method=OURS)) if r["result"]["pool_best"]]
        known = [r["result"]["belief"]["rank_correlation"] for r in records]
        known = [rho for rho in known if rho is not None]
        if records:
            gains = [1.0 - validation(record) / record["result"]["pool_best"] for record in records]
            rows.append((dataset, mean_and_error(known, 2), f"{np.mean(gains):.1%}"))
    return table(("data", "NASBOT: predicted against true, rank correlation (runs)", "gain over the pool's best"), rows)


class Standing(NamedTuple):
    """How NASBOT stands on one data set."""

    dataset: str
    ours: Score
    best: str  # the method of the lowest mean
    within: bool  # NASBOT is best, or within one standard error of the best
    ahead: tuple[str, ...]  # methods whose mean is higher
    behind: tuple[str, ...]
    clearly: tuple[str, ...]  # methods whose mean and median are higher by more than a standard error, theirs or ours
    usually: tuple[str, ...]  # methods whose median is higher: one training that diverges moves a mean anywhere


def standings(results: Sequence[Results], datasets: Sequence[str], methods: Sequence[str]) -> list[Standing]:
    """By test error after retraining."""
    found = []
    for dataset in datasets:
        scores, medians = {}, {}
        for method in methods:
            if records := usable(where(results, dataset=dataset, method=method)):
                scores[method] = score_of([tested(record) for record in records])
                medians[method] = float(np.median([tested(record) for record in records]))
        if OURS not in scores or len(scores) < 2:
            continue
        ours, best = scores[OURS], min(scores, key=lambda method: scores[method].mean)
        margin = np.nanmax([scores[best].se, 0.0])
        found.append(
            Standing(
                dataset,
                ours,
                best,
                bool(best == OURS or ours.mean <= scores[best].mean + margin),
                tuple(m for m, score in scores.items() if m != OURS and score.mean > ours.mean),
                tuple(m for m, score in scores.items() if m != OURS and score.mean < ours.mean),
                tuple(
                    m
                    for m, score in scores.items()
                    if min(score.mean - ours.mean, medians[m] - medians[OURS]) > np.nanmax([score.se, ours.se, 0.0])
                ),
                tuple(m for m, median in medians.items() if median > medians[OURS]),
            )
        )
    return found


def in_words(found: Sequence[Standing]) -> str:
    """One sentence for each data set."""
    said = []
    for one in found:
        place = (
            "is best"
            if one.best == OURS
            else "is within one standard error of the best"
            if one.within
            else "is not best"
        )
        rest = f", which is {one.best}" if one.best != OURS else ""
        ahead = f"ahead of {', '.join(one.ahead)}" if one.ahead else "ahead of none"
        behind = f", behind {', '.join(one.behind)}" if one.behind else ""
        said.append(f"On {one.dataset} NASBOT {place}{rest}; its mean is {ahead}{behind}.")
    return " ".join(said)


def seeds_of(results: Sequence[Results]) -> str:
    """``5 seeds``, or the range where methods differ."""
    counts = {
        len(one.where(dataset=d, method=m))
        for one in results
        for d in one.values("dataset")
        for m in one.values("method")
    }
    counts.discard(0)
    return f"{_least_to_most(sorted(counts) or [0])} seed{'s' * (counts != {1})}"

"""Figure 8: the OTMANN distance of two networks against the difference of their validation errors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.datasets import prepare, prepared
from experiments.experiment import Body, Experiment, Results
from experiments.figures import panels, save
from experiments.markdown import table
from experiments.networks import Relative, random_family
from experiments.protocol import Protocol, Run
from experiments.records import Places
from experiments.search import space_and_pool
from experiments.training import recipe_from
from nasbot import Architecture, Otmann, SearchSpace
from nasbot._ranks import rank_correlation
from nasbot.data.dataset import Dataset
from nasbot.errors import DivergedError, RefusedError
from nasbot.training.loop import train

Floats = NDArray[np.float64]
RESAMPLES = 1000
LEVEL = 0.95
BINS = 12
INK, SHADE = "#1b4f72", "#2471a3"
NAMES = {"d": "d", "d_bar": "d_bar"}


# -- runs --------------------------------------------------------------------------------------------------------------


def do(protocol: Protocol, run: Run, places: Places) -> Mapping[str, Any]:
    """Train one random network on one data set. One that cannot be trained has no error, and a reason."""
    _, data = prepared(protocol, run["dataset"], places)
    settings = protocol.settings
    relative = _family(protocol, data)[run["network"]]
    result: dict[str, Any] = {"arch": relative.arch.to_dict(), "parent": relative.parent, "steps": relative.steps}
    try:
        trained = train(relative.arch, data, recipe_from(settings["recipe"]), seed=run["network"])
    except (DivergedError, RefusedError) as error:
        return {**result, "error": None, "reason": str(error)[:200]}
    return {**result, "error": float(f"{trained.loss:.6g}"), "trained_steps": trained.steps}


def _family(protocol: Protocol, data: Dataset) -> list[Relative]:
    """The same random networks on every data set, as far as their inputs' limits allow."""
    space, pool = space_and_pool(protocol, data)
    return _drawn(space, pool, max(protocol.axes["network"]) + 1, protocol.settings["family_seed"])


@cache
def _drawn(space: SearchSpace, pool: tuple[Architecture, ...], n: int, seed: int) -> list[Relative]:
    return random_family(space, n, rng=np.random.default_rng([seed, 8]), pool=pool)


# -- what came out -----------------------------------------------------------------------------------------------------


class Pairs(NamedTuple):
    """All pairs of networks of one data set: matrices over the networks."""

    distance: Floats
    difference: Floats  # of log10 errors, absolute


class Correlation(NamedTuple):
    """Spearman's, with a bootstrap interval over networks: pairs share networks, so resampling pairs would lie."""

    rho: float
    low: float
    high: float


def pairs_of(results: Results, dataset: str, which: str) -> Pairs | None:
    """Distances and differences for the networks that could be trained."""
    records = [r for r in results.where(dataset=dataset) if r["result"]["error"] is not None]
    if len(records) < 3:
        return None
    archs = [Architecture.from_dict(record["result"]["arch"]) for record in records]
    weight = results.protocol.settings["structural_weight"]
    distances = Otmann(structural_weights=(weight,)).pairwise(archs)
    errors = np.log10([record["result"]["error"] for record in records])
    matrix = distances.d[0] if which == "d" else distances.d_bar[0]
    return Pairs(matrix, np.abs(errors[:, None] - errors[None, :]))


def correlation(pairs: Pairs, *, resamples: int = RESAMPLES, seed: int = 0) -> Correlation:
    """The rank correlation over all pairs of different networks."""
    n = len(pairs.distance)
    rng = np.random.default_rng([seed, 88])
    upper = np.triu_indices(n, 1)
    rho = rank_correlation(pairs.distance[upper], pairs.difference[upper])
    drawn = []
    for _ in range(resamples):
        chosen = np.sort(rng.integers(n, size=n))
        i, j = chosen[upper[0]], chosen[upper[1]]
        different = i != j  # a network drawn twice is not a pair
        drawn.append(rank_correlation(pairs.distance[i, j][different], pairs.difference[i, j][different]))
    low, high = np.nanquantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Correlation(rho, float(low), float(high))


def correlations(results: Results) -> dict[tuple[str, str], tuple[int, Correlation]]:
    """(data set, distance) -> networks and correlation."""
    found = {}
    for dataset in results.values("dataset"):
        for which in NAMES:
            if (pairs := pairs_of(results, dataset, which)) is not None:
                found[dataset, which] = (len(pairs.distance), correlation(pairs))
    return found


def write(results: Results, places: Places) -> Body:
    """The scatter of Figure 8 with the quantiles of what is scattered, and the correlations."""
    datasets = [d for d in results.values("dataset") if pairs_of(results, d, "d") is not None]
    figure, axes = panels(max(1, 2 * len(datasets)), width=5.0, height=3.6, columns=2)
    for i, dataset in enumerate(datasets):
        for j, which in enumerate(NAMES):
            pairs = pairs_of(results, dataset, which)
            assert pairs is not None
            _draw(axes[2 * i + j], pairs, f"{dataset}: {which}", f"{which}")
    save(figure, places.figure("smoothness.svg"))
    found = correlations(results)
    rows = []
    for (dataset, which), (n, one) in found.items():
        near, far = _near_and_far(pairs_of(results, dataset, which))
        interval = f"{one.low:.3f} to {one.high:.3f}"
        rows.append((dataset, which, n, n * (n - 1) // 2, f"{one.rho:.3f}", interval, f"{near:.3f}", f"{far:.3f}"))
    columns = ("data", "distance", "networks", "pairs", "Spearman", "95 % interval", "nearest tenth", "furthest tenth")
    picture = "![Distance against difference in validation error, one point a pair](figures/smoothness.svg)"
    return Body(f"{picture}\n\n{table(columns, rows)}", _shows(found))


def _near_and_far(pairs: Pairs | None) -> tuple[float, float]:
    """The median difference among the nearest and the furthest tenth of pairs."""
    if pairs is None:
        return float("nan"), float("nan")
    upper = np.triu_indices(len(pairs.distance), 1)
    order = np.argsort(pairs.distance[upper], kind="stable")
    tenth = max(1, len(order) // 10)
    differences = pairs.difference[upper]
    return float(np.median(differences[order[:tenth]])), float(np.median(differences[order[-tenth:]]))


def _draw(axes: Any, pairs: Pairs, title: str, x: str) -> None:
    upper = np.triu_indices(len(pairs.distance), 1)
    distance, difference = pairs.distance[upper], pairs.difference[upper]
    alpha = float(np.clip(600 / len(distance), 0.1, 0.7))
    axes.scatter(distance, difference, s=5, color=SHADE, alpha=alpha, linewidths=0, rasterized=True)
    edges = np.quantile(distance, np.linspace(0, 1, BINS + 1))
    place = np.clip(np.searchsorted(edges, distance, side="right") - 1, 0, BINS - 1)
    filled = [k for k in range(BINS) if (place == k).any()]
    middle = [float(np.median(distance[place == k])) for k in filled]
    for share, style in ((0.5, "-"), (0.9, "--")):
        line = [float(np.quantile(difference[place == k], share)) for k in filled]
        axes.plot(middle, line, style, color=INK, linewidth=1.6, label=f"{share:.0%} of pairs lie below")
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel("difference of log10 validation errors")
    axes.legend(fontsize=7, frameon=False, loc="upper left")


def _shows(found: Mapping[tuple[str, str], tuple[int, Correlation]]) -> str:
    said = []
    for (dataset, which), (n, one) in found.items():
        sure = "which is not chance" if one.low > 0 else "which these networks cannot tell from none"
        said.append(f"On {dataset} ({n} networks) the rank correlation of {which} is {one.rho:.2f}, {sure}.")
    return (
        " ".join(said) + " As in the paper, far networks may perform alike, so the correlation cannot be high; what "
        "counts is that near ones differ little (the last two columns: median difference among the nearest and the "
        "furthest tenth of pairs). One training each: its noise is part of every difference. The networks are random, "
        "not those of a search."
    )


SMOOTHNESS = Experiment(
    name="smoothness",
    title="Near networks perform alike (Figure 8)",
    question="Does the difference in validation error of two networks grow with their OTMANN distance?",
    method=(
        "Random MLPs: the initial pool with its units divided, then mutations of one to five steps, each of any "
        "network before it; each trained once. The paper's figure has Indoor, Naval and Slice, which is not available "
        "to us. Differences are of the logarithms of the errors. The interval is by bootstrap over networks."
    ),
    do=do,
    write=write,
    prepare=prepare,
)

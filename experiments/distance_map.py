"""Appendix A.4, Figures 6 and 7: random CNNs laid out in the plane by t-SNE and MDS under d and d_bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from benchmarks.runs import Record
from experiments.experiment import Body, Experiment, Results
from experiments.figures import panels, save
from experiments.markdown import table
from experiments.networks import random_family
from experiments.protocol import Protocol, Run
from experiments.records import Places
from nasbot import Architecture, Otmann, SearchSpace

Floats = NDArray[np.float64]
NEIGHBOURS = 5
BASE = (0.62, 0.62, 0.66)


def do(protocol: Protocol, run: Run, places: Places) -> Mapping[str, Any]:
    """One family of random networks: its distances' embeddings, and how faithful they are."""
    settings = protocol.settings
    rng = np.random.default_rng([run["seed"], 6])
    family = random_family(SearchSpace(settings["kind"]), settings["networks"], rng=rng)
    archs = [relative.arch for relative in family]
    distances = Otmann(structural_weights=(settings["structural_weight"],)).pairwise(archs)
    shown = spread_out(distances.d_bar[0], settings["examples"])
    maps = {
        name: _embedded(matrix, run["seed"]) for name, matrix in (("d", distances.d[0]), ("d_bar", distances.d_bar[0]))
    }
    pairs = [(i, relative.parent) for i, relative in enumerate(family) if relative.parent is not None]
    return {
        "maps": maps,
        "mass": [round(arch.total_mass) for arch in archs],
        "layers": [len(arch.layers) for arch in archs],
        "parents": [relative.parent for relative in family],
        "kin": {name: _kin(matrix, pairs) for name, matrix in (("d", distances.d[0]), ("d_bar", distances.d_bar[0]))},
        "examples": [{"network": i, "arch": archs[i].to_dict()} for i in shown],
    }


def _embedded(matrix: Floats, seed: int) -> dict[str, Any]:
    """Coordinates in the plane by both methods, and the rank correlation of distances in the plane with true ones."""
    from sklearn.manifold import MDS, TSNE

    perplexity = min(30.0, (len(matrix) - 1) / 3)
    methods = {
        "t-SNE": TSNE(metric="precomputed", init="random", perplexity=perplexity, random_state=seed),
        "MDS": MDS(metric="precomputed", n_init=4, init="random", random_state=seed),
    }
    found = {}
    for name, method in methods.items():
        points = np.asarray(method.fit_transform(matrix), dtype=np.float64)
        true = squareform(matrix, checks=False)
        found[name] = {
            "points": np.round(points, 4).tolist(),
            "rank_correlation": round(float(spearmanr(true, pdist(points)).statistic), 4),
            "neighbours_kept": round(_neighbours_kept(matrix, squareform(pdist(points))), 4),
        }
    return found


def _neighbours_kept(true: Floats, drawn: Floats) -> float:
    """The share of each network's nearest neighbours that are its nearest on the map too."""
    k = min(NEIGHBOURS, len(true) - 1)
    kept = [len(set(a) & set(b)) / k for a, b in zip(_nearest(true, k), _nearest(drawn, k), strict=True)]
    return float(np.mean(kept))


def _nearest(matrix: Floats, k: int) -> list[list[int]]:
    far = matrix + np.diag(np.full(len(matrix), np.inf))
    return [list(map(int, row)) for row in np.argsort(far, axis=1, kind="stable")[:, :k]]


def _kin(matrix: Floats, pairs: Sequence[tuple[int, int]]) -> dict[str, float]:
    """How far networks are from the one they were made of, against any two; and how often the parent is nearer."""
    own = np.array([matrix[i, parent] for i, parent in pairs])
    nearer = [float((matrix[i] > matrix[i, parent]).sum() / (len(matrix) - 2)) for i, parent in pairs]
    return {
        "to_parent": round(float(np.median(own)), 4),
        "to_any": round(float(np.median(squareform(matrix, checks=False))), 4),
        "share_further_than_parent": round(float(np.mean(nearer)), 4),
    }


def spread_out(matrix: Floats, n: int) -> list[int]:
    """Places of ``n`` networks to draw: two close ones, then alternately the one furthest from those and its nearest.

    So the examples are far apart in pairs, which is what a reader wants to compare.
    """
    far = matrix + np.diag(np.full(len(matrix), np.inf))
    first = int(np.argmin(far.min(axis=1)))
    chosen = [first, int(np.argmin(far[first]))]
    while len(chosen) < min(n, len(matrix)):
        rest = [i for i in range(len(matrix)) if i not in chosen]
        furthest = max(rest, key=lambda i: float(matrix[i, chosen].min()))
        chosen.append(furthest)
        near = [i for i in rest if i != furthest]
        if len(chosen) < n and near:
            chosen.append(min(near, key=lambda i: float(matrix[furthest, i])))
    return chosen


def write(results: Results, places: Places) -> Body:
    """The four maps of the first seed, its examples drawn, and the numbers of all seeds."""
    record = results.records[0]
    _draw_maps(record, places)
    letters = dict(zip(ascii_lowercase, record["result"]["examples"], strict=False))
    pictures = []
    for letter, example in letters.items():
        name = f"distance-map-{letter}.svg"
        arch = Architecture.from_dict(example["arch"])
        arch.draw(places.figure(name), title=f"({letter}) network {example['network']}")
        pictures.append(f"[({letter})](figures/{name})")
    caption = "Random CNNs laid out by their OTMANN distances; marked ones are drawn below"
    parts = [
        f"![{caption}](figures/distance-map.svg)",
        "The marked networks: " + ", ".join(pictures) + ".",
        _fidelity(results),
        _kinship(results),
    ]
    return Body("\n\n".join(parts), _shows(results))


def _draw_maps(record: Record, places: Places) -> None:
    result = record["result"]
    figure, axes = panels(4, width=5.2, height=4.6, columns=2)
    size = np.log10(np.array(result["mass"], dtype=np.float64))
    spots: Any = None
    for place, (distance, method) in enumerate((d, m) for d in ("d", "d_bar") for m in ("t-SNE", "MDS")):
        points = np.array(result["maps"][distance][method]["points"])
        here = axes[place]
        for i, parent in enumerate(result["parents"]):
            if parent is not None:
                here.plot(*points[[i, parent]].T, color=BASE, linewidth=0.5, alpha=0.5, zorder=1)
        spots = here.scatter(*points.T, c=size, s=26, cmap="viridis", edgecolors="white", linewidths=0.4, zorder=2)
        for k, (letter, example) in enumerate(zip(ascii_lowercase, result["examples"], strict=False)):
            beside = (4, 3) if k % 2 else (-10, -9)  # near ones come in pairs: one letter on each side
            at = points[example["network"]]
            here.annotate(letter, at, fontsize=10, fontweight="bold", xytext=beside, textcoords="offset points")
        here.set_title(f"{method} of {'d' if distance == 'd' else 'd_bar'}")
        here.set_xticks([])
        here.set_yticks([])
    figure.colorbar(spots, ax=axes, label="log10 of the total mass", shrink=0.6)
    save(figure, places.figure("distance-map.svg"))


def _fidelity(results: Results) -> str:
    rows = []
    for record in results.records:
        for distance, by_method in record["result"]["maps"].items():
            for method, found in by_method.items():
                kept = f"{found['neighbours_kept']:.0%}"
                rows.append((record["run"]["seed"], distance, method, f"{found['rank_correlation']:.3f}", kept))
    columns = ("seed", "distance", "map", "rank correlation with true distances", f"of {NEIGHBOURS} neighbours kept")
    return table(columns, rows)


def _kinship(results: Results) -> str:
    rows = []
    for record in results.records:
        for distance, kin in record["result"]["kin"].items():
            ratio = f"{kin['to_parent'] / kin['to_any']:.3f}" if kin["to_any"] else "–"
            further = f"{kin['share_further_than_parent']:.1%}"
            rows.append((record["run"]["seed"], distance, kin["to_parent"], kin["to_any"], ratio, further))
    return table(
        ("seed", "distance", "median to the parent", "median of any two", "ratio", "networks further than the parent"),
        rows,
    )


def _shows(results: Results) -> str:
    kin = [record["result"]["kin"]["d_bar"] for record in results.records]
    further = float(np.mean([one["share_further_than_parent"] for one in kin]))
    return (
        f"Under d_bar a network is nearer to the one it was made of than to {further:.0%} of the others, on average: "
        "networks that differ by one to five edits are placed together (the grey lines join them). It does not show "
        "that near networks perform alike; that is [smoothness](smoothness.md). A map in the plane keeps only "
        "part of the distances, as the first table says. t-SNE and MDS depend on random starts, which the seed fixes."
    )


DISTANCE_MAP = Experiment(
    name="distance-map",
    title="A map of networks: t-SNE and MDS under the OTMANN distance (Figures 6 and 7)",
    question="Does OTMANN put networks that look alike close together?",
    method=(
        "Random CNNs: the initial pool, then mutations of one to five steps, each of a network picked among all "
        "before it. Distances d and d_bar at one structural weight. Examples are chosen by rule (pairs of near "
        "networks, far from the other pairs), not by eye."
    ),
    do=do,
    write=write,
)

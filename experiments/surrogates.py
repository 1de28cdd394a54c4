"""Which belief predicts networks best, and where the distance matters: OTMANN, features, Weisfeiler-Lehman, counts.

    python -m experiments.surrogates --draws 10                      # the tables of docs/results/surrogates.md
    python -m experiments.surrogates --draws 2 --problems f1,indoor  # some of them

Every surrogate is the same Gaussian process on other rows. Networks with known values are divided at random, the
process is fitted to some and asked about all others: rank correlation over all and within the best, and how many true
values lie in the 90 % interval. Of recorded searches each network is predicted from those before it. Inside the same
search, the surrogates are methods of ``python -m benchmarks.nasbench201``.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from benchmarks import fcnet, nasbench201, surrogate
from benchmarks.runs import RunFile
from experiments.markdown import table
from experiments.records import default_places
from nasbot._ranks import rank_correlation
from nasbot._rng import Role, stream
from nasbot.architecture import Architecture
from nasbot.architecture.features import FeatureMap
from nasbot.domain import Domain
from nasbot.gp import Belief, BeliefOptions, Rows, fit_belief
from nasbot.gp.calibration import widening
from nasbot.gp.posterior import Prediction
from nasbot.gp.warping import Warp
from nasbot.otmann import Otmann
from nasbot.otmann.presets import search_rules
from nasbot.searchers.memory import feature_differences

Floats = NDArray[np.float64]
Between = tuple[Floats, Floats]  # d and d_bar, or what stands in for them, each (rows, n, m)

WL_ROUNDS = 1  # with two, cells have tens of thousands of neighbourhoods, nearly each of its own
FIRST_PREDICTED = 15  # of a recorded search: fewer say little
FIRST_FORESEEN = 10  # after the pool: how these are foreseen widens later intervals
SEARCHES = "searches"
DEFAULTS = BeliefOptions()


class Problem(NamedTuple):
    """Networks, with params where there are any, and values to be maximised."""

    name: str
    networks: Sequence[Architecture]
    values: Floats
    n_known: int
    best: float  # the share that counts as best
    distance: Otmann
    options: BeliefOptions = DEFAULTS
    domain: Domain | None = None
    params: Sequence[Mapping[str, float | int | str]] = ()
    in_order: bool = False  # a recorded search: each is predicted from those before it
    crude: Callable[[Sequence[Architecture]], Floats] | None = None


class Skill(NamedTuple):
    """Of one surrogate on one problem."""

    of_all: float
    of_best: float
    coverage: float  # of the 90 % interval
    seconds: float  # of CPU, for a fit and its predictions


# -- what networks are compared by -------------------------------------------------------------------------------------


def label_counts(networks: Sequence[Architecture]) -> Floats:
    """How often each label occurs: what a stranger would write in an afternoon."""
    index = networks[0].vocabulary.index
    counts = np.zeros((len(networks), len(index)))
    for row, arch in zip(counts, networks, strict=True):
        for layer in arch.layers:
            row[index[layer.label]] += 1.0
    return counts


def wl_counts(networks: Sequence[Architecture]) -> Floats:
    """Weisfeiler-Lehman: how often each label occurs with its neighbourhood of 0, 1, … rounds; units to powers of 2."""
    found: list[Counter[object]] = []
    for arch in networks:
        colours: list[object] = [(x.label, round(math.log2(x.units or 1))) for x in arch.layers]
        counts = Counter(colours)
        for _ in range(WL_ROUNDS):
            colours = [
                (colours[u], _sorted(colours, arch.parents[u]), _sorted(colours, arch.children[u]))
                for u in range(len(colours))
            ]
            counts.update(colours)
        found.append(counts)
    index = {colour: i for i, colour in enumerate(dict.fromkeys(c for counts in found for c in counts))}
    table_of = np.zeros((len(found), len(index)))
    for row, counts in zip(table_of, found, strict=True):
        for colour, n in counts.items():
            row[index[colour]] = n
    return table_of


def _sorted(colours: Sequence[object], at: Sequence[int]) -> tuple[str, ...]:
    return tuple(sorted(repr(colours[u]) for u in at))


def by_counts(counts: Floats, known: Floats) -> Between:
    """d: the sum of differences of counts; d_bar: the angle between them, as a distance."""
    d = cdist(known, counts, "cityblock")
    lengths = np.linalg.norm(known, axis=1)[:, None] * np.linalg.norm(counts, axis=1)[None, :]
    cosine = np.divide(known @ counts.T, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    return d[None], np.sqrt(np.maximum(2.0 - 2.0 * cosine, 0.0))[None]


class Views:
    """All that a problem's networks are compared by, computed once."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.packed = problem.distance.pack(problem.networks)
        feature_map = FeatureMap(problem.networks[0].vocabulary)
        self.features = tuple(np.array(block) for block in zip(*map(feature_map, problem.networks), strict=True))
        self.wl = wl_counts(problem.networks)
        self.crude = label_counts(problem.networks)

    def rows(self, surrogate_name: str, known: NDArray[np.intp], asked: NDArray[np.intp]) -> Rows:
        """What the surrogate sees between known and other networks."""
        parts = surrogate_name.split(" + ")
        distances = [self._between(part, known, asked) for part in parts if part != "features"]
        features = None
        if "features" in parts:
            left, right = (tuple(block[at] for block in self.features) for at in (known, asked))
            features = feature_differences(left, right)
        d = d_bar = None
        if len(distances) == 1 and features is None:
            d, d_bar = distances[0]
        elif len(distances) == 1:
            d_bar = distances[0][1]  # as NASBOT has it: the normalised distance beside the features
        elif distances:
            d, d_bar = distances[0][1], distances[1][1]
        return Rows.of(d, d_bar, features=features, params=self._params(known, asked))

    def _between(self, part: str, known: NDArray[np.intp], asked: NDArray[np.intp]) -> Between:
        if part == "OTMANN":
            archs = self.problem.networks
            found = self.problem.distance.cross([archs[i] for i in known], [archs[i] for i in asked])
            if len(known) == len(asked) and np.array_equal(known, asked):
                return _symmetric(found.d), _symmetric(found.d_bar)
            return found.d, found.d_bar
        counts = self.wl if part == "WL" else self.crude
        if part == "crude" and self.problem.crude is not None:
            places = self.problem.crude(self.problem.networks)
            return cdist(places[known], places[asked], "cityblock")[None], by_counts(counts[asked], counts[known])[1]
        d, d_bar = by_counts(counts[asked], counts[known])
        if np.array_equal(known, asked):
            return _symmetric(d), _symmetric(d_bar)
        return d, d_bar

    def _params(self, known: NDArray[np.intp], asked: NDArray[np.intp]) -> Floats | None:
        if self.problem.domain is None:
            return None
        given = self.problem.params
        return self.problem.domain.differences([given[i] for i in known], [given[i] for i in asked])


def _symmetric(x: Floats) -> Floats:
    mean = 0.5 * (x + x.transpose(0, 2, 1))
    mean[:, range(x.shape[1]), range(x.shape[1])] = 0.0
    return mean


ALONE = ("OTMANN", "features", "WL", "crude")
SURROGATES = (*ALONE, "OTMANN + features", "WL + features", "crude + features", "OTMANN + WL")

# -- problems ----------------------------------------------------------------------------------------------------------


def problems(data: Path, records: Path, wanted: Sequence[str]) -> Iterator[Problem]:
    """Those that are wanted, by the beginnings of their names; all of them where none is named."""
    makers: Sequence[tuple[str, Callable[[Path], Iterator[Problem]], Path]] = (
        ("nasbench201", _cells, data),
        ("indoor naval f1 f2 f3", _records, records),
        (SEARCHES, _searches, records),
        ("fcnet", _fcnet, data),
    )
    for heads, make, folder in makers:
        if wanted and not any(name.startswith(tuple(heads.split())) for name in wanted):
            continue  # nothing of this kind: its files need not be there
        for problem in make(folder):
            if not wanted or any(problem.name.startswith(name) for name in wanted):
                yield problem


def _cells(data: Path) -> Iterator[Problem]:
    for name in ("cifar10_valid", "cifar100"):
        cells = nasbench201.read_table(data / "nasbench201.npz", name)
        networks = [nasbench201.network_of(cell) for cell in cells.cells]
        values = np.array(list(cells.accuracy.values()))
        yield Problem(
            f"nasbench201 {name}",
            networks,
            values,
            50,
            0.05,
            nasbench201.WIDE,
            nasbench201.ROUGH,
            crude=_one_hot_cells,
        )


def _one_hot_cells(networks: Sequence[Architecture]) -> Floats:
    packed = nasbench201.HammingAndCounts().pack(networks)
    return packed.reshape(len(packed), -1) / 2.0


def _records(records: Path) -> Iterator[Problem]:
    for found in surrogate.problems(records / "smoothness.jsonl"):
        if found.name in ("indoor", "naval", "f1", "f2", "f3"):
            distance = Otmann(preset=search_rules(found.networks[0].vocabulary))
            yield Problem(found.name, found.networks, found.values, 60, 0.5, distance)


def _searches(records: Path) -> Iterator[Problem]:
    """Searches whose networks were recorded in the order of their evaluation (losses)."""
    for record in RunFile(records / "searches.jsonl").records():
        networks = [Architecture.from_dict(arch) for arch in record["networks"]]
        distance = Otmann(preset=search_rules(networks[0].vocabulary))
        name = f"{SEARCHES} {record['dataset']} {record['seed']}"
        yield Problem(name, networks, -np.array(record["values"]), FIRST_PREDICTED, 0.5, distance, in_order=True)


def _fcnet(data: Path) -> Iterator[Problem]:
    for name in ("protein_structure", "naval_propulsion"):
        lookup = fcnet.read_table(data / "fcnet_tabular.npz", name)
        keys = list(lookup.error)
        chosen = stream(0, 0, Role.EXPERIMENT).choice(len(keys), 1500, replace=False)
        rows = [dict(zip(lookup.grids, keys[i], strict=True)) for i in chosen]
        candidates = [lookup.candidate(row) for row in rows]
        values = -np.log([lookup.error[keys[i]] for i in chosen])
        archs, params = [c.arch for c in candidates], [c.params for c in candidates]
        yield Problem(f"fcnet {name}", archs, values, 100, 0.05, Otmann(), domain=lookup.domain, params=params)


# -- judging -----------------------------------------------------------------------------------------------------------


def skill(views: Views, name: str, draws: Sequence[int]) -> Skill:
    """Means over draws; of a recorded search over its networks."""
    problem = views.problem
    found = [_of_search(views, name)] if problem.in_order else [_of_draw(views, name, draw) for draw in draws]
    return Skill(*(float(x) for x in np.mean(found, axis=0)))


def _of_draw(views: Views, name: str, draw: int) -> Skill:
    problem, start = views.problem, time.process_time()
    order = stream(draw, 0, Role.EXPERIMENT).permutation(len(problem.networks))
    known, asked = np.split(order, [problem.n_known])
    belief, prediction = _asked(views, name, known, asked, draw)
    seconds = time.process_time() - start
    mean, true = prediction.mean.mean(axis=0), problem.values[asked]
    best = np.argsort(-true, kind="stable")[: round(problem.best * len(true))]
    covered = _covered(belief, prediction, true)
    return Skill(rank_correlation(mean, true), rank_correlation(mean[best], true[best]), float(covered.mean()), seconds)


def _of_search(views: Views, name: str) -> Skill:
    values, start = views.problem.values, time.process_time()
    predicted: list[float] = []
    covered: list[bool] = []
    for n in range(FIRST_FORESEEN, len(values)):
        belief, prediction = _asked(views, name, np.arange(n), np.array([n]), n)
        predicted.append(float(belief.warped.inverse(prediction.mean.mean(axis=0))[0]))
        covered.append(bool(_covered(belief, prediction, values[n : n + 1], widening(covered))[0]))
    del predicted[: FIRST_PREDICTED - FIRST_FORESEEN], covered[: FIRST_PREDICTED - FIRST_FORESEEN]
    said, true = np.array(predicted), values[FIRST_PREDICTED:]
    best = np.argsort(-true, kind="stable")[: round(views.problem.best * len(true))]
    seconds = (time.process_time() - start) / len(true)
    return Skill(
        rank_correlation(said, true), rank_correlation(said[best], true[best]), float(np.mean(covered)), seconds
    )


def _asked(
    views: Views, name: str, known: NDArray[np.intp], asked: NDArray[np.intp], seed: int
) -> tuple[Belief, Prediction]:
    rng = stream(seed, 1, Role.EXPERIMENT)
    rows, values = views.rows(name, known, known), views.problem.values[known]
    belief = fit_belief(rows, values, options=views.problem.options, rng=rng)
    return belief, belief.predict(views.rows(name, known, asked))


def _covered(belief: Belief, prediction: Prediction, true: Floats, widened: float = 1.0) -> NDArray[np.bool_]:
    """Whether each true value lies in the 90 % interval of an observation of it."""
    noisy = prediction._replace(variance=prediction.variance + belief.posterior.noise_variance[:, None])
    lower, _, upper = belief.interval(noisy, widening=widened)
    return (lower <= true) & (true <= upper)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table for each problem, as it is done."""
    places = default_places(quick=False)
    about = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m experiments.surrogates", description=about)
    parser.add_argument("--draws", metavar="N", type=int, default=10, help="random divisions of each problem")
    parser.add_argument("--first-draw", metavar="K", type=int, default=0)
    parser.add_argument("--problems", default="", help="nasbench201, indoor, naval, f1, f2, f3, searches, fcnet")
    parser.add_argument("--data", type=Path, default=places.data, help="folder of the tables")
    parser.add_argument("--records", type=Path, default=places.out / "records", help="folder of our own records")
    parser.add_argument("--warp", choices=tuple(Warp), default=Warp.RANK, help="of the values before fitting")
    given = parser.parse_args(arguments)
    if given.draws < 1:
        parser.error(f"--draws: expected a whole number >= 1, got {given.draws}")
    wanted = [name.strip() for name in given.problems.split(",") if name.strip()]
    draws = range(given.first_draw, given.first_draw + given.draws)
    for problem in problems(given.data, given.records, wanted):
        views = Views(problem._replace(options=replace(problem.options, warp=given.warp)))
        lines = []
        for name in SURROGATES:
            found = skill(views, name, draws)
            cells = (f"{found.of_all:.3f}", f"{found.of_best:.3f}", f"{found.coverage:.0%}", f"{found.seconds:.2f}")
            lines.append((name, *cells))
        heads = ("surrogate", "all", f"best {problem.best:.0%}", "in the 90 % interval", "CPU s")
        print(f"\n{problem.name}, {problem.n_known} known of {len(problem.networks):,}:\n")
        print(table(heads, lines), flush=True)


if __name__ == "__main__":
    main()

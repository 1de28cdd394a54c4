"""NAS-Bench-201 by look-up: how soon each searcher finds the best of 15,625 cells.

    python -m benchmarks.nasbench201 --table FILE --dataset cifar100 --method nasbot --seeds 20 --queries 100 --json

The objective is the mean validation accuracy over the table's training seeds. Every run of a seed begins with the same
ten random cells, whatever the method. The last line printed with ``--json`` is an object with ``best_mean`` and
``best_se`` (after 25, 50, … queries) and ``at_optimum``, the share of runs that have found the best cell of the table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from benchmarks.runs import Record, RunFile, average, paired, revision
from nasbot._rng import Role as StreamRole
from nasbot._rng import stream
from nasbot._typing import Json
from nasbot.architecture import (
    Architecture,
    Label,
    LabelPenalties,
    Layer,
    PathEnd,
    PathKind,
    Role,
    SearchSpace,
    Vocabulary,
)
from nasbot.candidate import Candidate
from nasbot.domain import Domain
from nasbot.errors import ExhaustedError, FileError, NasbotError, OptionError, Violation
from nasbot.evolution import one_step_edits
from nasbot.gp import BeliefOptions
from nasbot.gp.warping import Warp
from nasbot.otmann import Distances, NetworkDistance, Otmann
from nasbot.searchers import NASBOT, EvolutionSearch, KernelTerms, Proposal, RandomSearch, Searcher
from nasbot.trial import Failed, FailureCause, History, Outcome, Scored, Trial

Floats = NDArray[np.float64]
Cell = tuple[str, ...]  # the operations on EDGES, in that order

N_NODES = 4
EDGES = tuple((i, j) for j in range(1, N_NODES) for i in range(j))
OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
GROUPS = dict(zip(OPERATIONS, ("none", "skip", "conv", "conv", "pool"), strict=True))
POOL_SIZE = 10
REPORT_EVERY = 25
MARKS = (25, 50, 100, 150)  # queries after which the Markdown table reports
AT_OPTIMUM = 1e-6  # tables are in single precision

# -- cells as networks -------------------------------------------------------------------------------------------------

# Layer k + 1 is the operation on EDGES[k]; the wiring is the line graph of the cell: the operation on edge (i, j) feeds
# those on the edges (j, k). Node 0 is the input of the network, the last node its output.
OUTPUT = len(EDGES) + 1
WIRING = frozenset(
    {(0, u) for u, (i, _) in enumerate(EDGES, 1) if i == 0}
    | {(u, OUTPUT) for u, (_, j) in enumerate(EDGES, 1) if j == N_NODES - 1}
    | {(u, v) for u, (_, j) in enumerate(EDGES, 1) for v, (i, _) in enumerate(EDGES, 1) if i == j}
)

# What it costs to take one operation for another, relative to 1 for leaving it unmatched (2 would never be paid).
PENALTIES: Mapping[tuple[str, str], float] = {
    ("nor_conv_1x1", "nor_conv_3x3"): 0.3,
    ("skip_connect", "avg_pool_3x3"): 0.5,
    ("none", "skip_connect"): 1.0,
    ("none", "avg_pool_3x3"): 1.0,
    ("nor_conv_1x1", "skip_connect"): 1.0,
    ("nor_conv_3x3", "skip_connect"): 1.0,
    ("nor_conv_1x1", "avg_pool_3x3"): 1.0,
    ("nor_conv_3x3", "avg_pool_3x3"): 1.0,
    ("none", "nor_conv_1x1"): 1.5,
    ("none", "nor_conv_3x3"): 1.5,
}


def is_a_cell(arch: Architecture) -> Iterator[Violation]:
    """The rule of the vocabulary: the wiring above, however the layers are numbered."""
    if arch.edges != WIRING and not _is_wired_as_a_cell(arch):
        yield Violation("cell", "a cell has six operations, wired as the line graph of its four nodes")


def _is_wired_as_a_cell(arch: Architecture) -> bool:
    if len(arch.layers) != OUTPUT + 1 or sorted(edges := _cell_edges(arch)) != sorted(EDGES):
        return False
    place = {u: EDGES.index(edge) + 1 for u, edge in enumerate(edges, 1)} | {0: 0, OUTPUT: OUTPUT}
    return frozenset((place[u], place[v]) for u, v in arch.edges) == WIRING


def _cell_edges(arch: Architecture) -> list[tuple[int, int]]:
    """The edge of the cell that each operation is on: it begins and ends as many hops away as the longest paths say."""
    before = arch.path_lengths.of(PathKind.LONGEST, PathEnd.FROM_INPUT)
    behind = arch.path_lengths.of(PathKind.LONGEST, PathEnd.TO_OUTPUT)
    return [(int(before[u]) - 1, N_NODES - int(behind[u])) for u in range(1, len(arch.layers) - 1)]


def _vocabulary() -> Vocabulary:
    labels = (
        Label(name="ip", role=Role.INPUT),
        Label(name="op", role=Role.OUTPUT),
        *(Label(name=name, fixed_mass=1.0, group=GROUPS[name], cuts=name == "none") for name in OPERATIONS),
    )
    penalties = LabelPenalties.from_pairs([label.name for label in labels], PENALTIES)
    return Vocabulary("nas-bench-201", labels, penalties, rules=(is_a_cell,))


CELLS = _vocabulary()
SPACE = SearchSpace(CELLS)


def network_of(cell: Cell) -> Architecture:
    """The network of a cell; no two cells have the same."""
    return Architecture(CELLS, [Layer("ip"), *map(Layer, cell), Layer("op")], WIRING)


def cell_of(arch: Architecture) -> Cell:
    """The cell of a network of ``SPACE``, however its layers are numbered."""
    labels = [layer.label for layer in arch.layers[1:-1]]
    if arch.edges == WIRING:
        return tuple(labels)
    return tuple(label for _, label in sorted(zip(map(EDGES.index, _cell_edges(arch)), labels, strict=True)))


# -- the table ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table:
    """Accuracies of cells on one data set. Cells without an accuracy are absent."""

    dataset: str
    accuracy: Mapping[Cell, float]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, in the order of the file."""
        return tuple(self.accuracy)

    @cached_property
    def optimum(self) -> float:
        """The highest accuracy."""
        return max(self.accuracy.values())

    def outcome(self, arch: Architecture) -> Outcome:
        """What evaluating this network gives; a cell that the table lacks is refused, which costs a query too."""
        value = self.accuracy.get(cell_of(arch))
        return Failed(FailureCause.REFUSED, "not in the table") if value is None else Scored(value)

    def pool(self, seed: int) -> tuple[Architecture, ...]:
        """Ten cells drawn at random, the same for every method."""
        rng = stream(seed, 0, StreamRole.EXPERIMENT)
        rows = rng.choice(len(self.cells), min(POOL_SIZE, len(self.cells)), replace=False)
        return tuple(network_of(self.cells[row]) for row in rows)


def read_table(path: Path, dataset: str) -> Table:
    """The accuracies of one data set from a file like ``nasbench201.npz``; FileError, OptionError say what is wrong."""
    arrays = _arrays(path)
    known = [name.removesuffix("_val_acc") for name in arrays if name.endswith("_val_acc")]
    if dataset not in known:
        raise OptionError(f"--dataset: {path} has {', '.join(known) or 'no accuracies'}; got {dataset!r}")
    cells = _cells(path, arrays)
    accuracy = np.asarray(arrays[f"{dataset}_val_acc"], dtype=np.float64).reshape(len(cells), -1)
    n_seeds = np.isfinite(accuracy).sum(axis=1)
    means = np.where(np.isfinite(accuracy), accuracy, 0.0).sum(axis=1) / np.maximum(n_seeds, 1)
    by_cell = {cell: float(mean) for cell, mean, n in zip(cells, means, n_seeds, strict=True) if n}
    if not by_cell:
        raise FileError(f"{path}: {dataset}_val_acc has no finite entry")
    return Table(dataset, by_cell)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise FileError(f"{path}: no such table")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, BadZipFile, AttributeError, TypeError) as error:
        raise FileError(f"{path}: not an npz file of plain arrays ({type(error).__name__})") from None
    if missing := [name for name in ("arch", "op_names", "edges") if name not in arrays]:
        raise FileError(f"{path}: expected arrays arch, op_names and edges, got none called {', '.join(missing)}")
    return arrays


def _cells(path: Path, arrays: Mapping[str, NDArray[Any]]) -> list[Cell]:
    """The cells of a table whose edges and operations may be in any order."""
    edges = [tuple(int(node) for node in edge) for edge in arrays["edges"]]
    names = [str(name) for name in arrays["op_names"]]
    rows = arrays["arch"]
    if sorted(edges) != sorted(EDGES):
        raise FileError(f"{path}: edges: expected the six between four nodes, got {edges}")
    if unknown := sorted(set(names) - set(OPERATIONS)):
        raise FileError(f"{path}: op_names: expected some of {', '.join(OPERATIONS)}; got {', '.join(unknown)}")
    if rows.ndim != 2 or rows.shape[1] != len(EDGES) or not len(rows) or rows.min() < 0 or rows.max() >= len(names):
        raise FileError(f"{path}: arch: expected (n, 6) numbers of operations below {len(names)}, got {rows.shape}")
    columns = [edges.index(edge) for edge in EDGES]
    cells = [tuple(names[row[column]] for column in columns) for row in rows]
    if len(set(cells)) < len(cells):
        raise FileError(f"{path}: arch: {len(cells) - len(set(cells))} cells are there more than once")
    return cells


# -- methods -----------------------------------------------------------------------------------------------------------


class HammingAndCounts:
    """The plain distance: d the number of edges whose operations differ, d_bar the difference in how often each occurs.

    A NetworkDistance: it replaces OTMANN in an otherwise unchanged NASBOT.
    """

    def __repr__(self) -> str:
        return "HammingAndCounts()"

    def pack(self, archs: Sequence[Architecture] | Floats) -> Floats:
        """One-hot operations (n, edges, operations)."""
        if isinstance(archs, np.ndarray):
            return archs
        numbers = np.array([[OPERATIONS.index(name) for name in cell_of(arch)] for arch in archs], dtype=np.intp)
        hot: Floats = np.eye(len(OPERATIONS))[numbers.reshape(-1, len(EDGES))]
        return hot

    def cross(self, a: Sequence[Architecture] | Floats, b: Sequence[Architecture] | Floats) -> Distances:
        """Between each of ``a`` and each of ``b``."""
        left, right = self.pack(a), self.pack(b)
        agreeing = np.einsum("nek,mek->nm", left, right)
        counts = np.abs(left.sum(axis=1)[:, None, :] - right.sum(axis=1)[None, :, :]).sum(axis=2)
        return Distances((0.0,), (len(EDGES) - agreeing)[None], (counts / (2 * len(EDGES)))[None])

    def pairwise(self, archs: Sequence[Architecture] | Floats) -> Distances:
        """Between each two."""
        packed = self.pack(archs)
        return self.cross(packed, packed)


@dataclass(frozen=True, kw_only=True)
class UniformSearch:
    """Cells drawn uniformly from the table: random search as the literature on this benchmark has it."""

    cells: tuple[Cell, ...]
    pool: tuple[Architecture, ...]
    name: str = "uniform"
    space: SearchSpace = SPACE

    @property
    def domain(self) -> Domain:
        """Cells alone."""
        return Domain(self.space)

    def initial_pool(self) -> tuple[Candidate, ...]:
        """The cells evaluated first."""
        return tuple(map(Candidate, self.pool))

    def settings(self) -> Mapping[str, Json]:
        """Everything a proposal depends on besides space and history."""
        return {"searcher": self.name, "pool": [arch.fingerprint for arch in self.pool], "n_cells": len(self.cells)}

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """A cell not yet evaluated."""
        known = {cell_of(trial.arch) for trial in history}
        if len(known.intersection(self.cells)) == len(self.cells):
            raise ExhaustedError(f"all {len(self.cells)} cells of the table are known")
        while (cell := self.cells[int(rng.integers(len(self.cells)))]) in known:
            pass
        return Proposal(Candidate(network_of(cell)))


@dataclass(frozen=True, kw_only=True)
class LocalSearch(UniformSearch):
    """Hill climbing: the one-step edits of a centre in random order, which moves to the first that is better.

    Where all are known it starts again at a random cell. The notes of a trial say around which one it was proposed.
    """

    name: str = "local"

    def propose(self, history: History, *, rng: np.random.Generator) -> Proposal:
        """A neighbour of the centre, or a fresh start."""
        centre = self._centre(history)
        if centre is not None:
            edits = one_step_edits(centre.arch, self.space, modifiers=("swap_label",))
            unknown = [edit.arch for edit in edits if edit.arch.fingerprint not in history.seen]
            if unknown:
                chosen = unknown[int(rng.integers(len(unknown)))]
                return Proposal(Candidate(chosen), notes={"around": centre.number})
        return super().propose(history, rng=rng)

    def _centre(self, history: History) -> Trial | None:
        last = history[-1] if len(history) else None
        if last is None or "around" not in last.notes:  # nothing yet, the pool's end, or a fresh start
            return history.best if len(history) <= len(self.pool) else last
        before = history[int(str(last.notes["around"]))]
        return last if _worth(history, last) > _worth(history, before) else before


def _worth(history: History, trial: Trial) -> float:
    return -np.inf if trial.value is None else history.merit(trial)


SWAPS = ("swap_label",)
# Another operation in one of six places is no small change, and accuracies jump: powers of 1 fit that better.
ROUGH = BeliefOptions(distance_power=1.0, normalised_power=1.0)


def _bayesian(
    table: Table,
    pool: tuple[Architecture, ...],
    *,
    distance: NetworkDistance | None = None,
    terms: KernelTerms = KernelTerms.BOTH,
    belief: BeliefOptions = ROUGH,
    name: str = "nasbot",
) -> Searcher:
    return NASBOT(
        space=SPACE,
        pool=pool,
        modifiers=SWAPS,
        distance=distance or WIDE,
        belief=belief,
        kernel_terms=terms,
        name=name,
    )


def _warped(warp: Warp, table: Table, pool: tuple[Architecture, ...]) -> Searcher:
    belief = replace(ROUGH, warp=warp)
    return _bayesian(table, pool, terms=KernelTerms.NORMALISED_AND_FEATURES, belief=belief, name=warp)


# A cell has few layers, so path lengths differ by little; a wider range lets the belief find out how much they matter.
WIDE = Otmann(structural_weights=(0.1, 0.4, 1.6, 6.4))

METHODS: Mapping[str, Callable[[Table, tuple[Architecture, ...]], Searcher]] = {
    "nasbot": partial(_bayesian, terms=KernelTerms.NORMALISED_AND_FEATURES),
    "otmann": partial(_bayesian, name="otmann"),  # the distance alone, as ``nasbot`` was until there were features
    "narrow": partial(_bayesian, distance=Otmann(), name="narrow"),
    "crude": partial(_bayesian, distance=HammingAndCounts(), name="crude"),
    "crude+features": partial(
        _bayesian, distance=HammingAndCounts(), terms=KernelTerms.BOTH_AND_FEATURES, name="crude+features"
    ),
    **{warp: partial(_warped, warp) for warp in (Warp.BEST, Warp.RANK)},  # nasbot, whatever the default is
    "random": lambda table, pool: RandomSearch(space=SPACE, pool=pool, modifiers=SWAPS),
    "uniform": lambda table, pool: UniformSearch(cells=table.cells, pool=pool),
    "evolution": lambda table, pool: EvolutionSearch(space=SPACE, pool=pool, modifiers=SWAPS),
    "local": lambda table, pool: LocalSearch(cells=table.cells, pool=pool),
}

BASES: Mapping[str, str] = {Warp.RANK: Warp.BEST}  # what a method is compared with, where it is not nasbot

# -- runs --------------------------------------------------------------------------------------------------------------


def best_so_far(table: Table, method: str, seed: int, n_queries: int) -> list[float]:
    """The best accuracy after each query of one run; shorter where it has come to the optimum and cannot change."""
    pool = table.pool(seed)
    searcher = METHODS[method](table, pool)
    history = History()
    for number in range(n_queries):
        trial = _evaluated(table, searcher, history, seed, number)
        history = history.with_trial(trial)
        if is_optimal(_worth(history, trial), table.optimum):
            break
    values = [_worth(history, trial) for trial in history]
    return [float(value) for value in np.maximum.accumulate(values)]


def _evaluated(table: Table, searcher: Searcher, history: History, seed: int, number: int) -> Trial:
    pool = searcher.initial_pool()
    if number < len(pool):
        proposal = Proposal(pool[number])
    else:
        proposal = searcher.propose(history, rng=stream(seed, number, StreamRole.PROPOSAL))
    trial = proposal.trial(history)
    return trial.begun(float(number)).ended(table.outcome(trial.arch), at=number + 1.0, rank=number)


def record_of(table: Table, method: str, n_queries: int, tag: str, seed: int) -> Record:
    """One run, as it is kept."""
    start = time.perf_counter()
    best = best_so_far(table, method, seed, n_queries)
    return {
        "dataset": table.dataset,
        "method": method,
        "seed": seed,
        "queries": n_queries,
        "tag": tag,
        "revision": revision(),
        "seconds": round(time.perf_counter() - start, 2),
        "optimum": table.optimum,
        "best": [round(value, 7) for value in best],  # finer than AT_OPTIMUM
    }


def run_all(
    table: Table, method: str, seeds: Sequence[int], n_queries: int, *, tag: str, out: RunFile | None, processes: int
) -> list[Record]:
    """The runs of these seeds; those that the file has already, with as many queries or more, are taken from it."""
    known = {record["seed"]: record for record in _known(out, table, method, n_queries, tag)}
    missing = [seed for seed in seeds if seed not in known]
    for record in _each(partial(record_of, table, method, n_queries, tag), missing, processes):
        known[record["seed"]] = record
        if out is not None:
            out.append(record)
    return [known[seed] for seed in seeds]


def _known(out: RunFile | None, table: Table, method: str, n_queries: int, tag: str) -> Iterator[Record]:
    for record in out.records() if out is not None else ():
        same = (record["dataset"], record["method"], record["tag"]) == (table.dataset, method, tag)
        # A searcher does not know how many queries are to come, so a longer run begins as a shorter one does.
        if same and record["queries"] >= n_queries:
            yield record


def _each(run: Callable[[int], Record], seeds: Sequence[int], processes: int) -> Iterable[Record]:
    if processes == 1 or len(seeds) < 2:
        yield from map(run, seeds)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run, seeds)


def summary(records: Sequence[Record], n_queries: int) -> dict[str, Any]:
    """Means, standard errors and the share of runs at the optimum, after multiples of 25 queries and at the end."""
    curves = np.array([_padded(record["best"], n_queries) for record in records])
    marks = sorted({*range(REPORT_EVERY, n_queries + 1, REPORT_EVERY), n_queries})
    mean, se = average(curves)
    optimum = records[0]["optimum"]
    return {
        "best_mean": {str(mark): round(float(mean[mark - 1]), 4) for mark in marks},
        "best_se": {str(mark): round(float(se[mark - 1]), 4) for mark in marks},
        "at_optimum": float(np.mean([is_optimal(float(last), optimum) for last in curves[:, -1]])),
    }


def is_optimal(accuracy: float, optimum: float) -> bool:
    """Whether this is the best of the table."""
    return accuracy >= optimum - AT_OPTIMUM * max(1.0, abs(optimum))


def _padded(best: Sequence[float], n_queries: int) -> list[float]:
    """The curve, as long as asked for: a run that found the optimum stays there."""
    return [*best[:n_queries], *[best[-1]] * (n_queries - len(best))]


def markdown(records: Iterable[Record], tag: str, n_queries: int) -> Iterator[str]:
    """All runs of a tag that are long enough, as one table for each data set; nasbot against each method by seeds."""
    curves: dict[str, dict[str, dict[int, Record]]] = {}
    for record in records:
        if record["tag"] == tag and record["queries"] >= n_queries:
            curves.setdefault(record["dataset"], {}).setdefault(record["method"], {})[record["seed"]] = record
    for dataset, by_method in curves.items():
        optimum = next(iter(next(iter(by_method.values())).values()))["optimum"]
        marks = [mark for mark in MARKS if mark <= n_queries]
        yield f"\n{dataset}, whose best cell has {optimum:.3f}:\n"
        columns = [f"best at {mark}" for mark in marks] + ["at the optimum"] + [f"p at {mark}" for mark in marks[:2]]
        yield "| method | runs | " + " | ".join(columns) + " |"
        yield "|---|---|" + "---|" * len(columns)
        for method in (name for name in METHODS if name in by_method):
            yield _row(method, by_method, marks, n_queries)


def _row(method: str, by_method: Mapping[str, Mapping[int, Record]], marks: Sequence[int], n_queries: int) -> str:
    runs = by_method[method]
    numbers = summary(list(runs.values()), n_queries)
    cells = [f"{numbers['best_mean'][str(mark)]:.3f} ± {numbers['best_se'][str(mark)]:.3f}" for mark in marks]
    cells.append(f"{numbers['at_optimum']:.0%}")
    base = BASES.get(method, "nasbot")
    ours = by_method.get(base, {})
    seeds = sorted(set(ours) & set(runs))
    for mark in marks[:2] if method != base and seeds else ():
        at = [np.array([_padded(some[seed]["best"], mark)[-1] for seed in seeds]) for some in (ours, runs)]
        result = paired(at[0], at[1])
        cells.append(f"{result.p:.2g} ({result.wins} : {result.losses})")
    return f"| {method} | {len(runs)} | " + " | ".join(cells) + " |"


# -- the command -------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Mistakes are one line."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(message)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="python -m benchmarks.nasbench201", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--table", metavar="FILE", type=Path, help="as ../shared/data/nasbench201.npz")
    parser.add_argument("--dataset", help="cifar10_valid, cifar100, … as the table has them")
    parser.add_argument("--method", help=", ".join(METHODS))
    parser.add_argument("--seeds", metavar="N", type=int, default=20, help="runs, of the seeds K, K + 1, …")
    parser.add_argument("--first-seed", metavar="K", type=int, default=0)
    parser.add_argument("--queries", metavar="Q", type=int, default=100, help="evaluations of a run, the pool included")
    parser.add_argument("--json", action="store_true", help="print the summary as a line of JSON")
    parser.add_argument("--workers-processes", metavar="P", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", metavar="FILE", type=Path, help="keep the runs here, as JSON lines; do none twice")
    parser.add_argument("--tag", default="", help="goes into the records; runs of another tag count as not done")
    parser.add_argument("--summary", action="store_true", help="run nothing, print what --out has, as Markdown")
    return _checked(parser.parse_args(arguments))


def _checked(options: argparse.Namespace) -> argparse.Namespace:
    for name in ("out",) if options.summary else ("table", "dataset", "method"):
        if getattr(options, name) is None:
            raise OptionError(f"--{name} is missing")
    for name in ("seeds", "queries", "workers_processes"):
        if (value := getattr(options, name)) < 1:
            raise OptionError(f"--{name.replace('_', '-')}: expected a whole number >= 1, got {value}")
    if options.first_seed < 0:
        raise OptionError(f"--first-seed: expected a whole number >= 0, got {options.first_seed}")
    if not options.summary and options.method not in METHODS:
        raise OptionError(f"--method: expected one of {', '.join(METHODS)}; got {options.method!r}")
    return options


def _run(options: argparse.Namespace) -> None:
    table = read_table(options.table, options.dataset)
    records = run_all(
        table,
        options.method,
        range(options.first_seed, options.first_seed + options.seeds),
        options.queries,
        tag=options.tag,
        out=None if options.out is None else RunFile(options.out),
        processes=options.workers_processes,
    )
    numbers = summary(records, options.queries)
    if options.json:
        identity = {"dataset": options.dataset, "method": options.method, "seeds": options.seeds}
        print(json.dumps(identity | numbers | {"revision": revision()}))
        return
    print(f"{options.dataset}, {options.method}, {options.seeds} runs; the optimum is {table.optimum:.3f}")
    for mark, mean in numbers["best_mean"].items():
        print(f"  {mark:>4} queries: {mean:.3f} ± {numbers['best_se'][mark]:.3f}")
    print(f"  at the optimum: {numbers['at_optimum']:.0%}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print; the exit code is 2 for an option that cannot be meant and 3 for a file that cannot be read."""
    try:
        options = _options(arguments)
        if options.summary:
            print(*markdown(RunFile(options.out).records(), options.tag, options.queries), sep="\n")
        else:
            _run(options)
    except NasbotError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

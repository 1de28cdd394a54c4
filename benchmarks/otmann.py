"""Microseconds per pair of networks, all four structural weights and everything included: ours against POT.

Single-threaded figures are CPU time, so that a busy machine disturbs them little; repetitions of the contestants are
interleaved, and what is reported are medians over repetitions of the ratio within one. Two threads against one is wall
time, and means something only on two free cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.bars import Bar
from benchmarks.opponents import Floats, emd2_loop, emd_c_loop, prepared, problems
from nasbot.architecture import Architecture
from nasbot.otmann import Otmann
from nasbot.testing.networks import random_architecture

KINDS = ("mlp-reg", "cnn")
SIZES = (8, 16, 30, 60)
N_SIDE = {8: 24, 16: 20, 30: 12, 60: 10}  # networks on each side against POT
N_THREADED = {8: 400, 16: 200, 30: 100, 60: 50}  # and for two threads against one: some tenths of a second of work
EMD2_BARS = {8: (400, 250), 16: (180, 100), 30: (80, 45), 60: (40, 25)}
EMD_C_BAR = (20, 12)
THREADS_BAR = 1.7
STEP_SECONDS = 3.0
AGREEMENT = 1e-6  # relative to the total mass; POT's own tolerance is coarser than ours
MIN_SECONDS = 0.05  # shorter measurements are repeated and averaged

HEADINGS = (
    ";;ours;ours;emd2;emd2;emd_c;emd2 /;shared /;emd_c /;one;two;one /;largest",
    "kind;layers;packed;objects;loop;shared;alone;ours;ours;ours;thread;threads;two;error",
)


@dataclass(frozen=True)
class Row:
    """One setting; times in microseconds per pair, ratios against ours from packed networks on one thread."""

    kind: str
    n_layers: int
    n_pairs: int
    ours: float
    ours_from_objects: float
    emd2: float
    emd2_shared: float
    emd_c: float
    emd2_ratio: float
    emd2_shared_ratio: float
    emd_c_ratio: float
    one_thread: float
    two_threads: float
    threads_ratio: float
    largest_difference: float  # between ours and either of POT's, relative to the total mass


def networks(kind: str, n_layers: int, n: int, *, seed: int) -> list[Architecture]:
    """The same random networks at every call."""
    rng = np.random.default_rng([seed, n_layers])
    return [random_architecture(kind, rng=rng, n_layers=n_layers) for _ in range(n)]


def fresh(archs: Sequence[Architecture]) -> list[Architecture]:
    """Copies that have nothing computed yet."""
    return [Architecture(arch.vocabulary, arch.layers, arch.edges) for arch in archs]


def seconds_of(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Seconds of one call, averaged over as many as it takes to measure them."""
    n, start = 0, clock()
    while n == 0 or clock() - start < MIN_SECONDS:
        work()
        n += 1
    return (clock() - start) / n


class Contest:
    """The same pairs of networks, ready for every contestant."""

    def __init__(self, kind: str, n_layers: int) -> None:
        self.otmann = Otmann()
        self.n = N_SIDE[n_layers]
        self.a, self.b = (networks(kind, n_layers, self.n, seed=seed) for seed in (1, 2))
        self.packed = self.otmann.pack(self.a), self.otmann.pack(self.b)
        self.first, self.second = ([prepared(arch) for arch in archs] for archs in (self.a, self.b))
        self.table = self.otmann.rules.penalties_for(self.a[0].vocabulary).matrix
        weights = self.otmann.structural_weights
        self.given = [p for x in self.first for y in self.second for p in problems(x, y, self.table, weights)]

    def ours(self) -> Floats:
        """d (weights, n, m), from packed networks."""
        return self.otmann.cross(*self.packed, threads=1).d

    def emd2(self, *, shared: bool) -> Floats:
        """The same by the loop over ``ot.emd2``."""
        return emd2_loop(self.first, self.second, self.table, self.otmann.structural_weights, shared=shared)

    def emd_c(self) -> Floats:
        """The same by POT's bare solver, its costs given."""
        return emd_c_loop(self.given).reshape(self.n, self.n, -1).transpose(2, 0, 1)

    def seconds(self) -> dict[str, float]:
        """One repetition: CPU seconds of each contestant, one after the other."""
        copies = fresh(self.a), fresh(self.b)  # a network remembers what was computed, so these are used once
        return {
            "ours": seconds_of(self.ours),
            "objects": _once(partial(self.otmann.cross, *copies, threads=1)),
            "emd2": seconds_of(partial(self.emd2, shared=False)),
            "shared": seconds_of(partial(self.emd2, shared=True)),
            "emd_c": seconds_of(self.emd_c),
        }

    def largest_difference(self) -> float:
        """Between ours and either of POT's, relative to the total mass of the pair."""
        ours, others = self.ours(), (self.emd2(shared=True), self.emd_c())
        total = np.array([[x.total + y.total for y in self.second] for x in self.first])
        return float(max(np.max(np.abs(other - ours) / total) for other in others))


def compare(kind: str, n_layers: int, repetitions: int) -> Row:
    """One row of the table."""
    contest = Contest(kind, n_layers)
    measured = [contest.seconds() for _ in range(repetitions)]
    times = {name: [seconds[name] for seconds in measured] for name in measured[0]}
    micro = {name: 1e6 * median(values) / contest.n**2 for name, values in times.items()}
    one, two = _threads(kind, n_layers, repetitions)
    return Row(
        kind=kind,
        n_layers=n_layers,
        n_pairs=contest.n**2,
        ours=micro["ours"],
        ours_from_objects=micro["objects"],
        emd2=micro["emd2"],
        emd2_shared=micro["shared"],
        emd_c=micro["emd_c"],
        emd2_ratio=_median_ratio(times["emd2"], times["ours"]),
        emd2_shared_ratio=_median_ratio(times["shared"], times["ours"]),
        emd_c_ratio=_median_ratio(times["emd_c"], times["ours"]),
        one_thread=median(one),
        two_threads=median(two),
        threads_ratio=_median_ratio(one, two),
        largest_difference=contest.largest_difference(),
    )


def _once(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _threads(kind: str, n_layers: int, repetitions: int) -> tuple[list[float], list[float]]:
    """Microseconds of wall time per pair on one thread and on two."""
    otmann, n = Otmann(), N_THREADED[n_layers]
    packed = otmann.pack(networks(kind, n_layers, n, seed=3))
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(repetitions):
        for threads, found in times.items():
            work = partial(otmann.cross, packed, packed, threads=threads)
            found.append(1e6 * seconds_of(work, time.perf_counter) / n**2)
    return times[1], times[2]


def _median_ratio(numerator: Sequence[float], denominator: Sequence[float]) -> float:
    return median(x / y for x, y in zip(numerator, denominator, strict=True))


def step_seconds(kind: str, repetitions: int) -> float:
    """CPU seconds from Architecture objects to arrays: 1,000 new networks against 300 known ones, 16 layers."""
    new, known = networks(kind, 16, 1000, seed=4), networks(kind, 16, 300, seed=5)
    otmann, seconds = Otmann(), []
    for _ in range(repetitions):
        a, b = fresh(new), fresh(known)
        seconds.append(_once(partial(otmann.cross, a, b)))
    return median(seconds)


def run(repetitions: int) -> tuple[dict[str, Any], list[Bar]]:
    """Measure, print the table, and return the raw numbers and the bars."""
    otmann = Otmann()
    for kind in KINDS:  # compiled before anything is timed
        otmann.cross(networks(kind, 8, 2, seed=0), networks(kind, 8, 2, seed=0), threads=2)
    print(f"microseconds per pair, structural weights {', '.join(f'{nu:g}' for nu in otmann.structural_weights)}")
    for line in HEADINGS:
        print("".join(f"{heading:>9}" for heading in line.split(";")))
    rows = []
    for kind in KINDS:
        for n_layers in SIZES:
            row = compare(kind, n_layers, repetitions)
            rows.append(row)
            print(_line(row), flush=True)
    steps = {kind: step_seconds(kind, min(repetitions, 3)) for kind in KINDS}
    print()
    return {"rows": [asdict(row) for row in rows], "step_seconds": steps}, _bars(rows, steps)


def _line(row: Row) -> str:
    times = (row.ours, row.ours_from_objects, row.emd2, row.emd2_shared, row.emd_c)
    ratios = (row.emd2_ratio, row.emd2_shared_ratio, row.emd_c_ratio)
    text = f"{row.kind:>9}{row.n_layers:9}" + "".join(f"{value:9.2f}" for value in times)
    text += "".join(f"{value:9.1f}" for value in ratios)
    return f"{text}{row.one_thread:9.2f}{row.two_threads:9.2f}{row.threads_ratio:9.2f}{row.largest_difference:9.0e}"


def _bars(rows: Sequence[Row], steps: dict[str, float]) -> list[Bar]:
    bars = []
    for row in rows:
        name = f"{row.kind}, {row.n_layers} layers"
        bars.append(Bar(f"{name}: times faster than the emd2 loop", row.emd2_ratio, *EMD2_BARS[row.n_layers]))
        bars.append(Bar(f"{name}: times faster than emd_c alone", row.emd_c_ratio, *EMD_C_BAR))
        bars.append(
            Bar(f"{name}: difference from POT's values", row.largest_difference, AGREEMENT, AGREEMENT, at_least=False)
        )
    bars.append(Bar("two threads against one, median", median(row.threads_ratio for row in rows), THREADS_BAR))
    for kind, seconds in steps.items():
        bars.append(Bar(f"{kind}: 1,000 networks against 300, CPU", seconds, STEP_SECONDS, STEP_SECONDS, False, " s"))
    return bars

"""Microseconds per pair of networks, all four structural weights and everything included: ours against POT.

Single-threaded figures are CPU time, so that a busy machine disturbs them little; repetitions of the contestants are
interleaved, and what is reported are medians over repetitions of the ratio within one. Two threads against one is wall
time, and means something only on two free cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from benchmarks.bars import Bar
from benchmarks.opponents import emd2_loop, emd_c_loop, prepared, problems
from nasbot.architecture import Architecture
from nasbot.otmann import Otmann
from nasbot.testing.networks import random_architecture

KINDS = ("mlp-reg", "cnn")
SIZES = (8, 16, 30, 60)
N_SIDE = {8: 30, 16: 30, 30: 24, 60: 14}  # networks on each side against POT
N_THREADED = {8: 500, 16: 300, 30: 150, 60: 70}  # and for two threads against one: some tenths of a second of work
EMD2_BARS = {8: (400, 250), 16: (180, 100), 30: (80, 45), 60: (40, 25)}
EMD_C_BAR = (20, 12)
THREADS_BAR = 1.7
STEP_SECONDS = 3.0
AGREEMENT = 1e-6  # relative to the total mass; POT's own tolerance is coarser than ours
MIN_SECONDS = 0.05  # shorter measurements are repeated and averaged


@dataclass(frozen=True)
class Row:
    """One setting; times in microseconds per pair, ratios against ours from packed networks on one thread."""

    kind: str
    n_layers: int
    n_pairs: int
    ours: float
    ours_from_objects: float
    emd2: float
    emd_c: float
    emd2_ratio: float
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


def compare(kind: str, n_layers: int, repetitions: int) -> Row:
    """One row of the table."""
    otmann = Otmann()
    weights, n = otmann.structural_weights, N_SIDE[n_layers]
    a, b = networks(kind, n_layers, n, seed=1), networks(kind, n_layers, n, seed=2)
    packed_a, packed_b = otmann.pack(a), otmann.pack(b)
    table = otmann.rules.penalties_for(a[0].vocabulary).matrix
    first, second = [prepared(arch) for arch in a], [prepared(arch) for arch in b]
    given = [problem for x in first for y in second for problem in problems(x, y, table, weights)]
    times: dict[str, list[float]] = {name: [] for name in ("ours", "objects", "emd2", "emd_c")}
    for _ in range(repetitions):
        copies_a, copies_b = fresh(a), fresh(b)  # a network may remember what was computed, so each is used once
        times["ours"].append(seconds_of(lambda: otmann.cross(packed_a, packed_b, threads=1)))
        times["objects"].append(_once(lambda a=copies_a, b=copies_b: otmann.cross(a, b, threads=1)))  # type: ignore[misc]
        times["emd2"].append(seconds_of(lambda: emd2_loop(first, second, table, weights)))
        times["emd_c"].append(seconds_of(lambda: emd_c_loop(given)))
    one, two = _threads(kind, n_layers, repetitions)
    micro = {name: 1e6 * median(values) / n**2 for name, values in times.items()}
    ours = otmann.cross(packed_a, packed_b, threads=1).d
    others = emd2_loop(first, second, table, weights), emd_c_loop(given).reshape(n, n, -1).transpose(2, 0, 1)
    total = np.array([[x.total + y.total for y in second] for x in first])
    return Row(
        kind=kind,
        n_layers=n_layers,
        n_pairs=n**2,
        ours=micro["ours"],
        ours_from_objects=micro["objects"],
        emd2=micro["emd2"],
        emd_c=micro["emd_c"],
        emd2_ratio=_median_ratio(times["emd2"], times["ours"]),
        emd_c_ratio=_median_ratio(times["emd_c"], times["ours"]),
        one_thread=median(one),
        two_threads=median(two),
        threads_ratio=_median_ratio(one, two),
        largest_difference=float(max(np.max(np.abs(other - ours) / total) for other in others)),
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
            found.append(
                1e6 * seconds_of(lambda t=threads: otmann.cross(packed, packed, threads=t), time.perf_counter) / n**2  # type: ignore[misc]
            )
    return times[1], times[2]


def _median_ratio(numerator: Sequence[float], denominator: Sequence[float]) -> float:
    return median(x / y for x, y in zip(numerator, denominator, strict=True))


def step_seconds(kind: str, repetitions: int) -> float:
    """CPU seconds from Architecture objects to arrays: 1,000 new networks against 300 known ones, 16 layers."""
    new, known = networks(kind, 16, 1000, seed=4), networks(kind, 16, 300, seed=5)
    otmann, seconds = Otmann(), []
    for _ in range(repetitions):
        a, b = fresh(new), fresh(known)
        seconds.append(_once(lambda a=a, b=b: otmann.cross(a, b)))  # type: ignore[misc]
    return median(seconds)


def run(repetitions: int) -> tuple[dict[str, Any], list[Bar]]:
    """Measure, print the table, and return the raw numbers and the bars."""
    otmann = Otmann()
    for kind in KINDS:  # compiled before anything is timed
        otmann.cross(networks(kind, 8, 2, seed=0), networks(kind, 8, 2, seed=0), threads=2)
    print(f"microseconds per pair, structural weights {', '.join(f'{nu:g}' for nu in otmann.structural_weights)}")
    print(f"{'':14}{'ours':>9}{'from':>10}{'emd2':>10}{'emd_c':>9}{'emd2 /':>9}{'emd_c /':>9}", end="")
    print(f"{'one':>9}{'two':>9}{'one /':>7}{'largest':>10}")
    print(f"{'layers':14}{'packed':>9}{'objects':>10}{'loop':>10}{'alone':>9}{'ours':>9}{'ours':>9}", end="")
    print(f"{'thread':>9}{'threads':>9}{'two':>7}{'differ.':>10}")
    rows = []
    for kind in KINDS:
        for n_layers in SIZES:
            row = compare(kind, n_layers, repetitions)
            rows.append(row)
            print(f"{row.kind:9}{row.n_layers:5}{row.ours:9.2f}{row.ours_from_objects:10.2f}{row.emd2:10.1f}", end="")
            print(f"{row.emd_c:9.1f}{row.emd2_ratio:9.0f}{row.emd_c_ratio:9.1f}{row.one_thread:9.2f}", end="")
            print(f"{row.two_threads:9.2f}{row.threads_ratio:7.2f}{row.largest_difference:10.1e}", flush=True)
    steps = {kind: step_seconds(kind, min(repetitions, 3)) for kind in KINDS}
    print()
    return {"rows": [asdict(row) for row in rows], "step_seconds": steps}, _bars(rows, steps)


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

"""What believing costs: one sweep of the slice sampler, the mode, a whole fit, and 500 predictions, in CPU seconds.

``python -m benchmarks.gp``. Points are random vectors with four city-block distances and four normalised ones, so the
figures are about linear algebra alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from benchmarks.bars import Bar
from nasbot.gp import Belief, BeliefOptions, Chain, Inference, Prior, Rows, fit_belief
from nasbot.gp.hyperparameters import FloatArray
from nasbot.gp.likelihood import LogPosterior
from nasbot.gp.rows import RowScaling
from nasbot.gp.slice_sampler import slice_walk
from nasbot.gp.warping import warp_values

SIZES = (20, 50, 100, 150, 300, 500)
SWEEP_SECONDS = {20: 0.002, 100: 0.012, 500: 0.3}
FIT_SECONDS = {150: 0.25, 500: 1.0}
BUSY_FACTOR = 4.0  # on a machine that others use, CPU seconds stretch as caches and memory are shared


def problem(n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distances d and d_bar (4, n, n) and values (n,) of n random points."""
    rng = np.random.default_rng(n)
    x = rng.random((n, 8))
    gaps = np.abs(x[:, None, :] - x[None, :, :])
    d = np.stack([gaps[:, :, :k].sum(axis=2) for k in (3, 4, 6, 8)])
    size = 5.0 + x.sum(axis=1)
    values = np.sin(4.0 * x[:, 0]) + 2.0 * x[:, 1] + x[:, 5] * x[:, 6] + 0.1 * rng.standard_normal(n)
    return d, d / (size[:, None] + size[None, :]), values


def cpu_seconds(action: Callable[[], object], repetitions: int) -> float:
    """Median CPU seconds of an action, after one unmeasured run."""
    action()
    seconds = []
    for _ in range(repetitions):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return median(seconds)


def measure(n: int, repetitions: int) -> dict[str, float]:
    """All figures at n observations."""
    d, d_bar, values = problem(n)
    rows = Rows.of(d, d_bar)
    form = rows.form(1.0, 1.0)
    target = LogPosterior.of(RowScaling.of(rows, form).powered(rows), warp_values(values).standardised, form, Prior())

    def fit(inference: Inference, chain: Chain | None = None) -> Belief:
        options = BeliefOptions(inference=inference)
        return fit_belief(rows, values, options=options, chain=chain, rng=np.random.default_rng(1))

    def sweep() -> object:
        rng = np.random.default_rng(1)
        return slice_walk(target, target.prior_mean, target.prior_spread, n_draws=2, rng=rng)

    belief, mode = fit(Inference.SAMPLE), fit(Inference.MAP)
    cross = np.resize(d.transpose(2, 0, 1), (500, 4, n)).transpose(1, 2, 0)
    cross_bar = np.resize(d_bar.transpose(2, 0, 1), (500, 4, n)).transpose(1, 2, 0)
    return {
        "sweep": cpu_seconds(sweep, repetitions) / 2.0,
        "mode": cpu_seconds(lambda: fit(Inference.MAP), repetitions),
        "mode, warm": cpu_seconds(lambda: fit(Inference.MAP, mode.chain), repetitions),
        "fit": cpu_seconds(lambda: fit(Inference.SAMPLE), repetitions),
        "fit, warm": cpu_seconds(lambda: fit(Inference.SAMPLE, belief.chain), repetitions),
        "predict 500": cpu_seconds(lambda: belief.predict(Rows.of(cross, cross_bar)), repetitions),
        "samples": float(len(belief.hyperparameters)),
    }


def run(repetitions: int) -> tuple[dict[str, Any], list[Bar]]:
    """Measure, print, and return the raw numbers and the bars."""
    figures = {n: measure(n, repetitions) for n in SIZES}
    names = list(figures[SIZES[0]])
    print("CPU milliseconds".ljust(18) + "".join(f"{name:>13}" for name in names))
    for n, row in figures.items():
        cells = [row[name] if name == "samples" else 1e3 * row[name] for name in names]
        print(f"n = {n}".ljust(18) + "".join(f"{cell:13.1f}" for cell in cells))
    bars = [_bar(f"gp: one sweep at n = {n}", figures[n]["sweep"], limit) for n, limit in SWEEP_SECONDS.items()]
    bars += [_bar(f"gp: a fit from scratch at n = {n}", figures[n]["fit"], limit) for n, limit in FIT_SECONDS.items()]
    return {str(n): row for n, row in figures.items()}, bars


def _bar(name: str, seconds: float, limit: float) -> Bar:
    return Bar(name, seconds, limit, gate=BUSY_FACTOR * limit, at_least=False, unit="s")


if __name__ == "__main__":
    print(*run(repetitions=5)[1], sep="\n")

"""Steps per second of training, against the loop that everybody writes, on the same networks in one run.

``python -m benchmarks.training`` measures steps, and one thread in each of two workers against two threads in one.
``python -m benchmarks.training --signal`` measures how well the objective tells architectures apart: the variance
between architectures over that between seeds, on three data sets.

The plain loop is a DataLoader over a TensorDataset, the same module in the usual memory format, and torch's AdamW.
Both take turns, and CPU seconds are compared, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.bars import Bar
from nasbot.architecture import Architecture, Layer, blocked_cnn, blocked_mlp, chain, residual_cnn, vgg_like
from nasbot.data.dataset import Dataset, named_dataset
from nasbot.testing.networks import random_architecture
from nasbot.training.loop import train
from nasbot.training.losses import loss_of
from nasbot.training.module import build
from nasbot.training.recipes import FAST
from nasbot.training.steps import batches_of, stepper

N_SAMPLES = {"mlp": 8192, "cnn": 1024}
FEATURES, IMAGE, N_CLASSES = 20, (3, 16, 16), 10
BATCH = {"mlp": 256, "cnn": 64}
STEPS = {"mlp": 25, "cnn": 3}  # in one turn
GATE = 0.7  # of each bar: what a machine that others use still reaches
STEP_SIZE = 1e-4

Turn = Callable[[int], None]  # takes this many steps


def _narrowed(arch: Architecture, by: int) -> Architecture:
    return arch.with_units({u: max(8, layer.units // by) for u, layer in enumerate(arch.layers) if layer.units})


def networks() -> dict[str, list[Architecture]]:
    """The networks of each size that the bars are about."""
    return {
        "small MLPs": [
            chain("mlp-reg", [Layer("relu", 16)] * 3),
            chain("mlp-reg", [Layer("tanh", 64), Layer("relu", 32), Layer("elu", 16)]),
            blocked_mlp("mlp-class", 3, 2, units=(64, 32, 16)),
        ],
        "pool-sized MLPs": [
            blocked_mlp("mlp-reg", 3, 2),
            blocked_mlp("mlp-reg", 3, 4),
            _narrowed(random_architecture("mlp-class", rng=np.random.default_rng(0), n_layers=12), 4),
        ],
        "512-wide MLPs": [
            chain("mlp-reg", [Layer("relu", 512)] * 4),
            chain("mlp-class", [Layer("tanh", 512), Layer("relu", 512), Layer("elu", 512)]),
        ],
        "CNNs": [
            _narrowed(vgg_like(1), 4),
            _narrowed(blocked_cnn(3, 3), 2),
            _narrowed(residual_cnn(3, 2), 4),
            _narrowed(random_architecture("cnn", rng=np.random.default_rng(5), n_layers=12), 8),
        ],
    }


BARS = {"small MLPs": 2.5, "pool-sized MLPs": 1.3, "512-wide MLPs": 1.1, "CNNs": 1.2}


# -- two loops ---------------------------------------------------------------------------------------------------------


def samples(arch: Architecture) -> tuple[Tensor, Tensor]:
    """Random inputs and targets that fit the network."""
    rng = np.random.default_rng(0)
    shape = IMAGE if arch.kind == "cnn" else (FEATURES,)
    n = N_SAMPLES["cnn" if arch.kind == "cnn" else "mlp"]
    X = torch.from_numpy(rng.standard_normal((n, *shape), dtype=np.float32))
    if arch.kind == "mlp-reg":
        return X, torch.from_numpy(rng.standard_normal((n, 1), dtype=np.float32))
    return X, torch.from_numpy(rng.integers(0, N_CLASSES, n))


def _size(arch: Architecture) -> str:
    return "cnn" if arch.kind == "cnn" else "mlp"


def _network(arch: Architecture, X: Tensor) -> Any:
    n_outputs = 1 if arch.kind == "mlp-reg" else N_CLASSES
    return build(arch, input_shape=tuple(X.shape[1:]), n_outputs=n_outputs, seed=0)


def plain_loop(arch: Architecture) -> Turn:
    """What everybody writes."""
    X, y = samples(arch)
    network = _network(arch, X).train()
    optimiser = torch.optim.AdamW(network.parameters(), lr=STEP_SIZE)
    # Its own generator: the shuffling of a benchmark need not touch the global one.
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(TensorDataset(X, y), BATCH[_size(arch)], shuffle=True, drop_last=True, generator=generator)
    batches = _endless(loader)

    def turn(n_steps: int) -> None:
        for _ in range(n_steps):
            xb, yb = next(batches)
            optimiser.zero_grad()
            loss = loss_of(network(xb), yb, classifies=network.classifies)
            loss.backward()  # type: ignore[no-untyped-call]  # so it is in torch
            optimiser.step()
            loss.item()

    return turn


def _endless(loader: DataLoader[tuple[Tensor, ...]]) -> Iterator[list[Tensor]]:
    while True:
        yield from loader


def our_loop(arch: Architecture) -> Turn:
    """What ``nasbot.training.loop`` does between two looks."""
    X, y = samples(arch)
    network = _network(arch, X).train()
    if arch.kind == "cnn":
        network.to(memory_format=torch.channels_last)
    size = BATCH[_size(arch)]
    take_step = stepper(network, FAST.settings(network.input_shape), size, rng=np.random.default_rng(0))
    batches = batches_of((X, y), size, rng=np.random.default_rng(0))

    def turn(n_steps: int) -> None:
        for _ in range(n_steps):
            xb, yb = next(batches)
            take_step(xb, yb, STEP_SIZE)

    return turn


def steps_per_second(arch: Architecture, repetitions: int) -> dict[str, float]:
    """CPU steps per second of both loops, turn by turn, and the median of the turns' ratios."""
    loops = {"plain": plain_loop(arch), "ours": our_loop(arch)}
    n_steps = STEPS[_size(arch)]
    for turn in loops.values():
        turn(n_steps)
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(repetitions):
        for name, turn in loops.items():
            start = time.process_time()
            turn(n_steps)
            seconds[name].append((time.process_time() - start) / n_steps)
    ratio = median(plain / ours for plain, ours in zip(seconds["plain"], seconds["ours"], strict=True))
    return {**{name: 1.0 / median(times) for name, times in seconds.items()}, "ratio": ratio}


# -- workers and threads -----------------------------------------------------------------------------------------------

WORKER = "--worker"
WORKER_SECONDS = 3.0


def worker(threads: int) -> None:
    """Wait for a line, step for some seconds, print the steps per second."""
    torch.set_num_threads(threads)
    turn = our_loop(blocked_mlp("mlp-reg", 3, 2))
    turn(20)
    print("ready", flush=True)
    sys.stdin.readline()
    start, n_steps = time.monotonic(), 0
    while time.monotonic() - start < WORKER_SECONDS:
        turn(10)
        n_steps += 10
    print(n_steps / (time.monotonic() - start), flush=True)


def together(n_workers: int, threads: int) -> float:
    """Steps per second of so many workers at once, each with so many threads, by the wall."""
    command = [sys.executable, "-m", "benchmarks.training", WORKER, str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(n_workers)
    ]
    for process in workers:
        assert process.stdout is not None
        process.stdout.readline()
    for process in workers:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in workers)


# -- signal ------------------------------------------------------------------------------------------------------------

SIGNAL_SETS = ("diabetes", "digits", "protein", "digits-images")  # protein where the data folder is


def signal(data: Dataset, n_architectures: int, n_seeds: int) -> dict[str, float]:
    """Variance of the objective between architectures over that between seeds, of the loss and of its logarithm."""
    losses = np.empty((n_architectures, n_seeds))
    recipe = FAST.changed(max_steps=400)
    for i in range(n_architectures):
        rng = np.random.default_rng(i)
        arch = _narrowed(random_architecture(data.kind, rng=rng, n_layers=int(rng.integers(5, 16))), 8)
        for seed in range(n_seeds):
            losses[i, seed] = train(arch, data, recipe, seed=seed).loss
    return {"loss": variance_ratio(losses), "log loss": variance_ratio(np.log(losses))}


def variance_ratio(values: np.ndarray) -> float:
    """Between rows over within rows; the part of the rows' spread that is owed to the columns is taken out."""
    n_seeds = values.shape[1]
    within = float(values.var(axis=1, ddof=1).mean())
    between = float(values.mean(axis=1).var(ddof=1)) - within / n_seeds
    return float(max(between, 0.0) / within)


def report_signal(n_architectures: int, n_seeds: int, folder: Path | None) -> None:
    """Measure and print the signal on every data set that is there."""
    print(f"{n_architectures} random architectures, {n_seeds} seeds: variance between architectures / between seeds")
    for name in SIGNAL_SETS:
        if name == "protein" and folder is None:
            print(f"{name:16} not measured: no data folder (--data)")
            continue
        data = named_dataset(name, folder=folder if name == "protein" else None)
        start = time.process_time()
        found = signal(data, n_architectures, n_seeds)
        cost = (time.process_time() - start) / (n_architectures * n_seeds)
        figures = ", ".join(f"{what} {value:.2f}" for what, value in found.items())
        print(f"{name:16} {figures}   ({cost:.1f} CPU s a training)", flush=True)


# -- all ---------------------------------------------------------------------------------------------------------------


def run(repetitions: int) -> tuple[dict[str, Any], list[Bar]]:
    """Measure steps, print, and return the raw numbers and the bars."""
    torch.set_num_threads(1)
    figures: dict[str, Any] = {}
    bars = []
    print(f"{'training':38}{'plain loop':>12}{'ours':>12}   CPU steps per second")
    for size, archs in networks().items():
        rows = [steps_per_second(arch, repetitions) for arch in archs]
        for arch, row in zip(archs, rows, strict=True):
            name = f"{size}: {arch.kind}, {len(arch.layers)} layers"
            print(f"{name:38}{row['plain']:12.1f}{row['ours']:12.1f}   {row['ratio']:.2f} times")
        figures[size] = rows
        bars.append(
            Bar(
                f"training: {size}, times a plain loop",
                median(row["ratio"] for row in rows),
                BARS[size],
                GATE * BARS[size],
            )
        )
    return figures, bars


def run_workers() -> tuple[dict[str, float], list[Bar]]:
    """One thread in each of two workers against two threads in one: needs two cores that nobody else uses."""
    figures = {"two workers of one thread": together(2, 1), "one worker of two threads": together(1, 2)}
    for name, rate in figures.items():
        print(f"training: {name:34}{rate:12.1f}   steps per second")
    ratio = figures["two workers of one thread"] / figures["one worker of two threads"]
    return figures, [Bar("training: two workers of one thread over one of two", ratio, 1.0)]


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument(WORKER, type=int, metavar="THREADS", help=argparse.SUPPRESS)
    parser.add_argument("--signal", action="store_true", help="measure the signal instead of the speed")
    parser.add_argument("--architectures", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--data", type=Path, default=None, metavar="FOLDER", help="where the paper's data sets are")
    options = parser.parse_args()
    if options.worker is not None:
        worker(options.worker)
    elif options.signal:
        torch.set_num_threads(1)
        report_signal(options.architectures, options.seeds, options.data)
    else:
        bars = run(options.repetitions)[1] + run_workers()[1]
        print(*bars, sep="\n")


if __name__ == "__main__":
    main()

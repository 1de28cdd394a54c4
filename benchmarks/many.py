"""Search many networks with a cheap objective: ``python -m benchmarks.many --function f1 --evaluations 100000``.

    f1, f2, f3     synthetic functions of a network
    nasbench201    accuracies of all 15,625 cells, from ``--table``: searched until none is left, and none twice
    proxy          real networks for 8 x 8 images of digits, built but not trained: the saliency of their first weights
                   (the sum of |weight x gradient| for one batch of 32); ``--retrain`` of the best are trained then

Workers ask together, ``--batch`` at a time, and are told together. The study is kept where ``--study`` says and goes on
from there when the command is given again; the best so far is printed as it grows, and the last line is JSON. It ends
early, with ``exhausted`` saying why, where no network is left.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.nasbench201 import METHODS as OF_CELLS
from benchmarks.nasbench201 import Table, read_table
from nasbot.architecture import Architecture, SearchSpace
from nasbot.errors import ExhaustedError
from nasbot.gp import BeliefOptions
from nasbot.gp.warping import Warp
from nasbot.searchers import NASBOT, EvolutionSearch, RandomSearch
from nasbot.searchers.base import Searcher
from nasbot.study import Study
from nasbot.synthetic import SYNTHETIC
from nasbot.trial import Outcome, Trial, TrialState

if TYPE_CHECKING:
    from nasbot.data.dataset import Dataset

KINDS = {"f1": "cnn", "f2": "mlp-reg", "f3": "mlp-reg"}
CELLS, PROXY = "nasbench201", "proxy"
METHODS = ("nasbot", "evolution", "random")
TIMES_TOLD = 20  # lines of progress
N_IMAGES = 32  # of the batch that a proxy sees
Objective = Callable[[Architecture], "float | Outcome"]


def main() -> None:
    """Search, and print how the best grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    functions = (*sorted(KINDS), CELLS, PROXY)
    parser.add_argument("--function", choices=functions, default="f1", help="What is maximised.")
    parser.add_argument("--method", choices=METHODS, default="nasbot", help="Searcher.")
    parser.add_argument("--evaluations", type=int, default=1000, help="Networks in all.")
    parser.add_argument("--batch", type=int, default=100, help="Workers that ask at once.")
    parser.add_argument("--seed", type=int, default=0, help="Random seed of the searcher.")
    parser.add_argument("--warp", choices=[*Warp], default=Warp.BEST, help="Of values, by NASBOT; not of nasbench201.")
    parser.add_argument("--study", type=Path, help="File of the study; in memory if not given.")
    parser.add_argument("--table", type=Path, help="nasbench201: the npz file of accuracies.")
    parser.add_argument("--dataset", default="cifar100", help="nasbench201: the data set of the table.")
    parser.add_argument("--retrain", type=int, default=5, help="proxy: how many of the best, and of all, are trained.")
    options = vars(parser.parse_args())
    if options["function"] == CELLS and options["table"] is None:
        parser.error("--function nasbench201 needs --table FILE")
    print(json.dumps(searched(**options)))


def searched(
    function: str,
    method: str,
    evaluations: int,
    batch: int,
    seed: int,
    study: Path | None = None,
    table: Path | None = None,
    dataset: str = "cifar100",
    retrain: int = 0,
    warp: str = Warp.BEST,
) -> dict[str, object]:
    """The best value after each batch of one search, and what it cost."""
    cells = None if table is None else read_table(table, dataset)
    objective, searcher = _problem(function, method, seed, cells, Warp(warp))
    begun = time.process_time()
    opened = Study.in_memory(searcher, seed=seed) if study is None else Study.open(study, searcher, seed=seed)
    curve: list[tuple[int, float]] = []
    exhausted = None
    with opened:
        while exhausted is None and (left := evaluations - len(opened.history.finished)) > 0:
            asked, exhausted = _asked(opened, min(batch, left))
            for trial in asked:
                opened.tell(trial, objective(trial.arch))
            curve.append((len(opened.history.finished), float(opened.best_value or 0.0)))
            if len(curve) % max(1, evaluations // batch // TIMES_TOLD) == 0:
                print(f"{curve[-1][0]:7d} networks, best {curve[-1][1]:.6g}", flush=True)
        history = opened.history
    seconds = time.process_time() - begun
    figures: dict[str, object] = {
        "function": function,
        "method": method,
        "warp": warp,
        "seed": seed,
        "evaluations": len(history.finished),
        "different": len({trial.arch.fingerprint for trial in history.finished}),
        "batch": batch,
        "best": None if history.best is None else history.best.value,
        "best_trial": None if history.best is None else history.best.number,
        "exhausted": exhausted,
        "cpu_seconds": round(seconds, 1),
        "curve": curve,
    }
    if function == PROXY and retrain:
        figures["accuracy"] = retrained([trial.arch for trial in history.ranked], retrain, seed)
    return figures


def _asked(study: Study, n: int) -> tuple[list[Trial], str | None]:
    """What to evaluate next; where no network is left, those asked for before that was found, and the reason."""
    try:
        return study.ask(n), None
    except ExhaustedError as error:
        return [trial for trial in study.history.pending if trial.state is TrialState.RUNNING], str(error)


def _problem(function: str, method: str, seed: int, table: Table | None, warp: Warp) -> tuple[Objective, Searcher]:
    if table is not None and function == CELLS:
        return table.outcome, OF_CELLS[method](table, table.pool(seed))
    if function == PROXY:
        data = digits()
        shape, classes = data.input_shape, data.n_outputs
        space = SearchSpace("cnn", input_shape=shape, n_outputs=classes, max_flops=2e7, max_parameters=3e6)
        return partial(saliency, data=data), _searcher(method, space, warp)
    return (lambda arch: float(SYNTHETIC[function](arch))), _searcher(method, SearchSpace(KINDS[function]), warp)


def _searcher(method: str, space: SearchSpace, warp: Warp) -> Searcher:
    if method == "nasbot":
        return NASBOT(space=space, belief=BeliefOptions(warp=warp))
    return EvolutionSearch(space=space) if method == "evolution" else RandomSearch(space=space)


# -- real networks -----------------------------------------------------------------------------------------------------


def digits() -> Dataset:
    """1,797 images of 8 x 8 pixels in ten classes, which scikit-learn has."""
    from sklearn.datasets import load_digits

    from nasbot.data.dataset import dataset_of

    found = load_digits()
    return dataset_of(found.images.astype(np.float32), found.target, task="classification", name="digits")


def saliency(arch: Architecture, data: Dataset) -> float:
    """The logarithm of the sum of |weight x gradient| for one batch, at the weights that training would begin with."""
    import torch
    from torch.nn import functional

    from nasbot.training.module import build

    network = build(arch, input_shape=data.input_shape, n_outputs=data.n_outputs, seed=0)
    network.train()
    x, y = (torch.from_numpy(np.array(part[:N_IMAGES])) for part in (data.train.X, data.train.y))
    parameters = [p for p in network.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(functional.nll_loss(network(x), y), parameters)
    total = math.fsum(float((p.detach() * g).abs().sum()) for p, g in zip(parameters, gradients, strict=True))
    return math.log(max(total, 1e-30))


def retrained(ranked: list[Architecture], n: int, seed: int) -> dict[str, list[float]]:
    """Validation accuracies after training, of the n best by the proxy and of n drawn from all that were searched."""
    from nasbot.training.loop import train

    data = digits()
    rng = np.random.default_rng(seed)
    drawn = [ranked[i] for i in rng.choice(len(ranked), min(n, len(ranked)), replace=False)]
    return {
        name: [round(train(arch, data, seed=seed).metrics["valid_accuracy"], 4) for arch in archs]
        for name, archs in (("best", ranked[:n]), ("drawn", drawn))
    }


if __name__ == "__main__":
    main()

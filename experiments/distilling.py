"""What networks gain that learn from their ensemble: plain ones, refitted on all rows with several shares of its word.

    python -m experiments.distilling --sets protein,naval,indoor,news-log,blog --seeds 101

Six plain networks are trained on the training rows; the best four by validation are the ensemble. Each is then refitted
as the end of a search would, with the truth alone and with parts of the ensemble's word, and for twice as long. One
line of JSON for each share and length goes to docs/results/records/distilling.jsonl, and a table is printed: test mean
squared error of the standardised target, or log-loss. Lengths are in steps, so a busy machine changes nothing.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.runs import RunFile
from experiments.model import data_of
from nasbot.automl.baselines import plain_networks
from nasbot.data.dataset import Dataset, Part
from nasbot.training.distilling import Voice, blended, said_together, share_of, truth_of
from nasbot.training.folds import joined
from nasbot.training.loop import network_of, train
from nasbot.training.module import Network
from nasbot.training.objective import computing_threads
from nasbot.training.predictions import predictions
from nasbot.training.recipes import FAST
from nasbot.training.refitting import rows_ratio, with_all_rows
from nasbot.training.steps import tensor_of

RECORDS = Path(__file__).parent.parent / "docs" / "results" / "records" / "distilling.jsonl"
TRIED = ((0.0, 1), (0.3, 1), (0.5, 1), (0.7, 1), (0.0, 2), (0.5, 2))  # the ensemble's share, and times as long
NETWORKS, MEMBERS = 6, 4
STEPS = {"news-log": 600, "blog": 1000, "news-median": 400, "digits": 1000, "indoor-floor": 1500}
DEFAULT_STEPS = 3000


@dataclass(frozen=True)
class Task:
    """One training: which plain network, of what, for how long."""

    name: str
    seed: int
    folder: str
    network: int
    steps: int
    stop_after: float | None = None
    targets: np.ndarray | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a training: weights, validation loss, and the share of it after which it was best."""

    weights: dict[str, np.ndarray]
    loss: float
    stop_after: float


def trained(task: Task) -> Outcome:
    """In a process of its own."""
    arch, data = _network(task)
    learned = data if task.targets is None else with_all_rows(data)
    with computing_threads(1):
        recipe = FAST.changed(n_steps=task.steps)
        seed = task.network + (0 if task.targets is None else 50)
        done = train(arch, learned, recipe, seed=seed, stop_after=task.stop_after, targets=task.targets)
    weights = {name: tensor.numpy() for name, tensor in done.network.state_dict().items()}
    return Outcome(weights, done.loss, done.best_step / done.steps)


def with_weights(task: Task, outcome: Outcome) -> tuple[Network, Dataset]:
    """The network that came of it, and the data as it wants them."""
    arch, data = _network(task)
    network = network_of(arch, data, FAST.settings(data.input_shape))
    network.load_state_dict({name: torch.from_numpy(weights) for name, weights in outcome.weights.items()})
    return network, data


def said(network: Network, part: Part) -> np.ndarray:
    """Numbers, or logarithms of probabilities."""
    return predictions(network, tensor_of(part.X)).numpy()


def error(said_of: np.ndarray, part: Part, data: Dataset) -> float:
    """Mean squared error, or log-loss."""
    if data.is_classification:
        return float(-np.take_along_axis(said_of, part.y[:, None], axis=1).mean())
    return float(np.square(said_of - part.y).mean())


def run(sets: Sequence[str], seeds: Sequence[int], folder: str) -> Iterator[dict[str, Any]]:
    """The records, those of one set and seed together."""
    with get_context("spawn").Pool(2) as workers:
        for name in sets:
            for seed in seeds:
                steps = STEPS.get(name, DEFAULT_STEPS)
                tasks = [Task(name, seed, folder, i, steps) for i in range(NETWORKS)]
                found = list(zip(tasks, workers.map(trained, tasks), strict=True))
                yield from _refitted(sorted(found, key=lambda pair: pair[1].loss)[:MEMBERS], workers)


def _refitted(members: Sequence[tuple[Task, Outcome]], workers: Any) -> Iterator[dict[str, Any]]:
    first = members[0][0]
    data = data_of(first.name, first.folder, first.seed)
    voices = [Voice(*with_weights(*member), 1 / MEMBERS) for member in members]
    share = _share(data, voices)
    truth, together = truth_of(data, joined(data.train, data.valid)), said_together(data, voices)
    for part, longer in TRIED:
        targets, steps = blended(truth, together, part), round(first.steps * rows_ratio(data) * longer)
        tasks = [replace(task, steps=steps, stop_after=one.stop_after, targets=targets) for task, one in members]
        refits = [with_weights(task, one) for task, one in zip(tasks, workers.map(trained, tasks), strict=True)]
        of_test = [said(network, prepared.test) for network, prepared in refits]
        errors = [error(each, data.test, data) for each in of_test]
        yield {
            "set": first.name,
            "seed": first.seed,
            "steps": first.steps,
            "share": part,
            "longer": longer,
            "single": float(np.mean(errors)),
            "best": errors[0],
            "ensemble": error(_mean(of_test, data), data.test, data),
            "share_of": share,
            "stops": [round(one.stop_after, 3) for _, one in members],
        }


def _share(data: Dataset, voices: Sequence[Voice]) -> float:
    """What a search would take."""
    of_valid = [said(voice.network, voice.data.valid) for voice in voices]
    truth = np.eye(data.n_outputs)[data.valid.y] if data.is_classification else data.valid.y
    numbers = [np.exp(each) if data.is_classification else each for each in of_valid]
    alone = float(np.mean([np.square(each - truth).mean() for each in numbers]))
    return share_of(float(np.square(np.mean(numbers, axis=0) - truth).mean()), alone)


def _mean(parts: Sequence[np.ndarray], data: Dataset) -> np.ndarray:
    if data.is_classification:
        return np.asarray(np.log(np.mean([np.exp(part.astype(np.float64)) for part in parts], axis=0)))
    return np.asarray(np.mean(parts, axis=0))


def _network(task: Task) -> tuple[Any, Dataset]:
    data = data_of(task.name, task.folder, task.seed)
    arch, preparation = plain_networks(data.kind, len(data.train))[task.network]
    return arch, data.prepared_as(preparation)


def table(records: Sequence[dict[str, Any]]) -> str:
    """A row for each set and seed, a column for each share and length: single networks / their ensemble."""
    rows: dict[tuple[str, int], dict[tuple[float, int], str]] = {}
    shares: dict[tuple[str, int], float] = {}
    for r in records:
        rows.setdefault((r["set"], r["seed"]), {})[r["share"], r["longer"]] = f"{r['single']:.4g} / {r['ensemble']:.4g}"
        shares[r["set"], r["seed"]] = r["share_of"]
    heads = [f"{share:g}" + (f", {longer} times as long" if longer > 1 else "") for share, longer in TRIED]
    lines = [f"| set, seed | share taken | {' | '.join(heads)} |", "|---" * (len(heads) + 2) + "|"]
    for key, cells in rows.items():
        of_each = " | ".join(cells.get(tried, "") for tried in TRIED)
        lines.append(f"| {key[0]}, {key[1]} | {shares[key]:.2f} | {of_each} |")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="protein,naval,indoor,news-log,blog")
    parser.add_argument("--seeds", default="101")
    parser.add_argument("--folder", default=os.environ.get("NASBOT_SHARED", "../shared") + "/data")
    parser.add_argument("--records", default=str(RECORDS), help="where records are appended")
    given = parser.parse_args()
    made = run(given.sets.split(","), [int(seed) for seed in given.seeds.split(",")], given.folder)
    print(table(list(RunFile(Path(given.records)).keep(made))))


if __name__ == "__main__":
    main()

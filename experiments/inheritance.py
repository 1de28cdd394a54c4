"""Does a child learn faster from its parent's weights? Children of plain networks, from scratch and inherited.

    python -m experiments.inheritance train --sets protein,naval,indoor,news-log,blog --seeds 100
    python -m experiments.inheritance table

``inherit`` gives a child the weights of its parent. The optimal transport plan of the distance says which layer of the
child is which of the parent; layers that are matched to none begin as the identity where their activation allows it,
wider ones with copies of units, and copies get a little noise, lest they stay alike.

Parents are plain networks, trained for a full training of the set. Children are made by our own modifiers and trained
for a third of it and all of it from scratch, and inherited for a ninth and a third; the control is the parent itself,
trained for another third. One line of JSON for each child goes to docs/results/records/inheritance.jsonl, without what
they predict, which stays in ``--predictions``. The table has their errors, and what a search would make of them: the
parents and some children from scratch, against the parents and three times as many inherited ones, which is as many
steps. Lengths are in steps, so a busy machine changes nothing.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from benchmarks.runs import RunFile
from experiments.model import data_of
from nasbot._rng import Role, stream
from nasbot.architecture import Architecture
from nasbot.architecture.labels import Role as LayerRole
from nasbot.automl.baselines import plain_networks
from nasbot.automl.ensemble import select
from nasbot.automl.plan import space_for
from nasbot.data.dataset import Dataset
from nasbot.evolution import MLP_MODIFIERS, MutationOperator
from nasbot.evolution.modifier import Rejected
from nasbot.otmann.matching import explain
from nasbot.training.loop import Trained, train
from nasbot.training.module import Network, build
from nasbot.training.objective import computing_threads
from nasbot.training.operations import Dense
from nasbot.training.predictions import predictions
from nasbot.training.recipes import FAST
from nasbot.training.steps import tensor_of

RECORDS = Path(__file__).parent.parent / "docs" / "results" / "records" / "inheritance.jsonl"
STEPS = {"protein": 2400, "naval": 2700, "indoor": 1500, "news-log": 450, "blog": 1800}  # of a full training
PARENTS, CHILDREN = 3, 2  # of each
NOISE = 0.01  # of the spread of a layer's weights
IDENTITIES = ("relu", "crelu", "leaky-relu", "elu")  # activations that leave alone what they have emitted before
LESS = 3  # times fewer steps of inherited children in a search
SLOWER = 0.3  # the learning rate of some inherited trainings, as a share of the usual one

Source = tuple[int, int]  # a layer of the parent and a channel that it emits


# -- weights -----------------------------------------------------------------------------------------------------------


def matched_layers(parent: Architecture, child: Architecture) -> dict[int, int]:
    """For layers of the child the layer of the parent that most of their mass is matched to; no layer twice."""
    mass = explain(parent, child).matched_mass
    pairs = zip(*linear_sum_assignment(mass, maximize=True), strict=True)
    return {int(v): int(u) for u, v in pairs if mass[u, v] > 0}


@torch.no_grad()
def inherit(parent: Network, child: Architecture, *, seed: int) -> Network:
    """The network of ``child`` with the weights of ``parent`` where it has them, else those of the seed.

    Where the child only has more layers, units or edges, and these are rectifiers, it predicts what the parent does but
    for the noise.
    """
    arch, rng = parent.arch, stream(seed, 0, Role.WEIGHTS)
    network = build(child, input_shape=parent.input_shape, n_outputs=parent.n_outputs, seed=seed)
    match = matched_layers(arch, child)
    sources: list[list[Source | None]] = [[(0, c) for c in range(parent.input_shape[0])]]
    for v, layer in enumerate(child.layers[1:-1], start=1):
        part, entering = _dense(network, v), [source for p in child.parents[v] for source in sources[p]]
        label = child.vocabulary.by_name[layer.label]
        is_decision = label.role is LayerRole.DECISION
        u = match.get(v)
        if is_decision and u not in arch.decision_layers:
            u = arch.decision_layers[0]
        if u is not None and (u in arch.decision_layers) == is_decision and 0 < u < len(arch.layers) - 1:
            kept = _units(parent, u, part.out_features, rng)
            _copy(_dense(parent, u), part, kept, _columns(parent, u, entering), rng)
            n_units, n_blocks = _dense(parent, u).out_features, _blocks(arch, u)
            blocks = [[(u, b * n_units + k) if b < n_blocks else None for k in kept] for b in range(_blocks(child, v))]
            sources.append([source for block in blocks for source in block])
        elif label.activation in IDENTITIES:
            n = min(part.out_features, len(entering))
            part.weight[:n] = torch.eye(n, len(entering))
            part.bias[:n] = 0.0
            sources.append([*entering[:n], *[None] * (_blocks(child, v) * part.out_features - n)])
        else:
            sources.append([None] * (_blocks(child, v) * part.out_features))
    return network


def _dense(network: Network, u: int) -> Dense:
    part = network.layers[str(u)]
    assert isinstance(part, Dense), "networks of dense layers only"
    return part


def _blocks(arch: Architecture, u: int) -> int:
    """How many channels a unit emits."""
    return arch.vocabulary.by_name[arch.layers[u].label].width_factor


def _units(parent: Network, u: int, n: int, rng: np.random.Generator) -> list[int]:
    """Which units of layer u the child has: all, and some twice; or those that others listen to most."""
    n_units = _dense(parent, u).out_features
    if u in parent.arch.decision_layers:
        return list(range(n))
    if n >= n_units:
        return [*range(n_units), *rng.integers(n_units, size=n - n_units).tolist()]
    heard = np.zeros(n_units)
    for w in parent.arch.children[u]:
        columns = _columns(parent, w, [(u, c) for c in range(n_units)])
        heard += _dense(parent, w).weight[:, columns].square().sum(dim=0).numpy()
    return sorted(np.argsort(-heard, kind="stable")[:n].tolist())


def _columns(parent: Network, u: int, entering: Sequence[Source | None]) -> list[int]:
    """For each of these channels its place among those that enter layer u of the parent; -1: it does not."""
    places: dict[Source | None, int] = {}
    for p in parent.arch.parents[u]:
        width = parent.input_shape[0] if p == 0 else _blocks(parent.arch, p) * _dense(parent, p).out_features
        for c in range(width):
            places[p, c] = len(places)
    return [places.get(source, -1) for source in entering]


def _copy(old: Dense, new: Dense, units: Sequence[int], columns: Sequence[int], rng: np.random.Generator) -> None:
    """What the parent's units say of these columns, shared between copies; 0 of columns it does not have."""
    times = Counter(columns)
    if set(times) == {-1}:  # nothing that it listened to is there: the weights of the seed
        return
    shares = torch.tensor([0.0 if c < 0 else 1.0 / times[c] for c in columns])
    weights: Tensor = old.weight[list(units)][:, [max(c, 0) for c in columns]] * shares
    noise = rng.normal(size=tuple(weights.shape)).astype(np.float32)
    new.weight.copy_(weights + NOISE * old.weight.std() * torch.from_numpy(noise))
    new.bias.copy_(old.bias[list(units)])


# -- trainings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One parent of one set, and its children."""

    name: str
    seed: int
    parent: int
    folder: str
    predictions: Path
    share: float = 1.0  # of the steps


def children_of(parent: Architecture, data: Dataset, task: Task) -> Iterator[tuple[Architecture, str]]:
    """Made as our searches make them, and how."""
    space = space_for(data.kind, data.input_shape, data.n_outputs, n_rows=len(data.train), batch_size=256)
    operator = MutationOperator(space, MLP_MODIFIERS)
    seen, rng = {parent}, stream(task.seed, task.parent, Role.EXPERIMENT)
    while len(seen) <= CHILDREN:
        made = operator(parent, rng=rng)
        if not isinstance(made, Rejected) and made.arch not in seen:
            seen.add(made.arch)
            yield made.arch, ", ".join(step.modifier for step in made.steps)


def trained(task: Task) -> list[dict[str, Any]]:
    """The records of a parent's children; in a process of its own."""
    data = data_of(task.name, task.folder, task.seed)
    arch, preparation = plain_networks(data.kind, len(data.train))[task.parent]
    data = data.prepared_as(preparation)
    full, records = round(task.share * STEPS[task.name]), []

    def learned(network: Network | Architecture, share: float, seed: int, rate: float = 1.0) -> Trained:
        settings = FAST.settings(data.input_shape)
        recipe = FAST.changed(
            n_steps=max(1, round(share * full)), patience=None, learning_rate=rate * settings.learning_rate
        )
        return train(network, data, recipe, seed=seed)

    with computing_threads(1):
        parent = learned(arch, 1, task.parent)
        _keep(task, f"parent-{task.parent}", parent.network, data)
        control = learned(_again(parent.network), 1 / 3, task.parent + 10)
        for i, (child, made) in enumerate(children_of(arch, data, task)):
            number = CHILDREN * task.parent + i
            seed = number + 20
            begun = inherit(parent.network, child, seed=seed)
            scratch, scratch_third = learned(child, 1, seed), learned(child, 1 / 3, seed)
            ninth = learned(_again(begun), 1 / 9, seed)
            third, slower = (learned(_again(begun), 1 / 3, seed, rate) for rate in (1.0, SLOWER))
            for kind, found in (("scratch", scratch), ("inherited", third), ("slower", slower)):
                _keep(task, f"{kind}-{number}", found.network, data)
            records.append(
                {
                    "set": task.name, "seed": task.seed, "steps": full, "parent_number": task.parent, "made": made,
                    "parent": parent.loss, "control": control.loss, "begun": _loss(begun, data),
                    "scratch_third": scratch_third.loss, "scratch": scratch.loss,
                    "inherited_ninth": ninth.loss, "inherited_third": third.loss, "slower_third": slower.loss,
                }
            )  # fmt: skip
    return records


def _again(network: Network) -> Network:
    """A copy to be trained."""
    other = build(network.arch, input_shape=network.input_shape, n_outputs=network.n_outputs, seed=0)
    other.load_state_dict(network.state_dict())
    return other


def _loss(network: Network, data: Dataset) -> float:
    return float(np.square(predictions(network, tensor_of(data.valid.X)).numpy() - data.valid.y).mean())


def _keep(task: Task, what: str, network: Network, data: Dataset) -> None:
    folder = task.predictions / f"{task.name}-{task.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    valid, test = (predictions(network, tensor_of(part.X)).numpy() for part in (data.valid, data.test))
    np.savez(folder / f"{what}.npz", valid=valid, test=test, valid_truth=data.valid.y, test_truth=data.test.y)


def run(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """The records, in the order of the tasks."""
    with get_context("spawn").Pool(2) as workers:
        for records in workers.imap(trained, tasks):
            yield from records


# -- what a search would make of it ------------------------------------------------------------------------------------


def models(folder: Path) -> dict[str, tuple[float, float]]:
    """Test errors of (best network, ensemble) by arm: all parents, and children from scratch or three times as many.

    Means over all choices of so many of the children. Empty where there are fewer than three.
    """
    said = {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}
    parents = [said[name] for name in sorted(said) if name.startswith("parent")]
    arms = {kind: [said[n] for n in sorted(said) if n.startswith(kind)] for kind in ("scratch", "inherited", "slower")}
    n = len(arms["scratch"]) // LESS
    found = {}
    for kind, children in arms.items() if n else ():
        chosen = combinations(children, n if kind == "scratch" else LESS * n)
        single, together = np.mean([_model([*parents, *some]) for some in chosen], axis=0)
        found[kind] = float(single), float(together)
    return found


def with_parents(folder: Path) -> dict[str, tuple[int, float, float, float]]:
    """By arm: children, their test error, that of the mean with their parent, and the correlation of the two errors."""
    errors = {}
    for path in folder.glob("*.npz"):
        said = np.load(path)
        errors[path.stem] = np.ravel(said["test"] - said["test_truth"])
    found = {}
    for kind in ("scratch", "inherited", "slower"):
        some = [name for name in sorted(errors) if name.startswith(kind)]
        both = [(errors[name], errors[f"parent-{int(name.rpartition('-')[2]) // CHILDREN}"]) for name in some]
        alone = [float(np.square(child).mean()) for child, _ in both]
        together = [float(np.square((child + parent) / 2).mean()) for child, parent in both]
        alike = [float(np.corrcoef(child, parent)[0, 1]) for child, parent in both]
        if both:
            found[kind] = len(both), float(np.mean(alone)), float(np.mean(together)), float(np.mean(alike))
    return found


def _model(members: Sequence[Mapping[str, np.ndarray]]) -> tuple[float, float]:
    truth, valid = members[0]["test_truth"], np.stack([one["valid"] for one in members])
    chosen = select(valid, members[0]["valid_truth"])
    best = members[int(np.argmin(np.square(valid - members[0]["valid_truth"]).mean(axis=(1, 2))))]
    together = sum(weight * members[i]["test"] for i, weight in zip(chosen.members, chosen.weights, strict=True))
    return float(np.square(best["test"] - truth).mean()), float(np.square(together - truth).mean())


def table(records: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Validation errors of children, means over those of a set; test errors with their parents, and at equal steps."""
    columns = (
        "parent", "control", "scratch_third", "scratch", "begun", "inherited_ninth", "inherited_third", "slower_third"
    )  # fmt: skip
    sets = list(dict.fromkeys((r["set"], r["seed"]) for r in records))
    lines = [f"| set, seed | children | {' | '.join(columns)} | inherited third below scratch |"]
    lines.append("|---" * (len(columns) + 3) + "|")
    for name, seed in sets:
        some = [r for r in records if (r["set"], r["seed"]) == (name, seed)]
        cells = [f"{np.mean([r[column] for r in some]):.4g}" for column in columns]
        below = sum(r["inherited_third"] < r["scratch"] for r in some)
        lines.append(f"| {name}, {seed} | {len(some)} | {' | '.join(cells)} | {below} of {len(some)} |")
    lines += ["", "| set, seed | arm | children | alone | with parent | correlation |", "|---" * 6 + "|"]
    for name, seed in sets:
        for arm, (n, alone, together, alike) in with_parents(folder / f"{name}-{seed}").items():
            lines.append(f"| {name}, {seed} | {arm} | {n} | {alone:.4g} | {together:.4g} | {alike:.3f} |")
    lines += ["", "| set, seed | arm | best network | ensemble |", "|---|---|---|---|"]
    for name, seed in sets:
        for arm, (one, many) in models(folder / f"{name}-{seed}").items():
            lines.append(f"| {name}, {seed} | {arm} | {one:.4g} | {many:.4g} |")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "table"))
    parser.add_argument("--sets", default="protein,naval,indoor,news-log,blog")
    parser.add_argument("--seeds", default="100")
    parser.add_argument("--share", type=float, default=1.0, help="of the steps, for trying it out")
    parser.add_argument("--folder", default=os.environ.get("NASBOT_SHARED", "../shared") + "/data")
    parser.add_argument("--records", default=str(RECORDS), help="where records are appended")
    parser.add_argument("--predictions", default="/tmp/nasbot-inheritance", help="where predictions are kept")
    given = parser.parse_args()
    file, kept = RunFile(Path(given.records)), Path(given.predictions)
    if given.what == "train":
        done = {(r["set"], r["seed"], r["parent_number"]) for r in file.records()}
        keys = [(s, int(k), p) for p in range(PARENTS) for k in given.seeds.split(",") for s in given.sets.split(",")]
        tasks = [Task(s, k, p, given.folder, kept, given.share) for s, k, p in keys if (s, k, p) not in done]
        for _ in file.keep(run(tasks)):
            pass
    print(table(list(file.records()), kept))


if __name__ == "__main__":
    main()

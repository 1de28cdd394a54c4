"""Beyond the paper: the FCNet tables (Klein and Hutter 2019), two of whose four data sets are the paper's own.

The tables hold 62,208 configurations of a two-layer MLP: 144 architectures (two widths, two activations), each with 432
ways of training it. An architecture is worth what it reaches when it is trained as suits it best.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

import nasbot
from benchmarks.runs import average, paired
from experiments.experiment import Body, Experiment, Results
from experiments.figures import Curve, draw_curves, panels, save
from experiments.markdown import table
from experiments.protocol import Protocol, Run
from experiments.records import Places
from nasbot import (
    NASBOT,
    Architecture,
    EvolutionSearch,
    Label,
    LabelPenalties,
    Layer,
    RandomSearch,
    SearchSpace,
    Vocabulary,
)
from nasbot.architecture import Role, chain
from nasbot.errors import FileError, OptionError
from nasbot.searchers import Searcher

WIDTHS = (16, 32, 64, 128, 256, 512)
ACTIVATIONS = ("relu", "tanh")
FILES = {"protein": "protein_structure", "naval": "naval_propulsion"}
ARCHITECTURE = ("activation_fn_1", "n_units_1", "activation_fn_2", "n_units_2")
RECTIFIER_FOR_SIGMOID = 0.25  # the paper's penalty between the two groups of activations
POOL_SIZE = 10
SWAPS = ("swap_label",)
Key = tuple[str, str]  # the labels of the two layers: "relu 64", "tanh 16"

# -- the networks of the tables ----------------------------------------------------------------------------------------


def _label(activation: str, width: int) -> str:
    return f"{activation} {width}"


def _vocabulary() -> Vocabulary:
    """A label for each activation and width, so that every network of the space is in the tables.

    A layer's mass is its width; matching widths that differ leaves mass unassigned, as it does in the paper.
    """
    hidden = [Label(name=_label(a, w), group=a, fixed_mass=float(w)) for a, w in product(ACTIVATIONS, WIDTHS)]
    labels = (
        Label(name="ip", role=Role.INPUT),
        Label(name="op", role=Role.OUTPUT),
        Label(name="linear", role=Role.DECISION),
        *hidden,
    )
    penalties = {
        (_label(a, w), _label(b, v)): 0.0 if a == b else RECTIFIER_FOR_SIGMOID
        for (a, w), (b, v) in product(product(ACTIVATIONS, WIDTHS), repeat=2)
        if (a, w) < (b, v)
    }
    return Vocabulary("fcnet", labels, LabelPenalties.from_pairs([label.name for label in labels], penalties))


FCNET_VOCABULARY = _vocabulary()
SPACE = SearchSpace(FCNET_VOCABULARY, min_layers=5, max_layers=5)
METHODS: Mapping[str, Any] = {"NASBOT": NASBOT, "RAND": RandomSearch, "EA": EvolutionSearch}


def network_of(key: Key) -> Architecture:
    """The network of two hidden layers."""
    return chain(FCNET_VOCABULARY, [Layer(label) for label in key])


@dataclass(frozen=True, eq=False)
class Table:
    """Validation error of each architecture, trained as suits it best."""

    error: Mapping[Key, float]

    def __call__(self, arch: Architecture) -> float:
        """The objective, to be minimised: the logarithm, for errors lie orders of magnitude apart."""
        return float(np.log10(self.error[self.key_of(arch)]))

    @staticmethod
    def key_of(arch: Architecture) -> Key:
        """The two hidden layers."""
        first, second = (arch.layers[u].label for u in arch.processing_layers)
        return first, second

    @property
    def optimum(self) -> float:
        """The lowest error."""
        return min(self.error.values())


@cache
def read_table(path: Path, dataset: str) -> Table:
    """The 144 architectures of one data set."""
    if dataset not in FILES:
        raise OptionError(f"fcnet: expected one of {', '.join(FILES)}, got {dataset!r}")
    try:
        with np.load(path, allow_pickle=False) as file:
            space = json.loads(str(file["space_json"]))
            config, errors = file["config"], file[f"{FILES[dataset]}_val_mse"]
    except (OSError, KeyError, ValueError, BadZipFile) as error:
        raise FileError(f"{path}: expected the FCNet tables ({type(error).__name__})") from None
    columns = [list(space).index(name) for name in ARCHITECTURE]
    best: dict[Key, float] = {}
    mean = errors.astype(np.float64).mean(axis=1)
    codes = config[:, columns]
    for code in np.unique(codes, axis=0):
        a1, w1, a2, w2 = (space[name][i] for name, i in zip(ARCHITECTURE, code, strict=True))
        rows = (codes == code).all(axis=1)
        best[_label(a1, w1), _label(a2, w2)] = float(mean[rows].min())
    return Table(best)


# -- runs --------------------------------------------------------------------------------------------------------------


def do(protocol: Protocol, run: Run, places: Places) -> Mapping[str, Any]:
    """One search in the table, from ten random architectures that all methods share."""
    lookup = read_table(places.data / "fcnet_tabular.npz", run["dataset"])
    rng = np.random.default_rng([run["seed"], 201])
    keys = sorted(lookup.error)
    pool = tuple(network_of(keys[i]) for i in rng.choice(len(keys), POOL_SIZE, replace=False))
    searcher: Searcher = METHODS[run["method"]](space=SPACE, pool=pool, modifiers=SWAPS)
    n, seed = protocol.settings["queries"], run["seed"]
    study = nasbot.minimise(lookup, SPACE, name=None, searcher=searcher, seed=seed, trials=n, progress=False)
    errors = [10.0**trial.value for trial in study.history.completed if trial.value is not None]
    best = np.minimum.accumulate(errors)
    return {"best": [float(f"{value:.6g}") for value in best], "optimum": lookup.optimum}


def _ratios(results: Results, dataset: str, method: str) -> dict[int, Any]:
    """log10 of the best error over the table's lowest, by seed."""
    return {
        r["run"]["seed"]: np.log10(np.array(r["result"]["best"]) / r["result"]["optimum"])
        for r in results.where(dataset=dataset, method=method)
    }


def write(results: Results, places: Places) -> Body:
    """How far above the lowest error each method is, and how many seeds have found it."""
    datasets = results.values("dataset")
    figure, axes = panels(len(datasets), width=5.0, height=3.6)
    rows = []
    n = results.protocol.settings["queries"]
    for place, dataset in enumerate(datasets):
        curves = {}
        for method in results.values("method"):
            runs = _ratios(results, dataset, method)
            if runs:
                mean, se = average(np.array(list(runs.values())))
                curves[method] = Curve(np.arange(1.0, n + 1), mean, se, len(runs))
                rows.append(_row(results, dataset, method, runs))
        draw_curves(axes[place], curves, title=dataset, x="queries", y="log10(best error / lowest)")
    save(figure, places.figure("fcnet.svg"))
    columns = ("data", "method", "seeds", f"best / lowest at {n // 2}", f"at {n}", "found the lowest", f"p at {n // 2}")
    picture = "![How far above the table's lowest error: mean, shaded by one s.e.](figures/fcnet.svg)"
    return Body(f"{picture}\n\n{table(columns, rows)}", _shows(results))


def _row(results: Results, dataset: str, method: str, runs: Mapping[int, Any]) -> list[object]:
    n = results.protocol.settings["queries"]
    values = np.array(list(runs.values()))
    found = float((values[:, -1] <= 1e-6).mean())
    row: list[object] = [dataset, method, len(runs)]
    row += [f"{10 ** values[:, at - 1].mean():.4f}" for at in (n // 2, n)]
    row.append(f"{found:.0%}")
    compared = against(results, method, n // 2).get(dataset)
    row.append(
        "" if method == "NASBOT" or compared is None else f"{compared.p:.2g} ({compared.wins} : {compared.losses})"
    )
    return row


def against(results: Results, method: str, at: int) -> dict[str, Any]:
    """NASBOT against a method after ``at`` queries, larger being better."""
    found = {}
    for dataset in results.values("dataset"):
        ours, theirs = _ratios(results, dataset, "NASBOT"), _ratios(results, dataset, method)
        if seeds := sorted(set(ours) & set(theirs)):
            pair = [-np.array([runs[seed][at - 1] for seed in seeds]) for runs in (ours, theirs)]
            found[dataset] = paired(pair[0], pair[1])
    return found


def _shows(results: Results) -> str:
    at = results.protocol.settings["queries"] // 2
    said = [
        f"On {dataset} after {at} queries NASBOT has {result.wins} wins and {result.losses} losses against {method} "
        f"(p {result.p:.2g})."
        for method in results.values("method")
        if method != "NASBOT"
        for dataset, result in against(results, method, at).items()
    ]
    return (
        " ".join(said) + " The space is small (144 architectures of two layers), so every method finds a good one; the "
        "tables have no skips, no third layer and no third activation. Errors are on validation data, the mean of four "
        "trainings."
    )


FCNET = Experiment(
    name="fcnet",
    title="FCNet tables: two-layer MLPs on Protein and Naval",
    question="In other people's tables of trained networks, does NASBOT find the best architecture in fewer look-ups?",
    method=(
        "144 architectures of two hidden layers (six widths, two activations each); the error of one is the lowest "
        "over the 432 ways of training it in the table. A layer's mass is its width, relu for tanh costs 0.25. All "
        "methods change one layer at a time and begin with the same ten random architectures, which count."
    ),
    do=do,
    write=write,
)

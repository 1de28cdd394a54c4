"""The FCNet tables by look-up: two-layer MLPs searched together with the settings of their training.

    python -m benchmarks.fcnet --table FILE --dataset protein_structure --method nasbot --seeds 20 --queries 100 --json

The objective is the logarithm of the validation error, the mean of the table's trainings. Every run of a seed begins
with the same random networks under one recipe, except ``random``, which draws from the whole table. The last line
printed with ``--json`` is an object with ``best_over_lowest`` (the best error so far over the lowest of the table,
medians over seeds, after 50, 100, … queries) and ``se``, a standard error of each. ``nasbot-no-prior`` expects good
params anywhere, ``nasbot-wrong-prior`` at ten times the recipe's learning rate.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import NoReturn
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from benchmarks.runs import RunFile
from nasbot import NASBOT, Architecture, Label, LabelPenalties, Layer, SearchSpace, Study, Vocabulary
from nasbot._rng import Role as StreamRole
from nasbot._rng import stream
from nasbot.architecture import Role, chain
from nasbot.candidate import Candidate, Params
from nasbot.domain import Choice, Domain
from nasbot.errors import FileError, NasbotError, OptionError
from nasbot.trial import Failed, FailureCause, Outcome, Scored

Value = float | int | str
Floats = NDArray[np.float64]
NETWORK = ("activation_fn_1", "n_units_1", "activation_fn_2", "n_units_2")
RECIPE: Mapping[str, Value] = {"batch_size": 32, "init_lr": 1e-3, "lr_schedule": "cosine"}  # and no dropout
BETWEEN_ACTIVATIONS = 0.25  # what it costs to take one for the other, as the paper has it for relu and tanh
POOL_SIZE = 5
REPORT_EVERY = 50
SWAPS = ("swap_label",)
N_RESAMPLES = 1000  # for the standard error of a median


@dataclass(frozen=True, eq=False)
class Table:
    """Validation errors of one data set: grids of the columns, and the error of each configuration that has one."""

    grids: Mapping[str, tuple[Value, ...]]
    error: Mapping[tuple[Value, ...], float]  # by the values of all columns, in the order of ``grids``

    @cached_property
    def lowest(self) -> float:
        """The lowest error."""
        return min(self.error.values())

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """A label for each activation and width, so that networks of two such layers are those of the table."""
        kinds = dict.fromkeys((a, n) for i in (0, 2) for a, n in product(*(self.grids[c] for c in NETWORK[i : i + 2])))
        hidden = [Label(name=f"{a} {n}", group=str(a), fixed_mass=float(n)) for a, n in kinds]
        ends = (("ip", Role.INPUT), ("op", Role.OUTPUT), ("linear", Role.DECISION))
        labels = (*(Label(name=name, role=role) for name, role in ends), *hidden)
        penalties = {
            (a.name, b.name): 0.0 if a.group == b.group else BETWEEN_ACTIVATIONS
            for i, a in enumerate(hidden)
            for b in hidden[:i]
        }
        return Vocabulary("fcnet", labels, LabelPenalties.from_pairs([label.name for label in labels], penalties))

    @cached_property
    def domain(self) -> Domain:
        """Networks of two hidden layers, and what has more than one value of everything else."""
        params = {
            name: Choice(*grid, ordered=True, default=self.recipe[name])
            for name, grid in self.grids.items()
            if name not in NETWORK and len(grid) > 1
        }
        return Domain(SearchSpace(self.vocabulary, min_layers=5, max_layers=5), params)

    @cached_property
    def recipe(self) -> dict[str, Value]:
        """The values of the grids that are nearest to the recipe."""
        return {name: _nearest(grid, RECIPE.get(name, 0.0)) for name, grid in self.grids.items() if name not in NETWORK}

    @property
    def wrong(self) -> dict[str, Value]:
        """A prior's centre with ten times the learning rate of the recipe."""
        rates = [float(rate) for rate in self.grids["init_lr"]]
        wanted = 10 * float(self.recipe["init_lr"])
        return {"init_lr": min(rates, key=lambda rate: abs(math.log(rate / wanted)))}

    def candidate(self, row: Mapping[str, Value]) -> Candidate:
        """The candidate of a configuration."""
        labels = (f"{row[NETWORK[0]]} {row[NETWORK[1]]}", f"{row[NETWORK[2]]} {row[NETWORK[3]]}")
        arch = chain(self.vocabulary, [Layer(label) for label in labels])
        return Candidate(arch, {name: row[name] for name in self.domain.params})

    def error_of(self, arch: Architecture, params: Params) -> float | None:
        """The error of a network trained so; None where the table has none."""
        layers = [arch.layers[u].label.split(" ") for u in arch.processing_layers]
        network = dict(zip(NETWORK, (part for layer in layers for part in layer), strict=True))
        row = {**self.recipe, **params, **network}
        return self._by_text.get(tuple(str(row[name]) for name in self.grids))

    @cached_property
    def _by_text(self) -> dict[tuple[str, ...], float]:
        return {tuple(map(str, key)): error for key, error in self.error.items()}

    def __call__(self, arch: Architecture, params: Params) -> Outcome:
        """The objective, to be minimised: the logarithm, for errors lie orders of magnitude apart."""
        error = self.error_of(arch, params)
        return Failed(FailureCause.REFUSED, "not in the table") if error is None else Scored(math.log(error))

    def pool(self, seed: int) -> list[dict[str, Value]]:
        """Random networks under the recipe, the same for every method."""
        rng = stream(seed, 0, StreamRole.EXPERIMENT)
        networks = list(product(*(self.grids[name] for name in NETWORK)))
        chosen = rng.choice(len(networks), min(POOL_SIZE, len(networks)), replace=False)
        return [self.recipe | dict(zip(NETWORK, networks[i], strict=True)) for i in chosen]


def _nearest(grid: Sequence[Value], wanted: Value) -> Value:
    """The value itself, else the nearest number, else the first."""
    numbers = [value for value in grid if not isinstance(value, str)]
    if wanted in grid or isinstance(wanted, str) or not numbers:
        return wanted if wanted in grid else grid[0]
    return min(numbers, key=lambda value: abs(value - wanted))


def read_table(path: Path, dataset: str) -> Table:
    """One data set of a file like ``fcnet_tabular.npz``; FileError, OptionError say what is wrong."""
    try:
        with np.load(path, allow_pickle=False) as file:
            known = [name.removesuffix("_val_mse") for name in file.files if name.endswith("_val_mse")]
            if dataset not in known:
                raise OptionError(f"--dataset: {path} has {', '.join(known) or 'no errors'}; got {dataset!r}")
            space: Mapping[str, Sequence[Value]] = json.loads(str(file["space_json"]))
            codes, errors = file["config"], np.asarray(file[f"{dataset}_val_mse"], dtype=np.float64)
        grids = {name: tuple(values) for name, values in space.items()}
        columns = [[grid[code] for code in codes[:, i]] for i, grid in enumerate(grids.values())]
        means = errors.reshape(len(codes), -1).mean(axis=1)
    except NasbotError:
        raise
    except (OSError, EOFError, KeyError, ValueError, IndexError, TypeError, AttributeError, BadZipFile) as error:
        raise FileError(f"{path}: expected tables like fcnet_tabular.npz ({type(error).__name__})") from None
    if missing := [name for name in NETWORK if name not in grids]:
        raise FileError(f"{path}: space_json: expected the columns {', '.join(NETWORK)}; got no {missing[0]}")
    by_row = {
        row: float(mean) for row, mean in zip(zip(*columns, strict=True), means, strict=True) if 0 < mean < np.inf
    }
    if not by_row:
        raise FileError(f"{path}: {dataset}_val_mse: expected errors above 0, got none")
    return Table(grids, by_row)


# -- methods -----------------------------------------------------------------------------------------------------------


def by_nasbot(table: Table, seed: int, n: int, *, joint: bool = True, prior: str = "recipe") -> Iterator[float]:
    """NASBOT as users get it; of networks alone, all under the recipe, unless ``joint``."""
    pool = [table.candidate(row) for row in table.pool(seed)]
    space = table.domain.networks
    if joint:
        centre = {"recipe": {}, "none": None, "wrong": table.wrong}[prior]
        params = table.domain.params
        searcher = NASBOT(space=space, params=params, pool=tuple(pool), modifiers=SWAPS, prior=centre)
    else:
        searcher = NASBOT(space=space, pool=tuple(candidate.arch for candidate in pool), modifiers=SWAPS)
    study = Study.in_memory(searcher, seed=seed, direction="minimise")
    study.optimise(table, n, max_consecutive_failures=None)
    for trial in study.history.finished:
        yield table.error_of(trial.arch, trial.candidate.params) or math.inf


def by_tpe(table: Table, seed: int, n: int) -> Iterator[float]:
    """Optuna's TPE over the same grids, told the same pool first; numbers by their places in the grid."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    places = {name: grid for name, grid in table.grids.items() if not any(isinstance(value, str) for value in grid)}
    distributions: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.IntDistribution(0, len(grid) - 1)
        if name in places
        else optuna.distributions.CategoricalDistribution(grid)
        for name, grid in table.grids.items()
    }
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=seed))
    for row in table.pool(seed):
        study.enqueue_trial({name: places[name].index(v) if name in places else v for name, v in row.items()})
    for _ in range(n):
        trial = study.ask(distributions)
        key = tuple(places[name][trial.params[name]] if name in places else trial.params[name] for name in table.grids)
        error = table.error.get(key, math.inf)
        known = {"values": math.log(error)} if error < math.inf else {"state": optuna.trial.TrialState.FAIL}
        study.tell(trial, **known)
        yield error


def by_chance(table: Table, seed: int, n: int) -> Iterator[float]:
    """Configurations drawn from the table, none twice."""
    errors = list(table.error.values())
    rng = stream(seed, 1, StreamRole.EXPERIMENT)
    yield from (errors[i] for i in rng.choice(len(errors), min(n, len(errors)), replace=False))


Method = Callable[[Table, int, int], Iterator[float]]
METHODS: Mapping[str, Method] = {
    "nasbot": by_nasbot,
    "nasbot-no-prior": partial(by_nasbot, prior="none"),
    "nasbot-wrong-prior": partial(by_nasbot, prior="wrong"),
    "architecture": partial(by_nasbot, joint=False),
    "tpe": by_tpe,
    "random": by_chance,
}


def ratios(table: Table, method: str, seeds: Sequence[int], n_queries: int) -> Iterator[Floats]:
    """For each seed the best error so far over the lowest, query by query; an exhausted run stays where it ended."""
    for seed in seeds:
        errors = np.array(list(METHODS[method](table, seed, n_queries)))
        best = np.minimum.accumulate(errors) / table.lowest
        yield np.append(best, np.full(n_queries - len(best), best[-1]))


def summary(runs: Sequence[Floats], n_queries: int) -> dict[str, dict[str, float]]:
    """Medians over runs after every 50 queries, or at the end of shorter ones, and their standard errors."""
    marks = list(range(REPORT_EVERY, n_queries + 1, REPORT_EVERY)) or [n_queries]
    values = np.array(runs)[:, [mark - 1 for mark in marks]]
    rng = stream(0, 2, StreamRole.EXPERIMENT)
    again = values[rng.integers(len(values), size=(N_RESAMPLES, len(values)))]
    median, se = np.median(values, axis=0), np.median(again, axis=1).std(axis=0)
    return {
        "best_over_lowest": {str(mark): round(float(m), 4) for mark, m in zip(marks, median, strict=True)},
        "se": {str(mark): round(float(e), 4) for mark, e in zip(marks, se, strict=True)},
    }


# -- the command -------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Mistakes are one line."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(message)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="python -m benchmarks.fcnet", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--table", metavar="FILE", type=Path, required=True, help="as ../shared/data/fcnet_tabular.npz")
    parser.add_argument("--dataset", required=True, help="protein_structure, … as the table has them")
    parser.add_argument("--method", required=True, choices=list(METHODS))
    parser.add_argument("--seeds", metavar="N", type=int, default=20, help="runs, of the seeds K, K + 1, …")
    parser.add_argument("--first-seed", metavar="K", type=int, default=0)
    parser.add_argument("--queries", metavar="Q", type=int, default=100, help="look-ups of a run, the pool included")
    parser.add_argument("--json", action="store_true", help="print the summary as a line of JSON")
    parser.add_argument("--out", metavar="FILE", type=Path, help="add the runs to this file, as JSON lines")
    options = parser.parse_args(arguments)
    for name, least in (("seeds", 1), ("queries", 1), ("first_seed", 0)):
        if (value := getattr(options, name)) < least:
            raise OptionError(f"--{name.replace('_', '-')}: expected a whole number >= {least}, got {value}")
    return options


def _run(options: argparse.Namespace) -> None:
    table = read_table(options.table, options.dataset)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    runs: list[Floats] = []
    for seed, run in zip(seeds, ratios(table, options.method, seeds, options.queries), strict=True):
        runs.append(run)
        if options.out is not None:
            best = [round(float(value), 5) for value in run]
            RunFile(options.out).append(
                {"dataset": options.dataset, "method": options.method, "seed": seed, "best": best}
            )
    numbers = summary(runs, options.queries)
    if options.json:
        print(json.dumps(numbers))
        return
    print(f"{options.dataset}, {options.method}, {options.seeds} runs: the best error over the lowest of the table")
    for mark, ratio in numbers["best_over_lowest"].items():
        print(f"  {mark:>4} look-ups: {ratio:.4f} ± {numbers['se'][mark]:.4f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print; the exit code is 2 for an option that cannot be meant and 3 for a file that cannot be read."""
    try:
        _run(_options(arguments))
    except NasbotError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What each param of training is worth by itself: one plain network, the default recipe, one param changed at a time.

    python -m experiments.worth --sets protein,naval,indoor,news-log,blog --divisions 100 --seeds 0,1

A param takes the values halfway to the ends of its range, on its scale, or every other choice. Trainings last a fixed
number of steps, so a busy machine changes nothing; larger batches then see more rows. Each training is a line of
docs/results/records/worth.jsonl, and one that is there is not run again. Printed is, for each set and param, the best
value by validation, and by how much validation and test error are then lower than with the default.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

from benchmarks.runs import RunFile
from experiments.distilling import error, said
from experiments.model import data_of
from nasbot.automl.baselines import plain_networks
from nasbot.automl.teaching import Lessons, Teacher, can_teach
from nasbot.automl.tuning import params_of
from nasbot.data.dataset import Dataset
from nasbot.domain import Choice, Param
from nasbot.training.loop import train
from nasbot.training.objective import computing_threads
from nasbot.training.recipes import FAST, POISSON, Recipe

RECORDS = Path(__file__).parent.parent / "docs" / "results" / "records" / "worth.jsonl"
STEPS = {"news-log": 200, "blog": 350}  # a third of what trainings take that are long enough
DEFAULT_STEPS = 1000
PARAMS = (
    "preparation",
    "learning_rate",
    "weight_decay",
    "dropout",
    "batch_size",
    "feature_scaling",
    "schedule",
    "loss",
    "from_trees",
)
TEACHER = Teacher(rounds=400)

Value = float | int | str
Change = tuple[str, Value]  # ("", "") for none
Record = dict[str, Any]


def others(param: Param) -> list[Value]:
    """The values to try instead of the default, lowest first."""
    assert param.default is not None
    if isinstance(param, Choice):
        return [value for value in param.values if value != param.default]
    at = param.unit(param.default)
    return [param.at(unit) for unit in (at / 2, (1 + at) / 2) if unit != at]


def changes(params: Mapping[str, Param]) -> list[Change]:
    """None, then every change of one param."""
    return [("", ""), *((name, value) for name, param in params.items() for value in others(param))]


def recipe_for(data: Dataset) -> Recipe:
    """The default recipe, with the loss that a search would take on these data."""
    return FAST.changed(loss=POISSON) if data.is_heavy_tailed else FAST


def searched(data: Dataset, params: Sequence[str] = PARAMS) -> dict[str, Param]:
    """The params to look at, as a search of these data has them; the loss where a search by default looks at it."""
    recipe = recipe_for(data)
    has_loss, has_teachers = "loss" in params_of("auto", data, recipe), can_teach(data, folds=1)
    there = {"loss": has_loss, "from_trees": has_teachers}
    asked = [name for name in params if there.get(name, True)]
    return params_of(asked, data, recipe, from_trees=0.0 if has_teachers else None)


def trained(data: Dataset, steps: int, seed: int, change: Change) -> tuple[float, float]:
    """Validation and test error of the first plain network, trained with one param changed."""
    arch, preparation = plain_networks(data.kind, len(data.train))[0]
    params = {name: value for name, value in [change] if name}
    prepared = data.prepared_as(str(params.pop("preparation", preparation)))
    share = float(params.pop("from_trees", 0.0))
    targets = Lessons(TEACHER, _told(data), share).targets(data, share) if share else None
    recipe = recipe_for(data).changed(n_steps=steps).with_params(params)
    with computing_threads(1):
        network = train(arch, prepared, recipe, seed=seed, targets=targets).network
    valid, test = (error(said(network, part), part, data) for part in (prepared.valid, prepared.test))
    return valid, test


def run(
    sets: Sequence[str],
    divisions: Sequence[int],
    seeds: Sequence[int],
    folder: str,
    known: Sequence[Record],
    lengths: Mapping[str, int] = STEPS,
    params: Sequence[str] = PARAMS,
) -> Iterator[Record]:
    """Records of the trainings that are not known yet."""
    done = {_key(record) for record in known}
    for division, seed, name in product(divisions, seeds, sets):
        data, steps = _data(name, folder, division), lengths.get(name, DEFAULT_STEPS)
        for param, value in changes(searched(data, params)):
            record = {"set": name, "division": division, "seed": seed, "steps": steps, "param": param, "value": value}
            if _key(record) not in done:
                valid, test = trained(data, steps, seed, (param, value))
                yield {**record, "valid": valid, "test": test}


@lru_cache(maxsize=8)
def _data(name: str, folder: str, division: int) -> Dataset:
    return data_of(name, folder, division)


def _told(data: Dataset) -> np.ndarray:
    """By trees, of rows that they have not seen; once for a set and division."""
    if data.fingerprint not in _TOLD:
        _TOLD[data.fingerprint] = TEACHER.say(data, loss=recipe_for(data).vectors.loss, seed=0)
    return _TOLD[data.fingerprint]


_TOLD: dict[str, np.ndarray] = {}


def _key(record: Record) -> tuple[object, ...]:
    return tuple(record[name] for name in ("set", "division", "seed", "steps", "param", "value"))


def worth(records: Sequence[Record]) -> dict[tuple[str, str], tuple[Value, float, float]]:
    """For each set and param its best value by validation, and validation and test error with it over the default's.

    Errors are geometric means over the divisions and seeds for which there is a training of every value of the param;
    where none is better than the default, that is the best, with ratios of 1.
    """
    runs: dict[tuple[str, str, Value], dict[tuple[int, int], Record]] = {}
    for record in records:
        of_value = runs.setdefault((record["set"], record["param"], record["value"]), {})
        of_value[record["division"], record["seed"]] = record
    found: dict[tuple[str, str], tuple[Value, float, float]] = {}
    for name, param in dict.fromkeys((name, param) for name, param, _ in runs if param):
        default = runs.get((name, "", ""), {})
        tried = {value: by_run for (of, changed, value), by_run in runs.items() if (of, changed) == (name, param)}
        common = sorted(set(default).intersection(*tried.values()))
        if common:
            ratios = {value: _over(by_run, default, common) for value, by_run in tried.items()}
            best = min(ratios, key=lambda value: ratios[value][0])
            found[name, param] = (best, *ratios[best]) if ratios[best][0] < 1 else ("default", 1.0, 1.0)
    return found


def _over(
    changed: Mapping[tuple[int, int], Record],
    default: Mapping[tuple[int, int], Record],
    runs: Sequence[tuple[int, int]],
) -> tuple[float, float]:
    valid, test = (
        geometric_mean(changed[run][part] / default[run][part] for run in runs) for part in ("valid", "test")
    )
    return valid, test


def table(records: Sequence[Record]) -> str:
    """A row for each param, a column for each set: best value by validation, what it changes on validation and test."""
    found = worth(records)
    sets = list(dict.fromkeys(name for name, _ in found))
    lines = [f"| param | {' | '.join(sets)} |", "|---" * (len(sets) + 1) + "|"]
    for param in (param for param in PARAMS if any((name, param) in found for name in sets)):
        cells = [_cell(found.get((name, param))) for name in sets]
        lines.append(f"| {param} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(found: tuple[Value, float, float] | None) -> str:
    if found is None:
        return ""
    value, valid, test = found
    shown = value if isinstance(value, str) else f"{value:g}"
    return shown if value == "default" else f"{shown}: {valid - 1:+.1%}, {test - 1:+.1%}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="protein,naval,indoor,news-log,blog")
    parser.add_argument("--divisions", default="100", help="seeds of the division into training, validation and test")
    parser.add_argument("--params", default=",".join(PARAMS), help="which to look at")
    parser.add_argument("--seeds", default="0,1", help="of initial weights and the order of rows")
    parser.add_argument("--folder", default=os.environ.get("NASBOT_SHARED", "../shared") + "/data")
    parser.add_argument("--records", default=str(RECORDS), help="where records are appended")
    given = parser.parse_args()
    file = RunFile(Path(given.records))
    divisions, seeds = ([int(n) for n in numbers.split(",")] for numbers in (given.divisions, given.seeds))
    known = list(file.records())
    made = file.keep(run(given.sets.split(","), divisions, seeds, given.folder, known, params=given.params.split(",")))
    print(table([*known, *made]))


if __name__ == "__main__":
    main()

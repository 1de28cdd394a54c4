"""What a person gets: the model of one search, beside one plain network given the same time, and trees.

    python -m experiments.model --sets protein,naval --budget 100s --seeds 0,1,2 --methods nasbot,plain,trees
    python -m experiments.model --sets protein,naval,indoor \\
        --methods nasbot-no-refit,random-promotion-no-refit,tpe-asha,tpe-hyperband
    python -m experiments.model --sets protein,naval --methods nasbot,tpe,gp,tpe-hyperband \\
        --tune learning_rate,weight_decay,dropout,batch_size

One line of JSON for each run is appended to docs/results/records/model.jsonl, and a table of means is printed. Errors
are test mean squared errors of the standardised target (a constant has 1), or log-losses. Seeds divide the rows, too.
Optuna's best network is neither refitted nor part of an ensemble: whoever compares searches alone has "-no-refit" for
ours, or compares the best validation loss of a trial.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch

import nasbot
from benchmarks.runs import RunFile
from experiments.datasets import set_of
from experiments.protocol import read_protocol
from experiments.pruning import by_optuna
from nasbot.automl.members import members_of
from nasbot.automl.model import refitted_trials
from nasbot.automl.plan import fitting_baseline
from nasbot.data.dataset import Dataset, dataset_of, named_dataset
from nasbot.data.named import load
from nasbot.study import Budget
from nasbot.training.loop import Trained, train
from nasbot.training.objective import computing_threads
from nasbot.training.predictions import predictions
from nasbot.training.recipes import FAST

RECORDS = Path(__file__).parent.parent / "docs" / "results" / "records" / "model.jsonl"
LENGTHS = (300, 1000, 3000)  # steps of the plain network; the best by validation counts


def by_search(data: Dataset, seconds: float, seed: int, **options: Any) -> dict[str, Any]:
    """Baseline, best network and ensemble of one search with two workers."""
    found = nasbot.search(data, budget=Budget(seconds=seconds), workers=2, seed=seed, name=None, **options)
    results, members = found.results().to_dict(), members_of(found)
    record: dict[str, Any] = {"trials": len(found.history.completed), "n_steps": found.context.get("n_steps")}
    if found.best is not None:
        record["loss"] = found.best.value  # what Optuna's best has, too: of a trial, by the validation rows
    if members is not None:
        record.update(members=len(members.trials), taught=members.taught, refitted=len(refitted_trials(found)))
    for name in ("baseline", "single", "ensemble", "model"):
        part = results[name]
        if isinstance(part, Mapping):
            record[name] = part.get("test_standardised_mse", part.get("test"))
            record[f"{name}_validation"] = part.get("validation")
            if data.is_classification:
                record[f"{name}_error"] = 1 - float(str(part["test_accuracy"]))
    return record


def by_plain_network(data: Dataset, seconds: float, seed: int) -> dict[str, Any]:
    """The baseline network, trained again and again at several lengths for as much CPU as two workers have."""
    arch = fitting_baseline(data.kind, len(data.train))
    trained: list[tuple[int, Trained]] = []
    begun = time.process_time()
    with computing_threads(1):
        while time.process_time() - begun < 2 * seconds or not trained:
            steps = LENGTHS[len(trained) % len(LENGTHS)] if len(trained) < len(LENGTHS) else best_length(trained)
            trained.append((steps, train(arch, data, FAST.changed(n_steps=steps), seed=seed + len(trained))))
    best = min(trained, key=lambda pair: pair[1].loss)[1]
    return {"model": test_error(data, best), "trials": len(trained), "n_steps": best.steps}


def best_length(trained: list[tuple[int, Trained]]) -> int:
    """The number of steps of the best training so far."""
    return min(trained, key=lambda pair: pair[1].loss)[0]


def by_trees(data: Dataset, seconds: float, seed: int) -> dict[str, Any]:
    """ExtraTrees and gradient boosting of scikit-learn with their defaults, the better one by validation."""
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from sklearn.multioutput import MultiOutputRegressor

    kinds: list[Any] = [ExtraTreesClassifier(random_state=seed, n_jobs=2), HistGradientBoostingClassifier()]
    if not data.is_classification:
        boosting: Any = HistGradientBoostingRegressor(max_iter=500, early_stopping=True, random_state=seed)
        boosting = MultiOutputRegressor(boosting) if data.n_outputs > 1 else boosting
        kinds = [ExtraTreesRegressor(random_state=seed, n_jobs=2), boosting]
    errors = []
    for model in kinds:
        y = data.train.y if data.n_outputs > 1 or data.is_classification else data.train.y[:, 0]
        model.fit(data.train.X, y)
        errors.append(tuple(_error(data, model, part.X, part.y) for part in (data.valid, data.test)))
    return {"model": min(errors)[1], "trials": len(kinds)}


def by_svm(data: Dataset, seconds: float, seed: int) -> dict[str, Any]:
    """A support vector machine on all numbers of a row, its C chosen by the validation rows."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    parts = [(part.X.reshape(len(part), -1), part.y) for part in (data.train, data.valid, data.test)]
    machines = [CalibratedClassifierCV(SVC(C=C), ensemble=False).fit(*parts[0]) for C in (1.0, 3.0, 10.0)]
    best = max(machines, key=lambda machine: machine.score(*parts[1]))
    return {"model": _error(data, best, *parts[2]), "model_error": 1 - best.score(*parts[2]), "trials": len(machines)}


def by_boosting(data: Dataset, seconds: float, seed: int) -> dict[str, Any]:
    """LightGBM (31 and 255 leaves), CatBoost and XGBoost with thousands of trees, each stopped by the validation rows.

    Needs the extra ``nasbot[opponents]``. Errors by name; ``model`` is the best of them by validation.
    """
    import catboost
    import lightgbm
    import xgboost

    shared: dict[str, Any] = {"learning_rate": 0.05, "n_estimators": 5000, "random_state": seed, "n_jobs": 2}
    sampled = {"subsample": 0.8, "subsample_freq": 1, "colsample_bytree": 0.8}
    y_train, y_valid = (part.y if data.is_classification else part.y[:, 0] for part in (data.train, data.valid))
    stop = [lightgbm.early_stopping(100, verbose=False)]
    valid = [(data.valid.X, y_valid)]
    boosters = (
        (lightgbm.LGBMClassifier, xgboost.XGBClassifier, catboost.CatBoostClassifier)
        if data.is_classification
        else (lightgbm.LGBMRegressor, xgboost.XGBRegressor, catboost.CatBoostRegressor)
    )
    light, extreme, cat = boosters
    models: dict[str, Any] = {
        "lightgbm": light(**shared, verbose=-1),
        "lightgbm-255": light(**shared, num_leaves=255, **sampled, verbose=-1),
        "xgboost": extreme(**shared, early_stopping_rounds=100),
        "catboost": cat(iterations=5000, random_seed=seed, thread_count=2, early_stopping_rounds=100, verbose=False),
    }
    options: dict[str, dict[str, Any]] = {
        "lightgbm": {"eval_set": valid, "callbacks": stop},
        "lightgbm-255": {"eval_set": valid, "callbacks": stop},
        "xgboost": {"eval_set": valid, "verbose": False},
        "catboost": {"eval_set": valid[0]},
    }
    found: dict[str, tuple[float, float]] = {}
    for name, model in models.items():
        model.fit(np.asarray(data.train.X), y_train, **options[name])
        errors = [_error(data, model, np.asarray(part.X), part.y) for part in (data.valid, data.test)]
        found[name] = errors[0], errors[1]
    return {"model": min(found.values())[1], "trials": len(found), **{name: test for name, (_, test) in found.items()}}


def by_pytabkit(kind: str) -> Callable[[Dataset, float, int], dict[str, Any]]:
    """A network of pytabkit with its tuned defaults, whatever time it takes. Needs ``nasbot[opponents]``."""

    def fitted(data: Dataset, seconds: float, seed: int) -> dict[str, Any]:
        import pytabkit

        task = "Classifier" if data.is_classification else "Regressor"
        model = getattr(pytabkit, f"{kind}_{task}")(device="cpu", random_state=seed, n_threads=2)
        parts = [(np.asarray(p.X), p.y if data.is_classification else p.y[:, 0]) for p in (data.train, data.valid)]
        begun = time.process_time()
        model.fit(*parts[0], *parts[1])
        took = round(time.process_time() - begun, 1)
        return {"model": _error(data, model, np.asarray(data.test.X), data.test.y), "trials": 1, "cpu_seconds": took}

    return fitted


def _error(data: Dataset, model: Any, X: np.ndarray, y: np.ndarray) -> float:
    if data.is_classification:
        probabilities = np.clip(model.predict_proba(X), 1e-6, 1)
        return float(-np.log(probabilities[np.arange(len(y)), y]).mean())
    return float(((np.asarray(model.predict(X)).reshape(y.shape) - y) ** 2).mean())


def test_error(data: Dataset, trained: Trained) -> float:
    """Of the standardised target, or the log-loss."""
    with computing_threads(1):
        out = predictions(trained.network, torch.from_numpy(np.array(data.test.X))).numpy()
    if data.is_classification:
        return float(-np.take_along_axis(out, data.test.y[:, None], axis=1).mean())
    return float(((out - data.test.y) ** 2).mean())


PROMOTION: Mapping[str, Any] = {"searcher": "random", "fidelity": "steps"}
ALONE: Mapping[str, Any] = {"refit": False, "yardstick": False}  # all of the time for search and finals
METHODS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "nasbot": by_search,
    "nasbot-no-refit": partial(by_search, **ALONE),
    "random-promotion": partial(by_search, **PROMOTION),  # RAND with rungs of shorter trainings
    "random-promotion-no-refit": partial(by_search, **PROMOTION, **ALONE),
    "tpe": partial(by_optuna, "none"),
    "gp": partial(by_optuna, "none", sampler="gp"),
    "tpe-asha": partial(by_optuna, "asha"),
    "tpe-hyperband": partial(by_optuna, "hyperband"),
    "plain": by_plain_network,
    "trees": by_trees,
    "svm": by_svm,
    "boosting": by_boosting,
    "realmlp": by_pytabkit("RealMLP_TD"),
    "tabm": by_pytabkit("TabM_D"),
}

ALIKE = ("plain", "trees", "svm", "boosting", "realmlp", "tabm")  # whatever is searched beside networks


def run(
    sets: list[str], methods: list[str], budget: str, seeds: list[int], folder: str, tune: str = "auto"
) -> Iterator[dict[str, Any]]:
    """The records, one after the other; ``tune`` is said in those where it is not the default."""
    seconds = Budget.of(budget).seconds
    assert seconds is not None
    for name in sets:
        for seed in seeds:
            data = data_of(name, folder, seed)
            for method in methods:
                begun = time.monotonic()
                tuned = {"tune": tune} if tune != "auto" and method not in ALIKE else {}
                found = {**METHODS[method](data, seconds, seed, **tuned), **tuned}
                wall = round(time.monotonic() - begun, 1)
                yield {"set": name, "method": method, "budget": seconds, "seed": seed, "wall": wall, **found}


def data_of(name: str, folder: str, seed: int) -> Dataset:
    """A set by its name, divided by the seed; with "-log" behind it the logarithm of its target.

    "cifar10-small" is the experiments' own: 16 x 16 pixels, the same 14,000 images for every seed. Other
    questions: "news-median", whether an article is shared more than most; "indoor-floor", building and floor,
    13 of them; "pictures", the classes of 2,000 photographs of CIFAR-10, drawn by the seed.
    """
    if name == "cifar10-small":
        return set_of("cifar10", read_protocol("cifar10").settings, Path(folder))
    own: dict[str, Any] = {"name": name, "seed": seed}
    if name.endswith("-log"):
        X, y, options = load(name.removesuffix("-log"), folder)
        return dataset_of(X, np.log1p(y), **{**options, **own})
    if name == "news-median":
        X, y, options = load("news", folder)
        return dataset_of(X, (y > np.median(y)).astype(int), **{**options, **own, "task": "classification"})
    if name == "indoor-floor":
        X, _, options = load("indoor", folder)
        with np.load(Path(folder) / "indoor_ujiindoorloc.npz") as arrays:
            floor, building = arrays["meta"][:, :2].T
        return dataset_of(X, 10 * building + floor, **{**options, **own, "task": "classification"})
    if name == "pictures":
        X, y, _ = load("cifar10", folder)
        drawn = np.random.default_rng(seed).permutation(len(X))[:2000]
        return dataset_of(np.asarray(X)[drawn], np.asarray(y)[drawn], **own)
    return named_dataset(name, folder=folder, seed=seed)


def table(records: list[dict[str, Any]]) -> str:
    """Mean and standard error by set and method; runs that ended without a model are counted and not averaged."""
    groups: dict[tuple[str, str, float], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[record["set"], record["method"], record["budget"]].append(record)
    lines = ["| set | method | seconds | validation | single | model | s.e. | runs |", "|---" * 8 + "|"]
    for (name, method, seconds), found in sorted(groups.items()):
        numbers = {
            column: [record[column] for record in found if record.get(column) is not None]
            for column in ("loss", "single", "model")
        }
        shown = [f"{mean(values):.5g}" if values else "" for values in numbers.values()]
        models = numbers["model"]
        error = stdev(models) / len(models) ** 0.5 if len(models) > 1 else float("nan")
        runs = f"{len(models)}" if len(models) == len(found) else f"{len(models)} of {len(found)}"
        lines.append(f"| {name} | {method} | {seconds:g} | {' | '.join(shown)} | {error:.2g} | {runs} |")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="protein,naval,indoor,news-log,blog")
    parser.add_argument("--methods", default="nasbot,plain,trees")
    parser.add_argument("--budget", default="100s")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--tune", default="auto", help="params searched by nasbot and Optuna's, as of nasbot run")
    parser.add_argument("--folder", default=os.environ.get("NASBOT_SHARED", "../shared") + "/data")
    parser.add_argument("--records", default=str(RECORDS), help="where records are appended")
    given = parser.parse_args()
    seeds = [int(seed) for seed in given.seeds.split(",")]
    made = run(given.sets.split(","), given.methods.split(","), given.budget, seeds, given.folder, given.tune)
    print(table(list(RunFile(Path(given.records)).keep(made))))


if __name__ == "__main__":
    main()

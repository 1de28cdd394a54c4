"""The Protein bar: within a budget, the network found is better on test rows than the best of the initial pool.

    python -m benchmarks.protein --folder SHARED/data --budget 20m --seeds 0,1,2

For each seed: a search on the training and validation rows (0.6 and 0.2), then the network found and the best of the
initial pool (by validation loss) are trained the same way from several seeds, with the time that a trial of the search
had, and judged on the test rows. Beside them, on the same rows, stand scikit-learn's MLPRegressor and
HistGradientBoostingRegressor, defaults and as people use them. All errors are of the standardised target. Results are
appended to a file of JSON lines as they come; the same command goes on where it was left.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nasbot.architecture import Architecture
from nasbot.automl import FoundStudy, Prepared, search
from nasbot.data.dataset import Dataset, named_dataset
from nasbot.training.loop import train
from nasbot.training.predicting import outputs_of
from nasbot.training.recipes import Recipe
from nasbot.trial import POOL

REPEATS = 3  # trainings of each judged network, from seeds of their own


def main(arguments: list[str] | None = None) -> None:
    """Run the seeds that are not in the file yet, and print the table of all."""
    options = _options().parse_args(arguments)
    done = _read(options.out)
    for seed in options.seeds:
        if any(record["seed"] == seed and record["budget"] == options.budget for record in done):
            continue
        record = one_seed(options, seed)
        done.append(record)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    print(table([record for record in done if record["budget"] == options.budget]))


def one_seed(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Everything about one seed."""
    data = named_dataset(options.data, folder=options.folder, seed=seed)
    prepared: list[Prepared] = []
    begun = time.monotonic()
    study = search(
        data,
        budget=options.budget,
        workers=options.workers,
        seed=seed,
        name=options.studies / f"{options.data}-{options.budget}-seed{seed}.sqlite",
        searcher=options.searcher,
        tune=None,  # both networks are trained in one way below
        pool="paper",
        on_start=prepared.append,
    )
    seconds, plan = time.monotonic() - begun, prepared[0].plan
    best = study.best
    pool = next((trial for trial in study.history.ranked if trial.origin.searcher == POOL), None)
    if best is None or pool is None:
        raise SystemExit("no network was trained within the budget; give a longer one")
    cap = plan.seconds_per_trial
    # A network is trained again once, also where it is both: what a second training gives may depend on the clock.
    test = {arch: retrained(arch, data, cap, study.recipe) for arch in {best.arch, pool.arch}}
    record = {
        "seed": seed,
        "data": options.data,
        "budget": options.budget,
        "workers": plan.workers,
        "searcher": options.searcher,
        "search_seconds": round(seconds, 1),
        "seconds_per_trial": cap,
        "trials": len(study.history.finished),
        "failed": len(study.history.failed),
        "valid": {"found": study.best_value, "pool": pool.value},
        "found_by_search": best.number != pool.number,
        "test": {"found": test[best.arch], "pool": test[pool.arch]},
        "test_as_scored": as_scored(study, data),
    }
    record["scikit-learn"] = {name: _timed(fit, data, seed) for name, fit in OTHERS.items()}
    return record


def retrained(arch: Architecture, data: Dataset, seconds: float, recipe: Recipe) -> list[float]:
    """Test errors of the network trained ``REPEATS`` times, from seeds that no trial of the search had."""
    errors = []
    for repeat in range(REPEATS):
        trained = train(arch, data, recipe, seed=10_000 + repeat, seconds=seconds)
        errors.append(_mse(outputs_of(trained.network, np.asarray(data.test.X)), data))
    return errors


def as_scored(study: FoundStudy, data: Dataset) -> float | None:
    """Test error of the best network with the very weights that the search kept."""
    best = study.best
    return None if best is None else _mse(outputs_of(best.model(), np.asarray(data.test.X)), data)


def _mse(predicted: np.ndarray, data: Dataset) -> float:
    return float(np.mean((predicted.reshape(data.test.y.shape) - data.test.y) ** 2))


# -- what people use instead -------------------------------------------------------------------------------------------


def _mlp(data: Dataset, seed: int) -> Any:
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(random_state=seed).fit(data.train.X, data.train.y[:, 0])


def _wide_mlp(data: Dataset, seed: int) -> Any:
    from sklearn.neural_network import MLPRegressor

    model = MLPRegressor(hidden_layer_sizes=(256, 256, 256), early_stopping=True, max_iter=100, random_state=seed)
    return model.fit(data.train.X, data.train.y[:, 0])


def _boosting(data: Dataset, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=seed).fit(data.train.X, data.train.y[:, 0])


def _long_boosting(data: Dataset, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(max_iter=1000, early_stopping=True, random_state=seed)
    return model.fit(data.train.X, data.train.y[:, 0])


OTHERS: Mapping[str, Callable[[Dataset, int], Any]] = {
    "MLPRegressor": _mlp,
    "MLPRegressor(256, 256, 256)": _wide_mlp,
    "HistGradientBoosting": _boosting,
    "HistGradientBoosting(max_iter=1000)": _long_boosting,
}


def _timed(fit: Callable[[Dataset, int], Any], data: Dataset, seed: int) -> dict[str, float]:
    import warnings

    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLPRegressor's defaults do not converge, and say so
        model = fit(data, seed)
    seconds = time.monotonic() - begun
    return {"test": _mse(model.predict(data.test.X), data), "seconds": round(seconds, 1)}


# -- showing -----------------------------------------------------------------------------------------------------------


def table(records: list[dict[str, Any]]) -> str:
    """One row per seed, in Markdown; whether the bar is met stands in the last column."""
    lines = [
        "| seed | trials | found, test | best of pool, test | " + " | ".join(OTHERS) + " | found < pool |",
        "|" + "---|" * (5 + len(OTHERS)),
    ]
    for record in sorted(records, key=lambda record: record["seed"]):
        found, pool = (statistics.mean(record["test"][name]) for name in ("found", "pool"))
        others = " | ".join(f"{record['scikit-learn'][name]['test']:.4f}" for name in OTHERS)
        lines.append(
            f"| {record['seed']} | {record['trials']} | {found:.4f} | {pool:.4f} | {others} "
            f"| {'yes' if found < pool else 'no'} |"
        )
    met = sum(statistics.mean(r["test"]["found"]) < statistics.mean(r["test"]["pool"]) for r in records)
    return "\n".join([*lines, f"\nthe network found beats the best of the pool on {met} of {len(records)} seeds"])


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", help="where the paper's sets are; NASBOT_DATA otherwise")
    parser.add_argument("--data", default="protein", help="the set's name")
    parser.add_argument("--budget", default="20m", help="of each search")
    parser.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--searcher", default="nasbot")
    parser.add_argument("--out", type=Path, default=Path("protein.jsonl"), help="results as they come, JSON lines")
    parser.add_argument("--studies", type=Path, default=Path("studies"), help="where the studies are kept")
    return parser


if __name__ == "__main__":
    main()

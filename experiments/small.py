"""Small tables: our estimators, linear models and boosting by repeated cross-validation on the same folds.

    python -m experiments.small --sets diabetes,wine,cancer,protein300,indoor300 --divisions 0-9

One line of JSON for each fold and method is appended to docs/results/records/small.jsonl, and a table is printed; folds
that are recorded already are not run again. Budgets are trials, so a busy machine gives the same. Errors are mean
squared errors over the variance of the target, or log-losses. Settings were chosen on divisions 100 and 101.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nasbot
from benchmarks.runs import RunFile
from nasbot.data.named import load

RECORDS = Path(__file__).parent.parent / "docs" / "results" / "records" / "small.jsonl"
N_FOLDS = 3
N_ROWS = 300  # of samples of larger tables, drawn anew for each division
TRIALS = 20
SCIKIT_LEARN: Mapping[str, Callable[..., Any]] = {
    "diabetes": load_diabetes,
    "wine": load_wine,
    "cancer": load_breast_cancer,
}
LARGE = {"protein300": "protein", "indoor300": "indoor"}
SETS = (*SCIKIT_LEARN, *LARGE)
METHODS = ("nasbot", "linear", "boosting")


def table_of(name: str, division: int, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and target; of a large table the rows of this division."""
    if name in SCIKIT_LEARN:
        X, y = SCIKIT_LEARN[name](return_X_y=True)
        return X, y
    X, y, _ = load(LARGE[name], folder)
    chosen = np.random.default_rng([division, N_ROWS]).choice(len(X), N_ROWS, replace=False)
    return np.asarray(X)[chosen], np.asarray(y)[chosen]


def model_of(method: str, *, classifies: bool, seed: int) -> Any:
    """A fresh estimator."""
    if method == "nasbot":
        kind = nasbot.NASBOTClassifier if classifies else nasbot.NASBOTRegressor
        return kind(budget=TRIALS, random_state=seed)
    if method == "boosting":
        return (HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor)(random_state=seed)
    if not classifies:
        return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 30)))
    by = {"scoring": "neg_log_loss", "l1_ratios": (0,), "use_legacy_attributes": False}
    linear = LogisticRegressionCV(Cs=10, max_iter=5000, **by)
    return make_pipeline(StandardScaler(), linear)


def error_of(model: Any, X: np.ndarray, y: np.ndarray, variance: float | None) -> float:
    """Log-loss, or the mean squared error over ``variance``."""
    if variance is None:
        shares = np.clip(model.predict_proba(X), 1e-6, 1)
        return float(log_loss(y, shares / shares.sum(axis=1, keepdims=True), labels=model.classes_))
    return float(np.mean((model.predict(X) - y) ** 2) / variance)


def run(
    sets: list[str], methods: list[str], divisions: list[int], folder: str, known: set[tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    """The records that are not known yet, one after the other."""
    for division in divisions:
        for name in sets:
            X, y = table_of(name, division, folder)
            classifies = name in ("wine", "cancer")
            folds = (StratifiedKFold if classifies else KFold)(N_FOLDS, shuffle=True, random_state=division)
            for fold, (train, test) in enumerate(folds.split(X, y)):
                for method in methods:
                    if (name, division, fold, method) in known:
                        continue
                    begun = time.process_time()
                    model = model_of(method, classifies=classifies, seed=division).fit(X[train], y[train])
                    error = error_of(model, X[test], y[test], None if classifies else float(np.var(y)))
                    took = round(time.process_time() - begun, 1)
                    place = {"set": name, "division": division, "fold": fold, "method": method}
                    yield {**place, "error": error, "cpu_seconds": took}


def table(records: list[dict[str, Any]]) -> str:
    """Mean and standard error over divisions, by set and method; and the difference to each rival, paired."""
    errors: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        errors[record["set"], record["method"]][record["division"]].append(record["error"])
    lines = ["| set | method | divisions | error | s.e. | ours minus it | s.e. |", "|---|---|---|---|---|---|---|"]
    for (name, method), by_division in sorted(errors.items()):
        means = {division: mean(found) for division, found in by_division.items()}
        ours = {division: mean(found) for division, found in errors.get((name, "nasbot"), {}).items()}
        gaps = [ours[division] - means[division] for division in means if division in ours]
        beside = "" if method == "nasbot" or not gaps else f"{mean(gaps):+.4g} | {_error(gaps)}"
        lines.append(
            f"| {name} | {method} | {len(means)} | {mean(means.values()):.4g} | {_error(list(means.values()))} | "
            f"{beside or ' | '} |"
        )
    return "\n".join(lines)


def _error(values: list[float]) -> str:
    return f"{stdev(values) / len(values) ** 0.5:.2g}" if len(values) > 1 else ""


def _numbers(text: str) -> list[int]:
    """Of "0-4,7": 0, 1, 2, 3, 4, 7."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--divisions", default="0-9", help="random states of the folds, as 0-4,7")
    parser.add_argument("--folder", default=os.environ.get("NASBOT_SHARED", "../shared") + "/data")
    parser.add_argument("--records", default=str(RECORDS), help="where records are appended")
    given = parser.parse_args()
    file = RunFile(Path(given.records))
    records = list(file.records())
    known = {(r["set"], r["division"], r["fold"], r["method"]) for r in records}
    wanted = given.sets.split(","), given.methods.split(","), _numbers(given.divisions)
    records += file.keep(run(*wanted, given.folder, known))
    print(table(records))


if __name__ == "__main__":
    main()

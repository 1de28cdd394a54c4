"""Whether asking for a metric pays, and what is found of a rare class.

    python -m experiments.metrics --seeds 10,11,12,13,14 --trials 4

Searches of a few trials, without folds, on five sets for each of auc, f1 and mae: one by that metric, one by the
validation loss; the value of the metric on test rows of both. Then four made tables where 1 row in 51 is of the rare
class (and one as a person would have it, of card payments with three ways to cheat): recall and F1 of that class, by
``--metric f1`` with and without balanced classes, and by logistic regression with balanced weights, which learns from
training and validation rows. One line of JSON for each is appended to
docs/results/records/metrics.jsonl; what is there is not run again. Tables are printed; docs/results/metrics.md has
them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

import nasbot
from benchmarks.runs import RunFile
from nasbot.data.dataset import SPLIT, dataset_of
from nasbot.data.metrics import METRICS
from nasbot.data.named import load
from nasbot.data.splitting import split_rows

RECORDS = Path(__file__).parent.parent / "docs" / "results" / "records" / "metrics.jsonl"
ROWS = 2500  # of the larger sets, sampled by the seed
RARE_ROWS, RARE = 12_000, 51
LOSS = "loss"
Rows = tuple[np.ndarray, np.ndarray]
PAYMENTS, PAYMENT_ROWS = "payments", 20_400


# -- sets --------------------------------------------------------------------------------------------------------------


def _numbers(name: str) -> Callable[[str, int], Rows]:
    """A set as it is; of many rows a sample."""

    def rows(folder: str, seed: int) -> Rows:
        X, y, _ = load(name, folder)
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        y = y if y.ndim == 1 else y[:, 0]
        chosen = np.random.default_rng(seed).permutation(len(X))[:ROWS]
        return X[chosen], y[chosen]

    return rows


def _above(name: str, share: float) -> Callable[[str, int], Rows]:
    """Whether the target of a set is above this share of its values."""

    def rows(folder: str, seed: int) -> Rows:
        X, y = _numbers(name)(folder, seed)
        return X, (y > np.quantile(y, share)).astype(np.int64)

    return rows


def _cancer(folder: str, seed: int) -> Rows:
    X, y, _ = load("breast-cancer", folder)
    return np.asarray(X, dtype=np.float64), (np.asarray(y) == "malignant").astype(np.int64)


CLASSES: Mapping[str, Callable[[str, int], Rows]] = {
    "breast cancer": _cancer,
    "News, upper tenth": _above("news", 0.9),
    "Blog, upper tenth": _above("blog", 0.9),
    "Protein, upper tenth": _above("protein", 0.9),
    "Indoor, upper half": _above("indoor", 0.5),
}
NUMBERS: Mapping[str, Callable[[str, int], Rows]] = {
    name.capitalize(): _numbers(name) for name in ("diabetes", "protein", "news", "blog", "indoor")
}
SETS = {"auc": CLASSES, "f1": CLASSES, "mae": NUMBERS}


def rare_table(kind: str, seed: int) -> Rows:
    """A table of 12,000 rows, of which 1 in 51 is of the rare class: where a function of eight columns is highest."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    X = rng.normal(size=(RARE_ROWS, 8))
    if kind == "linear":
        score = X[:, 0] + 0.8 * X[:, 1] - 0.5 * X[:, 2]
    elif kind == "ring":
        score = np.hypot(X[:, 0], X[:, 1]) + 0.3 * X[:, 2]
    elif kind == "blobs":
        centres = np.random.default_rng(7).normal(size=(6, 8))
        score = np.exp(-np.square(X[:, None] - centres).sum(axis=-1) / 6).sum(axis=1)
    else:
        score = X[:, 0] * X[:, 1] + 0.7 * X[:, 2] * X[:, 3]
    score = (score - score.mean()) / score.std() + rng.normal(scale=0.35, size=RARE_ROWS)
    return X, (score > np.quantile(score, 1 - 1 / RARE)).astype(np.int64)


KINDS = ("linear", "ring", "blobs", "interaction")


def payments(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of card payments, 400 of 20,400 fraudulent: small ones in quick succession, large ones far away by night,
    and a new account's first ones for what can be sold again."""
    rng = np.random.default_rng([seed, 4])
    n = PAYMENT_ROWS
    frame = pd.DataFrame(
        {
            "amount": rng.lognormal(3.3, 1.1, n).round(2),
            "usual_amount": rng.lognormal(3.3, 0.6, n).round(2),
            "hour": (13 + 5 * rng.normal(size=n)).astype(int) % 24,
            "account_days": rng.exponential(400, n).round(),
            "km_from_home": rng.lognormal(1.5, 1.3, n).round(1),
            "payments_last_hour": rng.poisson(0.6, n),
            "merchant": rng.choice(["food", "fuel", "clothes", "electronics", "vouchers", "travel"], n),
            "online": rng.choice(["yes", "no"], n),
        }
    )

    def above(values: Any, bound: float, steepness: float) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-steepness * (np.asarray(values, dtype=np.float64) - bound))))

    ratio = np.log(frame["amount"] + 0.01) - np.log(frame["usual_amount"] + 0.01)
    night = np.cos(2 * np.pi * (frame["hour"] - 3) / 24)
    far = np.log(frame["km_from_home"] + 0.1)
    tried_out = above(frame["payments_last_hour"], 1.5, 4) * above(-ratio, 0.8, 3)
    taken_over = above(ratio, 1, 3) * above(far, 2.4, 2.3) * above(night, 0, 4)
    wanted = frame["merchant"].isin(["electronics", "vouchers"]) & (frame["online"] == "yes")
    opened = np.exp(-frame["account_days"] / 60) * wanted
    score = tried_out + taken_over + opened + rng.normal(scale=0.12, size=n)
    return frame, (score > np.quantile(score, 1 - 1 / RARE)).astype(np.int64)


# -- runs --------------------------------------------------------------------------------------------------------------


def searched(X: Any, y: np.ndarray, *, seed: int, **options: Any) -> tuple[nasbot.FoundStudy, np.ndarray]:
    """A search in this process, and which of the rows were kept for testing."""
    classes = y if y.dtype.kind == "i" else None
    task = "regression" if classes is None else "classification"
    given = {"class_weight": options.pop("class_weight")} if "class_weight" in options else {}
    data = dataset_of(X, y, seed=seed, task=task, **given)
    labels = None if classes is None else np.unique(classes.astype(str), return_inverse=True)[1]
    test = split_rows(len(X), SPLIT, seed=seed, classes=labels)[2]
    return nasbot.search(data, seed=seed, name=None, executor="here", folds=1, **options), test


def by_metric(metric: str, name: str, asked: str, seed: int, trials: int, folder: str) -> dict[str, Any]:
    """The metric's value on test rows, of the model of a search by ``asked``."""
    X, y = SETS[metric][name](folder, seed)
    study, test = searched(X, y, seed=seed, budget=trials, metric=None if asked == LOSS else asked)
    with study:
        model = study.model()
        if metric == "mae":
            return {"test": METRICS[metric](y[test][:, None], model.predict(X[test]).reshape(-1, 1))}
        shares = model.predict_proba(X[test])
        return {"test": {name: METRICS[name](y[test], shares) for name in ("auc", "f1")}[metric]}


def by_rare(kind: str, method: str, seed: int, trials: int) -> dict[str, Any]:
    """Recall, precision and F1 of the rare class on test rows."""
    X: Any
    X, y = payments(seed) if kind == PAYMENTS else rare_table(kind, seed)
    train, valid, test = split_rows(len(X), SPLIT, seed=seed, classes=y)
    new = X.iloc[test] if kind == PAYMENTS else X[test]
    if method == "logistic regression":
        from sklearn.linear_model import LogisticRegression

        known = np.concatenate([train, valid])
        plain = _standardised(X, known) if kind == PAYMENTS else X
        fitted = LogisticRegression(class_weight="balanced", max_iter=2000).fit(plain[known], y[known])
        said = fitted.predict(plain[test])
    else:
        weighted = {"class_weight": "none"} if "as they are" in method else {}
        study, _ = searched(X, y, seed=seed, budget=trials, metric="f1", **weighted)
        with study:
            said = study.model().predict(new)
    hits, said_rare, are_rare = (int(rows.sum()) for rows in ((said == 1) & (y[test] == 1), said == 1, y[test] == 1))
    return {
        "recall": hits / are_rare,
        "precision": hits / max(1, said_rare),
        "f1": 2 * hits / (said_rare + are_rare),
    }


def _standardised(frame: pd.DataFrame, known: np.ndarray) -> np.ndarray:
    """As a person prepares a table for logistic regression: a column for each category, all standardised."""
    numbers = pd.get_dummies(frame).to_numpy(dtype=np.float64)
    return np.asarray((numbers - numbers[known].mean(axis=0)) / numbers[known].std(axis=0))


METHODS = ("logistic regression", "f1", "f1, classes as they are")


def runs(seeds: list[int], trials: int) -> Iterator[dict[str, Any]]:
    """What is to be run, seed by seed."""
    for seed in seeds:
        for kind in (*KINDS, PAYMENTS):
            for method in METHODS:
                part = PAYMENTS if kind == PAYMENTS else "rare"
                yield {"part": part, "set": kind, "by": method, "seed": seed, "trials": trials}
        for metric, sets in SETS.items():
            for name in sets:
                for asked in (LOSS, metric):
                    yield {"part": metric, "set": name, "by": asked, "seed": seed, "trials": trials}


def done(run: dict[str, Any], folder: str) -> dict[str, Any]:
    """The record of a run."""
    begun = time.process_time()
    if run["part"] in ("rare", PAYMENTS):
        found = by_rare(run["set"], run["by"], run["seed"], run["trials"])
    else:
        found = by_metric(run["part"], run["set"], run["by"], run["seed"], run["trials"], folder)
    return {**run, "cpu_seconds": round(time.process_time() - begun, 1), **found}


# -- tables ------------------------------------------------------------------------------------------------------------


def metrics_table(records: list[dict[str, Any]]) -> str:
    """Medians over seeds of the test value, by the loss and by the metric; how often the metric was ahead."""
    lines = ["| metric | set | by the loss | by the metric | better by | ahead in |", "|---|---|---|---|---|---|"]
    for metric, sets in SETS.items():
        sign = 1 if METRICS[metric].higher_is_better else -1
        for name in sets:
            by = {
                asked: {
                    r["seed"]: r["test"] for r in records if (r["part"], r["set"], r["by"]) == (metric, name, asked)
                }
                for asked in (LOSS, metric)
            }
            seeds = sorted(set(by[LOSS]) & set(by[metric]))
            if not seeds:
                continue
            gains = [sign * (by[metric][s] - by[LOSS][s]) for s in seeds]
            loss, ours = (median(by[asked][s] for s in seeds) for asked in (LOSS, metric))
            ahead = sum(gain > 0 for gain in gains)
            lines.append(
                f"| {metric} | {name} | {loss:.4g} | {ours:.4g} | {sign * (ours - loss) / abs(loss):+.2%} | "
                f"{ahead} of {len(seeds)} |"
            )
    return "\n".join(lines)


def rare_results(records: list[dict[str, Any]]) -> str:
    """Medians over seeds of recall, precision and F1 of the rare class."""
    lines = ["| table | by | recall | precision | F1 |", "|---|---|---|---|---|"]
    for kind in (*KINDS, PAYMENTS):
        for method in METHODS:
            found = [r for r in records if (r["set"], r["by"]) == (kind, method)]
            if found:
                values = " | ".join(f"{median(r[name] for r in found):.3f}" for name in ("recall", "precision", "f1"))
                lines.append(f"| {kind} | {method} | {values} |")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="10,11,12,13,14")
    parser.add_argument("--trials", type=int, default=4, help="of each search")
    parser.add_argument("--parts", default="rare,payments,auc,f1,mae")
    parser.add_argument("--folder", default=os.environ.get("NASBOT_SHARED", "../shared") + "/data")
    parser.add_argument("--records", default=str(RECORDS), help="where records are appended")
    given = parser.parse_args()
    file = RunFile(Path(given.records))
    records = list(file.records())
    known = [{name: r[name] for name in ("part", "set", "by", "seed", "trials")} for r in records]
    every = runs([int(seed) for seed in given.seeds.split(",")], given.trials)
    missing = [run for run in every if run["part"] in given.parts.split(",") and run not in known]
    records += file.keep(done(run, given.folder) for run in missing)
    print(metrics_table(records), rare_results(records), sep="\n\n")


if __name__ == "__main__":
    main()

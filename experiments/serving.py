"""What a model costs where it is used: its time for one row under a limit, and a million rows.

    python -m experiments.serving

Fifteen searches of four trials, each with a limit on latency of 1.5 to 8 times what the smallest network takes here;
the exported model is read back and measured. Then a model of a sample of Protein predicts 1,000,000 rows of its shape
by ``nasbot predict``: CPU seconds and memory, and the largest difference between that, the study's own model, the
exported code and ONNX. ``--parts intervals``: of searches on five sets, how often the truth of test rows lies in the
intervals of the model. Records go to docs/results/records/serving.jsonl.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import nasbot
from benchmarks.runs import RunFile
from nasbot.automl.limits import smallest
from nasbot.data.dataset import dataset_of
from nasbot.data.named import load
from nasbot.errors import OptionError
from nasbot.exporting.model_file import Model
from nasbot.training.latency import latency_of
from nasbot.training.module import build

RECORDS = Path(__file__).parent.parent / "docs" / "results" / "records" / "serving.jsonl"
SETS = ("diabetes", "wine", "breast-cancer", "digits", "protein")
FACTORS = (1.5, 3.0, 8.0)  # times the latency of the smallest network
NUMBERS, COVERAGES, TRIALS, SEEDS = ("diabetes", "protein", "news", "blog", "indoor"), (0.8, 0.9, 0.95), 4, (10, 11)
ROWS, SAMPLE, COMPARED = 1_000_000, 4000, 20_000


def sample(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """The first rows of a set, in an order of their own."""
    X, y, _ = load(name, folder)
    chosen = np.random.default_rng(0).permutation(len(X))[:SAMPLE]
    return np.asarray(X, dtype=np.float64)[chosen], np.asarray(y)[chosen]


def limited(name: str, factor: float, folder: str, where: Path) -> dict[str, Any]:
    """One search under a limit, and what the model that it exports takes."""
    data = dataset_of(*sample(name, folder))
    least = latency_of(build(smallest(data.kind), input_shape=data.input_shape, n_outputs=data.n_outputs, seed=0))
    limit = factor * least
    record: dict[str, Any] = {"part": "latency", "set": name, "limit_us": 1e6 * limit, "smallest_us": 1e6 * least}
    try:
        study = nasbot.search(data, budget=4, name=None, executor="here", folds=1, max_latency=limit)
    except OptionError as error:
        return {**record, "refused": str(error)}
    with study:
        study.export(where / "model.safetensors", overwrite=True)
        model = nasbot.load_model(where / "model.safetensors")
        preparation = None if model.preprocessing is None else model.preprocessing.preparation
        taken = latency_of(model.network, preparation)
        return {**record, "members": len(model.networks), "taken_us": 1e6 * taken, "is_within": taken <= limit}


def covered(name: str, seed: int, folder: str) -> dict[str, Any]:
    """How often the truth of test rows lies between the bounds of the recommended model, and how wide these are."""
    X, y = sample(name, folder)
    y = np.asarray(y, dtype=np.float64)
    y = y if y.ndim == 1 else y[:, 0]
    rows = np.random.default_rng([seed, 1]).permutation(len(X))
    known, new = rows[len(rows) // 4 :], rows[: len(rows) // 4]
    options: dict[str, Any] = {"executor": "here", "task": "regression", "seed": seed}
    with nasbot.search(X[known], y[known], budget=TRIALS, name=None, **options) as study:
        model = study.model()
        shares, widths = {}, {}
        for coverage in COVERAGES:
            low, high = model.predict_interval(X[new], coverage).T
            shares[str(coverage)] = float(((low <= y[new]) & (y[new] <= high)).mean())
            widths[str(coverage)] = float(np.mean(high - low) / y[new].std())
    return {"part": "intervals", "set": name, "seed": seed, "rows": len(new), "shares": shares, "widths": widths}


def million(folder: str, where: Path) -> dict[str, Any]:
    """A million rows, by the command; the same rows, some of them, by all that is exported."""
    X, y = sample("protein", folder)
    names = [f"x{i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    with nasbot.search(frame, y, budget=6, name=None, executor="here", folds=1, task="regression") as study:
        model = study.model()
        for file in ("model.safetensors", "model.py", "model.onnx"):
            study.export(where / file, overwrite=True)
    rng = np.random.default_rng(1)
    rows = frame.iloc[rng.integers(len(frame), size=ROWS)].reset_index(drop=True)
    rows += rng.normal(0, 0.01, rows.shape) * rows.std().to_numpy()
    rows.to_csv(where / "rows.csv", index=False)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, "-m", "nasbot", "predict", "model.safetensors", "rows.csv", "-o", "out.csv"]
    subprocess.run(line, cwd=where, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    predicted = pd.read_csv(where / "out.csv")["prediction"].to_numpy()
    written = pd.read_csv(where / "rows.csv")
    own = np.concatenate([model.predict(written.iloc[i : i + 50_000]) for i in range(0, ROWS, 50_000)])
    some = written.iloc[:COMPARED]
    scale = float(np.abs(own).mean())
    return {
        "part": "million",
        "rows": len(predicted),
        "members": len(model.networks),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "peak_mb": round(after.ru_maxrss / 1024),
        "from_own": float(np.abs(predicted - own).max()) / scale,
        "code_from_own": float(np.abs(_by_code(where, some) - own[:COMPARED]).max()) / scale,
        "onnx_from_own": float(np.abs(_by_onnx(where, model, some) - own[:COMPARED]).max()) / scale,
    }


def _by_code(where: Path, rows: pd.DataFrame) -> np.ndarray:
    spec = importlib.util.spec_from_file_location("exported", where / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return np.asarray(module.predict(module.load(), rows.to_numpy())).reshape(-1)


def _by_onnx(where: Path, model: Model, rows: pd.DataFrame) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(where / "model.onnx"))
    assert model.preprocessing is not None
    (outputs,) = session.run(None, {session.get_inputs()[0].name: model.preprocessing.X(rows)})
    return np.asarray(model.preprocessing.predicted(outputs)).reshape(-1)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="latency,million,intervals")
    parser.add_argument("--folder", default=os.environ.get("NASBOT_SHARED", "../shared") + "/data")
    parser.add_argument("--records", default=str(RECORDS), help="where records are appended")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = [(name, factor) for name in SETS for factor in FACTORS] if "latency" in given.parts else []
        found = (limited(name, factor, given.folder, Path(folder)) for name, factor in runs)
        more = (million(given.folder, Path(folder)) for part in given.parts.split(",") if part == "million")
        promised = (
            covered(name, seed, given.folder) for name in NUMBERS for seed in SEEDS if "intervals" in given.parts
        )
        list(RunFile(Path(given.records)).keep(chain(found, more, promised)))


if __name__ == "__main__":
    main()

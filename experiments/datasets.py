"""The paper's data sets, prepared once and kept as memory-mapped folders that all workers share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.protocol import Protocol
from experiments.records import Places
from nasbot.data.dataset import Dataset, dataset_of
from nasbot.data.named import load

# How large the paper says that each set is: what ours may be compared with.
PAPER_SIZES = {
    "blog": "60K, 281",
    "indoor": "21K, 529",
    "slice": "54K, 385",
    "naval": "12K, 17",
    "protein": "46K, 9",
    "news": "40K, 61",
    "cifar10": "60K, 3K",
}
OPTIONS = ("rows", "log_target", "image_size", "images")  # settings that decide what the data are


def data_folder(protocol: Protocol, name: str, places: Places) -> Path:
    """Where the set is, prepared under the settings of the protocol."""
    options = _options(protocol.settings)
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:8]
    return places.work / "data" / f"{name}-{digest}"


def prepare(protocol: Protocol, places: Places) -> None:
    """Prepare every set of the protocol that is not there yet."""
    for name in protocol.axes["dataset"]:
        folder = data_folder(protocol, name, places)
        if not (folder / "dataset.json").exists():
            set_of(name, _options(protocol.settings), places.data).save(folder)


def prepared(protocol: Protocol, name: str, places: Places) -> tuple[Path, Dataset]:
    """The folder and the set in it; the split is the same for all methods and seeds."""
    folder = data_folder(protocol, name, places)
    if not (folder / "dataset.json").exists():
        prepare(protocol, places)
    return folder, Dataset.load(folder)


def _options(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in OPTIONS if name in settings}


def set_of(name: str, options: Mapping[str, Any], source: Path) -> Dataset:
    """A set under the options of a protocol, as ``OPTIONS`` names them."""
    X, y, given = load(name, source)
    given = {**given, "name": name}
    if name in options.get("log_target", ()):
        y = np.log1p(y)
    if "image_size" in options:
        X = _shrunk(np.asarray(X), options["image_size"])
    if "images" in options:
        given["indices"] = _fewer(len(X), given.get("indices"), options["images"])
    elif "rows" in options and len(X) > options["rows"]:
        kept = np.sort(np.random.default_rng(0).permutation(len(X))[: options["rows"]])
        X, y = _at(X, kept), _at(y, kept)
    return dataset_of(X, y, **given)


def _at(table: Any, rows: NDArray[np.int64]) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _shrunk(images: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """Images (…, height, width) averaged over squares of pixels."""
    by = images.shape[-1] // size
    blocks = images.reshape(*images.shape[:-2], size, by, size, by)
    return np.asarray(np.rint(blocks.mean(axis=(-3, -1), dtype=np.float32)), dtype=np.uint8)


def _fewer(n: int, parts: Any, sizes: list[int]) -> list[NDArray[np.int64]]:
    """As many rows of each part as asked for, drawn at random; of all rows where the set has no parts of its own."""
    rng = np.random.default_rng(0)
    if parts is None:
        order = rng.permutation(n)[: sum(sizes)]
        return [np.sort(part) for part in np.split(order, np.cumsum(sizes)[:-1])]
    return [np.sort(rng.permutation(part)[:size]).astype(np.int64) for part, size in zip(parts, sizes, strict=True)]

"""Data sets by name: scikit-learn's own small ones, which are always there, and the paper's, from a folder."""

from __future__ import annotations

import difflib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nasbot._files import file_errors
from nasbot.errors import DataError, FileError, OptionError

FOLDER_VARIABLE = "NASBOT_DATA"

# The paper's sets: the file in the folder.
TABLES = {
    "blog": "blog_feedback.npz",
    "indoor": "indoor_ujiindoorloc.npz",
    "naval": "naval_propulsion.npz",
    "news": "news_popularity.npz",
    "protein": "protein_casp.npz",
    "slice-sample": "slice_sample_only.npz",
}
NOT_HEARD = 100  # of an access point, in "indoor"; weaker than the weakest that was heard says the same as a number
WEAKER_THAN_ALL = -105
CIFAR = "cifar10"
CIFAR_BATCHES = ("train1", "train2", "train3", "train4", "train5", "test")  # the fifth validates, as in the paper
CIFAR_BATCH = 10_000


def _digits_images() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images.astype(np.float32), digits.target


def _bundled(loader: str) -> Callable[[], tuple[Any, Any]]:
    def load() -> tuple[Any, Any]:
        import sklearn.datasets

        found = getattr(sklearn.datasets, loader)(as_frame=True)
        target = found.target
        names = getattr(found, "target_names", None)
        if names is not None and hasattr(target, "name") and target.dtype.kind in "iu":
            target = target.map(dict(enumerate(map(str, names))))  # people's names for the classes
        return found.data, target

    return load


BUNDLED: dict[str, Callable[[], tuple[Any, Any]]] = {
    "breast-cancer": _bundled("load_breast_cancer"),
    "diabetes": _bundled("load_diabetes"),
    "digits": _bundled("load_digits"),
    "digits-images": _digits_images,
    "iris": _bundled("load_iris"),
    "linnerud": _bundled("load_linnerud"),
    "wine": _bundled("load_wine"),
}
NAMES = (*BUNDLED, *TABLES, CIFAR)


def load(name: str, folder: str | Path | None = None) -> tuple[Any, Any, dict[str, Any]]:
    """Inputs, target, and options of ``dataset_of`` that belong to the set. Raises OptionError for unknown names."""
    if name in BUNDLED:
        return *BUNDLED[name](), {}
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise OptionError(f"data: there is no set named {name[:60]!r}{hint} Known are {', '.join(NAMES)}")
    place = _folder(name, folder)
    if name == CIFAR:
        return _cifar(place / CIFAR)
    arrays = _arrays(place / TABLES[name])
    X, y = arrays["X"], arrays["y"]
    if name == "indoor":
        X = np.where(X == NOT_HEARD, np.int16(WEAKER_THAN_ALL), X.astype(np.int16))
    return X.astype(np.float32), y.astype(np.float64), {"task": "regression"}


def _folder(name: str, folder: str | Path | None) -> Path:
    given = folder or os.environ.get(FOLDER_VARIABLE)
    if not given:
        raise OptionError(f"data: {name!r} is read from a folder; name it with --folder, or {FOLDER_VARIABLE} names it")
    place = Path(given)
    if not place.is_dir():
        raise FileError(f"{place}: no such folder (of the data set {name!r})")
    return place


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with file_errors(f"{path}: cannot be read"):
        try:
            with np.load(path, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise DataError(f"{path}: not an NPZ file: {str(error)[:120]}") from None


def _cifar(place: Path) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """All 60,000 images, divided as in the paper: four batches, the fifth, the official test set."""
    n = CIFAR_BATCH * len(CIFAR_BATCHES)
    images, labels = np.empty((n, 3, 32, 32), dtype=np.uint8), np.empty(n, dtype=np.int64)
    for i, batch in enumerate(CIFAR_BATCHES):
        arrays = _arrays(place / f"{batch}.npz")
        rows = slice(i * CIFAR_BATCH, (i + 1) * CIFAR_BATCH)
        images[rows], labels[rows] = decoded(arrays["r"]), arrays["y"]
    parts = np.split(np.arange(n), [4 * CIFAR_BATCH, 5 * CIFAR_BATCH])
    return images, labels, {"indices": parts, "channels_last": False}


def decoded(differences: np.ndarray) -> np.ndarray:
    """Images (n, 3, height, width) from the planes R-G, G, B-G, each stored as differences along both axes mod 256."""
    planes = np.cumsum(np.cumsum(differences, axis=2, dtype=np.uint8), axis=3, dtype=np.uint8)
    green = planes[1]
    return np.stack([planes[0] + green, green, planes[2] + green], axis=1)

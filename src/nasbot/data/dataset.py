"""From people's data to what networks see: divided, prepared, and checked on the way.

``dataset_of`` takes what people have in hand, ``read_dataset`` what they have in files, ``named_dataset`` the sets that
come with scikit-learn and those of the paper.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nasbot._rng import checked_seed
from nasbot.data.dates import instants_of
from nasbot.data.parts import Dataset, Part, check_size
from nasbot.data.preprocessing import Images, NumberTarget, Preprocessing, Table, channels_first
from nasbot.data.splitting import checked_indices, checked_shares, split_groups, split_rows, split_time
from nasbot.data.tables import array_of, as_pandas, check_column, columns_of, frame_of
from nasbot.data.targets import checked_target, inferred_task, labelled, target_of
from nasbot.data.weighting import WEIGHT, class_weights_of, sample_weights_of
from nasbot.errors import DataError, OptionError

__all__ = [
    "SPLIT",
    "Dataset",
    "Part",
    "Preprocessing",
    "dataset_of",
    "named_dataset",
    "read_dataset",
]

SPLIT = (0.6, 0.2, 0.2)
CHANNELS = (1, 3, 4)
LONGEST_SIDE = 8  # times the shorter one, from which an array of three axes is no stack of images


# -- from what people have in hand -------------------------------------------------------------------------------------


def dataset_of(
    X: Any,
    y: Any = None,
    *,
    task: str | None = None,
    seed: int = 0,
    split: Sequence[float] = SPLIT,
    indices: Sequence[np.ndarray] | None = None,
    groups: Any = None,
    time: Any = None,
    sample_weight: Any = None,
    class_weight: str | Mapping[Any, float] | None = None,
    drop: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    drop_unlabelled: bool = False,
    channels_last: bool | None = None,
    name: str = "data",
) -> Dataset:
    """Prepare arrays, data frames, tensors, lists or a torch dataset.

    X is a table (rows, columns) or images (n, height, width[, channels]). y has a value for each row, or is the name of
    a column of X. ``task`` is "regression" or "classification", inferred where None. Rows are divided by ``split``,
    shuffled by ``seed``, each class alike; ``indices`` gives the three parts' row numbers instead. With ``groups``, a
    column of X or a value for each row, rows of one group stay together, and the column is no input; with ``time`` the
    first rows train and the last test. ``sample_weight``, a column of X or a number for each row, says how much a row
    counts in the loss and in metrics, and the column is no input; ``class_weight`` how much a row of each class counts
    in the loss: a table, or "balanced" for all classes alike. ``drop`` leaves columns out, ``kinds``
    says what columns are, {"zip": "category"}: number, category or date. Rows without a target are refused, unless
    ``drop_unlabelled``. ``channels_last`` is needed where the shape of the images does not tell.

    Raises DataError for data that cannot be learned from, OptionError for options that cannot be meant.
    """
    checked_seed(seed)
    shares = checked_shares(split)
    if y is None:
        X, y = _from_torch(X)
    raw, target, names = _inputs_and_target(as_pandas(X), as_pandas(y))
    if drop_unlabelled:
        known = labelled(target)
        raw, target = _rows(raw, known), _rows(array_of(target) if isinstance(target, list | tuple) else target, known)
        groups, time, sample_weight = (_kept_rows(given, known) for given in (groups, time, sample_weight))
        indices = None if indices is None else [np.flatnonzero(np.isin(known, part)) for part in indices]
    n = len(raw)
    values = checked_target(target)
    if len(values) != n:
        raise DataError(f"target: expected one value for each of {n:,} rows, got {len(values):,}")
    classified = (task or inferred_task(values)) == "classification" and values.ndim == 1
    labels = np.unique(values.astype(str), return_inverse=True)[1] if classified else None
    if sum(given is not None for given in (indices, groups, time)) > 1:
        raise OptionError("expected at most one of indices, groups and time: each divides the rows")
    drop = (*drop, *(col for col in (groups, sample_weight) if isinstance(col, str) and col not in drop))
    if groups is not None:
        rows = split_groups(_values_by_row(raw, groups, "groups").to_numpy(), shares, seed=seed)
    elif time is not None:
        rows = split_time(instants_of(_values_by_row(raw, time, "time")), shares)
    elif indices is not None:
        rows = checked_indices(indices, n)
    else:
        rows = split_rows(n, shares, seed=seed, classes=labels)
    what = target_of(target, rows[0], task=task, names=names)
    inputs: Table | Images
    if isinstance(raw, np.ndarray):
        if kinds:
            raise OptionError("as: images have no columns; expected a table")
        if isinstance(what, NumberTarget):
            raise DataError(
                "images: networks for images predict classes; to predict numbers from them, hand in a table: "
                "X.reshape(len(X), -1)"
            )
        inputs = _images_of(raw, rows[0], channels_last=channels_last)
    else:
        inputs = Table(columns_of(raw, rows[0], drop=drop, kinds=kinds))
    check_size(n, inputs.shape)
    prepared = Preprocessing(inputs, what)
    targets = what.prepared(values)
    counts = None if sample_weight is None else sample_weights_of(_values_by_row(raw, sample_weight, WEIGHT), rows)
    train, valid, test = (
        Part(inputs.prepared(_rows(raw, chosen)), targets[chosen], None if counts is None else counts[chosen])
        for chosen in rows
    )
    by_class = None if class_weight is None else class_weights_of(class_weight, what, train.y, train.weights)
    is_random = groups is None and time is None and indices is None
    return Dataset(_kind(prepared), name, train, valid, test, what.n_outputs, prepared, by_class, is_random)


def read_dataset(
    path: str | Path,
    target: str | Sequence[str] | None = None,
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    image_size: int | None = None,
    **options: Any,
) -> Dataset:
    """Prepare a file: CSV, Excel, JSON lines, Parquet, Feather, NPZ, or a folder of images, a folder for each class.

    ``target`` names the column (or several), or the array of an NPZ file ("y" if not given). ``valid`` and ``test``
    are files with rows for validation and test; without ``valid`` validation rows are taken from ``path``. A folder
    of images may be divided into ``train``, ``val`` and ``test``; ``image_size`` brings its images to one size.
    Further options as of ``dataset_of``.
    """
    from nasbot.data.files import read, read_images, read_parts  # pandas and pillow

    if Path(path).is_dir() and target is None and valid is None and test is None:
        shares, seed = options.get("split", SPLIT), options.get("seed", 0)
        images, labels, rows = read_images(Path(path), size=image_size, shares=shares, seed=seed)
        divided = {} if rows is None else {"indices": rows}
        return dataset_of(images, labels, **{"name": Path(path).resolve().name, **options, **divided})
    if image_size is not None:
        raise OptionError(f"image_size: {path} is no folder of images, whose size it would be")
    if valid is None and test is None:
        X, y, name = read(Path(path), target)
        return dataset_of(X, y, **{"name": name, **options})
    if any(options.get(name) is not None for name in ("indices", "groups", "time")):
        raise OptionError("valid and test files divide the rows; expected no indices, groups or time beside them")
    X, y, name, indices = read_parts(Path(path), target, valid, test, options)
    return dataset_of(X, y, **{"name": name, **options, "indices": indices})


def named_dataset(name: str, *, folder: str | Path | None = None, **options: Any) -> Dataset:
    """A set that comes with scikit-learn ("digits", "diabetes", …), or one of the paper's from its folder.

    Further options as of ``dataset_of``.
    """
    from nasbot.data.named import load  # scikit-learn

    X, y, given = load(name, folder)
    return dataset_of(X, y, **{"name": name, **given, **options})


# -- inside ------------------------------------------------------------------------------------------------------------


def _inputs_and_target(X: Any, y: Any) -> tuple[Any, Any, tuple[str, ...]]:
    """Inputs as a frame or as an array of images, the target, and what it is called."""
    if isinstance(y, list | tuple) and hasattr(X, "columns") and len(y) != len(X) and set(y) <= set(X.columns):
        return frame_of(X).drop(columns=list(y)), X[list(y)], tuple(y)
    if isinstance(y, str):
        frame = frame_of(X)
        check_column(y, list(frame.columns), "target")
        return frame.drop(columns=[y]), frame[y], (y,)
    names = _names(y)
    if not hasattr(X, "columns"):  # not a data frame
        array = array_of(X)
        if array.ndim in (3, 4):
            if array.dtype.kind not in "biuf":
                raise DataError(f"images: expected numbers, got {array.dtype}")
            return array, y, names
        X = array
    return frame_of(X), y, names


def _values_by_row(raw: Any, given: Any, what: str) -> Any:
    """A series: the column of this name, or the values themselves, one for each row and no gaps."""
    import pandas as pd

    if isinstance(given, str):
        if isinstance(raw, np.ndarray):
            raise OptionError(f"{what}: images have no columns; expected a value for each image")
        check_column(given, list(raw.columns), what)
        given = raw[given]
    series = pd.Series(as_pandas(given)).reset_index(drop=True)
    if len(series) != len(raw):
        raise DataError(f"{what}: expected one value for each of {len(raw):,} rows, got {len(series):,}")
    if gaps := int(series.isna().sum()):
        raise DataError(f"{what}: {gaps:,} of {len(series):,} rows have no value; remove these rows first")
    return series


def _names(y: Any) -> tuple[str, ...]:
    if hasattr(y, "columns"):
        return tuple(str(column) for column in y.columns)
    label = getattr(y, "name", None)
    return (str(label) if isinstance(label, str) else "y",)


def _from_torch(X: Any) -> tuple[Any, Any]:
    """Inputs and target of a torch dataset."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(X, torch.utils.data.Dataset):
        raise DataError("target: nothing is said about what to predict; give y, or the name of its column")
    if isinstance(X, torch.utils.data.TensorDataset):
        if len(X.tensors) != 2:
            raise DataError(f"torch dataset: expected two tensors, inputs and target, got {len(X.tensors)}")
        inputs, target = X.tensors
        return inputs, target
    if not hasattr(X, "__len__"):
        raise DataError("torch dataset: expected one of known length; collect its items first")
    pairs = [X[i] for i in range(len(X))]
    if not pairs or any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs):
        raise DataError("torch dataset: expected items (input, target)")
    try:
        return np.stack([np.asarray(x) for x, _ in pairs]), np.asarray([np.asarray(y).item() for _, y in pairs])
    except (TypeError, ValueError) as error:
        raise DataError(f"torch dataset: expected inputs of one shape, one target each: {str(error)[:120]}") from None


def _images_of(images: np.ndarray, train: np.ndarray, *, channels_last: bool | None) -> Images:
    _check_no_sequences(images)
    last = _channels_last(images, channels_last)
    first = channels_first(images, channels_last=last)
    shape = first.shape[1:]
    if shape[0] not in CHANNELS:
        raise DataError(f"images: expected 1, 3 or 4 channels, got {shape[0]} in an array of shape {images.shape}")
    if min(shape[1:]) < 4:
        raise DataError(f"images: expected at least 4 x 4 pixels, got {shape[1]} x {shape[2]}")
    if images.dtype.kind == "f" and not np.isfinite(images).all():
        raise DataError("images: values that are not finite numbers; replace them first")
    part = first[train]
    centres = part.mean(axis=(0, 2, 3), dtype=np.float64)
    scales = part.std(axis=(0, 2, 3), dtype=np.float64)
    if not scales.any():
        raise DataError("images: all pixels of the training images are alike; there is nothing to learn from")
    scales = np.where(scales > 0, scales, 1.0)
    return Images((shape[0], shape[1], shape[2]), last, tuple(map(float, centres)), tuple(map(float, scales)))


def _check_no_sequences(images: np.ndarray) -> None:
    """DataError for (n, length, channels), which would pass for grey images of an odd shape."""
    if images.ndim != 3:
        return
    short, long = sorted(images.shape[1:])
    if short < 4 or long >= LONGEST_SIDE * short:
        raise DataError(
            f"X of shape {images.shape} looks like sequences (n, length, channels), which nasbot does not learn; "
            "X.reshape(len(X), -1) makes a table of them, and grey images are at least 4 x 4 and less oblong"
        )


def _channels_last(images: np.ndarray, said: bool | None) -> bool:
    if images.ndim == 3:
        return True
    if said is not None:
        return bool(said)
    first, last = images.shape[1] in CHANNELS, images.shape[3] in CHANNELS
    if first and last:  # sides of fewer than 4 pixels are refused
        first, last = min(images.shape[2:]) >= 4, min(images.shape[1:3]) >= 4
    if first == last:
        raise DataError(
            f"images: the shape {images.shape} does not tell which axis holds the channels; "
            "say channels_last=True or False"
        )
    return last


def _rows(raw: Any, chosen: np.ndarray) -> Any:
    return raw.iloc[chosen] if hasattr(raw, "iloc") else array_of(raw)[chosen]


def _kept_rows(given: Any, known: np.ndarray) -> Any:
    """Values for each row without those of rows that are left out; names of columns as they are."""
    return given if given is None or isinstance(given, str) else _rows(as_pandas(given), known)


def _kind(prepared: Preprocessing) -> str:
    if isinstance(prepared.inputs, Images):
        return "cnn"
    return "mlp-class" if prepared.is_classification else "mlp-reg"

"""Data as networks see them: three parts of numbers, how they were prepared, and a folder to share them from.

``dataset_of`` takes what people have in hand, ``read_dataset`` what they have in files, ``named_dataset`` the sets that
come with scikit-learn and those of the paper.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nasbot import _json
from nasbot._files import file_errors, write_whole
from nasbot._rng import checked_seed
from nasbot._typing import Json
from nasbot.data.columns import CategoryColumn, DateColumn, DroppedColumn, NumberColumn
from nasbot.data.dates import instants_of
from nasbot.data.preparations import check_preparation, preparation_of
from nasbot.data.preprocessing import ClassTarget, Images, NumberTarget, Preprocessing, Table, channels_first
from nasbot.data.splitting import checked_indices, checked_shares, split_groups, split_rows, split_time
from nasbot.data.tables import array_of, as_pandas, check_column, columns_of, frame_of, listed
from nasbot.data.targets import checked_target, inferred_task, labelled, target_of
from nasbot.data.weighting import WEIGHT, class_weights_of, sample_weights_of, weights_lines
from nasbot.errors import CodecError, DataError, FileError, OptionError, StorageError

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
FORMAT = 1
PARTS = ("train", "valid", "test")
OPTIONAL = {"sample_weights", "class_weights", "is_divided_at_random"}  # what is said only of data that are so
MAX_BYTES = 8 * 2**30  # of prepared inputs
CHANNELS = (1, 3, 4)
LONGEST_SIDE = 8  # times the shorter one, from which an array of three axes is no stack of images


@dataclass(frozen=True)
class Part:
    """One share of the data, prepared: what networks see."""

    X: np.ndarray  # float32, (n, features) or (n, channels, height, width)
    y: np.ndarray  # float32 (n, outputs), standardised; or int64 (n,), classes by number
    weights: np.ndarray | None = None  # float32 (n,): how much each row counts; None: all alike

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class Dataset:
    """Training, validation and test part, and how to prepare more of the same. ``test`` may be empty."""

    kind: str  # of network: "mlp-reg", "mlp-class" or "cnn"
    name: str
    train: Part
    valid: Part
    test: Part
    n_outputs: int  # numbers to predict, or classes
    preprocessing: Preprocessing
    class_weights: tuple[float, ...] | None = None  # how much a row of each class counts in the loss; None: all alike
    # Else by group, by time or by file: then rows of the parts are not to be mixed, as cross-validation would.
    is_divided_at_random: bool = True

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one row: (features,) or (channels, height, width)."""
        return tuple(self.train.X.shape[1:])

    @property
    def has_images(self) -> bool:
        """Whether rows are images rather than vectors."""
        return len(self.input_shape) == 3

    @property
    def is_classification(self) -> bool:
        """Whether classes are predicted."""
        return self.preprocessing.is_classification

    @cached_property
    def fingerprint(self) -> str:
        """Of all content: equal for equal data, prepared and divided alike. The name does not count.

        Neither do the limits of predictions: they follow from the rows, and older studies do not know them.
        """
        target = self.preprocessing.target
        if isinstance(target, NumberTarget) and target.limits:
            return replace(
                self, preprocessing=replace(self.preprocessing, target=replace(target, limits=()))
            ).fingerprint
        digest = hashlib.sha256(json.dumps(self._description(), sort_keys=True).encode())
        for part in (self.train, self.valid, self.test):
            for array in (part.X, part.y, *(() if part.weights is None else (part.weights,))):
                digest.update(f"{array.dtype.str}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def summary(self) -> list[str]:
        """What was understood of the data, for people to check: a few lines."""
        sizes = ", ".join(f"{len(getattr(self, part)):,} {part}" for part in PARTS)
        lines = [f"{self.name}: {sizes} rows", _inputs_line(self.preprocessing), _target_line(self)]
        return [*lines, *weights_lines(self)]

    @cached_property
    def rate_scale(self) -> tuple[float, ...] | None:
        """Mean over deviation of each target; None where one of the training rows is negative, or there are classes.

        A standardised target y is c (r - 1), where c is this and r is the target as a multiple of its mean.
        """
        target = self.preprocessing.target
        if not isinstance(target, NumberTarget):
            return None
        ratios = np.asarray(target.centres) / np.asarray(target.scales)
        lowest = self.train.y.min(axis=0) + ratios
        is_rate = bool((ratios > 0).all() and (lowest > -1e-5 * (1 + ratios)).all())
        return tuple(map(float, ratios)) if is_rate else None

    @property
    def is_heavy_tailed(self) -> bool:
        """Whether no target is negative and each spreads by more than its mean, as counts and amounts of money do."""
        return self.rate_scale is not None and max(self.rate_scale) < 1

    def loss_weights(self, part: Part) -> np.ndarray | None:
        """How much each row counts in a mean loss, its class counted in: (n,), 1 on average over the training rows."""
        if part.weights is None and self.class_weights is None:
            return None
        scale = float(self._counted(self.train).mean())
        return np.asarray(self._counted(part) / scale, dtype=np.float32)

    def _counted(self, part: Part) -> np.ndarray:
        each = np.ones(len(part)) if part.weights is None else part.weights.astype(np.float64)
        return each if self.class_weights is None else each * np.asarray(self.class_weights)[part.y]

    def prepared_as(self, name: str) -> Dataset:
        """The same rows with their numbers prepared another way, fitted on the training rows.

        Args:
            name: one of ``nasbot.data.preparations.PREPARATIONS``; "standard" is the data as they are.
        Raises:
            OptionError: for another name, for images, and for data that are prepared another way already.
        """
        check_preparation(name)
        before = self.preprocessing
        if name == before.preparation_name:
            return self
        if before.preparation is not None or not isinstance(before.inputs, Table):
            what = "images" if isinstance(before.inputs, Images) else f"inputs prepared as {before.preparation_name!r}"
            raise OptionError(
                f"preparation: expected a table of standardised numbers to prepare as {name!r}, got {what}"
            )
        preparation = preparation_of(name, self.train.X, before.inputs.number_inputs)
        assert preparation is not None
        _check_size(sum(len(part) for part in (self.train, self.valid, self.test)), preparation.shape)
        train, valid, test = (replace(p, X=preparation.applied(p.X)) for p in (self.train, self.valid, self.test))
        return replace(
            self, train=train, valid=valid, test=test, preprocessing=replace(before, preparation=preparation)
        )

    # -- in a folder ---------------------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Arrays and JSON in a folder, which is made; one that holds the same data already is left as it is.

        Raises FileError where the folder holds other data or cannot be written.
        """
        place = Path(folder)
        description = place / "dataset.json"
        with file_errors(f"cannot write the data to {place}"):
            if description.exists():
                if Dataset.load(place).fingerprint == self.fingerprint:
                    return
                raise FileError(f"{place} holds another data set; expected an empty folder or the same data")
            place.mkdir(parents=True, exist_ok=True)
            for name in PARTS:
                part: Part = getattr(self, name)
                _save_array(place / f"{name}_X.npy", part.X)
                _save_array(place / f"{name}_y.npy", part.y)
                if part.weights is not None:
                    _save_array(place / f"{name}_weights.npy", part.weights)
            record = {"format": FORMAT, "name": self.name, "fingerprint": self.fingerprint, **self._description()}
            record |= {} if self.is_divided_at_random else {"is_divided_at_random": False}
            # Last, and whole or not at all: what lacks it is no data set.
            write_whole(description, json.dumps(record, allow_nan=False).encode())

    @classmethod
    def load(cls, folder: str | Path) -> Dataset:
        """What ``save`` wrote, as memory maps: several processes share the pages, and nothing is copied."""
        place = Path(folder)
        try:
            with file_errors(f"{place}: no data set there"):
                record = _json.parsed((place / "dataset.json").read_bytes(), str(place / "dataset.json"))
        except CodecError as error:
            raise StorageError(str(error)) from None
        expected = {"format", "name", "fingerprint", "kind", "n_outputs", "preprocessing"}
        if not isinstance(record, Mapping) or set(record) - OPTIONAL != expected or record["format"] != FORMAT:
            raise StorageError(f"{place / 'dataset.json'}: not a data set of format {FORMAT}")
        has_weights = record.get("sample_weights", False) is True
        train, valid, test = (_loaded_part(place, name, has_weights) for name in PARTS)
        by_class = record.get("class_weights")
        loaded = cls(
            str(record["kind"]),
            str(record["name"]),
            train,
            valid,
            test,
            n_outputs=int(record["n_outputs"]),
            preprocessing=Preprocessing.from_dict(record["preprocessing"]),
            class_weights=None if by_class is None else _json.numbers(by_class, "class_weights"),
            is_divided_at_random=record.get("is_divided_at_random", True) is True,
        )
        if by_class is not None and len(by_class) != loaded.n_outputs:
            raise StorageError(f"{place}: {len(by_class)} class weights for {loaded.n_outputs} classes")
        if any(part.X.shape[1:] != loaded.preprocessing.input_shape for part in (train, valid, test)):
            raise StorageError(f"{place}: arrays and description do not belong together")
        loaded.__dict__["fingerprint"] = str(record["fingerprint"])  # cached: nothing is read to know it
        return loaded

    def _description(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "n_outputs": self.n_outputs,
            "preprocessing": self.preprocessing.to_dict(),
            **({} if self.train.weights is None else {"sample_weights": True}),
            **({} if self.class_weights is None else {"class_weights": list(self.class_weights)}),
        }


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
    _check_size(n, inputs.shape)
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


def _check_size(n: int, shape: tuple[int, ...]) -> None:
    needed = 4 * n * int(np.prod(shape))
    if needed > MAX_BYTES:
        raise DataError(
            f"{n:,} rows of {int(np.prod(shape)):,} inputs need {needed / 2**30:.1f} GiB of memory, more than "
            f"{MAX_BYTES / 2**30:g}; take a sample of the rows, or smaller images"
        )


def _inputs_line(prepared: Preprocessing) -> str:
    if isinstance(prepared.inputs, Images):
        channels, height, width = prepared.inputs.shape
        return f"inputs: images of {height} x {width}, {channels} channel{'s' * (channels != 1)}"
    columns = prepared.inputs.columns
    numbers = sum(isinstance(column, NumberColumn) for column in columns)
    categories = sum(isinstance(column, CategoryColumn) for column in columns)
    dates = sum(isinstance(column, DateColumn) for column in columns)
    gaps = sum(not isinstance(column, DroppedColumn) and column.marks_gaps for column in columns)
    dropped = [f"{column.name} ({column.reason})" for column in columns if isinstance(column, DroppedColumn)]
    parts = [
        f"{n} {what}" for n, what in ((numbers, "of numbers"), (categories, "of categories"), (dates, "of dates")) if n
    ]
    line = f"inputs: {len(columns)} columns, {', '.join(parts[:-1])}{' and ' * (len(parts) > 1)}{parts[-1]}"
    if gaps:
        line += f", {gaps} with gaps"
    if dropped:
        line += f"; not used: {', '.join(dropped[:8])}{' …' * (len(dropped) > 8)}"
    return line


def _target_line(data: Dataset) -> str:
    target = data.preprocessing.target
    if isinstance(target, ClassTarget):
        names = listed([str(value) for value in target.classes], most=6)
        return f"target: {target.name}, {target.n_outputs} classes ({names}): classification"
    what = "a number" if target.n_outputs == 1 else f"{target.n_outputs} numbers"
    return f"target: {', '.join(target.names)}, {what}: regression"


def _save_array(path: Path, array: np.ndarray) -> None:
    write_whole(path, lambda file: np.save(file, np.ascontiguousarray(array), allow_pickle=False))


def stored_array(path: str | Path, *, mapped: bool = False) -> Any:
    """The array in a file, in memory or as a map of the file; FileError, or StorageError where it is none."""
    with file_errors(f"{path}: cannot be read"):
        try:
            return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise StorageError(f"{path}: not an array: {str(error)[:120]}") from None


def _loaded_part(place: Path, name: str, has_weights: bool) -> Part:
    arrays = []
    for what in ("X", "y", *(("weights",) if has_weights else ())):
        arrays.append(stored_array(place / f"{name}_{what}.npy", mapped=True))
    X, y = arrays[:2]
    weights = arrays[2] if has_weights else None
    if weights is not None and (weights.dtype != np.float32 or weights.shape != (len(X),)):
        raise StorageError(f"{place}: the weights of {name} do not belong to its rows")
    if X.dtype != np.float32 or y.dtype not in (np.dtype(np.float32), np.dtype(np.int64)) or len(X) != len(y):
        raise StorageError(f"{place}: the arrays of {name} do not belong together")
    return Part(X, y, weights)

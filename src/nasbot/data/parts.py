"""Data as networks see them: three parts of numbers, how they were prepared, and a folder to share them from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nasbot import _json
from nasbot._files import file_errors, write_whole
from nasbot._typing import Json
from nasbot.data.columns import CategoryColumn, DateColumn, DroppedColumn, NumberColumn
from nasbot.data.preparations import check_preparation, preparation_of
from nasbot.data.preprocessing import ClassTarget, Images, NumberTarget, Preprocessing, Table
from nasbot.data.tables import listed
from nasbot.data.weighting import weights_lines
from nasbot.errors import CodecError, DataError, FileError, OptionError, StorageError

FORMAT = 1
PARTS = ("train", "valid", "test")
OPTIONAL = {"sample_weights", "class_weights", "is_divided_at_random"}  # what is said only of data that are so
MAX_BYTES = 8 * 2**30  # of prepared inputs
NO_RATES = 'loss: expected a target that is nowhere negative for "poisson"; some of its values are'


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
        check_size(sum(len(part) for part in (self.train, self.valid, self.test)), preparation.shape)
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


def check_size(n: int, shape: tuple[int, ...]) -> None:
    """DataError where so many prepared rows are too many for memory."""
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

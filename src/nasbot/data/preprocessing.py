"""From people's values to what networks see, and back: frozen, strict JSON, made once from the training rows.

Numbers are standardised and their gaps filled with the median, with a column that says where a gap was; categories
become one column each; images are standardised per channel; a number to predict is standardised, a class becomes its
index. Nothing here is pickled, and reading a description never runs code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nasbot import _json
from nasbot._typing import Json
from nasbot.data.columns import CategoryColumn, Column, DateColumn, DroppedColumn, NumberColumn
from nasbot.data.dates import ORDERS, PARTS, parts_of
from nasbot.data.preparations import STANDARD, Preparation
from nasbot.data.tables import categories_of, frame_of, numbers_of
from nasbot.errors import CodecError, DataError

if TYPE_CHECKING:
    import pandas as pd

VERSION = 1
VERSION_WITH_PREPARATION = 2
LIMITED = "limited number"  # the form of a target whose predictions have limits
COARSE = 1e-4  # of a target's scale: a step of single precision that may not be seen
Class: TypeAlias = "str | bool | int | float"
FORMS: Mapping[type[Column], str] = {
    NumberColumn: "number",
    CategoryColumn: "category",
    DateColumn: "date",
    DroppedColumn: "dropped",
}


@dataclass(frozen=True)
class Table:
    """Columns in the order of the raw table."""

    columns: tuple[Column, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row as a network sees it."""
        return (sum(column.width for column in self.columns),)

    @property
    def number_inputs(self) -> tuple[int, ...]:
        """Which inputs of the network are standardised numbers."""
        ends = np.cumsum([column.width for column in self.columns])
        return tuple(
            int(end) - column.width
            for column, end in zip(self.columns, ends, strict=True)
            if isinstance(column, NumberColumn)
        )

    def prepared(self, raw: Any) -> np.ndarray:
        """The rows as float32. A data frame is read by column name, an array by position.

        Raises DataError where a column is missing or holds what it did not hold in the training rows.
        """
        names = [column.name for column in self.columns]
        unused = [column.name for column in self.columns if isinstance(column, DroppedColumn)]
        frame = frame_of(raw, names=names, optional=unused)
        prepared = np.zeros((len(frame), *self.shape), dtype=np.float32)
        at = 0
        for i, column in enumerate(self.columns):
            if column.width:
                _fill(prepared[:, at : at + column.width], column, frame.iloc[:, i])
                at += column.width
        return prepared

    def to_dict(self) -> dict[str, Json]:
        """As JSON."""
        return {"form": "table", "columns": [{"form": FORMS[type(c)], **_json.record_of(c)} for c in self.columns]}


@dataclass(frozen=True)
class Images:
    """Images of one size; ``channels_last`` says how the raw arrays lie, networks see (channels, height, width)."""

    shape: tuple[int, int, int]
    channels_last: bool
    centres: tuple[float, ...]
    scales: tuple[float, ...]

    def prepared(self, raw: Any) -> np.ndarray:
        """The images as float32, standardised per channel; raises DataError for another size."""
        images = channels_first(np.asarray(raw), channels_last=self.channels_last)
        if images.shape[1:] != self.shape:
            raise DataError(f"images: expected {_size(self.shape)}, got {_size(images.shape[1:])}")
        prepared = np.array(images, dtype=np.float32)
        prepared -= np.asarray(self.centres, dtype=np.float32)[:, None, None]
        prepared /= np.asarray(self.scales, dtype=np.float32)[:, None, None]
        return prepared

    def to_dict(self) -> dict[str, Json]:
        """As JSON."""
        return {"form": "images", **_json.record_of(self)}


@dataclass(frozen=True)
class NumberTarget:
    """One or several numbers to predict, standardised.

    ``limits`` are the lowest and highest prediction of each: a network may say anything of a row unlike all others.
    """

    names: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    limits: tuple[tuple[float, float], ...] = ()  # none: of data prepared by an older nasbot

    @property
    def n_outputs(self) -> int:
        """How many numbers."""
        return len(self.names)

    def prepared(self, raw: Any) -> np.ndarray:
        """float32 (n, outputs), standardised."""
        values = np.asarray(raw, dtype=np.float64)
        values = values.reshape(len(values), -1)
        if values.shape[1] != self.n_outputs:
            raise DataError(f"target: expected {self.n_outputs} columns, got {values.shape[1]}")
        standardised = (values - np.asarray(self.centres)) / np.asarray(self.scales)
        return np.asarray(standardised, dtype=np.float32)

    def restored(self, outputs: np.ndarray) -> np.ndarray:
        """A network's outputs in people's units: (n,) for one number, (n, outputs) for several."""
        values: np.ndarray = np.asarray(outputs, dtype=np.float64) * np.asarray(self.scales) + np.asarray(self.centres)
        return values[:, 0] if self.n_outputs == 1 else values

    def predicted(self, outputs: np.ndarray) -> np.ndarray:
        """The same for predictions: within the limits."""
        return self.restored(np.clip(outputs, *self.standard_limits) if self.limits else outputs)

    @property
    def kept_as(self) -> type[np.floating[Any]]:
        """In which precision predictions are kept: double where steps of the single one are seen beside the scales.

        Of times in seconds, for instance: 1.7e9 has steps of 128 there.
        """
        steps = np.spacing(np.abs(np.asarray(self.centres)).astype(np.float32))
        return np.float64 if bool((steps > COARSE * np.asarray(self.scales)).any()) else np.float32

    @property
    def standard_limits(self) -> np.ndarray:
        """(2, outputs): lowest and highest outputs of a network; infinite where there are no limits."""
        limits = np.array(self.limits or [(-np.inf, np.inf)] * self.n_outputs)
        return np.asarray((limits.T - np.asarray(self.centres)) / np.asarray(self.scales))

    def to_dict(self) -> dict[str, Json]:
        """As JSON."""
        record = {"form": LIMITED if self.limits else "number", **_json.record_of(self)}
        if not self.limits:
            del record["limits"]
        return record


@dataclass(frozen=True)
class ClassTarget:
    """A class to predict, by its index in ``classes``."""

    name: str
    classes: tuple[Class, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """As of numbers, which may be several."""
        return (self.name,)

    @property
    def n_outputs(self) -> int:
        """How many classes."""
        return len(self.classes)

    def prepared(self, raw: Any) -> np.ndarray:
        """int64 (n,); raises DataError for a class not seen before."""
        index = {_class_key(value): i for i, value in enumerate(self.classes)}
        given = np.asarray(raw, dtype=object).reshape(len(raw), -1)[:, 0]
        kinds = {type(value) for value in self.classes}
        as_text = kinds == {str}
        codes = np.empty(len(given), dtype=np.int64)
        for i, value in enumerate(given):
            known = index.get(_class_key(str(value) if as_text else value))
            if known is None:
                raise DataError(f"target {self.name!r}: class {str(value)[:40]!r} was not among those trained on")
            codes[i] = known
        return codes

    def restored(self, outputs: np.ndarray) -> np.ndarray:
        """The most probable class of each row of (log-)probabilities, as people call it."""
        best: np.ndarray = np.asarray(self.classes)[np.asarray(outputs).argmax(axis=1)]
        return best

    def predicted(self, outputs: np.ndarray) -> np.ndarray:
        """The same."""
        return self.restored(outputs)

    def to_dict(self) -> dict[str, Json]:
        """As JSON."""
        return {"form": "class", **_json.record_of(self)}


@dataclass(frozen=True)
class Preprocessing:
    """Both directions: raw inputs to X, raw target to y, a network's outputs to what people asked for."""

    inputs: Table | Images
    target: NumberTarget | ClassTarget
    preparation: Preparation | None = None  # the second step of numbers; None: standardised, and no more

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one row as networks see it."""
        return self.inputs.shape if self.preparation is None else self.preparation.shape

    @property
    def preparation_name(self) -> str:
        """How numbers are prepared: one of ``PREPARATIONS``."""
        return STANDARD if self.preparation is None else self.preparation.name

    @property
    def is_classification(self) -> bool:
        """Whether a class is predicted."""
        return isinstance(self.target, ClassTarget)

    @property
    def classes(self) -> tuple[Class, ...]:
        """The classes in the order of the network's outputs; none for numbers."""
        return self.target.classes if isinstance(self.target, ClassTarget) else ()

    def X(self, raw: Any) -> np.ndarray:
        """Raw rows or images as networks see them, float32."""
        prepared = self.inputs.prepared(raw)
        return prepared if self.preparation is None else self.preparation.applied(prepared)

    def y(self, raw: Any) -> np.ndarray:
        """A raw target as networks are trained on it."""
        return self.target.prepared(raw)

    def restored(self, outputs: np.ndarray) -> np.ndarray:
        """Values as networks are trained on them, (n, n_outputs), in people's units or as class names."""
        return self.target.restored(outputs)

    def predicted(self, outputs: np.ndarray) -> np.ndarray:
        """A network's outputs as predictions: the same, numbers within the limits of the target."""
        return self.target.predicted(outputs)

    def to_dict(self) -> dict[str, Json]:
        """As JSON; ``from_dict`` gives an equal value."""
        record: dict[str, Json] = {"version": VERSION, "inputs": self.inputs.to_dict(), "target": self.target.to_dict()}
        if self.preparation is None:
            return record
        return {**record, "version": VERSION_WITH_PREPARATION, "preparation": self.preparation.to_dict()}

    @classmethod
    def from_dict(cls, record: object) -> Preprocessing:
        """What ``to_dict`` wrote; raises CodecError, naming the place, for anything else."""
        version = record.get("version") if isinstance(record, Mapping) else VERSION
        if version == VERSION_WITH_PREPARATION:
            fields = _json.fields(record, "preprocessing", ("version", "inputs", "target", "preparation"))
            inputs, preparation = _inputs(fields["inputs"]), Preparation.from_dict(fields["preparation"])
            if inputs.shape != (preparation.n_inputs,):
                raise CodecError(f"preparation: expected {inputs.shape} inputs, got {preparation.n_inputs}")
            return cls(inputs, _target(fields["target"]), preparation)
        fields = _json.fields(record, "preprocessing", ("version", "inputs", "target"))
        if version != VERSION:
            raise CodecError(f"preprocessing: expected version {VERSION}, got {str(version)[:40]!r}")
        return cls(_inputs(fields["inputs"]), _target(fields["target"]))


# -- columns -----------------------------------------------------------------------------------------------------------


def _fill(out: np.ndarray, column: Column, series: pd.Series[Any]) -> None:
    if isinstance(column, NumberColumn):
        values = numbers_of(series)
        gaps = np.isnan(values)
        out[:, 0] = (np.where(gaps, column.fill, values) - column.centre) / column.scale
    elif isinstance(column, CategoryColumn):
        categories = categories_of(series, column.values)
        gaps = np.array([value is None for value in categories], dtype=bool)
        index = {value: i for i, value in enumerate(column.values)}
        codes = np.array([-1 if value is None else index.get(value, -1) for value in categories], dtype=np.int64)
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = 1.0
    elif isinstance(column, DateColumn):
        parts = parts_of(series, column.order, column.parts)
        gaps = np.isnan(parts[:, 0])
        out[:, : len(column.parts)] = np.where(gaps[:, None], 0.0, (parts - column.centres) / column.scales)
    else:
        return
    if column.marks_gaps:
        out[:, -1] = gaps


def channels_first(images: np.ndarray, *, channels_last: bool) -> np.ndarray:
    """A view of raw images as (n, channels, height, width); grey ones may lack the axis of channels."""
    if images.ndim == 3:
        return images[:, None]
    if images.ndim != 4:
        raise DataError(f"images: expected 3 or 4 axes (n, height, width, channels), got {images.ndim}")
    return np.moveaxis(images, -1, 1) if channels_last else images


def _size(shape: Sequence[int]) -> str:
    return f"{shape[0]} channel{'s' * (shape[0] != 1)} of {' x '.join(str(side) for side in shape[1:])}"


def _class_key(value: Any) -> tuple[str, Any]:
    """True, 1, 1.0 and "1": the numbers are one class, the text and the truth value are others."""
    if isinstance(value, bool | np.bool_):
        return "bool", bool(value)
    if isinstance(value, int | float | np.integer | np.floating):
        return "number", float(value)
    return "text", str(value)


# -- reading JSON ------------------------------------------------------------------------------------------------------


def _inputs(record: object) -> Table | Images:
    form = _json.form(record, "inputs", ("table", "images"))
    if form == "table":
        fields = _json.fields(record, "inputs", ("form", "columns"))
        return Table(
            tuple(_column(item, f"column {i}") for i, item in enumerate(_json.items(fields["columns"], "columns")))
        )
    images = _json.read_as(Images, record, "inputs", beside=("form",), shape=_shape, scales=_json.scales)
    if not len(images.centres) == len(images.scales) == images.shape[0]:
        raise CodecError(f"centres and scales: expected one for each of {images.shape[0]} channels")
    return images


def _shape(value: object, where: str) -> tuple[int, ...]:
    shape = tuple(_json.whole(side, where, at_least=1) for side in _json.items(value, where))
    if len(shape) != 3:
        raise CodecError(f"{where}: expected 3 numbers, got {len(shape)}")
    return shape


def _column(record: object, where: str) -> Column:
    form = _json.form(record, where, tuple(FORMS.values()))
    kind = next(kind for kind, name in FORMS.items() if name == form)
    column = _json.read_as(kind, record, where, beside=("form",), scale=_json.scale, scales=_json.scales)
    if isinstance(column, DateColumn):
        parts = column.parts
        if column.order not in ORDERS or not parts or not set(parts) <= set(PARTS):
            raise CodecError(f"{where}: expected an order among {', '.join(ORDERS)} and parts among {', '.join(PARTS)}")
        if not len(parts) == len(column.centres) == len(column.scales):
            raise CodecError(f"{where}: expected a centre and a scale for each of {len(parts)} parts")
    return column


def _target(record: object) -> NumberTarget | ClassTarget:
    form = _json.form(record, "target", ("number", LIMITED, "class"))
    if form == "class":
        target = _json.read_as(ClassTarget, record, "target", beside=("form",), classes=_classes)
        if len(target.classes) < 2 or len(set(map(_class_key, target.classes))) != len(target.classes):
            raise CodecError("target: expected at least 2 classes, all different")
        return target
    if form == "number":
        record = {**_json.fields(record, "target", ("form", "names", "centres", "scales")), "limits": []}
    numbers = _json.read_as(NumberTarget, record, "target", beside=("form",), scales=_json.scales, limits=_limits)
    if not numbers.names or not len(numbers.names) == len(numbers.centres) == len(numbers.scales):
        raise CodecError("target: expected as many centres and scales as names, and at least one")
    n = len(numbers.limits)
    if n != len(numbers.names) * (form == LIMITED):
        raise CodecError(f"limits: expected one pair for each of {len(numbers.names)} names, got {n}")
    return numbers


def _limits(value: object, where: str) -> tuple[tuple[float, ...], ...]:
    pairs = tuple(_json.numbers(pair, where) for pair in _json.items(value, where))
    for pair in pairs:
        if len(pair) != 2 or not pair[0] < pair[1]:
            raise CodecError(f"limits: expected pairs of ascending numbers, got {repr(pair)[:60]}")
    return pairs


def _classes(value: object, where: str) -> tuple[Class, ...]:
    return tuple(
        item if isinstance(item, str | bool | int) else _json.number(item, where) for item in _json.items(value, where)
    )

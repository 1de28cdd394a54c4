"""What an ONNX graph needs to take numbers or images as people have them, and to answer in their units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nasbot._typing import Json
from nasbot.data.columns import DroppedColumn, NumberColumn
from nasbot.data.preprocessing import Images, NumberTarget, Preprocessing
from nasbot.errors import OptionError
from nasbot.exporting.averaging import Averaging
from nasbot.exporting.lowering import INPUT
from nasbot.training.ensemble import Prepared

RAW, STANDARDISED = "raw", "raw.standardised"
PREDICTION, PROBABILITY = "prediction", "probability"


@dataclass(frozen=True)
class RawNumbers:
    """The nodes around those from ``x0`` to ``y``: what comes before and after them, and the graph's own ends."""

    before: list[Any]
    after: list[Any]
    constants: list[Any]
    input: Any
    output: Any
    metadata: Mapping[str, Json]

    @classmethod
    def of(cls, onnx: Any, preprocessing: Preprocessing | None, *, of_single: bool) -> RawNumbers:
        """Of a network that is fed what ``preprocessing`` makes; ``of_single``: all of it, an ensemble prepares itself.

        OptionError where some column is no number.
        """
        if preprocessing is None:
            raise OptionError("raw: this network has no preprocessing; expected a model of data")
        writer, inputs = _Writer(onnx), preprocessing.inputs
        to = STANDARDISED if of_single and preprocessing.preparation is not None else INPUT
        metadata: dict[str, Json] = {}
        if isinstance(inputs, Images):
            before, shape = writer.images(inputs, to), _raw_shape(inputs)
        else:
            columns = _numbers(inputs.columns)
            before, shape = writer.table(columns, to), [len(columns)]
            metadata["columns"] = [column.name for column in columns]
        if to == STANDARDISED:
            assert preprocessing.preparation is not None
            nodes = list(writer.prepared(Prepared(preprocessing.preparation), RAW + ".prepared"))
            for node in nodes:  # written for rows that are standardised already
                node.input[:] = [STANDARDISED if name == INPUT else name for name in node.input]
                node.output[:] = [INPUT if name == RAW + ".prepared" else name for name in node.output]
            before += nodes
        target = preprocessing.target
        kind = onnx.TensorProto.FLOAT if isinstance(inputs, Images) else onnx.TensorProto.DOUBLE
        value = onnx.helper.make_tensor_value_info
        if isinstance(target, NumberTarget):
            after = writer.numbers(target)
            output = value(PREDICTION, onnx.TensorProto.DOUBLE, ["n", target.n_outputs])
        else:
            after = [writer.make("Softmax", ["y"], [PROBABILITY], axis=1)]
            output = value(PROBABILITY, onnx.TensorProto.FLOAT, ["n", target.n_outputs])
        return cls(before, after, writer.constants, value(RAW, kind, ["n", *shape]), output, metadata)


class _Writer(Averaging):
    """Table columns and images to standardised rows, and outputs to people's units."""

    def table(self, columns: list[NumberColumn], to: str) -> list[Any]:
        """Gaps (NaN) are filled, all is standardised in double precision, marks of gaps stand behind their columns."""
        n, fields = len(columns), ("fill", "centre", "scale")
        values = {name: np.array([getattr(column, name) for column in columns], np.float64) for name in fields}
        fill, centre, scale = (self._constant(f"{RAW}.{name}", value) for name, value in values.items())
        order = [place for i, column in enumerate(columns) for place in ((i, n + i) if column.marks_gaps else (i,))]
        places = self._constant(RAW + ".order", np.array(order, np.int64))
        return [
            self.make("IsNaN", [RAW], [RAW + ".gaps"]),
            self.make("Where", [RAW + ".gaps", fill, RAW], [RAW + ".filled"]),
            self.make("Sub", [RAW + ".filled", centre], [RAW + ".distance"]),
            self.make("Div", [RAW + ".distance", scale], [RAW + ".exact"]),
            self.make("Cast", [RAW + ".exact"], [RAW + ".numbers"], to=FLOAT),
            self.make("Cast", [RAW + ".gaps"], [RAW + ".marks"], to=FLOAT),
            self.make("Concat", [RAW + ".numbers", RAW + ".marks"], [RAW + ".both"], axis=1),
            self.make("Gather", [RAW + ".both", places], [to], axis=1),
        ]

    def images(self, images: Images, to: str) -> list[Any]:
        """Channels first, each standardised."""
        nodes, at = [], RAW
        if images.channels_last:
            nodes, at = [self.make("Transpose", [RAW], [RAW + ".first"], perm=[0, 3, 1, 2])], RAW + ".first"
        centre, scale = (np.array(v, np.float32)[:, None, None] for v in (images.centres, images.scales))
        return [
            *nodes,
            self.make("Sub", [at, self._constant(RAW + ".centre", centre)], [RAW + ".distance"]),
            self.make("Div", [RAW + ".distance", self._constant(RAW + ".scale", scale)], [to]),
        ]

    def numbers(self, target: NumberTarget) -> list[Any]:
        """Within the limits, and in people's units."""
        low, high = target.standard_limits
        ends = {"low": low, "high": high, "scale": np.array(target.scales), "centre": np.array(target.centres)}
        named = {name: self._constant(f"{PREDICTION}.{name}", value) for name, value in ends.items()}
        return [
            self.make("Cast", ["y"], [PREDICTION + ".exact"], to=DOUBLE),
            self.make("Max", [PREDICTION + ".exact", named["low"]], [PREDICTION + ".raised"]),
            self.make("Min", [PREDICTION + ".raised", named["high"]], [PREDICTION + ".within"]),
            self.make("Mul", [PREDICTION + ".within", named["scale"]], [PREDICTION + ".scaled"]),
            self.make("Add", [PREDICTION + ".scaled", named["centre"]], [PREDICTION]),
        ]


FLOAT, DOUBLE = 1, 11  # as ONNX numbers its types


def _numbers(columns: Any) -> list[NumberColumn]:
    """Those that are used; OptionError for one that holds anything but numbers."""
    used = [column for column in columns if not isinstance(column, DroppedColumn)]
    other = next((column for column in used if not isinstance(column, NumberColumn)), None)
    if other is not None:
        raise OptionError(
            f"raw: ONNX takes tables of numbers, and column {other.name[:60]!r} holds categories or dates; leave "
            "raw out (prepared inputs), or export code, which reads tables"
        )
    return used


def _raw_shape(images: Images) -> list[int]:
    channels, height, width = images.shape
    return [height, width, channels] if images.channels_last else [channels, height, width]


def raw_examples(preprocessing: Preprocessing, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Made-up raw rows or images: as the model takes them, unused columns among them, and as the ONNX file does."""
    inputs = preprocessing.inputs
    if isinstance(inputs, Images):
        centre, scale = (np.array(v, np.float32)[:, None, None] for v in (inputs.centres, inputs.scales))
        images = (centre + scale * rng.standard_normal((n, *inputs.shape))).astype(np.float32)
        images = np.ascontiguousarray(np.moveaxis(images, 1, -1)) if inputs.channels_last else images
        return images, images
    rows = np.zeros((n, len(inputs.columns)))
    used = [i for i, column in enumerate(inputs.columns) if isinstance(column, NumberColumn)]
    for i in used:
        column = inputs.columns[i]
        assert isinstance(column, NumberColumn)
        rows[:, i] = column.centre + column.scale * rng.standard_normal(n)
        if column.marks_gaps:
            rows[:: 3 + i % 3, i] = np.nan
    return rows, rows[:, used]

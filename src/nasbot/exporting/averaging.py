"""What an ensemble adds to the networks in its ONNX graph: each preparation of inputs, and the weighted mean."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from nasbot.data.preparations import Bins, Robust
from nasbot.exporting.lowering import INPUT
from nasbot.training.ensemble import Ensemble, Prepared

Nodes = Iterator[Any]


class Averaging:
    """Writes nodes, and collects the constants on the way."""

    def __init__(self, onnx: Any) -> None:
        self.make, self.from_array = onnx.helper.make_node, onnx.numpy_helper.from_array
        self.constants: list[Any] = []

    def prepared(self, step: Prepared, into: str) -> Nodes:
        """From standardised rows to prepared ones; ``nasbot.training.ensemble.Prepared`` has the formulas."""
        x, own = f"{into}.x", f"{into}."

        def constant(name: str) -> str:
            return self._constant(own + name, step.get_buffer(name).cpu().numpy())

        yield self.make("Gather", [INPUT, constant("source")], [x], axis=1)
        if step.form == Robust.form:
            yield self.make("Sub", [x, constant("centre")], [own + "distance"])
            yield self.make("Div", [own + "distance", constant("scale")], [own + "z"])
            yield self.make("Mul", [own + "z", constant("sharpness")], [own + "sharp"])
            yield self.make("Mul", [own + "sharp", own + "sharp"], [own + "square"])
            yield self.make("Add", [own + "square", self._constant(own + "one", np.float32(1))], [own + "sum"])
            yield self.make("Sqrt", [own + "sum"], [own + "root"])
            yield self.make("Div", [own + "z", own + "root"], [into])
            return
        if step.form == Bins.form:
            yield self.make("Sub", [x, constant("low")], [own + "above"])
            yield self.make("Div", [own + "above", constant("width")], [own + "through"])
            start, rise = self._constant(own + "start", np.float32(-1)), self._constant(own + "rise", np.float32(2))
        else:
            start, rise = yield from self._between_knots(step, x, own)
        zero, one = self._constant(own + "zero", np.float32(0)), self._constant(own + "one", np.float32(1))
        yield self.make("Clip", [own + "through", zero, one], [own + "share"])
        yield self.make("Mul", [own + "share", rise], [own + "risen"])
        yield self.make("Add", [own + "risen", start], [own + "between"])
        yield self.make("Where", [constant("passes"), x, own + "between"], [into])

    def _between_knots(self, step: Prepared, x: str, own: str) -> Generator[Any, None, tuple[str, str]]:
        """How far x is ``through`` from one knot to the next; returns the score at the first and the rise to the next.

        The knots are found by halving, because ONNX has no search in a sorted table.
        """
        knots, scores = (step.get_buffer(name).cpu().numpy() for name in ("knots", "scores"))
        flat = {"knot": self._constant(own + "knots", knots.reshape(-1))}
        flat["score"] = self._constant(own + "scores", scores.reshape(-1))
        first = np.arange(len(knots), dtype=np.int64) * knots.shape[1]
        at = self._constant(own + "first", first)
        last = self._constant(own + "last", first + knots.shape[1] - 2)
        for i in reversed(range((knots.shape[1] - 1).bit_length())):
            further, tried, knot, below, now = (
                f"{own}{name}{i}" for name in ("further", "tried", "knot", "below", "at")
            )
            yield self.make("Add", [at, self._constant(f"{own}stride{i}", np.int64(2**i))], [further])
            yield self.make("Min", [further, last], [tried])
            yield self.make("Gather", [flat["knot"], tried], [knot])
            yield self.make("Less", [knot, x], [below])
            yield self.make("Where", [below, tried, at], [now])
            at = now
        yield self.make("Add", [at, self._constant(own + "next", np.int64(1))], [own + "up"])
        for name, table in flat.items():
            yield self.make("Gather", [table, at], [f"{own}{name}_low"])
            yield self.make("Gather", [table, own + "up"], [f"{own}{name}_high"])
            yield self.make("Sub", [f"{own}{name}_high", f"{own}{name}_low"], [f"{own}{name}_rise"])
        yield self.make("Sub", [x, own + "knot_low"], [own + "above"])
        yield self.make("Div", [own + "above", own + "knot_rise"], [own + "through"])
        return own + "score_low", own + "score_rise"

    def averaged(self, said: Sequence[str], ensemble: Ensemble) -> Nodes:
        """``y``: the weighted mean of numbers within their limits, or the logarithm of the mean probability."""
        weights = np.asarray(ensemble.weights)
        if ensemble.classifies:
            axis = self._constant("mean.axis", np.array([0], np.int64))
            for i, (name, weight) in enumerate(zip(said, weights, strict=True)):
                share = self._constant(f"mean.log_weight{i}", np.float32(np.log(weight)))
                yield self.make("Add", [name, share], [f"mean.weighted{i}"])
                yield self.make("Unsqueeze", [f"mean.weighted{i}", axis], [f"mean.part{i}"])
            yield self.make("Concat", [f"mean.part{i}" for i in range(len(said))], ["mean.all"], axis=0)
            yield self.make("ReduceLogSumExp", ["mean.all"], ["y"], axes=[0], keepdims=0)
            return
        low, high = ensemble.limits.cpu().numpy().astype(np.float32)
        bounds = self._constant("mean.low", low), self._constant("mean.high", high)
        for i, (name, weight) in enumerate(zip(said, weights, strict=True)):
            yield self.make("Max", [name, bounds[0]], [f"mean.raised{i}"])
            yield self.make("Min", [f"mean.raised{i}", bounds[1]], [f"mean.within{i}"])
            share = self._constant(f"mean.weight{i}", np.float32(weight))
            yield self.make("Mul", [f"mean.within{i}", share], [f"mean.part{i}"])
        yield self.make("Sum", [f"mean.part{i}" for i in range(len(said))], ["y"])

    def _constant(self, name: str, value: Any) -> str:
        self.constants.append(self.from_array(np.asarray(value), name))
        return name

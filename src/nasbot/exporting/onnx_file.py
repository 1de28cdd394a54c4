"""A trained network, or an ensemble as one graph, as an ONNX file, written node by node.

PyTorch's own exporter re-discovers the graph from a run of the module; we have the graph, so what comes out is small,
named after the layers, and the same whatever version of the exporter is installed. Only networks with modules of a
person's own, for which we have no rule, go through PyTorch's.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nasbot._typing import Json
from nasbot._words import first_line
from nasbot.architecture.activations import ACTIVATIONS
from nasbot.data.preparations import Preparation
from nasbot.data.preprocessing import Preprocessing
from nasbot.errors import ExportError, OptionError
from nasbot.exporting.averaging import Averaging
from nasbot.exporting.lowering import INPUT, lowered
from nasbot.exporting.raw_numbers import RawNumbers
from nasbot.training.ensemble import Ensemble, Prepared, networks_of
from nasbot.training.module import Network
from nasbot.training.operations import Step

OPSET = 17
IR_VERSION = 8  # what goes with opset 17: onnxruntime reads it since 1.12
ADVICE = "pip install 'nasbot[onnx]'"

Nodes = Iterator[Any]


def onnx_of(
    network: Network | Ensemble,
    *,
    metadata: Mapping[str, Json],
    preprocessing: Preprocessing | None = None,
    raw: bool = False,
) -> bytes:
    """The model as bytes: input ``x0`` (n, …) and output ``y`` (n, outputs), n free; checked by onnx itself.

    With ``raw`` it takes numbers or images as they were before ``preprocessing`` and answers in people's units; see
    ``raw_numbers``. ``metadata`` goes into the file's own properties, as JSON.
    """
    onnx = _imported("onnx")
    if any(step.op == "module" for member in networks_of(network) for step in lowered(member)):
        if raw:
            raise OptionError("raw: a network with modules of your own takes prepared inputs only; leave raw out")
        return _finished(onnx, _by_torch(network), metadata)
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    nodes, constants = _of_ensemble(onnx, network) if isinstance(network, Ensemble) else _of_network(onnx, network)
    entering = helper.make_tensor_value_info(INPUT, floats, ["n", *network.input_shape])
    leaving = helper.make_tensor_value_info("y", floats, ["n", network.n_outputs])
    if raw:
        around = RawNumbers.of(onnx, preprocessing, of_single=isinstance(network, Network))
        nodes, constants = [*around.before, *nodes, *around.after], [*constants, *around.constants]
        entering, leaving, metadata = around.input, around.output, {**metadata, **around.metadata}
    graph = helper.make_graph(nodes, "nasbot", [entering], [leaving], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="nasbot")
    model.ir_version = IR_VERSION
    return _finished(onnx, model, metadata)


def _of_network(onnx: Any, network: Network, into: str = "y") -> tuple[list[Any], list[Any]]:
    """Nodes and constants, from ``x0`` to ``into``."""
    writer, steps = _Writer(onnx, network), lowered(network)
    nodes = [node for step in steps for node in writer.nodes(step)]
    return [*nodes, onnx.helper.make_node("Identity", [steps[-1].value], [into], name=into)], writer.constants


def _of_ensemble(onnx: Any, ensemble: Ensemble) -> tuple[list[Any], list[Any]]:
    """Each member's own nodes under names of their own, what prepares its inputs before them, the mean behind them."""
    nodes: list[Any] = []
    constants: list[Any] = []
    said: list[str] = []
    writer = Averaging(onnx)
    prepared: dict[Preparation | None, str] = {None: INPUT}
    for i, (network, preparation) in enumerate(zip(ensemble.networks, ensemble.preparations, strict=True)):
        own = f"member{i}."
        if preparation is not None and preparation not in prepared:
            prepared[preparation] = f"prepared{len(prepared)}"
            nodes += writer.prepared(Prepared(preparation), prepared[preparation])
        inside, kept = _of_network(onnx, network, "y")
        for node in inside:
            node.name = own + node.name if node.name else ""
            node.input[:] = [prepared[preparation] if name == INPUT else own + name for name in node.input]
            node.output[:] = [own + name for name in node.output]
        for constant in kept:
            constant.name = own + constant.name
        nodes += inside
        constants += kept
        said.append(f"{own}y")
    nodes += writer.averaged(said, ensemble)
    return nodes, constants + writer.constants


def _by_torch(network: Network | Ensemble) -> Any:
    """By PyTorch's exporter, for networks with layers that we have no rule for."""
    _imported("onnxscript")
    example = torch.zeros(2, *network.input_shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its own use of what is deprecated
        try:
            program = torch.onnx.export(
                network,
                (example,),
                dynamo=True,
                verbose=False,
                input_names=[INPUT],
                output_names=["y"],
                dynamic_shapes=({0: torch.export.Dim("n")},),
            )
        except Exception as error:  # a person's own forward is followed in there
            raise ExportError(f"PyTorch cannot write this network as ONNX: {first_line(error, 200)}") from error
    assert program is not None
    return program.model_proto


def _finished(onnx: Any, model: Any, metadata: Mapping[str, Json]) -> bytes:
    onnx.helper.set_model_props(model, {name: json.dumps(value) for name, value in metadata.items()})
    onnx.checker.check_model(model, full_check=True)
    written: bytes = model.SerializeToString()
    return written


def onnx_outputs(model: bytes, x: np.ndarray) -> np.ndarray:
    """What onnxruntime gives for ``x``, or for raw numbers, on one thread."""
    runtime = _imported("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    outputs: np.ndarray = session.run(None, {session.get_inputs()[0].name: x})[0]
    return outputs


def _imported(package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        raise OptionError(f"ONNX needs the package {package}: {ADVICE}") from None


class _Writer:
    """From steps to nodes, collecting the constants on the way."""

    def __init__(self, onnx: Any, network: Network) -> None:
        self.make, self.numpy_helper = onnx.helper.make_node, onnx.numpy_helper
        self.state = network.state_dict()
        self.constants: list[Any] = []

    def nodes(self, step: Step) -> Nodes:
        write: Callable[[Step], Nodes] = getattr(self, f"_{step.op}")
        return write(step)

    def _constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(self.numpy_helper.from_array(value, name))
        return name

    def _weight(self, step: Step, own: str) -> str:
        tensor: Tensor = self.state[f"{step.part}.{own}"]
        return self._constant(f"{step.attribute}.{own}", tensor.detach().cpu().numpy().astype(np.float32))

    def _node(self, op: str, step: Step, *more: str, **attributes: Any) -> Any:
        return self.make(op, [*step.inputs, *more], [step.value], name=step.value, **attributes)

    # -- with weights ------------------------------------------------------------------------------------------------

    def _linear(self, step: Step) -> Nodes:
        yield self._node("Gemm", step, self._weight(step, "weight"), self._weight(step, "bias"), transB=1)

    def _conv(self, step: Step) -> Nodes:
        module: Any = step.module
        weights = [self._weight(step, "weight")] + ([self._weight(step, "bias")] if module.bias is not None else [])
        size, stride, padding = list(module.kernel_size), list(module.stride), list(module.padding)
        yield self._node("Conv", step, *weights, kernel_shape=size, strides=stride, pads=[*padding, *padding])

    def _norm(self, step: Step) -> Nodes:
        module: Any = step.module
        weights = [self._weight(step, own) for own in ("weight", "bias", "running_mean", "running_var")]
        yield self._node("BatchNormalization", step, *weights, epsilon=module.eps)

    def _layer_norm(self, step: Step) -> Nodes:
        module: Any = step.module
        weights = [self._weight(step, own) for own in ("weight", "bias")]
        yield self._node("LayerNormalization", step, *weights, epsilon=module.eps)

    # -- without -----------------------------------------------------------------------------------------------------

    def _activation(self, step: Step) -> Nodes:
        nodes = ACTIVATIONS[step.activation].onnx
        values = [f"{step.value}.{i}" for i in range(len(nodes) - 1)] + [step.value]
        for node, value in zip(nodes, values, strict=True):
            taken = [
                step.inputs[0]
                if x == "x"
                else values[x]
                if isinstance(x, int)
                else self._constant(f"{value}.constant", np.array(x, np.float32))
                for x in node.inputs
            ]
            yield self.make(node.op, taken, [value], name=value, **node.attributes)

    def _max_pool(self, step: Step) -> Nodes:
        yield self._node("MaxPool", step, kernel_shape=[step.size] * 2, strides=[step.size] * 2, ceil_mode=1)

    def _avg_pool(self, step: Step) -> Nodes:
        yield self._node("AveragePool", step, kernel_shape=[step.size] * 2, strides=[step.size] * 2, ceil_mode=1)

    def _pixel_mean(self, step: Step) -> Nodes:
        yield self._node("ReduceMean", step, axes=[2, 3], keepdims=0)

    def _cat(self, step: Step) -> Nodes:
        yield self._node("Concat", step, axis=1)

    def _add(self, step: Step) -> Nodes:
        yield self._node("Add", step)

    def _pad(self, step: Step) -> Nodes:
        pads = np.array([0, 0, 0, 0, 0, step.size, 0, 0], np.int64)
        yield self._node("Pad", step, self._constant(f"{step.value}.pads", pads))

    def _cut(self, step: Step) -> Nodes:
        bounds = {"starts": 0, "ends": step.size, "axes": 1}
        yield self._node(
            "Slice", step, *[self._constant(f"{step.value}.{k}", np.array([v], np.int64)) for k, v in bounds.items()]
        )

    def _log_softmax(self, step: Step) -> Nodes:
        yield self._node("LogSoftmax", step, axis=1)

    def _mean(self, step: Step) -> Nodes:
        yield self._node("Mean", step)

    def _scale(self, step: Step) -> Nodes:
        yield self._node("Mul", step, self._constant(f"{step.value}.factors", np.array(step.factors, np.float32)))

    def _log_mean_exp(self, step: Step) -> Nodes:
        axis = self._constant(f"{step.value}.axis", np.array([0], np.int64))
        for taken in step.inputs:
            yield self.make("Unsqueeze", [taken, axis], [f"{taken}.one"])
        yield self.make("Concat", [f"{taken}.one" for taken in step.inputs], [f"{step.value}.all"], axis=0)
        yield self.make("ReduceLogSumExp", [f"{step.value}.all"], [f"{step.value}.sum"], axes=[0], keepdims=0)
        count = self._constant(f"{step.value}.count", np.array(math.log(len(step.inputs)), np.float32))
        yield self.make("Sub", [f"{step.value}.sum", count], [step.value], name=step.value)

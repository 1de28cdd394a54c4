"""A PyTorch model as an Architecture: ``torch.fx`` writes down what the model does, and each operation finds its place.

layer      Conv2d: conv3, conv5, conv7. Linear: fc in a CNN, the activation behind it in an MLP, a decision layer at the
           end. MaxPool2d and AvgPool2d of stride 2: max-pool, avg-pool
res        an addition of a block's input to two convolutions of it; on the other side the input may pass 1x1
           convolutions, pools, subsampling and padding, which bring it to the same shape
edge       torch.cat along the channels
decision   what the model returns; several Linears averaged, as numbers or as probabilities, are several decision layers
res-dense  an addition of a vector to Linear, activation, Linear of its LayerNorm; the vector may pass a Linear
layer-norm LayerNorm behind an activation or the input, in the vocabularies that have it
attribute  dropout behind a layer, batch or layer normalisation between a Linear and its activation
folded     other normalisation, padding, flatten, global pooling, and in a CNN activations: labels do not tell them, nor
           whether a convolution goes without normalisation

Anything else is an error that names the operation: a model comes in as it is or not at all. With ``approximate=True``
the nearest label stands for what has none of its own (``trace`` lists what that covers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn

from nasbot.architecture import BUILT_IN, CNN, MLP_REG_PLUS, Architecture, Label, Layer, Vocabulary, vocabulary_of
from nasbot.architecture.activations import ACTIVATIONS
from nasbot.architecture.attributes import Attributes, kept_by
from nasbot.errors import InvalidArchitectureError, OptionError, TraceError
from nasbot.tracing._drafts import (
    ADAPTIVE_POOLS,
    ADDITIONS,
    AVERAGING,
    BATCH_NORMS,
    DROPOUTS,
    EXACT,
    FOLDED,
    NEAREST,
    POOLS,
    RESHAPINGS,
    SCALINGS,
    SQUASHINGS,
    WHAT_HEADS_GO_THROUGH,
    Draft,
    Flow,
    Operation,
    Strand,
    Window,
    flows_in,
    halves_joined,
    is_shortcut,
    key_of,
    names_of,
    pair,
    total_stride,
    ways_back,
    window_of,
)
from nasbot.tracing._tracers import SHAPE, attribute, graph_of
from nasbot.training.module import Network
from nasbot.training.operations import TRACED

ADVICE = "; trace(model, approximate=True) takes the nearest"
NARROWEST_LAST_IMAGE = 4  # pixels a side of what CNNs pool as a whole in the end: 4, 7 or 8


def trace(
    model: nn.Module,
    example: torch.Tensor | None = None,
    *,
    kind: str | None = None,
    approximate: bool = False,
    on_approximation: Callable[[str], None] | None = None,
) -> Architecture:
    """The layer graph of ``model``; TraceError, naming the operation, where it does what no layer graph can say.

    The model is traced as it evaluates, and left as it is. Nothing is computed, unless there is an ``example``, a batch
    of inputs: then a forward that looks at shapes can be followed, and a model which does not fit its own data is
    refused here.

    ``kind`` is a built-in one; by default a model with 2D convolutions is a cnn and another one an mlp-class if it ends
    in a softmax or a sigmoid, else an mlp-reg, or mlp-class+ or mlp-reg+ where only those have its layers. Images are
    averaged before a dense layer in our networks, so flattened ones are taken as averaged; padding is not looked at.

    ``approximate=True`` lets the nearest label stand for kernels of other sizes, strides above 2, groups and dilation,
    residual blocks that have not exactly two convolutions, and other activations of an MLP; pools of stride 1 and
    channels scaled by weights of their own are left out. ``on_approximation`` is called with a line for each of these,
    which names the operation: ``trace(model, approximate=True, on_approximation=print)``.
    """
    if not isinstance(model, nn.Module):
        raise OptionError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
    if kind is not None and kind not in BUILT_IN:
        raise OptionError(f"kind: expected one of {', '.join(BUILT_IN)}, got {str(kind)[:60]!r}")
    if example is None and isinstance(model, Network):
        example = torch.zeros(1, *model.input_shape)
    return _Walk(model, graph_of(model, example), kind, approximate, on_approximation or _ignored).architecture()


def _ignored(line: str) -> None:
    """What is approximated, where nobody has asked for it."""


def _used(graph: fx.Graph) -> list[fx.Node]:
    """The nodes that what the model returns depends on, in the order they run."""
    used: set[fx.Node] = set()
    waiting = [node for node in graph.nodes if node.op == "output"]
    while waiting:
        node = waiting.pop()
        if node not in used:
            used.add(node)
            waiting.extend(node.all_input_nodes)
    for node in graph.nodes:
        changes_in_place = str(node.target).endswith("_") or node.kwargs.get("inplace")
        if node not in used and node.op != "call_module" and changes_in_place:
            raise TraceError(
                f"{node.name} changes a tensor in place and its result is not used; write x = {node.name}(x)"
            )
    return [node for node in graph.nodes if node in used]


class _Walk:
    """One pass over the operations in the order they run, drafting layers; then the layers that survive."""

    def __init__(
        self, model: nn.Module, graph: fx.Graph, kind: str | None, approximate: bool, tell: Callable[[str], None]
    ) -> None:
        self.model, self.nodes, self.approximate, self.tell = model, _used(graph), approximate, tell
        self.operations = {node: self._operation(node) for node in self.nodes if node.op.startswith("call_")}
        self.is_cnn = kind == "cnn" if kind else any(x.key == "conv2d" for x in self.operations.values())
        self.kind = kind
        self.vocabulary = vocabulary_of(kind or (CNN if self.is_cnn else MLP_REG_PLUS))
        self.dense = {x.activation: x.name for x in self.vocabulary.labels if x.operation == "dense"}
        self.input = Draft("input", "input")
        self.drafts: list[Draft] = [self.input]
        self.absorbed: dict[Draft, str] = {}  # inside a residual block, and the addition that ends it
        self.values: dict[fx.Node, Any] = {}

    def architecture(self) -> Architecture:
        returned: Flow | None = None
        for node in self.nodes:
            if node.op == "output":
                returned = self._returned(node.args[0])
            else:
                self.values[node] = self._value(node)
        if returned is None:
            raise TraceError(f"{type(self.model).__name__} returns nothing")
        return self._finished(returned)

    # -- from a node to what it stands for ---------------------------------------------------------------------------

    def _operation(self, node: fx.Node) -> Operation:
        if node.op == "call_module":
            module = self.model.get_submodule(str(node.target))
            named = type(module).__name__
            shown = f"{named} {str(node.target)!r}"
            return Operation(key_of(named), shown, module, node.args, dict(node.kwargs), node.meta.get(SHAPE))
        named = str(node.target) if node.op == "call_method" else getattr(node.target, "__name__", str(node.target))
        shown = f"{named} {node.name!r}"
        return Operation(key_of(named), shown, None, node.args, dict(node.kwargs), node.meta.get(SHAPE))

    def _value(self, node: fx.Node) -> Any:
        """A flow; a tensor for the model's own parameters and buffers; None for sizes and other plain numbers."""
        if node.op == "placeholder":
            return self._input(node)
        if node.op == "get_attr":
            return attribute(self.model, str(node.target))
        operation = self.operations[node]
        known = replace(
            operation,
            args=tuple(self._looked_up(x) for x in operation.args),
            kwargs={name: self._looked_up(x) for name, x in operation.kwargs.items()},
        )
        flows = list(flows_in((*known.args, *known.kwargs.values())))
        if not flows or known.key in ("size", "getattr", "dim", "assert"):
            return None
        return self._applied(known, flows)

    def _input(self, node: fx.Node) -> Flow | None:
        if any(isinstance(value, Flow) for value in self.values.values()):
            raise TraceError(f"{type(self.model).__name__} takes a second input {node.name!r}; a network has one")
        return Flow((Strand(self.input),))

    def _looked_up(self, argument: Any) -> Any:
        if isinstance(argument, fx.Node):
            return self.values[argument]
        if isinstance(argument, list | tuple):
            return type(argument)(self._looked_up(x) for x in argument)
        return argument

    def _applied(self, operation: Operation, flows: list[Flow]) -> Flow:
        key, flow = operation.key, flows[0]
        if any(x.is_average for x in flows) and key not in WHAT_HEADS_GO_THROUGH:
            raise self._cannot(operation, "follows an average of heads; only the model's output may be one")
        if len(flows) == 1 and key in ADDITIONS | SCALINGS:
            return self._scaled(operation, flow)
        for keys, apply in self._table().items():
            if key in keys:
                return apply(operation, flows)
        if key == "getitem" and (window := window_of(operation.args[1])) is not None:
            return self._cropped(operation, flow, window)
        raise self._cannot(operation)

    def _table(self) -> dict[frozenset[str], Callable[[Operation, list[Flow]], Flow]]:
        return {
            frozenset(TRACED["convolution"]): self._convolution,
            frozenset(TRACED["dense"]): self._dense,
            frozenset(TRACED["layer-norm"]): self._normalisation,
            frozenset(POOLS): self._pool,
            frozenset(ADAPTIVE_POOLS): lambda _, flows: replace(flows[0], is_vector=True),
            frozenset({*EXACT, *NEAREST}): self._activation,
            frozenset(DROPOUTS): self._dropped,
            frozenset(BATCH_NORMS): self._batch_normalised,
            frozenset(FOLDED): lambda _, flows: flows[0],
            frozenset(RESHAPINGS): lambda _, flows: replace(flows[0], is_vector=True),
            frozenset({"cat", "concat", "concatenate"}): self._concatenation,
            frozenset(ADDITIONS): self._addition,
            frozenset({"neg"}): self._negation,
            frozenset({"stack"}): self._average,
            frozenset(SQUASHINGS): self._squashed,
            frozenset(AVERAGING): self._mean,
        }

    # -- operations that become layers -------------------------------------------------------------------------------

    def _convolution(self, operation: Operation, flows: list[Flow]) -> Flow:
        flow = self._images(operation, flows)
        if operation.module is None:
            out, _, *kernel = operation.option("weight", 1).shape
        else:
            out, kernel = operation.option("out_channels", 1), list(pair(operation.option("kernel_size", 2)))
        stride = pair(operation.option("stride", 3, 1))
        draft = self._draft("conv", operation, flow, units=int(out), stride=max(stride), kernels=(int(max(kernel)),))
        if len(set(kernel)) > 1 or len(set(stride)) > 1:
            draft.flaws.append(f"has a {'x'.join(map(str, kernel))} kernel of strides {stride}, and ours are square")
        if operation.option("groups", 6, 1) != 1:
            draft.flaws.append(f"works in {operation.option('groups', 6)} groups, and ours in one")
        if max(pair(operation.option("dilation", 5, 1))) > 1:
            draft.flaws.append("is dilated")
        return Flow((Strand(draft),))

    def _dense(self, operation: Operation, flows: list[Flow]) -> Flow:
        weight = None if operation.module else operation.option("weight", 1)
        units = operation.option("out_features", 1) if weight is None else weight.shape[0]
        draft = self._draft("dense", operation, flows[0], units=int(units))
        return Flow((Strand(draft),), is_vector=True)

    def _pool(self, operation: Operation, flows: list[Flow]) -> Flow:
        flow = self._images(operation, flows)
        size = max(pair(operation.option("kernel_size", 1)))
        stride = max(pair(operation.option("stride", 2) or size))
        if stride > 2 and self._is_global(operation, size):
            return replace(flow, is_vector=True)
        if size == 1 and stride == 1:
            return flow
        if stride != 2:
            wrong = f"has stride {stride}, and pools of a network have stride 2"
            if not self.approximate:
                raise self._cannot(operation, wrong, advice=True)
            self.tell(f"{operation.shown} {wrong}: {'left out' if stride == 1 else 'taken as stride 2'}")
            if stride == 1:
                return flow
        draft = self._draft("pool", operation, flow, stride=2)
        draft.label = next(x.name for x in self.vocabulary.labels if x.pooling == POOLS[operation.key])
        return Flow((Strand(draft),))

    def _is_global(self, operation: Operation, size: int) -> bool:
        """Whether it leaves one pixel: by the example's shape, else where the window is as wide as last images are."""
        if operation.leaving is not None:
            return operation.leaving[2:] == (1, 1)
        return size >= NARROWEST_LAST_IMAGE

    def _normalisation(self, operation: Operation, flows: list[Flow]) -> Flow:
        """A layer of its own behind what has an activation; between weights and activation it is folded."""
        flow, label = flows[0], self._label("layer-norm")
        if flow.is_bare_dense and not flow.is_average:
            return self._normalised(flow, "layer")
        if label is None or flow.is_average:
            return flow
        return Flow((Strand(self._draft("norm", operation, flow, label=label.name)),), is_vector=True)

    def _batch_normalised(self, operation: Operation, flows: list[Flow]) -> Flow:
        """An attribute of dense layers that have no activation yet; convolutions have it anyway."""
        return self._normalised(flows[0], "batch") if flows[0].is_bare_dense else flows[0]

    def _normalised(self, flow: Flow, norm: str) -> Flow:
        for draft in flow.drafts:
            draft.norm = norm
        return flow

    def _dropped(self, operation: Operation, flows: list[Flow]) -> Flow:
        """An attribute of the layers that it follows; of the input it is told by none."""
        share = operation.option("p", 1, 0.5)
        for draft in flows[0].drafts:
            if draft is not self.input and isinstance(share, int | float) and 0 <= share < 1:
                before = draft.dropout
                draft.dropout = float(share) if before is None else 1 - (1 - before) * (1 - float(share))
        return flows[0]

    def _label(self, operation: str) -> Label | None:
        return next((x for x in self.vocabulary.labels if x.operation == operation), None)

    def _cropped(self, operation: Operation, flow: Flow, window: Window) -> Flow:
        """Every n-th pixel, the first channels: part of the shortcut of a residual block, and a layer nowhere."""
        if window == Window():
            return flow
        draft = self._draft("pool", operation, self._images(operation, [flow]), stride=window.stride)
        draft.flaws.append("is expressible only as the shortcut of a residual block")
        return Flow((Strand(draft),))

    def _draft(self, of: str, operation: Operation, flow: Flow, **fields: Any) -> Draft:
        self._settle(operation, flow)
        draft = Draft(of, operation.shown, flow.drafts, **fields)
        self.drafts.append(draft)
        return draft

    def _settle(self, operation: Operation, flow: Flow) -> None:
        """A layer takes this flow: from here on the activation of each dense layer of an MLP is its label."""
        for strand in flow.strands:
            draft = strand.draft
            if strand.negated:
                raise self._cannot(operation, f"takes the negative of {draft.name}; only both halves of a CReLU may")
            if self.is_cnn or draft.of != "dense":
                continue
            if strand.activation is None:
                raise self._cannot(operation, f"follows {draft.name} without an activation between them")
            if draft.label not in (None, strand.activation):
                raise self._cannot(
                    operation, f"takes {draft.name} through {strand.activation}, others through {draft.label}"
                )
            draft.label = strand.activation

    def _images(self, operation: Operation, flows: list[Flow]) -> Flow:
        if flows[0].is_vector:
            raise self._cannot(operation, "takes images, but comes after they were flattened or pooled as a whole")
        return flows[0]

    # -- operations that change what runs along an edge --------------------------------------------------------------

    def _activation(self, operation: Operation, flows: list[Flow]) -> Flow:
        flow = flows[0]
        if any(strand.draft.of == "input" for strand in flow.strands):
            raise self._cannot(operation, "is an activation of the input itself")
        if self.is_cnn:
            return flow
        label = EXACT.get(operation.key)
        if label not in self.dense:
            if not self.approximate or operation.key not in NEAREST:
                known = ", ".join(self.dense.values())
                raise self._cannot(operation, f"is no activation of {self._kind_shown}, which has {known}", advice=True)
            label = NEAREST[operation.key]
            self.tell(f"{operation.shown} is no activation of {self._kind_shown}: taken as {label}")
        return replace(flow, strands=halves_joined(self._activated(operation, x, label) for x in flow.strands))

    def _activated(self, operation: Operation, strand: Strand, label: str) -> Strand:
        if strand.draft.of != "dense":
            raise self._cannot(operation, f"follows {strand.draft.name}; it may only follow a Linear layer")
        if strand.activation is None:
            return replace(strand, activation=label)
        if label == "relu" and ACTIVATIONS[strand.activation].is_never_negative and not strand.negated:
            return strand
        raise self._cannot(operation, f"follows {strand.activation} of {strand.draft.name}; a layer has one activation")

    def _negation(self, operation: Operation, flows: list[Flow]) -> Flow:
        if self.is_cnn or not flows[0].is_bare_dense:
            raise self._cannot(operation)
        return replace(flows[0], strands=tuple(replace(x, negated=True) for x in flows[0].strands))

    def _concatenation(self, operation: Operation, flows: list[Flow]) -> Flow:
        axis = operation.kwargs.get("dim", operation.kwargs.get("axis", (*operation.args, 0, 0)[1]))
        allowed = (1, -1) if not self.is_cnn or flows[0].is_vector else (1, -3)
        if axis not in allowed:
            raise self._cannot(
                operation, f"concatenates along dimension {axis}; layers are concatenated along the channels, 1"
            )
        strands = halves_joined(strand for flow in flows for strand in flow.strands)
        drafts = [(strand.draft, strand.negated) for strand in strands]
        for draft, negated in drafts:
            if drafts.count((draft, negated)) > 1:
                raise self._cannot(operation, f"concatenates {draft.name} twice")
        return replace(flows[0], strands=strands, is_vector=any(flow.is_vector for flow in flows))

    def _scaled(self, operation: Operation, flow: Flow) -> Flow:
        """By numbers or buffers: part of a normalisation."""
        if any(isinstance(x, nn.Parameter) for x in (*operation.args, *operation.kwargs.values())):
            if not (self.approximate and self.is_cnn and operation.key in ("mul", "imul")):
                raise self._cannot(operation, "involves a parameter of its own", advice=self.is_cnn)
            self.tell(f"{operation.shown} scales by weights of its own: left out")
        return flow

    # -- additions: residual blocks and averages ---------------------------------------------------------------------

    def _addition(self, operation: Operation, flows: list[Flow]) -> Flow:
        first, second = flows[:2]
        block = self._residual_dense(operation, first, second) or self._residual_dense(operation, second, first)
        if block is not None:
            return block
        if all(flow.is_average or flow.is_bare_dense for flow in (first, second)):
            return self._average(operation, [first, second])
        if not self.is_cnn or first.is_vector or second.is_vector:
            raise self._cannot(
                operation, f"adds {names_of(first)} and {names_of(second)}; only images are added, in a res layer"
            )
        branch, shortcut, base = self._sides(operation, first, second)
        draft = Draft(
            "res",
            operation.shown,
            base,
            units=branch[0].units,
            stride=total_stride(draft.stride for draft in branch),
            kernels=tuple(kernel for draft in branch for kernel in draft.kernels),
            flaws=[flaw for draft in branch for flaw in draft.flaws],
        )
        if any(x.of != "conv" for x in branch):
            draft.flaws.append("has a pool in its branch")
        if len(branch) != 2 or len(set(draft.kernels)) > 1 or len({x.units for x in branch}) > 1:
            inside = ", ".join(f"{x.kernels[0]}x{x.kernels[0]} {x.units}" for x in reversed(branch) if x.kernels)
            draft.flaws.append(f"has in its branch convolutions {inside}; a res layer has two, of one size and width")
        self.drafts.append(draft)
        self.absorbed.update(dict.fromkeys((*branch, *shortcut), operation.shown))
        return Flow((Strand(draft),))

    def _residual_dense(self, operation: Operation, branch: Flow, short: Flow) -> Flow | None:
        """The flow of a residual dense layer, where these are its two sides."""
        label, last = self._label("res-dense"), branch.drafts[0]
        inner = last.sources[0] if len(branch.strands) == len(last.sources) == 1 else self.input
        norm = inner.sources[0] if len(inner.sources) == 1 else self.input
        if label is None or not branch.is_bare_dense or (inner.of, norm.of) != ("dense", "norm"):
            return None
        inside = [last, inner, norm]
        if short.drafts != norm.sources:
            projection = short.drafts[0]
            if len(short.strands) > 1 or not short.is_bare_dense or projection.sources != norm.sources:
                return None
            inside.append(projection)
        elif any(x.draft.of == "dense" and x.activation != x.draft.label for x in short.strands):
            return None
        if inner.label != label.activation or inner.units != last.units:
            raise self._cannot(
                operation,
                f"adds {inner.label} {inner.units} and {last.name} to their input; a {label.name} layer "
                f"has {label.activation} inside and one width",
            )
        draft = Draft("res-dense", operation.shown, norm.sources, label=label.name, units=last.units)
        self.drafts.append(draft)
        self.absorbed.update(dict.fromkeys(inside, operation.shown))
        return Flow((Strand(draft),), is_vector=True)

    def _sides(
        self, operation: Operation, first: Flow, second: Flow
    ) -> tuple[tuple[Draft, ...], tuple[Draft, ...], tuple[Draft, ...]]:
        """The convolutions of the branch (last first), the layers of the shortcut, and what both start from."""
        meetings = [
            (len(one) + len(other), one, other, base)
            for one, base in ways_back(first)
            for other, start in ways_back(second)
            if set(base) == set(start)
        ]
        if not meetings:
            raise self._cannot(
                operation, f"adds {names_of(first)} and {names_of(second)}, which no residual block connects"
            )
        _, one, other, base = min(meetings, key=lambda meeting: meeting[0])
        if is_shortcut(one):
            one, other = other, one
        if not is_shortcut(other) or is_shortcut(one):
            raise self._cannot(
                operation, f"adds {names_of(first)} and {names_of(second)}; a res layer adds convolutions to its input"
            )
        return one, other, base

    def _average(self, operation: Operation, flows: list[Flow]) -> Flow:
        if not all(flow.is_average or flow.is_bare_dense for flow in flows):
            raise self._cannot(operation, "combines tensors that are not the linear layers at the end of a model")
        strands = tuple(strand for flow in flows for strand in flow.strands)
        if len(set(strands)) < len(strands):
            raise self._cannot(operation, "counts one of them twice")
        return Flow(strands, is_vector=True, is_average=True, is_squashed=any(flow.is_squashed for flow in flows))

    def _squashed(self, operation: Operation, flows: list[Flow]) -> Flow:
        if not (flows[0].is_average or flows[0].is_bare_dense):
            raise self._cannot(operation, f"follows {names_of(flows[0])}; it may only follow the last linear layer")
        return replace(flows[0], is_average=True, is_squashed=True)

    def _mean(self, operation: Operation, flows: list[Flow]) -> Flow:
        """Of heads, or of each image as a whole."""
        flow = flows[0]
        if flow.is_average:
            return flow
        dims = operation.kwargs.get("dim", operation.args[1] if len(operation.args) > 1 else None)
        places = sorted(d % 4 for d in dims) if isinstance(dims, list | tuple) else dims
        if operation.key == "mean" and self.is_cnn and not flow.is_vector and places == [2, 3]:
            return replace(flow, is_vector=True)
        raise self._cannot(operation)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _returned(self, value: Any) -> Flow:
        flow = self._looked_up(value)
        if not isinstance(flow, Flow):
            what = f"{type(flow).__name__} of {len(flow)}" if isinstance(flow, list | tuple | dict) else "no tensor"
            raise TraceError(f"{type(self.model).__name__} returns {what}; expected one tensor")
        for strand in flow.strands:
            ends_in_sigmoid = strand.activation == "logistic" and strand.draft.label is None
            if strand.draft.of != "dense" or strand.negated or (strand.activation and not ends_in_sigmoid):
                raise TraceError(
                    f"{type(self.model).__name__} ends in {strand.activation or 'the output'} of {strand.draft.name}; "
                    "expected a Linear layer, with or without softmax"
                )
        return replace(flow, is_squashed=flow.is_squashed or any(strand.activation for strand in flow.strands))

    def _finished(self, returned: Flow) -> Architecture:
        heads = set(returned.drafts)
        reached = self._reached(returned.drafts)
        drafts = [draft for draft in self.drafts if draft in reached]
        kind = self.kind or ("cnn" if self.is_cnn else "mlp-class" if returned.is_squashed else "mlp-reg")
        if not self.kind and {draft.label for draft in drafts if draft.label} - BUILT_IN[kind].by_name.keys():
            kind += "+"
        vocabulary = vocabulary_of(kind)
        for draft in drafts:
            self._check_sources(draft, heads)
        layers = [
            self._with_attributes(vocabulary, draft, self._layer(vocabulary, draft, draft in heads)) for draft in drafts
        ]
        position = {draft: u for u, draft in enumerate(drafts)}
        edges = {(position[source], position[draft]) for draft in drafts for source in draft.sources}
        edges |= {(position[head], len(layers)) for head in heads}
        try:
            return Architecture(vocabulary, [*layers, Layer(vocabulary.output_label)], edges)
        except InvalidArchitectureError as error:
            named = f" ({drafts[error.layer].name})" if error.layer is not None and error.layer < len(drafts) else ""
            raise TraceError(f"as a network of kind {kind} this model is not valid: {error}{named}") from None

    def _reached(self, ends: Iterable[Draft]) -> set[Draft]:
        """Every draft on a way to the output; auxiliary heads that are not returned are left out."""
        reached: set[Draft] = {self.input}
        waiting = list(ends)
        while waiting:
            draft = waiting.pop()
            if draft not in reached:
                reached.add(draft)
                waiting.extend(draft.sources)
        return reached

    def _check_sources(self, draft: Draft, heads: set[Draft]) -> None:
        for source in draft.sources:
            if source in self.absorbed:
                raise TraceError(
                    f"{draft.name} takes {source.name} from inside the residual block that {self.absorbed[source]} ends"
                )
            if source in heads:
                raise TraceError(
                    f"{draft.name} takes {source.name}, which is also returned; decision layers end a network"
                )

    def _with_attributes(self, vocabulary: Vocabulary, draft: Draft, layer: Layer) -> Layer:
        own = kept_by(Attributes(draft.dropout, draft.norm), vocabulary[layer.label])
        return Layer(layer.label, layer.units, layer.stride, own)

    def _layer(self, vocabulary: Vocabulary, draft: Draft, is_head: bool) -> Layer:
        if draft is self.input:
            return Layer(vocabulary.input_label)
        if is_head:
            return Layer(vocabulary.decision_labels[0])
        if draft.of in ("conv", "res"):
            return self._image_layer(vocabulary, draft)
        if draft.flaws:
            raise TraceError(f"{draft.name} {draft.flaws[0]}")
        if draft.of == "dense" and self.is_cnn:
            return Layer(next(iter(self.dense.values())), draft.units)
        if draft.label is None:
            raise TraceError(f"{draft.name} has no activation behind it; an MLP's layers have one")
        return Layer(draft.label, draft.units)

    def _image_layer(self, vocabulary: Vocabulary, draft: Draft) -> Layer:
        known = {x.kernel_size: x for x in vocabulary.labels if x.kernel_size and x.family == draft.of}
        size = max(draft.kernels)
        nearest = min(known, key=lambda k: (abs(k - size), k))
        flaws = list(draft.flaws)
        if nearest != size:
            flaws.append(
                f"has a {size}x{size} kernel, and {vocabulary.name} has {', '.join(x.name for x in known.values())}"
            )
        label, stride = known[nearest], draft.stride
        if stride not in label.strides:
            stride = max(label.strides)
            flaws.append(f"has stride {draft.stride}; a layer {label.name} has {' or '.join(map(str, label.strides))}")
        if flaws and not self.approximate:
            raise TraceError(f"{draft.name} {flaws[0]}{ADVICE}")
        layer = Layer(label.name, draft.units, stride)
        if flaws:
            self.tell(f"{draft.name} {'; '.join(flaws)}: taken as {layer}")
        return layer

    @property
    def _kind_shown(self) -> str:
        return self.kind or ("cnn" if self.is_cnn else "an MLP")

    def _cannot(self, operation: Operation, why: str | None = None, *, advice: bool = False) -> TraceError:
        reason = why or f"cannot be expressed as a layer of {self._kind_shown}"
        return TraceError(f"{operation.shown} {reason}{ADVICE if advice else ''}")

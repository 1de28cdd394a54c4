"""Writing down what a model does: by ``torch.fx`` alone, or beside a run on an example, where shapes are known.

Without an example the model's forward must not look at shapes. With one it may: every operation is also carried out,
and whoever asks a tensor for its shape is told that of the example's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn

from nasbot._words import first_line
from nasbot.errors import TraceError

SHAPE = "nasbot_shape"


def graph_of(model: nn.Module, example: Tensor | None) -> fx.Graph:
    """The operations of ``model`` in evaluation mode; TraceError where its forward cannot be followed.

    With an example every node's ``meta`` has the shape of its tensor.
    """
    tracer = fx.Tracer() if example is None else _ExampleTracer(example)
    try:
        with _evaluating(model), torch.no_grad():
            graph = tracer.trace(model)
            for node, value in getattr(tracer, "examples", {}).items():
                node.meta[SHAPE] = tuple(value.shape) if isinstance(value, Tensor) else None
            return graph
    except Exception as error:  # noqa: BLE001  # a person's own forward runs in there, and may raise anything
        hint = "" if example is not None else "; an example of its inputs may help: trace(model, example)"
        raise TraceError(
            f"torch.fx cannot follow the forward of {type(model).__name__}: "
            f"{type(error).__name__}: {first_line(error, 200)}{hint}"
        ) from None


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, and afterwards every module in the mode it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


class _ShapedProxy(fx.Proxy):
    """Stands for a tensor whose shape is known from the example."""

    def _example(self) -> Any:
        return self.tracer.examples[self.node]  # type: ignore[attr-defined]  # only the tracer below makes these

    @property
    def shape(self) -> Any:
        return self._example().shape

    @property
    def ndim(self) -> int:
        return int(self._example().ndim)

    def size(self, *dim: int) -> Any:
        return self._example().size(*dim)

    def dim(self) -> int:
        return int(self._example().dim())


class _ExampleTracer(fx.Tracer):
    """A tracer that carries every operation out as it writes it down."""

    def __init__(self, example: Tensor) -> None:
        super().__init__()
        self.examples: dict[fx.Node, Any] = {}
        self._first: Tensor | None = example
        self._is_computing = False

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _ShapedProxy(node, self)

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, *rest: Any, **options: Any) -> fx.Proxy:
        proxy = super().create_proxy(kind, target, args, kwargs, *rest, **options)
        self._is_computing = True
        try:
            self.examples[proxy.node] = self._computed(kind, target, self._known(args), self._known(kwargs))
        finally:
            self._is_computing = False
        return proxy

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return forward(*args, **kwargs) if self._is_computing else super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        return attr_val if self._is_computing else super().getattr(attr, attr_val, parameter_proxy_cache)

    def _known(self, argument: Any) -> Any:
        if isinstance(argument, fx.Proxy):
            return self.examples[argument.node]
        if isinstance(argument, list | tuple):
            return type(argument)(self._known(x) for x in argument)
        if isinstance(argument, dict):
            return {name: self._known(x) for name, x in argument.items()}
        return argument

    def _computed(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        if kind == "placeholder":
            first, self._first = self._first, None
            return first if first is not None else (args[0] if args else None)
        if kind == "get_attr":
            return attribute(self.root, str(target))
        if kind == "call_module":
            return attribute(self.root, str(target))(*args, **kwargs)
        if kind == "call_method":
            return getattr(args[0], target)(*args[1:], **kwargs)
        return target(*args, **kwargs)


def attribute(model: nn.Module, target: str) -> Any:
    """A module, parameter or buffer of the model, or whatever else its forward refers to by a dotted name."""
    found: Any = model
    for part in target.split("."):
        found = getattr(found, part)
    return found

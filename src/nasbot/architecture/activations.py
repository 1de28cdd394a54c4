"""The activations that a label can name, each in one row: the function, its family, how it is exported and trained.

A row is all that a new one needs: ``mlp-reg+`` and ``mlp-class+`` have a label of each (``vocabularies.py``), and
training, tracing and the exports read these rows. ``nasbot.training.activations`` says what ``spread`` and ``centred``
are for; it also has the steps that are written out, without which a network is trained by autograd, only slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

LEAKY_SLOPE = 0.01  # torch's own


class Node(NamedTuple):
    """One ONNX operation. Of its inputs "x" is the argument, a whole number an earlier node, any other a constant."""

    op: str
    inputs: tuple[str | int | float, ...] = ("x",)
    attributes: Mapping[str, float] = {}


@dataclass(frozen=True)
class Activation:
    """A function of each number, the spread of the sums it likes, and whether those behind it subtract its mean."""

    function: str  # torch's, by its whole name; "": none, what comes is passed on
    family: str  # rectifier or sigmoid (App. A.3)
    onnx: tuple[Node, ...]  # the last gives the value
    in_paper: bool = False  # and so in the paper's vocabularies too
    of_both_signs: bool = False  # of the sums and of their negatives, side by side: twice as many channels
    spread: float = 1.0
    centred: bool = False
    near: tuple[str, ...] = ()  # names of those that an approximate trace takes for it
    is_never_negative: bool = False  # a ReLU of what it gives changes nothing

    @property
    def code(self) -> str:
        """In exported Python, {0} being its argument."""
        if not self.function:
            return "{0}"
        return f"{self.function}({'torch.cat([{0}, -{0}], dim=1)' if self.of_both_signs else '{0}'})"

    @property
    def traced(self) -> str:
        """The name by which a trace knows it: torch's, in lower case and without underscores; "" where it has none."""
        return "" if self.of_both_signs else self.function.rpartition(".")[2].replace("_", "").lower()


ACTIVATIONS: Mapping[str, Activation] = {
    "": Activation("", "", (Node("Identity"),)),
    "relu": Activation(
        "torch.relu",
        "rectifier",
        (Node("Relu"),),
        in_paper=True,
        near=("relu6", "gelu", "silu", "mish", "hardswish"),
        is_never_negative=True,
    ),
    "crelu": Activation(
        "torch.relu",
        "rectifier",
        (Node("Neg"), Node("Concat", ("x", 0), {"axis": 1}), Node("Relu", (1,))),
        in_paper=True,
        of_both_signs=True,
        is_never_negative=True,
    ),
    "leaky-relu": Activation(
        "torch.nn.functional.leaky_relu",
        "rectifier",
        (Node("LeakyRelu", attributes={"alpha": LEAKY_SLOPE}),),
        in_paper=True,
        near=("prelu", "rrelu"),
    ),
    "softplus": Activation(
        "torch.nn.functional.softplus",
        "rectifier",
        (Node("Softplus"),),
        in_paper=True,
        centred=True,
        is_never_negative=True,
    ),
    "elu": Activation(
        "torch.nn.functional.elu",
        "rectifier",
        (Node("Elu", attributes={"alpha": 1.0}),),
        in_paper=True,
        near=("selu", "celu"),
    ),
    "logistic": Activation(
        "torch.sigmoid",
        "sigmoid",
        (Node("Sigmoid"),),
        in_paper=True,
        centred=True,
        near=("hardsigmoid",),
        is_never_negative=True,
    ),
    "tanh": Activation(
        "torch.tanh",
        "sigmoid",
        (Node("Tanh"),),
        in_paper=True,
        spread=0.5,
        near=("hardtanh", "softsign"),
    ),
    "gelu": Activation(
        "torch.nn.functional.gelu",
        "rectifier",
        (
            Node("Mul", ("x", 0.5**0.5)),
            Node("Erf", (0,)),
            Node("Add", (1, 1.0)),
            Node("Mul", ("x", 2)),
            Node("Mul", (3, 0.5)),
        ),
    ),
    "silu": Activation("torch.nn.functional.silu", "rectifier", (Node("Sigmoid"), Node("Mul", ("x", 0)))),
    "mish": Activation(
        "torch.nn.functional.mish", "rectifier", (Node("Softplus"), Node("Tanh", (0,)), Node("Mul", ("x", 1)))
    ),
}

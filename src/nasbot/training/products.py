"""Matrix products of single precision by the quicker of the two libraries that PyTorch has on a CPU.

PyTorch hands them to MKL. On the one processor where this was measured, an EPYC, MKL reaches half the rate of oneDNN,
which PyTorch has for convolutions, and which may be asked for by allowing it a lower precision. There it computed in
single precision all the same: relu 3 x 256 took 1.3 ms of CPU a step instead of 2.4, one training at a time; what is
left of that with all cores busy was not measured. The precision is checked, once in each process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from nasbot.architecture import Architecture
from nasbot.architecture.resources import resources

# Multiplications of a product, on average, from which oneDNN is worth the overhead of its calls: smaller networks (two
# layers of 64 units, batches of 256) are slower by a fifth, larger ones (of 128 units) quicker by a half.
WORTH_IT = 2.5e6
SINGLE_PRECISION = 2e-6  # relative error of a product of 256 terms

_lock = threading.Lock()
_users = 0
_before = "none"  # what the process had when the first user came
_switch: Any = getattr(
    getattr(torch.backends, "mkldnn", None), "matmul", None
)  # not in older PyTorch, nor in its stubs


@contextmanager
def quick_products(is_worth_it: bool) -> Iterator[None]:
    """Let PyTorch's products of matrices be oneDNN's for the time of this ``with``, where that changes no precision.

    The switch is the process's own: it is turned back when the last of several threads leaves.
    """
    if not is_worth_it or not keeps_precision():
        yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def is_worth_it(arch: Architecture, input_shape: tuple[int, ...], n_outputs: int, batch_size: int) -> bool:
    """Whether the products of a training step are large; images are left alone, their convolutions are oneDNN's."""
    if len(input_shape) != 1:
        return False
    n_layers = len(arch.layers) - 2  # without input and output
    return batch_size * resources(arch, input_shape, n_outputs).parameters / n_layers >= WORTH_IT


@cache
def keeps_precision() -> bool:
    """Whether oneDNN can be asked for here, and computes in single precision when it is."""
    if not hasattr(_switch, "fp32_precision"):
        return False
    numbers = torch.linspace(-1.0, 1.0, 256 * 256, dtype=torch.float64).sin().reshape(256, 256)
    a, b = numbers.float(), numbers.t().contiguous().float()
    exact = a.double() @ b.double()
    _enter()
    try:
        quick = a @ b
    finally:
        _leave()
    return float((quick.double() - exact).abs().max() / exact.abs().max()) < SINGLE_PRECISION


def _enter() -> None:
    global _users, _before
    with _lock:
        if _users == 0:
            _before = _switch.fp32_precision
            _switch.fp32_precision = "bf16"
        _users += 1


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _switch.fp32_precision = _before

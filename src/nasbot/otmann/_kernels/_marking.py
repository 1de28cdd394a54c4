"""Which functions are kernels: plain Python as they are imported, compiled by ``compiled.py`` when that is worth it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# In the order of definition, so that what a kernel calls stands before it; True for those that vanish in their callers.
KERNELS: dict[Callable[..., Any], bool] = {}


def kernel(function: Function) -> Function:
    """A function with a compiled twin; itself it stays Python."""
    KERNELS[function] = False
    return function


def inlined(function: Function) -> Function:
    """The same, and its twin is written into whatever calls it."""
    KERNELS[function] = True
    return function

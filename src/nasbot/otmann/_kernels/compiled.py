"""The compiled twins of the kernels. Importing this module imports numba, which nothing else in the package does.

A twin is the same code with the twins of whatever it calls among its globals, so the two compute the same to the last
bit. Numba keeps the machine code on disk: the first call after an installation compiles for ten seconds or more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

import llvmlite
import numba

from nasbot.otmann._kernels import bounds, pairs, path_pass
from nasbot.otmann._kernels._marking import KERNELS

# As in pyproject.toml: ``lane_code`` uses names that other versions need not have.
BOUNDS = {"numba": ((0, 61), (0, 69)), "llvmlite": ((0, 44), (0, 51))}


class UnknownVersionError(ImportError):
    """An installed version for which the kernels were not written."""


def check_versions() -> None:
    """Refuse versions outside the bounds."""
    for module in (numba, llvmlite):
        (least, below), found = BOUNDS[module.__name__], module.__version__
        numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
        if not least <= numbers < below:
            wanted = f">={least[0]}.{least[1]},<{below[0]}.{below[1]}"
            raise UnknownVersionError(f"{module.__name__} {found} is installed, expected {wanted}")


check_versions()

from nasbot.otmann._kernels import lane_code  # noqa: E402, F401  # registers what the lanes compile to


def _twins() -> dict[Callable[..., Any], Callable[..., Any]]:
    # A copy of each module's globals, in which the twins then take the places of the kernels.
    names = {function.__module__: dict(function.__globals__) for function in KERNELS}
    twins: dict[Callable[..., Any], Callable[..., Any]] = {}
    for function, is_inlined in KERNELS.items():
        twin = FunctionType(function.__code__, names[function.__module__], function.__name__)
        twin.__module__ = function.__module__
        twins[function] = numba.njit(cache=True, nogil=True, inline="always" if is_inlined else "never")(twin)
    for module in names.values():
        module.update(
            {name: twins[value] for name, value in module.items() if isinstance(value, FunctionType) and value in twins}
        )
    return twins


TWINS = _twins()
# The types with which they are called: compiled for these, or read from numba's cache, before the first call.
_SIGNATURES = {
    path_pass.pack_networks: "i8[::1], i8[::1], i8[::1], i8[::1], i8[:, ::1], i8[::1], f8[::1], f8[::1], i8[::1], i8,"
    " i8[::1], i8, f8, f8, f8, f8[:, ::1], f8[::1], i8[::1], i8[:, ::1], f8[::1]",
    pairs.add_distances: "i8, i8, i8[::1], i8[::1], i8[::1], i8, i8, i8[::1],"
    " i4[:, ::1], f8[:, ::1], f8[::1], i8[::1], i8[:, ::1], i4[:, ::1], f8[:, ::1], f8[::1], f8[:, ::1], i8[:, ::1],"
    " f8[::1], f8[::1]",
    bounds.mean_bounds: "i4[:, ::1], f8[:, ::1], f8[::1], i8[::1], i8[:, ::1],"
    " i4[:, ::1], f8[:, ::1], f8[::1], f8[:, ::1], i8[:, ::1], i8[::1], f8[::1], f8[::1]",
}


def compiled(function: Callable[..., int]) -> Callable[..., int]:
    """The twin of one of the kernels that are called from outside, ready to run."""
    twin = TWINS[function]
    twin.compile(f"({_SIGNATURES[function]},)")  # type: ignore[attr-defined]
    return twin

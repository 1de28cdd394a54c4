"""How a value shows itself without knowing who draws it.

A value type asks for a display by its name; the front door, ``nasbot/__init__.py``, says once which module makes each.
So no lower package imports an upper one, not even inside a method, and drawing loads when something is first drawn.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_WHERE: dict[str, str] = {}


def register(displays: Mapping[str, str]) -> None:
    """Say where displays are made: names, each with ``module:function``."""
    _WHERE.update(displays)


def display(name: str) -> Callable[..., Any]:
    """The function that was registered under this name."""
    module, _, function = _WHERE[name].partition(":")
    return getattr(import_module(module), function)  # type: ignore[no-any-return]

"""Names that load when they are first asked for, so that importing a package costs nobody what they do not use."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


def stubbed(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose stub says which module has each of its names.

    Type checkers and editors read ``__init__.pyi`` anyway, so every public name is written there, and nowhere else.
    """
    stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi")
    imports = [node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    later = {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> object:
        if name in later:
            value: object = getattr(import_module(later[name]), name)
        elif name.isidentifier() and not name.startswith("__") and find_spec(f"{package}.{name}") is not None:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *later})

    return get, names, sorted(later)

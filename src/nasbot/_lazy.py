"""Names that load when they are first asked for, so that importing a package costs nobody what they do not use."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, later: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names are in these modules."""

    def get(name: str) -> object:
        if name not in later:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(later[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *later})

    return get, names

"""Which versions of packages are installed."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

NOTED = ("nasbot", "numpy", "scipy", "numba", "torch")  # what the numbers of a study may depend on


def version_of(package: str) -> str | None:
    """The installed version of a package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def noted_versions() -> dict[str, str]:
    """Python's, and those of ``NOTED`` that are installed."""
    found = {name: number for name in NOTED if (number := version_of(name)) is not None}
    return {"python": platform.python_version(), **found}

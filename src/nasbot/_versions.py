"""Which versions of packages are installed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

NOTED = ("nasbot", "numpy", "scipy", "numba", "torch")  # what the numbers of a study may depend on


def version_of(package: str) -> str | None:
    """The installed version of a package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Those of the packages that are installed."""
    return {name: found for name in packages if (found := version_of(name)) is not None}

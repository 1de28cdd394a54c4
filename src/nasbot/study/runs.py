"""The record of one run of a study: who drives it, with what, and how to go on with it."""

from __future__ import annotations

import os
import platform
import shlex
import socket
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from nasbot._typing import Json
from nasbot.storage.records import Run
from nasbot.study.budget import Budget

PACKAGES = ("nasbot", "numpy", "scipy", "numba", "torch")  # whose versions are noted


def new_run(number: int, *, executor: str, workers: int | None, budget: Budget | None) -> Run:
    """The run that begins now, in this process."""
    record: dict[str, Json] = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "versions": {"python": platform.python_version(), **_versions()},
        "numerics": numerics(),
        "executor": executor,
        "workers": workers,
        "budget": None if budget is None else {"trials": budget.trials, "seconds": budget.seconds},
        "command": command_line(),
        "folder": str(Path.cwd()),
    }
    return Run(number=number, begun=time.time(), record=record)


def command_line() -> str | None:
    """What to type to run this program again, from the same folder; None for an interactive session or ``-c``."""
    original = list(sys.orig_argv)
    if not sys.argv or not sys.argv[0] or sys.argv[0] == "-c" or len(original) < 2:
        return None
    if Path(sys.argv[0]).name == "nasbot":
        return shlex.join(["nasbot", *sys.argv[1:]])
    if sys.argv[0].endswith(f"nasbot{os.sep}__main__.py"):
        return shlex.join(["python", "-m", "nasbot", *sys.argv[1:]])
    return shlex.join(["python", *original[1:]])


def numerics() -> dict[str, Json]:
    """What the last bits of a proposal depend on beside the versions: BLAS kernels and processor features."""
    from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]  # no public name
    from threadpoolctl import threadpool_info

    libraries = {
        f"{lib.get('internal_api')} {lib.get('version')} {lib.get('architecture')}" for lib in threadpool_info()
    }
    features = sorted(name for name, is_there in __cpu_features__.items() if is_there)
    return {"processor": platform.machine(), "libraries": sorted(libraries), "cpu_features": features}


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

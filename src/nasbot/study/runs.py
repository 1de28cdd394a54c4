"""The record of one run of a study: who drives it, with what, and how to go on with it."""

from __future__ import annotations

import os
import platform
import re
import shlex
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from nasbot._typing import Json
from nasbot._versions import noted_versions
from nasbot.errors import OptionError
from nasbot.storage.addresses import without_password
from nasbot.storage.records import Run
from nasbot.study.budget import Budget

PLAIN_OPTION = re.compile("-[BEIOPbdisuvx]+")  # of Python itself, none of which names code


def new_run(number: int, *, executor: str, workers: int | None, budget: Budget | None, plan: str = "") -> Run:
    """The run that begins now, in this process."""
    record: dict[str, Json] = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "versions": noted_versions(),
        "numerics": numerics(),
        "executor": executor,
        "workers": workers,
        "budget": None if budget is None else {"trials": budget.trials, "seconds": budget.seconds},
        "plan": plan or None,
        "command": command_line(),
        "folder": str(Path.cwd()),
    }
    return Run(number=number, begun=time.time(), record=record)


def command_line() -> str | None:
    """What to type to run this program again, from the same folder; None for an interactive session or ``-c``.

    Without passwords: libpq finds them in PGPASSWORD or ~/.pgpass.
    """
    original = list(sys.orig_argv)
    if not sys.argv or not sys.argv[0] or sys.argv[0] == "-c" or len(original) < 2:
        return None
    if Path(sys.argv[0]).name == "nasbot":
        words = ["nasbot", *sys.argv[1:]]
    elif sys.argv[0].endswith(f"nasbot{os.sep}__main__.py"):
        words = ["python", "-m", "nasbot", *sys.argv[1:]]
    else:
        words = ["python", *original[1:]]
    return shlex.join(map(without_password, words))


def with_longer_budget(command: str, spent: Budget | None = None) -> str:
    """A command of nasbot's with twice the budget it names (else twice what was ``spent``); any other as it is."""
    words = shlex.split(command)
    if not {"run", "demo"} & set(words):
        return command
    at = next((i for i, word in enumerate(words) if word == "--budget" or word.startswith("--budget=")), None)
    if at is None:
        return command if spent is None else shlex.join([*words, "--budget", spent.doubled()])
    named, _, given = words[at].partition("=")
    n_words = 1 if given else 2
    try:
        longer = Budget.of(given or words[at + 1]).doubled()
    except (IndexError, OptionError):
        return command
    return shlex.join([*words[:at], named, longer, *words[at + n_words :]])


def is_ours(command: str) -> bool:
    """Whether it is a command as ``command_line`` writes one, and nothing that a shell makes more of.

    For those that come in a study's file, which somebody else may have written: people paste them.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if not command.isprintable() or shlex.join(words) != command:
        return False
    if words[:3] == ["python", "-m", "nasbot"]:
        words = ["nasbot", *words[3:]]
    if words[:1] == ["nasbot"]:
        return words[1:2] in (["run"], ["demo"])
    script = next((word for word in words[1:] if not PLAIN_OPTION.fullmatch(word)), "")
    return words[:1] == ["python"] and script.endswith(".py") and not script.startswith("-")


def numerics() -> dict[str, Json]:
    """What the last bits of a proposal depend on beside the versions: BLAS kernels and processor features."""
    from threadpoolctl import threadpool_info

    try:
        from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]  # no public name
    except ImportError:  # of another numpy
        __cpu_features__ = {}

    libraries = {
        f"{lib.get('internal_api')} {lib.get('version')} {lib.get('architecture')}" for lib in threadpool_info()
    }
    features = sorted(name for name, is_there in __cpu_features__.items() if is_there)
    return {"processor": platform.machine(), "libraries": sorted(libraries), "cpu_features": features}


def numeric_differences(run: Run) -> list[str]:
    """What the last bits of proposals depend on and was other in this run than it is here; nothing where all is alike.

    A run of an older nasbot recorded nothing of it, and says so.
    """
    recorded, here = run.record.get("numerics"), numerics()
    if not isinstance(recorded, Mapping):
        return ["the run did not record BLAS kernels and processor features"]
    lines = []
    for name, now in here.items():
        then = recorded.get(name)
        if isinstance(then, list) and isinstance(now, list):
            old, new = ({str(entry) for entry in entries} for entries in (then, now))
            if old != new:
                gone, added = (", ".join(sorted(entries)) or "nothing" for entries in (old - new, new - old))
                lines.append(f"{name}: then also {gone}; here also {added}")
        elif then != now:
            lines.append(f"{name}: then {str(then)[:60]}, here {now}")
    versions = run.record.get("versions")
    for name, version_here in noted_versions().items():
        version_then = versions.get(name) if isinstance(versions, Mapping) else None
        if version_then != version_here:
            lines.append(f"{name}: then {str(version_then)[:60]}, here {version_here}")
    return lines

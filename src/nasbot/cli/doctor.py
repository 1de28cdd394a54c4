"""``nasbot doctor``: is this machine fit for a search, and if not, what is wrong with it."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from nasbot._system import n_cores
from nasbot._versions import version_of
from nasbot.cli._options import Json
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json
from nasbot.errors import NasbotError, StorageError

NEEDED = (
    "nasbot",
    "numpy",
    "scipy",
    "numba",
    "torch",
    "scikit-learn",
    "pandas",
    "matplotlib",
    "safetensors",
    "typer",
    "rich",
)
# By extra of pyproject.toml: the packages that it brings, and what they are for.
EXTRAS = {
    "parquet": (("pyarrow",), "Parquet and Feather files"),
    "excel": (("openpyxl",), "Excel sheets"),
    "web": (("h11", "starlette", "uvicorn"), "the live page"),
    "onnx": (("onnx", "onnxruntime", "onnxscript"), "ONNX files"),
    "ray": (("ray",), "clusters"),
    "postgres": (("psycopg",), "studies that several drivers share"),
    "tensorboard": (("tensorboard",), "logs for TensorBoard"),
    "mlflow": (("mlflow-skinny",), "logs for MLflow"),
    "optuna": (("optuna",), "networks in Optuna trials, studies in Optuna's storage"),
    "botorch": (("botorch", "gpytorch"), "a BoTorch model on OTMANN distances"),
}
SHARED = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "fuse.sshfs", "beegfs")
VOLATILE_FILE_SYSTEMS = ("tmpfs", "ramfs", "overlay")
LITTLE_DISK, LITTLE_MEMORY = 1e9, 1e9  # bytes
SLOW_WRITE = 0.5  # seconds


class Finding(NamedTuple):
    """One thing that was looked at: ``ok``, or ``warn`` (a search works, but), or ``fail`` (it will not)."""

    name: str
    level: str
    text: str


def doctor(
    folder: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder for studies; default: the studies folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at everything a search depends on, and try it.

    Versions, cores, memory, the studies' folder with its file system and free space, a study written and read back,
    and one step of training. Exit code 9 where something will not work.
    """
    from nasbot.storage.paths import studies_folder

    where = existing(studies_folder() if folder is None else Path(folder))
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("versions", _versions),
        ("extras", _extras),
        ("cores", _cores),
        ("memory", _memory),
        ("workers", _workers),
        ("folder", lambda: _folder(where)),
        ("disk", lambda: _disk(where)),
        ("store", lambda: _store(where)),
        ("training", _training),
    ]
    findings = [_looked(name, look) for name, look in checks]
    if as_json:
        is_fit = all(finding.level != "fail" for finding in findings)
        print_json({"ok": is_fit, "findings": [finding._asdict() for finding in findings]})
    else:
        for finding in findings:
            print(f"{finding.level:<5} {finding.name:<9} {one_line(finding.text)}")
    failed = [finding for finding in findings if finding.level == "fail"]
    if failed:
        raise StorageError(f"not fit for a search: {failed[0].name}: {failed[0].text}")


def _looked(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except NasbotError as error:
        return Finding(name, "fail", str(error))
    except Exception as error:  # noqa: BLE001  # whatever is wrong with this machine is what the command is to say
        return Finding(name, "fail", f"{type(error).__name__}: {error}")


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there: what a new study's folder would be made in."""
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


# -- looking -----------------------------------------------------------------------------------------------------------


def _versions() -> Finding:
    found = {name: version_of(name) for name in NEEDED}
    missing = [name for name, number in found.items() if number is None]
    text = f"python {platform.python_version()}, " + ", ".join(f"{name} {number}" for name, number in found.items())
    return Finding("versions", "fail", f"missing: {', '.join(missing)}") if missing else Finding("versions", "ok", text)


def _extras() -> Finding:
    found = {name: version_of(name) for packages, _ in EXTRAS.values() for name in packages}
    there = ", ".join(f"{name} {number}" for name, number in found.items() if number) or "none"
    absent = [
        f"nasbot[{extra}] for {purpose}"
        for extra, (packages, purpose) in EXTRAS.items()
        if any(found[name] is None for name in packages)
    ]
    return Finding("extras", "ok", there + (f"; to be had: {', '.join(absent)}" if absent else ""))


def _cores() -> Finding:
    n, load = n_cores(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    busy = load > 1.5 * n
    return Finding("cores", "warn" if busy else "ok", f"{n} to use, load {load:.1f}" + (": busy" if busy else ""))


def _memory() -> Finding:
    if not Path("/proc/meminfo").exists():
        return Finding("memory", "ok", "not known: this system does not say how much is free")
    with Path("/proc/meminfo").open() as file:
        kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in file}
    total, free = kilobytes["MemTotal"] * 1024.0, kilobytes["MemAvailable"] * 1024.0
    limit = None
    with suppress(OSError, ValueError):  # "max" where a container has no limit
        limit = float(Path("/sys/fs/cgroup/memory.max").read_text())
    allowed = "" if limit is None or limit > total else f", this container may use {limit / 1e9:.1f} GB"
    level = "warn" if min(free, limit or free) < LITTLE_MEMORY else "ok"
    return Finding("memory", level, f"{free / 1e9:.1f} of {total / 1e9:.1f} GB free{allowed}")


def _workers() -> Finding:
    from nasbot.execution.local import fork_server_lacks

    if not (absent := fork_server_lacks()):
        return Finding("workers", "ok", "a process for each trial, with limits on time and memory")
    text = f"plain processes with limits on time alone: this system has no {', '.join(absent)}"
    return Finding("workers", "ok", text)


def _folder(where: Path) -> Finding:
    kind = file_system(where)
    if not os.access(where, os.W_OK):
        return Finding("folder", "fail", f"{where} ({kind}) may not be written")
    if kind in SHARED:
        text = f"{where} is on {kind}: a study needs working file locks and is safest on a local disk"
        return Finding("folder", "warn", text)
    if kind in VOLATILE_FILE_SYSTEMS:
        return Finding("folder", "warn", f"{where} is on {kind}: studies there end with this machine or container")
    return Finding("folder", "ok", f"{where} is on {kind}")


def _disk(where: Path) -> Finding:
    free = shutil.disk_usage(where).free
    return Finding("disk", "warn" if free < LITTLE_DISK else "ok", f"{free / 1e9:.1f} GB free")


def file_system(folder: Path) -> str:
    """The kind of file system that a folder is on, as the kernel calls it."""
    best, kind = "", "unknown"
    with suppress(OSError), Path("/proc/self/mounts").open() as mounts:
        for line in mounts:
            point, name = line.split()[1:3]
            inside = str(folder) == point or str(folder).startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, kind = point, name
    return kind


# -- trying ------------------------------------------------------------------------------------------------------------


def _store(where: Path) -> Finding:
    """A study of its own in that folder: written, read beside its driver, refused to a second one, checked, removed."""
    from nasbot.architecture import initial_pool
    from nasbot.candidate import Candidate
    from nasbot.errors import StudyError
    from nasbot.storage import examine, open_storage
    from nasbot.storage._sqlite_file import sqlite_caution
    from nasbot.trial import Scored, Trial

    with tempfile.TemporaryDirectory(prefix=".nasbot-doctor-", dir=where) as folder:
        path = Path(folder) / "study.sqlite"
        driver = open_storage(path)
        driver.patience = 0.0  # a full disk is found, not waited for
        try:
            trials = [Trial(number=n, candidate=Candidate(arch)) for n, arch in enumerate(initial_pool("mlp-reg")[:3])]
            driver.create({"seed": 0}, trials)
            begun = time.perf_counter()
            for trial in trials:
                running = trial.begun(0.0)
                driver.save(running)
                driver.save(running.ended(Scored(0.1 + 0.2), at=1.0, rank=trial.number))
            seconds = (time.perf_counter() - begun) / (2 * len(trials))
            reader = open_storage(path, read_only=True)
            same = reader.history() == driver.history()
            reader.close()
            try:
                open_storage(path).close()
                is_refused = False
            except StudyError:
                is_refused = True
        finally:
            driver.close()
        if not same or not examine(path).is_intact:
            return Finding("store", "fail", "what was read is not what was written")
    if not is_refused:
        return Finding("store", "fail", "file locks do not work here: two drivers could write one study")
    text = f"written, read, locked and checked; a record is on disk after {seconds * 1e3:.0f} ms{sqlite_caution()}"
    return Finding("store", "warn" if seconds > SLOW_WRITE else "ok", text)


def _training() -> Finding:
    """One step on one batch."""
    import numpy as np

    from nasbot.architecture import initial_pool
    from nasbot.data.dataset import dataset_of
    from nasbot.training.loop import train
    from nasbot.training.recipes import FAST

    begun = time.perf_counter()
    x = np.sin(np.arange(240.0)).reshape(60, 4)
    data = dataset_of(x, x.sum(axis=1), task="regression")
    trained = train(initial_pool("mlp-reg")[0], data, FAST.changed(n_steps=1))
    if not np.isfinite(trained.loss):
        return Finding("training", "fail", f"one step gave the loss {trained.loss}")
    seconds = time.perf_counter() - begun
    return Finding("training", "ok", f"one step on one batch in {seconds:.1f} s, loading PyTorch included")

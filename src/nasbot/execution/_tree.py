"""A process and everything below it, as Linux tells it in /proc: who they are, and how much memory they hold."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

SHARED_MEMORY = "/dev/shm/"
MEMORY_FILE = "/memfd:"
PAGE = resource.getpagesize()
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def descendants(pid: int) -> list[int]:
    """All processes below this one. One that is just being born or adopted may be missing: look again."""
    found: list[int] = []
    below = _children_of_all() if not Path(f"/proc/{pid}/task/{pid}/children").exists() else None
    todo = [pid]
    while todo:
        parent = todo.pop()
        children = _children(parent) if below is None else below.get(parent, [])
        found += children
        todo += children
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(*GONE):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  ten times a second: strings, not paths
            with suppress(*GONE):
                children += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return children


def _children_of_all() -> dict[int, list[int]]:
    """For kernels built without the file ``children``: read every process."""
    below: dict[int, list[int]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        with suppress(*GONE):
            after_name = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            below.setdefault(int(after_name[1]), []).append(int(entry))
    return below


def resident(pids: Iterable[int]) -> int:
    """Bytes in memory, where what several of them share counts several times: cheap, and never too little."""
    total = 0
    for pid in pids:
        with suppress(*GONE):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return total


def unmapped(pids: Iterable[int]) -> int:
    """Bytes of files in memory (memfd, deleted ones of /dev/shm) that these processes hold open and do not map."""
    pids = list(pids)
    held: dict[tuple[int, int], int] = {}
    for pid in pids:
        with suppress(*GONE):
            for entry in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                with suppress(OSError):
                    name = f"/proc/{pid}/fd/{entry}"
                    if os.readlink(name).startswith((MEMORY_FILE, SHARED_MEMORY)):  # noqa: PTH115
                        found = os.stat(name)  # noqa: PTH116
                        held[(found.st_dev, found.st_ino)] = found.st_blocks * 512
    if not held:
        return 0
    mapped = {inode for pid in pids for inode in _mapped_inodes(pid)}
    return sum(size for (_, inode), size in held.items() if inode not in mapped)


def _mapped_inodes(pid: int) -> set[int]:
    with suppress(*GONE):
        return {int(line.split()[4]) for line in Path(f"/proc/{pid}/maps").read_text().splitlines()}
    return set()


def proportional(pids: Iterable[int]) -> int:
    """Bytes in memory and in swap, where what n processes share counts as an nth for each of them."""
    total = 0
    for pid in pids:
        with suppress(*GONE):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith(("Pss:", "SwapPss:")):
                    total += int(line.split()[1]) * 1024
    return total


def shared_files() -> set[tuple[str, int]]:
    """Names and inodes of all files of shared memory of this user."""
    with suppress(OSError), os.scandir(SHARED_MEMORY) as entries:
        regular = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        return {(entry.path, entry.inode()) for entry in regular if _is_ours(entry)}
    return set()


def _is_ours(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return False


def mapped_files(pids: Iterable[int]) -> set[str]:
    """Files of shared memory that these processes map."""
    found: set[str] = set()
    for pid in pids:
        with suppress(*GONE):
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                _, folder, name = line.partition(SHARED_MEMORY)
                found |= {folder + name} if folder else set()
    return found


def kernel_kills() -> int:
    """How many processes the kernel has ended for want of memory since it started; 0 where it does not say."""
    with suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0

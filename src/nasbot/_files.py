"""Files in folders that may come from somebody else: a link, a pipe or a device there is never followed or written."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from nasbot._system import flags
from nasbot.errors import FileError, NasbotError

# A pipe without a writer must not be waited for; Windows would translate line ends in what is not O_BINARY.
SAFELY = flags("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")


@contextmanager
def file_errors(said: str, *also: type[Exception]) -> Iterator[None]:
    """What the system refuses in this ``with`` as FileError, ``said`` before its reason; our own errors as they are.

    ``also`` is ValueError where a name may hold a NUL and nothing else is done.
    """
    refused: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield
    except NasbotError:
        raise
    except refused as error:
        raise FileError(f"{said}: {getattr(error, 'strerror', None) or error}") from None


def open_regular(path: Path, flags: int, *, owners: set[int] | None = None) -> int:
    """A descriptor of a regular file with one name, of one of these users if any are given.

    Raises FileError for a link, a pipe, a device, a folder or a file that has another name elsewhere.
    """
    try:
        file = os.open(path, flags | SAFELY, 0o644)
    except OSError as error:
        reason = "a symbolic link" if path.is_symlink() else error.strerror
        raise FileError(f"cannot open {path}: {reason}") from None
    if wrong := unsafe(os.fstat(file), owners):
        os.close(file)
        raise FileError(f"cannot use {path}: it is {wrong}; expected a regular file of one name, or none: remove it")
    return file


def unsafe(found: os.stat_result, owners: set[int] | None = None) -> str | None:
    """What is wrong with a file that is to be written, in words; None for a regular file of one name."""
    if not stat.S_ISREG(found.st_mode):
        kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder"}
        return kinds.get(stat.S_IFMT(found.st_mode), "a device or socket")
    if found.st_nlink > 1:
        return "a file that has another name elsewhere (a hard link)"
    if owners is not None and found.st_uid not in owners:
        return f"another user's (uid {found.st_uid})"
    return None


def write_whole(path: Path, content: bytes | Callable[[BinaryIO], object], *, sync: bool = False) -> None:
    """Write a file that appears whole or not at all; a link at its place is replaced, not followed. Raises OSError."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    unfinished.unlink(missing_ok=True)  # of a process that died, or somebody's link
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFELY, 0o666), "wb") as file:
            content(file) if callable(content) else file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def check_own_folder(path: Path) -> None:
    """FileError where a link stands for a folder in which nasbot writes and removes files."""
    if path.is_symlink():
        raise FileError(
            f"{path} is a symbolic link; expected a folder or nothing: nasbot writes and removes files in it"
        )

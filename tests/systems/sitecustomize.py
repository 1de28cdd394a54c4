"""Takes names away from the interpreter, as systems other than Linux lack them: those in NASBOT_TEST_WITHOUT.

Python imports a module of this name when it starts, so every process that a test starts, and those which they start,
are without them: nasbot and the scripts of the tests. Python's own modules and other libraries keep them, for they are
made for the system they are on. Modules are taken away too; ``/proc`` is a folder that nothing finds.
"""

import builtins
import io
import os
import signal
import socket
import sys

HOMES = {"SIGUSR1": signal, "SIGHUP": signal, "SIGQUIT": signal, "SIGUSR2": signal, "SOCK_SEQPACKET": socket}
MODULES = ("fcntl", "resource")
PROC = "/proc"
kept: dict = {}


def take_away(name: str) -> None:
    """One name; harmless where it is not there."""
    if name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    elif name == PROC:
        for home, function in ((builtins, "open"), (io, "open"), (os, "open"), (os, "stat"), (os, "listdir")):
            setattr(home, function, hiding(getattr(home, function)))
    elif name in vars(home := HOMES.get(name, os)):
        kept.setdefault(home, {})[name] = getattr(home, name)
        delattr(home, name)
        home.__getattr__ = for_libraries(home)


def for_libraries(home):
    """What a module says when asked for a name that it does not have: the real thing, but not to us."""

    def get(name):
        if name in kept[home] and not is_ours(sys._getframe(1)):
            return kept[home][name]
        raise AttributeError(f"module {home.__name__!r} has no attribute {name!r}")

    return get


def is_ours(frame) -> bool:
    return frame.f_globals.get("__name__", "").split(".")[0] in ("nasbot", "__main__", "pathlib")


def hiding(function):
    """The function, for which /proc is not there; unless torch or another library asks, which knows its system."""

    def hidden(path=".", *arguments, **options):
        if is_ours(sys._getframe(1)) and isinstance(path, str | os.PathLike) and os.fspath(path).startswith(PROC):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
        return function(path, *arguments, **options)

    return hidden


for absent in filter(None, os.environ.get("NASBOT_TEST_WITHOUT", "").split(",")):
    take_away(absent)

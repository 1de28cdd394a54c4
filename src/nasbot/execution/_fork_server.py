"""The driver's side of the fork server: start it, hand it objectives and jobs, start it again if it is gone."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, ClassVar

from nasbot._typing import Json
from nasbot.execution._sending import THREADS, preparation

if TYPE_CHECKING:
    from nasbot.execution.base import Limits

PROGRAM = """\
import json, sys
path, requests, driver = json.loads(sys.argv[1])
sys.path[:] = path
from nasbot.execution._fork_server_process import main
main(requests, driver)
"""


class ForkServer:
    """One fork server, shared by the executors of a thread that want the same from it. Nothing here waits for it."""

    _shared: ClassVar[dict[object, ForkServer]] = {}

    @classmethod
    def shared(cls, threads: int, preload: Sequence[str], *, with_main: bool, home: object = None) -> ForkServer:
        """The one for these wishes. Of the caller's thread, with which the kernel ends what the thread has started.

        ``home`` is the state of the objective's module: another one where its file has changed, as notebooks do.
        """
        key = (os.getpid(), threading.get_ident(), threads, tuple(preload), with_main, home)
        if key not in cls._shared:
            cls._shared[key] = ForkServer(threads, preload, with_main=with_main)
        return cls._shared[key]

    def __init__(self, threads: int, preload: Sequence[str], *, with_main: bool) -> None:
        self.threads = threads
        self.pid = 0
        self._preload = list(preload)
        self._with_main = with_main
        self._requests: socket.socket | None = None
        self._loaded: str | None = None

    def load(self, name: str, content: int) -> None:
        """Let it load the objective in this file, unless it has; it is started first where it does not run."""
        if not self._is_running():
            self._start()
        if self._loaded != name:
            self._send({"objective": name, "path": sys.path, "folder": _folder()}, [content])
            self._loaded = name

    def begin(
        self, name: str, limits: Limits, descriptors: Sequence[int], environment: Mapping[str, str] | None = None
    ) -> None:
        """Let it fork an evaluation, with these variables changed in its environment; OSError where it is gone."""
        request: dict[str, Json] = {"of": name, "limits": asdict(limits), "threads": self.threads, "folder": _folder()}
        request["environment"] = dict(environment or {})
        self._send(request, descriptors)

    def end(self) -> None:
        """End it at once; evaluations that run from it end too, and the next ``load`` starts another."""
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        if self._requests is not None:
            self._requests.close()
        self.pid, self._requests, self._loaded = 0, None, None

    def _is_running(self) -> bool:
        if not self.pid:
            return False
        try:
            has_ended = os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:  # somebody else has collected it
            has_ended = True
        if has_ended:
            self.pid = 0
            self.end()
        return not has_ended

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ExitStack() as unused, theirs:
            unused.enter_context(ours)
            theirs.set_inheritable(True)
            argument = json.dumps([sys.path, theirs.fileno(), os.getpid()])
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-c", PROGRAM, argument],
                {**os.environ, **dict.fromkeys(THREADS, str(self.threads))},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,  # Ctrl-C at the terminal is for the driver alone
            )
            unused.pop_all()
        self._requests, self._loaded = ours, None
        prepare = preparation("nasbot-fork-server", with_main=self._with_main)
        self._send({"prepare": prepare, "preload": self._preload}, [])

    def _send(self, request: dict[str, Json], descriptors: Sequence[int]) -> None:
        if self._requests is None:
            raise BrokenPipeError("the process that evaluations are forked from is gone")
        socket.send_fds(self._requests, [json.dumps(request).encode()], descriptors)


def _folder() -> str | None:
    """Where the driver is now; it may have gone elsewhere since the fork server was started."""
    with suppress(OSError):
        return os.getcwd()  # noqa: PTH109  a string for JSON
    return None

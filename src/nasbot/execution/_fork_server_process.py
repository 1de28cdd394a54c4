"""The process that evaluations are forked from: it has loaded the objective and what that imports, once for all.

So a fresh process costs milliseconds, shares the objective's data with all others page by page, and shares nothing with
the driver. It is single-threaded, runs nothing of the objective but its import, and ends with the driver. Requests come
as JSON over a socket, with the descriptors of one evaluation beside it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

from nasbot._typing import Json
from nasbot.execution import _child, _sending
from nasbot.execution._supervisor import PR_SET_PDEATHSIG, prctl, supervise
from nasbot.execution.base import Job, Limits, Objective
from nasbot.trial import Failed, FailureCause

MAX_REQUEST = 1 << 17


def main(requests: int, driver: int) -> NoReturn:
    """Serve the driver until it is gone."""
    _sending.is_worker_process = True
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != driver:  # it died before we asked
        os._exit(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors report to the driver; nobody collects them here
    with socket.socket(fileno=requests) as server:
        try:
            _ServerProcess(server).serve()
        finally:
            os._exit(0)


class _ServerProcess:
    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._trouble = ""  # with the driver's script
        self._loaded: tuple[Json, Objective | Failed] = (None, Failed(FailureCause.CRASHED, "no objective"))

    def serve(self) -> None:
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._server, MAX_REQUEST, 8)
            if not message:
                return
            request = json.loads(message)
            if "prepare" in request:
                self._trouble = _sending.prepared(request["prepare"], request["preload"])
            elif "objective" in request:
                sys.path[:] = request["path"]
                _enter(request["folder"])
                self._load(request["objective"], descriptors)
            else:
                self._begin(request, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)

    def _load(self, name: Json, descriptors: list[int]) -> None:
        self._loaded = (name, _sending.loaded(_content(descriptors[0]), self._trouble))
        gc.collect()
        gc.freeze()  # collections in the workers then leave these pages alone, and shared

    def _begin(self, request: Mapping[str, Any], descriptors: list[int]) -> None:
        control, results, output, job = descriptors
        me = os.getpid()
        try:
            child = os.fork()
        except OSError:  # no process to be had: the driver sees its connections close
            return
        if child == 0:
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                self._server.close()

                def work() -> NoReturn:
                    self._work(request, results, output, job)

                supervise(socket.socket(fileno=control), Limits(**request["limits"]), me, work)
            finally:
                os._exit(1)

    def _work(self, request: Mapping[str, Any], results: int, output: int, job_file: int) -> NoReturn:
        name, objective = self._loaded
        if name != request["of"]:
            objective = Failed(FailureCause.CRASHED, "the objective of another study was loaded")
        if isinstance(objective, Failed):
            _child.refuse(objective, results, output)
        os.environ.update(request["environment"])
        _enter(request["folder"])
        job: Job = ForkingPickler.loads(_content(job_file))
        _child.run(objective, job, Limits(**request["limits"]), request["threads"], results, output)


def _enter(folder: str | None) -> None:
    if folder is not None:
        with suppress(OSError):  # it is gone; then the old one must do
            os.chdir(folder)


def _content(descriptor: int) -> bytes:
    """All of a file in memory, whoever has read it before."""
    size = os.fstat(descriptor).st_size
    parts, at = [], 0
    while at < size:
        part = os.pread(descriptor, size - at, at)
        if not part:
            break
        parts.append(part)
        at += len(part)
    return b"".join(parts)

"""The process that watches over one evaluation: it runs no code but this, and outlives everything it watches.

    driver --- fork server (has loaded what evaluations need)
                  +-- supervisor --- worker (runs the objective) --- whatever the objective starts

Orphans below come to it (PR_SET_CHILD_SUBREAPER), also those that left the worker's group and session, so when it
ends the evaluation it ends all of it. It does so when the worker ends, when a limit is crossed, when the driver shuts
its side of the control socket, and when the driver dies (the socket closes, or the fork server dies with it). Then it
tells how the worker ended, and goes.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from nasbot._system import signals
from nasbot._typing import Json
from nasbot.execution._frames import packed
from nasbot.execution._tree import (
    descendants,
    kernel_kills,
    mapped_files,
    proportional,
    resident,
    shared_files,
    unmapped,
)
from nasbot.execution.base import Limits

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ORPHANED = signal.SIGUSR2  # from the kernel, when the fork server is gone
SECONDS_BETWEEN_LOOKS = 0.1  # at the memory, where that is limited
IGNORED = signals("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGPIPE")


def prctl(option: int, value: int) -> None:
    """Ask the kernel for one of its favours to this process."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def close_all_but(*kept: int) -> None:
    """Close every descriptor of this process that is not among these."""
    borders = sorted({-1, *kept, 1 << 20})
    for below, above in itertools.pairwise(borders):
        if below + 1 < above:  # os.closerange(0, 0) closes everything, in Python 3.11
            os.closerange(below + 1, above)


def _ready(descriptors: Sequence[int], seconds: float | None) -> set[int]:
    """Those that can be read or are closed. Not by ``select``, which knows no descriptor above 1,023."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(None if seconds is None else math.ceil(seconds * 1000))}


def supervise(control: socket.socket, limits: Limits, parent: int, work: Callable[[], NoReturn]) -> NoReturn:
    """Run ``work`` in a child, watch over it, tell how it ended, and end this process."""
    code = 1
    try:
        _Watch(control, limits, parent).run(work)
        code = 0
    finally:  # a child of the fork server must never return into it
        os._exit(code)


class _Watch:
    def __init__(self, control: socket.socket, limits: Limits, parent: int) -> None:
        self._control = control
        self._limits = limits
        self._parent = parent
        self._worker = 0
        self._ended: int | None = None  # exit code, or minus the signal's number
        self._peak = 0  # bytes
        self._allowance = 0  # bytes that the whole tree may hold
        self._waking, self._wake = os.pipe()

    def run(self, work: Callable[[], NoReturn]) -> None:
        self._prepare()
        if not self._is_wanted():
            return
        try:
            self._control.sendall(packed({"supervisor": os.getpid()}))
        except OSError:
            return  # the driver is gone, or wants it no more
        kills_before, shared_before = kernel_kills(), shared_files()
        try:
            self._start(work)
        except OSError as error:  # no process to be had
            self._tell({"reason": "environment", "ended": None, "peak_memory": 0, "message": str(error)})
            return
        reason = self._watch()
        mapped = mapped_files(descendants(os.getpid()))
        self._end_all()
        for name, _ in shared_files() - shared_before:  # nobody else would remove what the trial cannot any more
            if name in mapped:
                with suppress(OSError):
                    os.unlink(name)  # noqa: PTH108
        if reason is None and self._ended == -signal.SIGKILL and kernel_kills() > kills_before:
            reason = "kernel"
        self._tell({"reason": reason, "ended": self._ended, "peak_memory": self._peak})

    def _tell(self, verdict: dict[str, Json]) -> None:
        with suppress(OSError):
            self._control.sendall(packed(verdict))

    def _prepare(self) -> None:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        os.setsid()
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        for pipe_end in (self._waking, self._wake):
            os.set_blocking(pipe_end, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, ORPHANED):
            signal.signal(number, lambda *_: None)
        prctl(PR_SET_PDEATHSIG, ORPHANED)

    def _start(self, work: Callable[[], NoReturn]) -> None:
        me = os.getpid()
        self._worker = os.fork()
        if self._worker == 0:
            try:
                signal.set_wakeup_fd(-1)
                for number in (*IGNORED, signal.SIGCHLD, ORPHANED):
                    signal.signal(number, signal.SIG_DFL)
                prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() == me:
                    work()
            finally:
                os._exit(1)
        # The worker's pipes go from here: the driver must see them close when the worker is gone.
        close_all_but(0, 1, 2, self._control.fileno(), self._waking, self._wake)

    # -- watching ------------------------------------------------------------------------------------------------------

    def _watch(self) -> str | None:
        """Until the worker has ended (None) or must end (why)."""
        deadline = None if self._limits.seconds is None else time.monotonic() + self._limits.seconds
        while True:
            self._reap()
            if self._ended is not None:
                return None
            if not self._is_wanted():
                return "unwanted"
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
            if self._limits.memory is not None and self._holds_too_much(self._limits.memory):
                return "oom"
            if self._waking in _ready((self._control.fileno(), self._waking), self._pause(deadline)):
                os.read(self._waking, 1 << 10)

    def _pause(self, deadline: float | None) -> float | None:
        times = [] if deadline is None else [max(0.0, deadline - time.monotonic())]
        if self._limits.memory is not None:
            times.append(SECONDS_BETWEEN_LOOKS)
        return min(times, default=None)

    def _is_wanted(self) -> bool:
        """Whether the driver lives and has not shut its side of the socket; it never writes to it."""
        return not _ready((self._control.fileno(),), 0) and os.getppid() == self._parent

    def _holds_too_much(self, memory: int) -> bool:
        """The exact count takes milliseconds; it is made only where the rough one, which is never too low, says so."""
        tree = descendants(os.getpid())
        files = unmapped(tree)
        held = resident(tree) + files
        if not self._allowance:  # the first look: at most what a fresh process has, which is what we have ourselves
            self._allowance = memory + resident([os.getpid()])
        if held > self._allowance:
            held = proportional(tree) + files
        self._peak = max(self._peak, held)
        return held > self._allowance

    # -- ending --------------------------------------------------------------------------------------------------------

    def _reap(self, options: int = os.WNOHANG) -> bool:
        """Collect one process or more that have ended; False where there is none left below."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, options)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._worker:
                self._ended = os.waitstatus_to_exitcode(status)
                self._peak = max(self._peak, usage.ru_maxrss * 1024)
            if options == 0:
                return True

    def _end_all(self) -> None:
        """Kill, collect, look again: whatever was born or adopted in between is found the next time."""
        while True:
            for pid in descendants(os.getpid()):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not self._reap(0):
                return

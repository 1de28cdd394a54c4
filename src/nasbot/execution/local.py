"""One process per evaluation on this machine, with hard limits, watched over by one that ends all of it.

Processes are forked from one that has loaded nasbot, the objective and ``preload`` once (``_fork_server``), each under
a supervisor (``_supervisor``); so a fresh one costs milliseconds and shares nothing with the driver. The objective
travels as multiprocessing sends any argument: it must be importable in a new process (a function or a callable object
of a module). Nothing that is sent this way ever reaches a file.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing import connection
from pathlib import Path

from nasbot._system import n_cores
from nasbot._typing import Json
from nasbot.errors import OptionError, StudyError
from nasbot.execution._exits import failure_of_exit
from nasbot.execution._fork_server import ForkServer
from nasbot.execution._frames import FrameError, FrameReader, outcome_from
from nasbot.execution._sending import MAIN, sendable_job, sendable_objective
from nasbot.execution.base import Event, Finished, Job, Limits, Objective, Reported, check_can_submit, check_slots
from nasbot.execution.interruption import allowed
from nasbot.trial import Cancelled, Failed, FailureCause, Outcome, Point, Scored

SECONDS_TO_LEAVE = 2.0  # between a process's outcome and its end by force: for its exit functions
SECONDS_TO_KILL = 5.0  # for a supervisor to end what it watches, which takes milliseconds; then it is killed itself
SECONDS_TO_START = 300.0  # for an evaluation to begin, whatever its limit: importing the objective may hang
TAIL_BYTES = 4000
READ_BYTES = 1 << 16
VISIBLE = "CUDA_VISIBLE_DEVICES"
_names = itertools.count()  # of objectives, for the fork server to tell them apart


class LocalExecutor:
    """``slots`` processes at a time, each within ``limits``. Used by one thread.

    Limits hold for all processes of an evaluation together: seconds from its start, bytes on top of what a fresh
    process has. ``preload`` names modules to load beforehand, beside the objective's own and those that it names in an
    attribute ``preload``. ``threads`` is how many each evaluation's numeric libraries may use (OMP_NUM_THREADS and its
    like), by default an equal share of the cores. ``devices`` are graphics cards, one for each slot, as
    CUDA_VISIBLE_DEVICES calls them: each evaluation sees only the card that nobody else has.
    """

    def __init__(
        self,
        slots: int = 1,
        *,
        limits: Limits | None = None,
        threads: int | None = None,
        preload: Sequence[str] = (),
        devices: Sequence[str] = (),
    ) -> None:
        if absent := fork_server_lacks():
            raise OptionError(f"LocalExecutor needs Linux, and here is no {absent[0]}; expected SpawnExecutor instead")
        self.slots = check_slots(slots)
        self.devices = tuple(devices)
        if self.devices and len(set(self.devices)) != self.slots:
            raise OptionError(f"devices: expected a different one for each of {slots} slots, got {list(devices)}")
        self.limits = limits or Limits()
        self.threads = max(1, n_cores() // self.slots) if threads is None else check_slots(threads)
        self._origin = time.monotonic()
        self._preload = self._modules = tuple(preload)
        self._home: object = None
        self._server: ForkServer | None = None
        self._objective = -1  # a file in memory, so that it is written once whatever its size
        self._name = ""
        self._running: dict[int, _Worker] = {}
        self._leaving: list[_Worker] = []  # cancelled, not gone yet
        self._events: list[Event] = []

    def now(self) -> float:
        """Seconds since this executor was made."""
        return time.monotonic() - self._origin

    def start(self, objective: Objective) -> None:
        """Take the objective; OptionError where it cannot be sent to another process.

        What evaluations are forked from begins to load it now, and nothing here waits for that.
        """
        content = sendable_objective(objective)
        self.close()
        self._objective, self._name = _in_memory(content), f"{os.getpid()}-{next(_names)}"
        self._modules = tuple(dict.fromkeys((*self._preload, *getattr(objective, "preload", ()))))
        self._home = _state_of_home(objective)
        self._server = self._server_for(content)
        self._server.load(self._name, self._objective)

    def submit(self, job: Job) -> None:
        """Let a process begin this job; it may still be on its way when this returns."""
        if self._server is None:
            raise StudyError("the executor has no objective: start it first, and do not use it after close")
        check_can_submit(job, list(self._running), self.slots)
        content = sendable_job(job)
        if MAIN in content:
            self._server = self._server_for(content)
        try:
            self._running[job.number] = self._worker(self._server, job, content)
        except OSError as error:
            failure = Failed(FailureCause.ENVIRONMENT, f"its process could not be started: {error}")
            self._events.append(Finished(job.number, failure, self.now()))

    def wait(self, timeout: float | None = None) -> Sequence[Event]:
        """What happened since the last call; wakes up for results, deaths and limits."""
        until = None if timeout is None else self.now() + timeout
        while True:
            self._collect()
            if self._events or not self._running:
                events, self._events = self._events, []
                return events
            if until is not None and self.now() >= until:
                return ()
            with allowed():
                connection.wait(self._sources(), self._pause(until))

    def cancel(self, number: int) -> None:
        """End this evaluation's processes, all at once; nothing here waits for that."""
        if number not in self._running:
            raise StudyError(f"trial {number} is not running here")
        worker = self._running.pop(number)
        worker.stop(self.now() + SECONDS_TO_KILL)
        self._leaving.append(worker)
        self._events.append(Finished(number, Cancelled(), self.now()))

    def close(self) -> None:
        """End all evaluations' processes, together; none is left when this returns.

        One that has not begun is not waited for: its supervisor sees that it is not wanted before it starts anything.
        """
        left = [*self._running.values(), *self._leaving]
        for worker in left:
            worker.stop(self.now() + SECONDS_TO_KILL)
        while left := [worker for worker in left if not self._is_gone(worker)]:
            connection.wait([worker.control for worker in left], max(0.0, left[0].deadline - self.now()))
        if self._objective >= 0:
            os.close(self._objective)
        self._running, self._leaving, self._events = {}, [], []
        self._server, self._objective = None, -1

    # -- one round -----------------------------------------------------------------------------------------------------

    def _server_for(self, content: bytes) -> ForkServer:
        """One that has imported the driver's script only where something in it is needed: it may have no guard."""
        return ForkServer.shared(self.threads, self._modules, with_main=MAIN in content, home=self._home)

    def _worker(self, server: ForkServer, job: Job, content: bytes) -> _Worker:
        server.load(self._name, self._objective)  # another executor's may be loaded, or the fork server was killed
        with ExitStack() as theirs, ExitStack() as ours:
            pipes = []
            for _ in ("results", "output"):
                reading, writing = os.pipe()
                ours.callback(os.close, reading)
                theirs.callback(os.close, writing)
                os.set_blocking(reading, False)
                pipes.append((reading, writing))
            control, control_out = socket.socketpair()
            ours.enter_context(control)
            theirs.enter_context(control_out)
            control.setblocking(False)
            job_file = _in_memory(content)
            theirs.callback(os.close, job_file)
            (results, results_out), (output, output_out) = pipes
            device = self._free_device()
            # Of a Ray worker the card may be another one than when the fork server was started.
            environment = {VISIBLE: os.environ[VISIBLE]} if VISIBLE in os.environ else {}
            if device is not None:
                environment = {VISIBLE: device}
            descriptors = (control_out.fileno(), results_out, output_out, job_file)
            server.begin(self._name, self.limits, descriptors, environment)
            ours.pop_all()  # from here on they are the worker's
        # Its own limit is the supervisor's to keep; this one is for an evaluation that never begins.
        return _Worker(job, control, results, output, device, deadline=self.now() + SECONDS_TO_START)

    def _free_device(self) -> str | None:
        """One that no evaluation has; of those whose evaluations are being ended, if need be."""
        taken = [worker.device for worker in self._running.values()]
        leaving = [worker.device for worker in self._leaving]
        free = [device for device in self.devices if device not in taken]
        return min(free, key=lambda device: device in leaving, default=None)

    def _collect(self) -> None:
        for worker in list(self._running.values()):
            self._look_at(worker)
        self._leaving = [worker for worker in self._leaving if not self._is_gone(worker)]

    def _is_gone(self, worker: _Worker) -> bool:
        """Whether a worker that was stopped is gone, and by force where it takes too long; then it is let go."""
        worker.read_control()
        worker.read_output()
        if not worker.has_ended and worker.supervisor is not None and self.now() < worker.deadline:
            return False
        worker.kill()
        worker.release()
        return True

    def _look_at(self, worker: _Worker) -> None:
        worker.read_control()  # before the rest, so that nothing written before the end is missed
        worker.read_output()
        try:
            for frame in worker.read_frames():
                self._take(worker, frame)
        except (FrameError, KeyError, TypeError, ValueError) as error:
            if worker.outcome is None:  # after an outcome nothing is listened to
                message = f"its process sent what is no result: {error}"
                self._decide(worker, Failed(FailureCause.CRASHED, message), 0.0)
        if worker.has_ended:
            outcome = worker.final_outcome(self.limits)
            at = self.now() if worker.outcome_at is None else worker.outcome_at
            worker.release()
            del self._running[worker.job.number]
            self._events.append(Finished(worker.job.number, outcome, at))
        elif worker.has_begun and not worker.is_stopped and worker.outcome is None:
            # The supervisor counts the seconds itself; it is waited for a while longer, where there is a limit at all.
            worker.has_begun = False
            limit = self.limits.seconds
            worker.deadline = float("inf") if limit is None else self.now() + limit + SECONDS_TO_START
        elif self.now() >= worker.deadline:
            self._lose_patience(worker)

    def _lose_patience(self, worker: _Worker) -> None:
        """It should have left, or been ended, or begun, long ago."""
        if worker.is_stopped:
            worker.kill()
        elif worker.supervisor is None and worker.outcome is None and self._server is not None:
            worker.never_began = True
            self._server.end()
        worker.stop(self.now() + SECONDS_TO_KILL)

    def _take(self, worker: _Worker, frame: dict[str, Json]) -> None:
        if worker.outcome is not None:
            return  # a thread of the objective still reports after its outcome
        if "outcome" not in frame:
            point = Point(int(frame["step"]), float(frame["value"]))  # type: ignore[arg-type]
            self._events.append(Reported(worker.job.number, point))
        else:
            self._decide(worker, outcome_from(frame["outcome"]), SECONDS_TO_LEAVE)  # type: ignore[arg-type]

    def _decide(self, worker: _Worker, outcome: Outcome, seconds: float) -> None:
        """This is what became of it; its processes have so long to leave by themselves."""
        worker.outcome, worker.outcome_at = outcome, self.now()
        worker.deadline = self.now() + seconds
        worker.spent.add(worker.results)  # whatever else it sends must not wake us

    def _sources(self) -> list[int]:
        return [source for worker in (*self._running.values(), *self._leaving) for source in worker.sources()]

    def _pause(self, until: float | None) -> float | None:
        times = [worker.deadline for worker in (*self._running.values(), *self._leaving)]
        first = min([*times, *([] if until is None else [until])], default=float("inf"))
        return None if first == float("inf") else max(0.0, first - self.now())


def fork_server_lacks() -> list[str]:
    """What this system does not have and the fork server needs; nothing on Linux."""
    named = {"memfd_create": os, "posix_spawn": os, "fork": os, "register_at_fork": os, "SOCK_SEQPACKET": socket}
    absent = [name for name, home in named.items() if not hasattr(home, name)]
    absent += [] if find_spec("resource") else ["resource"]
    return absent + ([] if Path("/proc/self/statm").exists() else ["/proc"])


def _state_of_home(objective: Objective) -> tuple[str, int] | None:
    """The file that the objective comes from and when it was changed; None where there is no such file."""
    name = getattr(objective, "__module__", None) or type(objective).__module__
    file = getattr(sys.modules.get(name), "__file__", None)
    try:
        return None if file is None else (file, os.stat(file).st_mtime_ns)  # noqa: PTH116
    except OSError:
        return None


def _in_memory(content: bytes) -> int:
    """The descriptor of a file in memory with this content."""
    descriptor = os.memfd_create("nasbot")
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    return descriptor


@dataclass(eq=False)
class _Worker:
    """One evaluation's supervisor and process, seen from our ends of their three connections."""

    job: Job
    control: socket.socket  # from the supervisor; shutting our side tells it to end everything
    results: int
    output: int
    device: str | None = None  # that it owns
    deadline: float = float("inf")  # when patience ends, for whatever is awaited
    outcome: Outcome | None = None  # as its process sent it
    outcome_at: float | None = None
    supervisor: int | None = None  # process number; None until it has begun
    verdict: dict[str, Json] | None = None
    has_ended: bool = False
    has_begun: bool = False  # just now
    never_began: bool = False  # in all the time that there was
    is_stopped: bool = False
    frames: FrameReader = field(default_factory=FrameReader)
    notes: FrameReader = field(default_factory=FrameReader)
    tail: bytes = b""
    spent: set[int] = field(default_factory=set)  # descriptors that have come to their end

    def sources(self) -> list[int]:
        """What to wait on: the supervisor, and the process's pipes while they are open."""
        return [end for end in (self.control.fileno(), self.results, self.output) if end not in self.spent]

    def read_control(self) -> None:
        """What the supervisor says, and whether it is gone: only it holds the other end."""
        try:
            content = self._read(self.control.fileno())
        except ConnectionResetError:
            content = b""
            self.spent.add(self.control.fileno())
        for note in self.notes.feed(content):
            if "supervisor" in note:
                self.supervisor, self.has_begun = int(note["supervisor"]), True
            else:
                self.verdict = note
        self.has_ended = self.control.fileno() in self.spent

    def read_frames(self) -> list[dict[str, Json]]:
        """The whole frames that have arrived."""
        return self.frames.feed(self._read(self.results))

    def read_output(self) -> None:
        """Keep the last of what the process prints, so that its pipe never fills."""
        self.tail = (self.tail + self._read(self.output))[-TAIL_BYTES:]

    def _read(self, end: int) -> bytes:
        parts = []
        while end not in self.spent:
            try:
                part = os.read(end, READ_BYTES)
            except BlockingIOError:
                break
            parts.append(part)
            if not part:
                self.spent.add(end)
            if len(parts) >= 64:  # a process that prints faster than we read must not keep us here
                break
        return b"".join(parts)

    # -- how it ended --------------------------------------------------------------------------------------------------

    def final_outcome(self, limits: Limits) -> Outcome:
        """What its process said, or what its end means; with what is known about the process."""
        match self.outcome or self._death(limits):
            case Scored(value, details):
                return Scored(value, {**details, "process": self._usage()})
            case Failed(cause, message, details):
                return Failed(cause, message, {**details, "process": {**self._usage(), "output": self._output()}})
            case outcome:
                return outcome

    def _death(self, limits: Limits) -> Failed:
        """The outcome of a process that ended, or was ended, without one."""
        if self.verdict is None:
            if self.never_began:
                message = f"not begun within {SECONDS_TO_START:g} s: does importing the objective's module end?"
                return Failed(FailureCause.ENVIRONMENT, message)
            if self.supervisor is None:
                return Failed(FailureCause.ENVIRONMENT, "its process could not be started")
            return Failed(FailureCause.KILLED, "its processes were ended from outside")
        ended = self.verdict["ended"]
        match self.verdict["reason"]:
            case "timeout":
                return Failed(FailureCause.TIMEOUT, f"not finished within its limit of {limits.seconds:g} s")
            case "oom":
                peak = int(self.verdict["peak_memory"])  # type: ignore[arg-type]
                message = f"its processes held {peak:,} bytes; its limit is {limits.memory:,} more than a fresh one has"
                return Failed(FailureCause.OOM, message)
            case "kernel":
                return Failed(FailureCause.OOM, "the kernel ended its process, because the machine had no memory left")
            case "environment":
                return Failed(FailureCause.ENVIRONMENT, f"its process could not be started: {self.verdict['message']}")
            case "unwanted":
                return Failed(FailureCause.KILLED, "the process it was forked from was ended")
        return failure_of_exit(ended if isinstance(ended, int) else 0)

    def _usage(self) -> dict[str, Json]:
        verdict = self.verdict or {}
        code = verdict.get("ended")
        usage: dict[str, Json] = {"peak_memory": verdict.get("peak_memory")}
        if isinstance(code, int):
            usage |= {"exit_code": code} if code >= 0 else {"signal": -code}
        return usage

    def _output(self) -> str:
        return self.tail.decode("utf-8", "replace")

    # -- ending it -----------------------------------------------------------------------------------------------------

    def stop(self, deadline: float) -> None:
        """Tell the supervisor to end everything; it has until ``deadline``, on the executor's clock."""
        if not self.is_stopped:
            self.is_stopped = True
            with suppress(OSError):
                self.control.shutdown(socket.SHUT_WR)
        self.deadline = deadline

    def kill(self) -> None:
        """End the supervisor itself, where it is still there; its worker dies with it."""
        if not self.has_ended and self.supervisor is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.supervisor, signal.SIGKILL)

    def release(self) -> None:
        """Close our ends."""
        self.control.close()
        os.close(self.results)
        os.close(self.output)

"""Evaluations in processes of their own on any system: started by ``subprocess``, talked to over their standard pipes.

Where ``LocalExecutor`` cannot run (macOS, Windows) this one is taken. It is plainer: a process serves one evaluation
after another and is replaced when one fails, limits on time are kept by ending it, and there are none on memory.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

from nasbot._system import n_cores
from nasbot.errors import OptionError, StudyError
from nasbot.execution._exits import failure_of_exit
from nasbot.execution._frames import FrameError, FrameReader, outcome_from
from nasbot.execution._sending import MAIN, THREADS, preparation, sendable_job, sendable_objective
from nasbot.execution.base import Event, Finished, Job, Limits, Objective, Reported, check_can_submit, check_slots
from nasbot.execution.interruption import allowed
from nasbot.trial import Cancelled, Failed, FailureCause, Outcome, Point

SECONDS_TO_START = 300.0  # for a process that never says that it has begun: importing the objective may hang
SECONDS_TO_GO = 10.0  # after it was killed
SECONDS_BETWEEN_LOOKS = 0.5  # where a wait cannot be interrupted, as on Windows, Ctrl-C is seen this often
TAIL_BYTES = 4000
READ_BYTES = 1 << 16
PROGRAM = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from nasbot.execution._spawned_process import main
main()
"""
LENGTH = struct.Struct(">Q")


class SpawnExecutor:
    """``slots`` processes, each within a limit of seconds for each evaluation. Used by one thread.

    Args:
        slots: how many evaluations run at a time.
        limits: seconds that one may take; a limit on memory is refused, for it needs Linux.
        threads: how many each evaluation's numeric libraries may use; by default an equal share of the cores.
        preload: modules to load beforehand, beside the objective's own.

    Raises:
        OptionError: the options cannot be kept here.
    """

    def __init__(
        self,
        slots: int = 1,
        *,
        limits: Limits | None = None,
        threads: int | None = None,
        preload: Sequence[str] = (),
    ) -> None:
        self.slots = check_slots(slots)
        self.limits = limits or Limits()
        if self.limits.memory is not None:
            raise OptionError("memory per trial: only Linux can limit it; expected no limit on this system")
        self.threads = max(1, n_cores() // self.slots) if threads is None else check_slots(threads)
        self._origin = time.monotonic()
        self._preload = self._modules = tuple(preload)
        self._objective: bytes | None = None
        self._with_main = False
        self._idle: list[_Worker] = []
        self._running: dict[int, _Worker] = {}
        self._events: list[Event] = []
        self._wake = threading.Event()

    def now(self) -> float:
        """Seconds since this executor was made."""
        return time.monotonic() - self._origin

    def start(self, objective: Objective) -> None:
        """Take the objective; OptionError where it cannot be sent to another process."""
        content = sendable_objective(objective)
        self.close()
        self._objective, self._with_main = content, MAIN in content
        self._modules = tuple(dict.fromkeys((*self._preload, *getattr(objective, "preload", ()))))
        self._idle = [self._started() for _ in range(self.slots)]  # so that they load while the first is chosen

    def submit(self, job: Job) -> None:
        """Send the job to a process that has nothing to do, or to a new one."""
        if self._objective is None:
            raise StudyError("the executor has no objective: start it first, and do not use it after close")
        check_can_submit(job, list(self._running), self.slots)
        content = sendable_job(job)
        for worker in [worker for worker in self._idle if worker.process.poll() is not None]:
            self._idle.remove(worker)
            worker.end()
        try:
            worker = self._idle.pop() if self._idle else self._started()
            worker.job, worker.deadline = job, self.now() + SECONDS_TO_START + (self.limits.seconds or 0.0)
            worker.send(content)
        except OSError as error:
            failure = Failed(FailureCause.ENVIRONMENT, f"its process could not be started: {error}")
            self._events.append(Finished(job.number, failure, self.now()))
            return
        self._running[job.number] = worker

    def wait(self, timeout: float | None = None) -> Sequence[Event]:
        """What happened since the last call; wakes up for results, deaths and limits."""
        until = None if timeout is None else self.now() + timeout
        while True:
            self._wake.clear()
            for worker in list(self._running.values()):
                self._look_at(worker)
            if self._events or not self._running:
                events, self._events = self._events, []
                return events
            if until is not None and self.now() >= until:
                return ()
            with allowed():
                self._wake.wait(self._pause(until))

    def cancel(self, number: int) -> None:
        """End this evaluation's process."""
        if number not in self._running:
            raise StudyError(f"trial {number} is not running here")
        self._running.pop(number).end()
        self._events.append(Finished(number, Cancelled(), self.now()))

    def close(self) -> None:
        """End all processes; none is left when this returns."""
        for worker in (*self._running.values(), *self._idle):
            worker.end()
        self._running, self._idle, self._events, self._objective = {}, [], [], None

    # -- one round -----------------------------------------------------------------------------------------------------

    def _started(self) -> _Worker:
        assert self._objective is not None
        output = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the process
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            bufsize=0,
            env={**os.environ, **dict.fromkeys(THREADS, str(self.threads))},
            start_new_session=os.name == "posix",  # Ctrl-C at the terminal is for the driver alone
        )
        worker = _Worker(process, output, self._wake)
        place = preparation("nasbot-worker", with_main=self._with_main)
        try:
            worker.send(json.dumps({**place, "preload": self._modules, "threads": self.threads}).encode())
            worker.send(self._objective)
        except OSError:
            worker.end()
            raise
        return worker

    def _look_at(self, worker: _Worker) -> None:
        job = worker.job
        assert job is not None
        has_ended = worker.has_ended  # asked first: what it said before its end is then all there
        try:
            while worker.received and worker.outcome is None:
                self._take(worker, job, worker.received.popleft())
        except (FrameError, KeyError, TypeError, ValueError) as error:
            worker.outcome = Failed(FailureCause.CRASHED, f"its process sent what is no result: {error}")
        if worker.outcome is None and has_ended:
            worker.outcome = failure_of_exit(worker.exit_code())
        elif worker.outcome is None and self.now() >= worker.deadline:
            own = f"its limit of {self.limits.seconds or 0:g} s"
            limit = own if worker.has_begun else f"{SECONDS_TO_START:g} s to begin"
            worker.outcome = Failed(FailureCause.TIMEOUT, f"not finished within {limit}")
        if worker.outcome is not None:
            del self._running[job.number]
            self._events.append(Finished(job.number, self._released(worker, worker.outcome), self.now()))

    def _take(self, worker: _Worker, job: Job, frame: dict[str, Any]) -> None:
        if frame["trial"] != job.number:
            return  # a thread of an earlier evaluation still reports
        if "begun" in frame:
            worker.has_begun = True
            worker.deadline = float("inf") if self.limits.seconds is None else self.now() + self.limits.seconds
        elif "outcome" in frame:
            worker.outcome = outcome_from(frame["outcome"])
        else:
            self._events.append(Reported(job.number, Point(int(frame["step"]), float(frame["value"]))))

    def _released(self, worker: _Worker, outcome: Outcome) -> Outcome:
        """The outcome, with what the process printed where it failed; a process that scored serves again."""
        if not isinstance(outcome, Failed):
            worker.job, worker.outcome, worker.has_begun = None, None, False
            self._idle.append(worker)
            return outcome
        code = worker.process.poll()
        said = worker.printed()
        worker.end()
        known = {} if code is None else {"exit_code": code} if code >= 0 else {"signal": -code}
        return Failed(outcome.cause, outcome.message, {**outcome.details, "process": {**known, "output": said}})

    def _pause(self, until: float | None) -> float:
        times = [worker.deadline for worker in self._running.values()] + ([] if until is None else [until])
        return max(0.0, min(min(times) - self.now(), SECONDS_BETWEEN_LOOKS))


@dataclass(eq=False)
class _Worker:
    """One process, and a thread that takes what it says as it comes."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]
    wake: threading.Event
    job: Job | None = None
    deadline: float = float("inf")
    outcome: Outcome | None = None
    has_begun: bool = False
    has_ended: bool = False
    received: deque[dict[str, Any]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, name="nasbot-results", daemon=True).start()

    def _read(self) -> None:
        """Runs in the thread, until the process closes its pipe: at its end.

        Only this thread closes the pipe: were it closed elsewhere, its number could be another process's by the time
        of the next read, whose results would go astray.
        """
        frames = FrameReader()
        stream = self.process.stdout
        assert stream is not None
        try:
            with stream:
                while content := os.read(stream.fileno(), READ_BYTES):
                    self.received.extend(frames.feed(content))
                    self.wake.set()
        except (FrameError, OSError, ValueError):
            self.process.kill()  # nothing that it says can be believed any more
        self.has_ended = True
        self.wake.set()

    def send(self, content: bytes) -> None:
        """A message to the process; OSError where it is gone."""
        assert self.process.stdin is not None
        self.process.stdin.write(LENGTH.pack(len(content)) + content)
        self.process.stdin.flush()

    def exit_code(self) -> int:
        """How it ended; it has closed its results, so it is about to."""
        try:
            return self.process.wait(SECONDS_TO_GO)
        except subprocess.TimeoutExpired:
            self.end()
            return self.process.wait()

    def printed(self) -> str:
        """The last of what the process has printed."""
        with suppress(OSError, ValueError):
            size = os.fstat(self.output.fileno()).st_size
            self.output.seek(max(0, size - TAIL_BYTES))
            return self.output.read(TAIL_BYTES).decode("utf-8", "replace")
        return ""

    def end(self) -> None:
        """Kill it, with what it has started where the system has sessions, and wait until it is gone."""
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(SECONDS_TO_GO)
        for stream in (self.process.stdin, self.output):  # the reading thread closes its own
            with suppress(OSError):
                if stream is not None:
                    stream.close()

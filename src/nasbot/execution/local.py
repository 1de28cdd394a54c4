"""One process per evaluation on this machine, each leading a group of its own that can be ended at any time.

Processes come from a fork server that has loaded nasbot (and ``preload``) once, so a fresh one costs milliseconds and
shares nothing with the driver. The objective travels as multiprocessing sends any argument: it must be importable in a
new process (a function or a callable object of a module). Nothing that is sent this way ever reaches a file.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import ForkingPickler

from nasbot._typing import Json
from nasbot.errors import OptionError, StudyError
from nasbot.execution import _child
from nasbot.execution._frames import FrameError, FrameReader, outcome_from
from nasbot.execution.base import Event, Finished, Job, Limits, Objective, Reported, check_can_submit, check_slots
from nasbot.execution.interruption import allowed
from nasbot.trial import Cancelled, Failed, FailureCause, Outcome, Point, Scored

SECONDS_TO_LEAVE = 2.0  # between a process's outcome and its end by force: for its exit functions
TAIL_BYTES = 4000
READ_BYTES = 1 << 16
# Signals that somebody sends; all others are raised by what the process itself does.
SENT_SIGNALS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})


class LocalExecutor:
    """``slots`` processes at a time, each within ``limits``. Used by one thread.

    ``preload`` names modules that the fork server loads beforehand, beside the objective's own; it takes effect if
    this is the first executor of the driver's life that starts a process. ``threads`` is how many each evaluation's
    numeric libraries may use (OMP_NUM_THREADS and its like), by default an equal share of the cores.
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
        self.threads = max(1, len(os.sched_getaffinity(0)) // self.slots) if threads is None else check_slots(threads)
        self._origin = time.monotonic()
        self._context = multiprocessing.get_context("forkserver")
        self._preload = (_child.__name__, *preload)
        self._objective: Objective | None = None
        self._running: dict[int, _Worker] = {}
        self._leaving: list[_Worker] = []
        self._events: list[Event] = []

    def now(self) -> float:
        """Seconds since this executor was made."""
        return time.monotonic() - self._origin

    def start(self, objective: Objective) -> None:
        """Take the objective; OptionError where it cannot be sent to another process."""
        try:
            ForkingPickler.dumps(objective)
        except Exception as error:  # noqa: BLE001  anything may be raised by the objective's own reduction
            raise OptionError(
                "the objective cannot be sent to a worker process; expected a function or an object of an importable "
                f"module (not a lambda or a local function), got {type(error).__name__}: {str(error)[:200]}; "
                "with one worker and without limits any callable will do"
            ) from None
        self._context.set_forkserver_preload([*self._preload, *_home_of(objective)])
        self._objective = objective

    def submit(self, job: Job) -> None:
        """Start a process for this job."""
        if self._objective is None:
            raise StudyError("the executor has no objective: start it first, and do not use it after close")
        check_can_submit(job, list(self._running), self.slots)
        try:
            self._running[job.number] = self._worker(job, self._objective)
        except OSError as error:
            failure = Failed(FailureCause.CRASHED, f"its process could not be started: {error}")
            self._events.append(Finished(job.number, failure, self.now()))
        except Exception as error:  # noqa: BLE001  whatever pickling meets, in a vocabulary's own rules for instance
            raise OptionError(
                f"trial {job.number}: its network cannot be sent to a worker process; are the rules of the vocabulary "
                f"functions of a module? {type(error).__name__}: {str(error)[:200]}"
            ) from None

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
        """End this evaluation's processes at once."""
        if number not in self._running:
            raise StudyError(f"trial {number} is not running here")
        self._end(self._running[number], Cancelled())

    def close(self) -> None:
        """End all evaluations' processes at once; no process group of theirs is left."""
        for worker in (*self._running.values(), *self._leaving):
            worker.kill()
        for worker in (*self._running.values(), *self._leaving):
            worker.release()
        self._running, self._leaving, self._events, self._objective = {}, [], [], None

    # -- one round -----------------------------------------------------------------------------------------------------

    def _worker(self, job: Job, objective: Objective) -> _Worker:
        results, results_out = self._context.Pipe(duplex=False)
        output, output_out = self._context.Pipe(duplex=False)
        lifeline_in, lifeline = self._context.Pipe(duplex=False)
        ours, theirs = (results, output, lifeline), (results_out, output_out, lifeline_in)
        arguments = (objective, job, self.limits, self.threads, *theirs)
        process = self._context.Process(target=_child.main, args=arguments, name=f"nasbot-trial-{job.number}")
        try:
            with _script_left_alone(arguments[:2]):
                process.start()
        except BaseException:
            for end in ours:
                end.close()
            raise
        finally:
            for end in theirs:
                end.close()
        for end in (results, output):
            os.set_blocking(end.fileno(), False)
        deadline = None if self.limits.seconds is None else self.now() + self.limits.seconds
        return _Worker(job, process, results, output, lifeline, deadline)

    def _collect(self) -> None:
        for worker in list(self._running.values()):
            self._look_at(worker)
        for worker in list(self._leaving):
            worker.read_output()
            if worker.has_ended() or (worker.deadline is not None and self.now() >= worker.deadline):
                worker.kill()
                worker.release()
                self._leaving.remove(worker)

    def _look_at(self, worker: _Worker) -> None:
        has_ended = worker.has_ended()  # asked before reading, so that nothing written before the end is missed
        worker.read_output()
        try:
            for frame in worker.read_frames():
                self._take(worker, frame)
        except (FrameError, KeyError, TypeError, ValueError) as error:
            if worker.job.number in self._running:  # after an outcome nothing is listened to
                self._end(worker, worker.failure(FailureCause.CRASHED, f"its process sent what is no result: {error}"))
        if worker.job.number not in self._running:
            return
        if has_ended:
            self._end(worker, worker.death())
        elif worker.deadline is not None and self.now() >= worker.deadline:
            message = f"not finished within its limit of {self.limits.seconds:g} s"
            self._end(worker, worker.failure(FailureCause.TIMEOUT, message))

    def _take(self, worker: _Worker, frame: dict[str, Json]) -> None:
        number = worker.job.number
        if number not in self._running:
            return  # a thread of the objective still reports after its outcome
        if "outcome" not in frame:
            self._events.append(Reported(number, Point(int(frame["step"]), float(frame["value"]))))  # type: ignore[arg-type]
        else:
            outcome = outcome_from(frame["outcome"])  # type: ignore[arg-type]
            self._events.append(Finished(number, worker.with_usage(outcome, frame["peak_memory"]), self.now()))
            del self._running[number]
            worker.deadline = self.now() + SECONDS_TO_LEAVE
            worker.spent.add(worker.results.fileno())  # whatever else it sends must not wake us
            self._leaving.append(worker)

    def _end(self, worker: _Worker, outcome: Outcome) -> None:
        worker.kill()
        worker.release()
        del self._running[worker.job.number]
        self._events.append(Finished(worker.job.number, outcome, self.now()))

    def _sources(self) -> list[Connection | int]:
        return [source for worker in (*self._running.values(), *self._leaving) for source in worker.sources()]

    def _pause(self, until: float | None) -> float | None:
        deadlines = [worker.deadline for worker in (*self._running.values(), *self._leaving)]
        times = [when for when in (until, *deadlines) if when is not None]
        return max(0.0, min(times) - self.now()) if times else None


@contextlib.contextmanager
def _script_left_alone(sent: tuple[object, ...]) -> Iterator[None]:
    """Processes started meanwhile do not run the driver's script again, unless something sent to them lives there.

    multiprocessing runs it in every process, so a script whose search is not under ``if __name__ == "__main__"`` would
    begin to search there too. Where nothing of the script is needed, it is better not looked at.
    """
    main = sys.modules.get("__main__")
    if main is None or b"__main__" in bytes(ForkingPickler.dumps(sent)):
        yield
        return
    hidden: dict[str, object] = {name: vars(main)[name] for name in ("__spec__", "__file__") if name in vars(main)}
    try:
        main.__spec__ = None
        vars(main).pop("__file__", None)
        yield
    finally:
        vars(main).update(hidden)


def _home_of(objective: Objective) -> tuple[str, ...]:
    """The module to load once and not in every process; a script's own code is left to multiprocessing."""
    module = getattr(objective, "__module__", None)
    return (module,) if isinstance(module, str) and module != "__main__" else ()


@dataclass(eq=False)
class _Worker:
    """One evaluation's process and our ends of its three pipes."""

    job: Job
    process: ForkServerProcess
    results: Connection
    output: Connection
    lifeline: Connection  # never written: the process's watchdog sees it close
    deadline: float | None
    frames: FrameReader = field(default_factory=FrameReader)
    tail: bytes = b""
    spent: set[int] = field(default_factory=set)  # descriptors that have come to their end

    def sources(self) -> list[Connection | int]:
        """What to wait on: the process's end, and its pipes while they are open."""
        pipes: list[Connection | int] = [p for p in (self.results, self.output) if p.fileno() not in self.spent]
        return [*pipes, self.process.sentinel]

    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self.process.exitcode is not None

    def read_frames(self) -> list[dict[str, Json]]:
        """The whole frames that have arrived."""
        return self.frames.feed(self._read(self.results))

    def read_output(self) -> None:
        """Keep the last of what the process prints, so that its pipe never fills."""
        self.tail = (self.tail + self._read(self.output))[-TAIL_BYTES:]

    def _read(self, pipe: Connection) -> bytes:
        parts = []
        while pipe.fileno() not in self.spent:
            try:
                part = os.read(pipe.fileno(), READ_BYTES)
            except BlockingIOError:
                break
            parts.append(part)
            if not part:
                self.spent.add(pipe.fileno())
            if len(parts) >= 64:  # a process that prints faster than we read must not keep us here
                break
        return b"".join(parts)

    def death(self) -> Failed:
        """The outcome of a process that ended without one."""
        code = self.process.exitcode or 0
        if code >= 0:
            return self.failure(FailureCause.CRASHED, f"its process ended with exit code {code} and no result")
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        if -code in SENT_SIGNALS:
            return self.failure(FailureCause.KILLED, f"its process was ended by {name}")
        return self.failure(FailureCause.CRASHED, f"its process crashed with {name}")

    def failure(self, cause: FailureCause, message: str) -> Failed:
        """A failure with what is known about the process."""
        code = self.process.exitcode
        details: dict[str, Json] = {"output": self.tail.decode("utf-8", "replace")}
        if code is not None:
            details |= {"exit_code": code} if code >= 0 else {"signal": -code}
        return Failed(cause, message, {"process": details})

    def with_usage(self, outcome: Outcome, peak_memory: Json) -> Outcome:
        """The outcome with the process's peak memory, and with the end of its output where it failed."""
        match outcome:
            case Scored(value, details):
                return Scored(value, {**details, "process": {"peak_memory": peak_memory}})
            case Failed(cause, message, details):
                output = self.tail.decode("utf-8", "replace")
                return Failed(cause, message, {**details, "process": {"peak_memory": peak_memory, "output": output}})
        return outcome

    def kill(self) -> None:
        """End the process and all of its group, at once."""
        if self.process.pid:  # never group 0, which is the driver's own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()  # it may not have made its group yet

    def release(self) -> None:
        """Wait for the killed process to be gone, and close our ends."""
        self.process.join(SECONDS_TO_LEAVE)
        for end in (self.results, self.output, self.lifeline):
            end.close()
        if self.has_ended():
            self.process.close()

"""Evaluations on a Ray cluster: the way out of one machine. The driver keeps the study; nothing of it leaves there.

A trial is one Ray task with resources of its own. On its node it runs as on any machine: in a process forked under a
supervisor, with the same limits and the same outcomes (``local``). What is new is that a node, or Ray's own worker on
it, can be lost: that is Failed(killed), which a study tries once more.

The objective is put once in the cluster's object store, with the folders that it reads; files that it writes come back
(``_transfer``). It must be importable on every node, as nasbot must; with Ray's token authentication (RAY_AUTH_MODE,
RAY_AUTH_TOKEN) driver and nodes need the same token.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

from nasbot._typing import Json
from nasbot._words import first_line
from nasbot.errors import FileError, OptionError, StudyError
from nasbot.execution._frames import FrameError, FrameReader, outcome_from, outcome_record, packed
from nasbot.execution._sending import MAIN
from nasbot.execution._transfer import Files, Unpacked, keep, packed_folders
from nasbot.execution.base import Event, Finished, Job, Limits, Objective, Reported, check_can_submit, check_slots
from nasbot.execution.interruption import allowed
from nasbot.execution.local import LocalExecutor
from nasbot.trial import Cancelled, Failed, FailureCause, Outcome, Point

if TYPE_CHECKING:
    from types import ModuleType

SECONDS_BETWEEN_LOOKS = 0.5  # at signals, while we wait for Ray
# To a cluster elsewhere, unless the user has set it: a head that refuses us is asked every second, 20 times by default,
# and a wrong token is no better the fifth time.
CONNECTING = {"RAY_gcs_server_port_wait_time_s": "4"}
_names = itertools.count()


class RayExecutor:
    """Trials as tasks of the Ray cluster at ``address``, each with so many CPUs and GPUs. Used by one thread.

    Without an address it is the cluster that RAY_ADDRESS names, or else one of this machine's own that ends with this
    executor. ``slots`` trials run at a time: by default as many as the cluster has resources for when it is started.
    ``limits`` hold for each trial on its node, and ``runtime_env`` is handed to Ray.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        cpus_per_trial: float = 1,
        gpus_per_trial: float = 0,
        slots: int | None = None,
        limits: Limits | None = None,
        runtime_env: Mapping[str, Json] | None = None,
    ) -> None:
        self.address = address
        self.cpus_per_trial = _resources("cpus_per_trial", cpus_per_trial)
        self.gpus_per_trial = _resources("gpus_per_trial", gpus_per_trial)
        if not self.cpus_per_trial and not self.gpus_per_trial:
            raise OptionError("cpus_per_trial and gpus_per_trial: a trial needs some of one at least")
        self.limits = limits or Limits()
        self._slots = None if slots is None else check_slots(slots)
        self._runtime_env = dict(runtime_env or {})
        self._origin = time.monotonic()
        self._ray: ModuleType | None = None
        self._is_ours = False  # the connection, to be ended by us
        self._task: Any = None
        self._objective: Objective | None = None
        self._running: dict[int, _Remote] = {}
        self._events: list[Event] = []

    @property
    def slots(self) -> int:
        """How many trials run at a time; 1 until the cluster is known."""
        return self._slots or 1

    def now(self) -> float:
        """Seconds since this executor was made."""
        return time.monotonic() - self._origin

    def start(self, objective: Objective) -> None:
        """Connect to the cluster and put the objective there.

        OptionError where the objective cannot be sent, FileError where there is no cluster.
        """
        try:
            content = bytes(ForkingPickler.dumps(objective))
        except Exception as error:  # noqa: BLE001  anything may be raised by the objective's own reduction
            raise OptionError(
                f"the objective cannot be sent to another machine: {type(error).__name__}: {str(error)[:200]}"
            ) from None
        if MAIN in content:
            raise OptionError(
                "the objective is part of the script that runs; put it in a module that all nodes can import"
            )
        ray = self._connected()
        name = f"{os.getpid()}-{time.time_ns()}-{next(_names)}"
        threads = max(1, int(self.cpus_per_trial))
        stored, folders = ray.put(content), ray.put(packed_folders(objective))
        remote = ray.remote(
            num_cpus=self.cpus_per_trial,
            num_gpus=self.gpus_per_trial,
            max_retries=0,  # whether to try again is the study's to say
            num_returns="streaming",
            scheduling_strategy="SPREAD",
        )(_evaluated_here)
        self._task = lambda job: remote.options(name=f"nasbot-trial-{job.number}").remote(
            stored, folders, name, job, self.limits, threads
        )
        self._objective = objective
        if self._slots is None:
            self._slots = self._room(ray)

    def submit(self, job: Job) -> None:
        """Hand this job to the cluster."""
        if self._task is None:
            raise StudyError("the executor has no objective: start it first, and do not use it after close")
        check_can_submit(job, list(self._running), self.slots)
        try:
            ForkingPickler.dumps(job)
        except Exception as error:  # noqa: BLE001  whatever pickling meets, in a vocabulary's own rules for instance
            raise OptionError(
                f"trial {job.number}: its network cannot be sent to another machine: {type(error).__name__}: "
                f"{str(error)[:200]}"
            ) from None
        try:
            self._running[job.number] = _Remote(job, self._task(job))
        except Exception as error:  # noqa: BLE001  Ray has many ways to say that the cluster is gone
            failure = Failed(FailureCause.CRASHED, f"the cluster did not take it: {_told(error)}")
            self._events.append(Finished(job.number, failure, self.now()))

    def wait(self, timeout: float | None = None) -> Sequence[Event]:
        """What happened since the last call."""
        until = math.inf if timeout is None else self.now() + timeout
        while True:
            self._collect()
            if self._events or not self._running:
                events, self._events = self._events, []
                return events
            pause = min(SECONDS_BETWEEN_LOOKS, until - self.now())
            if pause <= 0:
                return ()
            with allowed():
                self._look(pause)

    def cancel(self, number: int) -> None:
        """End this trial's processes, wherever they are."""
        if number not in self._running:
            raise StudyError(f"trial {number} is not running here")
        self._end(self._running.pop(number))
        self._events.append(Finished(number, Cancelled(), self.now()))

    def close(self) -> None:
        """End all trials, and the connection where this executor has made it."""
        for remote in self._running.values():
            self._end(remote)
        self._running, self._events, self._task = {}, [], None
        if self._ray is not None and self._is_ours:
            self._ray.shutdown()
        self._ray = None

    # -- inside --------------------------------------------------------------------------------------------------------

    def _connected(self) -> ModuleType:
        try:
            import ray
        except ImportError:
            raise OptionError('executor ray: Ray is not installed; pip install "nasbot[ray]"') from None
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            with _own_sigterm(), _set(CONNECTING if self._is_elsewhere() else {}):
                try:
                    ray.init(
                        address=self.address,
                        include_dashboard=None if self._is_elsewhere() else False,
                        log_to_driver=False,
                        logging_level=logging.ERROR,
                        runtime_env=self._runtime_env or None,
                    )
                except Exception as error:  # noqa: BLE001  Ray has many ways to say that there is no cluster
                    raise _unconnected(self.address, error) from None
        self._ray = ray
        return ray

    def _is_elsewhere(self) -> bool:
        return self.address is not None or "RAY_ADDRESS" in os.environ

    def _room(self, ray: ModuleType) -> int:
        """How many trials the whole cluster has resources for."""
        there = ray.cluster_resources()
        wanted = {"CPU": self.cpus_per_trial, "GPU": self.gpus_per_trial}
        room = min(int(there.get(kind, 0) // each) for kind, each in wanted.items() if each)
        if room < 1:
            has = ", ".join(f"{there.get(kind, 0):g} {kind}" for kind in wanted)
            raise OptionError(f"a trial takes {wanted['CPU']:g} CPU and {wanted['GPU']:g} GPU; the cluster has {has}")
        return room

    def _look(self, pause: float) -> None:
        """Wait for anything from any trial; what it is, ``_collect`` finds out."""
        if self._ray is not None:
            with suppress(Exception):  # of a node that is lost; it comes again when its trial is asked
                self._ray.wait([remote.stream for remote in self._running.values()], timeout=pause, fetch_local=False)

    def _collect(self) -> None:
        for remote in list(self._running.values()):
            while remote.job.number in self._running and self._is_ready(remote):
                try:
                    self._receive(remote, self._ray.get(next(remote.stream)))  # type: ignore[union-attr]
                except StopIteration:
                    self._finish(remote, Failed(FailureCause.CRASHED, "its task ended without a result"))
                except (FileError, FrameError, KeyError, TypeError, ValueError) as error:
                    self._finish(remote, Failed(FailureCause.CRASHED, f"its task sent what cannot be taken: {error}"))
                except Exception as error:  # noqa: BLE001  WorkerCrashedError, NodeDiedError and many more
                    self._finish(remote, _lost(error))

    def _is_ready(self, remote: _Remote) -> bool:
        try:
            ready, _ = self._ray.wait([remote.stream], timeout=0, fetch_local=False)  # type: ignore[union-attr]
        except Exception:  # noqa: BLE001
            return True  # then asking it tells why
        return bool(ready)

    def _receive(self, remote: _Remote, item: bytes | tuple[str, str, bytes]) -> None:
        """A frame, or a file that the objective has written on its node."""
        if isinstance(item, tuple) and self._objective is not None:
            keep(self._objective, *item)
        else:
            for record in remote.frames.feed(item):  # type: ignore[arg-type]
                self._take(remote, record)

    def _take(self, remote: _Remote, record: dict[str, Json]) -> None:
        if "outcome" in record:
            self._finish(remote, outcome_from(record["outcome"]))  # type: ignore[arg-type]
        else:
            point = Point(int(record["step"]), float(record["value"]))  # type: ignore[arg-type]
            self._events.append(Reported(remote.job.number, point))

    def _finish(self, remote: _Remote, outcome: Outcome) -> None:
        del self._running[remote.job.number]
        self._events.append(Finished(remote.job.number, outcome, self.now()))

    def _end(self, remote: _Remote) -> None:
        """Ray ends its worker on the node, and with it go the processes of the trial."""
        if self._ray is not None:
            with suppress(Exception):  # it has ended, or its node has
                self._ray.cancel(remote.stream, force=True)


@dataclass(eq=False)
class _Remote:
    """One trial on the cluster: the stream of frames that its task yields."""

    job: Job
    stream: Any
    frames: FrameReader = field(default_factory=FrameReader)


def _lost(error: Exception) -> Failed:
    """Ray's worker or its node is gone, which says nothing about the network; or the task itself raised, a bug."""
    kind = type(error).__name__
    if kind == "RayTaskError" or kind.startswith("RayTaskError("):
        return Failed(FailureCause.CRASHED, f"its task failed on its node: {_told(error)}")
    if kind == "OutOfMemoryError":
        return Failed(FailureCause.OOM, "Ray ended its worker, because its node had no memory left")
    return Failed(FailureCause.KILLED, f"its worker or its node is gone: {_told(error)}")


def _unconnected(address: str | None, error: Exception) -> FileError:
    """Why there is no connection; Ray has its reason in the exception's cause, and many ways to say it."""
    where = address or os.environ.get("RAY_ADDRESS", "this machine")
    if type(error).__name__ != "AuthenticationError" and "InvalidAuthToken" not in f"{error} {error.__cause__}":
        return FileError(f"no Ray cluster at {where}: {_told(error)}")
    given = "RAY_AUTH_TOKEN is another" if "RAY_AUTH_TOKEN" in os.environ else "RAY_AUTH_TOKEN is not set here"
    return FileError(
        f"the Ray cluster at {where} refuses the connection: it asks for its token, and {given}; set "
        "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to those of its head"
    )


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """These variables of the environment, where nobody has set them."""
    ours = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error) or 'no message'}"


def _resources(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise OptionError(f"{name}: expected a number >= 0, got {value!r}")
    return value


class _own_sigterm:
    """Ray takes SIGTERM for itself when it is initialised; here it is taken back."""

    def __enter__(self) -> None:
        self._before = signal.getsignal(signal.SIGTERM)

    def __exit__(self, *_: object) -> None:
        if self._before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._before)


# -- on the node -------------------------------------------------------------------------------------------------------


class _Here:
    """An objective on this node, ready for the next trial."""

    def __init__(self, content: bytes, folders: Mapping[str, Files], limits: Limits, threads: int) -> None:
        self.unpacked = Unpacked(ForkingPickler.loads(content), folders)
        self.executor = LocalExecutor(1, limits=limits, threads=threads)
        try:
            self.executor.start(self.unpacked.objective)
        except BaseException:
            self.unpacked.remove()
            raise
        atexit.register(self.close)

    def close(self) -> None:
        atexit.unregister(self.close)
        self.executor.close()
        self.unpacked.remove()


_here: dict[str, _Here] = {}  # the last one that this worker of Ray's has evaluated


def _evaluated_here(
    content: bytes, folders: Mapping[str, Files], name: str, job: Job, limits: Limits, threads: int
) -> Iterator[bytes | tuple[str, str, bytes]]:
    """The task: one evaluation on this node, frame by frame, with the files it leaves before its outcome."""
    if name not in _here:
        for other in list(_here):
            _here.pop(other).close()
        try:
            _here[name] = _Here(content, folders, limits, threads)
        except BaseException as error:  # noqa: BLE001  importing the objective's module runs whatever is in it
            told = f"the objective cannot be loaded on its node: {_told(error)}"
            yield packed({"outcome": outcome_record(Failed(FailureCause.EXCEPTION, told))})
            return
    here = _here[name]
    here.executor.submit(job)
    while True:
        for event in here.executor.wait():
            if isinstance(event, Finished):
                yield from here.unpacked.left()
                yield packed({"outcome": outcome_record(event.outcome)})
                return
            yield packed({"step": event.point.step, "value": event.point.value})

"""The process of ``SpawnExecutor``: it takes the objective once, then job after job, and ends with its driver."""

from __future__ import annotations

import json
import os
import queue
import signal
import struct
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from typing import IO, Any

from nasbot.execution import _sending
from nasbot.execution._frames import FrameSender
from nasbot.execution.base import Job, Objective
from nasbot.execution.evaluation import LiveTrial, evaluate
from nasbot.trial import Failed

LENGTH = struct.Struct(">Q")


def main() -> None:
    """Serve the driver until it is gone."""
    _sending.is_worker_process = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver, which then ends this process
    sender, messages = FrameSender(os.dup(1)), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # what the objective prints is no result
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(messages, waiting), daemon=True).start()
    preparation: dict[str, Any] = json.loads(waiting.get())
    objective = _loaded(waiting.get(), preparation)
    while True:
        job: Job = ForkingPickler.loads(waiting.get())
        sender.send({"trial": job.number, "begun": True})
        live = LiveTrial(job, lambda point, number=job.number: sender.report(point, trial=number))  # type: ignore[misc]
        outcome = objective if isinstance(objective, Failed) else evaluate(objective, live)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        sender.end(outcome, trial=job.number)


def _receive(messages: IO[bytes], waiting: queue.SimpleQueue[bytes]) -> None:
    """In a thread of its own, so that the end of the driver ends this process, whatever it is doing."""
    try:
        while header := messages.read(LENGTH.size):
            waiting.put(messages.read(LENGTH.unpack(header)[0]))
    finally:
        os._exit(0)


def _loaded(content: bytes, preparation: Mapping[str, Any]) -> Objective | Failed:
    own = {"preload", "threads"}
    place = {name: value for name, value in preparation.items() if name not in own}
    objective = _sending.loaded(content, _sending.prepared(place, preparation["preload"]))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(preparation["threads"])
    return objective

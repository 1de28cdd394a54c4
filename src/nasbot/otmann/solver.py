"""Who computes a distance: the kernels as plain Python, or their compiled twins. Both give the same, to the last bit.

The first use of the compiled ones after an installation takes ten seconds or more, and even from numba's cache they
take longer to load than a few distances take in Python. So a process begins in Python and changes over once it has been
asked for about a second of that. NASBOT_PLAIN_SOLVER=1 stays with Python, and so does an installation whose numba is
missing or of a version that is not known; one line of the log says so then.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Event, Lock, Thread

from nasbot.otmann._kernels import bounds, pairs, path_pass

SWITCH = "NASBOT_PLAIN_SOLVER"
# Work is counted in pairs of layers, of which Python compares some 150,000 in a second of a core.
PLAIN_WORK = 150_000
WORK_PER_PACKED_LAYER = 20
SECONDS_UNTIL_SAID = 2.0

LOG = logging.getLogger("nasbot")


@dataclass(frozen=True)
class Solver:
    """The two kernels that distances are made with."""

    pack_networks: Callable[..., int]
    add_distances: Callable[..., int]
    is_compiled: bool


PLAIN = Solver(path_pass.pack_networks, pairs.add_distances, is_compiled=False)


@cache
def bounding(is_compiled: bool) -> Callable[..., int]:
    """The kernel of lower bounds, which only an index of many networks needs: compiled when that is asked for."""
    if not is_compiled:
        return bounds.mean_bounds
    from nasbot.otmann._kernels.compiled import compiled

    return compiled(bounds.mean_bounds)


class _Choice:
    """What this process has computed in Python so far, and the compiled solver once it is there."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.work = 0.0
        self.compiled: Solver | None = None
        self.is_settled = False  # compiled is there, or it is known that it cannot be


_choice = _Choice()


def solver_for(work: float) -> Solver:
    """The solver for so much work: compiled, once this process has had enough to do for that.

    While another thread compiles, Python goes on: nobody waits for what gives the same numbers.
    """
    if _is_switched_off():
        return PLAIN
    if not _choice.is_settled:
        _choice.work += work
        if _choice.work > PLAIN_WORK and not _choice.lock.locked():
            compile_solver()
    return _choice.compiled or PLAIN


def compile_solver() -> bool:
    """Have the compiled solver ready, compiling it where numba has not kept it; False where it cannot be had."""
    if _is_switched_off():
        return False
    with _choice.lock:
        if not _choice.is_settled:
            _choice.compiled = _compiled()
            _choice.is_settled = True
    return _choice.compiled is not None


def compile_in_background() -> Thread:
    """``compile_solver`` beside whatever else there is to do; join the thread where a clock is about to start."""
    thread = Thread(target=compile_solver, name="nasbot-compile", daemon=True)
    thread.start()
    return thread


def _is_switched_off() -> bool:
    return os.environ.get(SWITCH, "").strip().lower() in {"1", "true", "yes", "on"}


def _compiled() -> Solver | None:
    with _said_if_long():
        try:
            from nasbot.otmann._kernels.compiled import compiled
        except (
            ImportError,
            AttributeError,
            RuntimeError,
        ) as error:  # numba, a private name in it, or room for its cache
            LOG.warning("distances take about 200 times as long: no compiled solver, since %s", error)
            return None
        return Solver(compiled(PLAIN.pack_networks), compiled(PLAIN.add_distances), is_compiled=True)


@contextmanager
def _said_if_long() -> Iterator[None]:
    """One line if it takes long enough to be noticed, and one when it is done then.

    By the processor's time: reading what numba has kept takes 0.7 s of it, which can be many by the clock.
    """
    begun, busy = time.monotonic(), time.process_time()
    is_over, said = Event(), Event()

    def watch() -> None:
        while not is_over.wait(SECONDS_UNTIL_SAID):
            if time.process_time() - busy >= SECONDS_UNTIL_SAID:
                LOG.warning("compiling the distance solver, once after an installation: 10 to 30 s")
                said.set()
                return

    watcher = Thread(target=watch, name="nasbot-compile-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
    if said.is_set():
        LOG.warning("compiled the distance solver in %.0f s", time.monotonic() - begun)

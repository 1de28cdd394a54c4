"""Ctrl-C and its kin, without a traceback and without a record half made.

    with leaving_on_signals(second_kills=True):        # what ``nasbot run`` says, around all its work
        study.optimise(...)

The first SIGINT (Ctrl-C), SIGTERM, SIGHUP (the terminal is gone; not under nohup) or SIGUSR1 (which batch schedulers
send before they kill) raises ``Interrupted``, a KeyboardInterrupt: at once, but out of ``Study.optimise`` only when its
running trials wait again and everything is recorded. Inside ``optimise`` it is raised in ``allowed()`` alone: while an
evaluation, a proposal or a wait goes on, all of which can be thrown away. So no record is ever cut in two, and what
cleans up does so undisturbed.

A second signal ends the process at once where ``second_kills`` says so (evaluations die with it, and what was
acknowledged is on disk); otherwise it is a plain KeyboardInterrupt wherever the process is. ``Study.optimise`` enters
this by itself for those of the signals that nobody else has taken; the outermost ``with`` decides.

A command ends like this, and ``nasbot.cli`` makes exit code 130 of what is raised again:

    except Interrupted as stop:
        print(interrupted_message(study, stop, resume=command_line), file=sys.stderr)  # nasbot.study
        raise
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import NoReturn, TypeAlias

from nasbot._system import signals

Hook: TypeAlias = "Callable[[sys.UnraisableHookArgs], object]"

LEAVING = signals("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP")  # the last unless nohup ignores it
EXIT_CODE = 128 + signal.SIGINT
UNTAKEN = (signal.SIG_DFL, signal.default_int_handler)


class Interrupted(KeyboardInterrupt):
    """A signal asked the study to leave, and it has: everything is recorded. ``signal`` says which one it was."""

    def __init__(self, message: str = "", *, signal_number: int = signal.SIGINT) -> None:
        super().__init__(message or f"asked to leave by {signal.Signals(signal_number).name}")
        self.signal = signal_number

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks show of it: what was asked for needs no traceback."""
        return [str(self)]


class _Leaving:
    """What the signals have asked for so far; of the main thread, where Python runs its handlers."""

    def __init__(self, *, second_kills: bool) -> None:
        self.asked_by: int | None = None
        self.has_raised = False
        self.may_raise = True
        self._second_kills = second_kills

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Remember the first signal, and raise it where that is allowed; obey the second at once."""
        if self.asked_by is not None:
            raise KeyboardInterrupt
        self.asked_by = number
        if self._second_kills:  # by the kernel, so that not even a busy interpreter delays it
            for other in LEAVING:
                signal.signal(other, signal.SIG_DFL)
        if self.may_raise:
            self.leave()

    def leave(self) -> NoReturn:
        """Raise what the first signal asked for."""
        self.has_raised = True
        raise Interrupted(signal_number=self.asked_by or signal.SIGINT)

    @contextmanager
    def region(self, *, may_raise: bool) -> Iterator[None]:
        """For the time of this ``with`` the first signal is raised where it comes, or is not."""
        before = self.may_raise
        try:
            self.may_raise = may_raise
            yield
        except Exception:
            self.blame()
            raise
        finally:
            self.may_raise = before

    def blame(self) -> None:
        """An error after the signal was raised is its work: C code that is interrupted makes errors of its own."""
        if self.has_raised:
            raise Interrupted(signal_number=self.asked_by or signal.SIGINT) from None


_current: _Leaving | None = None


@contextmanager
def leaving_on_signals(*, second_kills: bool = False) -> Iterator[None]:
    """Take the signals that ask a process to leave, for the time of this ``with``; see above.

    Only those whose handling is still Python's own are taken, and none outside the main thread. Inside another one
    this does nothing.
    """
    global _current
    if _current is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    leaving = _Leaving(second_kills=second_kills)
    before = {number: signal.getsignal(number) for number in LEAVING}
    taken = [number for number, handler in before.items() if handler in UNTAKEN]
    unraisable = sys.unraisablehook
    try:
        _current = leaving
        sys.unraisablehook = _quietly(unraisable)
        if sys.excepthook is sys.__excepthook__:  # to stay: what ends a script is raised after this ``with``
            sys.excepthook = _without_traceback
        for number in taken:
            signal.signal(number, leaving.handle)
        yield
    except Exception:
        leaving.blame()
        raise
    finally:
        leaving.may_raise = False
        _current = None
        if leaving.asked_by is None or not second_kills:  # on its way out a process stays easy to kill
            for number in taken:
                signal.signal(number, before[number])
        sys.unraisablehook = unraisable
    if leaving.asked_by is not None and not leaving.has_raised:  # it came too late to end anything; it still counts
        leaving.leave()


@contextmanager
def allowed() -> Iterator[None]:
    """Here a signal to leave may raise Interrupted, at any point; one that came before raises it at once."""
    leaving = _of_this_thread()
    if leaving is None:
        yield
        return
    with leaving.region(may_raise=True):
        if leaving.asked_by is not None:
            leaving.leave()
        yield


@contextmanager
def shielded() -> Iterator[None]:
    """Here a signal to leave is remembered until the next ``allowed()``."""
    leaving = _of_this_thread()
    if leaving is None:
        yield
        return
    with leaving.region(may_raise=False):
        yield


def _without_traceback(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    """At the end of a script: Interrupted is its message and the exit code of Ctrl-C, all else as ever."""
    if not isinstance(error, Interrupted):
        sys.__excepthook__(kind, error, at)
        return
    print(error, file=sys.stderr)
    raise SystemExit(EXIT_CODE)


def _of_this_thread() -> _Leaving | None:
    return _current if threading.current_thread() is threading.main_thread() else None


def _quietly(hook: Hook) -> Hook:
    """The hook for exceptions that nobody can catch (in a __del__), silent about ours: ``allowed`` raises it again."""

    def shown(unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, Interrupted):
            hook(unraisable)

    return shown

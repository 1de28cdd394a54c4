"""What the operating system has: the names that some lack, each with what is done instead.

Linux has all of them. macOS has no ``sched_getaffinity``, ``memfd_create``, ``SOCK_SEQPACKET`` or ``/proc``; Windows
lacks most. docs/reference/systems.md says what follows from that, and tests/systems runs with each name taken away.
"""

from __future__ import annotations

import os
import signal


def n_cores() -> int:
    """The cores that this process may use; all of the machine's where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def signals(*names: str) -> tuple[signal.Signals, ...]:
    """Those of the signals that this system has."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


def flags(*names: str) -> int:
    """Those of the flags of ``os.open`` that this system has, together."""
    found = 0
    for name in names:
        found |= getattr(os, name, 0)
    return found


def be_nice(niceness: int) -> None:
    """Let other processes go first, where the system knows that."""
    try:
        os.nice(niceness)
    except (OSError, AttributeError):
        return

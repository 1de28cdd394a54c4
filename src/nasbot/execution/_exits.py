"""What the end of a process without a result means."""

from __future__ import annotations

import signal

from nasbot._system import signals
from nasbot.trial import Failed, FailureCause

# Signals that somebody sends; all others are raised by what the process itself does.
SENT_SIGNALS = frozenset(signals("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"))


def failure_of_exit(code: int) -> Failed:
    """The outcome of a process that ended with this code, as ``subprocess`` says it: negative for a signal."""
    if code >= 0:
        return Failed(FailureCause.CRASHED, f"its process ended with exit code {code} and no result")
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    if -code in SENT_SIGNALS:
        return Failed(FailureCause.KILLED, f"its process was ended by {name}")
    return Failed(FailureCause.CRASHED, f"its process crashed with {name}")

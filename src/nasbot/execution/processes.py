"""Processes of this machine for evaluations: by the fork server where the system has what it needs, else plain ones."""

from __future__ import annotations

from nasbot.execution.base import Limits
from nasbot.execution.local import LocalExecutor, fork_server_lacks
from nasbot.execution.spawned import SpawnExecutor


def process_executor(
    slots: int = 1, *, limits: Limits | None = None, threads: int | None = None
) -> LocalExecutor | SpawnExecutor:
    """A ``LocalExecutor`` on Linux, a ``SpawnExecutor`` elsewhere."""
    if fork_server_lacks():
        return SpawnExecutor(slots, limits=limits, threads=threads)
    return LocalExecutor(slots, limits=limits, threads=threads)

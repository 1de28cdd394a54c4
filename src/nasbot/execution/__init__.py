"""Where an evaluation runs: here, in processes of its own, on a cluster, or on a simulated clock."""

from nasbot.execution.base import Event, Executor, Finished, Job, Limits, Objective, Reported
from nasbot.execution.evaluation import LiveTrial, evaluate, outcome_of
from nasbot.execution.interruption import Interrupted, leaving_on_signals
from nasbot.execution.local import LocalExecutor
from nasbot.execution.processes import process_executor
from nasbot.execution.ray_cluster import RayExecutor
from nasbot.execution.serial import SerialExecutor
from nasbot.execution.simulated import SimulatedExecutor
from nasbot.execution.spawned import SpawnExecutor

__all__ = [
    "Event",
    "Executor",
    "Finished",
    "Interrupted",
    "Job",
    "Limits",
    "LiveTrial",
    "LocalExecutor",
    "Objective",
    "RayExecutor",
    "Reported",
    "SerialExecutor",
    "SimulatedExecutor",
    "SpawnExecutor",
    "evaluate",
    "leaving_on_signals",
    "outcome_of",
    "process_executor",
]

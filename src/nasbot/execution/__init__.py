"""Where an evaluation runs: here, in processes of its own, on a cluster, or on a simulated clock."""

from nasbot.execution.base import Event, Executor, Finished, Job, Limits, Objective, Reported
from nasbot.execution.evaluation import LiveTrial, evaluate, outcome_of
from nasbot.execution.interruption import Interrupted, leaving_on_signals
from nasbot.execution.local import LocalExecutor
from nasbot.execution.ray_cluster import RayExecutor
from nasbot.execution.serial import SerialExecutor
from nasbot.execution.simulated import SimulatedExecutor

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
    "evaluate",
    "leaving_on_signals",
    "outcome_of",
]

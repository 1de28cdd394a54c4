"""What must be so that an objective and its jobs can be sent to another process, and the words where it is not."""

from __future__ import annotations

from multiprocessing import spawn
from multiprocessing.reduction import ForkingPickler

from nasbot.errors import OptionError
from nasbot.execution.base import Job, Objective

MAIN = b"__main__"
# Set in worker processes: the script that is being imported there must not start a study of its own.
is_worker_process = False


def sendable_objective(objective: Objective) -> bytes:
    """The objective as multiprocessing sends any argument; OptionError where it cannot be sent."""
    if is_worker_process:
        raise OptionError(
            "a study was started while a worker process imported the script; "
            'put what the script runs under if __name__ == "__main__":'
        )
    try:
        content = bytes(ForkingPickler.dumps(objective))
    except Exception as error:  # noqa: BLE001  anything may be raised by the objective's own reduction
        raise OptionError(
            "the objective cannot be sent to a worker process; expected a function or an object of an importable "
            f"module (not a lambda or a local function), got {type(error).__name__}: {str(error)[:200]}; "
            "with one worker and without limits any callable will do"
        ) from None
    if MAIN in content and not _main_can_be_imported():
        raise OptionError(
            "the objective is defined in a notebook cell or on the command line, where a worker process cannot import "
            "it from; write it to a file (in a notebook: %%writefile objective.py at the top of its cell) and import "
            "it from there, or use one worker without limits"
        )
    return content


def sendable_job(job: Job) -> bytes:
    """The job as it is sent; OptionError where its network cannot be."""
    try:
        return bytes(ForkingPickler.dumps(job))
    except Exception as error:  # noqa: BLE001  whatever pickling meets, in a vocabulary's own rules for instance
        raise OptionError(
            f"trial {job.number}: its network cannot be sent to a worker process; are the rules of the vocabulary "
            f"functions of a module? {type(error).__name__}: {str(error)[:200]}"
        ) from None


def _main_can_be_imported() -> bool:
    """Whether the driver's script is a file or a module; a notebook, ``python -c`` and a console have none."""
    data = spawn.get_preparation_data("nasbot")
    return "init_main_from_path" in data or "init_main_from_name" in data

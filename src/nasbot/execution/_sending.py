"""What must be so that an objective and its jobs can be sent to another process, and the words where it is not."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from multiprocessing import spawn
from multiprocessing.reduction import ForkingPickler
from typing import Any

from nasbot.errors import OptionError
from nasbot.execution.base import Job, Objective
from nasbot.trial import Failed, FailureCause

MAIN = b"__main__"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
is_worker_process = False
_is_importing_script = False
_MAIN_IN_WORKER = "__mp_main__"  # multiprocessing's name for the driver's script


class StudyReached(BaseException):
    """Where a worker process that imports the driver's script comes to its study: the import ends there."""


def stop_at_study() -> None:
    """To be called before anything is done for a study: what a script defined by then is all that a worker needs."""
    if _is_importing_script:
        raise StudyReached


def preparation(name: str, *, with_main: bool) -> dict[str, Any]:
    """As multiprocessing prepares a new process. The script is imported only where the objective comes from it."""
    wanted = {"sys_path", "sys_argv", "orig_dir", "dir"}
    if with_main:
        wanted |= {"init_main_from_path", "init_main_from_name"}
    return {
        key: value for key, value in spawn.get_preparation_data(name).items() if key in wanted and value is not None
    }


def prepared(preparation: Mapping[str, Any], preload: Iterable[str]) -> str:
    """Be where the driver is, and load these modules; returns what to add where the objective cannot be loaded."""
    trouble = import_script(preparation)
    for module in preload:
        with suppress(Exception, SystemExit):
            import_module(module)
    return trouble


def loaded(content: bytes, trouble: str) -> Objective | Failed:
    """The objective that was sent, or what became of it where it cannot be made again here."""
    try:
        objective: Objective = ForkingPickler.loads(content)
    except BaseException as error:  # noqa: BLE001  importing the objective's module runs whatever is in it
        message = f"the objective cannot be loaded in a worker process: {told(error)}{trouble}"
        return Failed(FailureCause.EXCEPTION, message)
    return objective


def import_script(preparation: Mapping[str, Any]) -> str:
    """Be where the driver is: folder, search path, and the script where ``preparation`` names it.

    A script that starts a study outside ``if __name__ == "__main__":``, or fails, is kept as far as it came. Returns
    what to add where the objective then cannot be loaded.
    """
    global _is_importing_script
    _is_importing_script = True
    try:
        spawn.prepare(dict(preparation))
    except StudyReached as reached:
        _keep_script(reached)
        return '; the script starts a study first: put that under if __name__ == "__main__":'
    except BaseException as error:  # noqa: BLE001  the script may do anything
        _keep_script(error)
        return f"; before that, importing the script failed: {told(error)}"
    finally:
        _is_importing_script = False
    return ""


def told(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {str(error)[:300]}"


def _keep_script(error: BaseException) -> None:
    """Take what a script had defined when it was left for the module that the objective is loaded from."""
    step = error.__traceback__
    while step is not None:
        names = step.tb_frame.f_globals
        if names.get("__name__") == _MAIN_IN_WORKER:
            script = types.ModuleType(_MAIN_IN_WORKER)
            script.__dict__.update(names)
            sys.modules["__main__"] = sys.modules[_MAIN_IN_WORKER] = script
            return
        step = step.tb_next


def sendable_objective(objective: Objective) -> bytes:
    """The objective as multiprocessing sends any argument; OptionError where it cannot be sent."""
    stop_at_study()
    if is_worker_process:
        raise OptionError(
            "an objective in a worker process started a study with worker processes of its own; expected one worker "
            "and no limits there"
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

"""What happens where processes, folders and networks of evaluations fail at odd moments, one by one."""

import inspect
import os
import resource
import subprocess
import sys
import tempfile
import threading
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.errors import FileError, OptionError
from nasbot.execution import (
    LocalExecutor,
    SimulatedExecutor,
    SpawnExecutor,
    _child,
    _sending,
    _spawned_process,
    _tree,
    local,
    ray_cluster,
    spawned,
)
from nasbot.execution._fork_server import ForkServer
from nasbot.execution._transfer import Unpacked, packed_folders
from nasbot.execution.base import Job
from nasbot.execution.evaluation import LiveTrial
from nasbot.execution.interruption import leaving_on_signals
from nasbot.execution.processes import process_executor
from nasbot.execution.ray_cluster import RayExecutor
from nasbot.trial import Failed, FailureCause, Scored
from tests.execution import objectives

POOL = [Candidate(arch) for arch in initial_pool("mlp-reg")]

# -- limits ------------------------------------------------------------------------------------------------------------

# What is refused, kept or shown depends on these: whoever chooses another changes it here too, and says why.
LIMITS = {
    "_child": {"ROOM_TO_REPORT": 64_000_000},
    "_fork_server_process": {"MAX_REQUEST": 1 << 17},
    "_frames": {"MAX_FRAME": 16_000_000, "CANNOT_SEND": 70},
    "_supervisor": {"PR_SET_PDEATHSIG": 1, "PR_SET_CHILD_SUBREAPER": 36},
    "evaluation": {"MAX_MESSAGE": 500, "MAX_TRACEBACK": 4000, "MAX_STEP": 2**62},
    "interruption": {"EXIT_CODE": 130},
    "local": {"TAIL_BYTES": 4000, "READ_BYTES": 1 << 16},
    "spawned": {"TAIL_BYTES": 4000, "READ_BYTES": 1 << 16},
}


@pytest.mark.parametrize("module", LIMITS)
def test_limits_that_somebody_chose(module):
    found = import_module(f"nasbot.execution.{module}")
    assert {name: getattr(found, name) for name in LIMITS[module]} == LIMITS[module]


DEFAULTS = {
    LocalExecutor: {"slots": 1},
    SpawnExecutor: {"slots": 1, "limits": None, "threads": None, "preload": ()},
    SimulatedExecutor: {"slots": 1},
    process_executor: {"slots": 1},
    RayExecutor: {"cpus_per_trial": 1, "gpus_per_trial": 0},
    Job: {"seed": 0, "fidelity": 1.0},
    LiveTrial: {"raises": True},
    local._Worker: {"has_ended": False, "has_begun": False, "never_began": False, "is_stopped": False},
    spawned._Worker: {"has_begun": False, "has_ended": False},
    leaving_on_signals: {"second_kills": False},
}


def test_what_is_meant_where_nothing_is_said():
    for function, defaults in DEFAULTS.items():
        said = inspect.signature(function).parameters
        assert {name: said[name].default for name in defaults} == defaults, function


# -- in the process of an evaluation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 10])
def test_not_even_enough_memory_to_say_what_failed(monkeypatch, limit):
    def full(*_):
        raise MemoryError

    restored = []
    monkeypatch.setattr(_child, "evaluate", full)
    monkeypatch.setattr(_child, "_limit_memory", lambda memory: limit)
    monkeypatch.setattr(_child.resource, "setrlimit", lambda *given: restored.append(given))
    assert _child._evaluated(None, None, 5) == Failed(FailureCause.OOM, "MemoryError")
    assert restored == ([] if limit is None else [(resource.RLIMIT_DATA, (10, 10))])


def test_a_torch_that_is_loaded_is_told_its_threads(monkeypatch):
    told = []
    preparation = {"preload": [], "threads": 3, "dir": "here"}
    monkeypatch.setattr(_sending, "prepared", lambda place, preload: told.append((place, preload)) or "")
    monkeypatch.setattr(_sending, "loaded", lambda content, trouble: (content, trouble))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(set_num_threads=told.append))
    _child._set_threads(2)
    assert _spawned_process._loaded(b"x", preparation) == (b"x", "")
    assert told == [2, ({"dir": "here"}, []), 3]
    monkeypatch.delitem(sys.modules, "torch")
    _child._set_threads(2)
    assert _spawned_process._loaded(b"x", preparation) == (b"x", "")
    assert len(told) == 4


def test_an_objective_that_starts_processes_of_its_own_is_refused(monkeypatch):
    assert _sending.sendable_objective(objectives.killed)
    monkeypatch.setattr(_sending, "is_worker_process", True)
    with pytest.raises(OptionError, match="started a study with worker processes of its own; expected one worker and"):
        _sending.sendable_objective(objectives.killed)


def test_a_fork_server_whose_driver_is_gone_ends_at_once():
    code = "from nasbot.execution._fork_server_process import main; main(0, -1)"
    ended = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, timeout=120, capture_output=True)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_a_fork_server_that_somebody_else_has_collected_is_gone():
    server = ForkServer(1, (), with_main=False)
    server.pid = os.getppid()  # which is no child of ours
    assert not server._is_running()
    assert server.pid == 0


def test_not_every_process_is_looked_at_where_the_kernel_names_children(monkeypatch):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert child.pid in _tree.descendants(os.getpid())
        monkeypatch.setattr(_tree, "_children_of_all", lambda: pytest.fail("all were looked at"))
        if Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
            assert child.pid in _tree.descendants(os.getpid())
    finally:
        child.communicate(b"\n")


# -- workers of this machine -------------------------------------------------------------------------------------------


class Slow:
    """A worker that should have left, and notes what is done to it."""

    def __init__(self, *, is_stopped=False, supervisor=None, outcome=None):
        self.is_stopped, self.supervisor, self.outcome = is_stopped, supervisor, outcome
        self.never_began, self.noted = False, []

    def kill(self):
        self.noted.append("kill")

    def stop(self, deadline):
        self.noted.append("stop")
        self.deadline = deadline


@pytest.mark.parametrize(
    ("worker", "noted", "ends_server"),
    [
        (Slow(is_stopped=True), ["kill", "stop"], False),
        (Slow(), ["stop"], True),
        (Slow(supervisor=5), ["stop"], False),
        (Slow(outcome=Scored(1.0)), ["stop"], False),
    ],
    ids=["stopped", "never began", "runs", "scored"],
)
@pytest.mark.parametrize("has_server", [True, False])
def test_patience_with_a_worker(worker, noted, ends_server, has_server):
    executor, ended = LocalExecutor(1), []
    executor._server = SimpleNamespace(end=lambda: ended.append(True)) if has_server else None
    worker.never_began, worker.noted = False, []
    before = executor.now()
    executor._lose_patience(worker)
    assert worker.noted == noted
    assert before + 5.0 <= worker.deadline <= executor.now() + 5.0
    assert (worker.never_began, bool(ended)) == (ends_server and has_server,) * 2
    executor._server = None


# -- folders that travel -----------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="null"):
        Unpacked(object(), {"data": {"a": b"1", "b\0": b"2"}})
    assert list(tmp_path.iterdir()) == []
    here = Unpacked(object(), {})
    assert len(list(tmp_path.iterdir())) == 1
    here.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_cannot_be_sent(tmp_path):
    with pytest.raises(FileError, match=r"^the objective's folder cannot be sent: no folder .*gone$"):
        packed_folders(SimpleNamespace(carries=("data",), data=tmp_path / "gone"))


def test_an_objective_that_cannot_be_started_on_a_node_leaves_no_folder(monkeypatch):
    removed = []

    class Refusing:
        def __init__(self, *_, **__):
            pass

        def start(self, objective):
            raise OptionError("no")

    unpacked = SimpleNamespace(objective=None, remove=lambda: removed.append(True))
    monkeypatch.setattr(ray_cluster, "LocalExecutor", Refusing)
    monkeypatch.setattr(ray_cluster, "Unpacked", lambda *_: unpacked)
    with pytest.raises(OptionError, match="no"):
        ray_cluster._Here(_sending.sendable_objective(objectives.killed), {}, None, 1)
    assert removed == [True]


def test_a_network_that_cannot_be_sent_to_another_machine():
    executor = RayExecutor(slots=1)
    executor._task = lambda job: pytest.fail("it was sent")
    with pytest.raises(
        OptionError, match=r"^trial 7: its network cannot be sent to another machine: .*lambda"
    ) as raised:
        executor.submit(Job(7, lambda: POOL[0]))
    assert len(str(raised.value)) < 300
    assert executor._running == {}


# -- spawned processes -------------------------------------------------------------------------------------------------


class Process:
    """As much of a process as a worker asks for; it ends when it is killed."""

    pid = 2**22 + 1  # nobody's

    def __init__(self, said=b""):
        ours, theirs = os.pipe()
        os.write(theirs, said)
        os.close(theirs)
        self.stdin, self.stdout, self.waits, self.n_kills = None, os.fdopen(ours, "rb"), [], 0

    def kill(self):
        self.n_kills += 1

    def wait(self, seconds=None):
        self.waits.append(seconds)
        if not self.n_kills:
            raise subprocess.TimeoutExpired("it", seconds)
        return -9


def ended(said):
    wake = threading.Event()
    worker = spawned._Worker(Process(said), tempfile.TemporaryFile(), wake)  # noqa: SIM115  it closes it
    while not worker.has_ended:
        assert wake.wait(60)
    return worker


@pytest.mark.parametrize(("said", "n_kills"), [(b"", 0), (b"\xff" * 64, 1)])
def test_a_process_that_says_what_nobody_can_believe_is_killed(said, n_kills):
    worker = ended(said)
    assert worker.process.n_kills == n_kills
    worker.end()


def test_a_process_that_does_not_go_is_ended():
    worker = ended(b"")
    assert worker.exit_code() == -9
    assert worker.process.n_kills == 1
    assert worker.process.waits == [spawned.SECONDS_TO_GO, spawned.SECONDS_TO_GO, None]
    assert worker.output.closed


def test_a_process_that_hears_nothing_is_ended(monkeypatch):
    started = []

    def deaf(worker, content):
        started.append(worker)
        raise BrokenPipeError

    monkeypatch.setattr(spawned._Worker, "send", deaf)
    executor = SpawnExecutor(1)
    with pytest.raises(BrokenPipeError):
        executor.start(objectives.killed)
    (worker,) = started
    assert worker.process.poll() == -9
    executor.close()

"""The executor on Ray, with a stand-in for Ray: tasks run here, nodes are lost on demand.

tests/faults/test_ray.py has a real cluster of two nodes.
"""

import os
import shutil
import signal
import sys
import time

import pytest

from nasbot.errors import FileError, OptionError, StudyError
from nasbot.execution import Finished, Limits, ray_cluster
from nasbot.execution._frames import FrameReader, packed
from nasbot.execution._transfer import keep
from nasbot.execution.ray_cluster import RayExecutor
from nasbot.study import Study
from nasbot.testing.executor_conformance import PATIENCE, ExecutorConformance, count_layers, sample_job
from nasbot.trial import Failed, FailureCause, Scored
from tests.execution import fake_ray, objectives
from tests.study.objectives import score
from tests.study.searchers import Sensitive


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    yield fake_ray.installed(monkeypatch)
    for name in list(ray_cluster._here):
        ray_cluster._here.pop(name).close()


class TestRayExecutor(ExecutorConformance):
    def make_executor(self, slots: int = 1) -> RayExecutor:
        return RayExecutor(slots=slots)


def test_slots_and_resources_are_the_cluster_s(monkeypatch):
    ray = fake_ray.installed(monkeypatch, cpus=7.0)
    executor = RayExecutor("head:6379", cpus_per_trial=2)
    executor.start(count_layers)
    assert executor.slots == 3
    assert ray.resources["num_cpus"] == 2
    assert ray.resources["max_retries"] == 0
    executor.close()
    assert not ray.is_up


def test_a_connection_of_somebody_else_is_left_open(ray):
    ray.init()
    executor = RayExecutor()
    executor.start(count_layers)
    executor.close()
    assert ray.is_up


def test_the_objective_is_put_once(ray):
    executor = RayExecutor(slots=1)
    executor.start(count_layers)
    for number in range(3):
        executor.submit(sample_job(number))
        assert isinstance(executor.wait(PATIENCE)[-1].outcome, Scored)
    assert ray.n_puts == 2  # the objective, and its folders
    executor.close()


def test_a_lost_worker_is_a_killed_trial_and_tried_once_more(ray):
    ray.lost = {"nasbot-trial-1"}
    study = Study.in_memory(Sensitive(), seed=8)
    study.optimise(score, 4, executor=RayExecutor(slots=1))
    assert [trial.attempts for trial in study.history] == [1, 2, 1, 1]
    assert len(study.history.completed) == 4


def test_what_ray_says_of_a_lost_worker_is_told_in_one_line(ray):
    ray.lost = {"nasbot-trial-0"}
    executor = RayExecutor(slots=1)
    executor.start(count_layers)
    executor.submit(sample_job(0))
    (event,) = executor.wait(PATIENCE)
    assert isinstance(event, Finished)
    assert event.outcome == Failed(
        FailureCause.KILLED, "its worker or its node is gone: WorkerCrashedError: The worker died"
    )
    executor.close()


def test_limits_hold_on_the_node():
    executor = RayExecutor(slots=1, limits=Limits(seconds=0.3))
    executor.start(objectives.slow)
    executor.submit(sample_job(0))
    assert executor.wait(PATIENCE)[-1].outcome.cause is FailureCause.TIMEOUT
    executor.close()


def test_what_is_cancelled_is_ended_on_its_node(ray):
    executor = RayExecutor(slots=1)
    executor.start(count_layers)
    executor.submit(sample_job(0))
    executor.cancel(0)
    assert ray.cancelled == ["nasbot-trial-0"]
    executor.close()


def test_folders_go_with_the_objective_and_files_come_back(ray, tmp_path):
    data, results = tmp_path / "data", tmp_path / "results"
    (data / "more").mkdir(parents=True)
    (data / "x.txt").write_text("3")
    (data / "more" / "y.txt").write_text("4")
    executor = RayExecutor(slots=1)
    executor.start(objectives.Travelling(str(data), str(results)))
    shutil.rmtree(data)
    for number in (0, 1):
        executor.submit(sample_job(number))
        outcome = executor.wait(PATIENCE)[-1].outcome
        assert isinstance(outcome, Scored), outcome
        assert outcome.value == 7.0
        assert outcome.details["where"] != str(data)
        assert (results / f"trial-{number}.txt").read_text() == "7.0"
    assert ray.n_puts == 2
    executor.close()
    assert sorted(path.name for path in results.iterdir()) == ["trial-0.txt", "trial-1.txt"]


@pytest.mark.parametrize(("field", "name"), [("data", "a.txt"), ("results", "../a.txt"), ("results", ".hidden")])
def test_no_file_comes_back_to_another_place(tmp_path, field, name):
    with pytest.raises(FileError, match="which the objective does not leave"):
        keep(objectives.Travelling(str(tmp_path), str(tmp_path)), field, name, b"content")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_said_at_once(tmp_path):
    executor = RayExecutor(slots=1)
    with pytest.raises(FileError, match="folder cannot be sent: no folder"):
        executor.start(objectives.Travelling(str(tmp_path / "absent"), None))
    executor.close()


def test_the_same_proposals_as_anywhere():
    there = Study.in_memory(Sensitive(), seed=3).optimise(score, 8, executor=RayExecutor(slots=1))
    here = Study.in_memory(Sensitive(), seed=3).optimise(score, 8)
    assert [trial.arch for trial in there.history] == [trial.arch for trial in here.history]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cpus_per_trial": -1}, "cpus_per_trial: expected a number >= 0, got -1"),
        ({"gpus_per_trial": "one"}, "gpus_per_trial: expected a number"),
        ({"cpus_per_trial": 0}, "a trial needs some"),
        ({"slots": 0}, "workers: expected a whole number"),
    ],
)
def test_what_cannot_be_meant(options, words):
    with pytest.raises(OptionError, match=words):
        RayExecutor(**options)


def test_what_the_cluster_does_not_have():
    executor = RayExecutor(gpus_per_trial=1)
    with pytest.raises(OptionError, match="a trial takes 1 CPU and 1 GPU; the cluster has 2 CPU, 0 GPU"):
        executor.start(count_layers)
    executor.close()


def test_no_cluster_there():
    with pytest.raises(FileError, match=r"no Ray cluster at nowhere:1: ConnectionError: no such cluster$"):
        RayExecutor("nowhere:1").start(count_layers)


@pytest.mark.parametrize(
    ("token", "words"), [("0" * 64, "RAY_AUTH_TOKEN is another"), (None, "RAY_AUTH_TOKEN is not set here")]
)
def test_a_wrong_token_is_named(ray, monkeypatch, token, words):
    """As Ray 2.60 says it: in the cause. tests/faults/test_ray.py has the real one."""
    asked = []

    def init(address, **options):
        asked.append(os.environ[WAIT])
        raise ConnectionError("Failed to connect") from RuntimeError("Unauthenticated: RPC error: InvalidAuthToken: …")

    WAIT = "RAY_gcs_server_port_wait_time_s"
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    if token is not None:
        monkeypatch.setenv("RAY_AUTH_TOKEN", token)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(FileError, match=rf"the Ray cluster at head:1 refuses.*{words}; set RAY_AUTH_MODE=token and"):
        RayExecutor("head:1").start(count_layers)
    assert WAIT not in os.environ
    monkeypatch.setenv(WAIT, "60")
    with pytest.raises(FileError, match="its token"):
        RayExecutor("head:1").start(count_layers)
    assert asked == ["4", "60"]  # seconds, unless somebody wants more


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OptionError, match="Ray is not installed"):
        RayExecutor().start(count_layers)


def test_what_nodes_cannot_import(monkeypatch):
    executor = RayExecutor()
    with pytest.raises(OptionError, match="cannot be sent"):
        executor.start(lambda arch: 1.0)
    monkeypatch.setattr(ray_cluster, "MAIN", b"tests.study")
    with pytest.raises(OptionError, match="put it in a module that all nodes can import"):
        executor.start(score)
    executor.close()


def test_what_a_node_keeps_goes_with_its_worker(monkeypatch):
    """Ray ends its workers by their exit: folders and processes of the last objective are let go there."""
    registered = []
    monkeypatch.setattr(ray_cluster.atexit, "register", registered.append)
    executor = RayExecutor(slots=1)
    executor.start(count_layers)
    executor.submit(sample_job(0))
    assert isinstance(executor.wait(PATIENCE)[-1].outcome, Scored)
    (here,) = ray_cluster._here.values()
    assert here.close in registered
    executor.close()


# -- what Ray may say --------------------------------------------------------------------------------------------------


def running(ray, stream, number=0):
    """An executor with one trial, whose stream is this."""
    executor = RayExecutor(slots=2)
    executor.start(count_layers)
    executor._task = lambda job: stream
    executor.submit(sample_job(number))
    return executor


class Stream:
    name = "a trial"

    def __init__(self, *items):
        self.items = list(items)
        self.frames = iter(())

    def __next__(self):
        if not self.items:
            raise StopIteration
        return self.items.pop(0)


def error_named(name, message):
    return type(name, (Exception,), {})(message)


@pytest.mark.parametrize(
    ("item", "cause", "words"),
    [
        ((), "crashed", "its task ended without a result"),
        ((b"x" * 20,), "crashed", "its task sent what cannot be taken: "),
        ((packed({"step": "x", "value": 1}),), "crashed", "its task sent what cannot be taken: "),
        ((packed({"step": 1}),), "crashed", "its task sent what cannot be taken: "),
        ((("elsewhere", "a.txt", b""),), "crashed", "its task sent what cannot be taken: "),
        ((error_named("RayTaskError", "\n why\nmore"),), "crashed", "its task failed on its node: RayTaskError: why"),
        ((error_named("RayTaskError(ValueError)", "why"),), "crashed", "its task failed on its node"),
        ((error_named("OutOfMemoryError", ""),), "oom", "its node had no memory left"),
        ((error_named("NodeDiedError", ""),), "killed", "is gone: NodeDiedError: no message"),
    ],
    ids=str,
)
def test_ends_without_an_outcome(ray, item, cause, words):
    executor = running(ray, Stream(*item))
    (event,) = executor.wait(PATIENCE)
    assert (event.outcome.cause, list(executor.wait(0))) == (cause, [])
    assert words in event.outcome.message
    executor.close()


def test_points_come_before_the_outcome(ray):
    points = packed({"step": 3, "value": 0.5}) + packed({"outcome": {"value": 1.0, "details": {}}})
    executor = running(ray, Stream(points[:10], points[10:]))
    reported, finished = executor.wait(PATIENCE)
    assert (reported.point.step, reported.point.value, finished.outcome) == (3, 0.5, Scored(1.0))
    executor.close()


def test_waiting_ends_when_it_is_time(ray, monkeypatch):
    looks = []

    def nothing_yet(streams, timeout=None, fetch_local=True):
        looks.append(timeout)
        return [], streams

    executor = running(ray, Stream())
    monkeypatch.setattr(ray, "wait", nothing_yet)
    assert list(executor.wait(0.0)) == []
    assert looks == [0]
    begun = time.monotonic()
    assert list(executor.wait(0.05)) == []
    assert time.monotonic() - begun >= 0.05
    assert 0 < looks[2] <= 0.05
    assert looks[2] <= ray_cluster.SECONDS_BETWEEN_LOOKS == 0.5
    monkeypatch.setattr(ray, "wait", lambda *args, **options: 1 / 0)  # then asking tells why
    assert executor.wait(PATIENCE)[0].outcome.cause is FailureCause.CRASHED
    executor.close()


def test_a_cluster_that_takes_nothing(ray):
    executor = RayExecutor(slots=1)
    executor.start(count_layers)

    def gone(job):
        raise ConnectionError("gone\naway")

    executor._task = gone
    executor.submit(sample_job(0))
    (event,) = executor.wait(PATIENCE)
    assert event.outcome.message == "the cluster did not take it: ConnectionError: gone"
    executor.close()
    with pytest.raises(StudyError, match="the executor has no objective"):
        executor.submit(sample_job(0))


def test_room_is_by_what_is_scarcest(ray):
    ray.cluster_resources = lambda: {"CPU": 8.0, "GPU": 3.0}
    executor = RayExecutor(cpus_per_trial=2, gpus_per_trial=1)
    assert executor.slots == 1  # nobody has asked the cluster
    executor.start(count_layers)
    assert executor.slots == 3
    executor.close()
    half = RayExecutor(cpus_per_trial=0, gpus_per_trial=0.5)
    half.start(count_layers)
    assert half.slots == 6
    half.close()
    with pytest.raises(OptionError, match="a trial takes 9 CPU and 0 GPU; the cluster has 8 CPU, 3 GPU"):
        RayExecutor(cpus_per_trial=9).start(count_layers)


def test_an_objective_that_a_node_cannot_load(monkeypatch):
    def cannot(*_):
        raise ValueError("no such module")

    monkeypatch.setattr(ray_cluster, "_Here", cannot)
    (frame,) = ray_cluster._evaluated_here(b"", {}, "x", sample_job(0), Limits(), 1)
    record = FrameReader().feed(frame)[0]["outcome"]
    assert record["message"] == "the objective cannot be loaded on its node: ValueError: no such module"
    assert "x" not in ray_cluster._here


def test_the_terminating_signal_is_taken_back():
    before = signal.getsignal(signal.SIGTERM)
    with ray_cluster._own_sigterm():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) is before


def test_variables_are_set_for_a_while_unless_somebody_has(monkeypatch):
    monkeypatch.setenv("TAKEN", "1")
    monkeypatch.delenv("FREE", raising=False)
    with ray_cluster._set({"TAKEN": "2", "FREE": "3"}):
        assert (os.environ["TAKEN"], os.environ["FREE"]) == ("1", "3")
    assert os.environ["TAKEN"] == "1"
    assert "FREE" not in os.environ

"""A real Ray cluster on this machine: a head, a second node, and the second one lost in the middle of a study."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from nasbot.data.dataset import dataset_of
from nasbot.execution import Finished, Limits
from nasbot.execution.ray_cluster import RayExecutor
from nasbot.study import Study, StudyView
from nasbot.testing.executor_conformance import PATIENCE, ExecutorConformance, sample_job
from nasbot.training.objective import TrainingObjective
from nasbot.trial import Cancelled, FailureCause, Scored, TrialState
from tests.execution.objectives import WithChild, is_alive
from tests.faults.clusters import Cluster
from tests.study.objectives import Watched, score
from tests.study.searchers import Sensitive

# Ray itself closes fewer of its sockets and files than warnings-as-errors would have it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray.*"),
]


@pytest.fixture(scope="module")
def cluster():
    with Cluster(cpus=2) as cluster:
        before = {name: os.environ.get(name) for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
        os.environ.update({name: cluster.environment[name] for name in before})
        yield cluster
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class TestRayExecutorForReal(ExecutorConformance):
    most_slots = 2

    @pytest.fixture(autouse=True)
    def on_the_cluster(self, cluster):
        self.address = cluster.address

    def make_executor(self, slots: int = 1) -> RayExecutor:
        return RayExecutor(self.address, slots=slots)


def test_what_is_cancelled_leaves_nothing_on_its_node(cluster, tmp_path):
    executor = RayExecutor(cluster.address, slots=1)
    executor.start(WithChild(str(tmp_path)))
    executor.submit(sample_job(0))
    wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    executor.cancel(0)
    assert isinstance(executor.wait(PATIENCE)[-1].outcome, Cancelled)
    pids = [int(mark.read_text()) for mark in tmp_path.glob("*.pid")]
    wait_until(lambda: not any(map(is_alive, pids)))
    executor.close()


def test_a_killed_worker_of_ray_is_a_killed_trial(cluster, tmp_path):
    executor = RayExecutor(cluster.address, slots=1)
    executor.start(WithChild(str(tmp_path)))
    executor.submit(sample_job(0))
    wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    pid = int((tmp_path / "0.pid").read_text())
    chain = ancestors(pid)  # supervisor, fork server, Ray's worker
    os.kill(chain[2], signal.SIGKILL)
    (event,) = executor.wait(PATIENCE)
    assert event.outcome.cause is FailureCause.KILLED
    wait_until(lambda: not any(is_alive(int(mark.read_text())) for mark in tmp_path.glob("*.pid")))
    executor.close()


def test_thirty_trials_complete_though_a_node_is_lost(cluster, tmp_path, rng):
    marks = tmp_path / "marks"
    marks.mkdir()
    number = cluster.add_node()
    killed_after = int(rng.integers(6, 20))
    path = tmp_path / "study.sqlite"
    lost = []

    def changed(trial):
        # The victim is lost while it evaluates: then something of ours is among what dies with it.
        if not lost and len(study.history.finished) >= killed_after:
            cluster.lose(number)
            lost.append(time.monotonic())

    with Study.open(path, Sensitive(), seed=2) as study:
        executor = RayExecutor(cluster.address)
        study.optimise(Watched(str(marks)), 30, executor=executor, on_change=changed)
        assert executor.slots == 4
        executor.close()
    assert lost
    with StudyView.read(path) as view:
        history = view.history
    assert [trial.state for trial in history] == [TrialState.COMPLETED] * 30
    assert [trial.value for trial in history] == [score(trial.arch) for trial in history]
    assert len({trial.arch for trial in history}) == 30


def test_the_same_proposals_as_on_one_machine_for_the_same_order_of_completion(cluster):
    """A replay asks the searcher here, with the history as it was when the cluster's trials were chosen."""
    study = Study.in_memory(Sensitive(), seed=5)
    executor = RayExecutor(cluster.address, slots=2)
    study.optimise(score, 16, executor=executor)
    executor.close()
    assert len(study.history.completed) == 16
    assert all(proposal.arch == trial.arch for trial, proposal in study.replay())


def test_training_on_the_cluster_takes_its_data_along_and_brings_weights_back(cluster, tmp_path):
    data, weights = tmp_path / "data", tmp_path / "weights"
    dataset_of(np.linspace(0, 1, 120).reshape(60, 2), np.linspace(-1, 1, 60), task="regression").save(data)
    executor = RayExecutor(cluster.address, slots=2, limits=Limits(seconds=300))
    executor.start(TrainingObjective(str(data), weights=str(weights), seconds=0.5))
    shutil.rmtree(data)
    executor.submit(sample_job(0))
    executor.submit(sample_job(1))
    ends = []
    while len(ends) < 2:
        ends += [event for event in executor.wait(PATIENCE) if isinstance(event, Finished)]
    executor.close()
    assert all(isinstance(end.outcome, Scored) for end in ends), ends
    kinds = ("predictions.npy", "safetensors")
    assert sorted(path.name for path in weights.iterdir()) == [f"trial-{n}.{kind}" for n in (0, 1) for kind in kinds]


def test_nasbot_run_on_the_cluster(cluster, tmp_path):
    command = [str(Path(sys.executable).with_name("nasbot")), "run", "wine", "--budget", "4 trials", "--json"]
    options = ["--seconds-per-trial", "1", "--executor", "ray", "--address", cluster.address]
    done = subprocess.run([*command, *options], env=cluster.environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["completed"] == 4
    weights = list((tmp_path / "studies/wine.files/weights").glob("*.safetensors"))
    assert f"trial-{record['best_trial']}.safetensors" in {path.name for path in weights}
    assert all(load_file(path) for path in weights)


@pytest.mark.parametrize("token", ["0" * 64, None])
def test_a_wrong_token_is_named_within_ten_seconds(cluster, tmp_path, token):
    """Ten from when Ray is imported, which takes as long as the machine is busy."""
    script = (
        "import time, ray\nfrom nasbot.execution import RayExecutor\n"
        "from nasbot.testing.executor_conformance import count_layers\nbegan = time.monotonic()\n"
        f"try:\n    RayExecutor({cluster.address!r}).start(count_layers)\n"
        "except Exception as error:\n    print(time.monotonic() - began, error)"
    )
    environment = {name: value for name, value in cluster.environment.items() if not name.startswith("RAY_AUTH")}
    if token is not None:
        environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True)
    seconds, _, words = done.stdout.partition(" ")
    assert "asks for its token" in words, done.stderr
    assert float(seconds) < 10


def ancestors(pid: int) -> list[int]:
    """Parent, grandparent and so on."""
    chain = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        chain.append(pid)
    return chain


def wait_until(condition, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)

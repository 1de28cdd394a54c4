"""Graphics cards, with stand-ins: which are chosen, that each worker has one of its own, and what is refused."""

import os
import sys

import numpy as np
import pytest
import torch

import nasbot
from nasbot.architecture import Layer, chain
from nasbot.automl import devices as devices_module
from nasbot.automl.devices import Devices, Found, devices_of, found_here
from nasbot.automl.executors import check_place, checked_workers, default_workers, executor_of
from nasbot.candidate import Candidate
from nasbot.errors import OptionError
from nasbot.execution import LocalExecutor
from nasbot.execution.base import Finished, Job
from nasbot.execution.evaluation import failure_of
from nasbot.training.module import build
from nasbot.training.recipes import FAST
from nasbot.training.steps import autograd_stepper
from nasbot.trial import FailureCause
from tests.automl.seen_card import card_seen

TWO, NONE, MAC = Found(("0", "1")), Found(), Found(mps=True)


@pytest.mark.parametrize(
    ("asked", "found", "expected"),
    [
        ("cpu", TWO, Devices()),
        ("auto", NONE, Devices()),
        ("auto", TWO, Devices("cuda", ("0", "1"))),
        ("auto", MAC, Devices("mps")),
        ("cuda", TWO, Devices("cuda", ("0", "1"))),
        ("cuda:1", TWO, Devices("cuda", ("1",))),
        ("cuda:0", Found(("GPU-a7", "GPU-b8")), Devices("cuda", ("GPU-a7",))),
        ("mps", MAC, Devices("mps")),
    ],
)
def test_selection(asked, found, expected):
    assert devices_of(asked, find=lambda: found) == expected


@pytest.mark.parametrize(
    ("asked", "found", "message"),
    [
        ("cuda", NONE, "there is no cuda here; there is cpu"),
        ("cuda:2", TWO, "there is no cuda:2 here; there is cpu, cuda:0, cuda:1"),
        ("mps", TWO, "there is no mps here"),
        ("gpu", TWO, "expected auto, cpu, cuda, cuda:1 .* or mps, got 'gpu'"),
        ("cuda:x", TWO, "expected auto, cpu"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(asked, found, message):
    with pytest.raises(OptionError, match=message):
        devices_of(asked, find=lambda: found)


def test_clusters_are_not_searched_here():
    def nobody_asks():
        raise AssertionError

    assert devices_of("cuda", on_cluster=True, find=nobody_asks) == Devices("cuda")
    assert devices_of("auto", on_cluster=True, find=nobody_asks) == Devices()
    with pytest.raises(OptionError, match="expected cpu or cuda, got cuda:1"):
        devices_of("cuda:1", on_cluster=True)


def test_cards_that_are_reserved_are_trained_on():
    assert devices_of("auto", on_cluster=True, gpus_per_trial=0.5) == Devices("cuda")
    with pytest.raises(OptionError, match="gpus_per_trial: a training on the cpu uses none; expected device cuda"):
        devices_of("cpu", on_cluster=True, gpus_per_trial=1)


def test_cards_are_asked_of_another_process(monkeypatch):
    answer = 'print(\'{"cuda": 2, "mps": false}\')'
    monkeypatch.setattr(devices_module, "QUESTION", answer)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert found_here() == Found(("0", "1"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7,9")
    assert found_here().cards == ("5", "7")
    monkeypatch.setattr(devices_module, "QUESTION", "raise SystemExit(3)")
    assert found_here() == Found()
    assert not torch.cuda.is_initialized()


def test_each_evaluation_sees_a_card_that_nobody_else_has(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "all of them")
    executor = LocalExecutor(2, devices=("7", "9"))
    candidate = Candidate(chain("mlp-reg", [Layer("relu", 8)]))
    seen, number, running = [], 0, 0
    executor.start(card_seen)
    try:
        while len(seen) < 6:
            while running < 2 and number < 6:
                executor.submit(Job(number, candidate))
                number, running = number + 1, running + 1
            taken = [worker.device for worker in executor._running.values()]
            assert len(set(taken)) == len(taken)
            for event in executor.wait(60):
                if isinstance(event, Finished):
                    seen.append(event.outcome.value)
                    running -= 1
    finally:
        executor.close()
    assert set(seen) == {7.0, 9.0}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "all of them"
    with pytest.raises(OptionError, match="expected a different one for each of 2 slots"):
        LocalExecutor(2, devices=("7", "7"))


def test_workers_follow_the_cards_and_the_cores():
    cards = Devices("cuda", ("0", "1", "2"))
    assert checked_workers(None, cards) == 3
    assert checked_workers(2, cards) == 2
    with pytest.raises(OptionError, match="workers: 4 for 3 graphics cards; each has its own"):
        checked_workers(4, cards)
    assert [default_workers(cores) for cores in (1, 2, 3, 4, 8, 32, 128)] == [1, 2, 2, 2, 4, 16, 16]


def test_executors_have_the_cards():
    local = executor_of("auto", workers=1, seconds=1.0, devices=Devices("cuda", ("4", "5")))
    assert isinstance(local, LocalExecutor)
    assert local.devices == ("4",)
    local.close()
    ray = executor_of("ray", workers=None, seconds=1.0, devices=Devices("cuda"))
    assert ray.gpus_per_trial == 1.0
    assert executor_of("ray", workers=None, seconds=1.0, gpus_per_trial=0.5).gpus_per_trial == 0.5
    with pytest.raises(OptionError, match="stays clear of CUDA; expected executor local"):
        executor_of("here", workers=1, seconds=1.0, devices=Devices("cuda", ("0",)))
    with pytest.raises(OptionError, match="gpus_per_trial: only a Ray cluster has it"):
        check_place("local", gpus_per_trial=1)


def test_a_card_without_memory_is_a_failure_of_its_own():
    error = torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    assert failure_of(error).cause is FailureCause.OOM


@pytest.mark.parametrize("kind", ["mlp-reg", "mlp-class"])
def test_mixed_steps_are_nearly_those_of_single_precision(kind):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(64, 5)).astype(np.float32))
    y = x[:, :1] * 2 if kind == "mlp-reg" else (x[:, 0] > 0).long()
    losses = {}
    for is_mixed in (False, True):
        n_outputs = 1 if kind == "mlp-reg" else 2
        network = build(chain(kind, [Layer("relu", 32)]), input_shape=(5,), n_outputs=n_outputs, seed=0)
        step = autograd_stepper(network, FAST.vectors, rng=np.random.default_rng(0), is_mixed=is_mixed)
        losses[is_mixed] = [step(x, y, 0.01) for _ in range(40)]
        assert {p.dtype for p in network.parameters()} == {torch.float32}
    assert losses[True] != losses[False]  # it does compute otherwise
    assert losses[True][-1] == pytest.approx(losses[False][-1], abs=0.05)


def test_the_whole_path_on_cpu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    quick = {"recipe": FAST.changed(n_steps=10), "name": None, "budget": 2}
    with nasbot.search(X, X[:, 0], device="cpu", workers=2, executor="local", **quick) as study:
        assert len(study.history.completed) == 2
    with pytest.raises(OptionError, match="there is no cuda:3 here; there is cpu"):
        nasbot.search(X, X[:, 0], device="cuda:3", **quick)
    assert "torch.cuda" in sys.modules
    assert not torch.cuda.is_initialized()

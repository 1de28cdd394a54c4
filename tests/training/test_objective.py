"""The objective: plain values that any process can be handed, weights that are whole, and causes of failure."""

import errno
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from nasbot.architecture import Layer
from nasbot.architecture.blocks import chain
from nasbot.candidate import Candidate
from nasbot.data.dataset import Dataset, dataset_of
from nasbot.errors import FileError, OptionError, StorageError
from nasbot.execution.base import Job
from nasbot.execution.evaluation import LiveTrial, evaluate
from nasbot.training import weights
from nasbot.training.loop import train
from nasbot.training.losses import losses_of
from nasbot.training.module import build
from nasbot.training.objective import TrainingObjective, keep_best, predictions_path, weights_path
from nasbot.training.predictions import predictions
from nasbot.training.recipes import FAST, PAPER
from nasbot.training.weights import load_weights, read_predictions, read_weights, save_weights
from nasbot.trial import Failed, FailureCause, History, Scored, Trial
from tests.training.test_loop import CLASSIFIER, MLP, friedman

SHORT = FAST.changed(n_steps=40, n_validations=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("data")
    dataset_of(*friedman(), name="friedman").save(place)
    return place


def names_in(place):
    return sorted(path.name for path in place.iterdir())


def run(objective, arch=MLP, number=3, seed=0):
    points = []
    outcome = evaluate(objective, LiveTrial(Job(number, Candidate(arch), seed), points.append))
    return outcome, points


def test_a_trial_is_scored_by_its_best_validation_loss(folder, tmp_path):
    objective = TrainingObjective(folder, SHORT, weights=tmp_path / "weights")
    outcome, points = run(objective)
    assert isinstance(outcome, Scored), outcome
    assert outcome.value == min(point.value for point in points)
    assert [point.step for point in points] == [10, 20, 30, 40]
    assert outcome.details["parameters"] == 7 * 32 + 32 + 32 * 32 + 32 + 32 + 1
    assert outcome.details["steps"] == 40
    assert outcome.details["stopped"] == "steps"
    assert outcome.details["seconds"] > 0
    assert {"valid_mse", "valid_r2"} <= set(outcome.details["metrics"])
    assert not [name for name in outcome.details["metrics"] if "test" in name]  # they wait for what is recommended


def test_its_weights_are_the_best_ones(folder, tmp_path):
    outcome, _ = run(TrainingObjective(folder, SHORT, weights=tmp_path / "weights"))
    assert names_in(tmp_path / "weights") == ["trial-3.predictions.npy", "trial-3.safetensors"]
    network = build(MLP, input_shape=(7,), n_outputs=1, seed=99)
    load_weights(network, weights_path(tmp_path / "weights", 3))
    valid = Dataset.load(folder).valid
    out = predictions(network, torch.from_numpy(np.array(valid.X)))
    loss, _ = losses_of(out, torch.from_numpy(np.array(valid.y)), classifies=network.classifies)
    assert loss == pytest.approx(outcome.value, rel=1e-6)


def test_the_same_trial_gives_the_same_value_anywhere(folder):
    objective = TrainingObjective(str(folder), SHORT)
    here = pytest.approx(run(objective)[0].value, rel=1e-4)  # the last digits may depend on places in memory
    assert here == run(pickle.loads(pickle.dumps(objective)))[0].value  # noqa: S301  our own bytes
    assert here != run(objective, number=4)[0].value
    program = f"""
from nasbot.architecture import Architecture
from nasbot.candidate import Candidate
from nasbot.execution.base import Job
from nasbot.execution.evaluation import LiveTrial, evaluate
from nasbot.training.objective import TrainingObjective
from nasbot.training.recipes import FAST
arch = Architecture.from_json({MLP.to_json()!r})
objective = TrainingObjective({str(folder)!r}, FAST.changed(n_steps=40, n_validations=4))
print(evaluate(objective, LiveTrial(Job(3, Candidate(arch), 0), print)).value)"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert float(output.splitlines()[-1]) == here


def test_making_one_does_not_load_torch(folder):
    program = f"""
import sys
from nasbot.training.objective import TrainingObjective, keep_best
TrainingObjective({str(folder)!r}, "paper", weights="w")
assert "torch" not in sys.modules"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_a_trial_it_is_a_plain_function(folder):
    assert TrainingObjective(folder, SHORT)(MLP).value == TrainingObjective(folder, SHORT)(MLP).value


@pytest.mark.parametrize(
    ("recipe", "cause", "message"),
    [
        (PAPER.changed(n_steps=200, learning_rate=1e30), FailureCause.NAN, "training diverged: the loss of step"),
        (FAST.changed(max_parameters=10), FailureCause.REFUSED, "raise max_parameters of the recipe"),
    ],
)
def test_failures_have_causes(folder, recipe, cause, message):
    outcome, _ = run(TrainingObjective(folder, recipe))
    assert isinstance(outcome, Failed)
    assert outcome.cause is cause
    assert message in outcome.message


def test_the_number_of_threads_is_given_back(folder, monkeypatch):
    before, asked = torch.get_num_threads(), []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    run(TrainingObjective(folder, SHORT, threads=before + 3))
    assert asked == [before + 3, before]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"threads": 0}, "threads: expected a whole number >= 1, got 0"), ({"recipe": "quick"}, "recipe: expected fast")],
)
def test_options_that_cannot_be_meant(options, message):
    with pytest.raises(OptionError, match=message):
        TrainingObjective("data", **options)


# -- weights on disk -------------------------------------------------------------------------------------------------


def finished(*values, preparations=()):
    trials = []
    for number, value in enumerate(values):
        arch = chain("mlp-reg", [Layer("relu", 8 + number)])
        params = {"preparation": preparations[number]} if preparations else {}
        trial = Trial(number=number, candidate=Candidate(arch, params)).begun(0.0)
        if value is not None:
            trial = trial.ended(Scored(value), at=1.0, rank=sum(v is not None for v in values[:number]))
        trials.append(trial)
    return History(tuple(trials))


def test_only_what_may_still_be_the_best_is_kept(tmp_path):
    names = [f"trial-{n}.safetensors" for n in range(6)]
    others = ["notes.txt", "trial-x.safetensors", ".trial-1.safetensors.77", ".trial-3.safetensors.78"]
    for name in [*names, *others]:
        (tmp_path / name).write_bytes(b"")
    # Values are stored to be maximised: 2 is the best, 3 runs, 5 is not known here yet.
    keep_best(tmp_path, finished(-0.5, -0.4, -0.2, None, -0.3), n=1)
    kept = {f"trial-{n}.safetensors" for n in (0, 2, 3, 5)}  # the first is the baseline
    assert set(names_in(tmp_path)) == kept | {"notes.txt", "trial-x.safetensors", ".trial-3.safetensors.78"}
    keep_best(tmp_path / "nowhere", finished())


def test_the_best_two_of_each_preparation_are_kept(tmp_path):
    for n in range(8):
        (tmp_path / f"trial-{n}.safetensors").write_bytes(b"")
    preparations = ("ple", "ple", "ple", "robust", "robust", "robust", "ple", "standard")
    keep_best(tmp_path, finished(-0.9, -0.1, -0.2, -0.8, -0.6, -0.7, -0.3, -0.85, preparations=preparations), n=3)
    assert names_in(tmp_path) == [f"trial-{n}.safetensors" for n in (0, 1, 2, 4, 5, 6, 7)]  # 3 is third of its own


@pytest.mark.parametrize("arch", [MLP, CLASSIFIER, chain("cnn", [Layer("res3", 4), Layer("fc", 8)])])
def test_weights_come_back_exactly(arch, tmp_path):
    shape = (1, 5, 5) if arch.kind == "cnn" else (7,)
    first, second = (build(arch, input_shape=shape, n_outputs=2, seed=seed) for seed in (1, 2))
    first.to(memory_format=torch.channels_last)
    save_weights(first, tmp_path / "w.safetensors")
    load_weights(second, tmp_path / "w.safetensors")
    for (name, p), q in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(p, q), name


def test_weights_that_are_not_there_not_weights_or_not_its_own(tmp_path):
    network = build(MLP, input_shape=(7,), n_outputs=1, seed=1)
    with pytest.raises(FileError, match="no weights there"):
        read_weights(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"not this")
    with pytest.raises(StorageError, match="not a safetensors file"):
        read_weights(tmp_path / "bad.safetensors")
    save_weights(build(CLASSIFIER, input_shape=(7,), n_outputs=2, seed=1), tmp_path / "other.safetensors")
    with pytest.raises(StorageError, match="not the weights of this network"):
        load_weights(network, tmp_path / "other.safetensors")


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    network = build(MLP, input_shape=(7,), n_outputs=1, seed=1)
    place = tmp_path / "w.safetensors"
    save_weights(network, place)
    before = place.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="the weights cannot be written: No space left on device"):
        save_weights(build(MLP, input_shape=(7,), n_outputs=1, seed=2), place)
    assert place.read_bytes() == before
    assert names_in(tmp_path) == ["w.safetensors"]


def test_recipes_are_part_of_what_an_objective_is(folder):
    assert TrainingObjective(folder, "fast") != TrainingObjective(folder, "paper")
    assert replace(TrainingObjective(folder), threads=2).threads == 2


# -- candidates: params, fidelity, predictions -----------------------------------------------------------------------


@dataclass
class Given:
    """A trial as objectives see it."""

    number: int = 3
    seed: int = 5
    fidelity: float = 1.0
    params: dict = field(default_factory=dict)

    def report(self, step, value):
        pass


def test_a_share_of_the_rows_is_learned_for_as_many_epochs_and_judged_by_the_same_rows(folder, monkeypatch):
    seen = []

    def train_on(arch, data, *args, **options):
        seen.append(data)
        return train(arch, data, *args, **options)

    monkeypatch.setattr("nasbot.training.loop.train", train_on)
    full = Dataset.load(folder)
    objective = TrainingObjective(folder, SHORT.changed(patience=None), fidelity_of="rows")
    outcome = objective(MLP, {}, Given(fidelity=0.25))
    assert outcome.details["steps"] == 10
    assert len(seen[0].train) == len(full.train) // 4
    np.testing.assert_array_equal(seen[0].valid.X, full.valid.X)
    objective(MLP, {}, Given(fidelity=0.5))
    rows = {row.tobytes() for row in seen[1].train.X}
    assert {row.tobytes() for row in seen[0].train.X} < rows < {row.tobytes() for row in full.train.X}
    for fidelity in (1.0, 2.0):
        assert objective(MLP, {}, Given(fidelity=fidelity)).details["steps"] == 40 * fidelity
        assert len(seen[-1].train) == len(full.train)
    few_epochs = FAST.changed(epochs=4, min_steps=1, n_validations=2, patience=None)
    by_epochs = TrainingObjective(folder, few_epochs, fidelity_of="rows")
    whole = by_epochs(MLP, {}, Given()).details["steps"]
    assert by_epochs(MLP, {}, Given(fidelity=0.25)).details["steps"] == round(whole / 4)
    folded = TrainingObjective(folder, SHORT, fidelity_of="rows", folds=2)
    folded(MLP, {}, Given(fidelity=0.5))
    assert [len(data.train) for data in seen[-2:]] == [(len(full.train) + len(full.valid)) // 4] * 2
    with pytest.raises(OptionError, match="fidelity_of: expected steps or rows, got 'epochs'"):
        TrainingObjective(folder, SHORT, fidelity_of="epochs")


def test_params_and_fidelity_reach_the_training(folder):
    objective = TrainingObjective(folder, SHORT.changed(patience=None))
    plain = objective(MLP, {}, Given())
    assert plain.details["steps"] == 40
    assert objective(MLP, {}, Given(fidelity=0.25)).details["steps"] == 10
    slow = objective(MLP, {"learning_rate": 1e-6}, Given())
    assert slow.value > plain.value
    assert objective(MLP, trial=Given(params={"learning_rate": 1e-6})).value == slow.value
    wide = objective(MLP, {"preparation": "ple"}, Given())
    assert wide.details["parameters"] > plain.details["parameters"]
    with pytest.raises(OptionError, match="got 'colour'"):
        objective(MLP, {"colour": "red"}, Given())


def test_predictions_of_numbers_far_from_zero_keep_their_last_digits(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    data = dataset_of(X, 1.7e9 + 60 * X[:, 0] + rng.normal(size=100), name="seconds")
    data.save(tmp_path / "data")
    TrainingObjective(tmp_path / "data", SHORT, weights=tmp_path)(MLP, {}, Given())
    valid, test = read_predictions(predictions_path(tmp_path, 3), len(data.valid))
    assert valid.dtype == test.dtype == np.float64
    trained = train(MLP, data, SHORT, seed=Given().seed)
    truth = data.preprocessing.restored(data.test.y)
    assert np.mean((test[:, 0] - truth) ** 2) == pytest.approx(trained.metrics["test_mse"], rel=1e-4)
    ordinary = dataset_of(X, 2000 + 10 * X[:, 0], name="years").preprocessing.target
    assert ordinary.kept_as == np.float32


def test_predictions_are_kept_in_peoples_units(folder, tmp_path):
    TrainingObjective(folder, SHORT, weights=tmp_path)(MLP, {"preparation": "quantile"}, Given())
    data = Dataset.load(folder)
    valid, test = read_predictions(predictions_path(tmp_path, 3), len(data.valid))
    assert (valid.shape, test.shape) == ((len(data.valid), 1), (len(data.test), 1))
    truth = data.preprocessing.restored(data.test.y)
    prepared = data.prepared_as("quantile")
    trained = train(MLP, prepared, SHORT, seed=Given().seed)
    assert np.mean((test[:, 0] - truth) ** 2) == pytest.approx(trained.metrics["test_mse"], rel=1e-4)
    with pytest.raises(StorageError, match="not the predictions for 100,000 validation rows"):
        read_predictions(predictions_path(tmp_path, 3), 100_000)
    (tmp_path / "bad.npy").write_bytes(b"no")
    with pytest.raises(StorageError, match="not an array"):
        read_predictions(tmp_path / "bad.npy", 1)
    with pytest.raises(FileError, match="cannot be read"):
        read_predictions(tmp_path / "none.npy", 1)


def test_the_best_n_are_kept(tmp_path):
    for n in range(4):
        (tmp_path / f"trial-{n}.safetensors").write_bytes(b"")
        (tmp_path / f"trial-{n}.predictions.npy").write_bytes(b"")
    keep_best(tmp_path, finished(-0.5, -0.4, -0.2, -0.3), n=2)
    kept = [f"trial-{n}.{form}" for n in (0, 2, 3) for form in ("predictions.npy", "safetensors")]  # 0: the baseline
    assert names_in(tmp_path) == kept


@pytest.mark.parametrize("n_full", [2, 99])
def test_a_full_disk_never_costs_a_score(folder, tmp_path, monkeypatch, n_full):
    """It is waited for; where there is no room after all, the score is kept and says that the weights are not."""
    waits, tries, original = [], [], weights.write_whole

    def write(*arguments, **options):
        tries.append(1)
        if len(tries) <= n_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(*arguments, **options)

    monkeypatch.setattr(weights, "write_whole", write)
    monkeypatch.setattr(weights.time, "sleep", waits.append)
    outcome, _ = run(TrainingObjective(folder, SHORT, weights=tmp_path / "weights"))
    assert isinstance(outcome, Scored), outcome
    assert waits == list(weights.WAITS_FOR_ROOM)[:n_full]
    assert ("weights_not_kept" in outcome.details) == (n_full == 99)
    assert weights_path(tmp_path / "weights", 3).exists() == (n_full == 2)


def test_workers_load_no_compiler_of_torch_beforehand():
    """``torch._dynamo`` takes a second to import, and nothing here uses it."""
    script = "import sys; from importlib import import_module as load\n"
    script += "from nasbot.training.objective import TrainingObjective\n"
    script += "[load(name) for name in TrainingObjective.preload]; print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

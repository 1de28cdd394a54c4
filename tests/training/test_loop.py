"""Training: what it promises about batches, looks, ends, and the network it returns."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from nasbot.architecture import Label, Layer, initial_pool
from nasbot.architecture.blocks import chain, residual_cnn
from nasbot.data.dataset import Dataset, Part, dataset_of
from nasbot.errors import DataError, DivergedError, OptionError, RefusedError
from nasbot.testing.networks import random_architecture
from nasbot.training import loop, steps
from nasbot.training.loop import train
from nasbot.training.losses import losses_of, training_loss
from nasbot.training.module import build
from nasbot.training.predictions import predictions
from nasbot.training.recipes import FAST, PAPER, Settings
from nasbot.training.steps import batches_of
from tests.training.test_module import vocabulary

SHORT = FAST.changed(n_steps=60, n_validations=6)


def friedman(n=600, seed=0):
    """A smooth function of five of seven numbers, with a little noise, in units of its own."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 7))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + rng.standard_normal(n)


@pytest.fixture(scope="module")
def numbers():
    return dataset_of(*friedman(), name="friedman")


@pytest.fixture(scope="module")
def classes():
    X, y = friedman()
    return dataset_of(X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])), task="classification", name="thirds")


@pytest.fixture(scope="module")
def pictures():
    """Which half is brighter: a convolution and a pool can tell."""
    rng = np.random.default_rng(0)
    images = rng.random((300, 8, 8))
    side = rng.integers(0, 2, 300)
    images[side == 0, :, :4] += 0.6
    images[side == 1, :, 4:] += 0.6
    images[:, 0, 0] += side  # and a pixel for networks that average everything
    return dataset_of(images.astype(np.float32), side, task="classification", name="halves")


MLP = chain("mlp-reg", [Layer("relu", 32), Layer("tanh", 32)])
CLASSIFIER = chain("mlp-class", [Layer("elu", 32), Layer("crelu", 16)])
CNN = chain("cnn", [Layer("conv3", 8), Layer("max-pool"), Layer("res3", 8, 2), Layer("fc", 16)])


# -- other targets than the truth ------------------------------------------------------------------------------------


def test_targets_take_the_place_of_the_truth(numbers):
    other = np.asarray(numbers.train.y)[::-1].copy()
    by_targets = train(MLP, numbers, SHORT, seed=1, targets=other)
    by_data = train(MLP, replace(numbers, train=replace(numbers.train, y=other)), SHORT, seed=1)
    assert by_targets.loss == by_data.loss != train(MLP, numbers, SHORT, seed=1).loss
    for p, q in zip(by_targets.network.parameters(), by_data.network.parameters(), strict=True):
        assert torch.equal(p, q)


@pytest.mark.parametrize("arch", [CLASSIFIER, CNN])
def test_probabilities_of_classes_are_learned(arch, classes, pictures):
    data = pictures if arch is CNN else classes
    certain = np.eye(data.n_outputs, dtype=np.float32)[data.train.y]
    plain, spread = (train(arch, data, SHORT, seed=1, targets=given) for given in (None, certain))
    assert spread.loss == pytest.approx(plain.loss, rel=1e-2)
    nothing = train(arch, data, SHORT, seed=1, targets=np.full_like(certain, 1 / data.n_outputs))
    assert nothing.loss == pytest.approx(np.log(data.n_outputs), abs=0.15)  # it has learned that all are alike


def test_targets_of_another_shape_are_refused(numbers):
    with pytest.raises(OptionError, match=r"targets: expected shape \(\d+, 1\), got \(3, 1\)"):
        train(MLP, numbers, SHORT, targets=np.zeros((3, 1)))


# -- it learns -------------------------------------------------------------------------------------------------------


def test_numbers_are_learned(numbers):
    trained = train(MLP, numbers, FAST, seed=1)
    assert trained.loss < 0.3
    assert trained.metrics["valid_r2"] == pytest.approx(1 - trained.loss, abs=0.1)
    assert trained.metrics["test_r2"] > 0.7
    assert [point.step for point in trained.training_curve] == [point.step for point in trained.curve]
    assert trained.training_curve[-1].value < 0.3 < trained.training_curve[0].value
    # In people's units: the standardised loss times the variance of the training targets.
    scale = numbers.preprocessing.target.scales[0]
    assert trained.metrics["valid_mse"] == pytest.approx(trained.loss * scale**2, rel=1e-4)
    assert trained.metrics["valid_rmse"] == pytest.approx(math.sqrt(trained.metrics["valid_mse"]))


def test_classes_are_learned(classes):
    trained = train(CLASSIFIER, classes, FAST, seed=1)
    assert trained.metrics["test_accuracy"] > 0.65
    assert trained.metrics["valid_log_loss"] == pytest.approx(trained.loss, rel=1e-4)
    assert trained.metrics["valid_error"] == pytest.approx(1 - trained.metrics["valid_accuracy"])


def test_images_are_learned(pictures):
    trained = train(CNN, pictures, FAST.changed(n_steps=80), seed=1)
    assert trained.metrics["test_accuracy"] > 0.9


def test_the_papers_recipe_learns_too_slowly_but_surely(numbers):
    recipe = PAPER.changed(n_steps=2000)
    trained = train(MLP, numbers, recipe, seed=1)
    assert trained.loss < 0.6
    assert trained.steps == 2000
    assert [point.step for point in trained.curve] == list(range(100, 2001, 100))
    assert trained.score == trained.loss == min(point.value for point in trained.curve)


def test_the_papers_score_of_images_is_the_error(pictures):
    trained = train(CNN, pictures, PAPER.changed(n_steps=20, check_every=5), seed=1)
    assert trained.score == trained.metrics["valid_error"] == min(point.value for point in trained.curve)


# -- deep networks ---------------------------------------------------------------------------------------------------


def trains(arch, data):
    trained = train(arch, data, FAST.changed(n_steps=60, batch_size=128), seed=2)
    assert trained.loss < 0.8, f"{arch}: validation loss {trained.loss:.3f}, that of the constant is about 1"


@pytest.mark.parametrize("i", [0, 3, 8])
def test_pool_networks_train(i, numbers):
    arch = initial_pool("mlp-reg")[i]
    narrow = {u: layer.units // 4 for u, layer in enumerate(arch.layers) if layer.units}
    trains(arch.with_units(narrow), numbers)


@pytest.mark.slow
@pytest.mark.parametrize("i", range(10))
def test_every_pool_network_trains(i, numbers):
    trains(initial_pool("mlp-reg")[i], numbers)


@pytest.mark.parametrize("n_layers", [20, 60])
def test_random_graphs_train(n_layers, numbers):
    arch = random_architecture("mlp-reg", rng=np.random.default_rng(n_layers), n_layers=n_layers)
    narrow = {u: max(8, layer.units // 8) for u, layer in enumerate(arch.layers) if layer.units}
    trains(arch.with_units(narrow), numbers)


@pytest.mark.slow
@pytest.mark.parametrize("i", range(15))
def test_every_random_graph_trains(i, numbers):
    trains(random_architecture("mlp-reg", rng=np.random.default_rng(i), n_layers=(8, 20, 30, 45, 60)[i % 5]), numbers)


@pytest.mark.slow
def test_deep_residual_networks_train(pictures):
    trained = train(residual_cnn(3, 8), pictures, FAST.changed(n_steps=40, batch_size=32), seed=1)
    assert trained.metrics["valid_accuracy"] > 0.8


def values(trained):
    """Its curve, but for the last digits: how libraries add up may depend on where in memory the numbers lie."""
    return pytest.approx(looks(trained), rel=1e-4)


def looks(trained):
    return [point.value for point in trained.curve]


# -- what is promised ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arch", "which"), [(MLP, "numbers"), (CLASSIFIER, "classes"), (CNN, "pictures")])
def test_the_returned_weights_are_those_of_the_best_look(arch, which, request):
    data: Dataset = request.getfixturevalue(which)
    trained = train(arch, data, SHORT, seed=3)
    values = {point.step: point.value for point in trained.curve}
    assert values[trained.best_step] == min(values.values()) == trained.score
    X, y = torch.from_numpy(data.valid.X), torch.from_numpy(data.valid.y)
    out = predictions(trained.network, X)
    assert losses_of(out, y, classifies=data.is_classification)[0] == pytest.approx(trained.loss, rel=1e-6)
    assert not trained.network.training
    for name, p in trained.network.named_parameters():
        assert p.is_contiguous(), name
        assert p.grad is None, name
        assert p.untyped_storage().nbytes() == p.numel() * 4, f"{name} shares its memory"


@pytest.mark.parametrize(("arch", "which"), [(MLP, "numbers"), (CNN, "pictures")])
def test_the_seed_decides_everything(arch, which, request):
    data = request.getfixturevalue(which)
    state = torch.random.get_rng_state()
    first, again, other = (train(arch, data, SHORT, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(state, torch.random.get_rng_state())
    assert values(first) == looks(again)
    assert values(first) != looks(other)
    for p, q in zip(first.network.parameters(), again.network.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-4)


def test_dropout_is_seeded_and_leaves_the_global_state_alone(classes):
    label = Label(name="d", takes_units=True, activation="relu", dropout=0.3)
    arch = chain(vocabulary(label), [Layer("d", 20)])
    state = torch.random.get_rng_state()
    first, again, other = (train(arch, classes, SHORT, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(state, torch.random.get_rng_state())
    assert values(first) == looks(again)
    assert values(first) != looks(other)


def test_a_network_of_ones_own_goes_on_from_its_weights(numbers):
    network = build(MLP, input_shape=(7,), n_outputs=1, seed=8)
    trained = train(network, numbers, SHORT, seed=5)
    assert trained.network is network
    more = train(network, numbers, SHORT, seed=6)
    assert more.loss < trained.loss * 1.2


def test_reports_are_the_curve(numbers):
    reported = []
    trained = train(MLP, numbers, SHORT, seed=1, report=lambda step, value: reported.append((step, value)))
    assert reported == [tuple(point) for point in trained.curve]
    assert [step for step, _ in reported] == [10, 20, 30, 40, 50, 60]
    assert trained.stopped == "steps"


def test_patience_ends_a_training_that_gets_worse(numbers):
    recipe = FAST.changed(n_steps=400, check_every=5, patience=0.0375, learning_rate=0.05, schedule="constant")
    trained = train(chain("mlp-reg", [Layer("relu", 256)]), numbers, recipe, seed=1)
    assert trained.stopped == "patience"
    assert trained.steps < 400
    values = [point.value for point in trained.curve]
    assert len(values) - 1 - values.index(min(values)) == 3


class Clock:
    """Seconds that pass only as training asks for them."""

    def __init__(self, per_look):
        self.now, self.per_look = 0.0, per_look

    def monotonic(self):
        self.now += self.per_look
        return self.now


def test_time_ends_a_training_with_its_best(numbers, monkeypatch):
    monkeypatch.setattr(loop, "time", Clock(0.1))
    recipe = FAST.changed(n_steps=1000, check_every=10)
    trained = train(MLP, numbers, recipe, seed=1, seconds=3.0)
    assert trained.stopped == "time"
    assert 20 < trained.steps < 35
    assert trained.curve[-1].step == trained.steps, "the last weights are looked at, too"
    assert trained.loss < 1.0


def test_a_clock_that_leaves_enough_time_changes_nothing(numbers, monkeypatch):
    """Not even the last bit: a first step that takes its time must not change the step size."""
    unlimited = train(MLP, numbers, SHORT, seed=1)
    for slowness in (0.01, 1.0):
        monkeypatch.setattr(loop, "time", Clock(slowness))
        limited = train(MLP, numbers, SHORT, seed=1, seconds=100.0)
        for name, tensor in unlimited.network.state_dict().items():
            assert torch.equal(tensor, limited.network.state_dict()[name]), (slowness, name)


def test_the_first_step_is_taken_however_short_the_time(numbers, monkeypatch):
    monkeypatch.setattr(loop, "time", Clock(10.0))
    trained = train(MLP, numbers, SHORT, seed=1, seconds=1.0)
    assert (trained.steps, trained.stopped, len(trained.curve)) == (1, "time", 1)


@pytest.mark.parametrize(("arch", "which"), [(MLP, "numbers"), (CLASSIFIER, "classes"), (CNN, "pictures")])
def test_divergence_stops_at_once_with_a_cause(arch, which, request):
    data = request.getfixturevalue(which)
    recipe = PAPER.changed(n_steps=500, learning_rate=1e30, momentum=0.0, check_every=500)
    with pytest.raises(DivergedError, match=r"training diverged: the .*loss .*step .* is (nan|inf|.*e\+)"):
        train(arch, data, recipe, seed=1)


def test_refused_before_anything_is_built(numbers, monkeypatch):
    monkeypatch.setattr(loop, "build", lambda *_, **__: pytest.fail("built"))
    with pytest.raises(RefusedError, match="raise max_parameters of the recipe"):
        train(MLP, numbers, FAST.changed(max_parameters=100), seed=1)


def test_data_that_cannot_be_trained_on(numbers, classes):
    nothing = Part(numbers.valid.X[:0], numbers.valid.y[:0])
    with pytest.raises(DataError, match="at least 2 rows to learn from and 1 to validate on, got 360 and 0"):
        train(MLP, replace(numbers, valid=nothing), SHORT)
    without_test = train(MLP, replace(numbers, test=nothing), SHORT)
    assert not any(name.startswith("test") for name in without_test.metrics)
    with pytest.raises(OptionError, match="network: its kind is mlp-reg, the data ask for mlp-class"):
        train(MLP, classes, SHORT)
    with pytest.raises(OptionError, match=r"network: made for inputs \(3,\) and 1 outputs, the data have \(7,\)"):
        train(build(MLP, input_shape=(3,), n_outputs=1, seed=0), numbers, SHORT)
    with pytest.raises(OptionError, match="device: 'abacus' cannot be used here"):
        train(MLP, numbers, SHORT, device="abacus")
    with pytest.raises(OptionError, match="seconds: expected a number > 0"):
        train(MLP, numbers, SHORT, seconds=-1)


def test_data_are_read_from_a_folder_that_cannot_be_written(numbers, tmp_path):
    numbers.save(tmp_path / "data")
    loaded = Dataset.load(tmp_path / "data")
    assert not loaded.train.X.flags.writeable
    assert values(train(MLP, loaded, SHORT, seed=1)) == looks(train(MLP, numbers, SHORT, seed=1))


# -- batches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize("shape", [(3,), (2, 4, 4)])
def test_an_epoch_shows_every_sample_once_but_for_a_short_end(shape, copies, monkeypatch):
    if not copies:
        monkeypatch.setattr(steps, "MAX_EPOCH_COPY", 0)
    y = torch.arange(23)
    X = y.float().reshape(23, *[1] * len(shape)).expand(23, *shape).contiguous()
    batches = batches_of((X, y), 5, rng=np.random.default_rng(0))
    epochs = [list(itertools.islice(batches, 4)) for _ in range(3)]
    seen = set()
    for epoch in epochs:
        for x, labels in epoch:
            assert x.shape == (5, *shape)
            assert torch.equal(x.reshape(5, -1)[:, 0], labels.float())
            if x.ndim == 4:
                assert x.is_contiguous(memory_format=torch.channels_last)
        shown = [int(label) for _, labels in epoch for label in labels]
        assert len(set(shown)) == 20
        seen |= set(shown)
    assert seen == set(range(23))
    assert [y.tolist() for _, y in epochs[0]] != [y.tolist() for _, y in epochs[1]]


# -- settings beyond the plain ones ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_losses_of_numbers(loss):
    out, y = torch.tensor([[0.0], [3.0]]), torch.tensor([[0.5], [0.0]])
    expected = {"squared": (0.25 + 9) / 2, "absolute": 3.5 / 2, "huber": (0.125 + 2.5) / 2}[loss]
    assert float(training_loss(out, y, Settings(loss=loss), classifies=False)) == pytest.approx(expected)


def test_label_smoothing_is_torchs_own():
    logits, y = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 2, 3, 0, 1])
    ours = training_loss(logits.log_softmax(1), y, Settings(label_smoothing=0.2), classifies=True)
    assert float(ours) == pytest.approx(float(torch.nn.functional.cross_entropy(logits, y, label_smoothing=0.2)))


def test_dropout_is_for_training_only_and_repeats(numbers):
    recipe = SHORT.changed(dropout=0.3)
    first, again, plain = (train(MLP, numbers, r, seed=1) for r in (recipe, recipe, SHORT))
    assert first.loss == again.loss != plain.loss
    x = torch.from_numpy(np.array(numbers.valid.X))
    first.network.train()
    assert torch.equal(first.network(x), first.network(x)), "nothing of it stays with the network"


def test_a_share_of_the_steps_is_a_whole_training_of_its_own(numbers):
    short = train(MLP, numbers, SHORT, seed=1, steps_share=0.5)
    assert (short.steps, short.stopped, len(short.curve)) == (30, "steps", 6)
    same = train(MLP, numbers, SHORT.changed(n_steps=30), seed=1)
    assert short.loss == same.loss
    with pytest.raises(OptionError, match="steps_share: expected a number > 0, got 0"):
        train(MLP, numbers, SHORT, steps_share=0)


PARAMS = {
    "learning_rate": 3e-3,
    "weight_decay": 0.3,
    "dropout": 0.2,
    "batch_size": 16,
    "schedule": "constant",
    "label_smoothing": 0.2,
    "mixup": 0.4,
    "augmentation": "flips+crops",
    "optimiser": "sgd",
    "beta2": 0.9,
    "warm_up": 0.5,
}


@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize(("arch", "which"), [(CLASSIFIER, "classes"), (CNN, "pictures")])
def test_every_param_reaches_the_training_and_repeats(arch, which, name, request):
    data, recipe = request.getfixturevalue(which), FAST.changed(n_steps=12, n_validations=2)
    changed = recipe.with_params({name: PARAMS[name]})
    plain, first, again = (train(arch, data, r, seed=3) for r in (recipe, changed, changed))
    assert first.loss == again.loss
    assert (first.loss != plain.loss) == (name != "augmentation" or which == "pictures")


def test_momentum_reaches_sgd(numbers):
    slow, fast = (train(MLP, numbers, SHORT.changed(optimiser="sgd", momentum=m), seed=3) for m in (0.0, 0.9))
    assert slow.loss != fast.loss


def test_a_settled_length_ends_with_the_weights_it_then_has(numbers):
    whole = train(MLP, numbers, SHORT, seed=3)
    halfway = train(MLP, numbers, SHORT, seed=3, stop_after=0.5)
    assert (halfway.steps, halfway.best_step, len(halfway.curve)) == (30, 30, 1)
    same = next(point for point in whole.curve if point.step == 30)  # the schedule is that of the whole training
    assert halfway.curve[0].value == pytest.approx(same.value, rel=1e-5)


def test_validation_rows_choose_nothing_where_the_length_is_settled(numbers):
    turned = replace(numbers, valid=Part(numbers.valid.X, -numbers.valid.y))  # the first validation is now the best
    states = [train(MLP, data, SHORT, seed=3, stop_after=1.0).network.state_dict() for data in (numbers, turned)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("share", [0, -1, 1.1, math.nan])
def test_a_settled_length_is_a_share(numbers, share):
    with pytest.raises(OptionError, match="stop_after: expected a share of the steps"):
        train(MLP, numbers, SHORT, stop_after=share)

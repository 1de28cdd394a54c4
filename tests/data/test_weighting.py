"""How much rows and classes count: in metrics, in the data, in the loss, in the choice of an ensemble."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from nasbot import Layer
from nasbot.architecture.blocks import chain
from nasbot.automl.ensemble import select
from nasbot.data.dataset import Dataset, dataset_of
from nasbot.data.metrics import METRICS
from nasbot.data.weighting import parsed_class_weight
from nasbot.errors import DataError, OptionError
from nasbot.training.loop import train
from nasbot.training.losses import losses_of, training_loss
from nasbot.training.module import build
from nasbot.training.recipes import FAST
from nasbot.training.steps import autograd_stepper, planned_stepper
from tests.data.test_metrics import CASES, CLASSES, NUMBERS, one_hot, theirs

WEIGHTED = {
    "log-loss": lambda y, p, w: theirs.log_loss(y, p, labels=range(p.shape[1]), sample_weight=w),
    "error": lambda y, p, w: theirs.zero_one_loss(y, p.argmax(axis=1), sample_weight=w),
    "accuracy": lambda y, p, w: theirs.accuracy_score(y, p.argmax(axis=1), sample_weight=w),
    "balanced-accuracy": lambda y, p, w: theirs.balanced_accuracy_score(y, p.argmax(axis=1), sample_weight=w),
    "auc": lambda y, p, w: (
        theirs.roc_auc_score(y, p[:, 1], sample_weight=w)
        if p.shape[1] == 2
        else theirs.roc_auc_score(y, p, multi_class="ovr", sample_weight=w)
    ),
    "average-precision": lambda y, p, w: theirs.average_precision_score(
        one_hot(y, p.shape[1]), p, average="macro", sample_weight=w
    ),
    "f1": lambda y, p, w: theirs.f1_score(y, p.argmax(axis=1), average="macro", sample_weight=w),
    "f1-weighted": lambda y, p, w: theirs.f1_score(y, p.argmax(axis=1), average="weighted", sample_weight=w),
}


def case_of(name, rng):
    n = int(rng.integers(12, 60))
    if name in NUMBERS:
        truth = rng.normal(size=(n, int(rng.integers(1, 4)))) + 5
        return truth, truth + rng.normal(size=truth.shape)
    classes = int(rng.integers(2, 5))
    truth = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
    scores = rng.integers(1, 4, size=(n, classes)) * 1.0 if n % 2 else rng.exponential(size=(n, classes)) + 1e-3
    return truth, scores / scores.sum(axis=1, keepdims=True)


def test_every_metric_is_compared():
    assert set(WEIGHTED) == set(CLASSES)


@pytest.mark.parametrize("name", METRICS)
def test_weighted_metrics_are_scikit_learns(name):
    rng = np.random.default_rng(5)
    for _ in range(CASES):
        truth, predicted = case_of(name, rng)
        weights = rng.exponential(size=len(truth)) + 0.01
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, about classes that are never predicted
            expected = (
                NUMBERS[name](truth, predicted, sample_weight=weights)
                if name in NUMBERS
                else WEIGHTED[name](truth, predicted, weights)
            )
        assert METRICS[name](truth, predicted, weights) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", METRICS)
def test_a_row_of_weight_2_is_two_rows_and_of_weight_0_none(name):
    rng = np.random.default_rng(6)
    for _ in range(20):
        truth, predicted = case_of(name, rng)
        counts = np.concatenate([np.ones(5, dtype=int), rng.integers(0, 4, size=len(truth) - 5)])
        again = np.repeat(np.arange(len(truth)), counts)
        expected = METRICS[name](truth[again], predicted[again])
        assert METRICS[name](truth, predicted, counts) == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


# -- in the loss -------------------------------------------------------------------------------------------------------

NUMBER, CLASS = (chain(kind, [Layer("relu", 8), Layer("tanh", 9)]) for kind in ("mlp-reg", "mlp-class"))
TWO_DECISIONS = {  # several decision layers are averaged: their gradients are shares
    "mlp-reg": "linear",
    "mlp-class": "softmax",
}


def networks():
    from nasbot.architecture import Architecture

    for kind, decision in TWO_DECISIONS.items():
        yield chain(kind, [Layer("relu", 8), Layer("tanh", 9)])
        layers = [Layer("ip"), Layer("relu", 8), Layer(decision), Layer(decision), Layer("op")]
        yield Architecture(kind, layers, [(0, 1), (1, 2), (0, 3), (2, 4), (3, 4)])


def batch_of(arch, n=16):
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.normal(size=(n, 5)))
    y = torch.from_numpy(rng.normal(size=(n, 3)) if arch.kind == "mlp-reg" else rng.integers(0, 3, n))
    return x, y, torch.from_numpy(rng.integers(0, 3, n).astype(float))


def after_a_step(arch, make, batch, weights=None, smoothing=0.0):
    network = build(arch, input_shape=(5,), n_outputs=3, seed=1).double()
    settings = replace(
        FAST.vectors, momentum=0.0, weight_decay=0.0, optimiser="sgd", sum_loss=True, label_smoothing=smoothing
    )
    step = (
        planned_stepper(network, settings, len(batch[0]))
        if make is planned_stepper
        else autograd_stepper(network, settings, rng=np.random.default_rng(0))
    )
    step(*batch, 0.01, weights)
    return torch.cat([p.detach().reshape(-1) for p in network.parameters()])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("arch", [*networks()])
@pytest.mark.parametrize("make", [planned_stepper, autograd_stepper])
def test_a_step_on_weighted_rows_is_a_step_on_repeated_rows(arch, make, smoothing):
    """The sum of the losses, by plain descent: nothing but the rows differs."""
    x, y, counts = batch_of(arch)
    again = torch.repeat_interleave(torch.arange(len(x)), counts.long())
    moved = after_a_step(arch, make, (x, y), counts, smoothing)
    repeated = after_a_step(arch, autograd_stepper, (x[again], y[again]), None, smoothing)
    torch.testing.assert_close(moved, repeated, rtol=1e-12, atol=1e-12)
    unweighted = after_a_step(arch, make, (x, y), None, smoothing)
    assert (moved - unweighted).abs().max() > 1e-4


@pytest.mark.parametrize(
    "changes", [{"loss": "absolute"}, {"loss": "huber"}, {"label_smoothing": 0.1}], ids=lambda changes: str(changes)
)
def test_other_losses_are_weighted_alike(changes):
    arch = CLASS if "label_smoothing" in changes else NUMBER
    x, y, counts = batch_of(arch)
    network = build(arch, input_shape=(5,), n_outputs=3, seed=1).double()
    settings = replace(FAST.vectors, **changes)
    again = torch.repeat_interleave(torch.arange(len(x)), counts.long())
    ours = training_loss(network(x), y, settings, classifies=network.classifies, weights=counts) * len(x)
    theirs = training_loss(network(x[again]), y[again], settings, classifies=network.classifies) * len(again)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("arch", [NUMBER, CLASS], ids=["numbers", "classes"])
def test_validation_losses_are_those_of_repeated_rows(arch):
    x, y, counts = batch_of(arch)
    out = build(arch, input_shape=(5,), n_outputs=3, seed=1).double()(x).detach()
    again = torch.repeat_interleave(torch.arange(len(x)), counts.long())
    is_class = arch is CLASS
    ours, repeated = (
        losses_of(out, y, counts, classifies=is_class),
        losses_of(out[again], y[again], classifies=is_class),
    )
    assert ours == (pytest.approx(repeated[0]), None if not is_class else pytest.approx(repeated[1]))


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=n), rng.uniform(0.5, 2.0, size=n)


def test_training_follows_the_weights():
    """Two groups of rows contradict each other; the heavier one is believed."""
    X, y, _ = rows()
    is_first = np.arange(len(y)) % 2 == 0
    both = np.where(is_first, X[:, 0], -X[:, 0])
    arch = chain("mlp-reg", [Layer("relu", 16)])
    for heavy, sign in ((is_first, 1.0), (~is_first, -1.0)):
        data = dataset_of(X, both, sample_weight=np.where(heavy, 1.0, 0.01))
        network = train(arch, data, FAST.changed(n_steps=300)).network
        out = network(torch.from_numpy(np.array(data.test.X))).detach().numpy()[:, 0]
        assert np.corrcoef(out, sign * data.test.X[:, 0])[0, 1] > 0.9


def test_equal_weights_are_no_weights():
    X, y, _ = rows()
    arch, recipe = chain("mlp-reg", [Layer("relu", 8)]), FAST.changed(n_steps=50)
    plain, weighted = (
        train(arch, dataset_of(X, y), recipe),
        train(arch, dataset_of(X, y, sample_weight=[7.0] * 200), recipe),
    )
    assert weighted.loss == pytest.approx(plain.loss, rel=1e-5)


# -- in the data -------------------------------------------------------------------------------------------------------


def test_a_column_of_weights_is_no_input_and_follows_its_rows(tmp_path):
    import pandas as pd

    X, y, weights = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        price=y, importance=np.round(weights * 8) / 8, at=np.arange(200)
    )
    data = dataset_of(frame, "price", sample_weight="importance", time="at")
    assert data.train.weights.tolist() == frame.importance[:120].tolist()
    assert data.test.weights.tolist() == frame.importance[160:].tolist()
    assert data.input_shape == (4,)  # a, b, c, at
    data.save(tmp_path / "data")
    read = Dataset.load(tmp_path / "data")
    assert read.valid.weights.tolist() == data.valid.weights.tolist()
    assert read.fingerprint == data.fingerprint
    assert read.prepared_as("ple").valid.weights.tolist() == data.valid.weights.tolist()
    other = dataset_of(frame.assign(importance=1.0), "price", sample_weight="importance", time="at")
    assert other.fingerprint != data.fingerprint
    assert "weights: rows count" in "\n".join(data.summary())


def test_class_weights(tmp_path):
    X = np.arange(100.0)[:, None]
    y = np.repeat(["common", "rare"], [90, 10])
    data = dataset_of(X, y, class_weight="balanced")
    assert data.class_weights == pytest.approx((100 / 180, 100 / 20))
    loss = data.loss_weights(data.train)
    assert loss.mean() == pytest.approx(1.0, rel=1e-6)
    assert loss[data.train.y == 0].sum() == pytest.approx(loss[data.train.y == 1].sum(), rel=1e-5)
    assert data.loss_weights(data.valid)[data.valid.y == 1].tolist() == pytest.approx([loss[data.train.y == 1][0]] * 2)
    assert data.valid.weights is None  # metrics see rows as they are
    data.save(tmp_path / "data")
    assert Dataset.load(tmp_path / "data").class_weights == data.class_weights
    assert dataset_of(X, y, class_weight={"rare": 5}).class_weights == (1.0, 5.0)
    assert dataset_of(X, np.repeat([0, 1], [90, 10]), class_weight={1: 5.0}).class_weights == (1.0, 5.0)
    with_rows = dataset_of(X, y, class_weight="balanced", sample_weight=np.repeat([1.0, 9.0], [90, 10]))
    assert with_rows.class_weights == pytest.approx((1.0, 1.0))  # the rows' own weights make the classes alike
    assert parsed_class_weight("balanced") == "balanced"
    assert parsed_class_weight("a=b=2,c=1.5") == {
        "a=b": 2.0,
        "c": 1.5,
    }


def test_an_ensemble_is_chosen_by_weighted_rows():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(600, 1))
    good_first = truth + rng.normal(size=truth.shape) * np.where(np.arange(600) % 4 < 2, 0.1, 3.0)[:, None]
    good_last = truth + rng.normal(size=truth.shape) * np.where(np.arange(600) % 4 < 2, 3.0, 0.1)[:, None]
    offered = np.stack([good_first, good_last])
    first = np.where(np.arange(600) % 4 < 2, 1.0, 1e-4)
    for metric in (None, METRICS["mae"]):
        assert select(offered, truth, row_weights=first, metric=metric).members == (0,)
        assert select(offered, truth, row_weights=first[::-1].copy(), metric=metric).members == (1,)
    truth = np.array([0, 1] * 300)
    sure = np.log(np.where(np.eye(2)[truth] > 0, 0.9, 0.1))
    halves = np.stack([np.where(first[:, None] == 1.0, sure, -1.0), np.where(first[:, None] == 1.0, -1.0, sure)])
    assert select(halves, truth, row_weights=first).members == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": [-1.0] + [1.0] * 19}, "sample_weight: negative in 1 rows, such as -1; expected 0 or more"),
        ({"sample_weight": [np.inf] * 20}, "20 rows have a weight that is not finite"),
        ({"sample_weight": [0.0] * 20}, "0 in every one of 12 training rows"),
        ({"sample_weight": ["much"] * 20}, "expected numbers, got such as 'much'"),
        ({"sample_weight": [1.0] * 19}, "expected one value for each of 20 rows, got 19"),
        ({"sample_weight": [1.0] * 19 + [np.nan]}, "1 of 20 rows have no value"),
        ({"class_weight": "even"}, "expected 'balanced', 'none' or a weight for each class, such as a=1,b=5, got"),
        ({"class_weight": {"z": 1}}, "no class 'z'; there are 'a', 'b'"),
        ({"class_weight": {"a": -1}}, "expected a number above 0 for 'a', got -1"),
    ],
    ids=str,
)
def test_mistakes(options, message):
    with pytest.raises((DataError, OptionError), match=message):
        dataset_of(np.arange(20.0)[:, None], ["a", "b"] * 10, **options)


def test_mistakes_of_regression_and_of_text():
    with pytest.raises(OptionError, match="class_weight: the target is a number"):
        dataset_of(np.arange(20.0)[:, None], np.arange(20.0) / 3, class_weight="balanced")
    with pytest.raises(OptionError, match="expected balanced, or weights such as rare=5,common=1, got 'a=much'"):
        parsed_class_weight("a=much")

"""How long to train, from short trainings of the baseline on real little data."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from nasbot.architecture import Layer, chain
from nasbot.automl.calibration import Calibration, _best_length, calibrated, means_the_same_mirrored
from nasbot.automl.plan import fitting_baseline
from nasbot.data.dataset import dataset_of
from nasbot.training import loop
from nasbot.training.recipes import FAST

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 4))
SMOOTH = dataset_of(X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2], task="regression")
NOISE = dataset_of(X, RNG.normal(size=160), task="regression")
ARCH = chain("mlp-reg", [Layer("relu", 32), Layer("relu", 32)])


def found(data, **options):
    given = {"seconds": 1e9, "most_steps": 900, "least_steps": 20, "tries_full": False, "seed": 0, **options}
    return calibrated(ARCH, data, FAST, **given)


def test_data_that_go_on_teaching_are_trained_long_and_noise_is_not():
    smooth, noise = found(SMOOTH), found(NOISE)
    assert smooth.n_steps == 900
    assert noise.n_steps == 100
    assert [n for n, _ in noise.losses] == [100, 300]
    assert noise.losses[1][1] > noise.losses[0][1]


def test_it_takes_as_long_as_it_says_and_leaves_the_threads_as_they_were():
    before, begun = torch.get_num_threads(), time.monotonic()
    told = found(NOISE)
    assert 0 < told.seconds <= time.monotonic() - begun
    assert 0 < told.seconds_per_step < told.seconds
    assert torch.get_num_threads() == before


def test_little_time_is_for_short_trainings_and_few_timings(monkeypatch):
    trained, original = [], loop.train

    def counted(*arguments, **options):
        trained.append(arguments[2].vectors.n_steps)
        return original(*arguments, **options)

    monkeypatch.setattr(loop, "train", counted)
    assert found(SMOOTH, seconds=1e-6) == Calibration(20, pytest.approx(0.0, abs=1.0), (), pytest.approx(0, abs=60))
    assert trained == [20], "there is no time for more"


def test_the_length_is_a_round_number():
    assert found(SMOOTH, most_steps=887).n_steps == 890


def test_with_time_enough_the_whole_length_is_tried_too():
    told = found(NOISE, tries_full=True)
    assert [n for n, _ in told.losses] == [100, 300, 900]
    assert told.n_steps < 300


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([3.0, 1.0, 3.0], 300),  # the lowest point is in the middle of a parabola over log steps
        ([1.0, 2.0, 4.0], 100),  # a bend whose lowest point is before the shortest
        ([1.0, 2.0, 2.5], 100),  # no lowest point: the better end
        ([3.0, 2.5, 1.0], 900),
    ],
)
def test_the_length_of_three_losses(losses, expected):
    assert _best_length([100, 300, 900], losses) == pytest.approx(expected)


@pytest.mark.parametrize(("losses", "expected"), [([2.0, 1.0], 900), ([1.0, 0.999], 300), ([1.0, 1.1], 100)])
def test_the_length_of_two_losses(losses, expected):
    assert _best_length([100, 300], losses) == expected


def blobs(mirrored_counts_alike):
    """A bright square, high or low (which is what is asked), or left or right."""
    rng = np.random.default_rng(1)
    images = 0.3 * rng.normal(size=(300, 1, 8, 8)).astype("float32")
    rows, columns = rng.integers(0, 6, size=(2, 300))
    for image, row, column in zip(images, rows, columns, strict=True):
        image[0, row : row + 3, column : column + 3] += 2
    place = rows if mirrored_counts_alike else columns
    return dataset_of(images, (place > 2).astype(int))


def test_images_are_mirrored_where_they_then_mean_the_same():
    for alike in (True, False):
        data = blobs(alike)
        network = fitting_baseline(data.kind, len(data.train))
        assert means_the_same_mirrored(network, data, FAST, seconds=30, seed=0) is alike


def test_nothing_learned_is_no_reason_to_mirror():
    noise = dataset_of(RNG.normal(size=(200, 1, 6, 6)).astype("float32"), RNG.integers(0, 2, 200))
    network = fitting_baseline(noise.kind, len(noise.train))
    assert not means_the_same_mirrored(network, noise, FAST, seconds=30, seed=0)


def test_on_a_busy_machine_no_trial_takes_longer_than_a_full_training(monkeypatch):
    """Timings are the quickest of a few; what trials then take for a step says the length."""
    given, original = [], loop.train

    def slow(arch, data, recipe, *, seconds=None, **options):
        trained = original(arch, data, recipe, **options)
        if seconds is None:  # a timing
            return trained
        given.append(seconds)
        return replace(trained, stopped="time", steps=50, seconds=seconds)

    monkeypatch.setattr(loop, "train", slow)
    told = found(SMOOTH, seconds=1e4)
    assert given == [1e4, 1e4]
    assert (told.n_steps, told.losses, told.seconds_per_step) == (50, (), 1e4 / 50)
    found(SMOOTH, seconds=1e4, tries_full=True)
    assert given[2:] == [2e4] * 3

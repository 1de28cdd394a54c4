"""What an ensemble teaches: how much of it, and targets between the truth and its word."""

import numpy as np
import pytest
import torch

from nasbot.data.dataset import dataset_of
from nasbot.training.distilling import MOST, NOISE, OWN, Voice, lesson_of, share_of
from tests.training.test_loop import friedman


@pytest.mark.parametrize(
    ("left", "share"),
    [(0.3, 0.0), (OWN, 0.0), ((OWN + NOISE) / 2, MOST / 2), (NOISE, MOST), (0.99, MOST), (1.1, MOST)],
)
def test_the_more_of_an_error_is_noise_the_more_the_ensemble_is_worth(left, share):
    assert share_of(left * 3.0, 3.0) == pytest.approx(share)


def test_networks_without_an_error_teach_nothing():
    assert share_of(0.0, 0.0) == 0.0


class Saying(torch.nn.Module):
    """Stands for a network: says the same of every row."""

    def __init__(self, *values):
        super().__init__()
        self.values, self.input_shape = torch.tensor([values], dtype=torch.float32), (7,)

    def forward(self, x):
        return self.values.expand(len(x), -1)


def test_numbers_are_taken_between_truth_and_mean():
    data = dataset_of(*friedman(), name="friedman")
    targets = lesson_of(data, [Voice(Saying(0.1), data, 0.75), Voice(Saying(-0.1), data, 0.25)], 0.4)
    truth = np.concatenate([data.train.y, data.valid.y])
    np.testing.assert_allclose(targets, 0.6 * truth + 0.4 * 0.05, atol=1e-6)
    assert targets.dtype == np.float32


def test_parts_of_the_rows_are_asked_about_at_once_and_stay_in_order():
    X, y = friedman()
    data = dataset_of(X, y, name="friedman")
    asked = []

    class Copying(Saying):
        def forward(self, x):
            asked.append(len(x))
            return 1e-3 * x[:, :1]

    voices = [Voice(Copying(), data, 1.0)]
    whole, parts = (lesson_of(data, voices, 0.5, at_once=n) for n in (1, 3))
    np.testing.assert_array_equal(whole, parts)
    assert len(asked) == 2 + 6


def test_a_wild_word_is_bounded_by_what_was_seen():
    data = dataset_of(*friedman(), name="friedman")
    targets = lesson_of(data, [Voice(Saying(1e9), data, 0.5), Voice(Saying(1e9), data, 0.5)], 0.5)
    truth = np.concatenate([data.train.y, data.valid.y])
    np.testing.assert_allclose(targets, (truth + truth.max()) / 2, rtol=1e-5, atol=1e-6)


def test_classes_are_taken_by_their_probabilities():
    X, y = friedman()
    data = dataset_of(X, (y > np.median(y)).astype(int), task="classification", name="halves")
    odds = np.log([0.3, 0.7])
    targets = lesson_of(data, [Voice(Saying(*odds), data, 0.5), Voice(Saying(*odds[::-1]), data, 0.5)], 0.4)
    assert targets.sum(axis=1) == pytest.approx(1.0)
    truth = np.concatenate([data.train.y, data.valid.y])
    np.testing.assert_allclose(targets[np.arange(len(truth)), truth], 0.6 + 0.4 / 2, rtol=1e-6)

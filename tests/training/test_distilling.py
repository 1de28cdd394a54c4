"""What an ensemble and trees teach: how much of it, and targets between the truth and their word."""

import numpy as np
import pytest
import torch

from nasbot.data.dataset import dataset_of
from nasbot.errors import FileError, StorageError
from nasbot.training.distilling import (
    MOST,
    NOISE,
    OWN,
    TREES,
    Voice,
    blended,
    said_together,
    save_trees,
    share_of,
    targets_of,
    truth_of,
)
from nasbot.training.folds import joined
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


def lesson_of(data, voices, share, **options):
    return blended(truth_of(data, joined(data.train, data.valid)), said_together(data, voices, **options), share)


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


@pytest.fixture
def friedmans():
    return dataset_of(*friedman(), name="friedman")


def said_by_trees(data, seed=0):
    n = len(data.train) + len(data.valid)
    return np.random.default_rng(seed).normal(0, 0.1, (n, data.n_outputs)).astype(np.float32)


def test_what_trees_say_is_kept_beside_the_data_and_learned_by_its_share(friedmans, tmp_path):
    said = said_by_trees(friedmans)
    save_trees(tmp_path, friedmans, said)
    n = len(friedmans.train)
    np.testing.assert_allclose(
        targets_of(friedmans, tmp_path, 0.3), 0.7 * friedmans.train.y + 0.3 * said[:n], atol=1e-6
    )
    every = np.concatenate([friedmans.train.y, friedmans.valid.y])
    np.testing.assert_allclose(
        targets_of(friedmans, tmp_path, 0.6, all_rows=True), 0.4 * every + 0.6 * said, rtol=1e-5, atol=1e-6
    )


def test_trees_that_say_too_much_are_bounded_by_what_was_seen(friedmans, tmp_path):
    save_trees(tmp_path, friedmans, np.full_like(said_by_trees(friedmans), -1e9))
    truth = friedmans.train.y
    np.testing.assert_allclose(targets_of(friedmans, tmp_path, 0.5), (truth + truth.min()) / 2, rtol=1e-5, atol=1e-6)


def test_without_a_share_nothing_is_read(friedmans, tmp_path):
    assert targets_of(friedmans, tmp_path / "nowhere", 0.0) is None


def test_what_trees_said_must_be_there_and_of_these_rows(friedmans, tmp_path):
    with pytest.raises(FileError, match=r"trees.npy: cannot be read"):
        targets_of(friedmans, tmp_path, 0.3)
    save_trees(tmp_path, friedmans, said_by_trees(friedmans)[:-1])
    with pytest.raises(StorageError, match=r"trees.npy: not what trees say of the training and validation rows of"):
        targets_of(friedmans, tmp_path, 0.3)
    (tmp_path / TREES).write_bytes(b"no array")
    with pytest.raises(StorageError, match="not an array"):
        targets_of(friedmans, tmp_path, 0.3)
